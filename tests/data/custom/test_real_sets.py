"""What real sets contain beside plain boxes, in every format that can say it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import custom_data
import other_formats
import pytest

from vlmeval_findit.data import CROWD, DIFFICULT, IGNORED, Fate, ReaderOptions, Samples, recognise

pytestmark = pytest.mark.usefixtures("data_root")


def read(path: Path, split: str | None = None) -> Samples:
    layout = recognise(path, split)
    return layout.format.read(layout.path, layout.images, ReaderOptions(split=split))


def told(samples: Samples, fate: Fate) -> dict[str, int]:
    return {entry.what: entry.count for entry in samples.ledger if entry.fate is fate}


def ignored(samples: Samples) -> list[str]:
    single = [query for query in samples.queries if isinstance(query.label, str)]
    return [box.ignored for query in single for box in query.boxes if box.ignored]


def yolo(folder: Path) -> Path:
    folder.mkdir()
    return custom_data.write_yolo(folder)


# --- flags ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ({"difficult": 1}, DIFFICULT),
        ({"difficult": True}, DIFFICULT),
        ({"ignored": 1}, IGNORED),
        ({"ignore": 1.0}, IGNORED),
        ({"is_group_of": True}, CROWD),
        ({"attributes": {"ignore": 1}}, IGNORED),
        ({"attributes": {"is_crowd": True, "occluded": False}}, CROWD),
        ({"attributes": {"difficult": False, "ignored": None}}, None),
        ({"ignore": None, "iscrowd": False}, None),
    ],
)
def test_flags_of_coco_are_honoured_wherever_they_stand(
    tmp_path, flags: dict[str, Any], why: str | None
) -> None:
    custom_data.make_images(tmp_path)
    values = custom_data.coco_values()
    values["annotations"][0] |= flags
    samples = read(custom_data.write_coco(tmp_path, values))
    assert ignored(samples) == ([] if why is None else [why])
    assert told(samples, Fate.NOT_READ) == {}


@pytest.mark.parametrize("tag", ["difficult", "ignore", "ignored", "iscrowd"])
def test_flags_of_voc_are_honoured(tmp_path, tag: str) -> None:
    folder = custom_data.write_voc(tmp_path / "voc")
    path = folder / "Annotations" / "one.xml"
    flag = "<difficult>0</difficult>"
    path.write_text(path.read_text().replace(flag, f"<{tag}>1</{tag}>", 1))
    assert len(ignored(read(folder))) == 1


# --- repetitions, sizes, outlines -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "boxes"),
    [
        ({"label": "cat", "boxes": [[1, 2, 30, 40], [1, 2, 30, 40.0], [1, 2, 30, 41]]}, 2),
        ({"expression": "a cat", "boxes": [[1, 2, 30, 40], {"box": [1, 2, 30, 40]}]}, 1),
        (
            {
                "labels": ["cat", "dog"],
                "boxes": [
                    {"box": [1, 2, 30, 40], "label": "cat"},
                    {"box": [1, 2, 30, 40], "label": "dog"},
                    {"box": [1, 2, 30, 40], "label": "dog"},
                ],
            },
            2,
        ),
    ],
)
def test_a_box_that_stands_twice_in_a_line_counts_once(
    tmp_path, line: dict[str, Any], boxes: int
) -> None:
    custom_data.make_images(tmp_path)
    path = other_formats.as_lines(tmp_path / "a.jsonl", [{"image": "one.jpg", **line}])
    samples = read(path)
    assert [len(query.boxes) for query in samples.queries] == [boxes]
    assert told(samples, Fate.LEFT_OUT) == {"boxes that repeat label and corners of another": 1}


@pytest.mark.parametrize("size", ["0,0", "0.0,0", ",", "120.0,80"])
def test_a_size_of_nothing_in_csv_is_not_stated(tmp_path, size: str) -> None:
    custom_data.make_images(tmp_path)
    path = tmp_path / "a.csv"
    path.write_text(f"image,label,x1,y1,x2,y2,width,height\none.jpg,cat,1,2,30,40,{size}\n")
    assert read(path).sizes == {"one.jpg": (120, 80) if "120" in size else None}


@pytest.mark.parametrize("outline", [None, [], [[]], [[], []]])
def test_an_empty_outline_is_no_mask(tmp_path, outline: Any) -> None:
    custom_data.make_images(tmp_path)
    values = custom_data.coco_values()
    values["annotations"][0]["segmentation"] = outline
    samples = read(custom_data.write_coco(tmp_path, values))
    assert samples.counts.boxes == len(custom_data.ANNOTATIONS)
    assert all(box.mask is None for query in samples.queries for box in query.boxes)


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("listed", ["{name}", '"{name}"', "{name}  1", "{name} -1", "{name}.jpg"])
@pytest.mark.parametrize("name", ["three", "cam 2/f 1"])
def test_names_with_blanks_in_lists_of_voc(tmp_path, name: str, listed: str) -> None:
    folder = custom_data.write_voc(tmp_path / "voc")
    for place, suffix in (("Annotations", ".xml"), ("JPEGImages", ".jpg")):
        target = folder / place / f"{name}{suffix}"
        target.parent.mkdir(exist_ok=True)
        shutil.move(folder / place / f"one{suffix}", target)
    path = folder / "Annotations" / f"{name}.xml"
    path.write_text(path.read_text().replace("one.jpg", f"{name}.jpg"))
    lists = folder / "ImageSets" / "Main"
    lists.mkdir(parents=True)
    (lists / "val.txt").write_text(f"{listed.format(name=name)}\n")
    samples = read(folder)
    assert {query.images[0] for query in samples.queries} == {f"{name}.jpg"}
    assert "images of the split val without an XML file" not in told(samples, Fate.LEFT_OUT)


@pytest.mark.parametrize("encoded", ["a%20b", "?d=a%20b"])
def test_labels_of_yolo_whose_names_are_encoded(tmp_path, encoded: str) -> None:
    folder = yolo(tmp_path / "yolo")
    (folder / "images" / "one.jpg").rename(folder / "images" / "a b.jpg")
    (folder / "labels" / "one.txt").rename(folder / "labels" / f"{encoded}.txt")
    samples = read(folder)
    assert samples.counts.boxes == len(custom_data.ANNOTATIONS)
    assert told(samples, Fate.NOTED) == {"images whose names are encoded": 1}


# --- Darknet --------------------------------------------------------------------------------------


def darknet(folder: Path, **splits: list[str]) -> Path:
    """Write obj.data and its lists, with labels beside images, as CVAT and datumaro do."""
    yolo(folder)
    for path in list((folder / "labels").rglob("*.txt")):
        shutil.move(path, folder / "images" / path.relative_to(folder / "labels"))
    shutil.rmtree(folder / "labels")
    (folder / "images").rename(folder / "obj_data")
    (folder / "data.yaml").unlink()
    (folder / "obj.names").write_text("cat\ntraffic light\n")
    text = "classes = 2\nnames = data/obj.names\nbackup = backup/\n"
    for split, names in splits.items():
        text += f"{split} = data/{split}.txt\n"
        (folder / f"{split}.txt").write_text("".join(f"data/obj_data/{n}\n" for n in names))
    (folder / "obj.data").write_text(text)
    return folder


def test_the_splits_of_darknet_are_those_of_obj_data(tmp_path) -> None:
    folder = darknet(tmp_path / "set", train=["three.jpg"], valid=["one.jpg", "sub/two.png"])
    samples = read(folder)
    assert {Path(query.images[0]).name for query in samples.queries} == {"one.jpg", "two.png"}
    assert told(samples, Fate.LEFT_OUT) == {"label files of the split train": 1}
    assert told(samples, Fate.NOT_READ) == {}


def test_darknets_training_images_are_read_only_when_asked_for(tmp_path) -> None:
    folder = darknet(tmp_path / "set", train=["one.jpg", "three.jpg"])
    with pytest.raises(ValueError, match="--split train"):
        read(folder)
    assert read(folder, "train").counts.images == 2


# --- KITTI ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "label"),
    [
        ("Car 0.00 0 1.8 10 10 50 50 1 1 1 1 1 1 1", "Car"),
        ("Person sitting 0 0 -10 10 10 50 50 -1 -1 -1 -1000 -1000 -1000 -10", "Person sitting"),
        ("big pump 0.0 0 -1 10 10 50 50 -1 -1 -1 -1 -1 -1 -1 1.0", "big pump"),
    ],
)
@pytest.mark.parametrize("place", ["label_2", "labels"])
def test_kittis_lines(tmp_path, line: str, label: str, place: str) -> None:
    """The score 1 is datumaro's; some have the folders of YOLO."""
    images = {"label_2": "image_2", "labels": "images"}[place]
    custom_data.make_images(tmp_path / "set" / images)
    (tmp_path / "set" / place).mkdir()
    (tmp_path / "set" / place / "one.txt").write_text(f"{line}\n")
    samples = read(tmp_path / "set")
    asked = [query for query in samples.queries if query.label == label]
    assert [box.corners for query in asked for box in query.boxes] == [(10, 10, 50, 50)]


def test_what_was_read_is_not_called_not_needed(tmp_path) -> None:
    folder = yolo(tmp_path / "yolo")
    (folder / "data.yaml").write_text(json.dumps({"names": ["cat", "traffic light"], "nc": 2}))
    assert told(read(folder), Fate.NOT_NEEDED) == {"data.yaml: nc": 1}
