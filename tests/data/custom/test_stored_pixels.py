"""Boxes on pictures that viewers turn, and boxes without known units: asked for, never guessed."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

from vlmeval_findit.benchmarks.findit.annotation_tables import find_table, read_table
from vlmeval_findit.boxes.representation import Corners
from vlmeval_findit.cli import main
from vlmeval_findit.core.image_files import Size
from vlmeval_findit.data.annotated_samples import AnnotatedBox, Units, detection_samples
from vlmeval_findit.data.custom.stored_pixels import (
    CheckedImage,
    ExifPixels,
    to_stored,
    to_stored_pixels,
    turned_size,
)

pytestmark = pytest.mark.usefixtures("data_root")


ORIENTATIONS = range(1, 9)
WIDE, SQUARE = (60, 40), (50, 50)
STORED = (8, 4, 24, 14)
"""Where the object is in the stored pixels: in no picture does it lie the same when turned."""


# --- the arithmetic -------------------------------------------------------------------------------

sides = st.integers(1, 10_000)
quarters = st.integers(-40_000, 40_000).map(lambda n: n / 4)


@given(st.sampled_from(ORIENTATIONS), sides, sides, quarters, quarters, quarters, quarters)
def test_turning_and_back_is_nothing(
    orientation: int, w: int, h: int, x1: float, y1: float, x2: float, y2: float
) -> None:
    box, size = (x1, y1, x2, y2), (w, h)
    # A picture that is stored as this one is shown, and shown as this one is stored.
    back, shown = {6: 8, 8: 6}.get(orientation, orientation), turned_size(size, orientation)
    assert to_stored(to_stored(box, orientation, size), back, shown) == box


def photograph(path: Path, orientation: int, size: Size = WIDE) -> Path:
    """A picture with one bright object at :data:`STORED`, that a viewer turns."""
    pixels = np.zeros((size[1], size[0], 3), dtype=np.uint8)
    x1, y1, x2, y2 = STORED
    pixels[y1:y2, x1:x2] = 255
    exif = Image.Exif()
    exif[0x0112] = orientation
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, exif=exif)
    return path


def as_seen(path: Path) -> tuple[Corners, Size]:
    """Where a viewer sees the object, and at which size it shows the picture."""
    with Image.open(path) as picture:
        shown = np.asarray(ImageOps.exif_transpose(picture).convert("L")) > 128
    rows, columns = np.nonzero(shown)
    box = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
    return tuple(map(float, box)), (shown.shape[1], shown.shape[0])  # type: ignore[return-value]


# --- importing ------------------------------------------------------------------------------------


def import_csv(tmp_path, rows: Sequence[Sequence[object]], *flags: str) -> int:
    path = tmp_path / "boxes.csv"
    with path.open("w", newline="") as f:
        writer = csv.writer(f)
        writer.writerow(["image", "label", "x1", "y1", "x2", "y2", "width", "height"])
        writer.writerows(rows)
    pictures = str(tmp_path / "pictures")
    return main(["data", "import", str(path), "--image-root", pictures, "--name", "Mine", *flags])


def imported() -> list[tuple[object, ...]]:
    return [
        (q.width, q.height, tuple(round(n, 6) for n in q.truth.boxes[0]))
        for q in read_table(find_table("Mine"))
    ]


@pytest.mark.parametrize("orientation", range(2, 9))
@pytest.mark.parametrize("size", [WIDE, SQUARE], ids=str)
def test_a_picture_that_viewers_turn_is_asked_for(
    tmp_path, orientation: int, size: Size, capsys
) -> None:
    path = photograph(tmp_path / "pictures" / "a.png", orientation, size)
    photograph(tmp_path / "pictures" / "b.png", 1)
    box, _ = as_seen(path)
    rows = [["a.png", "x", *box, "", ""], ["b.png", "x", *STORED, "", ""]]
    assert import_csv(tmp_path, rows) == 2
    said = capsys.readouterr().err
    assert "1 images have an EXIF orientation" in said
    assert f"the first: a.png (orientation {orientation})" in said
    assert "--exif stored or --exif turned" in said
    assert not list((tmp_path / "lmu").iterdir())
    assert import_csv(tmp_path, rows, "--exif", "turned") == 0
    assert imported() == [(*size, STORED), (*WIDE, STORED)]
    rows[0][2:6] = STORED
    assert import_csv(tmp_path, rows, "--exif", "stored", "--replace") == 0
    assert imported() == [(*size, STORED), (*WIDE, STORED)]


@pytest.mark.parametrize("drawn", ExifPixels)
def test_the_stated_size_says_it_where_it_fits_only_one(
    tmp_path, drawn: ExifPixels, capsys
) -> None:
    paths = [photograph(tmp_path / "pictures" / f"{n}.png", n) for n in (6, 8, 5, 7)]
    rows = []
    for path in paths:
        box, size = as_seen(path) if drawn is ExifPixels.TURNED else (STORED, WIDE)
        rows.append([path.name, "x", *box, *size])
    assert import_csv(tmp_path, rows) == 0
    assert imported() == [(*WIDE, STORED)] * 4
    assert (
        "4 images with an EXIF orientation, the first: 6.png: boxes refer to the "
        f"{drawn.value} image, whose size the annotations state\n"
    ) in capsys.readouterr().out
    other = ExifPixels.STORED if drawn is ExifPixels.TURNED else ExifPixels.TURNED
    assert import_csv(tmp_path, rows, "--exif", other.value, "--replace") == 2
    assert (
        f"--exif {other.value}, but the size stated for 6.png is that of the {drawn.value} image"
    ) in capsys.readouterr().err


def test_another_size_than_either_is_refused(tmp_path, capsys) -> None:
    photograph(tmp_path / "pictures" / "a.png", 6)
    assert import_csv(tmp_path, [["a.png", "x", *STORED, 61, 40]], "--exif", "turned") == 2
    assert "is 60x40, but its annotations are for 61x40" in capsys.readouterr().err
    # The sides exchanged, of a picture that nobody turns.
    photograph(tmp_path / "pictures" / "b.png", 1)
    assert import_csv(tmp_path, [["b.png", "x", *STORED, 40, 60]]) == 2
    assert "is 60x40, but its annotations are for 40x60" in capsys.readouterr().err


@pytest.mark.parametrize("stated", [("", ""), (60, 40), (20_001, 20_000)])
def test_a_bomb_is_not_decoded(
    tmp_path, monkeypatch, stated: tuple[object, object], capsys
) -> None:
    from vlmeval_findit.core.image_files import Header
    from vlmeval_findit.data.custom import stored_pixels as pictures

    photograph(tmp_path / "pictures" / "a.png", 6)
    monkeypatch.setattr(pictures, "header", lambda _: Header((20_000, 20_000), "RGB", "PNG"))
    monkeypatch.setattr(pictures, "orientation", lambda _: pytest.fail("was decoded"))
    monkeypatch.setattr(pictures, "problem", lambda *_: pytest.fail("was decoded"))
    assert import_csv(tmp_path, [["a.png", "x", *STORED, *stated]]) == 2
    assert "a.png is 20000x20000" in capsys.readouterr().err


def jsonl(tmp_path, orientation: int, drawn: ExifPixels) -> list[str]:
    """The picture as the second frame of a video; the first is turned otherwise, without a box."""
    path = photograph(tmp_path / "pictures" / "a.png", orientation)
    photograph(tmp_path / "pictures" / "none.png", 8)
    box = as_seen(path)[0] if drawn is ExifPixels.TURNED else STORED
    line = {"images": ["none.png", "a.png"], "label": "x", "boxes": [[], [box]]}
    file = tmp_path / "queries.jsonl"
    file.write_text(json.dumps(line))
    return [str(file), "--image-root", str(path.parent)]


@pytest.mark.parametrize(("drawn", "orientation"), [(ExifPixels.TURNED, 6), (ExifPixels.STORED, 3)])
def test_a_frame_of_a_video_is_asked_for_too(
    tmp_path, drawn: ExifPixels, orientation: int, capsys
) -> None:
    given = ["data", "import", *jsonl(tmp_path, orientation, drawn), "--name", "Mine"]
    assert main(given) == 2
    assert "--exif stored or --exif turned" in capsys.readouterr().err
    assert main([*given, "--exif", drawn.value]) == 0
    assert imported() == [(*WIDE, STORED)]


@given(st.sampled_from(ORIENTATIONS), st.sampled_from(Units), st.randoms(use_true_random=False))
def test_fractions_and_pixels_are_placed_alike(
    orientation: int, units: Units, rng: random.Random
) -> None:
    """Boxes in whole pixels, given in either unit, on the turned picture."""
    size = (rng.randint(2, 500), rng.randint(2, 500))
    w, h = turned_size(size, orientation)
    x1, y1 = rng.randint(0, w - 1), rng.randint(0, h - 1)
    box = (x1, y1, rng.randint(x1 + 1, w), rng.randint(y1 + 1, h))
    per = (w, h, w, h) if units is Units.FRACTIONS else (1, 1, 1, 1)
    given = tuple(n / side for n, side in zip(box, per, strict=True))
    objects = [("a", AnnotatedBox(given, "f", "x"))]  # type: ignore[arg-type]
    made = detection_samples(Path("f"), Path(), {"a": None}, objects, units=units)
    pictures = {"a": CheckedImage(size, orientation, None)}
    found = to_stored_pixels(made, pictures, ExifPixels.TURNED)[0][0].boxes[0].corners
    expected = to_stored(box, orientation, size) if orientation != 1 else box
    assert found == pytest.approx(expected, abs=1e-9)


# --- units ----------------------------------------------------------------------------------------

SMALL = [0.125, 0.1, 0.4, 0.35]


def test_boxes_that_may_be_fractions_are_asked_for(tmp_path, capsys) -> None:
    photograph(tmp_path / "pictures" / "a.png", 1)
    rows = [["a.png", "x", *SMALL, "", ""], ["a.png", "y", 0, 0, 1, 1, "", ""]]
    assert import_csv(tmp_path, rows) == 2
    said = capsys.readouterr().err
    assert "boxes.csv: none of the 2 boxes has a number above 1" in said
    assert "--units fractions or --units pixels" in said
    assert import_csv(tmp_path, rows, "--units", "fractions") == 0
    assert imported() == [(60, 40, (7.5, 4, 24, 14)), (60, 40, (0, 0, 60, 40))]
    assert import_csv(tmp_path, rows, "--units", "pixels", "--replace") == 0
    assert imported() == [(60, 40, tuple(SMALL)), (60, 40, (0, 0, 1, 1))]


def test_one_number_above_one_is_enough(tmp_path) -> None:
    photograph(tmp_path / "pictures" / "a.png", 1)
    rows = [["a.png", "x", *SMALL, "", ""], ["a.png", "y", 0, 0, 1, 1.25, "", ""]]
    assert import_csv(tmp_path, rows) == 0
    assert imported() == [(60, 40, tuple(SMALL)), (60, 40, (0, 0, 1, 1.25))]
