"""OIDv4, Ultralytics' NDJSON, Supervisely, AutoML's and OpenImages' CSV, and classes by codes."""

from __future__ import annotations

import base64
import io
import json
import zlib
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import one_truth
import pytest
from every_pair import every_pair
from few_fast import few_fast
from one_truth import Picture, Thing, Writer, draw
from PIL import Image

from vlmeval_findit.benchmarks.findit import find_table, read_table
from vlmeval_findit.cli import main

pytestmark = pytest.mark.usefixtures("data_root")

Out = pytest.CaptureFixture[str]


def imports(path: Path, *flags: str) -> int:
    return main(["data", "import", str(path), "--name", "Mine", "--replace", *flags])


def boxes() -> dict[tuple[str, str], list[tuple[float, ...]]]:
    return {
        (row.images[0], row.label): [
            tuple(round(number, 3) for number in box) for box in row.truth.boxes
        ]
        for row in read_table(find_table("Mine"))
    }


def put(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


# --- OIDv4 ToolKit --------------------------------------------------------------------------------


def test_oidv4_has_a_folder_for_each_class(tmp_path: Path) -> None:
    folder = tmp_path / "OID" / "Dataset"
    for split in ("train", "validation"):
        for name, label in (("Cat", "Cat"), ("Human_face", "Human face")):
            draw(folder, f"{split}/{name}/a.jpg")
            text = f"{label} 10.5 20 110.25 220.0\n{label} 300.0 20.0 400.0 220.0 difficult\n"
            put(folder / split / name / "Label" / "a.txt", text)
    expected = {
        ("Cat/a.jpg", "Cat"): [(10.5, 20, 110.25, 220)],
        ("Human_face/a.jpg", "Human face"): [(10.5, 20, 110.25, 220)],
    }
    for named, above in ((folder, "validation/"), (folder / "validation", "")):
        assert imports(named) == 0
        assert boxes() == {
            (f"{above}{image}", label): box for (image, label), box in expected.items()
        }
    assert all(len(row.truth.ignored) == 1 for row in read_table(find_table("Mine")))
    assert imports(folder / "train" / "Cat" / "Label") == 0
    assert boxes() == {("a.jpg", "Cat"): [(10.5, 20, 110.25, 220)]}


def test_texts_of_class_and_corners_may_have_sides(tmp_path: Path, capsys: Out) -> None:
    lines = [f"cat {100 * at} {90 * at} {60 + at} {50 + at}" for at in range(1, 5)]
    put(tmp_path / "labels" / "a.txt", "\n".join(lines))
    draw(tmp_path, "images/a.png")
    assert imports(tmp_path) == 2
    assert "--box sides" in capsys.readouterr().err
    assert imports(tmp_path, "--box", "sides") == 0
    assert boxes()["a.png", "cat"][0] == (100, 90, 161, 141)


# --- Ultralytics' NDJSON --------------------------------------------------------------------------


def ndjson(path: Path, *images: dict[str, Any]) -> Path:
    head = {"type": "dataset", "task": "segment", "class_names": {"0": "cat", "1": "dog"}}
    return put(path, "\n".join(map(json.dumps, (head, *images))))


def image_line(name: str, split: str = "val", **annotations: Any) -> dict[str, Any]:
    line = {"type": "image", "file": name, "width": 640, "height": 480, "split": split}
    return line | {"url": "https://host/a.png", "annotations": annotations}


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [
        ("boxes", [0.25, 0.5, 0.5, 0.5]),
        ("pose", [0.25, 0.5, 0.5, 0.5, 0.1, 0.4, 2, 0, 0, 0]),
        ("segments", [0, 0.25, 0.5, 0.5, 0.2, 0.75]),
        ("obb", [0.25, 0.25, 0.5, 0.5, 0.25, 0.75, 0, 0.5]),
    ],
)
def test_every_task_of_ultralytics_has_boxes(
    tmp_path: Path, kind: str, numbers: list[float], capsys: Out
) -> None:
    for name in ("a.png", "b.png", "c.png"):
        draw(tmp_path, name)
    lines = [
        image_line("a.png", **{kind: [[1, *numbers]]}),
        image_line("b.png"),
        image_line("c.png", split="train", **{kind: [[0, *numbers]]}),
    ]
    path = ndjson(tmp_path / "set.ndjson", *lines)
    for named in (path, tmp_path):
        assert imports(named) == 0
        assert boxes()["a.png", "dog"] == [(0, 120, 320, 360)]
        assert {image for image, _ in boxes()} == {"a.png", "b.png"}
    noted = "became the upright boxes" in capsys.readouterr().out
    assert noted is (kind in ("segments", "obb"))


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ([7, 0.5, 0.5, 0.1, 0.1], "unknown class 7 (there are 0, 1)"),
        ([0, 0.5], "should be a list: class, and numbers"),
        ([0, 0.5, 0.5, 0.1, "0.1"], "numbers, not text"),
        ([0, 0.5, 0.5, 0.1, 0.1, 0.9], "odd number of coordinates"),
    ],
)
def test_rows_of_ultralytics_that_are_none(
    tmp_path: Path, row: list[Any], why: str, capsys: Out
) -> None:
    draw(tmp_path, "a.png")
    path = ndjson(tmp_path / "set.ndjson", image_line("a.png", segments=[row]))
    assert imports(path) == 2
    error = capsys.readouterr().err
    assert "set.ndjson, line 2, annotations, segments[0]" in error
    assert why in error


