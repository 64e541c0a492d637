"""Damaged, oversized and unusual image files: errors of a line, no traceback."""

from __future__ import annotations

import io
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from paths import ROOT
from PIL import Image

from vlmeval_findit.benchmarks.findit import FindItQuery, full_image, parse
from vlmeval_findit.boxes import Truth
from vlmeval_findit.models import as_they_are, for_provider
from vlmeval_findit.protocol import image, text
from vlmeval_findit.report import thumbnails
from vlmeval_findit.storage import (
    ImageFileError,
    ImageHeader,
    decode_image,
    header_problem,
    image_problem,
    orientation,
    read_image_header,
    unusable_rows,
)

SIZE = (48, 32)
PIXELS = np.random.default_rng(0).integers(0, 255, (SIZE[1], SIZE[0], 3), dtype=np.uint8)


def saved(kind: str, mode: str = "RGB", **options: object) -> bytes:
    out = io.BytesIO()
    Image.fromarray(PIXELS).convert(mode).save(out, kind, **options)  # type: ignore[arg-type]
    return out.getvalue()


def png_header(width: int, height: int) -> bytes:
    """A PNG of any size, of which there is nothing but the beginning."""
    result = b"\x89PNG\r\n\x1a\n"
    for name, data in (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(bytes(1000))),
        (b"IEND", b""),
    ):
        result += struct.pack(">I", len(data)) + name + data
        result += struct.pack(">I", zlib.crc32(name + data))
    return result


JUNK = b"Exif\0\0garbage, not TIFF"
WITH_JUNK = b"\xff\xe1" + struct.pack(">H", len(JUNK) + 2) + JUNK
MORE = {"save_all": True, "append_images": [Image.fromarray(255 - PIXELS)]}

IN_THE_HEADER = {  # what every check says
    "a page": (b"<!DOCTYPE html><html>", "is a web page, not an image"),
    # Pillow would run it in Ghostscript.
    "EPS": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 48 32\n", "is not an image that can be"),
    "400 megapixels": (png_header(20_000, 20_000), "is 20000x20000: more than 178 megapixels"),
    "floating point": (saved("TIFF", "F"), "has more than 8 bits a channel"),
}
BEHIND_IT = {  # what is said when it is decoded
    "JPEG, truncated": (saved("JPEG")[:-200], "does not decode (image file is truncated"),
    "PNG, a wrong byte": (saved("PNG")[:90] + b"\0\0\0\0" + saved("PNG")[94:], "does not decode ("),
}
GOOD = {
    "JPEG": saved("JPEG"),
    "JPEG with damaged metadata": (
        saved("JPEG")[:2]
        + b"\xff\xe1"
        + struct.pack(">H", len(JUNK) + 2)
        + JUNK
        + saved("JPEG")[2:]
    ),
    "CMYK": saved("JPEG", "CMYK"),
    "palette": saved("PNG", "P"),
    "transparent": saved("PNG", "RGBA"),
    "WebP": saved("WEBP"),
    "TIFF": saved("TIFF"),
    "MPO": saved("MPO", **MORE),
    "animated GIF": saved("GIF", **MORE),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "picture.png"


def checked(path: Path, size: tuple[int, int] | None) -> str | None:
    """What a run's check says of a scene, or of a reference shot, whose size is not known."""
    scene, shot = ((path.name,), ()) if size else ((), (path.name,))
    query = FindItQuery(0, "x", *(size or SIZE), scene, Truth((), ()), shot)
    result = unusable_rows([query], path.parent)
    return result[0].why if result else None


@pytest.mark.parametrize("what", [*IN_THE_HEADER, *BEHIND_IT])
def test_an_image_that_cannot_be_used(path: Path, what: str) -> None:
    content, why = {**IN_THE_HEADER, **BEHIND_IT}[what]
    path.write_bytes(content)
    reply = str(image_problem(path, None))
    assert reply.startswith(why)
    assert "\n" not in reply
    assert checked(path, None) == (reply if what in IN_THE_HEADER else None)
    if what in BEHIND_IT:
        with pytest.raises(ImageFileError) as error:
            decode_image(path)
        assert str(error.value) == f"{path} {reply}"


@pytest.mark.parametrize("content", GOOD.values(), ids=GOOD)
def test_all_other_kinds_work(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert checked(path, SIZE) is image_problem(path, SIZE) is None
    assert read_image_header(path).size == as_they_are(path).sent == SIZE
    assert (decode_image(path).size, decode_image(path).mode) == (SIZE, "RGB")
    assert (thumbnails([path])[path].width, thumbnails([path])[path].height) == SIZE
    assert orientation(path).value == 1


def test_the_stored_pixels_are_decoded(path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    path.write_bytes(saved("PNG", exif=exif))
    assert np.array_equal(np.asarray(decode_image(path)), PIXELS)
    assert orientation(path).value == 6


@pytest.mark.parametrize(
    ("side", "is_stated", "why"),
    [
        (13_377, False, None),
        (13_378, False, "is 13378x13378: more than 178 megapixels, and no annotation"),
        (31_622, True, None),
        (31_623, True, "is 31623x31623: more than 1000 megapixels"),
    ],
)
def test_how_large_an_image_may_be(side: int, is_stated: bool, why: str | None) -> None:
    reply = header_problem(
        ImageHeader((side, side), "RGB", "PNG"), (side, side) if is_stated else None
    )
    assert reply is None if why is None else str(reply).startswith(why)


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pillow's limit where a small picture is far above it."""
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    yield
    assert Image.MAX_IMAGE_PIXELS == 100


@pytest.mark.usefixtures("small_limit")
def test_an_image_as_large_as_its_annotations_say_works(path: Path) -> None:
    path.write_bytes(saved("PNG"))
    with pytest.raises(Image.DecompressionBombError):
        Image.open(path)
    assert checked(path, SIZE) is image_problem(path, SIZE) is None
    assert np.array_equal(np.asarray(decode_image(path)), PIXELS)
    assert for_provider(path, 16).original == as_they_are(path).sent == SIZE
    assert len(thumbnails([path])) == 1
    _, record = full_image((image(str(path)), text("find")), parse("FindIt_Pascal_xyxy_json"))
    assert record.images[0]["sent"] == list(SIZE)


def test_an_image_larger_than_its_annotations_say_is_not_decoded(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Image.Image, "convert", lambda *_: pytest.fail("was decoded"))
    path.write_bytes(png_header(20_000, 20_000))
    assert image_problem(path, SIZE) == "is 20000x20000, but its annotations are for 48x32"


def test_what_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "folder.png").mkdir()
    for name, why in (("gone.png", "is missing"), ("folder.png", "is a folder, not an image")):
        assert image_problem(tmp_path / name, None) == checked(tmp_path / name, SIZE) == why


def test_only_one_function_opens_images() -> None:
    opening = re.compile(
        r"Image\.open\(|import Image\b.*\bopen|\bimread\(|\bimdecode\(|\bread_image\(|load_image\("
    )
    files = [
        path for part in ("vlmeval_findit", "training") for path in (ROOT / part).rglob("*.py")
    ]
    result = [path for path in files if opening.search(path.read_text(encoding="utf-8"))]
    assert result == [ROOT / "vlmeval_findit/storage/image_files.py"]
