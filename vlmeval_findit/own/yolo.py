"""A YOLO folder: ``images/…``, ``labels/…`` alike, and ``data.yaml`` or ``classes.txt``.

A line of a label file is ``class cx cy width height``, fractions of the image's width and height.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .annotations import IMAGE_SUFFIXES, AnnotationError, Annotations, Box, number


def read_yolo(folder: Path, images: Path) -> Annotations:
    """Read all label files of a folder; every one needs its image, to know the size in pixels.

    Raises:
        AnnotationError: no classes, no labels, or a line that is not five numbers.
    """
    names = _names(folder)
    files = sorted((folder / "labels").rglob("*.txt"))
    if not files:
        raise AnnotationError(f"{folder / 'labels'}: no label files (*.txt)")
    sizes: dict[str, tuple[int, int] | None] = {}
    boxes: list[Box] = []
    for file in files:
        image = _image_of(file, folder, images)
        name = image.relative_to(images).as_posix()
        sizes[name] = size = _size(image)
        for at, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if line.strip():
                boxes.append(_box(f"{file}, line {at}", line, name, size, names))
    return Annotations(folder, sizes, tuple(boxes))


def _names(folder: Path) -> dict[int, str]:
    import yaml

    for file in (folder / "data.yaml", folder / "dataset.yaml"):
        if file.is_file():
            values: Any = yaml.safe_load(file.read_text(encoding="utf-8"))
            names = values.get("names") if isinstance(values, dict) else None
            if isinstance(names, list):
                names = dict(enumerate(names))
            if not isinstance(names, dict) or not names:
                raise AnnotationError(f"{file}: no list or mapping 'names' of classes")
            return {int(key): str(name) for key, name in names.items()}
    listed = folder / "classes.txt"
    if listed.is_file():
        return dict(enumerate(listed.read_text(encoding="utf-8").splitlines()))
    raise AnnotationError(f"{folder}: neither data.yaml nor classes.txt says the classes' names")


def _image_of(label: Path, folder: Path, images: Path) -> Path:
    stem = images / label.relative_to(folder / "labels").with_suffix("")
    for suffix in IMAGE_SUFFIXES:
        # Not with_suffix: a name may have dots of its own.
        path = stem.with_name(stem.name + suffix)
        if path.is_file():
            return path
    raise AnnotationError(f"{label}: no image {stem} ({', '.join(IMAGE_SUFFIXES)})")


def _size(path: Path) -> tuple[int, int]:
    from PIL import Image

    try:
        with Image.open(path) as picture:
            return picture.size
    except OSError as error:
        raise AnnotationError(f"{path}: cannot be opened ({error})") from None


def _box(where: str, line: str, image: str, size: tuple[int, int], names: dict[int, str]) -> Box:
    fields = line.split()
    if len(fields) != 5:
        raise AnnotationError(
            f"{where}: {len(fields)} numbers, should be class cx cy width height"
            + (" (outlines are not read)" if len(fields) > 5 else "")
        )
    if not fields[0].isdigit() or int(fields[0]) not in names:
        raise AnnotationError(f"{where}: no class {fields[0]} (there are 0 to {len(names) - 1})")
    cx, cy, w, h = (number(field, where) for field in fields[1:])
    x, y = size
    corners = ((cx - w / 2) * x, (cy - h / 2) * y, (cx + w / 2) * x, (cy + h / 2) * y)
    return Box(image, names[int(fields[0])], corners, where)