# --- Supervisely ----------------------------------------------------------------------------------


def shape(label: str, kind: str = "rectangle", *tags: str, **more: Any) -> dict[str, Any]:
    points = {"exterior": [[10, 20], [110, 220]], "interior": []}
    stated = {"classTitle": label, "geometryType": kind, "points": points}
    return {**stated, "tags": [{"name": tag, "value": None} for tag in tags], **more}


def project(
    folder: Path, *things: dict[str, Any], data_set: str = "ds0", name: str = "a.jpg"
) -> Path:
    draw(folder, f"{data_set}/img/{name}")
    put(folder / "meta.json", {"classes": [{"title": "cat", "shape": "any"}], "tags": []})
    value = {"size": {"height": 480, "width": 640}, "tags": [], "objects": things}
    put(folder / data_set / "ann" / f"{name}.json", value)
    return folder


def test_a_project_of_supervisely_is_read(tmp_path: Path) -> None:
    folder = project(tmp_path / "set", shape("cat"), shape("cat", "rectangle", "difficult"))
    project(folder, shape("dog"), data_set="ds1", name="b.png")
    for named in (folder, folder / "ds0", folder / "ds0" / "ann"):
        assert imports(named) == 0
        name = {"set": "ds0/img/a.jpg", "ds0": "img/a.jpg", "ann": "a.jpg"}[named.name]
        assert boxes()[name, "cat"] == [(10, 20, 110, 220)]
        assert len(boxes()) == (2 if named == folder else 1)


@pytest.mark.parametrize("is_tag", [False, True])
def test_splits_of_supervisely_are_data_sets_or_tags(tmp_path: Path, is_tag: bool) -> None:
    folder = tmp_path / "set"
    for split in ("train", "val"):
        data_set = "ds" if is_tag else split
        project(folder, shape("cat"), data_set=data_set, name=f"{split}.png")
        if is_tag:
            path = folder / "ds" / "ann" / f"{split}.png.json"
            put(path, json.loads(path.read_text()) | {"tags": [{"name": split, "value": None}]})
    assert imports(folder) == 0
    assert [Path(image).name for image, _ in boxes()] == ["val.png"]
    assert imports(folder, "--split", "train") == 0
    assert [Path(image).name for image, _ in boxes()] == ["train.png"]


