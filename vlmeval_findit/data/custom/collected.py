"""Collect images and objects, for readers whose files list one after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from ...boxes.representation import Corners
from ...marks.region import PackedMask
from ...storage.image_files import Size
from ..annotated_samples import AnnotatedBox, AnnotationError, Samples, Units
from ..ledger import Ledger
from .annotation_values import state_size, validated
from .detection import Detections, detection_samples
from .image_names import ImageNames
from .reader_options import ReaderOptions

NO_BOX: Corners = (math.nan, math.nan, math.nan, math.nan)
"""The corners of an object whose box cannot be used."""


class Record(Protocol):
    """A dataclass for one object of JSON; its fields are the keys that are read."""

    called: ClassVar[str]  # In the plural: "shapes"
    not_needed: ClassVar[frozenset[str]]  # Keys that are known, and change no query
    __dataclass_fields__: ClassVar[dict[str, Any]]


R = TypeVar("R", bound=Record)


class Collected:
    """What was read so far of a file or folder, and what became of the rest."""

    def __init__(self, source: Path, images: Path, options: ReaderOptions | None) -> None:
        self.options = options or ReaderOptions()
        self.ledger = Ledger()
        self._source = source
        self._images = images
        self._names = ImageNames(images, self.ledger)
        self._sizes: dict[str, Size | None] = {}
        self._stated: dict[str, Size] = {}
        self._objects: list[tuple[str, AnnotatedBox]] = []

    def record(self, kind: type[R], value: Any, where: str) -> R:
        """Return an object of JSON as a record; its other keys go into the ledger.

        Raises an AnnotationError if it has another form.
        """
        record: R = validated(kind, value, where)
        rest = value.keys() - {field.name for field in fields(kind)}
        self.ledger.keys(kind.called, rest, kind.not_needed, where)
        return record

    def image(self, stated: str, where: str, size: Size | None = None) -> str:
        """Note an image, with its size (width, height) if it is stated; return its name."""
        name = self._names.find(stated, where)
        if size is not None:
            state_size(self._stated, name, size, where)
        self._sizes[name] = self._stated.get(name)
        self.options.progress("images", 1)
        return name

    def add(
        self,
        image: str,
        label: str,
        corners: Corners,
        where: str,
        *,
        ignored: str = "",
        mask: PackedMask | None = None,
    ) -> None:
        """Note an object: (x1, y1, x2, y2) in the units of the format."""
        if not label.strip():
            raise AnnotationError(f"{where}: no label")
        box = AnnotatedBox(corners, where, label.strip(), ignored=ignored, mask=mask)
        self._objects.append((image, box))

    def add_unusable(self, image: str, label: str, why: str, where: str) -> None:
        """Note an object without a box that can be used; ``why`` says so in a message."""
        box = AnnotatedBox(NO_BOX, where, label.strip() or "without a label", problem=why)
        self._objects.append((image, box))

    def samples(self, units: Units = Units.PIXELS, classes: Sequence[str] = ()) -> Samples:
        """Return queries about all that was noted."""
        found = Detections(self._source, self._images, self._sizes, self._objects, classes, units)
        return detection_samples(found, self.options, self.ledger)


def around_points(points: Sequence[Sequence[float]]) -> Corners:
    """Return the upright box around points (x, y).

    >>> around_points([(3, 9), (1, 4), (2, 5)])
    (1, 4, 3, 9)
    """
    xs = [point[0] for point in points]
    ys = [point[1] for point in points]
    return (min(xs), min(ys), max(xs), max(ys))
