"""Marked reference images: which image shows the object, what is drawn, and when."""

from __future__ import annotations

import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from vlmeval_findit.benchmarks.findit import (
    LONGEST_REFERENCE_SIDE,
    MARKS,
    REFERENCE_RECIPE,
    FindItQuery,
    MarkedReference,
    ReferenceOrigin,
    Sighting,
    choose_references,
    marked_crop,
)
from vlmeval_findit.boxes import Truth
from vlmeval_findit.data import load_dataset
from vlmeval_findit.storage import FolderError

BOX = (40.0, 30.0, 60.0, 50.0)
RED = [255, 0, 0]


def query(index: int, label: str, image: str, **fields: Any) -> FindItQuery:
    """A query whose box tells its index."""
    box = (float(index), 0.0, 90.0, 50.0)
    given = {"images": (image,), "truth": Truth((box,), (0,)), "support": (f"shot{index}.png",)}
    return FindItQuery(index, label, 100, 100, **{**given, **fields})


def test_a_crops_source_image_comes_first() -> None:
    seen = (Sighting("a.jpg", BOX), Sighting("c.jpg", BOX), Sighting("d.jpg", BOX))
    queries = [query(0, "cup", "a.jpg", sightings=seen), query(1, "cup", "b.jpg")]
    assert choose_references(queries, is_video=False) == [
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
    result = choose_references(queries, is_video=False)
    shown = [each and each.image for each in result]
    assert shown == ["c.jpg", "shot1.png", "c.jpg", "a.jpg", "a.jpg", "a.jpg", None]
    assert result[0] == MarkedReference(
        "c.jpg", (3.0, 0.0, 90.0, 50.0), ReferenceOrigin.OTHER_SCENE
    )
    assert result[1] == MarkedReference("shot1.png", None, ReferenceOrigin.WHOLE_SHOT)
    in_a_circle = choose_references([query(i, "cup", f"{i}.jpg") for i in range(3)], is_video=False)
    assert [each and each.image for each in in_a_circle] == ["1.jpg", "2.jpg", "0.jpg"]


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


def test_the_pixels_of_a_mark() -> None:
    """After a change that is meant, raise ``RECIPE`` and write the checksums again."""
    assert REFERENCE_RECIPE == 1
    drawn = {m: marked_crop(scenery(700, 500), (300.0, 200.0, 360.0, 290.0), m) for m in MARKS}
    assert {pixels.shape for pixels in drawn.values()} == {(270, 256, 3)}
    checksums = {mark: sha256(pixels.tobytes()).hexdigest() for mark, pixels in drawn.items()}
    assert {mark: checksum[:16] for mark, checksum in checksums.items()} == CHECKSUMS


def test_a_large_scene_is_shown_around_the_object_and_shrunk() -> None:
    scene = scenery(2000, 1500)
    drawn = marked_crop(scene, (500.0, 500.0, 900.0, 700.0), "box")
    assert drawn.shape == (512, LONGEST_REFERENCE_SIDE, 3)
    left, top, right, bottom = 341, 171, 683, 341  # from x 100, y 300, by 1024 / 1200
    assert drawn[top, 500].tolist() == drawn[bottom, 500].tolist() == RED
    assert drawn[250, left].tolist() == drawn[250, right].tolist() == RED
    untouched = scene.crop((100, 300, 1300, 900)).resize((1024, 512), Image.Resampling.BICUBIC)
    inside = np.s_[top + 8 : bottom - 8, left + 8 : right - 8]
    assert (drawn[inside] == np.asarray(untouched)[inside]).all()


DEMO = "FindIt_Demo_insdet_xyxy_json_vp-box"


def test_what_cannot_be_read_or_written_is_named(
    tmp_path: Path,
    lmu_data: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    load_dataset("FindIt_Demo_insdet_xyxy_json")
    images = tmp_path / "Demo"
    shutil.copytree(lmu_data / "images" / "Demo", images, ignore=shutil.ignore_patterns("vp"))
    monkeypatch.setenv("FINDIT_IMAGES", f"Demo={images}")
    (images / "photos" / "motorcycle_left.png").unlink()
    queries = load_dataset(DEMO).queries
    assert [(images / q.support[0]).is_file() for q in queries.values()] == [False] * 3 + [True] * 4
    assert "3 images cannot be marked; the first: " in caplog.text
    assert "motorcycle_left.png is missing" in caplog.text

    def drawn() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in (images / "vp").rglob("*.png")}

    before = drawn()
    load_dataset(DEMO)
    assert drawn() == before
    shutil.rmtree(images / "vp")
    (images / "vp").write_text("in the way")
    with pytest.raises(FolderError, match=r"vp/box/\w+\.png cannot be written .*FINDIT_IMAGES="):
        load_dataset(DEMO)
