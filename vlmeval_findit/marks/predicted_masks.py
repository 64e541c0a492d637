"""A predicted mask as an answer: it becomes its tight box, whoever states it, and wherever.

Files of segmentation models and replies ask :func:`box_of_mask` alone. Nothing of a mask's size is
allocated before that size is known to be the image's.
"""

from __future__ import annotations

import base64
import binascii
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from ..boxes import Corners
from ..core import quoted_value, unsafe_name
from ..storage import Size, decode_values, header_problem, read_image_header
from .region import RLEError, rle_of

# What a file or a reply calls a mask, the likeliest first
MASK_KEYS = ("segmentation", "mask", "pred_mask", "polygon", "polygons")


class MaskError(ValueError):
    """A mask that cannot be read, or is of another size than its image."""


@dataclass(frozen=True, slots=True)
class BoxOfMask:
    """The tight box of a predicted mask."""

    box: Corners | None  # None: it is empty
    size: Size | None  # Its (width, height) in pixels; None: polygons have none


def box_of_mask(value: Any, size: Size | None, folder: Path | None = None) -> BoxOfMask:
    """Return the tight box of a mask, or raise a MaskError.

    Args:
        value: COCO's run lengths ``{"size": [height, width], "counts": …}``, polygons
            ``[[x1, y1, x2, y2, …], …]`` or lists of points, an image as base64, or the name of one.
        size: of the image (width, height); a mask of another is refused. None: not known.
        folder: of images that are named; None: none may be.

    >>> box_of_mask({"size": [2, 3], "counts": [1, 2, 3]}, (3, 2))
    BoxOfMask(box=(0.0, 0.0, 2.0, 2.0), size=(3, 2))
    >>> box_of_mask([[10, 20, 40, 20, 40, 60.5]], None).box
    (10.0, 20.0, 40.0, 60.5)
    """
    if isinstance(value, list):
        return BoxOfMask(_around(value), None)
    if isinstance(value, str):
        return _box_in_image(_image_of(value, folder), size)
    if isinstance(value, dict) and value.keys() == {"size", "counts"}:
        return _box_of_runs(value, size)
    raise MaskError(
        f'{quoted_value(value)} is neither {{"size": [height, width], "counts": …}}, polygons nor '
        f"{'an image in base64' if folder is None else 'the name of an image'}"
    )


def _check_size(its: Size, size: Size | None) -> None:
    if size is not None and its != size:
        mask, image = (f"{width} x {height}" for width, height in (its, size))
        raise MaskError(
            f"the mask is of {mask} pixels, and its image of {image}: write masks in pixels of the "
            "image files"
        )


# --- run lengths ----------------------------------------------------------------------------------


def _box_of_runs(value: dict[str, Any], size: Size | None) -> BoxOfMask:
    try:
        mask = rle_of(value)
    except RLEError as error:
        raise MaskError(str(error)) from None
    its = (mask.width, mask.height)
    _check_size(its, size)
    return BoxOfMask(mask.extent, its)


# --- polygons -------------------------------------------------------------------------------------

_FEWEST_POINTS = 3  # Two are a line, or the corners of a box


def _around(value: list[Any]) -> Corners | None:
    """Return the box around polygons; None: there are none."""
    points: list[tuple[float, float]] = []
    for polygon in _polygons_in(value):
        if polygon and len(polygon) < _FEWEST_POINTS:
            raise MaskError(
                f"{quoted_value(value)}: a polygon has three points or more, [x1, y1, x2, y2, …]"
            )
        points += polygon
    if not points:
        return None
    x, y = zip(*points, strict=True)
    return min(x), min(y), max(x), max(y)


def _polygons_in(value: list[Any]) -> list[list[tuple[float, float]]]:
    """Return the points of each polygon: of a list of numbers, of points, or of either."""
    if _are_numbers(value):
        return [_in_pairs(value)]
    if all(map(_is_point, value)):
        return [[_point_of(each) for each in value]]
    polygons = []
    for each in value:
        if not isinstance(each, list):
            raise MaskError(
                f"{quoted_value(each)} should be a polygon [x1, y1, x2, y2, …], or write run "
                "lengths"
            )
        if _are_numbers(each):
            polygons.append(_in_pairs(each))
        elif all(map(_is_point, each)):
            polygons.append([_point_of(point) for point in each])
        else:
            raise MaskError(f"{quoted_value(each)} should be the numbers of a polygon")
    return polygons


def _in_pairs(numbers: Sequence[Any]) -> list[tuple[float, float]]:
    if len(numbers) % 2:
        raise MaskError("a polygon has an odd number of coordinates")
    floats = [float(number) for number in numbers]
    return list(zip(floats[::2], floats[1::2], strict=True))


def _is_point(value: Any) -> bool:
    """Return whether a value is [x, y] or {"x": x, "y": y}."""
    if isinstance(value, dict):
        return value.keys() == {"x", "y"} and _are_numbers([*value.values()])
    return isinstance(value, list) and len(value) == 2 and _are_numbers(value)


def _point_of(value: Any) -> tuple[float, float]:
    x, y = (value["x"], value["y"]) if isinstance(value, dict) else value
    return float(x), float(y)


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(map(_is_number, values))


def _is_number(value: Any) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return isfinite(float(value))
    except OverflowError:
        return False


# --- images ---------------------------------------------------------------------------------------

_DATA = re.compile(r"data:image/[\w.+-]{1,20};base64,", re.IGNORECASE)
_PNG = "iVBORw0KGgo"  # The first bytes of each, in base64
_BLANKS = re.compile(r"\s+")


def _image_of(text: str, folder: Path | None) -> Path | io.BytesIO:
    """Return the image that a text is in base64, or names below a folder."""
    data = _DATA.match(text)
    if data is not None or text.startswith(_PNG):
        written = _BLANKS.sub("", text[data.end() if data else 0 :]).rstrip("=")
        try:
            return io.BytesIO(base64.b64decode(written + "=" * (-len(written) % 4), validate=True))
        except binascii.Error as error:
            raise MaskError(f"not an image in base64: {error}") from None
    if folder is None:
        raise MaskError(f"{quoted_value(text)} is no image in base64")
    why = unsafe_name(text)
    if why:
        raise MaskError(f"{text!r} {why}")
    return folder / text


def _box_in_image(image: Path | io.BytesIO, size: Size | None) -> BoxOfMask:
    """Return the box around the pixels whose first channel is not 0.

    The header is asked first: what would be unpacked is the image's size, whatever the file says.
    """
    try:
        header = read_image_header(image)
        _check_size(header.size, size)
        # Any depth will do: only what is 0 matters.
        why = None if size is not None else header_problem(replace(header, mode="L"), None)
        if why is not None:
            raise MaskError(f"the mask {why}")
        # A grey image has three equal channels.
        inside = np.asarray(decode_values(image))[:, :, 0] != 0
    except OSError as error:
        raise MaskError(str(error)) from None
    columns = np.flatnonzero(inside.any(axis=0))
    rows = np.flatnonzero(inside.any(axis=1))
    if not len(columns):
        return BoxOfMask(None, header.size)
    left, top = float(columns[0]), float(rows[0])
    right, bottom = float(columns[-1]) + 1, float(rows[-1]) + 1
    return BoxOfMask((left, top, right, bottom), header.size)
