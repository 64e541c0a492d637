"""Images in another folder than their annotations: one rule for every format."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import custom_data
import pytest
from few_fast import few_fast

from vlmeval_findit.cli import main
from vlmeval_findit.data import (
    AnnotationError,
    Fate,
    ReaderOptions,
    Samples,
    read_layout,
    recognise,
)

pytestmark = pytest.mark.usefixtures("data_root")

BOX = [10, 10, 30, 30]


def coco(path: Path, names: list[str]) -> None:
    images = [{"id": at, "file_name": name} for at, name in enumerate(names)]
    boxes = [
        {"id": at, "image_id": at, "category_id": 1, "bbox": BOX} for at, _ in enumerate(names)
    ]
    categories = [{"id": 1, "name": "cat"}]
    write(path, {"images": images, "annotations": boxes, "categories": categories})


def createml(path: Path, names: list[str]) -> None:
    sides = {"x": 25, "y": 25, "width": 30, "height": 30}
    boxes = [{"label": "cat", "coordinates": sides}]
    write(path, [{"image": name, "annotations": boxes} for name in names])


def bdd100k(path: Path, names: list[str]) -> None:
    labels = [{"category": "cat", "box2d": dict(zip(("x1", "y1", "x2", "y2"), BOX, strict=True))}]
    write(path, [{"name": name, "labels": labels} for name in names])


def json_lines(path: Path, names: list[str]) -> None:
    lines = [{"image": name, "label": "cat", "boxes": [BOX]} for name in names]
    path.write_text("\n".join(map(json.dumps, lines)))


def csv_lines(path: Path, names: list[str]) -> None:
    lines = [f"{name},cat,10,10,30,30" for name in names]
    path.write_text("\n".join(["image,label,x1,y1,x2,y2", *lines]))


def write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value))


FORMATS: dict[str, Callable[[Path, list[str]], None]] = {
    "x.json": coco,
    "createml.json": createml,
    "bdd.json": bdd100k,
    "x.jsonl": json_lines,
    "x.csv": csv_lines,
}
NAMES = ["one.jpg", "three.jpg"]


def photos(folder: Path, names: list[str] | None = None) -> Path:
    """Write images of these names; all are alike."""
    custom_data.make_images(folder.parent / "made")
    folder.mkdir(parents=True)
    for name in names or NAMES:
        shutil.copy(folder.parent / "made" / "one.jpg", folder / name)
    shutil.rmtree(folder.parent / "made")
    return folder


def read(path: Path) -> Samples:
    return read_layout(recognise(path, None), ReaderOptions())


@pytest.mark.parametrize("name", few_fast(FORMATS, 1))
@pytest.mark.parametrize(
    ("annotations", "images"),
    [
        ("", "images"),
        ("", "img"),
        ("", "JPEGImages"),
        ("", "pictures of June"),
        ("annotations", "images"),
        ("labels", "images/100k/val"),
        ("annotations", "val2017"),
        ("gt", "scans"),
    ],
)
def test_the_one_folder_that_has_all_is_taken(
    tmp_path, name: str, annotations: str, images: str
) -> None:
    folder = photos(tmp_path / "set" / images)
    photos(tmp_path / "set" / "thumbs", NAMES[:1])
    place = tmp_path / "set" / annotations
    place.mkdir(exist_ok=True)
    FORMATS[name](place / name, NAMES)
    samples = read(place / name)
    assert samples.images == folder
    noted = [entry.what for entry in samples.ledger if entry.fate is Fate.NOTED]
    assert f"images: in {folder}" in noted


@pytest.mark.parametrize("name", FORMATS)
def test_several_folders_are_asked_about_and_parts_not_taken(tmp_path, name: str, capsys) -> None:
    annotations = tmp_path / "set" / name
    for folder in ("left", "right"):
        photos(tmp_path / "set" / folder)
    FORMATS[name](annotations, NAMES)
    with pytest.raises(AnnotationError) as error:
        read(annotations)
    for folder in ("left", "right"):
        assert f"--image-root {tmp_path / 'set' / folder}" in str(error.value)
        (tmp_path / "set" / folder / NAMES[1]).unlink()
    assert read(annotations).images == tmp_path / "set"
    assert main(["data", "import", str(annotations), "--name", "Mine"]) == 2
    said = capsys.readouterr()
    assert "--image-root DIR" in said.err + said.out


def test_images_of_another_split_are_not_meant(tmp_path) -> None:
    for split in ("train2017", "val2017"):
        photos(tmp_path / "set" / split)
    (tmp_path / "set" / "ann").mkdir()
    coco(tmp_path / "set" / "ann" / "instances_val2017.json", NAMES)
    samples = read(tmp_path / "set" / "ann" / "instances_val2017.json")
    assert samples.images == tmp_path / "set" / "val2017"


def xml(path: Path, image: str) -> None:
    box = "<xmin>10</xmin><ymin>10</ymin><xmax>30</xmax><ymax>30</ymax>"
    thing = f"<object><name>cat</name><bndbox>{box}</bndbox></object>"
    path.write_text(f"<annotation><filename>{image}</filename>{thing}</annotation>")


def labelme(path: Path, image: str) -> None:
    shape = {"label": "cat", "points": [BOX[:2], BOX[2:]], "shape_type": "rectangle"}
    write(path, {"imagePath": image, "shapes": [shape]})


@pytest.mark.parametrize(("form", "suffix"), [(xml, ".xml"), (labelme, ".json")])
@pytest.mark.parametrize(
    ("annotations", "named"),
    [
        ("annotations", ""),
        ("labels", ""),
        ("annotations/each", ""),
        ("annotations", "annotations"),
        ("labels", "labels"),
        ("notes", "notes"),
    ],
)
def test_a_file_for_each_image_beside_the_images(
    tmp_path, form: Callable[[Path, str], None], suffix: str, annotations: str, named: str
) -> None:
    folder = tmp_path / "set"
    photos(folder / "images")
    (folder / annotations).mkdir(parents=True)
    for name in NAMES:
        form((folder / annotations / name).with_suffix(suffix), name)
    samples = read(folder / named)
    found = {samples.images / image for query in samples.queries for image in query.images}
    assert found == {folder / "images" / name for name in NAMES}


def test_names_that_lead_out_of_their_folder_are_found(tmp_path) -> None:
    photos(tmp_path / "set" / "images")
    (tmp_path / "set" / "json").mkdir()
    for name in NAMES:
        path = (tmp_path / "set" / "json" / name).with_suffix(".json")
        labelme(path, f"..\\images\\{name}")
    assert main(["data", "import", str(tmp_path / "set" / "json"), "--name", "Mine"]) == 0


def test_no_flag_that_would_leave_out_everything(tmp_path, capsys) -> None:
    for name in NAMES:
        (tmp_path / name).write_bytes(b"no image")
    coco(tmp_path / "x.json", NAMES)
    assert main(["data", "import", str(tmp_path / "x.json"), "--name", "Mine"]) == 2
    said = capsys.readouterr()
    assert "2 of 2 images cannot be used" in said.err + said.out
    assert "--skip-unreadable-images" not in said.err + said.out
