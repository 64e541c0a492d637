"""Cases of drawn marks: do ours cover the pixels that the authors' cover, in the same colours?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...core.conformance import Agreement, CaseError, lines_of
from ...core.spelling import nearest
from ...marks.contrast import Contrast
from ...marks.parabola import Fit
from ...marks.region import Region
from ...marks.rle import rle_of
from ...marks.style import ONLY, Shape, Style

if TYPE_CHECKING:
    from ...marks.render import Drawn

CaseRow = Mapping[str, Any]
Picture = npt.NDArray[np.uint8]
Changed = npt.NDArray[np.bool_]
"""height x width: which pixels were drawn on."""

LEAST = 0.9
"""Intersection over union of the changed pixels."""
LEAST_OF_TEXT_AND_SPLINES = 0.7
"""For tags and loose contours, whose pixels depend on more than whole numbers."""

FARTHEST = 3
"""Pixels by which a side of the extent may differ."""


class Comparison(NamedTuple):
    """How a case compares: the overlap (None where the authors' code raises), and what differs."""

    iou: float | None
    why: str | None


def agreement(path: Path, subsets: Path | None = None) -> Agreement:
    """Try the cases of a file; they bring their own pictures, so no subsets are needed.

    Raises:
        CaseError: a line is no case.
        OSError: the file cannot be read.
    """
    total, found = 0, []
    for number, case in lines_of(path):
        total += 1
        try:
            why = compared(case).why
        except KeyError as error:
            raise CaseError(f"{path}, line {number}: {error} is missing") from None
        except (TypeError, AttributeError, ValueError) as error:
            raise CaseError(f"{path}, line {number}: {error}") from None
        if why is not None:
            found.append(f"{path.name}, line {number}, case {case.get('case')}: {why}")
    return Agreement(total - len(found), total, found)


def compared(case: CaseRow) -> Comparison:
    """Draw a case as the authors do, and hold it against what they drew.

    Where their code raises, ours has to draw something.
    """
    picture = background(case)
    expected = case["authors"]
    ours = _drawn(picture, case)
    changed = _changed(picture, ours)
    if "raises" in expected:
        nothing = not changed.any() and any(_meets(picture, mark) for mark in case["marks"])
        return Comparison(None, "nothing was drawn" if nothing else None)
    theirs = rle_of(expected["changed"]).mask().astype(bool)
    if theirs.shape != changed.shape:
        raise TypeError("the changed pixels are of another picture")
    # Rows between which rounding decides: theirs are as right as ours.
    either = changed ^ _changed(picture, _drawn(picture, case, fit=Fit.AS_PUBLISHED_ABOVE))
    changed = np.where(either, theirs, changed)
    union = np.count_nonzero(changed | theirs)
    iou = np.count_nonzero(changed & theirs) / union if union else 1.0
    return Comparison(iou, _difference(case, ours, changed, iou))


def background(case: CaseRow) -> Picture:
    """The picture of a case: rectangles (x0, y0, x1, y1, colour), the far corner outside."""
    picture = np.zeros((int(case["height"]), int(case["width"]), 3), dtype=np.uint8)
    for x0, y0, x1, y1, colour in case["background"]:
        picture[y0:y1, x0:x1] = colour
    return picture


def style_of(case: CaseRow) -> Style:
    """The style of a case: its tags are shapes of their own."""
    name, variant = case["shape"], case["variant"] or ONLY
    kind, _, text = name.partition("_")
    known = [shape.value for shape in Shape]
    if kind not in known:
        raise TypeError(f"no shape {name!r}{nearest(name, known)}")
    return Style(Shape(kind), f"{text} {variant}".strip(), case["line_width"])


def _drawn(
    picture: Picture,
    case: CaseRow,
    contrast: Contrast = Contrast.AS_PUBLISHED,
    fit: Fit = Fit.AS_PUBLISHED,
) -> Drawn:
    from ...marks.render import draw_marks

    regions = [Region.from_coco(mark["bbox"], mark.get("polygons")) for mark in case["marks"]]
    return draw_marks(picture, regions, style_of(case), case["colours"], contrast, fit)


def _changed(picture: Picture, drawn: Drawn) -> Changed:
    changed: Changed = (drawn.pixels != picture).any(axis=2)
    return changed


def _meets(picture: Picture, mark: CaseRow) -> bool:
    """Whether the box of a mark begins in the picture."""
    height, width = picture.shape[:2]
    x, y = mark["bbox"][:2]
    return bool(0 <= x < width and 0 <= y < height)


def _difference(case: CaseRow, ours: Drawn, changed: Changed, iou: float) -> str | None:
    expected = case["authors"]
    by_hand = case["shape"].startswith("tag") or case["variant"] == "loose"
    least = LEAST_OF_TEXT_AND_SPLINES if by_hand else LEAST
    if iou < least:
        return f"the pixels overlap by {iou:.3f}, should be {least} or more"
    extent = _extent(changed)
    if np.abs(np.subtract(extent, expected["extent"] or extent)).max(initial=0) > FARTHEST:
        return f"the extent is {extent}, should be {expected['extent']}"
    if expected["frequent"]:
        colour, count = expected["frequent"][0]
        mine = np.count_nonzero((ours.pixels == colour).all(axis=2))
        if mine < least * count:
            return f"{mine} pixels are {colour}, should be {count}"
    true_lab = expected.get("colours_true_lab")
    if true_lab is None:
        return _unlike("as published", ours, expected["colours_used"])
    in_true_lab = _drawn(background(case), case, Contrast.TRUE_LAB)
    return _unlike("as published", ours, expected["colours_used"]) or _unlike(
        "by true Lab", in_true_lab, true_lab
    )


def _extent(changed: Changed) -> list[int]:
    """x0, y0, x1, y1, inclusive; [] where nothing changed."""
    ys, xs = changed.nonzero()
    return [int(xs.min()), int(ys.min()), int(xs.max()), int(ys.max())] if len(xs) else []


def _unlike(how: str, drawn: Drawn, expected: Sequence[str]) -> str | None:
    if list(drawn.colours_used) == list(expected):
        return None
    return f"colours {how} are {list(drawn.colours_used)}, should be {list(expected)}"
