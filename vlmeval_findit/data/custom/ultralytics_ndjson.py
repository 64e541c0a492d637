"""Read Ultralytics' NDJSON: a line about the data set, then one an image, with YOLO's numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

from ...boxes import Corners
from ...core import Expected, Text
from ..annotated_samples import Samples, Units
from .annotation_values import Coordinate, ObjectOfJson
from .class_rules import check_class_names
from .collector import Collector
from .node import Node
from .reader_options import ReaderOptions
from .upright_boxes import OUTLINES, around_centre, around_points

_OF_SET = frozenset(
    ("type", "class_names", "task", "name", "description", "url", "bytes", "version", "kpt_shape")
)
_OF_IMAGES = frozenset(("type", "url", "hash", "bytes", "id"))
_Shape = Callable[[Sequence[float], Node], Corners]
_Row = Annotated[list[Coordinate], Expected("a list: class, and numbers", min_length=5)]
# What annotations have, by task: rows that begin with a box, and rows of points
_BOXES = ("boxes", "pose")
_OUTLINES = ("segments", "obb")


def read_ultralytics_ndjson(
    path: Path, images: Path, options: ReaderOptions | None = None
) -> Samples:
    """Read a file of lines; outlines and turned boxes become the upright boxes around them.

    Raises an AnnotationError for other lines, and for classes without a name.
    """
    collector = Collector(path, images, options, Units.FRACTIONS)
    names: dict[str, str] = {}
    for line in collector.json_lines(path):
        if line.get("type", Text) == "dataset":
            line.rest("the data set", _OF_SET)
            names = line.get("class_names", dict[str, str])
            check_class_names(names, line.at("class_names"), collector.ledger)
            continue
        splits = line.rest("images", {"file", "width", "height", "annotations"}, _OF_IMAGES)
        image = collector.image(line.get("file", Text), line, line.size, splits)
        for row, corners_of in _rows(line, collector):
            number, *numbers = row.read(_Row)
            label = names.get(f"{number:g}")
            if label is None:
                raise row.error(f"unknown class {number:g} (there are {', '.join(names):.60})")
            collector.add(image, label, corners_of(numbers, row), row)
    return collector.samples(classes=list(dict.fromkeys(names.values())))


def _rows(line: Node, collector: Collector) -> Iterator[tuple[Node, _Shape]]:
    """Yield the objects of an image, with what makes a box of their numbers."""
    if not line.find("annotations", ObjectOfJson):
        return
    stated = line.at("annotations")
    stated.rest("annotations", {*_BOXES, *_OUTLINES}, {"classification"})
    for kind in _BOXES:
        for row in stated.each(kind):
            yield row, _first_box
    for kind in _OUTLINES:
        for row in stated.each(kind):
            collector.ledger.note(OUTLINES, str(row))
            yield row, _around_outline


def _first_box(numbers: Sequence[float], row: Node) -> Corners:
    return around_centre(*numbers[:4])


def _around_outline(numbers: Sequence[float], row: Node) -> Corners:
    if len(numbers) % 2:
        raise row.error("an outline has an odd number of coordinates")
    return around_points(list(zip(numbers[::2], numbers[1::2], strict=True)))
