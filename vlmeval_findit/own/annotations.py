"""What every format of annotations is read into."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..representation import Corners


class AnnotationError(ValueError):
    """Annotations that cannot be used; the message names the file and the place in it."""


@dataclass(frozen=True, slots=True)
class Box:
    """One annotated object: (x1, y1, x2, y2) in pixels of the image.  ``where`` is for messages."""

    image: str
    label: str
    corners: Corners
    where: str


@dataclass(frozen=True, slots=True)
class Annotations:
    """The annotations of one data set, not yet checked against its images.

    ``images`` has every annotated image, relative to the image folder, with the size that the
    annotations state (None where they state none).  ``image_ids`` and ``category_ids`` are the
    numbers of a COCO file, so that an export can use them again.  ``left_out`` counts what was
    left out on purpose, by the reason.
    """

    source: Path
    images: Mapping[str, tuple[int, int] | None]
    boxes: tuple[Box, ...]
    image_ids: Mapping[str, int] = field(default_factory=dict)
    category_ids: Mapping[str, int] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)


IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp")


def number(value: object, where: str) -> float:
    """A coordinate.

    Raises:
        AnnotationError: it is no number.
    """
    try:
        if isinstance(value, (int, float, str)) and not isinstance(value, bool):
            return float(value)
    except ValueError:
        pass
    raise AnnotationError(f"{where}: {value!r} is not a number")
