"""Marked reference images, drawn once and stored as ``vp/<mark>/<hash>.png`` in the image folder.

The hash covers image path, box and recipe, so it is known without the image.  Pixels are stored
uncompressed, so that the bytes, and the keys of calls that send them, are the same everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...boxes import Corners
from ...core import sha256_of
from ...marks import Region, Shape, default_style, words_of
from ...storage import Pixels, decode_image, draw_missing, image_folder, png
from .findit_query import FindItQuery, Sighting, video_of
from .variant import FindItVariant

if TYPE_CHECKING:
    from PIL import Image

REFERENCE_RECIPE = 1  # Increase it when drawings change
COLOUR = "red"
LONGEST_REFERENCE_SIDE = 1024  # Pixels of the longer side, at most
_AROUND = 3.0  # Side of the window in sides of the box
_LEAST = 256  # Least side of a window in pixels, if the image is that large
_MARGIN = 64  # Grey pixels around a shot that is all object, or too small for an arrow (50 pixels)
_GREY = 128
REFERENCE_SLICES = "reference"  # Kind of slices: where marked references come from


class ReferenceOrigin(Enum):
    """Origin of a marked reference, as slices name it."""

    SHOT = "where the shot is from"
    OTHER_SCENE = "another scene"
    WHOLE_SHOT = "the shot as a whole"


class MarkedReference(NamedTuple):
    """An image to mark; ``box`` is in its pixels (None: the object fills it)."""

    image: str
    box: Corners | None
    origin: ReferenceOrigin


def choose_references(
    queries: Sequence[FindItQuery], is_video: bool
) -> list[MarkedReference | None]:
    """Choose a reference image for each query of a table; None where nothing shows its object.

    It never shows the query's scene or, where ``is_video`` (images are frames), its video:

    1. the first image that its shots are crops of, if known;
    2. else the next query's (cyclically) about the same object, with the first box there;
    3. else the query's first shot, which the object fills.
    """
    places: dict[str, list[int]] = {}
    for at, query in enumerate(queries):
        places.setdefault(query.label, []).append(at)
    chosen = []
    for at, query in enumerate(queries):
        same = places[query.label]
        after = same.index(at) + 1
        others = (queries[other] for other in (*same[after:], *same[: after - 1]))
        chosen.append(_reference(query, others, video_of if is_video else str))
    return chosen


def _reference(
    query: FindItQuery, others: Iterable[FindItQuery], scene_of: Callable[[str], str]
) -> MarkedReference | None:
    shown = set(map(scene_of, query.images))

    def first_elsewhere(sightings: Iterable[Sighting]) -> Sighting | None:
        return next((seen for seen in sightings if scene_of(seen.image) not in shown), None)

    seen = first_elsewhere(query.sightings)
    if seen is not None:
        return MarkedReference(seen.image, seen.box, ReferenceOrigin.SHOT)
    for other in others:
        seen = first_elsewhere(_seen(other))
        if seen is not None:
            return MarkedReference(seen.image, seen.box, ReferenceOrigin.OTHER_SCENE)
    if query.support:
        return MarkedReference(query.support[0], None, ReferenceOrigin.WHOLE_SHOT)
    return None


def _seen(query: FindItQuery) -> Iterable[Sighting]:
    """Yield the query's objects that lie at least partly inside their image."""
    truth = query.truth
    for (x1, y1, x2, y2), frame in zip(truth.boxes, truth.frames, strict=True):
        if min(x2, query.width) > max(x1, 0.0) and min(y2, query.height) > max(y1, 0.0):
            yield Sighting(query.images[frame], (x1, y1, x2, y2))


def words(mark: str) -> str:
    """Name a mark as prompts do.

    >>> words("oval")
    'red oval'
    """
    return words_of(default_style(Shape(mark)), COLOUR)


def with_marks(queries: Sequence[FindItQuery], variant: FindItVariant) -> list[FindItQuery]:
    """Replace each query's shots by a marked image, drawn if missing."""
    assert variant.mark is not None
    chosen = choose_references(queries, variant.data.family.is_video)
    folder = image_folder(variant.images)
    mark = variant.mark
    drawings = {
        path_of(reference, mark): partial(_drawn, reference, mark, folder.path)
        for reference in chosen
        if reference is not None
    }
    draw_missing(folder, drawings)
    result = []
    for query, reference in zip(queries, chosen, strict=True):
        if reference is not None:
            tags = {**query.tags, REFERENCE_SLICES: reference.origin.value}
            query = replace(query, support=(path_of(reference, mark),), tags=tags)
        result.append(query)
    return result


def path_of(reference: MarkedReference, mark: str) -> str:
    """Return a marked image's path, relative to the image folder."""
    drawn = json.dumps([REFERENCE_RECIPE, mark, reference.image, reference.box])
    return f"vp/{mark}/{sha256_of(drawn.encode())[:20]}.png"


def _drawn(reference: MarkedReference, mark: str, folder: Path) -> bytes:
    return png(marked_crop(decode_image(folder / reference.image), reference.box, mark))


def marked_crop(image: Image.Image, box: Corners | None, mark: str) -> Pixels:
    """Crop an RGB image around a box (in pixels; None: the whole image), and mark the box."""
    from PIL import Image

    from ...marks import draw_marks

    x1, y1, x2, y2 = (0.0, 0.0, *map(float, image.size)) if box is None else box
    left, right = window(x1, x2, image.width)
    top, bottom = window(y1, y2, image.height)
    scale = min(1.0, LONGEST_REFERENCE_SIDE / max(right - left, bottom - top))
    size = (max(1, round((right - left) * scale)), max(1, round((bottom - top) * scale)))
    shown = image.crop((left, top, right, bottom)).resize(size, Image.Resampling.BICUBIC)
    pixels = np.asarray(shown)
    corners = [(x1 - left) * scale, (y1 - top) * scale, (x2 - left) * scale, (y2 - top) * scale]
    if box is None or (mark == Shape.ARROW.value and min(image.size) < _LEAST):
        margins = ((_MARGIN, _MARGIN), (_MARGIN, _MARGIN), (0, 0))
        pixels = np.pad(pixels, margins, constant_values=_GREY)
        corners = [value + _MARGIN for value in corners]
    style = default_style(Shape(mark))
    return draw_marks(pixels, [_region(corners, pixels, style.width)], style, COLOUR).pixels


def window(low: float, high: float, size: int) -> tuple[int, int]:
    """Choose the range of pixels shown along one axis, for an object from ``low`` to ``high``.

    >>> window(100, 200, 8192), window(1000, 1010, 8192), window(40, 60, 96)
    ((0, 300), (877, 1133), (0, 96))
    """
    low = max(low, 0.0)
    high = min(high, float(size))
    length = min(max(round(_AROUND * (high - low)), _LEAST), size)
    first = min(max(round((low + high - length) / 2), 0), size - length)
    return first, first + length


def _region(corners: Sequence[float], pixels: Pixels, width: int) -> Region:
    """Return the region of a box, moved into the image as far as a line of ``width`` needs."""
    height, across = pixels.shape[:2]
    x1, x2 = (min(max(x, width), across - width) for x in corners[::2])
    y1, y2 = (min(max(y, width), height - width) for y in corners[1::2])
    return Region((x1, y1, max(0.0, x2 - x1), max(0.0, y2 - y1)))
