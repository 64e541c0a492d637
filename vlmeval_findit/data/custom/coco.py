"""COCO instances (``instances.json``): boxes are [x, y, width, height] in pixels."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeGuard

from ...core.image_files import Size
from ..annotated_samples import CROWD, AnnotatedBox, AnnotationError, Samples, detection_samples
from .masks import mask_of_coco
from .text import SIDES, json_of, numbers, text_of


def read_coco(
    path: Path,
    images: Path,
    prepare: Callable[[Any], Any] = lambda values: values,
    without_flat: bool = False,
) -> Samples:
    """Read a COCO instances file with its masks; crowd regions are ignored.

    Args:
        path: the file.
        images: the folder that its file names are relative to.
        prepare: may change the parsed JSON first.
        without_flat: leave boxes without an area out, and count them.

    Raises:
        AnnotationError: it is no such file, or an annotation names what there is not.
    """
    values = prepare(json_of(text_of(path), str(path), "a COCO file"))
    images_by_id = _by_id(path, values, "images", "file_name")
    categories = _by_id(path, values, "categories", "name")
    sizes = {image["file_name"]: _size(path, image) for image in images_by_id.values()}
    objects, flat = [], 0
    for at, entry in enumerate(_section(path, values, "annotations")):
        where = f"{path}, annotations[{at}]"
        name = _named(where, entry, "image_id", images_by_id)["file_name"]
        label = _named(where, entry, "category_id", categories)["name"]
        ignored = CROWD if _is_crowd(where, entry) else ""
        mask = mask_of_coco(entry.get("segmentation"), sizes[name], where)
        x, y, w, h = numbers(entry.get("bbox"), f"{where}, bbox", SIDES)
        if without_flat and not (x < x + w and y < y + h):
            flat += 1
            continue
        corners = (x, y, x + w, y + h)
        objects.append((name, AnnotatedBox(corners, where, label, ignored=ignored, mask=mask)))
    return detection_samples(
        path,
        images,
        sizes,
        objects,
        left_out={"boxes without an area": flat} if flat else {},
        image_ids={image["file_name"]: number for number, image in images_by_id.items()},
        category_ids={category["name"]: number for number, category in categories.items()},
    )


def _section(path: Path, values: Any, name: str) -> list[dict[str, Any]]:
    rows = values.get(name) if isinstance(values, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise AnnotationError(f"{path}: no list {name!r} of objects, so this is no COCO file")
    return rows


def _is_id(value: object) -> TypeGuard[int]:
    """Tell whether a value is a whole number; ``true`` is not, though Python counts it as 1."""
    return isinstance(value, int) and not isinstance(value, bool)


def _by_id(path: Path, values: Any, section: str, name: str) -> dict[int, dict[str, Any]]:
    """Return the rows of a section by id; ids and names must be there and unique."""
    by_id: dict[int, dict[str, Any]] = {}
    names: set[str] = set()
    for at, row in enumerate(_section(path, values, section)):
        where = f"{path}, {section}[{at}]"
        if not _is_id(row.get("id")) or not isinstance(row.get(name), str):
            raise AnnotationError(f"{where}: needs an id (a whole number) and a {name}")
        if row["id"] in by_id or row[name] in names:
            raise AnnotationError(f"{where}: id {row['id']} or {name} {row[name]!r} stands twice")
        by_id[row["id"]] = row
        names.add(row[name])
    return by_id


def _is_crowd(where: str, entry: Mapping[str, Any]) -> bool:
    value = entry.get("iscrowd", 0)
    if value not in (0, 1):
        raise AnnotationError(f"{where}, iscrowd: {reprlib.repr(value)} is neither 0 nor 1")
    return bool(value)


def _named(
    where: str, entry: Mapping[str, Any], key: str, rows: Mapping[int, dict[str, Any]]
) -> dict[str, Any]:
    value = entry.get(key)
    if not _is_id(value) or value not in rows:
        raise AnnotationError(f"{where}, {key}: there is no {reprlib.repr(value)}")
    return rows[value]


def _size(path: Path, image: Mapping[str, Any]) -> Size | None:
    width, height = image.get("width"), image.get("height")
    if width is None and height is None:
        return None
    if not _is_id(width) or not _is_id(height) or min(width, height) < 1:
        raise AnnotationError(
            f"{path}, image {image['id']}: {reprlib.repr(width)}x{reprlib.repr(height)} is not a "
            "size in pixels"
        )
    return (width, height)
