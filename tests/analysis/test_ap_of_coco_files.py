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
from vlmeval_findit.leaderboard import UnrankedRun, explain_unranked
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


BOXES = {3: [10.0, 10.0, 40.0, 30.0], 7: [80.0, 20.0, 60.0, 50.0], 9: [150.0, 60.0, 40.0, 30.0]}


def of_all_classes() -> dict[str, Any]:
    """Return a COCO file with an object of each class in each image; the first is altered."""
    values, _ = drawn(0)
    places = [(image, category) for image in range(1, 5) for category in BOXES]
    annotations = []
    for number, (image, category) in enumerate(places, 1):
        row = {"id": number, "image_id": image, "category_id": category, "iscrowd": 0}
        annotations.append({**row, "bbox": [*BOXES[category]], "area": 1200.0})
    return {**values, "annotations": annotations}


def with_first(**changes: Any) -> dict[str, Any]:
    values = of_all_classes()
    values["annotations"][0] |= changes
    return values


def with_images(key: str, *of_images: str) -> dict[str, Any]:
    values = of_all_classes()
    for image, value in zip(values["images"], of_images, strict=True):
        image[key] = value
    return values


def with_corners() -> dict[str, Any]:
    values = of_all_classes()
    for each in values["annotations"]:
        x, y, w, h = each["bbox"]
        each["bbox"] = [x, y, x + w, y + h]
    return values


OUT = [-30.0, 10.0, 80.0, 30.0]
# A file, flags of its import, whether the first object is answered, what is said
UNLIKE: dict[str, tuple[dict[str, Any], list[str], bool, str]] = {
    "id 0": (with_first(id=0), [], True, "objects with the id 0: pycocotools counts boxes on"),
    "ignore": (with_first(ignore=1), [], False, "by a flag other than iscrowd"),
    "difficult": (with_first(difficult=1), [], False, "by a flag other than iscrowd"),
    "group": (with_first(is_group_of=1), [], False, "by a flag other than iscrowd"),
    "attribute": (with_first(attributes={"ignore": True}), [], False, "a flag other than iscrowd"),
    "turned": (with_first(attributes={"rotation": 40.0}), [], True, "rotated boxes that became"),
    "cut off": (with_first(bbox=OUT), ["--clip-boxes"], True, "cut off at the border"),
    "left out": (with_first(bbox=OUT), ["--leave-out-bad-boxes"], False, "cannot be used"),
    "dropped": (of_all_classes(), ["--drop-class", "cat"], False, "of the class 'cat'"),
    "regions": (of_all_classes(), ["--ignore-class", "cat"], False, "of the class 'cat'"),
    "joined": (of_all_classes(), ["--rename-class", "cat=dog"], True, "that became one, dog"),
    "corners": (with_corners(), ["--box", "corners"], True, "boxes that are corners"),
    "image": (
        with_images("file_name", "gone.png", *NAMES[1:]),
        ["--skip-unreadable-images"],
        False,
        "images that cannot be used",
    ),
    "split": (
        with_images("split", "train", "val", "val", "val"),
        ["--split", "val"],
        False,
        "images of the split train",
    ),
}


def exact_answers(values: Mapping[str, Any], skipped: int) -> dict[str, list[tuple[str, Corners]]]:
    """Answer each object with its bbox as sides, but for the first ones."""
    names = {image["id"]: image["file_name"] for image in values["images"]}
    answers: dict[str, list[tuple[str, Corners]]] = {name: [] for name in names.values()}
    for each in values["annotations"][skipped:]:
        x, y, w, h = each["bbox"]
        box = (x, y, x + w, y + h)
        answers[names[each["image_id"]]].append((CATEGORIES[each["category_id"]], box))
    return answers


@pytest.mark.parametrize("kind", UNLIKE)
def test_what_pycocotools_reads_otherwise_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    data_folder(tmp_path, monkeypatch)
    values, flags, is_answered, why = UNLIKE[kind]
    imported(tmp_path, values, "--all-classes", *flags)
    assert why in " ".join(capsys.readouterr().out.split())
    answers = exact_answers(values, 0 if is_answered else 1)
    run = scored(tmp_path, answers)
    found = measure_unranked(run.dataset, run.rows)
    assert abs(found.values.ap - 100 * of_pycocotools(values, answers, {*answers})) > 0.01
    assert any(why in what for what in found.unlike_file)
    lines = explain_unranked([UnrankedRun("M", "xyxy_json", "Drawn", found)]).lines
    (line,) = [each for each in lines if each.startswith("differs from pycocotools of your file")]
    assert why in line
    assert not [each for each in lines if "yours after data import --all-classes" in each]


ALIKE: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nothing": (of_all_classes(), []),
    "crowd": (with_first(iscrowd=1), []),
    "crowd with the id 0": (with_first(iscrowd=1, id=0), []),
    "crowd to ignore": (with_first(iscrowd=1, ignore=1), []),
    "counted by its flags": (with_first(ignore=0, difficult=0), []),
    "renamed": (of_all_classes(), ["--rename-class", "cat=tom"]),
}


@pytest.mark.parametrize("kind", ALIKE)
def test_what_pycocotools_reads_alike_is_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    data_folder(tmp_path, monkeypatch)
    values, flags = ALIKE[kind]
    imported(tmp_path, values, "--all-classes", *flags)
    run = scored(tmp_path, {name: [] for name in NAMES})
    found = measure_unranked(run.dataset, run.rows)
    assert (found.unlike_file, found.unasked, found.asks_for_all) == ({}, 0, True)


def advice(rows: int | None = None) -> list[str]:
    """Return what is said of classes that are not asked about, of a run's first rows."""
    variant = "FindIt_Drawn_xyxy_json"
    dataset = load_dataset(variant)
    told = [{"index": index, "prediction": "[]"} for index in list(dataset.queries)[:rows]]
    path = Path(f"M_{variant}.json")
    path.write_text(json.dumps(told))
    run = score_file(path, Settings(space="file_pixels", force=True))
    found = measure_unranked(run.dataset, run.rows)
    lines = explain_unranked([UnrankedRun("M", "xyxy_json", "Drawn", found)]).lines
    return [each for each in lines if each.startswith("not as papers ask")]


# The bird is only in the first image, and its box has no area
FLAT = [
    *of_all_classes()["annotations"][:2],
    {**of_all_classes()["annotations"][2], "bbox": [5.0, 5.0, 0.0, 0.0]},
    *of_all_classes()["annotations"][4:5],
]


def test_the_advice_to_ask_about_all_classes_is_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_folder(tmp_path, monkeypatch)
    values = {**of_all_classes(), "annotations": FLAT}
    imported(tmp_path, values, "--leave-out-bad-boxes")
    (line,) = advice()
    assert "yours after data import --all-classes" in line
    imported(tmp_path, values, "--leave-out-bad-boxes", "--all-classes", "--replace")
    (line,) = advice()
    assert line.endswith("the import left out 1 query about a class of an image")
    imported(tmp_path, of_all_classes(), "--all-classes", "--replace")
    assert advice() == []
    assert advice(rows=-1) == []
