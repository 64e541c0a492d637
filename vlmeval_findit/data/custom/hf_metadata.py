"""Read Hugging Face's metadata.jsonl: an image a line, boxes [x, y, width, height] in pixels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from ...core import Expected, Text, shown
from ..annotated_samples import CROWD, AnnotationError, Samples
from .annotation_values import ListOfJson, SidesOfJson, json_of, text_of, validated
from .class_rules import ClassRules
from .collected import Collected
from .json_records import JsonRecord
from .reader_options import ReaderOptions

_Boxes = Annotated[list[SidesOfJson], Expected("a list of boxes [x, y, width, height]")]
_LABELS = ("category", "categories", "label", "labels", "class", "classes", "name", "names")
_NOT_NEEDED = frozenset(("id", "ids", "area", "areas", "bbox_id", "image_id"))


@dataclass(frozen=True, slots=True)
class _MetadataLine(JsonRecord):
    called = "lines"
    not_needed = frozenset(("image_id", "text", "caption"))
    file_name: Text
    objects: Any
    width: Any = None
    height: Any = None


def read_hf_metadata(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read a metadata.jsonl with a column ``objects``, as object detection has it.

    Categories that are numbers need names: rules must rename each.

    Raises an AnnotationError for other lines, and for numbers without names.
    """
    collected = Collected(path, images, options)
    for number, text in enumerate(text_of(path).split("\n"), 1):
        if not text.strip():
            continue
        where = f"{path}, line {number}"
        line = collected.record(_MetadataLine, json_of(text, where), where)
        image = collected.image(line.file_name, where)
        _read_objects(line.objects, where, image, collected)
    return collected.samples()


def _read_objects(value: Any, where: str, image: str, collected: Collected) -> None:
    """Read lists of boxes and labels side by side, or one list of objects."""
    objects = value
    if isinstance(value, list):
        columns: dict[str, list[Any]] = {}
        for entry in value:
            if not isinstance(entry, dict) or entry.keys() != value[0].keys():
                raise AnnotationError(f"{where}, objects: all should have the same keys")
            for key, cell in entry.items():
                columns.setdefault(key, []).append(cell)
        objects = columns
    if not isinstance(objects, dict):
        raise AnnotationError(f"{where}, objects: should have bbox and category")
    if not objects:
        return
    names = [key for key in _LABELS if key in objects]
    if "bbox" not in objects or len(names) != 1:
        there = ", ".join(objects)
        raise AnnotationError(f"{where}, objects: should have bbox and category; has {there}")
    rest = objects.keys() - {"bbox", "iscrowd", names[0]}
    collected.ledger.keys("objects", rest, _NOT_NEEDED, where)
    boxes = validated(_Boxes, objects["bbox"], f"{where}, objects, bbox")
    labels = validated(ListOfJson, objects[names[0]], f"{where}, objects, {names[0]}")
    crowds = objects.get("iscrowd", [0] * len(boxes))
    if not len(boxes) == len(labels) == len(crowds):
        raise AnnotationError(f"{where}, objects: {len(boxes)} boxes, but {len(labels)} labels")
    for at, (x, y, w, h) in enumerate(boxes):
        place = f"{where}, objects[{at}]"
        label = _label(labels[at], place, collected.options.classes)
        ignored = CROWD if crowds[at] else ""
        collected.add(image, label, (x, y, x + w, y + h), place, ignored=ignored)


def _label(value: Any, where: str, rules: ClassRules) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise AnnotationError(f"{where}: {shown(value)} is not a category")
    if str(value) not in (*rules.rename, *rules.drop, *rules.ignore):
        raise AnnotationError(
            f"{where}: the category is the number {value}: type --rename-class {value}=NAME, and "
            "so for each; the data set's README lists the names"
        )
    return str(value)
