"""A JPEG without its pixels is refused exactly where the whole file is."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from vlmeval_findit.storage import (
    ImageBytes,
    ImageFileError,
    decode_image,
    read_image_header,
    stored_pixels,
    without_pixels,
)

NOISE = np.random.default_rng(0).integers(0, 255, (6, 8, 3), dtype=np.uint8)
PICTURE = Image.fromarray(NOISE).resize((64, 48))


def turned(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def saved(kind: str = "JPEG", **options: object) -> bytes:
    out = io.BytesIO()
    PICTURE.save(out, kind, **options)
    return out.getvalue()


PLAIN = {
    "baseline": saved(),
    "restart markers": saved(restart_marker_rows=1),
    "metadata with FF D9": saved(exif=turned(1), comment=b"\xff\xd9"),
}
OTHERS = {
    "progressive": saved(progressive=True),
    "without an end": saved()[:-2],
    "PNG": saved("PNG"),
    "nothing": b"",
    "the beginning": b"\xff\xd8\xff\xe0\x00",
    "another picture in the pixels": saved()[:-20] + saved(),
}


@pytest.mark.parametrize("name", PLAIN)
def test_the_head_of_a_baseline_jpeg_has_its_size(name: str) -> None:
    head = without_pixels(memoryview(PLAIN[name]))
    assert head is not None
    assert PLAIN[name].startswith(head[:-2])
    assert head.endswith(b"\xff\xd9")
    assert decode_image(io.BytesIO(head)).size == PICTURE.size


@pytest.mark.parametrize("name", OTHERS)
def test_any_other_file_is_read_whole(name: str) -> None:
    assert without_pixels(memoryview(OTHERS[name])) is None


def refused(data: bytes) -> bool:
    try:
        decode_image(ImageBytes("a.jpg", data))
    except ImageFileError:
        return True
    return False


def refused_unread(data: bytes) -> bool:
    try:
        stored_pixels(ImageBytes("a.jpg", data))
    except ImageFileError:
        return True
    return False


@given(st.sampled_from([*PLAIN.values(), OTHERS["progressive"]]), st.floats(0, 1))
def test_every_partial_download_is_refused(whole: bytes, share: float) -> None:
    part = whole[: int(share * (len(whole) - 3))]
    assert refused(part)
    assert refused_unread(part)


@given(
    st.sampled_from([*PLAIN.values(), OTHERS["progressive"]]),
    st.dictionaries(st.floats(0, 1), st.integers(0, 255), min_size=1, max_size=20),
)
def test_damaged_bytes_are_refused_where_decoding_refuses(
    whole: bytes, changes: dict[float, int]
) -> None:
    data = bytearray(whole)
    for share, value in changes.items():
        data[int(share * (len(data) - 1))] = value
    file = ImageBytes("a.jpg", bytes(data))
    if refused_unread(bytes(data)):
        assert refused(bytes(data))
        return
    stored = stored_pixels(file)
    assert stored.header == read_image_header(file)
    if refused(bytes(data)):
        assert not stored.are_shown, "what is not sent as it is, is decoded"


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_turned_pixels_are_not_shown_as_stored(kind: str) -> None:
    assert stored_pixels(ImageBytes("a", saved(kind))).are_shown
    assert stored_pixels(ImageBytes("a", saved(kind, exif=turned(1)))).are_shown
    assert not stored_pixels(ImageBytes("a", saved(kind, exif=turned(6)))).are_shown


def test_transparent_pixels_are_not_shown_as_stored() -> None:
    hidden = tuple(map(int, NOISE[0, 0]))
    image = Image.fromarray(NOISE)
    for key, opaque in ((hidden, False), ((1, 2, 3), True)):
        out = io.BytesIO()
        image.save(out, "PNG", transparency=key)
        assert stored_pixels(ImageBytes("a.png", out.getvalue())).are_shown is opaque
