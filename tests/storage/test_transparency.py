"""Transparent images are laid on white; opaque ones keep every pixel."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from every_pair import every_pair
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from vlmeval_findit.api import image_in_memory
from vlmeval_findit.storage import (
    TRANSPARENT,
    check_image,
    content_of,
    decode_image,
    read_image_header,
    shows_transparency,
)

WHITE = (255, 255, 255)
RED = (255, 0, 0)
SIDE = 8


def saved(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def half(mode: str, clear: Any, full: Any) -> Image.Image:
    """Return an image whose left half is clear and whose right half is full."""
    image = Image.new(mode, (SIDE, SIDE), clear)
    image.paste(full, (SIDE // 2, 0, SIDE, SIDE))
    return image


def palette(clear_index: int = 3) -> Image.Image:
    """Return a palette image: left the index of a black entry, right of a red one."""
    image = Image.new("P", (SIDE, SIDE), clear_index)
    image.putpalette([*RED, *(0, 0, 0) * 3])
    image.paste(0, (SIDE // 2, 0, SIDE, SIDE))
    return image


def png(depth: int, colour: int, rows: bytes, key: bytes) -> bytes:
    """Return a PNG as Pillow does not write it: ``rows`` are packed, without filter bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    stride = len(rows) // SIDE
    lines = b"".join(b"\0" + rows[at : at + stride] for at in range(0, len(rows), stride))
    head = struct.pack(">IIBBBBB", SIDE, SIDE, depth, colour, 0, 0, 0)
    parts = chunk(b"IHDR", head), chunk(b"tRNS", key), chunk(b"IDAT", zlib.compress(lines))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts) + chunk(b"IEND", b"")


HALF_CLEAR: Mapping[str, tuple[Callable[[], bytes], tuple[int, int, int]]] = {
    "RGBA over black": (lambda: saved(half("RGBA", (0, 0, 0, 0), (*RED, 255))), RED),
    "RGBA over a hidden colour": (lambda: saved(half("RGBA", (9, 200, 30, 0), (*RED, 255))), RED),
    "LA": (lambda: saved(half("LA", (0, 0), (60, 255))), (60, 60, 60)),
    "P, one clear entry": (lambda: saved(palette(), transparency=3), RED),
    "P, an alpha for each entry": (
        lambda: saved(palette(), transparency=bytes([255, 255, 255, 0])),
        RED,
    ),
    "RGB, a colour key": (
        lambda: saved(half("RGB", (0, 0, 0), RED), transparency=(0, 0, 0)),
        RED,
    ),
    "L, a grey key": (lambda: saved(half("L", 0, 60), transparency=0), (60, 60, 60)),
    "1, black is clear": (lambda: saved(half("1", 1, 0), transparency=1), (0, 0, 0)),
    "L in 4 bits": (lambda: png(4, 0, b"\x55\x55\x11\x11" * SIDE, b"\0\5"), (17, 17, 17)),
    "L in 2 bits": (lambda: png(2, 0, b"\xaa\x55" * SIDE, b"\0\2"), (85, 85, 85)),
    "RGB in 16 bits": (
        lambda: png(16, 2, (b"\x12\x34" * 12 + b"\xff\xff\0\0\0\0" * 4) * SIDE, b"\x12\x34" * 3),
        RED,
    ),
    "RGBA in 16 bits": (
        lambda: png(16, 6, (bytes(32) + b"\xff\xff\0\0\0\0\xff\xff" * 4) * SIDE, b""),
        RED,
    ),
    "GIF": (lambda: saved(palette(), "GIF", transparency=3), RED),
    "WebP": (
        lambda: saved(half("RGBA", (0, 0, 0, 0), (*RED, 255)), "WEBP", lossless=True, exact=True),
        RED,
    ),
    "TIFF": (lambda: saved(half("RGBA", (0, 0, 0, 0), (*RED, 255)), "TIFF"), RED),
    "TIFF, LA": (lambda: saved(half("LA", (0, 0), (60, 255)), "TIFF"), (60, 60, 60)),
    "TIFF, PA": (
        lambda: saved(half("RGBA", (0, 0, 0, 0), (*RED, 255)).convert("PA"), "TIFF"),
        RED,
    ),
    "JPEG 2000": (
        lambda: saved(half("RGBA", (0, 0, 0, 0), (*RED, 255)), "JPEG2000", irreversible=False),
        RED,
    ),
}


@pytest.mark.parametrize("name", HALF_CLEAR)
def test_transparent_pixels_become_white(name: str, tmp_path: Path) -> None:
    made, shown = HALF_CLEAR[name]
    path = tmp_path / "image"
    try:
        path.write_bytes(made())
    except (KeyError, OSError, ValueError) as error:
        pytest.skip(f"Pillow does not write it here: {error}")
    pixels = np.asarray(decode_image(path))
    assert (pixels[:, : SIDE // 2] == WHITE).all()
    assert (pixels[:, SIDE // 2 :] == shown).all()
    assert read_image_header(path).may_be_transparent
    assert shows_transparency(path)
    assert content_of(path).endswith(TRANSPARENT)
    check_image(path)


def test_half_transparent_pixels_are_mixed_with_white(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.new("RGBA", (2, 2), (0, 0, 0, 128)).save(path)
    assert np.asarray(decode_image(path)).ravel().tolist() == [127] * 12


@every_pair("mode, kind", ["RGBA", "LA", "RGB", "L", "P"], ["PNG", "WEBP", "TIFF"])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=10)
def test_opaque_images_keep_every_pixel(mode: str, kind: str, seed: int) -> None:
    noise = np.random.default_rng(seed).integers(0, 256, (25, 35, 4), dtype=np.uint8)
    noise[:, :, 3] = 255
    image = Image.fromarray(noise).convert(mode)
    before = io.BytesIO(saved(image, kind, **({"lossless": True} if kind == "WEBP" else {})))
    expected = np.asarray(Image.open(before).convert("RGB"))
    assert np.array_equal(np.asarray(decode_image(before)), expected)
    assert not shows_transparency(before)


def test_a_colour_key_that_no_pixel_has_hides_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.new("RGB", (4, 4), (1, 2, 3)).save(path, transparency=(9, 9, 9))
    assert decode_image(path).getextrema() == ((1, 1), (2, 2), (3, 3))
    assert not content_of(path).endswith(TRANSPARENT)


@given(hidden=st.tuples(*[st.integers(0, 255)] * 3))
def test_colours_below_full_transparency_do_not_matter(hidden: tuple[int, int, int]) -> None:
    image = io.BytesIO(saved(half("RGBA", (*hidden, 0), (*RED, 255))))
    assert decode_image(image).getpixel((0, 0)) == WHITE


@pytest.mark.parametrize("as_array", [False, True], ids=["a PIL image", "an array"])
def test_images_in_memory_are_laid_on_white_too(as_array: bool) -> None:
    clear = half("RGBA", (0, 0, 0, 0), (*RED, 255))
    pixels = np.asarray(image_in_memory(np.asarray(clear) if as_array else clear))
    assert (pixels[:, : SIDE // 2] == WHITE).all()
    assert (pixels[:, SIDE // 2 :] == RED).all()
