"""Masks of annotated objects: COCO's run lengths, or the file of a picture."""

from __future__ import annotations

import reprlib
from pathlib import Path
from typing import Any

import numpy as np

from ...core.image_files import decode
from ...core.paths import unsafe
from ...marks.rle import Mask, PackedMask, packed_mask, packed_runs, rle_of
from .annotations import AnnotationError


def mask_of(value: Any, folder: Path, where: str) -> PackedMask:
    """The mask that annotations state.

    Args:
        value: ``{"size": [height, width], "counts": …}`` as COCO has it, or the name of a picture.
        folder: what names of pictures are relative to.
        where: for messages.

    Raises:
        AnnotationError: it is neither, or cannot be read.
    """
    if isinstance(value, str):
        return packed_mask(pixels_of(folder, value, where))
    if not isinstance(value, dict) or value.keys() != {"size", "counts"}:
        raise AnnotationError(
            f'{where}: {reprlib.repr(value)} is neither {{"size": [height, width], "counts": …}} '
            "nor the name of a picture"
        )
    try:
        return packed_runs(rle_of(value))
    except ValueError as error:
        raise AnnotationError(f"{where}: {error}") from None


def pixels_of(folder: Path, name: str, where: str) -> Mask:
    """The mask in a picture: what is not 0 in its first channel is inside.

    Raises:
        AnnotationError: the picture cannot be read, or is all 0.
    """
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
