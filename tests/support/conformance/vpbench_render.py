"""Drawn marks must cover the pixels that the authors' marks cover, in the same colours."""

from __future__ import annotations

import math
from unittest.mock import patch

import numpy as np

from vlmeval_findit.marks import (
    ONLY_VARIANT,
    MarkedImage,
    Region,
    Shape,
    Style,
    draw_marks,
    rle_of,
    scribble,
    style,
)

from .cases import Case, unlike

LEAST = 0.9  # intersection over union of the changed pixels
LEAST_OF_TEXT_AND_SPLINES = 0.7  # tags and loose contours depend on more than whole numbers
FARTHEST = 3  # pixels by which a side of the extent may differ


def difference(case: Case) -> str | None:
    """Return how our drawing differs."""
    return compared(case)[1]


def compared(case: Case) -> tuple[float | None, str | None]:
    """Draw a case as the authors do; return the overlap with their pixels, and what differs.

    If their code raises, our code must draw something, and there is no overlap.
    """
    image = background(case)
    expected = case["authors"]
    actual = _drawn(image, case)
    changed = _changed(image, actual)
    if "raises" in expected:
        nothing = not changed.any() and any(_meets(image, mark) for mark in case["marks"])
        return None, "nothing was drawn" if nothing else None
    expected_pixels = rle_of(expected["changed"]).mask().astype(bool)
    if expected_pixels.shape != changed.shape:
        raise TypeError("the changed pixels are of another picture")
    # Rounding decides between some rows: both are right.
    either = changed ^ _changed(image, _drawn(image, case, row_above=True))
    changed = np.where(either, expected_pixels, changed)
    union = np.count_nonzero(changed | expected_pixels)
    iou = np.count_nonzero(changed & expected_pixels) / union if union else 1.0
    return iou, _difference(case, actual, changed, iou)


def background(case: Case) -> np.ndarray:
    """Paint the rectangles of a case: x0, y0, x1, y1, colour, the far corner outside."""
    image = np.zeros((int(case["height"]), int(case["width"]), 3), dtype=np.uint8)
    for x0, y0, x1, y1, colour in case["background"]:
        image[y0:y1, x0:x1] = colour
    return image


def style_of(case: Case) -> Style:
    """Return the style of a case, whose tags are separate shapes."""
    kind, _, text = case["shape"].partition("_")
    variant = f"{text} {case['variant'] or ONLY_VARIANT}".strip()
    return Style(Shape(kind), variant, case["line_width"])


def _drawn(
    image: np.ndarray, case: Case, true_lab: bool = False, row_above: bool = False
) -> MarkedImage:
    """Draw as the authors' code does.

    It swaps red and blue before it compares colours, so it mostly picks red for blue, and fits y to
    x, so upright parts only get a speck. On level skeletons its rounding errors, which depend on
    the processor, decide between two rows: with ``row_above`` it is the upper one.
    """
    regions = [
        Region(tuple(mark["bbox"]), tuple(map(tuple, filter(None, mark.get("polygons") or ()))))
        for mark in case["marks"]
    ]

    def curve(skeleton: np.ndarray) -> np.ndarray:
        if len(skeleton) < 2:
            return np.empty((0, 2), dtype=np.int32)
        xs, ys = skeleton.T.tolist()
        steps = np.linspace(min(xs), max(xs), scribble.SAMPLES).astype(np.int32).tolist()
        heights = map(scribble.fitted(xs, ys), steps)
        rows = [math.ceil(y) - 1 if row_above and y > 0 else int(y) for y in heights]
        return np.column_stack([steps, rows]).astype(np.int32)

    lab = style.lab
    compared_by = patch.object(style, "lab", lambda rgb: lab(rgb if true_lab else rgb[::-1]))
    with compared_by, patch.object(scribble, "skeleton_curve", curve):
        return draw_marks(image, regions, style_of(case), case["colours"])


def _changed(image: np.ndarray, drawn: MarkedImage) -> np.ndarray:
    changed: np.ndarray = (drawn.pixels != image).any(axis=2)
    return changed


def _meets(image: np.ndarray, mark: Case) -> bool:
    """Return whether the box of a mark begins in the image."""
    x, y = mark["bbox"][:2]
    return bool(0 <= x < image.shape[1] and 0 <= y < image.shape[0])


def _difference(case: Case, actual: MarkedImage, changed: np.ndarray, iou: float) -> str | None:
    expected = case["authors"]
    by_hand = case["shape"].startswith("tag") or case["variant"] == "loose"
    least = LEAST_OF_TEXT_AND_SPLINES if by_hand else LEAST
    if iou < least:
        return f"the pixels overlap by {iou:.3f}, should be {least} or more"
    ys, xs = changed.nonzero()
    extent = [int(n) for n in (xs.min(), ys.min(), xs.max(), ys.max())] if len(xs) else []
    if np.abs(np.subtract(extent, expected["extent"] or extent)).max(initial=0) > FARTHEST:
        return f"the extent is {extent}, should be {expected['extent']}"
    if expected["frequent"]:
        colour, count = expected["frequent"][0]
        covered = np.count_nonzero((actual.pixels == colour).all(axis=2))
        if covered < least * count:
            return f"{covered} pixels are {colour}, should be {count}"
    name = "colours as published"
    true_lab = expected.get("colours_true_lab")
    why = unlike({name: list(actual.colours_used)}, {name: expected["colours_used"]})
    if why or true_lab is None:
        return why
    name = "colours by true Lab"
    drawn = _drawn(background(case), case, true_lab=True)
    return unlike({name: list(drawn.colours_used)}, {name: true_lab})
