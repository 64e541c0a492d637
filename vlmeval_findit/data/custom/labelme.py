"""Read labelme's JSON: a file for each image, with rectangles, polygons and circles in pixels."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from ...boxes import Corners
from ...core import Count, Expected, Text, suffix_of
from ...marks import PackedMask
from ...storage import Size
from ..annotated_samples import Samples
from .annotation_values import PointOfJson, PointsOfJson, json_of, text_of, validated
from .collected import Collected
from .found_files import files_below
from .json_records import JsonRecord
from .polygons import fill
from .reader_options import ReaderOptions
from .upright_boxes import around_points


@dataclass(frozen=True, slots=True)
class _LabelmeFile(JsonRecord):
    called = "files"
    not_needed = frozenset(("version", "imageData", "lineColor", "fillColor", "flags", "text"))
    shapes: Annotated[list[Any], Expected("a list of shapes")]
    imagePath: Text | None = None  # noqa: N815
    imageWidth: Count | None = None  # noqa: N815
    imageHeight: Count | None = None  # noqa: N815

    @property
    def size(self) -> Size | None:
        if self.imageWidth is None or self.imageHeight is None:
            return None
        return (self.imageWidth, self.imageHeight)


@dataclass(frozen=True, slots=True)
class _LabelmeShape(JsonRecord):
    called = "shapes"
    not_needed = frozenset(("description", "line_color", "fill_color"))
    label: Text
    points: Any
    shape_type: Text = "polygon"  # As in old files
    group_id: Any = None
    flags: Any = None


def read_labelme(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read a file, or all JSON files below a folder.

    A polygon becomes the box around it, and its mask; polygons of one label and one ``group_id``
    are one object.  Points and lines have no box.

    Raises an AnnotationError for a file of another kind.
    """
    collected = Collected(path, images, options)
    files = [path]
    if path.is_dir():
        below = files_below(path, collected.ledger)
        files = [file for file in below if suffix_of(file) == ".json"]
    for file in files:
        _read_file(file, images, collected)
    collected.ledger.read("JSON files", len(files))
    return collected.samples()


def _read_file(path: Path, images: Path, collected: Collected) -> None:
    file = collected.record(_LabelmeFile, json_of(text_of(path), str(path)), str(path))
    image = collected.image(_image_name(file, path, images), str(path), file.size)
    groups: dict[object, list[tuple[_LabelmeShape, str]]] = {}
    shapes = collected.records(_LabelmeShape, file.shapes, f"{path}, shapes")
    for at, (where, shape) in enumerate(shapes):
        if isinstance(shape.flags, dict):
            flags = [name for name, is_set in shape.flags.items() if is_set]
            collected.ledger.keys("flags of shapes", flags, frozenset(), where)
        is_alone = shape.group_id is None or shape.shape_type != "polygon"
        key = at if is_alone else (shape.label, str(shape.group_id))
        groups.setdefault(key, []).append((shape, where))
    for group in groups.values():
        _add(group, image, file.size, collected)


def _image_name(file: _LabelmeFile, path: Path, images: Path) -> str:
    """Return the name of the image relative to its folder; it is stated from the JSON file's."""
    stated = (file.imagePath or path.with_suffix("").name).replace("\\", "/")
    if (images / stated).is_file():
        return stated
    from_file = Path(os.path.normpath(path.absolute().parent / stated))
    if from_file.is_relative_to(images.absolute()):
        return from_file.relative_to(images.absolute()).as_posix()
    return stated


def _add(
    group: list[tuple[_LabelmeShape, str]], image: str, size: Size | None, collected: Collected
) -> None:
    """Note the object of one shape, or of several polygons."""
    shape, where = group[0]
    if shape.shape_type not in ("rectangle", "polygon", "circle", "mask"):
        why = f"is a {shape.shape_type}, which has no box"
        collected.add_unusable(image, shape.label, why, where)
        return
    polygons = [validated(PointsOfJson, each.points, f"{place}, points") for each, place in group]
    if len(group) > 1:
        collected.ledger.note("polygons with one group_id that are one object", where, len(group))
    points = list(chain.from_iterable(polygons))
    if shape.shape_type == "circle" and len(points) == 2:
        corners = _around_circle(*points)
    else:
        corners = around_points(points)
    mask: PackedMask | None = None
    if shape.shape_type == "polygon" and size is not None and collected.options.masks:
        outlines = [list(chain.from_iterable(polygon)) for polygon in polygons]
        mask = fill(outlines, size)
    collected.add(image, shape.label, corners, where, mask=mask)


def _around_circle(centre: PointOfJson, edge: PointOfJson) -> Corners:
    x, y = centre
    radius = math.dist(centre, edge)
    return (x - radius, y - radius, x + radius, y + radius)
