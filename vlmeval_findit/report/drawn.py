"""What a benchmark draws of an answer, as values for the page's script."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ..benchmarks.findit.error_costs import size_of
from ..core.drawing import Drawing, DrawnBox, Outline, Role

_PICTURES = 8
_SHOTS = 4
_LINES = 12
_FAR = 1e6
_VERTICES = 400

Place = Callable[[tuple[Path, int, int]], int]
"""The place of a picture (path, width, height) among all of a page."""


def drawn_values(drawing: Drawing, folder: Path, place: Place) -> dict[str, Any]:
    """Pictures with boxes, reference pictures and lines of text, ready for JSON.

    ``frames[j].boxes`` are [role, x1, y1, x2, y2, label, overlap] in pixels of the original (the
    overlap is None where that is no question), and of a region its outlines behind them; ``lines``
    are [role, text]. ``sizes`` are the COCO sizes of the objects, ``iou`` is their mean IoU (None
    where none was compared, as for points).

    Raises:
        TypeError, ValueError: a drawing of odd values.
    """
    count = len(drawing.images)
    places = np.linspace(0, count - 1, min(count, _PICTURES), dtype=int).tolist()
    every = (box for one in drawing.images for box in one.boxes)
    objects = [box for box in every if box.role is Role.TRUTH]
    ious = [box.value for box in objects if box.value is not None]
    return {
        "shots": [place((folder / name, 0, 0)) for name in drawing.support[:_SHOTS]],
        "frames": [
            {
                "frame": one.number,
                "name": one.name,
                "image": place((folder / one.path, one.width, one.height)),
                "boxes": [_box(box) for box in one.boxes],
            }
            for one in (drawing.images[at] for at in places)
        ],
        "count": count,
        "lines": [[line.role.value, str(line.text)] for line in drawing.lines[:_LINES]],
        "sizes": sorted({size_of(box.box) for box in objects}),
        "iou": round(sum(ious) / len(ious), 3) if ious else None,
    }


def _box(one: DrawnBox) -> list[Any]:
    overlap = None if one.value is None else round(one.value, 3)
    drawn = [one.role.value, *_near(one.box), str(one.label), overlap]
    return [*drawn, [_thinned(line) for line in one.outlines]] if one.outlines else drawn


def _near(numbers: Iterable[float]) -> list[float]:
    """What a model said may be anywhere; far outside is outside, and a picture must bear it."""
    return [round(min(max(n, -_FAR), _FAR), 1) for n in numbers]


def _thinned(line: Outline) -> list[float]:
    """An outline with so many vertices that they are seen."""
    places = range(0, len(line), 2 * max(1, len(line) // (2 * _VERTICES)))
    return _near(n for at in places for n in line[at : at + 2])
