"""mAP of imported COCO files is pycocotools' of these files: crowds alone, repeated objects."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from custom_data import data_folder
from PIL import Image

from vlmeval_findit.analysis import measure_unranked
from vlmeval_findit.boxes import BoxToWrite, Corners, write
from vlmeval_findit.cli import main
from vlmeval_findit.data import load_dataset
from vlmeval_findit.protocol import Settings
from vlmeval_findit.scoring import RunScore, score_file

coco = pytest.importorskip("pycocotools.coco")
cocoeval = pytest.importorskip("pycocotools.cocoeval")

WIDTH, HEIGHT = 200, 100
CATEGORIES = {3: "cat", 7: "dog", 9: "bird"}
NAMES = ["a.png", "b.png", "c.png", "d.png"]
MULTI = "FindIt_Drawn_multilabel_xyxy_json"
Answers = Mapping[str, Sequence[tuple[str, Corners]]]  # By image


class Drawn(NamedTuple):
    """A COCO file, and what a model says of its images: labels and boxes."""

    values: dict[str, Any]
    answers: Answers


def drawn(seed: int) -> Drawn:
    """Draw objects, repeated ones and crowds beside each other and alone, and boxes near them."""
    generator = np.random.default_rng(seed)
    annotations: list[dict[str, Any]] = []
    answers: dict[str, list[tuple[str, Corners]]] = {name: [] for name in NAMES}
    for number, name in enumerate(NAMES, 1):
        for category, label in CATEGORIES.items():
            kinds = [["object"], ["crowd"], ["object", "crowd"], ["object", "twice"], []]
            if number == 1:
                kinds = kinds[:3:2]  # Each class has an object somewhere
            for kind in kinds[generator.integers(len(kinds))]:
                x, y = generator.integers(0, (120, 50))
                w, h = generator.integers(15, 50, 2)
                box = [float(x), float(y), float(w), float(h)]
                row = {"image_id": number, "category_id": category, "bbox": box, "area": w * h}
                row |= {"area": float(w * h), "iscrowd": int(kind == "crowd")}
                for _ in range(2 if kind == "twice" else 1):
                    annotations.append({"id": len(annotations) + 1, **row})
                for _ in range(generator.integers(0, 4)):
                    left, top = x + generator.normal(0, 2), y + generator.normal(0, 2)
                    share = 0.4 if kind == "crowd" else 1
                    corners = (left, top, left + share * w, top + share * h)
                    answers[name].append((label, corners))
        if generator.random() < 0.5:
            answers[name].append(("bird", (150.0, 80.0, 190.0, 95.0)))
    images = [
        {"id": number, "file_name": name, "width": WIDTH, "height": HEIGHT}
        for number, name in enumerate(NAMES, 1)
    ]
    categories = [{"id": number, "name": name} for number, name in CATEGORIES.items()]
    values = {"images": images, "categories": categories, "annotations": annotations}
    return Drawn(values, answers)


def imported(folder: Path, values: Mapping[str, Any], *flags: str) -> None:
    for name in NAMES:
        Image.new("RGB", (WIDTH, HEIGHT), "white").save(folder / name)
    (folder / "set.json").write_text(json.dumps(values))
    assert main(["data", "import", "set.json", "--name", "Drawn", *flags]) == 0


def scored(folder: Path, answers: Answers) -> RunScore:
    """Score answers to queries about several labels, in pixels of the files."""
    dataset = load_dataset(MULTI)
    rows = []
    for index, query in dataset.queries.items():
        boxes = [BoxToWrite(box, label) for label, box in answers[query.images[0]]]
        rows.append({"index": index, "prediction": write(boxes, dataset.variant.reply, digits=9)})
    path = folder / f"M_{MULTI}.json"
    path.write_text(json.dumps(rows))
    return score_file(path, Settings(space="file_pixels", force=True))


def of_pycocotools(values: dict[str, Any], answers: Answers, images: set[str]) -> float:
    """Return mAP of the file itself, over some of its images, all confidences equal."""
    ids = {image["file_name"]: image["id"] for image in values["images"]}
    numbers = {label: number for number, label in CATEGORIES.items()}
    results = []
    for name in sorted(images):
        for label, (x1, y1, x2, y2) in answers[name]:
            place = {"image_id": ids[name], "category_id": numbers[label]}
            results.append({**place, "bbox": [x1, y1, x2 - x1, y2 - y1], "score": 1.0})
    with contextlib.redirect_stdout(io.StringIO()):
        truth = coco.COCO()
        truth.dataset = json.loads(json.dumps({"info": {}, **values}))
        truth.createIndex()
        evaluation = cocoeval.COCOeval(truth, truth.loadRes(results), "bbox")
        evaluation.params.imgIds = [ids[name] for name in images]
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return float(evaluation.stats[0])


@pytest.mark.parametrize("flags", [[], ["--all-classes"]])
@pytest.mark.parametrize("seed", range(6))
def test_mean_precision_is_that_of_the_coco_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, flags: list[str]
) -> None:
    data_folder(tmp_path, monkeypatch)
    values, answers = drawn(seed)
    imported(tmp_path, values, *flags)
    run = scored(tmp_path, answers)
    asked = {run.dataset.queries[row.index].images[0] for row in run.rows}
    assert (asked == {*NAMES}) or not flags
    found = measure_unranked(run.dataset, run.rows).values.ap
    assert found == pytest.approx(100 * of_pycocotools(values, answers, asked), abs=1e-9)


@pytest.mark.parametrize("flags", [[], ["--all-classes"]])
def test_boxes_in_a_crowd_alone_are_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], flags: Any
) -> None:
    """Whether the class is asked about or not: F1 counts a box outside of the crowd only."""
    data_folder(tmp_path, monkeypatch)
    cat, crowd = [0.0, 0.0, 20.0, 20.0], [50.0, 0.0, 100.0, 90.0]
    values, _ = drawn(0)
    both = {"image_id": 1, "area": 400.0}
    values["annotations"] = [
        {"id": 1, **both, "category_id": 3, "bbox": cat, "iscrowd": 0},
        {"id": 2, **both, "category_id": 7, "bbox": crowd, "iscrowd": 1},
        {"id": 3, **both, "category_id": 7, "bbox": crowd, "iscrowd": 1, "image_id": 2},
        {"id": 4, **both, "category_id": 7, "bbox": cat, "iscrowd": 0, "image_id": 3},
    ]
    imported(tmp_path, values, *flags)
    printed = capsys.readouterr().out
    if flags:
        assert "ignored boxes (2)" in printed
        assert "left out" not in printed
    else:
        assert "ignored boxes (1)" in printed
        assert "left out: crowd regions that no query is about (1)" in printed
    said = [("cat", (0.0, 0.0, 20.0, 20.0)), ("dog", (60.0, 10.0, 80.0, 30.0))]
    run = scored(tmp_path, {"a.png": said, "b.png": said[1:], "c.png": said[:1], "d.png": []})
    by_image = {run.dataset.queries[row.index].images[0]: row for row in run.rows}
    assert by_image["a.png"].details["ignored"] == [1]
    assert by_image["c.png"].details.get("ignored", []) == []
    if flags:
        assert by_image["b.png"].details["ignored"] == [0]


def test_ids_of_earlier_imports_are_read_without_repetitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = data_folder(tmp_path, monkeypatch)
    values, _ = drawn(0)
    cat = {"image_id": 1, "category_id": 3, "bbox": [0.0, 0.0, 20.0, 20.0], "area": 400.0}
    values["annotations"] = [{"id": number, **cat, "iscrowd": 0} for number in (1, 2, 3)]
    imported(tmp_path, values)
    assert "repeat image, label and corners of another, but for" in capsys.readouterr().out
    run = scored(tmp_path, {name: [("cat", (0.0, 0.0, 20.0, 20.0))] for name in NAMES})
    (cats,) = measure_unranked(run.dataset, run.rows).classes
    assert cats.objects == 3
    (path,) = root.rglob("Drawn.coco.json")
    ids = json.loads(path.read_text())
    del ids["repeats"]
    path.write_text(json.dumps(ids))
    (cats,) = measure_unranked(run.dataset, run.rows).classes
    assert cats.objects == 1
