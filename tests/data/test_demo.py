from __future__ import annotations

import dataclasses
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from training import demo as build
from training.demo import SubsetRow, Window
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


def test_no_annotation_is_given_twice() -> None:
    for section in ("detection", "referring", "described", "video"):
        keys = [
            (entry["photo"], entry.get("label", entry.get("expression")))
            for entry in ANNOTATIONS[section]
        ]
        assert len(keys) == len(set(keys))


def test_every_photograph_states_its_origin() -> None:
    for photo in PHOTOS.values():
        assert len(photo.sha256) == 64
        assert photo.licence
        assert photo.credit


def test_labels_can_be_joined_by_commas() -> None:
    for entry in ANNOTATIONS["detection_multilabel"]:
        assert len(entry["boxes"]) > 1
        assert not any("," in label for label in entry["boxes"])


def test_video_windows_stay_inside_their_photographs() -> None:
    for entry in ANNOTATIONS["video"]:
        photo = PHOTOS[entry["photo"]]
        windows = build.window_path(entry["size"], entry["start"], entry["end"], entry["frames"])
        assert len(windows) == 8
        assert len(set(windows)) == 8
        for view in windows:
            assert 0 <= view.x <= photo.width - view.width
            assert 0 <= view.y <= photo.height - view.height


# --- functions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw", [[-1, 0, 5, 5], [0, 0, 513, 5], [5, 0, 5, 5], [0, 9, 5, 5], [0, 0, 5, 513]]
)
def test_a_box_outside_its_photograph_is_an_error(raw: list[int]) -> None:
    with pytest.raises(ValueError, match="does not lie inside photo 'astronaut'"):
        build.as_box(raw, PHOTOS["astronaut"])


def test_visible_part_is_cut_and_shifted() -> None:
    window = Window(x=10, y=20, width=30, height=40)
    assert build.visible_part((15, 25, 20, 30), window, 0.2) == (5, 5, 10, 10)
    assert build.visible_part((0, 0, 20, 40), window, 0.2) == (0, 0, 10, 20)
    assert build.visible_part((0, 0, 20, 40), window, 0.3) is None
    assert build.visible_part((50, 25, 60, 30), window, 0.0) is None


def test_visible_part_keeps_an_object_at_exactly_the_limit() -> None:
    window = Window(x=8, y=0, width=50, height=50)
    assert build.visible_part((0, 0, 10, 10), window, 0.2) == (0, 0, 2, 10)


def test_window_path_ends_where_it_should() -> None:
    windows = build.window_path((10, 5), (0, 7), (70, 0), 8)
    assert (windows[0].x, windows[0].y) == (0, 7)
    assert (windows[3].x, windows[3].y) == (30, 4)
    assert (windows[-1].x, windows[-1].y) == (70, 0)


def absent(photo: Photo) -> Photo:
    return dataclasses.replace(photo, package="no_such_package_here", pip="no-such-package")


def test_a_missing_package_names_the_pip_command() -> None:
    with pytest.raises(FileNotFoundError, match=r"is not installed.*pip install no-such-package"):
        read_photo(absent(PHOTOS["coins"]))


def test_a_missing_file_names_the_package() -> None:
    photo = dataclasses.replace(PHOTOS["coins"], package="PIL", path="nothing.png", pip="pillow")
    with pytest.raises(FileNotFoundError, match=r"nothing\.png of the package 'PIL'.*no such file"):
        read_photo(photo)


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


def test_only_described_objects_may_be_absent(rows: dict[str, list[SubsetRow]]) -> None:
    for family in set(FAMILIES) - {"Demo_described"}:
        assert all(row["bboxes"] for row in rows[family])
    assert any(not row["bboxes"] for row in rows["Demo_described"])


def test_the_coins_are_all_there(rows: dict[str, list[SubsetRow]]) -> None:
    (coins,) = (row for row in rows["Demo"] if row["label"] == "coin")
    assert len(coins["bboxes"]) == 24


def test_referring_rows_have_one_box(rows: dict[str, list[SubsetRow]]) -> None:
    assert all(len(row["bboxes"]) == 1 for row in rows["Demo_refexp"])


def test_multilabel_rows_list_their_labels(rows: dict[str, list[SubsetRow]]) -> None:
    for row in rows["Demo_multilabel"]:
        labels = row["label"].split(", ")
        assert labels == sorted({box["label"] for box in row["bboxes"]})


@needs_photos
def test_instance_rows_have_support_shots(rows: dict[str, list[SubsetRow]]) -> None:
    for row in rows["Demo_insdet"]:
        assert len(row["bboxes"]) == 1
        assert row["support_shots"]
        for shot in row["support_shots"]:
            assert min(image_size(shot)) >= 12


@needs_photos
def test_video_rows_have_boxes_per_frame(rows: dict[str, list[SubsetRow]]) -> None:
    for row in rows["Demo_video"]:
        assert row["frame_indices"] == list(range(8))
        assert len(row["bboxes"]) == len(row["frame_paths"]) == 8
        for path, boxes in zip(row["frame_paths"], row["bboxes"], strict=True):
            assert path.startswith(row["filename"] + "/")
            assert image_size(path) == (row["width"], row["height"])
            assert_boxes_inside(boxes, row["width"], row["height"])


def test_some_video_frames_do_not_show_the_object(rows: dict[str, list[SubsetRow]]) -> None:
    assert any(not boxes for row in rows["Demo_video"] for boxes in row["bboxes"])
