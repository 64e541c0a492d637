"""Files that are given to ``import`` by mistake, or are damaged: one line that names the place."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import custom_data
import pytest
from custom_data import coco_values, make_images

from vlmeval_findit.benchmarks.findit.annotation_tables import load_task
from vlmeval_findit.cli import main
from vlmeval_findit.data.annotated_samples import AnnotatedBox, AnnotationError, Samples
from vlmeval_findit.data.custom.box_files import read_coco, read_csv, read_voc
from vlmeval_findit.data.custom.yolo import read_yolo

pytestmark = pytest.mark.usefixtures("data_root")


def boxes_of(found: Samples) -> list[AnnotatedBox]:
    """Those of the queries with one label, in the order of their file."""
    single = [query for query in found.queries if isinstance(query.label, str)]
    return [box for query in single for box in query.boxes]


WRONG = {
    "picture": (b"\x89PNG\r\n", "line 1: byte 0x89 is no text in UTF-8: save it so"),
    "sheet.xlsx": (b"PK\x03\x04\x14\0", "line 1: byte 0x00 is no text"),
    "utf16": (b"\xff\xfe" + "image,label\n".encode("utf-16-le"), "line 1: byte 0xff is no text"),
    "nul": (b"image,label,x1,y1,x2,y2\none.jpg,cat,1,2,3,4\n\0,1\n", "line 3: byte 0x00"),
    "latin1": ("image,label\none.jpg,Käse".encode("latin-1"), "line 2: byte 0xe4 is no text"),
}


@pytest.mark.parametrize("form", ["csv", "coco"])
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file(tmp_path, form: str, name: str, capsys) -> None:
    content, why = WRONG[name]
    path = tmp_path / name
    path.write_bytes(content)
    assert main(["data", "import", str(path), "--as", form, "--name", "Mine"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: {path}")
    assert said.count("\n") == 1
    assert why in said
    assert not list((tmp_path / "lmu").iterdir())


# --- CSV ------------------------------------------------------------------------------------------

HEAD = "image,label,x1,y1,x2,y2"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "line 1: columns are [], missing: image, label"),
        ("one.jpg,cat,1,2,3,4\n", "line 1: columns are ['one.jpg', 'cat', '1', '2', '3', '4'], mi"),
        ("image\none.jpg\n", "missing: label, x1, y1, x2, y2"),
        (HEAD.replace(",", ";") + "\n", "missing: image, label, x1, y1, x2, y2 (commas separate"),
        (f"{HEAD},x1\n", "of which one stands twice"),
        (f"{HEAD}\none.jpg,cat,1,2,3\n", "line 2: 5 cells, but 6 columns"),
        (f"{HEAD}\none.jpg,cat,1,2,3,4\n\none.jpg,cat,1,2,3,4,5\n", "line 4: 7 cells, but 6"),
        (f'{HEAD}\none.jpg,cat,1,2,3,4\none.jpg,"cat,1,2,3,4\n', "line 3: unexpected end of data"),
        (f"{HEAD}\n,cat,1,2,3,4\n", "line 2, column image: is empty"),
        (f"{HEAD}\none.jpg,cat,1,2,x,4\n", "line 2, column x2: 'x' is not a number"),
        (f"{HEAD}\none.jpg,cat,1_0,2,30,40\n", "line 2, column x1: '1_0' is not a number"),
        (f"{HEAD}\none.jpg,cat,1,2,nan,4\n", "line 2, column x2: nan is not finite"),
        (f"{HEAD},width,height\none.jpg,cat,1,2,3,4,120,\n", "line 2, columns width and height"),
        (f"{HEAD},width,height\none.jpg,cat,1,2,3,4,0,80\n", "0x80 is not a size"),
        (
            f"{HEAD},width,height\none.jpg,cat,1,2,3,4,120,80\none.jpg,cat,1,2,3,4,120,81\n",
            "line 3: one.jpg is 120x81 here, 120x80 before",
        ),
    ],
)
def test_a_damaged_listing(tmp_path, text: str, why: str) -> None:
    path = tmp_path / "boxes.csv"
    path.write_text(text)
    with pytest.raises(AnnotationError) as error:
        read_csv(path, tmp_path)
    assert str(error.value).startswith(f"{path}, ")
    assert why in str(error.value)


def test_what_a_listing_may_have(tmp_path) -> None:
    path = tmp_path / "boxes.csv"
    path.write_bytes(
        b"\xef\xbb\xbfx1,y1,x2,y2,label,image,note,width,height\r\n\r\n"
        b'1,2,30.5,40,"cat",one.jpg,"a, ""b""\r\nc",,\r\n'
        b"1,2,30,40,dog,one.jpg,,120,80\r\n5,2,3,4,dog,one.jpg,,,\r\n"
    )
    found = read_csv(path, tmp_path)
    assert [box.corners for box in boxes_of(found)] == [
        (1, 2, 30.5, 40),
        (1, 2, 30, 40),
        (5, 2, 3, 4),
    ]
    assert [box.label for box in boxes_of(found)] == ["cat", "dog", "dog"]
    assert [box.where for box in boxes_of(found)] == [f"{path}, line {n}" for n in (4, 5, 6)]
    assert found.sizes == {"one.jpg": (120, 80)}


# --- COCO -----------------------------------------------------------------------------------------


FIRST_BOX = '"bbox": [10.0, 5.0, 30.5, 20.25]'


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (FIRST_BOX, '"bbox": [NaN, 5.0, 30.5, 20.25]', "annotations[0], bbox: nan is not finite"),
        (FIRST_BOX, '"bbox": [1, 5, 1e999, 2]', "annotations[0], bbox: inf is not finite"),
        (FIRST_BOX, f'"bbox": [1, 5, {"9" * 400}, 2]', "99 is not finite"),
        (FIRST_BOX, f'"bbox": [1, 5, {"9" * 5000}, 2]', "not JSON: Exceeds the limit"),
        (FIRST_BOX, '"bbox": ["10", 5, 3, 2]', "annotations[0], bbox: '10' is not a number"),
        (FIRST_BOX, '"bbox": "10 5 3 2"', "bbox: '10 5 3 2' is not [x, y, width, height]"),
        (FIRST_BOX, '"bbox": [true, 5, 3, 2]', "annotations[0], bbox: True is not a number"),
        (FIRST_BOX, '"bbox": [1, 2, 3, 4], "bbox": [5, 6, 7, 8]', "key 'bbox' stands twice"),
        ('"categories"', '"images": [], "categories"', "key 'images' stands twice"),
        ('"id": 501', '"id": true', "images[0]: needs an id (a whole number) and a file_name"),
        ('"name": "cat"', '"name": 7', "categories[0]: needs an id (a whole number) and a name"),
        ('"image_id": 501', '"image_id": true', "annotations[0], image_id: there is no True"),
        ('"image_id": 501', '"image_id": [501]', "annotations[0], image_id: there is no [501]"),
        ('"category_id": 7', '"category_id": "cat"', "category_id: there is no 'cat'"),
        ('"iscrowd": 0', '"iscrowd": "0"', "annotations[0], iscrowd: '0' is neither 0 nor 1"),
        ('"width": 120', '"width": "120"', "image 501: '120'x80 is not a size in pixels"),
        ('"width": 120', '"width": 0', "image 501: 0x80 is not a size in pixels"),
        ('{"images"', '[{"images"', "not JSON"),
    ],
)
def test_a_damaged_coco_file(tmp_path, old: str, new: str, why: str) -> None:
    text = json.dumps(coco_values())
    assert old in text
    path = tmp_path / "instances.json"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(AnnotationError) as error:
        read_coco(path, tmp_path)
    assert str(error.value).startswith(str(path))
    assert why in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < len(str(path)) + 200


def test_numbers_of_coco_that_are_right(tmp_path) -> None:
    """Whole numbers, ``iscrowd`` as a bool or not there, no sizes, NaN where nobody looks."""
    values: dict[str, Any] = coco_values()
    del values["images"][0]["width"], values["images"][0]["height"]
    values["images"][2] |= {"width": 1, "height": 1}
    del values["annotations"][0]["iscrowd"]
    values["annotations"][1]["iscrowd"] = True
    values["annotations"][2]["iscrowd"] = False
    values["annotations"][0] |= {"bbox": [10, 5, 30, 20], "area": float("nan")}
    path = tmp_path / "instances.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(values).encode())
    found = read_coco(path, tmp_path)
    assert boxes_of(found)[0].corners == (10, 5, 40, 25)
    assert [box.ignored for box in boxes_of(found)][:3] == ["", "crowd regions", ""]
    assert found.sizes["one.jpg"] is None
    assert found.sizes["sub/two.png"] == (64, 96)
    assert found.sizes["three.jpg"] == (1, 1)


@pytest.mark.parametrize("opened", ["[", '{"images":', '{"annotations":[{"segmentation":'])
def test_deep_nesting_is_no_traceback(tmp_path, opened: str, capsys) -> None:
    path = tmp_path / "deep.json"
    path.write_text(opened * 100_000)
    command = ["data", "import", str(path), "--image-root", str(tmp_path), "--name", "Mine"]
    assert main(command) == 2
    assert capsys.readouterr().err == f"error: {path}: is nested too deeply for a COCO file\n"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../one.jpg", "climbs out of its folder"),
        ("/one.jpg", "has an absolute path"),
        ("C:one.jpg", "has an absolute path"),
        ("sub\\..\\..\\one.jpg", "climbs out of its folder"),
        ("one.jpg\0", "holds a control character"),
        ("one\n.jpg", "holds a control character"),
        ("", "names no file"),
    ],
)
def test_names_of_pictures_stay_below_the_folder(tmp_path, name: str, why: str, capsys) -> None:
    make_images(tmp_path / "pictures")
    values = coco_values()
    values["images"][0]["file_name"] = name
    path = custom_data.write_coco(tmp_path, values)
    command = ["data", "import", str(path), "--image-root", str(tmp_path / "pictures")]
    assert main([*command, "--name", "Mine"]) == 2
    assert f"{name!r} {why}, so it does not lie below" in capsys.readouterr().err


# --- Pascal VOC -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("<width>120", "<width>0", "one.xml, size: 0x80 is not a size in pixels"),
        ("<width>120", "<width>wide", "one.xml, size: 'wide' is not a number"),
        ("<width>120</width>", "", "one.xml: no <size/width>"),
        ("<xmin>10.0", "<xmin>nan", "one.xml, object 0: nan is not finite"),
        ("<xmin>10.0</xmin>", "", "one.xml, object 0: no <bndbox/xmin>"),
        ("<name>cat", "<name>", "one.xml, object 0: no <name>"),
        ("<filename>one.jpg", "<filename>", "one.xml: no <filename>"),
        ("<filename>one.jpg", "<filename>three.jpg", "three.xml: another file too is about three"),
        ("</object>", "", "one.xml: "),
        ("<annotation>", '<?xml version="1.0" encoding="nonsense"?><annotation>', "one.xml: "),
    ],
)
def test_damaged_xml(tmp_path, old: str, new: str, why: str) -> None:
    folder = custom_data.write_voc(tmp_path / "voc")
    file = folder / "Annotations" / "one.xml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(AnnotationError) as error:
        read_voc(folder, folder)
    assert str(error.value).startswith(str(folder))
    assert why in str(error.value)
    assert "\n" not in str(error.value)


def test_difficult_objects_are_ignored(tmp_path) -> None:
    folder = custom_data.write_voc(tmp_path / "voc")
    file = folder / "Annotations" / "one.xml"
    plain = "<difficult>0</difficult>"
    assert file.read_text().count(plain) == 3
    file.write_text(file.read_text().replace(plain, "<difficult> 1 </difficult>", 1))
    found = read_voc(folder, folder)
    assert (found.counts.boxes, found.counts.ignored) == (3, 1)


def test_entities_cannot_hide_in_another_encoding(tmp_path) -> None:
    bomb = '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]><annotation>&b;</annotation>'
    (tmp_path / "a.xml").write_bytes(bomb.encode("utf-16"))
    with pytest.raises(AnnotationError, match=r"a\.xml: holds zero bytes \(UTF-16\?\)"):
        read_voc(tmp_path, tmp_path)


# --- YOLO -----------------------------------------------------------------------------------------


def yolo(tmp_path, names: str, line: str = "0 0.5 0.5 0.25 0.25") -> Path:
    (tmp_path / "yolo").mkdir()
    folder = custom_data.write_yolo(tmp_path / "yolo")
    (folder / "data.yaml").write_text(names)
    for file in (folder / "labels").rglob("*.txt"):
        file.write_text("\n")
    (folder / "labels" / "one.txt").write_text(line + "\n")
    return folder


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ("- cat\n- dog\n", "no list or mapping 'names' of classes"),
        ("names: []", "no list or mapping 'names' of classes"),
        ("names: {a: cat}", "names: 'a' is not the number of a class"),
        ("names: {0: cat, 1.5: dog}", "names: 1.5 is not the number of a class"),
        ("names: {0: cat, '0': dog}", "names: '0' is not the number of a class, or stands twice"),
        ("names: {0: [cat]}", "names, 0: ['cat'] is not a name"),
        ("names: [cat", "not YAML: while parsing a flow sequence"),
        ("names: !!python/object:os.system x", "not YAML: could not determine a constructor"),
        ("a: " + "[" * 5000, "not YAML: "),
    ],
)
def test_names_of_classes_that_are_none(tmp_path, names: str, why: str) -> None:
    folder = yolo(tmp_path, names)
    with pytest.raises(AnnotationError) as error:
        read_yolo(folder, folder / "images")
    assert str(error.value).startswith(f"{folder / 'data.yaml'}")
    assert why in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("names", "number", "label"),
    [
        ("names: {3: bird, 1: cat, 0: dog}", 3, "bird"),
        ("names: {3: bird, 1: cat, 0: dog}", 1, "cat"),
        ("names: {'0': dog, '7': cat}", 7, "cat"),
        ("names: [a, b, 7]", 2, "7"),
        ("\ufeffnames: [a, b]", 1, "b"),
    ],
)
def test_numbers_of_classes_in_any_order(tmp_path, names: str, number: int, label: str) -> None:
    folder = yolo(tmp_path, names, f"{number} 0.5 0.5 0.25 0.25")
    assert [box.label for box in boxes_of(read_yolo(folder, folder / "images"))] == [label]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("2 0.5 0.5 0.2 0.2", "line 1: no class 2 (there are 0, 3)"),
        ("-1 0.5 0.5 0.2 0.2", "line 1: no class -1"),
        ("0.0 0.5 0.5 0.2 0.2", "line 1: no class 0.0"),
        ("² 0.5 0.5 0.2 0.2", "line 1: no class ²"),
        ("9" * 5000 + " 0.5 0.5 0.2 0.2", "line 1: no class 999"),
        ("cat 0.5 0.5 0.2 0.2", "line 1: no class cat"),
        ("0 0.5 nan 0.2 0.2", "line 1: nan is not finite"),
        ("0 0.5 0,5 0.2 0.2", "line 1: '0,5' is not a number"),
        ("0 0.5 0.5 0.2", "line 1: 4 numbers, should be"),
        ("0 0.5 0.5 0.2 0.2 0.9", "line 1: 6 numbers, should be class cx cy width height (outl"),
        ("\0", "line 1: byte 0x00 is no text"),
    ],
)
def test_lines_that_are_no_box(tmp_path, line: str, why: str) -> None:
    folder = yolo(tmp_path, "names: {0: dog, 3: cat}", line)
    with pytest.raises(AnnotationError) as error:
        read_yolo(folder, folder / "images")
    assert str(error.value).startswith(f"{folder / 'labels' / 'one.txt'}, ")
    assert why in str(error.value)


@pytest.mark.parametrize("what", ["a file", "nothing", "no classes"])
def test_what_is_no_yolo_folder(tmp_path, what: str) -> None:
    folder = tmp_path / "yolo"
    if what == "a file":
        folder.touch()
    if what == "no classes":
        (folder / "labels").mkdir(parents=True)
    with pytest.raises(AnnotationError, match=r"yolo: neither data\.yaml nor classes\.txt"):
        read_yolo(folder, tmp_path)


# --- splits and backgrounds of YOLO ---------------------------------------------------------------


def split_folder(tmp_path, *splits: str) -> Path:
    """A folder whose splits all have the same pictures, and one more without a label file."""
    folder = tmp_path / "yolo"
    (tmp_path / "plain").mkdir()
    plain = custom_data.write_yolo(tmp_path / "plain")
    for split in splits:
        shutil.copytree(plain / "labels", folder / "labels" / split)
        shutil.copytree(plain / "images", folder / "images" / split)
        shutil.copy(plain / "images" / "one.jpg", folder / "images" / split / "empty.one.JPG")
    shutil.copy(plain / "data.yaml", folder / "data.yaml")
    return folder


@pytest.mark.parametrize(
    ("splits", "said", "taken"),
    [
        (("train", "val"), None, "val"),
        (("train", "val", "test"), None, "val"),
        (("train2017", "val2017"), None, "val2017"),
        (("train", "val", "test"), "test", "test"),
        (("train", "valid"), "train", "train"),
        (("train",), None, "train"),
        (("mine", "theirs"), "mine", "mine"),
    ],
)
def test_splits_of_yolo_are_not_merged(
    tmp_path, splits: tuple[str, ...], said: str | None, taken: str
) -> None:
    folder = split_folder(tmp_path, *splits)
    found = read_yolo(folder, folder / "images", said)
    assert {Path(name).parts[0] for name in found.sizes} == {taken}
    assert len(found.sizes) == 4
    assert len(boxes_of(found)) == 4
    assert found.left_out.total() == 3 * (len(splits) - 1)


@pytest.mark.parametrize(
    ("splits", "said", "why"),
    [
        (("train", "test"), None, "--split test or --split train"),
        (("train", "val", "valid"), None, "Say --split train or --split val or --split valid"),
        (("train", "val"), "vla", "no split 'vla': did you mean val"),
        (("train", "val"), "..", "no split '..'"),
    ],
)
def test_a_split_that_cannot_be_told(
    tmp_path, splits: tuple[str, ...], said: str | None, why: str
) -> None:
    folder = split_folder(tmp_path, *splits)
    with pytest.raises(AnnotationError, match=re.escape(why)):
        read_yolo(folder, folder / "images", said)


def test_pictures_without_objects_ask_for_one_class_each(tmp_path, capsys) -> None:
    """One has an empty label file, one has none."""
    folder = split_folder(tmp_path, "train", "val")
    found = read_yolo(folder, folder / "images").queries
    nothing = [
        query.images for query in found if not query.boxes and query.label == query.labels[0]
    ]
    assert nothing == [("val/empty.one.JPG",), ("val/three.jpg",)]
    assert main(["data", "import", str(folder), "--name", "Mine", "--split", "val"]) == 0
    said = capsys.readouterr().out
    assert "left out: 3 label files that are not of the split val" in said
    assert said.count("(2 without an object)") == 2
    for name in ("FindIt_Mine_xyxy_json", "FindIt_Mine_multilabel_xyxy_json"):
        task = load_task(name)
        nothing = [query for query in task.queries.values() if not query.truth.boxes]
        assert [(q.images, q.label) for q in nothing] == [
            (("val/empty.one.JPG",), "cat"),
            (("val/three.jpg",), "traffic light"),
        ]
        assert task.question.data.has_negatives
    assert (
        main(["data", "import", "x.json", "--as", "coco", "--name", "Mine", "--split", "val"]) == 2
    )
    assert "--split is not for COCO" in capsys.readouterr().err
