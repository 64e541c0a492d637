"""Marked reference pictures: drawn once, kept below the image folder of their dataset.

``vp/<mark>/<hash>.png``, where the hash is of what is drawn: the picture's path, the box, the
recipe.  So what is asked can be told where no picture is at hand.  The pixels are stored, not
compressed: a file has the same bytes everywhere, and so has the key of a call that shows it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...boxes.representation import Corners
from ...core.files import sha256_of
from ...core.image_files import ImageFileError, decode
from ...core.places import Folder, image_folder, keep_below
from ...core.stored_png import Pixels, png
from ...marks.region import Region
from ...marks.style import Shape, default_style, words_of
from .query import Query
from .references import MarkedQuery, Reference, references
from .variant import Variant

if TYPE_CHECKING:
    from PIL import Image

log = logging.getLogger(__name__)

RECIPE = 1
"""Counts the changes of what is drawn."""

COLOUR = "red"

LONGEST = 1024
"""Pixels of the longer side, at most."""

_AROUND = 3.0
"""How large the window is, measured by the object's box."""

_LEAST = 256
"""Pixels of a window's sides, at least, where the picture has them."""

_MARGIN = 64
"""Grey pixels around a shot that is all object, or too small for an arrow, which is 50 long."""

_GREY = 128


def words(mark: str) -> str:
    """What prompts call a mark.

    >>> words("oval")
    'red oval'
    """
    return words_of(default_style(Shape(mark)), COLOUR)


def with_marks(queries: Sequence[Query], variant: Variant) -> list[MarkedQuery]:
    """The queries of a table with a marked picture in place of their shots.

    Pictures that are not there yet, or older than what they were made of, are made.

    Raises:
        PlaceError: the folder of the dataset's images cannot be written to.
    """
    if variant.mark is None:
        raise ValueError(f"{variant.name} marks nothing")
    found = references(queries, variant.data.family.is_video)
    _make([one for one in found if one is not None], variant.mark, image_folder(variant.images))
    return [_marked_query(*both, variant.mark) for both in zip(queries, found, strict=True)]


def _marked_query(query: Query, reference: Reference | None, mark: str) -> MarkedQuery:
    values = {field.name: getattr(query, field.name) for field in fields(Query)}
    if reference is None:
        return MarkedQuery(**values)
    values["support"] = (path_of(reference, mark),)
    return MarkedQuery(**values, origin=reference.origin)


def path_of(reference: Reference, mark: str) -> str:
    """Where the marked picture of a reference lies, relative to the image folder."""
    drawn = json.dumps([RECIPE, mark, reference.picture, reference.box])
    return f"vp/{mark}/{sha256_of(drawn.encode())[:20]}.png"


def _make(wanted: Iterable[Reference], mark: str, folder: Folder) -> None:
    """Draw the pictures that are missing: every source is decoded once, for all that it shows."""
    by_source: dict[str, list[Reference]] = {}
    for reference in dict.fromkeys(wanted):
        source, target = folder.path / reference.picture, folder.path / path_of(reference, mark)
        if not target.is_file() or _is_newer(source, target):
            by_source.setdefault(reference.picture, []).append(reference)
    unread = []
    for name, shown in by_source.items():
        try:
            picture = decode(folder.path / name)
        except ImageFileError as error:
            unread.append(error)
            continue
        for reference in shown:
            pixels = marked(picture, reference.box, mark)
            keep_below(folder, path_of(reference, mark), png(pixels))
    if unread:
        log.warning(
            "FindIt: %d pictures cannot be marked with a %s; the first: %s",
            len(unread), words(mark), unread[0],
        )  # fmt: skip


def _is_newer(source: Path, target: Path) -> bool:
    return source.is_file() and source.stat().st_mtime_ns > target.stat().st_mtime_ns


def marked(picture: Image.Image, box: Corners | None, mark: str) -> Pixels:
    """The surroundings of an object, marked.

    Args:
        picture: all of it, RGB.
        box: the object's, in its pixels; None where it is all object.
        mark: one of :data:`.variant.MARKS`.
    """
    from PIL import Image

    from ...marks.render import draw_marks

    x1, y1, x2, y2 = (0.0, 0.0, *map(float, picture.size)) if box is None else box
    left, right = window(x1, x2, picture.width)
    top, bottom = window(y1, y2, picture.height)
    scale = min(1.0, LONGEST / max(right - left, bottom - top))
    size = (max(1, round((right - left) * scale)), max(1, round((bottom - top) * scale)))
    shown = picture.crop((left, top, right, bottom)).resize(size, Image.Resampling.BICUBIC)
    pixels = np.asarray(shown)
    corners = [(x1 - left) * scale, (y1 - top) * scale, (x2 - left) * scale, (y2 - top) * scale]
    if box is None or (mark == Shape.ARROW.value and min(picture.size) < _LEAST):
        pixels = np.pad(pixels, ((_MARGIN,) * 2, (_MARGIN,) * 2, (0, 0)), constant_values=_GREY)
        corners = [value + _MARGIN for value in corners]
    style = default_style(Shape(mark))
    return draw_marks(pixels, [_region(corners, pixels, style.width)], style, COLOUR).pixels


def window(low: float, high: float, size: int) -> tuple[int, int]:
    """From where to where a picture is shown, along one axis.

    >>> window(100, 200, 8192), window(1000, 1010, 8192), window(40, 60, 96)
    ((0, 300), (877, 1133), (0, 96))

    Args:
        low: where the object begins, in pixels.
        high: where it ends.
        size: the picture's side.
    """
    low, high = max(low, 0.0), min(high, float(size))
    length = min(max(round(_AROUND * (high - low)), _LEAST), size)
    first = min(max(round((low + high - length) / 2), 0), size - length)
    return first, first + length


def _region(corners: Sequence[float], pixels: Pixels, width: int) -> Region:
    """A box whose outline lies inside the picture."""
    height, across = pixels.shape[:2]
    x1, x2 = (min(max(x, width), across - width) for x in corners[::2])
    y1, y2 = (min(max(y, width), height - width) for y in corners[1::2])
    return Region((x1, y1, max(0.0, x2 - x1), max(0.0, y2 - y1)))
