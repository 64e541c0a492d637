"""Images and classes by which other programs name them: each spelling means one thing, or none."""

from __future__ import annotations

import contextlib
import io
import json
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from custom_data import data_folder
from every_pair import every_pair
from PIL import Image

from vlmeval_findit.analysis import measure_unranked
from vlmeval_findit.cli import main
from vlmeval_findit.data import load_dataset, read_ids
from vlmeval_findit.scoring import Run, load_run
from vlmeval_findit.storage import RunFiles

coco = pytest.importorskip("pycocotools.coco")
cocoeval = pytest.importorskip("pycocotools.cocoeval")

DATA = "FindIt_Mine_xyxy_json"
MULTI = "FindIt_Mine_multilabel_xyxy_json"
IMAGES = {2: "1.png", 3: "2.png", 1: "3.png"}  # Names that are numbers of others, too
Out = pytest.CaptureFixture[str]
Values = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    data_folder(tmp_path, monkeypatch)
    return tmp_path


def truth(classes: Mapping[Any, str], images: Mapping[Any, str] = IMAGES) -> Values:
    """Return a COCO file: an object of the first class in two images, of the last in one."""
    first, *_, last = classes
    one, two, three = images
    objects = [(one, first, [20, 20, 20, 20]), (two, last, [40, 40, 20, 20])]
    objects.append((three, first, [1, 1, 20, 20]))
    return {
        "images": [
            {"id": number, "file_name": name, "width": 64, "height": 64}
            for number, name in images.items()
        ],
        "categories": [{"id": number, "name": name} for number, name in classes.items()],
        "annotations": [
            {"id": at, "image_id": image, "category_id": category, "bbox": box, "area": 400.0}
            | {"iscrowd": 0}
            for at, (image, category, box) in enumerate(objects, 1)
        ],
    }


def results(values: Values) -> list[Values]:
    """Return a box near each object, and one of the other class on the second one's image."""
    found = []
    for each in values["annotations"]:
        x, y, width, height = each["bbox"]
        place = {"image_id": each["image_id"], "category_id": each["category_id"]}
        found.append({**place, "bbox": [x, y + 1, width, height]})
    stray = {**found[1], "category_id": found[0]["category_id"], "bbox": [1, 1, 20, 20]}
    return [*found, stray]


def imported(folder: Path, values: Values, *flags: str) -> int:
    for image in values["images"]:
        path = folder / image["file_name"]
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (64, 64), "white").save(path)
    (folder / "set.json").write_text(json.dumps(values))
    return main(["data", "import", "set.json", "--name", "Mine", *flags])


def convert(folder: Path, content: object, *flags: str, data: str = DATA) -> int:
    out = folder / "out"
    out.mkdir(exist_ok=True)
    (out / "det.json").write_text(json.dumps(content))
    return main(["score", str(out / "det.json"), "--convert", "--data", data, *flags])


def converted(folder: Path, data: str = DATA) -> Run:
    return load_run(RunFiles(folder / "out" / f"det_{data}.json").provenance)


def precision(run: Run) -> float:
    return measure_unranked(load_dataset(run.variant.name), run.rows).values.ap


