"""Every mark of the grid, byte for byte: machines and releases of OpenCV 4 must draw alike.

After a change that is meant: ``python tests/marks/test_marks_golden.py > tests/golden/marks.txt``.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from paths import GOLDEN as GOLDEN_FOLDER

cv2 = pytest.importorskip("cv2", reason="marks are drawn by opencv-python")

from vlmeval_findit.marks import (  # noqa: E402
    COLOURS,
    CONTRAST,
    DEFAULT_WIDTH,
    STYLES,
    Region,
    Style,
    draw_marks,
)

GOLDEN = GOLDEN_FOLDER / "marks.txt"

NOISE = np.frombuffer(np.random.RandomState(12).bytes(150 * 200 * 3), dtype=np.uint8)
SHADE = np.repeat(np.array([60, 110], dtype=np.uint8), 75)[:, None, None]
PICTURE = NOISE.reshape(150, 200, 3) // 8 + SHADE

BLOB = (90.2, 20.9, 120.4, 14.1, 149.9, 27.7, 158.3, 55.5, 131.6, 70.2, 99.8, 61.4, 84.6, 40.3)
LEAF = (3.5, 80.0, 40.8, 96.1, 61.3, 131.2, 55.0, 149.9, 21.2, 140.4, 2.6, 110.8)
STEM = (50.1, 120.3, 83.7, 101.9, 90.2, 112.6, 60.8, 147.0)

REGIONS = (
    Region((84.6, 14.1, 73.7, 56.1), (BLOB,)),
    Region((2.6, 80.0, 87.6, 69.9), (LEAF, STEM)),  # they overlap, at the picture's edge
    Region((150.5, 100.5, 40.0, 33.3)),
)
WIDTHS = (1, 2, 3, 4, 6)  # in pixels; those of the release are not published


def grid() -> list[tuple[Style, str]]:
    """16 variants x 5 widths x 5 colours, and 5 plain masks, which have no width: 405.

    The paper counts 355 marks: with two tags (digit, letter) instead of four these are as many.
    """
    return [
        (Style(shape, variant, width), colour)
        for shape, variants in STYLES.items()
        for variant, look in variants.items()
        for width in (WIDTHS if look.has_width else (DEFAULT_WIDTH,))
        for colour in (*COLOURS, CONTRAST)
    ]


def line(style: Style, colour: str) -> str:
    drawn = draw_marks(PICTURE, REGIONS, style, colour)
    checksum = hashlib.sha256(drawn.pixels.tobytes()).hexdigest()[:16]
    words = (style.shape.value, style.variant or "-", f"{style.width} px", colour)
    return f"{', '.join(words)}: {checksum}"


def is_alike_everywhere(name: str) -> bool:
    """OpenCV 4.13 moved thin ovals by up to a pixel."""
    version = tuple(int(part) for part in cv2.__version__.split(".")[:2])
    return version >= (4, 13) or not name.startswith("oval, -, 1 px")


def test_every_mark_of_the_grid_is_drawn_as_ever() -> None:
    expected = GOLDEN.read_text(encoding="utf-8").splitlines()
    actual = [line(*entry) for entry in grid()]
    names = [name.partition(":")[0] for name in actual]
    assert names == [name.partition(":")[0] for name in expected]
    assert [name for name in actual if name not in expected and is_alike_everywhere(name)] == []


if __name__ == "__main__":
    print("\n".join(line(*entry) for entry in grid()))
