"""Read text, JSON, numbers and masks of annotations strictly: every refusal names the place."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from ...boxes import Corners
from ...core import (
    Checked,
    Expected,
    MisplacedError,
    TextError,
    parse_json,
    quoted_value,
    read_text,
    unsafe_name,
    validate,
)
from ...marks import MaskArray, PackedMask, packed_mask, rle_of
from ...storage import Size, decode_values
from ..annotated_samples import AnnotationError
from .polygons import Outlines, fill_outlines
from .upright_boxes import around_points

IMAGE_SUFFIXES = frozenset(
    (".bmp", ".gif", ".jfif", ".jp2", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp")
)


# --- JSON -----------------------------------------------------------------------------------------

Coordinate = Annotated[float, Expected("a number", strict=True, allow_inf_nan=False)]
FourNumbers = tuple[Coordinate, Coordinate, Coordinate, Coordinate]
CornersOfJson = Annotated[FourNumbers, Expected("[x1, y1, x2, y2]")]
SidesOfJson = Annotated[FourNumbers, Expected("[x, y, width, height]")]
# A side of an image in pixels; no image has more
PixelsOfJson = Annotated[
    int, Expected("a whole number, at least 1", strict=True, ge=1, le=2**31 - 1)
]
PointOfJson = tuple[Coordinate, Coordinate]
PointsOfJson = Annotated[list[PointOfJson], Expected("a list of points [x, y]", min_length=1)]
ListOfJson = Annotated[list[Any], Expected("a list")]
ObjectOfJson = Annotated[dict[str, Any], Expected("an object")]
# Becomes one line with single blanks
OneLine = Annotated[
    str,
    Expected("a text", strict=True, pattern=r"\S"),
    Checked(lambda text: " ".join(text.split())),
]


def json_of(text: str, where: str) -> Any:
    """Parse JSON, or raise an AnnotationError, also for equal keys: boxes of one would be lost."""
    try:
        return parse_json(text)
    except TextError as error:
        raise AnnotationError(f"{where}: {error}") from None


def validated(kind: Any, value: Any, where: object) -> Any:
    """Return a value of JSON as a dataclass or an annotated type, or raise an AnnotationError."""
    try:
        return validate(kind, value)
    except MisplacedError as error:
        steps = [f", {step}" if isinstance(step, str) else f"[{step}]" for step in error.place]
        why = f"{error.why}: numbers, not text" if _is_written(value, error.place) else error.why
        raise AnnotationError(f"{where}{''.join(steps)}: {why}") from None


def validated_together(kind: Any, values: list[Any]) -> list[Any] | None:
    """Return values of JSON as a type, all at once, which takes a fifth of the time.

    None: one of them cannot be used, and :func:`validated` says which and why.
    """
    try:
        together: list[Any] = validate(list[kind], values)
    except MisplacedError:
        return None
    return together


def _is_written(value: Any, place: Sequence[str | int]) -> bool:
    """Return whether what stands at a place of a value is numbers, of which some are text."""
    for step in place:
        is_there = isinstance(value, dict) and step in value
        is_there |= isinstance(value, list) and isinstance(step, int) and step < len(value)
        if not is_there:
            return False
        value = value[step]
    numbers = value if isinstance(value, list) else [value]
    try:
        for number in numbers:
            float(number)
    except (TypeError, ValueError, OverflowError):
        return False
    return any(isinstance(number, str) for number in numbers)


# --- text -----------------------------------------------------------------------------------------


def plain_name(name: str) -> str:
    """Return a name without letter case and punctuation.

    >>> plain_name("Is_Crowd"), plain_name("image width")
    ('iscrowd', 'imagewidth')
    """
    return "".join(sign for sign in name.lower() if sign.isalnum())


def published_text_of(path: Path) -> str:
    """Return the text of a published file, which is in UTF-8, or raise an AnnotationError."""
    try:
        return read_text(path)
    except TextError as error:
        raise AnnotationError(error.message_for(path)) from None


def written_number(text: str, where: str) -> float:
    """Return a coordinate that is written as text, or raise an AnnotationError."""
    numbers = written_numbers([text])
    if numbers is None:
        raise AnnotationError(f"{where}: {quoted_value(text)} is not a number")
    return numbers[0]


def written_numbers(texts: Sequence[str]) -> list[float] | None:
    """Return coordinates that are written as text; None where :func:`written_number` refuses one.

    >>> written_numbers(["1", "2.5"]), written_numbers(["1", "nan"])
    ([1.0, 2.5], None)
    """
    try:
        numbers = list(map(float, texts))
    except ValueError:
        return None
    return numbers if all(map(isfinite, numbers)) else None


def written_size(width: str, height: str, where: str) -> Size:
    """Return a size in pixels that is written as text, or raise an AnnotationError."""
    w, h = (written_number(side, where) for side in (width, height))
    if not (w.is_integer() and h.is_integer() and min(w, h) >= 1):
        raise AnnotationError(f"{where}: {width}x{height} is not a size in pixels")
    return (int(w), int(h))


def state_size(sizes: dict[str, Size], image: str, size: Size, where: str) -> None:
    """Note the stated size of an image, or raise an AnnotationError if it has two."""
    before = sizes.setdefault(image, size)
    if before != size:
        here, there = (f"{w}x{h}" for w, h in (size, before))
        raise AnnotationError(f"{where}: {image} is {here} here, {there} before")


# --- masks ----------------------------------------------------------------------------------------


def mask_of(value: Any, folder: Path, where: str) -> PackedMask:
    """Return the mask that annotations state, or raise an AnnotationError.

    ``value`` is ``{"size": [height, width], "counts": …}`` as COCO has it, or the name of an image
    below ``folder``.
    """
    if isinstance(value, str):
        return packed_mask(mask_pixels(folder, value, where))
    if not isinstance(value, dict) or value.keys() != {"size", "counts"}:
        neither = 'neither {"size": [height, width], "counts": …} nor the name of an image'
        raise AnnotationError(f"{where}: {quoted_value(value)} is {neither}")
    try:
        return rle_of(value)
    except ValueError as error:
        raise AnnotationError(f"{where}: {error}") from None


_Polygons = Annotated[
    list[list[Coordinate]], Expected("polygons [[x1, y1, x2, y2, …], …] or run lengths")
]


def mask_of_coco(value: Any, size: Size | None, where: str) -> PackedMask | None:
    """Return the mask of a ``segmentation``: polygons [[x1, y1, x2, y2, …], …], or run lengths.

    None where there is none, and for polygons in an image whose ``size`` (width, height) in pixels
    is not stated.  Raises an AnnotationError if it is neither.
    """
    stated = segmentation_of_coco(value, size, where)
    return fill_outlines([stated])[0] if isinstance(stated, Outlines) else stated


def segmentation_of_coco(value: Any, size: Size | None, where: str) -> PackedMask | Outlines | None:
    """Return what :func:`mask_of_coco` does, but polygons as they are: to fill many at once."""
    where = f"{where}, segmentation"
    if not value:
        return None
    if isinstance(value, dict):
        return mask_of(value, Path(), where)
    polygons = _polygons_of(value, where)
    return Outlines(polygons, size) if size is not None else None


def _polygons_of(value: Any, where: str) -> list[list[float]]:
    # Some tools write one polygon without the list around it.
    several = value if isinstance(value, list) and isinstance(value[0], list) else [value]
    polygons: list[list[float]] = validated(_Polygons, several, where)
    if any(len(polygon) % 2 for polygon in polygons):
        raise AnnotationError(f"{where}: a polygon has an odd number of coordinates")
    return polygons


def box_around_polygons(polygons: Sequence[Sequence[float]]) -> Corners | None:
    """Return the box around polygons [x1, y1, x2, y2, …]; None: they have no point."""
    points: list[tuple[float, float]] = []
    for polygon in polygons:
        points += zip(polygon[::2], polygon[1::2], strict=True)
    return around_points(points) if points else None


def mask_pixels(folder: Path, name: str, where: str) -> MaskArray:
    """Read a mask (first channel not 0) from an image, or raise an AnnotationError."""
    why = unsafe_name(name)
    if why:
        raise AnnotationError(f"{where}: {name!r} {why}")
    try:
        # A grey image has three equal channels.
        mask: MaskArray = (np.asarray(decode_values(folder / name))[:, :, 0] != 0).astype(np.uint8)
    except OSError as error:
        raise AnnotationError(f"{where}: {error}") from None
    if not mask.any():
        raise AnnotationError(f"{where}: the mask {name} is empty")
    return mask
