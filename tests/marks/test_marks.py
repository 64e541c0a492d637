"""Names, regions, run lengths, contrast, thinning, curves: the parts of marks."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("cv2", reason="marks are drawn by opencv-python")

from vlmeval_findit.marks import (
    COLOURS,
    RLEError,
    Shape,
    Style,
    StyleError,
    contrasting_colour,
    packed_mask,
    rle_of,
    skeleton_curve,
    skeleton_of,
)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Style(Shape.OVAL, "round"), "unknown variant 'round' of oval"),
        (lambda: Style(Shape.TAG, "digit squre"), "did you mean digit square?"),
        (
            lambda: Style(Shape.BOX, "none", 0),
            "the width of a line should be 1, 2, 3 … pixels, not 0",
        ),
    ],
)
def test_what_is_no_style_is_refused(make: Any, says: str) -> None:
    with pytest.raises(StyleError, match=says.replace("?", r"\?")):
        make()


@pytest.mark.parametrize(
    ("coco", "says"),
    [
        ({"size": [2, 2]}, "without 'counts'"),
        ({"size": [2, 2], "counts": [3]}, "come to 3 pixels, its size to 2 x 2"),
        ({"size": [2, 2], "counts": "é"}, "not run lengths of COCO: 'é'"),
        ({"size": [2, 2], "counts": "T"}, "not run lengths of COCO: the text breaks off"),
        ({"size": [2, 2], "counts": None}, "not run lengths of COCO"),
    ],
)
def test_what_is_no_mask_is_refused(coco: Any, says: str) -> None:
    with pytest.raises(RLEError, match=says):
        rle_of(coco)


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_run_lengths_are_read_as_coco_reads_them(data: st.DataObject) -> None:
    coco = pytest.importorskip("pycocotools.mask", reason="run lengths are held against its own")
    height = data.draw(st.integers(1, 40))
    width = data.draw(st.integers(1, 40))
    share = data.draw(st.floats(0, 1))
    seed = data.draw(st.integers(0, 999))
    mask = (np.random.RandomState(seed).rand(height, width) < share).astype(np.uint8)
    packed = coco.encode(np.asfortranarray(mask))
    runs = rle_of(packed)
    assert runs == packed_mask(mask)
    assert runs.packed == packed["counts"].decode()
    assert (runs.mask() == mask).all()
    assert rle_of({**packed, "counts": list(runs.counts)}) == runs


# --- contrast -------------------------------------------------------------------------------------


def test_the_colour_that_differs_most() -> None:
    grey = (128, 128, 128)
    for pixel, used, expected in [
        (grey, (), "blue"),
        (grey, ("blue",), "red"),
        ((0, 0, 255), (), "green"),
        ((0, 128, 0), (), "blue"),
        ((255, 255, 255), (), "blue"),
        (grey, tuple(COLOURS), "black"),  # all have been used: again from the first
    ]:
        assert contrasting_colour(np.array([pixel], dtype=np.uint8), used) == expected


# --- thinning and curves --------------------------------------------------------------------------


def zhang_suen(mask: np.ndarray) -> np.ndarray:
    """Pixel by pixel, as it is described."""
    image = np.pad(mask, 1).astype(int)
    while True:
        before = image.copy()
        for step in (1, 2):
            gone = []
            for y, x in np.argwhere(image):
                p2 = image[y - 1, x]
                p3 = image[y - 1, x + 1]
                p4 = image[y, x + 1]
                p5 = image[y + 1, x + 1]
                p6 = image[y + 1, x]
                p7 = image[y + 1, x - 1]
                p8, p9 = image[y, x - 1], image[y - 1, x - 1]
                ring = [p2, p3, p4, p5, p6, p7, p8, p9]
                turns = sum(
                    (a, b) == (0, 1) for a, b in zip(ring, [*ring[1:], ring[0]], strict=True)
                )
                sides = (p2 * p4 * p6, p4 * p6 * p8) if step == 1 else (p2 * p4 * p8, p2 * p6 * p8)
                if 2 <= sum(ring) <= 6 and turns == 1 and sides == (0, 0):
                    gone.append((y, x))
            for y, x in gone:
                image[y, x] = 0
        if (image == before).all():
            return image[1:-1, 1:-1]


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 14), st.integers(1, 14), st.floats(0.3, 1))
def test_thinning_is_zhang_and_suens(seed: int, height: int, width: int, share: float) -> None:
    mask = (np.random.RandomState(seed).rand(height, width) < share).astype(np.uint8)
    assert (skeleton_of(mask) == zhang_suen(mask)).all()


def test_one_pixel_has_no_curve() -> None:
    assert len(skeleton_curve(np.array([[4, 4]], dtype=np.int32))) == 0


def test_names_and_regions_need_no_opencv() -> None:
    code = (
        "import sys\nimport vlmeval_findit.marks.style\nimport vlmeval_findit.marks.region\n"
        "assert not {'cv2', 'torch', 'vlmeval'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