def of_pycocotools(values: Values, found: Sequence[Values]) -> float:
    with contextlib.redirect_stdout(io.StringIO()):
        file = coco.COCO()
        file.dataset = json.loads(json.dumps({"info": {}, **values}))
        file.createIndex()
        scores = [{**each, "score": 1.0} for each in found]
        evaluation = cocoeval.COCOeval(file, file.loadRes(scores), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return 100 * float(evaluation.stats[0])


# --- classes --------------------------------------------------------------------------------------

PAIRS = {
    "letter case": ("Cat", "cat"),
    "letter case, turned": ("cat", "CAT"),
    "letters that fold to two": ("Straße", "strasse"),
    "an accent": ("café", "cafe"),
    "punctuation": ("t-shirt", "t shirt"),
    "punctuation within": ("t-shirt", "tshirt"),
    "a dot at the end": ("no. 1", "no 1"),
    "numbers, turned": ("2", "1"),
    "unlike": ("cat", "dog"),
}  # fmt: skip


def with_names(found: Sequence[Values], name: Callable[[int], Values]) -> list[Values]:
    return [
        {key: value for key, value in each.items() if key != "category_id"}
        | name(each["category_id"])
        for each in found
    ]


def own_list(names: Mapping[int, str], found: list[Values]) -> Values:
    """Return results with a list of classes of their own, counted otherwise."""
    categories = [{"id": 5 - number, "name": name} for number, name in names.items()]
    moved = with_names(found, lambda number: {"category_id": 5 - number})
    return {"categories": categories, "annotations": moved}


WAYS: dict[str, Callable[[Mapping[int, str], list[Values]], object]] = {
    "category_id": lambda names, found: found,
    "category_id as text": lambda names, found: with_names(
        found, lambda number: {"category_id": str(number)}
    ),
    "category": lambda names, found: with_names(
        found, lambda number: {"category": names[number]}
    ),
    "label": lambda names, found: with_names(found, lambda number: {"label": names[number]}),
    "class with an id": lambda names, found: with_names(
        found, lambda number: {"class": {"id": number, "name": "?"}}
    ),
    "class with a name": lambda names, found: with_names(
        found, lambda number: {"class": {"name": names[number]}}
    ),
    "ids of its own": own_list,
}  # fmt: skip


@every_pair("pair, way", PAIRS, WAYS)
def test_each_way_to_name_a_class_means_the_same(pair: str, way: str, folder: Path) -> None:
    names = dict(enumerate(PAIRS[pair], 1))
    values = truth(names)
    found = results(values)
    assert imported(folder, values, "--all-classes") == 0
    expected = of_pycocotools(values, found)
    assert 0 < expected < 100
    assert convert(folder, WAYS[way](names, found)) == 0
    run = converted(folder)
    assert precision(run) == pytest.approx(expected)
    # Three of four boxes hit, and three objects are there.
    assert run.metric_values["F1@0.5"] == pytest.approx(600 / 7)


@every_pair("pair, way", PAIRS, WAYS, fast=5)
def test_rows_of_one_class_hold_no_other_class(
    pair: str, way: str, folder: Path, capsys: Out
) -> None:
    names = dict(enumerate(PAIRS[pair], 1))
    values = truth(names)
    found = results(values)
    assert imported(folder, values) == 0
    assert convert(folder, WAYS[way](names, found)) == 0
    assert converted(folder).metric_values["F1@0.5"] == 100
    assert "1 box of classes that no row asks of their image" in capsys.readouterr().out


SPELLED = {
    "cAT": "Cat",
    unicodedata.normalize("NFD", "café"): "café",
    unicodedata.normalize("NFD", "CAFÉ"): "café",
    "traffic  light ": "traffic light",
    "TRAFFIC\u00a0LIGHT": "traffic light",
    "tshirt": "T-shirt",
    "strasse": "Straße",
}


@every_pair("spelled, way", SPELLED, ("category", "class with a name", "ids of its own"))
def test_another_spelling_of_one_class_is_that_class(spelled: str, way: str, folder: Path) -> None:
    names = {1: SPELLED[spelled], 2: "dog"}
    values = truth(names)
    assert imported(folder, values) == 0
    said = {1: spelled, 2: "Dog"}
    assert convert(folder, WAYS[way](said, results(values))) == 0
    assert converted(folder).metric_values["F1@0.5"] == 100


@pytest.mark.parametrize("said", ["CAT", "cAt", " Cat!"])
def test_a_spelling_of_two_classes_is_asked_about(said: str, folder: Path, capsys: Out) -> None:
    values = truth({1: "Cat", 2: "cat"})
    assert imported(folder, values) == 0
    found = with_names(results(values), lambda number: {"category": said})
    assert convert(folder, found, "--leave-out-unknown") == 2
    error = " ".join(capsys.readouterr().err.split())
    assert f"entry 1, category: class '{said}' may be 'Cat' or 'cat' of the set" in error


def test_replies_mean_the_class_that_was_asked_for(folder: Path) -> None:
    values = truth({1: "Cat", 3: "dog", 2: "cat"})
    values["annotations"].append({**values["annotations"][0], "id": 9, "category_id": 3})
    assert imported(folder, values) == 0
    rows = []
    for index, query in load_dataset(MULTI).queries.items():
        # As a model may write every label of a reply
        boxes = [
            {"label": label.upper(), "bbox": [*box]}
            for box, label in zip(query.truth.boxes, query.truth.labels, strict=True)
        ]
        rows.append({"index": index, "prediction": json.dumps(boxes)})
    (folder / "out").mkdir()
    path = folder / "out" / f"det_{MULTI}.json"
    path.write_text(json.dumps(rows))
    assert main(["score", str(path), "--space", "file_pixels"]) == 0
    run = converted(folder, MULTI)
    measured = measure_unranked(load_dataset(MULTI), run.rows)
    assert (measured.unknown_labels, measured.values.ap) == (0, 100)


# --- renamed classes ------------------------------------------------------------------------------

RENAMED = {
    "joined": ({1: "classa", 2: "classb"}, ["classa=classb"]),
    "joined, turned": ({1: "classa", 2: "classb"}, ["classb=classa"]),
    "renamed": ({1: "n01", 2: "n02"}, ["n01=cat"]),
    "joined under another name": ({1: "van", 2: "car"}, ["van=vehicle", "car=vehicle"]),
    "differ in blanks": ({1: "red  cat", 2: "red cat"}, []),
    "differ in blanks, renamed": ({1: "red  cat", 2: "red cat"}, ["red cat=cat"]),
}


@every_pair("case, way", RENAMED, WAYS)
def test_old_ids_and_names_lead_to_the_new_label(case: str, way: str, folder: Path) -> None:
    names, renames = RENAMED[case]
    values = truth(names)
    found = results(values)
    flags = [f"--rename-class={each}" for each in renames]
    assert imported(folder, values, "--all-classes", *flags) == 0
    new = dict(each.split("=") for each in renames)
    labels = [new.get(" ".join(name.split()), " ".join(name.split())) for name in names.values()]
    is_joined = labels[0] == labels[1]
    merged = json.loads(json.dumps(values))
    of_merged = json.loads(json.dumps(found))
    for each in [*merged["annotations"], *of_merged] if is_joined else ():
        each["category_id"] = 1
    if is_joined:
        del merged["categories"][1]
    expected = of_pycocotools(merged, of_merged)
    assert convert(folder, WAYS[way](names, found)) == 0
    assert precision(converted(folder)) == pytest.approx(expected)
    for name in labels[:1] if is_joined else ():
        said = with_names(found, lambda number, name=name: {"category": name})
        assert convert(folder, said) == 0, name


def test_a_name_that_moved_to_another_class_is_asked_about(folder: Path, capsys: Out) -> None:
    names = {1: "cat", 2: "dog"}
    values = truth(names)
    flags = ["--rename-class=cat=dog", "--rename-class=dog=cat"]
    assert imported(folder, values, *flags) == 0
    assert convert(folder, results(values)) == 0
    assert converted(folder).metric_values["F1@0.5"] == 100
    assert convert(folder, WAYS["category"](names, results(values))) == 2
    assert "class 'cat' may be 'cat' or 'dog' of the set" in capsys.readouterr().err


def test_a_joined_class_is_exported_with_its_own_id(folder: Path) -> None:
    assert imported(folder, truth({1: "a", 2: "b"}), "--rename-class=b=a") == 0
    assert read_ids(load_dataset(DATA).table).categories == {"a": 1}


# --- images ---------------------------------------------------------------------------------------

PLACES = {
    "letter case": {1: "Pic.png", 2: "pic.png", 3: "PIC.png"},
    "folders": {1: "a/1.png", 2: "b/1.png", 3: "c/1.png"},
    "suffixes": {1: "x.png", 2: "x.jpg", 3: "x.bmp"},
    "numbers of others": {1: "2.png", 2: "3.png", 3: "1.png"},
}


IMAGE_WAYS: dict[str, Callable[[Mapping[int, str], list[Values]], object]] = {
    "ids": lambda names, found: found,
    "ids as text": lambda names, found: [
        {**each, "image_id": str(each["image_id"])} for each in found
    ],
    "names": lambda names, found: [
        {**each, "image_id": names[each["image_id"]]} for each in found
    ],
    "file_name": lambda names, found: [
        {**each, "image_id": None, "file_name": names[each["image_id"]]} for each in found
    ],
    "ids of its own": lambda names, found: {
        "images": [{"id": 9 - number, "file_name": name} for number, name in names.items()],
        "annotations": [{**each, "image_id": 9 - each["image_id"]} for each in found],
    },
}  # fmt: skip


@every_pair("case, way", PLACES, IMAGE_WAYS)
def test_each_way_to_name_an_image_means_the_same(case: str, way: str, folder: Path) -> None:
    images = PLACES[case]
    values = truth({1: "cat", 2: "dog"}, images)
    found = results(values)
    assert imported(folder, values, "--all-classes") == 0
    expected = of_pycocotools(values, found)
    assert convert(folder, IMAGE_WAYS[way](images, found)) == 0
    assert precision(converted(folder)) == pytest.approx(expected)


def test_a_name_of_two_images_is_asked_about(folder: Path, capsys: Out) -> None:
    values = truth({1: "cat", 2: "dog"}, PLACES["folders"])
    assert imported(folder, values) == 0
    found = [{**each, "image_id": "/data/1.png"} for each in results(values)]
    assert convert(folder, found) == 2
    assert "image '/data/1.png' may be 'a/1.png' or 'b/1.png'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["d/1.png", "d\\1.png", 4, "4"])
def test_an_image_without_a_row_is_no_other_image(
    name: str | int, folder: Path, capsys: Out
) -> None:
    values = truth({1: "cat", 2: "dog"}, {**PLACES["folders"]})
    values["images"].append({"id": 4, "file_name": "d/1.png", "width": 64, "height": 64})
    for image in values["images"]:
        image["neg_category_ids"] = []  # Nothing is asked where nothing is
    assert imported(folder, values) == 0
    found = [*results(values), {**results(values)[0], "image_id": name}]
    for content in (found, {"images": values["images"], "annotations": found}):
        assert convert(folder, content) == 2
        assert "is not in the set (1 box)" in capsys.readouterr().err


MIXED = {
    "images": ({1: "cat", 2: "dog"}, {7: "1.png", "x8": "2.png", 10: "3.png"}, "image"),
    "images, one number": ({1: "cat", 2: "dog"}, {7: "1.png", "7": "2.png", 10: "3.png"}, "image"),
    "classes": ({1: "cat", "b": "dog"}, IMAGES, "category"),
}


@pytest.mark.parametrize("case", MIXED)
def test_ids_of_two_kinds_are_refused(case: str, folder: Path, capsys: Out) -> None:
    classes, images, what = MIXED[case]
    values = truth(classes, images)
    with pytest.raises(TypeError):  # pycocotools reads no such file
        of_pycocotools(values, results(values))
    assert imported(folder, values) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert f"set.json: {what} ids are numbers, as " in error
    assert f"all as texts, also in {what}_id" in error


@pytest.mark.parametrize("key", ["images", "categories"])
def test_imports_of_before_with_two_kinds_spoil_no_other_run(
    key: str, folder: Path, capsys: Out
) -> None:
    values = truth({1: "cat", 2: "dog"})
    assert imported(folder, values) == 0
    assert convert(folder, results(values)) == 0
    assert convert(folder, results(values), data=MULTI) == 0
    other = folder / "lmu" / "Mine.coco.json"
    assert main(["data", "import", "set.json", "--name", "Other"]) == 0
    assert convert(folder, results(values), data="FindIt_Other_xyxy_json") == 0
    ids = json.loads(other.read_text())
    ids[key][next(iter(ids[key]))] = "x8"
    other.write_text(json.dumps(ids))
    capsys.readouterr()
    assert main(["ap", str(folder / "out")]) == 0
    captured = capsys.readouterr()
    assert "Other" in captured.out
    assert captured.err.count("ids of its COCO file are numbers and texts") == 2
    assert main(["ap", str(folder / "out" / f"det_{DATA}.json")]) == 2


# --- nothing found, other files -------------------------------------------------------------------


EMPTY = {"a list": [], "annotations": {"annotations": []}, "predictions": {"predictions": []}}


@every_pair("shape, flags", EMPTY, ("", "--min-score=0.5", "--box=corners"))
def test_a_detector_that_found_nothing_scores_0(
    shape: str, flags: str, folder: Path, capsys: Out
) -> None:
    assert imported(folder, truth({1: "cat", 2: "dog"})) == 0
    for data in (DATA, MULTI):
        assert convert(folder, EMPTY[shape], *flags.split(), data=data) == 0
        assert "det.json: an empty list: nothing was found in any image" in capsys.readouterr().out
        (path,) = (folder / "out").glob(f"det*_{data}.json")
        run = load_run(RunFiles(path).provenance)
        assert (run.metric_values["F1@0.5"], run.failed, precision(run)) == (0, 0, 0)


def test_an_empty_list_is_no_answer_to_expressions(folder: Path, capsys: Out) -> None:
    assert convert(folder, [], data="FindIt_Scenes_mini_refexp_xyxy_json") == 2
    assert "has no objects" in capsys.readouterr().err


YOLO = {
    "without confidence": "0 0.5 0.5 0.25 0.125\n1 0.25 0.75 0.5 0.5\n",
    "with confidence": "0 0.5 0.5 0.25 0.125 0.93\n\n",
}


@pytest.mark.parametrize("as_folder", [False, True])
@pytest.mark.parametrize("lines", YOLO)
def test_lines_of_yolo_say_what_to_write(
    lines: str, as_folder: bool, folder: Path, capsys: Out
) -> None:
    assert imported(folder, truth({1: "cat", 2: "dog"})) == 0
    path = folder / "labels" / "1.txt"
    path.parent.mkdir()
    path.write_text(YOLO[lines])
    place = path.parent if as_folder else path
    assert main(["score", str(place), "--convert", "--data", DATA]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "1.txt: YOLO's lines" in error
    assert "yolo val save_json=True" in error


def test_a_file_of_others_leads_to_convert_at_once(folder: Path, capsys: Out) -> None:
    (folder / "raw.json").write_text("[]")
    assert main(["ap", "raw.json"]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "if another program wrote it: " in error
    assert "score --convert --data DATASET raw.json" in error
