"""Read Hugging Face's metadata.jsonl: an image a line, boxes [x, y, width, height] in pixels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from ...core import Expected, Text, counted, quoted_value
from ..annotated_samples import BoxForm, Samples
from .annotation_values import FourNumbers, ListOfJson
from .class_rules import ClassRules
from .collector import Collector
from .node import SIDES_OF_IMAGES, Node
from .reader_options import ReaderOptions
from .uncounted_objects import meaning_of_flag

_Boxes = Annotated[list[FourNumbers], Expected("a list of boxes [x, y, width, height]")]
LABELS = ("category", "categories", "label", "labels", "class", "classes", "name", "names")
_NOT_NEEDED = frozenset(("id", "ids", "area", "areas", "bbox_id", "image_id"))
_READ = frozenset(("file_name", "objects")).union(*SIDES_OF_IMAGES.values())


def read_hf_metadata(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read a metadata.jsonl with a column ``objects``, as object detection has it.

    Categories that are numbers need names: rules must rename each.

    Raises an AnnotationError for other lines, and for numbers without names.
    """
    collector = Collector(path, images, options, form=BoxForm.SIDES)
    for line in collector.json_lines(path):
        splits = line.rest("lines", _READ, {"image_id", "text", "caption"})
        image = collector.image(line.get("file_name", Text), line, line.size, splits)
        if "objects" not in line.keys:
            raise line.error("objects is missing")
        read_objects(line.at("objects"), image, collector)
    return collector.samples()


def read_objects(
    objects: Node, image: str, collector: Collector, classes: Sequence[str] = ()
) -> None:
    """Read lists of boxes and labels side by side, or one list of objects.

    ``classes`` are the names of labels that are numbers.
    """
    columns = _columns(objects)
    if not columns:
        return
    names = [key for key in LABELS if key in columns]
    if "bbox" not in columns or len(names) != 1:
        there = ", ".join(columns)
        raise objects.error(f"should have bbox and category; has {there}")
    # null is "not stated", as the datasets library writes it.
    flags = {key: cells for key, cells in columns.items() if meaning_of_flag(key)}
    flags = {key: cells for key, cells in flags.items() if cells is not None}
    place = objects.of(columns)
    rest = columns.keys() - {"bbox", names[0]} - {key for key in columns if meaning_of_flag(key)}
    collector.ledger.keys("objects", rest, _NOT_NEEDED, str(objects))
    boxes = place.get("bbox", _Boxes)
    labels = place.get(names[0], ListOfJson)
    by_object = {key: place.get(key, ListOfJson) for key in flags}
    for cells in (labels, *by_object.values()):
        if len(cells) != len(boxes):
            raise objects.error(f"{counted(len(boxes), 'box')}, but {counted(len(cells), 'label')}")
    form = collector.options.form or BoxForm.SIDES
    for at, box in enumerate(boxes):
        where = Node(None, f"[{at}]", objects.ledger, objects)
        label = _label(labels[at], where, collector.options.classes, classes)
        of_object = {key: cells[at] for key, cells in by_object.items()}
        collector.add(image, label, form.corners(box), where, of_object)


def _columns(objects: Node) -> dict[str, Any]:
    """Return the lists of an object; a list of objects has a list for each of their keys."""
    if isinstance(objects.value, dict):
        return objects.value
    if not isinstance(objects.value, list):
        raise objects.error("should have bbox and category")
    columns: dict[str, Any] = {}
    for entry in objects.value:
        if not isinstance(entry, dict) or entry.keys() != objects.value[0].keys():
            raise objects.error("all should have the same keys")
        for key, cell in entry.items():
            columns.setdefault(key, []).append(cell)
    return columns


def _label(value: Any, where: Node, rules: ClassRules, classes: Sequence[str]) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise where.error(f"{quoted_value(value)} is not a category")
    if 0 <= value < len(classes):
        return classes[value]
    return rules.text_of_code(value, str(where))
