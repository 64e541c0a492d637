"""A YOLO folder: ``images/…``, ``labels/…`` alike, and ``data.yaml`` or ``classes.txt``.

A line of a label file is ``class cx cy width height``, fractions of the image's width and height.
Folders of splits below both (``train``, ``val``) are separate sets: only one of them is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...core.files import suffix_of, unsafe
from ...core.formatting import nearest
from ..annotated_samples import AnnotatedBox, AnnotationError, Samples, Units
from ..ledger import Ledger
from .annotation_values import IMAGE_SUFFIXES, text_of, written_number
from .detection import Detections, detection_samples
from .reader_options import ReaderOptions


def read_yolo(folder: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read the label files of one split of a folder; every one needs its image.

    An image without a label file, or with an empty file, shows no object of any class.

    Args:
        folder: has ``labels``, and what the classes are called.
        images: where the images lie, with the same folders below it.
        options: its split is the folder below ``labels`` that is read (None: the validation split,
            where there are several; everything, where there are none).

    Raises:
        AnnotationError: no classes, no labels, an unknown split, or not five numbers.
    """
    options = options or ReaderOptions()
    ledger = Ledger()
    names = _names(folder)
    labels = folder / "labels"
    everywhere = _label_files(labels)
    if not everywhere:
        raise AnnotationError(f"{labels}: no label files (*.txt)")
    part = _split(labels, images, options.split)
    files = _label_files(labels / part)
    by_stem = _images_by_stem(images, part)
    objects: list[tuple[str, AnnotatedBox]] = []
    for file in files:
        stem = file.relative_to(labels).with_suffix("")
        if stem not in by_stem:
            raise AnnotationError(f"{file}: no image {images / stem} ({', '.join(IMAGE_SUFFIXES)})")
        objects += [
            (by_stem[stem], _box(f"{file}, line {at}", line, names))
            for at, line in enumerate(text_of(file).splitlines(), 1)
            if line.strip()
        ]
    others = sorted(set(everywhere) - set(files))
    if others:
        ledger.leave_out(f"label files not of the split {part}", str(others[0]), len(others))
    found = Detections(
        source=folder,
        images=images,
        sizes=dict.fromkeys(by_stem.values()),
        objects=objects,
        classes=list(names.values()),
        units=Units.FRACTIONS,
    )
    return detection_samples(found, options, ledger)


_SPLIT = re.compile(r"(train|training|val|valid|validation|test|testing)([0-9]{4})?")
"""Names of folders of splits."""


def _split(labels: Path, images: Path, stated: str | None) -> str:
    """Return the folder below ``labels`` to read; "": everything, there are no splits."""
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


def _label_files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if suffix_of(path) == ".txt"]


def _images_by_stem(images: Path, part: str) -> dict[Path, str]:
    """Return the images of a split, below ``images``, by their paths without the suffix."""
    there = sorted(path for path in (images / part).rglob("*") if path.is_file())
    by_stem: dict[Path, str] = {}
    for suffix in IMAGE_SUFFIXES:
        for path in there:
            if suffix_of(path) == suffix:
                name = path.relative_to(images).as_posix()
                by_stem.setdefault(Path(name[: -len(suffix)]), name)
    return dict(sorted(by_stem.items()))


def _names(folder: Path) -> Mapping[str, str]:
    """Return what the classes are called, by their numbers."""
    for file in (folder / "data.yaml", folder / "dataset.yaml"):
        if file.is_file():
            return _listed_names(file)
    listed = folder / "classes.txt"
    if listed.is_file():
        return {str(at): name for at, name in enumerate(text_of(listed).splitlines())}
    raise AnnotationError(f"{folder}: neither data.yaml nor classes.txt says the classes' names")


def _listed_names(file: Path) -> dict[str, str]:
    import yaml

    try:
        values: Any = yaml.safe_load(text_of(file))
    except yaml.YAMLError as error:
        raise AnnotationError(f"{file}: not YAML: {' '.join(str(error).split())}") from None
    names = values.get("names") if isinstance(values, dict) else None
    if isinstance(names, list):
        names = dict(enumerate(names))
    if not isinstance(names, dict) or not names:
        raise AnnotationError(f"{file}: no list or mapping 'names' of classes")
    for key, name in names.items():
        if not re.fullmatch("[0-9]+", str(key)) or not isinstance(name, str | int | float):
            raise AnnotationError(f"{file}, names: {key!r}: {name!r} is no number and its name")
    return {str(key): str(name) for key, name in names.items()}


def _box(where: str, line: str, names: Mapping[str, str]) -> AnnotatedBox:
    number, *fields = line.split()
    if len(fields) != 4:
        outlines = " (outlines are not read)" if len(fields) > 4 else ""
        why = f"{len(fields) + 1} numbers, should be class cx cy width height{outlines}"
        raise AnnotationError(f"{where}: {why}")
    if number not in names:
        raise AnnotationError(f"{where}: no class {number} (there are {', '.join(names):.60})")
    cx, cy, w, h = (written_number(field, where) for field in fields)
    corners = (cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2)
    return AnnotatedBox(corners, where, names[number])
