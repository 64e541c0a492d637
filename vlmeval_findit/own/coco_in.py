"""COCO instances (``instances.json``): boxes are [x, y, width, height] in pixels."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .annotations import AnnotationError, Annotations, Box, number


def read_coco(path: Path) -> Annotations:
    """Read a COCO instances file.  Crowd regions are left out: they are no instances.

    Raises:
        AnnotationError: it is no such file, or an annotation names what there is not.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise AnnotationError(f"{path}: not JSON: {error}") from None
    images = _by_id(path, values, "images", "file_name")
    categories = _by_id(path, values, "categories", "name")
    boxes = []
    left_out: Counter[str] = Counter()
    for at, entry in enumerate(_section(path, values, "annotations")):
        where = f"{path}, annotations[{at}]"
        if entry.get("iscrowd"):
            left_out["crowd regions"] += 1
            continue
        image = _named(where, entry, "image_id", images)
        category = _named(where, entry, "category_id", categories)
        boxes.append(Box(image["file_name"], category["name"], _corners(where, entry), where))
    return Annotations(
        source=path,
        images={image["file_name"]: _size(path, image) for image in images.values()},
        boxes=tuple(boxes),
        image_ids={image["file_name"]: number for number, image in images.items()},
        category_ids={category["name"]: number for number, category in categories.items()},
        left_out=left_out,
    )


def _section(path: Path, values: Any, name: str) -> list[dict[str, Any]]:
    rows = values.get(name) if isinstance(values, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise AnnotationError(f"{path}: no list {name!r} of objects, so this is no COCO file")
    return rows


def _by_id(path: Path, values: Any, section: str, name: str) -> dict[int, dict[str, Any]]:
    """The rows of a section by id; ids and names must be there and unique."""
    found: dict[int, dict[str, Any]] = {}
    names: set[str] = set()
    for at, row in enumerate(_section(path, values, section)):
        where = f"{path}, {section}[{at}]"
        if not isinstance(row.get("id"), int) or not isinstance(row.get(name), str):
            raise AnnotationError(f"{where}: needs an id (a whole number) and a {name}")
        if row["id"] in found or row[name] in names:
            raise AnnotationError(f"{where}: id {row['id']} or {name} {row[name]!r} stands twice")
        found[row["id"]] = row
        names.add(row[name])
    return found


def _named(
    where: str, entry: Mapping[str, Any], key: str, rows: Mapping[int, dict[str, Any]]
) -> dict[str, Any]:
    if entry.get(key) not in rows:
        raise AnnotationError(f"{where}, {key}: there is no {entry.get(key)!r}")
    return rows[entry[key]]


def _corners(where: str, entry: Mapping[str, Any]) -> tuple[float, float, float, float]:
    box = entry.get("bbox")
    if not isinstance(box, list) or len(box) != 4:
        raise AnnotationError(f"{where}, bbox: {box!r} is not [x, y, width, height]")
    x, y, w, h = (number(value, f"{where}, bbox") for value in box)
    return (x, y, x + w, y + h)


def _size(path: Path, image: Mapping[str, Any]) -> tuple[int, int] | None:
    width, height = image.get("width"), image.get("height")
    if width is None and height is None:
        return None
    if not isinstance(width, int) or not isinstance(height, int):
        raise AnnotationError(
            f"{path}, image {image['id']}: {width!r}x{height!r} is not a size in pixels"
        )
    return (width, height)
