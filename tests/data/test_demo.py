from __future__ import annotations

import dataclasses
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from training import demo as build
from training.demo import SubsetRow
from vlmeval_findit.benchmarks.findit.annotation_tables import read_table
from vlmeval_findit.data.demo.photos import (
    PARTS,
    SHIPPED,
    Photo,
    image,
    photos,
    prepare_demo,
    read_photo,
)

ANNOTATIONS = build.load_annotations()
PHOTOS = photos()
FAMILIES = (
    "Demo",
    "Demo_multilabel",
    "Demo_refexp",
    "Demo_described",
    "Demo_insdet",
    "Demo_video",
)

MISSING = sorted({p.pip for p in PHOTOS.values() if importlib.util.find_spec(p.package) is None})
needs_photos = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")


@pytest.fixture(scope="module")
def rows() -> dict[str, list[SubsetRow]]:
    return build.build_demo()[0]


def plain_boxes(row: SubsetRow) -> list[list[float]]:
    return [box["bbox"] if isinstance(box, dict) else box for box in row["bboxes"]]


def assert_boxes_inside(boxes: list[list[float]], width: int, height: int) -> None:
    for x1, y1, x2, y2 in boxes:
        assert all(isinstance(value, float) for value in (x1, y1, x2, y2))
        assert 0 <= x1 < x2 <= width
        assert 0 <= y1 < y2 <= height


def image_size(name: str) -> tuple[int, int]:
    made = image(name)
    assert made.mode == "RGB"
    return made.size


# --- the annotations themselves, without any photograph -----------------------------------------


def all_boxes(value: Any) -> list[list[float]]:
    """Every [x1, y1, x2, y2] below a box, a list of boxes or a mapping of such."""
    if isinstance(value, dict):
        return [box for part in value.values() for box in all_boxes(part)]
    if value and isinstance(value[0], int):
        return [value]
    return [box for part in value for box in all_boxes(part)]


@pytest.mark.parametrize("section", sorted(ANNOTATIONS))
def test_annotated_boxes_lie_inside_their_photographs(section: str) -> None:
    for entry in ANNOTATIONS[section]:
        photo = PHOTOS[entry["photo"]]
        for raw in all_boxes(entry.get("boxes", entry.get("box"))):
            assert build.as_box(raw, photo) == tuple(raw)
        for support in entry.get("supports", []):
            build.as_box(support["box"], PHOTOS[support["photo"]])


# --- functions ----------------------------------------------------------------------------------


def absent(photo: Photo) -> Photo:
    return dataclasses.replace(photo, package="no_such_package_here", pip="no-such-package")


def test_a_missing_package_names_the_pip_command() -> None:
    with pytest.raises(FileNotFoundError, match=r"is not installed.*pip install no-such-package"):
        read_photo(absent(PHOTOS["coins"]))


@needs_photos
def test_another_file_than_the_annotated_one_is_an_error() -> None:
    photo = dataclasses.replace(PHOTOS["coins"], sha256="0" * 64)
    with pytest.raises(ValueError, match=r"data/coins\.png of the package 'skimage'.*pip install"):
        read_photo(photo)


@needs_photos
@pytest.mark.parametrize("photo", PHOTOS.values(), ids=PHOTOS)
def test_photographs_have_the_stated_size_and_checksum(photo: Photo) -> None:
    pixels = read_photo(photo)
    assert pixels.shape == (photo.height, photo.width, 3)
    assert pixels.dtype == np.uint8


# --- the built demonstration --------------------------------------------------------------------


def test_every_family_has_rows(rows: dict[str, list[SubsetRow]]) -> None:
    assert tuple(rows) == FAMILIES
    assert all(len(rows[family]) >= 4 for family in FAMILIES)


def test_what_ships_is_what_training_makes(tmp_path: Path) -> None:
    build.ship(tmp_path)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert made == {path.name: path.read_bytes() for path in SHIPPED.iterdir()}
    assert PARTS.name in made


@needs_photos
def test_tables_and_their_images_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LMUData", str(tmp_path))
    for made in prepare_demo():
        assert made.path.read_bytes() == (SHIPPED / made.path.name).read_bytes()
        for query in read_table(made.path):
            for name in (*query.images, *query.support):
                with Image.open(tmp_path / "images" / "Demo" / name) as written:
                    assert np.array_equal(np.asarray(written), np.asarray(image(name)))


@needs_photos
@pytest.mark.parametrize("family", FAMILIES[:-1])
def test_image_rows_match_their_files(rows: dict[str, list[SubsetRow]], family: str) -> None:
    for row in rows[family]:
        assert image_size(row["filename"]) == (row["width"], row["height"])
        assert isinstance(row["label"], str)
        assert row["label"]
        assert_boxes_inside(plain_boxes(row), row["width"], row["height"])
