"""What an export to COCO needs of the COCO file that a table was imported from."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from ...boxes import Corners
from ...core import atomic_write, read_json, validate
from ...storage import Size
from ..annotated_samples import RenamedClass, Samples, Units
from .exif_pixels import to_stored, to_turned, turned_size


@dataclass(frozen=True, slots=True)
class StatedArea:
    """The area of an object, where it is not that of its box: a mask's."""

    image: str
    label: str
    corners: tuple[float, float, float, float]  # (x1, y1, x2, y2), as the file has them
    area: float


@dataclass(frozen=True, slots=True)
class RepeatedObject:
    """An object that a file has several times; a query has it once."""

    image: str
    label: str
    corners: tuple[float, float, float, float]  # (x1, y1, x2, y2), as the file has them
    times: int


@dataclass(frozen=True, slots=True)
class CocoIds:
    """Ids, coordinates, areas and repetitions of a COCO file; empty for tables of other files."""

    images: Mapping[str, int | str] = field(default_factory=dict)  # By file name
    categories: Mapping[str, int | str] = field(default_factory=dict)  # By class
    # Classes of the file that are called otherwise here, or are joined with another
    renamed: tuple[RenamedClass, ...] = ()
    # EXIF orientation, by file name, of images whose boxes refer to the turned image
    turned: Mapping[str, int] = field(default_factory=dict)
    units: str = Units.PIXELS.value
    areas: tuple[StatedArea, ...] = ()
    repeats: tuple[RepeatedObject, ...] = ()

    def size(self, image: str, stored: Size) -> Size:
        """Return (width, height) of an image as the file has it."""
        return turned_size(stored, self.turned.get(image, 1))

    def corners(self, image: str, box: Corners, stored: Size) -> Corners:
        """Convert (x1, y1, x2, y2) in pixels of the stored image to the file's coordinates."""
        x1, y1, x2, y2 = to_turned(box, self.turned.get(image, 1), stored)
        units = Units(self.units)
        if units is Units.PIXELS:
            return (x1, y1, x2, y2)
        width, height = self.size(image, stored)
        x_scale = units.scale / width
        y_scale = units.scale / height
        return (x1 * x_scale, y1 * y_scale, x2 * x_scale, y2 * y_scale)

    def stored(self, image: str, box: Corners, stored: Size) -> Corners:
        """Convert (x1, y1, x2, y2) in the file's coordinates to pixels of the stored image."""
        width, height = self.size(image, stored)
        units = Units(self.units)
        x1, y1, x2, y2 = box
        if units is not Units.PIXELS:
            x_scale = width / units.scale
            y_scale = height / units.scale
            x1 *= x_scale
            y1 *= y_scale
            x2 *= x_scale
            y2 *= y_scale
        return to_stored((x1, y1, x2, y2), self.turned.get(image, 1), stored)

    def areas_by_object(self) -> Mapping[object, float]:
        """Return stated areas by :func:`object_key`."""
        return {object_key(each.image, each.label, each.corners): each.area for each in self.areas}

    def times_by_object(self) -> Mapping[object, int]:
        """Return how often objects stand in the file, if several times, by :func:`object_key`."""
        repeats = self.repeats
        return {object_key(each.image, each.label, each.corners): each.times for each in repeats}


def number_and_text(ids: Collection[int | str]) -> tuple[int, str] | None:
    """Return an id that is a number and one that is a text; None: all are alike.

    Nothing can order both, and pycocotools orders ids.

    >>> number_and_text([7, "x8", 9]), number_and_text([7, 8])
    ((7, 'x8'), None)
    """
    numbers = [each for each in ids if isinstance(each, int)]
    texts = [each for each in ids if isinstance(each, str)]
    return (numbers[0], texts[0]) if numbers and texts else None


def object_key(image: str, label: str, corners: Corners) -> object:
    """Return what identifies an object: conversions there and back round the last digits."""
    return (image, label, tuple(round(number, 3) for number in corners))


def ids_path(table: Path) -> Path:
    """Return the file with the ids of the COCO file that a table was imported from."""
    return table.with_name(f"{table.stem.removesuffix('_multilabel')}.coco.json")


def read_ids(table: Path) -> CocoIds:
    """Read the ids of a table; of tables that come from no COCO file they are empty."""
    path = ids_path(table)
    if not path.is_file():
        return CocoIds()
    return validate(CocoIds, read_json(path))


def write_ids(table: Path, samples: Samples, turned: Mapping[str, int]) -> None:
    """Write the ids of a table, or delete those of the table that it replaces."""
    path = ids_path(table)
    if not samples.image_ids:
        path.unlink(missing_ok=True)
        return
    ids = CocoIds(
        images=samples.image_ids,
        categories=samples.category_ids,
        turned={
            name: turn for name, turn in turned.items() if turn != 1 and name in samples.image_ids
        },
        units=samples.units.value,
    )
    renamed = [asdict(each) for each in samples.renamed_classes]
    areas = _of_objects(StatedArea, samples.areas)
    repeats = _of_objects(RepeatedObject, samples.repeats)
    # Not json.dump, which writes a number at a time, in Python
    values = {each.name: getattr(ids, each.name) for each in fields(ids)}
    text = json.dumps({**values, "renamed": renamed, "areas": areas, "repeats": repeats})
    with atomic_write(path) as f:
        f.write(text)


def _of_objects(
    kind: type[StatedArea | RepeatedObject], values: Mapping[tuple[str, str, Corners], float]
) -> list[dict[str, object]]:
    """Return what is stated of objects as ``kind`` has it, without making one of each."""
    names = [each.name for each in fields(kind)]
    return [dict(zip(names, (*key, value), strict=True)) for key, value in values.items()]