def test_shapes_of_supervisely(tmp_path: Path, capsys: Out) -> None:
    file = io.BytesIO()
    Image.new("1", (30, 40), 1).save(file, "PNG")
    data = base64.b64encode(zlib.compress(file.getvalue())).decode()
    outline = {"exterior": [[200, 100], [260, 90], [230, 150]], "interior": []}
    things = [
        shape("cat", "polygon", points=outline),
        shape("dog", "bitmap", bitmap={"origin": [300, 310], "data": data}),
        shape("bird", "point"),
    ]
    folder = project(tmp_path / "set", *things)
    assert imports(folder) == 2
    assert "objects[2]: is a point, which has no box" in capsys.readouterr().err
    assert imports(folder, "--leave-out-bad-boxes") == 0
    name = "ds0/img/a.jpg"
    assert boxes() == {(name, "cat"): [(200, 90, 260, 150)], (name, "dog"): [(300, 310, 330, 350)]}
    for broken in ("no base64!", base64.b64encode(b"no zlib").decode()):
        project(folder, shape("dog", "bitmap", bitmap={"origin": [0, 0], "data": broken}))
        assert imports(folder) == 2
        assert "data is no bitmap" in capsys.readouterr().err


# --- CSV ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("has_split", [True, False])
@pytest.mark.parametrize("corners", [4, 2])
def test_lines_of_automl(tmp_path: Path, has_split: bool, corners: int, capsys: Out) -> None:
    for name in "abc":
        draw(tmp_path, f"{name}.jpg")
    numbers = [("0.25", "0.5"), ("0.5", "0.5"), ("0.5", "0.75"), ("0.25", "0.75")]
    if corners == 2:
        numbers = [numbers[0], ("", ""), numbers[2], ("", "")]
    cells = ",".join(",".join(pair) for pair in numbers)
    splits = [("VALIDATION", "a", f"cat,{cells}"), ("UNASSIGNED", "b", f"dog,{cells}")]
    splits.append(("VALIDATION", "c", "," + "," * 7))
    lines = [f"{split},gs://bucket/{name}.jpg,{rest}" for split, name, rest in splits]
    if not has_split:
        lines = [line.partition(",")[2] for line in lines]
    path = put(tmp_path / "automl.csv", "\n".join(lines))
    assert imports(path) == 0, capsys.readouterr().err
    found = boxes()
    assert found["a.jpg", "cat"] == [(160, 240, 320, 360)]
    assert any(image == "c.jpg" for image, _ in found)
    assert (("b.jpg", "dog") in found) is not has_split
    text = "\n".join(lines)
    for fraction, pixel in (("0.25", "100"), ("0.5", "200"), ("0.75", "300")):
        text = text.replace(fraction, pixel)
    assert imports(put(tmp_path / "pixels.csv", text)) == 2
    assert "--units pixels" in capsys.readouterr().err


def test_names_of_open_images_say_fractions(tmp_path: Path, capsys: Out) -> None:
    draw(tmp_path, "a.jpg")
    header = "ImageID,LabelName,XMin,XMax,YMin,YMax,IsGroupOf"
    path = put(tmp_path / "boxes.csv", f"{header}\na,Cat,0.25,0.5,0.5,0.75,0\n")
    assert imports(path) == 0
    assert boxes() == {("a.jpg", "Cat"): [(160, 240, 320, 360)]}
    other = header.replace("XMin", "x_min").replace("LabelName", "label")
    put(path, f"{other}\na,Cat,0.25,0.5,0.5,0.75,0\n")
    assert imports(path) == 2
    assert "--units fractions or --units pixels" in capsys.readouterr().err


