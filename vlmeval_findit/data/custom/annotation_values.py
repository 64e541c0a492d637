"""Read text, JSON, numbers and masks of annotations strictly: every refusal names the place."""

from __future__ import annotations

import json
import reprlib
from collections import Counter
from collections.abc import Iterator, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.files import unsafe
from ...core.image_files import Size, decode
from ...marks.region import Mask, PackedMask, packed_mask, rle_of
from ..annotated_samples import AnnotatedBox, AnnotationError, Units

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp")


# --- numbers --------------------------------------------------------------------------------------


def number(value: object, where: str) -> float:
    """Return a coordinate of JSON, or raise an AnnotationError."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise AnnotationError(f"{where}: {reprlib.repr(value)} is not a number")
    try:
        coordinate = float(value)
    except OverflowError:  # a whole number of hundreds of digits
        coordinate = float("inf")
    if not isfinite(coordinate):
        raise AnnotationError(f"{where}: {reprlib.repr(value)} is not finite")
    return coordinate


def numbers(value: object, where: str, what: str) -> tuple[float, float, float, float]:
    """Return four coordinates of JSON, or raise an AnnotationError that says ``what`` they are."""
    if not isinstance(value, list) or len(value) != 4:
        raise AnnotationError(f"{where}: {reprlib.repr(value)} is not {what}")
    a, b, c, d = (number(item, where) for item in value)
    return a, b, c, d


CORNERS, SIDES = "[x1, y1, x2, y2]", "[x, y, width, height]"


def line_of(value: object, where: str) -> str:
    """Return a text of JSON, on one line and with single blanks, or raise an AnnotationError."""
    if not isinstance(value, str) or not value.strip():
        raise AnnotationError(f"{where}: {reprlib.repr(value)} is no text")
    return " ".join(value.split())


def written_number(text: str, where: str) -> float:
    """Return a coordinate that is written as text, or raise an AnnotationError."""
    try:
        # Python reads 1_0 as 10.
        return number(float(text.replace("_", "x")), where)
    except AnnotationError:
        raise
    except ValueError:
        raise AnnotationError(f"{where}: {reprlib.repr(text)} is not a number") from None


def written_size(width: str, height: str, where: str) -> Size:
    """Return a size in pixels that is written as text, or raise an AnnotationError."""
    sides = [written_number(side, where) for side in (width, height)]
    if not all(side.is_integer() and side >= 1 for side in sides):
        raise AnnotationError(f"{where}: {width}x{height} is not a size in pixels")
    return (int(sides[0]), int(sides[1]))


def state_size(sizes: dict[str, Size], image: str, size: Size, where: str) -> None:
    """Note the stated size of an image, or raise an AnnotationError if it has two."""
    before = sizes.setdefault(image, size)
    if before != size:
        raise AnnotationError(
            f"{where}: {image} is {size[0]}x{size[1]} here, {before[0]}x{before[1]} before"
        )


def units_of(source: Path, boxes: Sequence[AnnotatedBox], stated: Units | None) -> Units:
    """Return the units of boxes in a file that does not tell them.

    Raises an AnnotationError if they are not stated and no number is above 1.
    """
    if stated is not None:
        return stated
    if not boxes or any(abs(n) > 1 for box in boxes for n in box.corners):
        return Units.PIXELS
    raise AnnotationError(
        f"{source}: none of the {len(boxes)} boxes has a number above 1: fractions of the "
        "images, or pixels? Say --units fractions or --units pixels"
    )


# --- files ----------------------------------------------------------------------------------------


def text_of(path: Path) -> str:
    """Return the text of a file in UTF-8, with or without a byte order mark.

    Raises:
        AnnotationError: it is a folder or no UTF-8; the message names the line.
        OSError: it cannot be opened.
    """
    return "".join(lines_of(path))


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of a file with their ends; see :func:`text_of`."""
    if path.is_dir():
        raise AnnotationError(f"{path}: is a folder, not a file")
    with path.open("rb") as f:
        for number, line in enumerate(f, 1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                bad = line.find(b"\0")
            except UnicodeDecodeError as error:
                bad = error.start
            if bad >= 0:
                raise AnnotationError(
                    f"{path}, line {number}: byte {line[bad]:#04x} is no text in UTF-8: save it so"
                )
            yield text


def json_of(text: str, where: str, what: str) -> Any:
    """Parse JSON in which no key stands twice, or raise an AnnotationError.

    ``what`` it should be is for messages.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) != len(pairs):
            counts = Counter(key for key, _ in pairs)
            key = next(key for key, count in counts.items() if count > 1)
            known = {name: values[name] for name in ("id", "file_name", "name") if name in values}
            which = f" ({known})" if known else ""
            raise AnnotationError(f"{where}: key {key!r} stands twice in an object{which}")
        return values

    try:
        return json.loads(text, object_pairs_hook=unique)
    except AnnotationError:
        raise
    except RecursionError:
        raise AnnotationError(f"{where}: is nested too deeply for {what}") from None
    except ValueError as error:
        raise AnnotationError(f"{where}: not JSON: {error}") from None


# --- masks ----------------------------------------------------------------------------------------


def mask_of(value: Any, folder: Path, where: str) -> PackedMask:
    """Return the mask that annotations state, or raise an AnnotationError.

    ``value`` is ``{"size": [height, width], "counts": …}`` as COCO has it, or the name of an image
    below ``folder``.
    """
    if isinstance(value, str):
        return packed_mask(mask_pixels(folder, value, where))
    if not isinstance(value, dict) or value.keys() != {"size", "counts"}:
        raise AnnotationError(
            f'{where}: {reprlib.repr(value)} is neither {{"size": [height, width], "counts": …}} '
            "nor the name of an image"
        )
    try:
        return rle_of(value)
    except ValueError as error:
        raise AnnotationError(f"{where}: {error}") from None


def mask_of_coco(value: Any, size: Size | None, where: str) -> PackedMask | None:
    """Return the mask of a ``segmentation``: polygons [[x1, y1, x2, y2, …], …], or run lengths.

    None where there is none, and for polygons in an image whose ``size`` (width, height) in pixels
    is not stated.  Raises an AnnotationError if it is neither.
    """
    if not value:
        return None
    if isinstance(value, dict):
        return mask_of(value, Path(), f"{where}, segmentation")
    if not isinstance(value, list):
        raise AnnotationError(
            f"{where}, segmentation: {reprlib.repr(value)} is neither polygons nor run lengths"
        )
    # Some tools write one polygon without the list around it.
    polygons = value if isinstance(value[0], list) else [value]
    return None if size is None else _filled(polygons, size, f"{where}, segmentation")


def _filled(polygons: list[Any], size: Size, where: str) -> PackedMask | None:
    """Return the pixels whose centres lie in polygons; None if there are none."""
    pixels = np.zeros((size[1], size[0]), dtype=bool)
    for polygon in polygons:
        if not isinstance(polygon, list) or len(polygon) % 2:
            raise AnnotationError(
                f"{where}: {reprlib.repr(polygon)} is not [x1, y1, x2, y2, x3, y3, …]"
            )
        corners = np.array([number(n, where) for n in polygon]).reshape(-1, 2)
        pixels |= _inside(corners, size)
    return packed_mask(pixels) if pixels.any() else None


def _inside(corners: NDArray[np.float64], size: Size) -> NDArray[np.bool_]:
    """Return (height, width) whether each pixel's centre has an odd number of edges to its left."""
    width, height = size
    crossed = np.zeros((height, width + 1), dtype=np.bool_)
    middles = np.arange(height) + 0.5
    for (x1, y1), (x2, y2) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        rows = np.flatnonzero((y1 <= middles) != (y2 <= middles))
        with np.errstate(all="ignore"):  # 1e300 is a number that a file can hold
            at = np.ceil(x1 + (middles[rows] - y1) * ((x2 - x1) / (y2 - y1)) - 0.5)
        crossed[rows, np.nan_to_num(at).clip(0, width).astype(int)] ^= True
    return np.logical_xor.accumulate(crossed[:, :-1], axis=1)


def mask_pixels(folder: Path, name: str, where: str) -> Mask:
    """Read a mask (first channel not 0) from an image, or raise an AnnotationError."""
    why = unsafe(name)
    if why:
        raise AnnotationError(f"{where}: {name!r} {why}")
    try:
        # A grey image has three equal channels.
        inside = np.asarray(decode(folder / name))[:, :, 0] != 0
    except (OSError, ValueError) as error:
        raise AnnotationError(f"{where}: {error}") from None
    if not inside.any():
        raise AnnotationError(f"{where}: the mask {name} is empty")
    mask: Mask = inside.astype(np.uint8)
    return mask
