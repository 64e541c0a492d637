"""Boxes on images that EXIF turns, and boxes without known units: asked for, never guessed."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from every_pair import every_pair
from PIL import Image, ImageOps

from vlmeval_findit.benchmarks.findit import Family, find_table, read_table
from vlmeval_findit.boxes import Corners
from vlmeval_findit.cli import main
from vlmeval_findit.data import (
    AnnotatedBox,
    CheckedImage,
    ExifPixels,
    Sample,
    Samples,
    Units,
    mask_to_stored,
    to_stored_pixels,
)
from vlmeval_findit.data.custom import exif_pixels
from vlmeval_findit.marks import packed_mask
from vlmeval_findit.storage import ImageHeader, Size, decode_image

pytestmark = pytest.mark.usefixtures("data_root")

WIDE, SQUARE = (60, 40), (50, 50)
STORED = (8, 4, 24, 14)
"""Where the object is in the stored pixels: in no image does it lie the same when turned."""


def photograph(path: Path, orientation: int, size: Size = WIDE) -> Path:
    """Write an image that a viewer turns, with a bright object at :data:`STORED`."""
    pixels = np.zeros((size[1], size[0], 3), dtype=np.uint8)
    x1, y1, x2, y2 = STORED
    pixels[y1:y2, x1:x2] = 255
    exif = Image.Exif()
    exif[0x0112] = orientation
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, exif=exif)
    return path


def shown(path: Path) -> tuple[Corners, Size]:
    """Return the object's box as a viewer shows it, and the size of what the viewer shows."""
    with Image.open(path) as image:
        bright = np.asarray(ImageOps.exif_transpose(image).convert("L")) > 128
    rows, columns = np.nonzero(bright)
    box = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
    return tuple(map(float, box)), (bright.shape[1], bright.shape[0])  # type: ignore[return-value]


def import_csv(tmp_path, rows: Sequence[Sequence[object]], *flags: str) -> int:
    path = tmp_path / "boxes.csv"
    with path.open("w", newline="") as f:
        writer = csv.writer(f)
        writer.writerow(["image", "label", "x1", "y1", "x2", "y2", "width", "height"])
        writer.writerows(rows)
    images = str(tmp_path / "images")
    return main(["data", "import", str(path), "--image-root", images, "--name", "Mine", *flags])


def imported() -> list[tuple[object, ...]]:
    return [
        (q.width, q.height, tuple(round(n, 6) for n in q.truth.boxes[0]))
        for q in read_table(find_table("Mine"))
    ]


# --- EXIF -----------------------------------------------------------------------------------------


@pytest.mark.sees("data import --exif")
@pytest.mark.parametrize(
    ("orientation", "size"), [*((each, WIDE) for each in range(2, 9)), (6, SQUARE)]
)
def test_an_image_that_viewers_turn_is_asked_for(
    tmp_path, orientation: int, size: Size, capsys
) -> None:
    path = photograph(tmp_path / "images" / "a.png", orientation, size)
    photograph(tmp_path / "images" / "b.png", 1)
    rows = [["a.png", "x", *shown(path)[0], "", ""], ["b.png", "x", *STORED, "", ""]]
    assert import_csv(tmp_path, rows) == 2
    error = capsys.readouterr().err
    assert "1 images have an EXIF orientation" in error
    assert f"the first: a.png (orientation {orientation})" in error
    assert "--exif stored or --exif turned" in error
    assert not list((tmp_path / "lmu").iterdir())
    assert import_csv(tmp_path, rows, "--exif", "turned") == 0
    assert imported() == [(*size, STORED), (*WIDE, STORED)]
    rows[0][2:6] = STORED
    assert import_csv(tmp_path, rows, "--exif", "stored", "--replace") == 0
    assert imported() == [(*size, STORED), (*WIDE, STORED)]


@every_pair(
    "suffix, pixels, turn", [".png", ".jpg", ".webp", ".tif"], product(ExifPixels, range(1, 9))
)
def test_boxes_match_the_pixels_that_a_model_sees(
    tmp_path, suffix: str, pixels: ExifPixels, turn: int
) -> None:
    """Pillow turns the pixels of TIFF while it decodes them, and those of no other format."""
    path = photograph(tmp_path / "images" / f"a{suffix}", turn)
    box = STORED if pixels is ExifPixels.STORED else shown(path)[0]
    assert import_csv(tmp_path, [["a" + suffix, "x", *box, "", ""]], "--exif", pixels.value) == 0
    (query,) = read_table(find_table("Mine"))
    image = decode_image(path)
    assert image.size == (query.width, query.height)
    x1, y1, x2, y2 = (round(number) for number in query.truth.boxes[0])
    bright = np.asarray(image.convert("L")) > 128
    assert bright[y1:y2, x1:x2].mean() > 0.9
    assert bright.sum() == pytest.approx((x2 - x1) * (y2 - y1), rel=0.2)


@pytest.mark.parametrize("turn", [5, 6, 7, 8])
def test_the_stated_size_tells_a_tiffs_orientation(tmp_path, turn: int) -> None:
    path = photograph(tmp_path / "images" / "a.tif", turn)
    box, size = shown(path)
    assert import_csv(tmp_path, [["a.tif", "x", *box, *size]]) == 0
    assert imported() == [(*size, tuple(map(float, box)))]


