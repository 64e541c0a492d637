"""Damaged, oversized and unusual image files: errors of a line, no traceback."""

from __future__ import annotations

import io
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vlmeval_findit.benchmarks.findit.benchmark import full_image
from vlmeval_findit.benchmarks.findit.dataset_names import parse
from vlmeval_findit.benchmarks.findit.findit_query import FindItQuery
from vlmeval_findit.boxes.box_records import Truth
from vlmeval_findit.core import image_files
from vlmeval_findit.core.image_files import (
    MOST,
    MOST_UNSTATED,
    Header,
    ImageFileError,
    decode,
    header,
    misfit,
    orientation,
    problem,
    unusable,
)
from vlmeval_findit.core.question import image, text
from vlmeval_findit.models.http.sent_images import as_they_are, for_provider
from vlmeval_findit.report.gallery import thumbnails

SIZE = (48, 32)
PIXELS = np.random.default_rng(0).integers(0, 255, (SIZE[1], SIZE[0], 3), dtype=np.uint8)


def saved(kind: str, mode: str = "RGB", **options: object) -> bytes:
    out = io.BytesIO()
    Image.fromarray(PIXELS).convert(mode).save(out, kind, **options)  # type: ignore[arg-type]
    return out.getvalue()


def png_header(width: int, height: int) -> bytes:
    """A PNG of any size, of which there is nothing but the beginning."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(bytes(1000)))
        + chunk(b"IEND", b"")
    )


ANIMATED = [Image.fromarray(PIXELS), Image.fromarray(255 - PIXELS)]

BAD = {
    "a page": (b"<!DOCTYPE html><html>", "is a web page, not an image"),
    # Pillow would run it in Ghostscript.
    "EPS": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 48 32\n", "is not an image that can be"),
    "400 megapixels": (png_header(20_000, 20_000), "is 20000x20000: more than 178 megapixels"),
    "floating point": (saved("TIFF", "F"), "has more than 8 bits a channel"),
}
"""Seen in the header: what every check says."""

DAMAGED = {
    "JPEG, truncated": (saved("JPEG")[:-200], "does not decode (image file is truncated"),
    "PNG, a wrong byte": (saved("PNG")[:90] + b"\0\0\0\0" + saved("PNG")[94:], "does not decode ("),
}
"""Seen when it is decoded."""

GOOD = {
    "JPEG": saved("JPEG"),
    "CMYK": saved("JPEG", "CMYK"),
    "palette": saved("PNG", "P"),
    "transparent": saved("PNG", "RGBA"),
    "WebP": saved("WEBP"),
    "TIFF": saved("TIFF"),
    "MPO": saved("MPO", save_all=True, append_images=ANIMATED[1:]),
    "animated GIF": (saved("GIF", save_all=True, append_images=ANIMATED[1:])),
}


@pytest.fixture
def file(tmp_path: Path) -> Callable[[bytes], Path]:
    def put(content: bytes) -> Path:
        path = tmp_path / "picture.png"
        path.write_bytes(content)
        return path

    return put


def checked(path: Path, size: tuple[int, int] | None) -> str | None:
    """What a run's check says of a scene, or of a reference shot, whose size is not known."""
    scene, shot = ((path.name,), ()) if size else ((), (path.name,))
    query = FindItQuery(0, "x", *(size or SIZE), scene, Truth((), ()), shot)
    result = unusable([query], path.parent)
    return result[0].why if result else None


@pytest.mark.parametrize(("content", "why"), BAD.values(), ids=BAD)
def test_an_image_that_cannot_be_used_is_seen_in_its_header(
    file: Callable[[bytes], Path], content: bytes, why: str
) -> None:
    path = file(content)
    for reply in (checked(path, None), problem(path, None)):
        assert reply is not None
        assert reply.startswith(why)
        assert "\n" not in reply


