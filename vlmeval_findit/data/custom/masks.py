"""Read masks of annotated objects: COCO's run lengths and polygons, or image files."""

from __future__ import annotations

import reprlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.files import unsafe
from ...core.image_files import Size, decode
from ...marks.region import Mask, PackedMask, packed_mask, packed_runs, rle_of
from ..annotated_samples import AnnotationError
from .text import number


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
        return packed_runs(rle_of(value))
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
    """Return the pixels whose centres lie in polygons; None where there is no such pixel."""
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
        # Of one channel all three are it.
        inside = np.asarray(decode(folder / name))[:, :, 0] != 0
    except (OSError, ValueError) as error:
        raise AnnotationError(f"{where}: {error}") from None
    if not inside.any():
        raise AnnotationError(f"{where}: the mask {name} is empty")
    mask: Mask = inside.astype(np.uint8)
    return mask