def test_the_turned_size_tells_unless_the_flag_does(tmp_path, capsys) -> None:
    paths = [photograph(tmp_path / "images" / f"{n}.png", n) for n in (6, 8, 5, 7)]
    rows = [[path.name, "x", *shown(path)[0], *shown(path)[1]] for path in paths]
    assert import_csv(tmp_path, rows) == 0
    assert imported() == [(*WIDE, STORED)] * 4
    note = "images with an EXIF orientation: boxes refer to the turned image (4), the first"
    assert note in capsys.readouterr().out


@pytest.mark.parametrize("pixels", ExifPixels)
@pytest.mark.parametrize("suffix", ["png", "tif"])
def test_the_stored_size_tells_nothing(tmp_path, pixels: ExifPixels, suffix: str, capsys) -> None:
    """Converters write the size of the file, while boxes were drawn in a browser."""
    path = photograph(tmp_path / "images" / f"a.{suffix}", 6)
    box = STORED if pixels is ExifPixels.STORED else shown(path)[0]
    rows = [[path.name, "x", *box, *WIDE]]
    assert import_csv(tmp_path, rows) == 2
    assert "--exif stored or --exif turned" in capsys.readouterr().err
    assert import_csv(tmp_path, rows, "--exif", pixels.value) == 0
    stored, size = (STORED, WIDE) if suffix == "png" else shown(path)
    assert imported() == [(*size, tuple(map(float, stored)))]


def test_boxes_of_one_image_only_are_in_the_question(tmp_path, capsys) -> None:
    photograph(tmp_path / "images" / "a.png", 6)
    rows = [["a.png", "x", 2, 3, 30, 55, *WIDE], ["a.png", "y", 2, 3, 20, 30, *WIDE]]
    assert import_csv(tmp_path, rows) == 2
    assert "Of 2 boxes 1 lie in the stored images, 2 in the turned ones." in capsys.readouterr().err


def test_another_size_and_a_bomb_are_refused(tmp_path, monkeypatch, capsys) -> None:
    for name, orientation, size in (("a.png", 6, (61, 40)), ("b.png", 1, (40, 60))):
        photograph(tmp_path / "images" / name, orientation)
        assert import_csv(tmp_path, [[name, "x", *STORED, *size]], "--exif", "turned") == 2
        why = f"is 60x40, but its annotations are for {size[0]}x{size[1]}"
        assert why in capsys.readouterr().err
    monkeypatch.setattr(
        exif_pixels, "read_image_header", lambda _: ImageHeader((20_000, 20_000), "RGB", "PNG")
    )
    for name in ("orientation", "image_problem"):
        monkeypatch.setattr(exif_pixels, name, lambda *_: pytest.fail("was decoded"))
    for stated in (("", ""), (20_001, 20_000)):
        assert import_csv(tmp_path, [["a.png", "x", *STORED, *stated]]) == 2
        assert "a.png is 20000x20000" in capsys.readouterr().err


def test_a_frame_of_a_video_is_asked_for_too(tmp_path, capsys) -> None:
    """The first frame is turned in another way, and has no box."""
    path = photograph(tmp_path / "images" / "a.png", 6)
    photograph(tmp_path / "images" / "none.png", 8)
    line = {"images": ["none.png", "a.png"], "label": "x", "boxes": [[], [shown(path)[0]]]}
    file = tmp_path / "queries.jsonl"
    file.write_text(json.dumps(line))
    command = ["data", "import", str(file), "--image-root", str(path.parent), "--name", "Mine"]
    assert main(command) == 2
    assert "--exif stored or --exif turned" in capsys.readouterr().err
    assert main([*command, "--exif", "turned"]) == 0
    assert imported() == [(*WIDE, STORED)]


@pytest.mark.parametrize("units", Units)
def test_masks_are_turned_with_their_boxes(units: Units) -> None:
    """The image is stored as 4x2 and shown as 2x4."""
    mask = np.array([[1, 1], [0, 1], [0, 0], [0, 0]])
    corners = (0, 0, 2, 2)
    if units is not Units.PIXELS:
        corners = (0, 0, units.scale, units.scale / 2)
    box = AnnotatedBox(corners, "f", mask=packed_mask(mask))
    query = Sample(("a.jpg",), "cat", (box,), "f")
    samples = Samples(Path("f"), Path(), Family.OBJDET, (query,), units)
    images = {"a.jpg": CheckedImage((4, 2), 6, None)}
    (turned,) = to_stored_pixels(samples, images, ExifPixels.TURNED).queries
    assert turned.boxes[0].corners == (0, 0, 2, 2)
    assert turned.boxes[0].mask == packed_mask(mask_to_stored(mask, 6)) != box.mask
    (stored,) = to_stored_pixels(samples, images, ExifPixels.STORED).queries
    assert stored.boxes[0].mask == box.mask


def test_boxes_that_may_be_fractions_are_asked_for(tmp_path, capsys) -> None:
    small = [0.125, 0.1, 0.4, 0.35]
    photograph(tmp_path / "images" / "a.png", 1)
    rows = [["a.png", "x", *small, "", ""], ["a.png", "y", 0, 0, 1, 1, "", ""]]
    assert import_csv(tmp_path, rows) == 2
    error = capsys.readouterr().err
    assert "boxes.csv: each of the 2 boxes lies within the first pixel" in error
    assert "--units fractions or --units pixels" in error
    assert import_csv(tmp_path, rows, "--units", "fractions") == 0
    assert imported() == [(60, 40, (7.5, 4, 24, 14)), (60, 40, (0, 0, 60, 40))]
    assert import_csv(tmp_path, rows, "--units", "pixels", "--replace") == 0
    assert imported() == [(60, 40, tuple(small)), (60, 40, (0, 0, 1, 1))]