# --- classes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", few_fast(["/m/01yrx", "/g/11abc_9", "n02123045"], 1))
@pytest.mark.parametrize(
    "writer", [one_truth.coco, one_truth.voc, one_truth.csv_file], ids=lambda each: each.__name__
)
def test_classes_that_are_codes_are_asked_for(
    tmp_path: Path, writer: Writer, code: str, capsys: Out
) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    draw(folder, "a.png")
    things = [Thing(code, (10, 20, 110, 220)), Thing("dog", (300, 20, 400, 220))]
    path = writer(folder, [Picture("a.png", things)])
    assert imports(path) == 2
    assert f"the class {code!r} is a code" in capsys.readouterr().err
    names = put(tmp_path / "names.csv", f"LabelName,DisplayName\n{code},Cat\n/m/other,Bus\n")
    assert imports(path, "--rename-class", f"@{names}") == 0
    assert {label for _, label in boxes()} == {"Cat", "dog"}
    assert imports(path, "--rename-class", f"{code}={code}") == 0
    assert {label for _, label in boxes()} == {code, "dog"}
    assert imports(path, "--drop-class", code) == 0
    assert {label for _, label in boxes()} == {"dog"}


@pytest.mark.parametrize("names", [["cat", "traffic light"], ["traffic light", "cat"]])
def test_lines_of_yolo_may_name_their_class(
    tmp_path: Path, names: Sequence[str], capsys: Out
) -> None:
    draw(tmp_path, "images/a.png")
    put(tmp_path / "data.yaml", f"names: [{', '.join(names)}]\n")
    number = names.index("cat")
    lines = f"traffic  light 0.5 0.5 0.5 0.5\ncat .25 0.5 0.5 0.5\n{number} 0.75 0.5 0.5 0.5\n"
    label = put(tmp_path / "labels" / "a.txt", lines)
    assert imports(tmp_path) == 0
    assert boxes()["a.png", "traffic light"] == [(160, 120, 480, 360)]
    assert len(boxes()["a.png", "cat"]) == 2
    assert "name their class in place of its number (2)" in capsys.readouterr().out
    put(label, "cow 0.5 0.5 0.5 0.5\n")
    assert imports(tmp_path) == 2
    assert f"unknown class cow (there are {', '.join(names)})" in capsys.readouterr().err


# --- folders --------------------------------------------------------------------------------------


@every_pair(
    "called, files, writer",
    ["annotations", "Annotations", "labels", "ann", "annotation"],
    product(
        [("train", "val"), ("set_train", "set_val2017"), ("boxes",)],
        [one_truth.coco, one_truth.csv_file, one_truth.ultralytics],
    ),
    fast=3,
)
def test_a_folder_of_annotations_beside_the_images(
    tmp_path: Path, called: str, files: Sequence[str], writer: Writer, capsys: Out
) -> None:
    folder = tmp_path / "set"
    for name in "ab":
        draw(folder, f"images/{name}.png")
    for at, file in enumerate(files):
        place = tmp_path / "written"
        place.mkdir(exist_ok=True)
        last = "b" if at == len(files) - 1 else "a"
        written = writer(place, [Picture(f"{last}.png", [Thing("cat", (10, 20, 110, 220))])])
        target = folder / called / f"{file}{written.suffix}"
        target.parent.mkdir(exist_ok=True)
        written.rename(target)
    for named in (folder, folder / called):
        assert imports(named) == 0, capsys.readouterr().err
        assert {Path(image).name for image, _ in boxes()} == {"b.png"}
        if len(files) == 2:
            assert imports(named, "--split", "train") == 0, capsys.readouterr().err
            assert {Path(image).name for image, _ in boxes()} == {"a.png"}


def test_files_that_are_no_splits_are_asked_about(tmp_path: Path, capsys: Out) -> None:
    draw(tmp_path, "images/a.png")
    for file in ("train", "submission"):
        put(
            tmp_path / "annotations" / f"{file}.csv", "image,label,x1,y1,x2,y2\na.png,cat,1,2,3,4\n"
        )
    for named in (tmp_path, tmp_path / "annotations"):
        assert imports(named) == 2
        error = capsys.readouterr().err
        assert "which file is meant? There are submission.csv, train.csv" in error


