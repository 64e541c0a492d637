"""Pictures in whatever they come: files, PIL images, arrays and tensors."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from ..core.image_files import rgb

if TYPE_CHECKING:
    from PIL import Image

Picture = Any
"""The path of a file, a PIL image, or an array (height, width, 3) of 8 bits."""


def several(pictures: Picture | Sequence[Picture]) -> list[Picture]:
    """One picture or many as a list; an array with four dimensions is many."""
    if isinstance(pictures, (list, tuple)) or getattr(pictures, "ndim", 0) == 4:
        return list(pictures)
    return [pictures]


def is_file(picture: Picture) -> bool:
    """Whether a picture is the path of a file."""
    return isinstance(picture, (str, PathLike))


def in_memory(picture: Picture) -> Image.Image:
    """A picture that is no file, as RGB.

    Raises:
        ValueError: it is neither an image nor an array of one; the message says what it is.
    """
    import numpy as np
    from PIL import Image

    if isinstance(picture, Image.Image):
        return rgb(picture)
    if not hasattr(picture, "__array__"):
        raise ValueError(
            f"{type(picture).__name__} is no picture: give a path, a PIL image or an array"
        )
    values = np.asarray(picture)
    if values.dtype != np.uint8 or values.shape[2:] not in ((), (3,), (4,)) or values.ndim < 2:
        raise ValueError(
            f"an array {values.shape} of {values.dtype} is no picture: it should be "
            "(height, width, 3) of uint8. A tensor (3, height, width) from 0 to 1: "
            "(255 * tensor).byte().permute(1, 2, 0)"
        )
    return rgb(Image.fromarray(values))
