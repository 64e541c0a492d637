"""Annotations of other tools: what is read, and what is refused in a line that names the place."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from textwrap import dedent
from typing import Any

import custom_data
import pytest
from custom_data import coco_values

from vlmeval_findit.cli import main
from vlmeval_findit.core import Text, unsafe_name
from vlmeval_findit.data import (
    AnnotatedBox,
    AnnotationError,
    Fate,
    ReaderOptions,
    Samples,
    load_dataset,
    read_coco,
    read_csv,
    read_voc,
    read_yolo,
)
from vlmeval_findit.data.custom import annotation_values, collector

pytestmark = pytest.mark.usefixtures("data_root")


def boxes_of(samples: Samples) -> list[AnnotatedBox]:
    """Return the boxes of the queries with one label, in the order of their file."""
    single = [query for query in samples.queries if isinstance(query.label, str)]
    return [box for query in single for box in query.boxes]


def refusal(read: Callable[..., Samples], path: Path, *more: Any) -> str:
    """Return the message of a reader that refuses a path: a line that begins with a path in it."""
    with pytest.raises(AnnotationError) as error:
        read(path, *more)
    message = str(error.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message


@pytest.mark.parametrize("stated", [{}, {"size": None}, {"size": {"width": 640, "height": 480}}])
def test_the_reader_that_is_shown_reads_boards(tmp_path: Path, stated: dict[str, Any]) -> None:
    """It is what who adds a format begins with."""
    text = dedent(re.findall(r"::\n\n((?:    .*\n)+)", collector.__doc__ or "")[0])
    names = {**vars(annotation_values), **vars(collector), "Text": Text}
    exec(text, names)
    things = [
        {"name": "cat", "bbox": [10, 20, 100, 200]},
        {"name": "cat", "bbox": [300, 20, 50, 60], "iscrowd": 1},
    ]
    path = tmp_path / "boards.json"
    path.write_text(json.dumps([{"file": "a.png", "things": things, **stated}]))
    samples = names["read_boards"](path, custom_data.make_images(tmp_path / "images"))
    counted, ignored = boxes_of(samples)
    assert (counted.corners, counted.ignored) == ((10, 20, 110, 220), "")
    assert (ignored.corners, ignored.ignored) == ((300, 20, 350, 80), "crowd regions")


# --- CSV ------------------------------------------------------------------------------------------

HEAD = "image,label,x1,y1,x2,y2"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "line 1: columns are [], missing: image, label"),
        (HEAD.replace(",", "|") + "\n", "missing: image, label, x1, y1, x2, y2 (commas separate"),
        (
            f"{HEAD}\none.jpg,cat,1,2,3,4\n\none.jpg,cat,1,2,3,4,5\n",
            "line 4: 7 cells for 6 columns",
        ),
        (f'{HEAD}\none.jpg,cat,1,2,3,4\none.jpg,"cat,1,2,3,4\n', "line 3: unexpected end of data"),
        (f"{HEAD}\n,cat,1,2,3,4\n", "line 2, column image: is empty"),
        (f"{HEAD}\none.jpg,cat,1,2,x,4\n", "line 2, column x2: 'x' is not a number"),
        (f"{HEAD},width,height\none.jpg,cat,1,2,3,4,0,80\n", "0x80 is not a size"),
        (
            f"{HEAD},width,height\none.jpg,cat,1,2,3,4,120,80\none.jpg,cat,1,2,3,4,120,81\n",
            "line 3: one.jpg is 120x81 here, 120x80 before",
        ),
        (f"{HEAD}\none.jpg,Käse", "line 2: byte 0xe4 is not UTF-8. Which encoding is it"),
    ],
)
def test_a_damaged_listing(tmp_path, text: str, why: str) -> None:
    path = tmp_path / "boxes.csv"
    path.write_text(text, encoding="latin-1")
    assert why in refusal(read_csv, path, tmp_path)


def test_what_a_listing_may_have(tmp_path) -> None:
    path = tmp_path / "boxes.csv"
    path.write_bytes(
        b"\xef\xbb\xbfx1,y1,x2,y2,label,image,note,width,height\r\n\r\n"
        b'1,2,30.5,40,"cat",one.jpg,"a, ""b""\r\nc",,\r\n'
        b"1,2,30,40,dog,one.jpg,,120,80\r\n5,2,3,4,dog,one.jpg,,,\r\n"
    )
    samples = read_csv(path, tmp_path)
    assert [(box.corners, box.label, box.where) for box in boxes_of(samples)] == [
        ((1, 2, 30.5, 40), "cat", f"{path}, line 4"),
        ((1, 2, 30, 40), "dog", f"{path}, line 5"),
        ((5, 2, 3, 4), "dog", f"{path}, line 6"),
    ]
    assert samples.sizes == {"one.jpg": (120, 80)}


# --- COCO and VOC ---------------------------------------------------------------------------------

FIRST_BOX = '"bbox": [10.0, 5.0, 30.5, 20.25]'


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('"id": 501', '"id": true', "images[0], id: True should be a whole number or"),
        ('"id": 501', '"id": 77', "images[1]: duplicate id 77"),
        ('"image_id": 501', '"image_id": 5', "annotations[0], image_id: unknown id 5"),
        ('"category_id": 7', '"category_id": 9', "annotations[0], category_id: unknown id 9"),
        ('"iscrowd": 0', '"iscrowd": "few"', "annotations[0], iscrowd: 'few' should be 0 or 1"),
        (
            '"width": 120',
            '"width": -1',
            "images[0], width: -1 should be a whole number, at least",
        ),
        ('{"images"', '[{"images"', "not JSON"),
    ],
)
def test_a_damaged_coco_file(tmp_path, old: str, new: str, why: str) -> None:
    text = json.dumps(coco_values())
    assert old in text
    path = tmp_path / "instances.json"
    path.write_text(text.replace(old, new, 1))
    assert why in refusal(read_coco, path, tmp_path)


def test_numbers_of_coco_that_are_right(tmp_path) -> None:
    """Whole numbers, ``iscrowd`` as a bool or missing, no sizes, NaN in a key that is not read."""
    values: dict[str, Any] = coco_values()
    del values["images"][0]["width"], values["images"][0]["height"]
    del values["annotations"][0]["iscrowd"]
    values["annotations"][1]["iscrowd"] = True
    values["annotations"][0] |= {"bbox": [10, 5, 30, 20], "area": float("nan")}
    path = tmp_path / "instances.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(values).encode())
    samples = read_coco(path, tmp_path)
    assert boxes_of(samples)[0].corners == (10, 5, 40, 25)
    assert [box.ignored for box in boxes_of(samples)][:3] == ["", "crowd regions", ""]
    assert samples.sizes == {"one.jpg": None, "sub/two.png": (64, 96), "three.jpg": (100, 100)}


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("<width>120", "<width>0", "one.xml, size: 0x80 is not a size in pixels"),
        ("<width>120</width>", "", "one.xml: no <size/width>"),
        ("<xmin>10.0", "<xmin>nan", "one.xml, object 0: 'nan' is not a number"),
        ("<name>cat", "<name>", "one.xml, object 0: no <name>"),
        ("<filename>one.jpg", "<filename>three.jpg", "three.xml: another file is about three"),
        ("</object>", "", "one.xml: "),
    ],
)
def test_damaged_xml(tmp_path, old: str, new: str, why: str) -> None:
    folder = custom_data.write_voc(tmp_path / "voc")
    file = folder / "Annotations" / "one.xml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    assert why in refusal(read_voc, folder, folder)


def test_difficult_objects_are_ignored(tmp_path) -> None:
    folder = custom_data.write_voc(tmp_path / "voc")
    file = folder / "Annotations" / "one.xml"
    file.write_text(file.read_text().replace("<difficult>0<", "<difficult> 1 <", 1))
    samples = read_voc(folder, folder)
    assert (samples.counts.boxes, samples.counts.ignored) == (3, 1)


def test_names_of_images_stay_below_the_folder() -> None:
    assert unsafe_name("/one.jpg") == unsafe_name("C:one.jpg") == "has an absolute path"
    assert unsafe_name("sub\\..\\..\\one.jpg") == "climbs out of its folder"
    assert unsafe_name("one.jpg\0") == "holds a control character"
    assert unsafe_name("") == "names no file"


# --- YOLO -----------------------------------------------------------------------------------------


def yolo(tmp_path, names: str, line: str = "0 0.5 0.5 0.25 0.25") -> Path:
    (tmp_path / "yolo").mkdir()
    folder = custom_data.write_yolo(tmp_path / "yolo")
    (folder / "data.yaml").write_text(names)
    for file in (folder / "labels").rglob("*.txt"):
        file.write_text("\n")
    (folder / "labels" / "one.txt").write_text(line + "\n")
    return folder


NAMES = "names: {0: dog, 3: cat}"


@pytest.mark.parametrize(
    ("names", "line", "why"),
    [
        ("names: []", "", "'names' should be a list or a mapping of classes"),
        ("names: {0: [cat]}", "", "names: 0: a list is not a name of a class"),
        ("names: [cat", "", "data.yaml, line 1: not YAML: expected"),
        (NAMES, "2 0.5 0.5 0.2 0.2", "one.txt, line 1: unknown class 2 (there are 0, 3)"),
        (NAMES, "0 0.5 0,5 0.2 0.2", "one.txt, line 1: '0,5' is not a number"),
        (NAMES, "0 0.5 0.5 0.2", "one.txt, line 1: 4 numbers, should be"),
        (
            NAMES,
            "0 0.5 0.5 0.2 0.2 0.9",
            "6 numbers, should be class cx cy width",
        ),
        (NAMES, "0 0.5 0.5 0.2 0.2 0.9", "(are these predictions, with confidences?)"),
        (NAMES, "0 1 1 2 2 3 3 2", "8 numbers, should be"),
        (
            NAMES,
            "0 .5 .5 .2 .2 .5 .5 2",
            "Of poses, state kpt_shape: [1, 3]",
        ),
        (f"{NAMES}\nkpt_shape: [2, 3]", "0 .5 .5 .2 .2 .5 .5 2", "and 6 numbers of key points, as"),
        (f"{NAMES}\nkpt_shape: many", "", "kpt_shape: should be [number of key points, 2 or 3]"),
    ],
)
def test_a_damaged_yolo_folder(tmp_path, names: str, line: str, why: str) -> None:
    folder = yolo(tmp_path, names, line)
    assert why in refusal(read_yolo, folder, folder / "images")


OUTLINE = "0 0.1 0.2 0.3 0.2 0.3 0.4 0.1 0.4"
POSE = "0 0.5 0.5 0.2 0.2 0.45 0.5 0 0 0.55 0.5"


@pytest.mark.parametrize(
    ("more", "line", "corners", "noted", "not_needed"),
    [
        ("", OUTLINE, (0.1, 0.2, 0.3, 0.4), 1, 0),  # Also a turned box
        ("", "0 0.1 0.2 0.9 0.2 0.5 0.75", (0.1, 0.2, 0.9, 0.75), 1, 0),
        ("\nkpt_shape: [0, 2]", POSE, (0, 0, 0.55, 0.5), 1, 0),
        ("\nkpt_shape: [3, 2]", POSE, (0.4, 0.4, 0.6, 0.6), 0, 1),
        ("\nkpt_shape: [2, 3]", "0 0.5 0.5 0.2 0.2 .45 .5 2 .55 .5 1", (0.4, 0.4, 0.6, 0.6), 0, 1),
        ("\nkpt_shape: [3, 2]", "0 0.5 0.5 0.2 0.2", (0.4, 0.4, 0.6, 0.6), 0, 0),
    ],
)
def test_outlines_and_poses_of_yolo_have_their_upright_box(
    tmp_path, more: str, line: str, corners: tuple[float, ...], noted: int, not_needed: int
) -> None:
    folder = yolo(tmp_path, NAMES + more, line)
    samples = read_yolo(folder, folder / "images")
    assert boxes_of(samples)[0].corners == pytest.approx(corners)
    fates = {entry.what: (entry.fate, entry.count) for entry in samples.ledger}
    outlines = "outlines and turned boxes that became the upright boxes around them"
    assert fates.get(outlines) == ((Fate.NOTED, noted) if noted else None)
    assert ("key points of poses" in fates) is bool(not_needed)
    # data.yaml, which trainers are given
    assert read_yolo(folder / "data.yaml", folder / "images").queries == samples.queries


def test_outlines_that_may_all_be_poses_are_asked_about(tmp_path) -> None:
    folder = yolo(tmp_path, NAMES, f"{POSE}\n{POSE}")
    why = refusal(read_yolo, folder, folder / "images")
    assert "are these outlines, or boxes with 3 key points?" in why
    assert "kpt_shape: [3, 2], or kpt_shape: [0, 2] if they are outlines" in why
    # Boxes and outlines side by side, as Roboflow exports them, or people without key points
    (folder / "labels" / "one.txt").write_text(f"{POSE}\n0 0.5 0.5 0.2 0.2")
    assert "boxes with 3 key points?" in refusal(read_yolo, folder, folder / "images")
    (folder / "data.yaml").write_text(f"{NAMES}\nkpt_shape: [0, 2]")
    assert len(boxes_of(read_yolo(folder, folder / "images"))) == 2


@pytest.mark.parametrize("number", [1, 2, 4, 5, 17])
@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("seen", [(0, 1), (1, 1), (0, 2)])
def test_poses_of_any_shape_are_asked_about(
    tmp_path, number: int, dimensions: int, seen: tuple[int, int]
) -> None:
    """A third number says whether a point is seen: 0, 1 or 2."""
    lines = []
    for at in range(3):
        box = (0.3 + 0.1 * at, 0.4, 0.3, 0.5)
        points = [
            (box[0] - 0.14 + 0.28 * k / number, 0.2 + 0.4 * k / number, seen[k % 2])[:dimensions]
            for k in range(number)
        ]
        lines.append(" ".join(map(str, (0, *box, *chain.from_iterable(points)))))
    folder = yolo(tmp_path, NAMES, "\n".join(lines))
    why = refusal(read_yolo, folder, folder / "images")
    assert f"data.yaml: kpt_shape: [{number}, {dimensions}]" in why or (
        f"kpt_shape: [{number}, {dimensions}] in {folder / 'data.yaml'}" in why
    )
    (folder / "data.yaml").unlink()
    (folder / "classes.txt").write_text("dog\ncat\n")
    assert "data.yaml" in refusal(read_yolo, folder, folder / "images")
    # The names stay where they are.
    (folder / "data.yaml").write_text(f"kpt_shape: [{number}, {dimensions}]")
    first = boxes_of(read_yolo(folder, folder / "images"))[0]
    assert first.corners == pytest.approx((0.15, 0.15, 0.45, 0.65))


@pytest.mark.parametrize(
    "line",
    [
        "0 0.5 0.5 0.52 0.5 0.52 0.55 0.5 0.55",  # A small box in the middle
        "0 0.5 0.45 0.55 0.5 0.5 0.55 0.45 0.5",  # Turned
        "0 0.8 0.8 0.9 0.8 0.9 0.9 0.85 0.95",
        "0 0.7 0.7 0.8 0.7 0.8 0.8 0.75 0.85 0.7 0.8",
    ],
)
def test_outlines_that_are_no_poses_are_read(tmp_path, line: str) -> None:
    folder = yolo(tmp_path, NAMES, line)
    assert len(boxes_of(read_yolo(folder, folder / "images"))) == 1


@pytest.mark.parametrize(
    ("train", "noted", "left_out"),
    [("images", 1, 1), ("images/one", 1, 0), ("images/two", 0, 1), ("list.txt", 1, 1)],
)
def test_label_files_of_two_splits_are_not_left_out(
    tmp_path, train: str, noted: int, left_out: int
) -> None:
    """Train is all of both folders, the same folder, another one, or a list."""
    for name in ("one/a", "two/c"):
        for kind, suffix in (("images", ".jpg"), ("labels", ".txt")):
            path = (tmp_path / kind / name).with_suffix(suffix)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("0 0.5 0.5 0.2 0.2" if kind == "labels" else "")
    (tmp_path / "list.txt").write_text("images/one/a.jpg\nimages/far away/gone.jpg\n")
    (tmp_path / "data.yaml").write_text(f"{NAMES}\ntrain: {train}\nval: images/one")
    samples = read_yolo(tmp_path, tmp_path / "images", ReaderOptions(split="val"))
    fates = {(entry.fate, entry.what): entry.count for entry in samples.ledger}
    both = (Fate.NOTED, "label files that are of the split train, too")
    assert fates.get(both, 0) == noted
    assert fates.get((Fate.LEFT_OUT, "label files of the split train"), 0) == left_out


def test_numbers_of_classes_in_any_order(tmp_path) -> None:
    folder = yolo(tmp_path, "\ufeffnames: {'3': bird, 1: cat, 0: dog}", "3 0.5 0.5 0.25 0.25")
    assert [box.label for box in boxes_of(read_yolo(folder, folder / "images"))] == ["bird"]
    (folder / "data.yaml").write_text("names: [a, b, c, 7]")
    assert [box.label for box in boxes_of(read_yolo(folder, folder / "images"))] == ["7"]
    (folder / "data.yaml").unlink()
    assert "no names of classes" in refusal(read_yolo, folder, folder / "images")


def split_folder(tmp_path, *splits: str) -> Path:
    """Make a folder whose splits have the same images, and another one without a label file."""
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
    ("splits", "stated", "read"),
    [
        (("train2017", "val2017"), None, "val2017"),
        (("train", "val", "test"), "test", "test"),
        (("train",), "train", "train"),
        (("Train", "Validation"), None, "Validation"),
        (("train", "dev"), None, "dev"),
        (("train", "val"), "VAL", "val"),
        (("mine", "others"), "mine", "mine"),
    ],
)
def test_splits_of_yolo_are_not_merged(
    tmp_path, splits: tuple[str, ...], stated: str | None, read: str
) -> None:
    folder = split_folder(tmp_path, *splits)
    samples = read_yolo(folder, folder / "images", ReaderOptions(split=stated))
    assert {Path(name).parts[0] for name in samples.sizes} == {read}
    assert (len(samples.sizes), len(boxes_of(samples))) == (4, 4)
    assert samples.ledger.count(Fate.LEFT_OUT) == 3 * (len(splits) - 1)


def test_a_split_that_is_not_clear(tmp_path) -> None:
    folder = split_folder(tmp_path, "train", "val", "valid")
    for stated, why in (
        (None, "Type --split train or --split val or --split valid"),
        ("Vald", "unknown split 'Vald': did you mean val"),
        ("vla", "unknown split 'vla': did you mean val"),
        ("..", "unknown split '..'"),
    ):
        assert why in refusal(read_yolo, folder, folder / "images", ReaderOptions(split=stated))


def test_images_without_objects_ask_for_one_class_each(tmp_path, capsys) -> None:
    """Of one image the label file is empty, the other has none."""
    folder = split_folder(tmp_path, "train", "val")
    assert main(["data", "import", str(folder), "--name", "Mine", "--split", "val"]) == 0
    output = capsys.readouterr().out
    assert "left out: label files of the split train (3)" in output
    assert output.count("(2 without an object)") == 2
    for name in ("FindIt_Mine_xyxy_json", "FindIt_Mine_multilabel_xyxy_json"):
        dataset = load_dataset(name)
        negatives = [query for query in dataset.queries.values() if not query.truth.boxes]
        assert [(q.images, q.label) for q in negatives] == [
            (("val/empty.one.JPG",), "cat"),
            (("val/three.jpg",), "traffic light"),
        ]
        assert dataset.variant.data.has_negatives


# --- names in capital letters -------------------------------------------------------------------


def upper(folder: Path, suffix: str) -> None:
    """Rename the files of a folder that have a suffix, in capital letters."""
    files = sorted(folder.rglob(f"*{suffix}"))
    assert files
    for path in files:
        path.rename(path.with_suffix(suffix.upper()))


@pytest.mark.parametrize("separator", [",", "\t"])
def test_a_listing_in_capital_letters(tmp_path, separator: str) -> None:
    path = tmp_path / ("boxes.CSV" if separator == "," else "boxes.Tsv")
    path.write_text(f"{HEAD}\none.jpg,cat,1,2,30,40\n".replace(",", separator))
    assert boxes_of(read_csv(path, tmp_path))[0].corners == (1, 2, 30, 40)


def test_annotations_in_capital_letters_are_read_as_others(tmp_path) -> None:
    folder = custom_data.write_voc(tmp_path / "voc")
    expected = [box.corners for box in boxes_of(read_voc(folder, folder))]
    upper(folder, ".xml")
    assert [box.corners for box in boxes_of(read_voc(folder, folder))] == expected
    folder = yolo(tmp_path, "names: [cat, dog]")
    expected = [box.corners for box in boxes_of(read_yolo(folder, folder / "images"))]
    upper(folder / "labels", ".txt")
    assert [box.corners for box in boxes_of(read_yolo(folder, folder / "images"))] == expected