# --- as archives and tools leave them -------------------------------------------------------------


def yolo_set(folder: Path, *names: str) -> Path:
    """Write images, each with a cat (0) in its label file beside."""
    for name in names:
        draw(folder, name)
        put((folder / name).with_suffix(".txt"), "0 0.5 0.5 0.5 0.5\n")
    return folder


MIDDLE = [(160, 120, 480, 360)]


@pytest.mark.parametrize("depth", few_fast([1, 2], 1))
@pytest.mark.parametrize(
    "writer",
    [
        *(each for each in one_truth.NAMING if each is not one_truth.hf_parquet),
        one_truth.voc,
        one_truth.labelme,
        one_truth.csv_file,
        one_truth.yolo,
    ],
    ids=lambda each: each.__name__,
)
def test_an_archive_unpacks_into_a_folder_of_its_own(
    tmp_path: Path, writer: Writer, depth: int, capsys: Out
) -> None:
    folder = tmp_path / "set" / "/".join(f"animals {at}" for at in range(depth))
    folder.mkdir(parents=True)
    draw(folder, "a.png")
    writer(folder, [Picture("a.png", [Thing("cat", (10, 20, 110, 220))])])
    put(tmp_path / "set" / "README.dataset.txt", "cats 1 2 3 4\n")
    put(tmp_path / "set" / "LICENSE", "free")
    put(tmp_path / "set" / "__MACOSX" / "._a.txt", "x")
    put(tmp_path / "set" / ".DS_Store", "x")
    assert imports(tmp_path / "set") == 0, capsys.readouterr().err
    assert [Path(image).name for image, _ in boxes()] == ["a.png"]


def test_a_lonely_training_split_is_still_asked_about(tmp_path: Path, capsys: Out) -> None:
    folder = tmp_path / "set" / "train" / "images"
    folder.mkdir(parents=True)
    draw(folder, "a.png")
    one_truth.coco(folder, [Picture("a.png", [Thing("cat", (10, 20, 110, 220))])])
    assert imports(tmp_path / "set") == 2
    assert "no annotations that can be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    "place", ["classes.txt", "a/classes.txt", "a/b/obj.names", "labels.txt", "c/_darknet.labels"]
)
def test_names_of_classes_lie_anywhere(tmp_path: Path, place: str, capsys: Out) -> None:
    folder = yolo_set(tmp_path / "set", "a/b/0.png", "c/1.png")
    put(folder / place, "cat\ndog\n")
    assert imports(folder) == 0, capsys.readouterr().err
    assert boxes() == {("a/b/0.png", "cat"): MIDDLE, ("c/1.png", "cat"): MIDDLE}
    put(folder / "c" / "classes.txt", "dog\ncat\n")
    inner = place.count("/")
    assert imports(folder) == (2 if inner else 0)
    if inner:
        assert "has other names of classes than" in capsys.readouterr().err


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_darknets_list_may_name_images_far_below(tmp_path: Path, depth: int) -> None:
    inner = "/".join(("obj_train_data", "day 1", "cam")[:depth])
    folder = yolo_set(tmp_path / "set", f"{inner}/A.PNG")
    put(folder / "obj.data", "classes = 1\nvalid = data/valid.txt\nnames = data/obj.names\n")
    put(folder / "obj.names", "cat\r\n")
    put(folder / "valid.txt", f"\ufeffdata/{inner}/A.PNG\r\n")
    assert imports(folder) == 0
    assert boxes() == {(f"{inner}/A.PNG", "cat"): MIDDLE}


def test_listings_in_a_folder_of_any_name(tmp_path: Path, capsys: Out) -> None:
    """As TensorFlow's tutorials have them: data/test_labels.csv, images/test/."""
    for split in ("train", "test"):
        draw(tmp_path, f"images/{split}/{split}.png")
        text = f"filename,class,xmin,ymin,xmax,ymax\n{split}.png,cat,10,20,110,220\n"
        put(tmp_path / "data" / f"{split}_labels.csv", text)
    assert imports(tmp_path) == 2
    assert "Type --split test_labels or --split train_labels" in capsys.readouterr().err
    assert imports(tmp_path, "--split", "test") == 0
    assert boxes() == {("test.png", "cat"): [(10, 20, 110, 220)]}


