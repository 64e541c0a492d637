"""A folder of files that commands refuse, each named by what is wrong with it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import review_files
from custom_data import coco_values, make_images, write_coco, write_listing, write_voc, write_yolo
from refcoco_stand_ins import write_answers, write_lines
from review_files import Reviewer
from scored_runs import World, scored_outputs
from weight_headers import write_index, write_numbers, write_weights

from vlmeval_findit.protocol import Answer, ReviewVerdict
from vlmeval_findit.scoring import load_runs

NAME = "FindIt_Pascal_xyxy_json"
RUN = f"M_{NAME}.json"
"""The file of a run in each folder of ``runs``."""

_REPLIES = [{"index": 0, "prediction": "[]"}, {"index": 1, "prediction": "[]"}]

PREDICTIONS: Mapping[str, object] = {
    "empty": b"",
    "cut": b'[{"index": 0',
    "no_list": {"index": 0},
    "no_object": [*_REPLIES, 3],
    "deep": b"[" * 99_999,
    "no_text": b'[{"index": 0, "prediction": "\xff"}]',
    "no_prediction": [{"index": 0, "answer": "[]"}],
    "twice": [*_REPLIES, *_REPLIES],
    "word_index": [{"index": "first", "prediction": "[]"}],
    "other_table": [{"index": 900, "prediction": "[]"}],
    "odd_reply": [{"index": 0, "prediction": [1, 2]}],
    "odd_record": [{"index": 0, "prediction": "[]", "extra_records": '{"findit": [1]}'}],
    "cut_record": [{"index": 0, "prediction": "[]", "extra_records": '{"findit": {"tok'}],
    "good": _REPLIES,
}

IDENTITIES: Mapping[str, object] = {
    "identity_empty": b"",
    "identity_list": [1],
    "identity_other_rows": {"rows": "none"},
}

SWEEPS = {
    "good": "models: [FindIt-Nano]\ndatasets: Demo",
    "empty": "",
    "no_yaml": "models: [a\ndatasets: b",
    "no_mapping": "- models",
    "unknown_key": "models: [Qwen3-VL]\ndataset: Demo",
    "twice": "models: [Qwen3-VL]\nmodels: [Qwen3-VL]\ndatasets: Demo",
    "no_datasets": "models: [Qwen3-VL]",
    "unknown_dataset": "models: [Qwen3-VL]\ndatasets: [Demo, Pascle]",
    "unknown_model": "models: [Qwen4-VL]\ndatasets: Demo",
    "no_list": "models: 3\ndatasets: Demo",
    "unknown_axis": "models: [Qwen3-VL]\ndatasets: Demo\nrepresentations: xywhh",
    "no_cell": "models: [Qwen3-VL]\ndatasets: Demo\nkeys: [point_2d]\nrepresentations: [xyxy]",
    "two_benchmarks": "models: [Qwen3-VL]\ndatasets: [Demo, VPBench_Stage1]",
    "winner_first": "models: [Qwen3-VL]\ndatasets: Demo\nrepresentations: winner",
    "axis_in_stages": "models: [Qwen3-VL]\ndatasets: Demo\nkeys: bbox\nstages: [{outputs: json}]",
    "checkpoint_at_provider": "models: [{name: GPT-5.4, provider: openai, checkpoint: x/y}]\n"
    "datasets: Demo",
    "samples_without_temperature": "models: [FindIt-Nano]\ndatasets: Demo\nsamples: 3",
    "secret": "models: [{name: Qwen3-VL, base_url: 'http://127.0.0.1:1/v1', api_key: sk-1}]\n"
    "datasets: Demo",
    "race_of_one": "models: [FindIt-Nano]\ndatasets: Demo\nrepresentations: xyxy\noutputs: json\n"
    "keys: bbox\nrace: true",
    "word_limit": "models: [FindIt-Nano]\ndatasets: Demo\nlimit: many",
    "wrong_space": "models: [{name: FindIt-Nano, space: gird1000}]\ndatasets: Demo",
    "alias": "models: &m [Qwen3-VL, *m]\ndatasets: Demo",
}

PLUGINS = {
    "syntax": "def broken(:\n    pass",
    "import": "import nowhere_to_be_had",
    "raises": "raise RuntimeError('no licence')",
    "twice": "from vlmeval_findit.models.model_table import MODELS\n"
    "MODELS.add(MODELS['FindIt-Nano'])",
}

LINES = {
    "empty": "",
    "no_json": '{"image": "one.jpg"',
    "no_image": '{"label": "cat", "boxes": []}',
    "no_target": '{"image": "one.jpg", "boxes": []}',
    "two_targets": '{"image": "one.jpg", "label": "cat", "expression": "a cat", "boxes": []}',
    "unknown_key": '{"image": "one.jpg", "label": "cat", "boxs": []}',
    "missing_image": '{"image": "none.jpg", "label": "cat", "boxes": []}',
    "outside": '{"image": "one.jpg", "label": "cat", "boxes": [[0, 0, 500, 500]]}',
    "no_area": '{"image": "one.jpg", "label": "cat", "boxes": [[5, 5, 5, 9]]}',
    "three_numbers": '{"image": "one.jpg", "label": "cat", "boxes": [[1, 2, 3]]}',
    "word_box": '{"image": "one.jpg", "label": "cat", "boxes": "1 2 3 4"}',
    "same_query": '{"image": "one.jpg", "label": "cat", "boxes": []}\n'
    '{"image": "one.jpg", "label": "cat", "boxes": [[1, 2, 30, 40]]}',
    "other_label": '{"image": "one.jpg", "labels": ["cat"], '
    '"boxes": [{"box": [1, 2, 30, 40], "label": "dog"}]}',
    "some_captions": '{"image": "one.jpg", "label": "cat", "boxes": [], "caption": "a room"}\n'
    '{"image": "three.jpg", "label": "cat", "boxes": []}',
}

LISTINGS = {
    "no_header": "one.jpg,7,1,2,30,40",
    "missing_column": "image,label,x1,y1,x2\none.jpg,cat,1,2,30",
    "cut": "image,label,x1,y1,x2,y2\none.jpg,cat,1,2",
    "word": "image,label,x1,y1,x2,y2\none.jpg,cat,1,2,wide,40",
    "no_label": "image,label,x1,y1,x2,y2\none.jpg,,1,2,30,40",
    "fractions": "image,label,x1,y1,x2,y2\none.jpg,cat,0.1,0.2,0.3,0.4",
    "two_columns": "image,image,x1,y1,x2,y2\none.jpg,cat,1,2,30,40",
}

LABELS = {"four_numbers": "0 0.5 0.5 0.2", "no_class": "9 0.5 0.5 0.2 0.2", "word": "cow 1 1 1 1"}
"""A line of YOLO's."""

