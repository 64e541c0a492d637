"""Collect images and objects, for readers whose files list one after the other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...boxes import Corners
from ...marks import PackedMask
from ...storage import Size
from ..annotated_samples import AnnotatedBox, AnnotationError, Samples, Units
from ..ledger import Ledger
from .annotation_values import state_size
from .detection import Detections, detection_samples
from .image_names import ImageNames
from .json_records import RecordT, read_record
from .reader_options import ReaderOptions

# The corners of an object whose box cannot be used
NO_BOX: Corners = (math.nan, math.nan, math.nan, math.nan)


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

    def record(self, kind: type[RecordT], value: Any, where: str) -> RecordT:
        """Return an object of JSON as a record, or raise an AnnotationError."""
        return read_record(kind, value, where, self.ledger)

    def records(
        self, kind: type[RecordT], values: Sequence[Any], where: str
    ) -> Iterator[tuple[str, RecordT]]:
        """Yield the objects of a list as records, after their places; see :meth:`record`."""
        for at, value in enumerate(values):
            place = f"{where}[{at}]"
            yield place, self.record(kind, value, place)

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
        detections = Detections(
            self._source, self._images, self._sizes, self._objects, classes, units
        )
        return detection_samples(detections, self.options, self.ledger)
