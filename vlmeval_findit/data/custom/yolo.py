"""A YOLO folder: ``images/…``, ``labels/…`` alike, and ``data.yaml`` or ``classes.txt``.

A line of a label file is ``class cx cy width height``, fractions of the image's width and height.
Folders of splits below both (``train``, ``val``) are separate sets: only one of them is read.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...core.files import unsafe
from ...core.formatting import nearest
from ..annotated_samples import AnnotatedBox, AnnotationError, Samples, Units, detection_samples
from .annotation_values import IMAGE_SUFFIXES, text_of, written_number


def read_yolo(folder: Path, images: Path, split: str | None = None) -> Samples:
    """Read the label files of one split of a folder; every one needs its image.

    An image without a label file, or with an empty file, shows no object of any class.

    Args:
        folder: has ``labels``, and what the classes are called.
        images: where the images lie, with the same folders below it.
        split: the folder below ``labels`` that is read (None: the validation split, where there
            are several; everything, where there are none).

    Raises:
        AnnotationError: no classes, no labels, an unknown split, or not five numbers.
    """
    names = _names(folder)
    labels = folder / "labels"
    everywhere = sorted(labels.rglob("*.txt"))
    if not everywhere:
        raise AnnotationError(f"{labels}: no label files (*.txt)")
    part = _split(labels, images, split)
    files = sorted((labels / part).rglob("*.txt"))
    by_stem = _images_by_stem(images, part)
    objects: list[tuple[str, AnnotatedBox]] = []
    for file in files:
        name = _image_of(file, labels, images, by_stem).relative_to(images).as_posix()
        for at, line in enumerate(text_of(file).splitlines(), 1):
            if line.strip():
                objects.append((name, _box(f"{file}, line {at}", line, names)))
    shown = [image.relative_to(images).as_posix() for image in by_stem.values()]
    with_objects = {name for name, _ in objects}
    others = len(everywhere) - len(files)
    return detection_samples(
        folder,
        images,
        dict.fromkeys(shown),
        objects,
        units=Units.FRACTIONS,
        left_out={f"label files that are not of the split {part}": others} if others else {},
        backgrounds=[name for name in shown if name not in with_objects],
    )


_SPLIT = re.compile(r"(train|training|val|valid|validation|test|testing)([0-9]{4})?")
"""Names of folders of splits."""


def _split(labels: Path, images: Path, stated: str | None) -> str:
    """Return the folder below ``labels`` to read; "": everything, there are no splits.

    Raises:
        AnnotationError: it is not known, or there is none of the stated name.
    """
    folders = [path for root in (labels, images) for path in root.iterdir() if path.is_dir()]
    there = sorted({path.name for path in folders if _SPLIT.fullmatch(path.name)})
    if stated is not None:
        if not (labels / stated).is_dir() or unsafe(stated):
            raise AnnotationError(f"{labels}: no split {stated!r}{nearest(stated, there)}")
        return stated
    choices = [name for name in there if name.startswith("val")] if len(there) > 1 else there
    if there and len(choices) != 1:
        flags = " or --split ".join(there)
        raise AnnotationError(f"{labels}: which of its splits is meant? Say --split {flags}")
    return choices[0] if choices else ""


def _images_by_stem(images: Path, part: str) -> dict[Path, Path]:
    """Return the images of a split by their paths without the suffix."""
    by_stem: dict[Path, Path] = {}
    there = sorted((images / part).rglob("*"))
    for suffix in IMAGE_SUFFIXES:
        for path in there:
            if path.suffix.lower() == suffix and path.is_file():
                # Not with_suffix: a name may have dots.
                by_stem.setdefault(path.with_name(path.name[: -len(suffix)]), path)
    return dict(sorted(by_stem.items()))


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
        why = " ".join(str(error).split())
        raise AnnotationError(f"{file}: not YAML: {why}") from None
    names = values.get("names") if isinstance(values, dict) else None
    if isinstance(names, list):
        names = dict(enumerate(names))
    if not isinstance(names, dict) or not names:
        raise AnnotationError(f"{file}: no list or mapping 'names' of classes")
    by_number: dict[int, str] = {}
    for key, name in names.items():
        if not re.fullmatch("[0-9]+", str(key)) or int(key) in by_number:
            raise AnnotationError(
                f"{file}, names: {reprlib.repr(key)} is not the number of a class, or stands twice"
            )
        if not isinstance(name, (str, int, float)):
            raise AnnotationError(f"{file}, names, {key}: {reprlib.repr(name)} is not a name")
        by_number[int(key)] = str(name)
    return by_number


def _image_of(label: Path, labels: Path, images: Path, by_stem: Mapping[Path, Path]) -> Path:
    stem = images / label.relative_to(labels).with_suffix("")
    if stem not in by_stem:
        raise AnnotationError(f"{label}: no image {stem} ({', '.join(IMAGE_SUFFIXES)})")
    return by_stem[stem]


def _box(where: str, line: str, names: Mapping[int, str]) -> AnnotatedBox:
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
    return AnnotatedBox(corners, where, names[int(fields[0])])


def _some(names: Mapping[int, str]) -> str:
    numbers = sorted(names)
    if numbers == [*range(len(numbers))]:
        return f"0 to {len(numbers) - 1}"
    return reprlib.repr(numbers).strip("[]")