_HASH = f"sha256:{64 * '0'}"
_REVIEW = {
    "format": 1,
    "table": _HASH,
    "index": 0,
    "row": _HASH,
    "verdict": "unsure",
    "accept": [],
    "kind": "",
    "reviewer": "ab",
    "date": "2026-01-31",
    "drawn": "random",
}

REVIEWS: Mapping[str, object] = {
    "empty.jsonl": b"",
    "good.jsonl": _REVIEW,
    "more.jsonl": {**_REVIEW, "index": 1},
    "no_json.jsonl": b'{"format": 1,\n',
    "format.jsonl": {**_REVIEW, "format": 2},
    "verdict.jsonl": {**_REVIEW, "verdict": "labels"},
    "no_answer.jsonl": {**_REVIEW, "verdict": "model"},
    "unknown_key.jsonl": {**_REVIEW, "verdit": "model"},
    "no_list.json": [1],
    "refcoco_val_reviewed.json": {"annotation": [{"caption": "a cup", "caption_quality": 0}]},
    "no_quality.json": {"annotation": [{"caption": "a cup"}]},
}


def make_folder(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Fill a folder with runs, damaged files and annotations, and change into it."""
    world = scored_outputs(folder, patch)
    _vlmevalkit(folder / "site" / "vlmeval")
    for name, content in PREDICTIONS.items():
        _write(folder / "runs" / name / RUN, content)
    for name, content in IDENTITIES.items():
        _write(folder / "runs" / name / RUN, _REPLIES)
        _write(folder / "runs" / name / f"M_{NAME}_identity.json", content)
    _write(folder / "runs" / "boxes.json", _REPLIES)
    _write(folder / "runs" / "boxes.parquet", b"PAR1")
    _write(folder / "runs" / "cut.xlsx", b"PK")
    (folder / "empty").mkdir()
    for name, text in SWEEPS.items():
        _write(folder / "sweeps" / f"{name}.yaml", text.encode())
    for name, content in REVIEWS.items():
        _write(folder / "reviews" / name, content)
    for name, text in PLUGINS.items():
        _write(folder / "plugins" / f"{name}.py", text.encode())
    _changed_runs(world, folder / "changed")
    _reviews_of_runs(folder / "reviews", folder / "outputs")
    for version in ("0.9", "1.0"):
        _scored_by(version, folder / "outputs", folder / "older" / version)
    _annotations(folder / "data")
    write_answers(folder / "refcoco" / "mixed")
    write_lines(folder / "refcoco" / "without_images")
    shutil.copytree(folder / "pictures", folder / "no_checkpoint")
    _checkpoints(folder / "checkpoints")


def _checkpoints(folder: Path) -> None:
    """Write checkpoints whose files tell that weights are not there."""
    for name in ("no_shards", "cut_off", "wrapped"):
        _write(folder / name / "config.json", {"model_type": "qwen3_vl"})
    tied = {"model_type": "qwen3_vl", "tie_word_embeddings": True}
    _write(folder / "untied" / "config.json", tied)
    values = {"lm_head.weight": b"1234", "model.embed_tokens.weight": b"1235"}
    write_numbers(folder / "untied" / "model.safetensors", values)
    write_index(folder / "no_shards", *(f"model-0000{at}-of-00003.safetensors" for at in (1, 2, 3)))
    write_weights(folder / "no_shards" / "model-00002-of-00003.safetensors", "1.weight")
    write_weights(folder / "cut_off" / "model.safetensors", "lm_head.weight")
    whole = (folder / "cut_off" / "model.safetensors").read_bytes()
    (folder / "cut_off" / "model.safetensors").write_bytes(whole[:-1])
    write_weights(folder / "wrapped" / "model.safetensors", "module.lm_head.weight", "module.norm")


def _write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def _scored_by(version: str, outputs: Path, folder: Path) -> None:
    """Copy a run, as if a release that recorded no code had scored it."""
    folder.mkdir(parents=True)
    for path in outputs.glob("Good_*"):
        shutil.copy(path, folder)
    (provenance,) = folder.glob("*_provenance.json")
    values = json.loads(provenance.read_text(encoding="utf-8"))
    values["scored_with"] = {"vlmeval_findit": version}
    provenance.write_text(json.dumps(values), encoding="utf-8")


def _reviews_of_runs(folder: Path, outputs: Path) -> None:
    """Write reviews of the rows of the runs: one voted, a row is another, an answer cannot be."""
    (good,) = (run for run in load_runs([outputs]) if run.model == "Good")
    reviewer = Reviewer(good.variant.name, (good.provenance.digest,))
    box = (5.0, 65.0, 45.0, 95.0)
    changed = reviewer.review(3, ReviewVerdict.MODEL, Answer((box,)))
    review_files.write(folder / "voted.jsonl", changed)
    review_files.write(folder / "other_row.jsonl", replace(changed, row=_HASH))
    classes = reviewer.review(3, ReviewVerdict.EDITED, Answer((box,), ("cat",)))
    review_files.write(folder / "classes.jsonl", classes)


def _vlmevalkit(package: Path) -> None:
    """Write what is read of VLMEvalKit: its runner's flags, its models and datasets."""
    flags = ("--data", "--config", "--api-nproc", "--judge", "--reuse-aux", "--nproc")
    lines = [f"parser.add_argument('{flag}', type=str)" for flag in flags]
    _write(package / "run.py", "\n".join(lines).encode())
    _write(package / "__init__.py", b"raise AssertionError('vlmeval was imported')")
    _write(package / "config.py", b'supported_VLM = {"Their-VL-7B": partial(vlm.Their)}')
    _write(package / "dataset" / "names.py", b'{"TheirBench": "https://example.org/x.tsv"}')


def _changed_runs(world: World, folder: Path) -> None:
    """Copy the run Good, and change a file of each copy."""
    source = world.folder / "outputs"
    stem = "Good_FindIt_Pascal_xyxy_json_bbox_2d"
    for name in ("predictions", "no_details", "details", "totals", "no_predictions", "no_score"):
        shutil.copytree(source, folder / name)
        for other in (folder / name).glob("Poor*"):
            other.unlink()
    predictions = folder / "predictions" / f"{stem}.json"
    predictions.write_text(predictions.read_text().replace("[", " [", 1))
    (folder / "no_details" / f"{stem}_details.jsonl").unlink()
    _write(folder / "details" / f"{stem}_details.jsonl", b"{")
    (folder / "no_predictions" / f"{stem}.json").unlink()
    (folder / "no_score" / f"{stem}_provenance.json").unlink()
    provenance = folder / "totals" / f"{stem}_provenance.json"
    values = json.loads(provenance.read_text())
    values["totals"][next(iter(values["totals"]))] = 1e6
    _write(provenance, values)


def _annotations(folder: Path) -> None:
    images = make_images(folder / "images")
    for name, text in LINES.items():
        _write(folder / "lines" / f"{name}.jsonl", text.encode())
    for name, text in LISTINGS.items():
        _write(folder / "csv" / f"{name}.csv", text.encode())
    umlaut = "image,label,x1,y1,x2,y2\none.jpg,Käfer,1,2,30,40\n"
    _write(folder / "csv" / "windows.csv", umlaut.encode("cp1252"))
    write_listing(_write(folder / "csv" / "good.csv", b""))
    for name in (*LABELS, "no_names"):
        (folder / "yolo" / name).mkdir(parents=True)
        write_yolo(folder / "yolo" / name)
    for name, line in LABELS.items():
        _write(folder / "yolo" / name / "labels" / "one.txt", line.encode())
    (folder / "yolo" / "no_names" / "data.yaml").unlink()
    write_voc(folder / "voc" / "no_names")
    unnamed = b"<annotation><filename>one.jpg</filename><object/></annotation>"
    _write(folder / "voc" / "no_names" / "Annotations" / "one.xml", unnamed)
    write_voc(folder / "voc" / "cut")
    _write(folder / "voc" / "cut" / "Annotations" / "one.xml", b"<annotation>")
    coco = folder / "coco"
    coco.mkdir()
    write_coco(coco)
    for name, change in _COCO.items():
        values = coco_values()
        change(values)
        _write(coco / f"{name}.json", values)
    _write(coco / "cut.json", b'{"images": [')
    _write(folder / "notes.txt", b"one")
    _write(folder / "kitti" / "label_2" / "000000.txt", b"Car 0 0")
    shutil.copytree(images, folder / "kitti" / "image_2")
    _write(folder / "cvat.xml", b"<annotations><track/></annotations>")


_COCO = {
    "no_categories": lambda values: values.pop("categories"),
    "no_list": lambda values: values.update(images=3),
    "same_id": lambda values: values["images"][1].update(id=501),
    "unknown_image": lambda values: values["annotations"][0].update(image_id=4),
    "unknown_category": lambda values: values["annotations"][0].update(category_id=4),
    "three_numbers": lambda values: values["annotations"][0].update(bbox=[1, 2, 3]),
    "no_bbox": lambda values: values["annotations"][0].pop("bbox"),
    "no_file_name": lambda values: values["images"][0].pop("file_name"),
    "two_names": lambda values: values["categories"][1].update(name="cat"),
    "other_size": lambda values: values["images"][0].update(width=7),
}