@pytest.mark.parametrize(("content", "why"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_image_is_seen_when_it_is_decoded(
    file: Callable[[bytes], Path], content: bytes, why: str
) -> None:
    path = file(content)
    assert checked(path, None) is None
    reply = problem(path, None)
    assert reply is not None
    assert reply.startswith(why)
    with pytest.raises(ImageFileError) as error:
        decode(path)
    assert str(error.value) == f"{path} {reply}"


@pytest.mark.parametrize("content", GOOD.values(), ids=GOOD)
def test_all_other_kinds_work(file: Callable[[bytes], Path], content: bytes) -> None:
    path = file(content)
    assert checked(path, SIZE) is None
    assert problem(path, SIZE) is None
    assert header(path).size == SIZE
    assert (decode(path).size, decode(path).mode) == (SIZE, "RGB")
    assert as_they_are(path).sent == SIZE
    assert (thumbnails([path])[path].width, thumbnails([path])[path].height) == SIZE


def test_the_stored_pixels_are_decoded(file: Callable[[bytes], Path]) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    path = file(saved("PNG", exif=exif))
    assert np.array_equal(np.asarray(decode(path)), PIXELS)
    assert orientation(path) == 6


def test_damaged_metadata_turns_nothing(file: Callable[[bytes], Path]) -> None:
    whole = saved("JPEG")
    junk = b"Exif\0\0garbage, not TIFF"
    path = file(whole[:2] + b"\xff\xe1" + struct.pack(">H", len(junk) + 2) + junk + whole[2:])
    assert orientation(path) == 1
    assert problem(path, SIZE) is None


# --- sizes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "stated", "why"),
    [
        ((13377, 13377), None, None),
        ((13378, 13378), None, "is 13378x13378: more than 178 megapixels, and no annotation"),
        ((20_000, 20_000), (20_000, 20_000), None),
        ((20_000, 20_000), (20_000, 20_001), "is 20000x20000, but its annotations are for 20000x2"),
        ((31_622, 31_622), (31_622, 31_622), None),
        ((31_623, 31_623), (31_623, 31_623), "is 31623x31623: more than 1000 megapixels"),
    ],
)
def test_how_large_an_image_may_be(
    size: tuple[int, int], stated: tuple[int, int] | None, why: str | None
) -> None:
    reply = misfit(Header(size, "RGB", "PNG"), stated)
    assert reply == why or (why is not None and str(reply).startswith(why))
    assert (size[0] * size[1] > (MOST if stated else MOST_UNSTATED)) == (
        why is not None and "more than" in why
    )


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pillow's limit where a small picture is far above it."""
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    yield
    assert Image.MAX_IMAGE_PIXELS == 100


@pytest.mark.usefixtures("small_limit")
def test_an_image_as_large_as_its_annotations_say_works(file: Callable[[bytes], Path]) -> None:
    path = file(saved("PNG"))
    with pytest.raises(Image.DecompressionBombError):
        Image.open(path)
    assert checked(path, SIZE) is None
    assert problem(path, SIZE) is None
    assert np.array_equal(np.asarray(decode(path)), PIXELS)
    assert for_provider(path, 16).original == SIZE
    assert as_they_are(path).sent == SIZE
    assert len(thumbnails([path])) == 1
    _, record = full_image((image(str(path)), text("find")), parse("FindIt_Pascal_xyxy_json"))
    assert record.images[0]["sent"] == list(SIZE)


def test_an_image_larger_than_its_annotations_say_is_not_decoded(
    file: Callable[[bytes], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Image.Image, "convert", lambda *_: pytest.fail("was decoded"))
    path = file(png_header(20_000, 20_000))
    assert problem(path, SIZE) == "is 20000x20000, but its annotations are for 48x32"


# --- files ----------------------------------------------------------------------------------------


def test_what_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "folder.png").mkdir()
    whys = {"gone.png": "is missing", "folder.png": "is a folder, not an image"}
    for name, why in whys.items():
        assert problem(tmp_path / name, None) == checked(tmp_path / name, SIZE) == why


def test_only_one_function_opens_images() -> None:
    root = Path(image_files.__file__).parents[2]
    opening = re.compile(
        r"Image\.open\(|import Image\b.*\bopen|\bimread\(|\bimdecode\(|\bread_image\(|load_image\("
    )
    result = [
        str(path.relative_to(root))
        for folder in ("vlmeval_findit", "training")
        for path in sorted((root / folder).rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if opening.search(line)
    ]
    assert set(result) == {"vlmeval_findit/core/image_files.py"}
