"""Marked reference images: which image shows the object, what is drawn, and when."""

from __future__ import annotations

import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from vlmeval_findit.benchmarks.findit import marked_references as marked_images
from vlmeval_findit.benchmarks.findit.annotation_tables import load_task
from vlmeval_findit.benchmarks.findit.findit_query import FindItQuery, Sighting
from vlmeval_findit.benchmarks.findit.marked_references import (
    LONGEST,
    MarkedReference,
    ReferenceOrigin,
    marked,
    references,
)
from vlmeval_findit.benchmarks.findit.variant import MARKS
from vlmeval_findit.boxes.box_records import Truth
from vlmeval_findit.core.folders import FolderError

BOX = (40.0, 30.0, 60.0, 50.0)
RED = [255, 0, 0]


def query(index: int, label: str, image: str, **fields: Any) -> FindItQuery:
    """A query whose box tells its index."""
    box = (float(index), 0.0, 90.0, 50.0)
    given = {"images": (image,), "truth": Truth((box,), (0,)), "support": (f"shot{index}.png",)}
    return FindItQuery(index, label, 100, 100, **{**given, **fields})


# --- which image --------------------------------------------------------------------------------


def test_the_image_that_a_shot_is_a_crop_of_comes_first() -> None:
    seen = (Sighting("a.jpg", BOX), Sighting("c.jpg", BOX), Sighting("d.jpg", BOX))
    queries = [query(0, "cup", "a.jpg", sightings=seen), query(1, "cup", "b.jpg")]
    assert references(queries, is_video=False) == [
        MarkedReference("c.jpg", BOX, ReferenceOrigin.SHOT),  # not a.jpg: that is the scene
        MarkedReference("a.jpg", (0.0, 0.0, 90.0, 50.0), ReferenceOrigin.OTHER_SCENE),
    ]


def test_else_the_next_query_that_is_about_it_elsewhere() -> None:
    queries = [
        query(0, "cup", "a.jpg"),
        query(1, "pen", "b.jpg"),
        query(2, "cup", "a.jpg"),  # the same scene
        query(3, "cup", "c.jpg"),
        query(4, "cup", "d.jpg", truth=Truth((), ())),
        query(5, "cup", "e.jpg", truth=Truth(((100.0, 0.0, 120.0, 9.0),), (0,))),  # outside
        query(6, "fork", "a.jpg", support=()),
    ]
    result = references(queries, is_video=False)
    assert [each and (each.image, each.origin) for each in result] == [
        ("c.jpg", ReferenceOrigin.OTHER_SCENE),
        ("shot1.png", ReferenceOrigin.WHOLE_SHOT),
        ("c.jpg", ReferenceOrigin.OTHER_SCENE),
        ("a.jpg", ReferenceOrigin.OTHER_SCENE),
        ("a.jpg", ReferenceOrigin.OTHER_SCENE),
        ("a.jpg", ReferenceOrigin.OTHER_SCENE),
        None,
    ]
    assert result[1] == MarkedReference("shot1.png", None, ReferenceOrigin.WHOLE_SHOT)


def test_the_queries_of_an_object_are_gone_through_in_a_circle() -> None:
    result = references([query(i, "cup", f"{i}.jpg") for i in range(3)], is_video=False)
    assert [each and each.image for each in result] == ["1.jpg", "2.jpg", "0.jpg"]


# --- what is drawn --------------------------------------------------------------------------------


def scenery(width: int, height: int) -> Image.Image:
    """An image whose pixels say where they are."""
    y, x = np.mgrid[:height, :width]
    pixels = np.stack([x % 200, y % 200, (x // 64 + y // 64) % 2 * 90], axis=2)
    return Image.fromarray(pixels.astype(np.uint8))


CHECKSUMS = {
    "box": "5801db6d0110aeae",
    "oval": "bddc33c9b2d9c62a",
    "arrow": "347a8328d083401b",
    "tag": "70a07fbdd27c6b94",
    "point": "2442370eb687d8a6",
}


@pytest.mark.parametrize("mark", MARKS)
def test_the_pixels_of_a_mark(mark: str) -> None:
    """After a change that is meant, raise ``RECIPE`` and write the checksum again."""
    assert marked_images.RECIPE == 1
    drawn = marked(scenery(700, 500), (300.0, 200.0, 360.0, 290.0), mark)
    assert drawn.shape == (270, 256, 3)
    assert sha256(drawn.tobytes()).hexdigest()[:16] == CHECKSUMS[mark]


def test_a_large_scene_is_shown_around_the_object_and_shrunk() -> None:
    scene = scenery(2000, 1500)
    drawn = marked(scene, (500.0, 500.0, 900.0, 700.0), "box")
    assert drawn.shape == (512, LONGEST, 3)
    left, top, right, bottom = 341, 171, 683, 341  # from x 100, y 300, by 1024 / 1200
    assert drawn[top, 500].tolist() == drawn[bottom, 500].tolist() == RED
    assert drawn[250, left].tolist() == drawn[250, right].tolist() == RED
    untouched = scene.crop((100, 300, 1300, 900)).resize((1024, 512), Image.Resampling.BICUBIC)
    inside = np.s_[top + 8 : bottom - 8, left + 8 : right - 8]
    assert (drawn[inside] == np.asarray(untouched)[inside]).all()


# --- when it is drawn -----------------------------------------------------------------------------

DEMO = "FindIt_Demo_insdet_xyxy_json_vp-box"


@pytest.fixture
def images(tmp_path: Path, lmu_data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the demonstration's images, without marked ones."""
    load_task("FindIt_Demo_insdet_xyxy_json")
    folder = tmp_path / "Demo"
    shutil.copytree(lmu_data / "images" / "Demo", folder, ignore=shutil.ignore_patterns("vp"))
    monkeypatch.setenv("FINDIT_IMAGES", f"Demo={folder}")
    return folder


def test_what_cannot_be_read_is_named_and_the_others_are_drawn(
    images: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (images / "photos" / "motorcycle_left.png").unlink()
    queries = load_task(DEMO).queries
    assert [(images / q.support[0]).is_file() for q in queries.values()] == [False] * 3 + [True] * 4
    assert "3 images cannot be marked with a red box; the first: " in caplog.text
    assert "motorcycle_left.png is missing" in caplog.text
    drawn = {path: path.stat().st_mtime_ns for path in (images / "vp").rglob("*.png")}
    load_task(DEMO)
    assert {path: path.stat().st_mtime_ns for path in (images / "vp").rglob("*.png")} == drawn


def test_a_folder_that_cannot_be_written_to_is_named(images: Path) -> None:
    (images / "vp").write_text("in the way")
    with pytest.raises(
        FolderError, match=r"vp/box/\w+\.png cannot be written .*FINDIT_IMAGES=Demo"
    ):
        load_task(DEMO)
