"""A YOLO folder: ``images/…``, ``labels/…`` alike, and ``data.yaml`` or ``classes.txt``.

A line of a label file is ``class cx cy width height``, fractions of the image's width and height.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .annotations import (
    IMAGE_SUFFIXES,
    AnnotationError,
    Annotations,
    Box,
    Units,
    text_of,
    written_number,
)


def read_yolo(folder: Path, images: Path) -> Annotations:
    """Read all label files of a folder; every one needs its image.

    Raises:
        AnnotationError: no classes, no labels, or a line that is not five numbers.
    """
    names = _names(folder)
    files = sorted((folder / "labels").rglob("*.txt"))
    if not files:
        raise AnnotationError(f"{folder / 'labels'}: no label files (*.txt)")
    found: list[str] = []
    boxes: list[Box] = []
    for file in files:
        name = _image_of(file, folder, images).relative_to(images).as_posix()
        found.append(name)
        for at, line in enumerate(text_of(file).splitlines(), 1):
            if line.strip():
                boxes.append(_box(f"{file}, line {at}", line, name, names))
    return Annotations(folder, dict.fromkeys(found), tuple(boxes), Units.FRACTIONS)


def _names(folder: Path) -> Mapping[int, str]:
    for file in (folder / "data.yaml", folder / "dataset.yaml"):
        if file.is_file():
            return _listed_names(file)
    listed = folder / "classes.txt"
    if listed.is_file():
        return dict(enumerate(text_of(listed).splitlines()))
    raise AnnotationError(f"{folder}: neither data.yaml nor classes.txt says the classes' names")


def _listed_names(file: Path) -> dict[int, str]:
    import yaml

    try:
        values: Any = yaml.safe_load(text_of(file))
    except (yaml.YAMLError, RecursionError) as error:
        said = " ".join(str(error).split())
        raise AnnotationError(f"{file}: not YAML: {said}") from None
    names = values.get("names") if isinstance(values, dict) else None
    if isinstance(names, list):
        names = dict(enumerate(names))
    if not isinstance(names, dict) or not names:
        raise AnnotationError(f"{file}: no list or mapping 'names' of classes")
    found: dict[int, str] = {}
    for key, name in names.items():
        if not re.fullmatch("[0-9]+", str(key)) or int(key) in found:
            raise AnnotationError(
                f"{file}, names: {reprlib.repr(key)} is not the number of a class, or stands twice"
            )
        if not isinstance(name, (str, int, float)):
            raise AnnotationError(f"{file}, names, {key}: {reprlib.repr(name)} is not a name")
        found[int(key)] = str(name)
    return found


def _image_of(label: Path, folder: Path, images: Path) -> Path:
    stem = images / label.relative_to(folder / "labels").with_suffix("")
    for suffix in IMAGE_SUFFIXES:
        # Not with_suffix: a name may have dots of its own.
        path = stem.with_name(stem.name + suffix)
        if path.is_file():
            return path
    raise AnnotationError(f"{label}: no image {stem} ({', '.join(IMAGE_SUFFIXES)})")


def _box(where: str, line: str, image: str, names: Mapping[int, str]) -> Box:
    fields = line.split()
    if len(fields) != 5:
        raise AnnotationError(
            f"{where}: {len(fields)} numbers, should be class cx cy width height"
            + (" (outlines are not read)" if len(fields) > 5 else "")
        )
    if not re.fullmatch("[0-9]{1,9}", fields[0]) or int(fields[0]) not in names:
        raise AnnotationError(f"{where}: no class {fields[0][:20]} (there are {_some(names)})")
    cx, cy, w, h = (written_number(field, where) for field in fields[1:])
    corners = (cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2)
    return Box(image, names[int(fields[0])], corners, where)


def _some(names: Mapping[int, str]) -> str:
    numbers = sorted(names)
    if numbers == [*range(len(numbers))]:
        return f"0 to {len(numbers) - 1}"
    return reprlib.repr(numbers).strip("[]")