def test_other_files_beside_do_not_hide_a_format(tmp_path: Path) -> None:
    """A data.yaml beside COCO, and a listing among the XML files of VOC."""
    picture = Picture("a.png", [Thing("cat", (10, 20, 110, 220))])
    coco = tmp_path / "coco"
    draw(coco, "a.png")
    one_truth.coco(coco, [picture])
    put(coco / "data.yaml", "names: [cat]\n")
    voc = tmp_path / "voc"
    draw(voc, "JPEGImages/a.png")
    one_truth.voc(voc / "Annotations", [picture])
    put(voc / "Annotations" / "classes.json", {"cat": 1})
    for folder in (coco, voc):
        assert imports(folder) == 0
        assert boxes() == {("a.png", "cat"): [(10, 20, 110, 220)]}


# --- images inside of labelme's files -------------------------------------------------------------


def labelme_inside(folder: Path, *names: str) -> Path:
    """Write files of labelme that hold their images, which lie nowhere else."""
    for name in names:
        image = draw(folder, name)
        one_truth.labelme(folder, [Picture(name, [Thing("cat", (10, 20, 110, 220))], (640, 480))])
        path = image.with_suffix(".json")
        value = json.loads(path.read_text())
        data = base64.b64encode(image.read_bytes()).decode()
        put(path, value | {"imageData": data, "imagePath": f"C:\\raw\\{image.name}"})
        image.unlink()
    return folder


def test_images_inside_labelmes_files_are_unpacked(
    tmp_path: Path, data_root: Path, capsys: Out
) -> None:
    folder = labelme_inside(tmp_path / "set", "day1/a.png", "day2/a.jpg")
    assert imports(folder) == 0
    assert "images that lie in their JSON files (2)" in capsys.readouterr().out
    assert {image for image, _ in boxes()} == {"day1/a.png", "day2/a.jpg"}
    assert (data_root / "images" / "Mine" / "day2" / "a.jpg").is_file()
    assert main(["data", "remove", "Mine"]) == 0
    assert not (data_root / "images" / "Mine").exists()
    # Those beside the files come first
    draw(folder, "day1/a.png")
    draw(folder, "day2/a.jpg")
    assert imports(folder) == 0
    assert not (data_root / "images" / "Mine").exists()


@pytest.mark.parametrize("data", [None, "", "no base64!", "aGVsbG8="])
def test_images_that_labelmes_files_lack_are_missing(
    tmp_path: Path, data: str | None, capsys: Out
) -> None:
    folder = labelme_inside(tmp_path / "set", "a.png", "b.png")
    path = folder / "b.json"
    put(path, json.loads(path.read_text()) | {"imageData": data})
    assert imports(folder) == 2
    error = capsys.readouterr().err
    if data:
        assert "imageData: is no image" in error or "is not an image that can be read" in error
    else:
        assert "none of the 2 images is in" in error


# --- formats that are named -----------------------------------------------------------------------


def test_persons_with_key_points_only_have_no_box(tmp_path: Path, capsys: Out) -> None:
    draw(tmp_path, "a.png")
    path = one_truth.coco(tmp_path, [Picture("a.png", [Thing("cat", (10, 20, 110, 220))])])
    value = json.loads(path.read_text())
    value["annotations"].append({"image_id": 0, "category_id": 0, "keypoints": [5, 5, 2]})
    put(path, value)
    assert imports(path) == 2
    assert "annotations[1]: has key points, and no bbox" in capsys.readouterr().err
    assert imports(path, "--leave-out-bad-boxes") == 0
