"""Drawings of answers as values for the page's script."""

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
"""Returns the place of a picture (path, width, height) among all pictures of a page."""


def drawn_values(drawing: Drawing, folder: Path, place: Place) -> dict[str, Any]:
    """Return pictures with boxes, reference pictures and lines of text, ready for JSON.

    ``frames[j].boxes`` are [role, x1, y1, x2, y2, label, overlap] in pixels of the original (the
    overlap is None if it is not computed), followed by the outlines of a region; ``lines``
    are [role, text]. ``sizes`` are the COCO sizes of the objects, ``iou`` is their mean IoU (None
    if none was compared, as for points).

    Raises:
        TypeError, ValueError: the drawing has invalid values.
    """
    count = len(drawing.images)
    places = np.linspace(0, count - 1, min(count, _PICTURES), dtype=int).tolist()
    every = (box for image in drawing.images for box in image.boxes)
    objects = [box for box in every if box.role is Role.TRUTH]
    ious = [box.value for box in objects if box.value is not None]
    return {
        "shots": [place((folder / name, 0, 0)) for name in drawing.support[:_SHOTS]],
        "frames": [
            {
                "frame": image.number,
                "name": image.name,
                "image": place((folder / image.path, image.width, image.height)),
                "boxes": [_box(box) for box in image.boxes],
            }
            for image in (drawing.images[at] for at in places)
        ],
        "count": count,
        "lines": [[line.role.value, str(line.text)] for line in drawing.lines[:_LINES]],
        "sizes": sorted({size_of(box.box) for box in objects}),
        "iou": round(sum(ious) / len(ious), 3) if ious else None,
    }


def _box(box: DrawnBox) -> list[Any]:
    overlap = None if box.value is None else round(box.value, 3)
    drawn = [box.role.value, *_near(box.box), str(box.label), overlap]
    return [*drawn, [_thinned(line) for line in box.outlines]] if box.outlines else drawn


def _near(numbers: Iterable[float]) -> list[float]:
    """Round numbers and limit them: answered boxes may lie anywhere."""
    return [round(min(max(n, -_FAR), _FAR), 1) for n in numbers]


def _thinned(line: Outline) -> list[float]:
    """Return an outline with at most as many vertices as are visible."""
    places = range(0, len(line), 2 * max(1, len(line) // (2 * _VERTICES)))
    return _near(n for at in places for n in line[at : at + 2])
