"""Recognise annotations by what lies there: formats, and the layouts in which tools export them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...core.files import suffix_of
from ..annotated_samples import AnnotationError, Samples
from .annotation_values import IMAGE_SUFFIXES
from .coco import read_coco
from .csv_boxes import read_csv
from .jsonl import read_jsonl
from .reader_options import ReaderOptions
from .splits import chosen_split
from .voc import read_voc
from .yolo import read_yolo

_CLASSES = ("ignore_class", "drop_class", "rename_class")


@dataclass(frozen=True, slots=True)
class AnnotationFormat:
    """A format of annotations; images stay where they are."""

    name: str  # In messages
    files: str  # In the help, as its meaning
    means: str
    read: Callable[[Path, Path, ReaderOptions], Samples]  # Of a path and the folder of images
    flags: tuple[str, ...]  # Those that it takes of all that are for some formats only


COCO = AnnotationFormat(
    name="COCO",
    files="FILE.json",
    means="COCO: instances with boxes",
    read=read_coco,
    flags=("units", "no_masks", *_CLASSES),
)
JSON_LINES = AnnotationFormat(
    name="JSON lines",
    files="FILE.jsonl",
    means='JSON lines, a query each: {"image": "a.jpg", "expression": "the grey cat", "boxes": '
    "[[1, 2, 30, 40]]}; label, labels, references, images, caption and tags are in "
    "docs/reference/json-lines.md",
    read=read_jsonl,
    flags=("units", "frames"),
)
CSV = AnnotationFormat(
    name="CSV",
    files="FILE.csv, .tsv",
    means="columns image,label,x1,y1,x2,y2 and, if known, width,height; a box each line; also as "
    "Roboflow, TensorFlow and OpenImages name them",
    read=read_csv,
    flags=("units", "split", *_CLASSES),
)
YOLO = AnnotationFormat(
    name="YOLO",
    files="DIR with labels",
    means="YOLO, with data.yaml or classes.txt; also as Roboflow and labelImg lay it out",
    read=read_yolo,
    flags=("split", *_CLASSES),
)
VOC = AnnotationFormat(
    name="VOC",
    files="DIR with XML",
    means="VOC: Annotations/ and JPEGImages/, or XML files beside images",
    read=read_voc,
    flags=("units", "split", "voc_from", *_CLASSES),
)
FORMATS = (COCO, JSON_LINES, CSV, YOLO, VOC)

_BY_SUFFIX = {".json": COCO, ".jsonl": JSON_LINES, ".csv": CSV, ".tsv": CSV}


@dataclass(frozen=True, slots=True)
class Layout:
    """What lies at a path, and where its parts are."""

    format: AnnotationFormat
    path: Path  # What is read
    images: Path  # The folder that image names are relative to
    seen: str  # In words, for the user
    split_is_chosen: bool = False  # By the path: the reader does not choose


def recognise(path: Path, split: str | None) -> Layout:
    """Return the layout of a file or a folder.

    Args:
        path: what the user named.
        split: what the user says, for folders with a file for each split.

    Raises:
        AnnotationError: there is nothing, or it is not clear what it is; the message says what
            would be read.
    """
    if path.is_dir():
        return _of_folder(path, split)
    if not path.exists():
        raise AnnotationError(f"{path}: no such file or folder")
    form = _BY_SUFFIX.get(suffix_of(path))
    if form is None:
        raise AnnotationError(
            f"{path}: files that are read end in .json (COCO), .jsonl, .csv or .tsv"
        )
    return Layout(form, path, path.parent, form.name)


def _of_folder(folder: Path, split: str | None) -> Layout:
    if folder.name in ("Annotations", "labels") and not _inner(folder):
        # One of two formats in a folder
        of_format = _voc if folder.name == "Annotations" else _yolo
        layout = of_format(folder.absolute().parent)
        if layout is not None:
            return layout
    found = [layout for layout in (_yolo(folder), _voc(folder)) if layout is not None]
    if len(found) > 1:
        raise AnnotationError(
            f"{folder} has labels/ (YOLO) and Annotations/ (VOC): name the one that is meant, "
            f"{folder / 'labels'} or {folder / 'Annotations'}"
        )
    layout = found[0] if found else _of_files(folder, split) or _beside_images(folder)
    if layout is None:
        there = sorted(entry.name for entry in folder.iterdir())
        listed = ", ".join(there[:8]) or "nothing"
        raise AnnotationError(
            f"{folder}: no annotations that are read: neither labels/ (YOLO), Annotations/ or XML "
            "files (VOC), *.coco.json or instances_*.json (COCO) nor a .csv file. There is "
            f"{listed}. Name a file, or --set NAME for a published set"
        )
    return layout


def _inner(folder: Path) -> bool:
    return any(folder.glob("*/labels")) or (folder / "Annotations").is_dir()


def _yolo(folder: Path) -> Layout | None:
    if (folder / "labels").is_dir():
        images = folder / "images"
        seen = "YOLO: labels/ and images/"
        return Layout(YOLO, folder, images if images.is_dir() else folder, seen)
    if any(folder.glob("*/labels")):
        return Layout(YOLO, folder, folder, "YOLO: a folder for each split, as Roboflow exports")
    return None


def _voc(folder: Path) -> Layout | None:
    if not (folder / "Annotations").is_dir():
        return None
    for name in ("JPEGImages", "images", "Images"):
        if (folder / name).is_dir():
            return Layout(VOC, folder, folder / name, f"VOC: Annotations/ and {name}/")
    return Layout(VOC, folder, folder, "VOC: Annotations/, with the images beside it")


# --- folders with a file for each split -----------------------------------------------------------


def _of_files(folder: Path, split: str | None) -> Layout | None:
    """Return the layout of a file of a split: Roboflow's, CVAT's, COCO's."""
    for pattern, form, seen in (
        ("*/_annotations.coco.json", COCO, "COCO, as Roboflow exports"),
        ("*/_annotations.csv", CSV, "CSV, as Roboflow exports"),
        ("annotations/instances_*.json", COCO, "COCO: annotations/instances_….json"),
        ("instances_*.json", COCO, "COCO: instances_….json"),
    ):
        files = {_split_of(path): path for path in sorted(folder.glob(pattern))}
        if files:
            name = chosen_split(folder, list(files), split)
            path = files[name]
            return Layout(form, path, _images_of(folder, path, name), f"{seen}, {name}", True)
    single = [path for path in sorted(folder.iterdir()) if suffix_of(path) in _BY_SUFFIX]
    if len(single) == 1:
        form = _BY_SUFFIX[suffix_of(single[0])]
        return Layout(form, single[0], folder, f"{form.name}: {single[0].name}")
    if len(single) > 1:
        listed = ", ".join(path.name for path in single[:8])
        raise AnnotationError(f"{folder}: which file is meant? There are {listed}")
    return None


def _split_of(path: Path) -> str:
    """Return the split of a file: its folder's name, or what follows instances_."""
    if path.name.startswith("_annotations"):
        return path.parent.name
    return path.stem.removeprefix("instances_")


def _images_of(folder: Path, path: Path, split: str) -> Path:
    """Return the folder of the images of a file of COCO's or CVAT's."""
    if path.name.startswith("_annotations"):
        return path.parent
    for place in (folder / split, folder / "images" / split, folder / "images"):
        if place.is_dir():
            return place
    return folder


# --- annotations beside images --------------------------------------------------------------------


def _beside_images(folder: Path) -> Layout | None:
    if _has(folder, (".xml",)):
        return Layout(VOC, folder, folder, "VOC: XML files beside images")
    if _has(folder, (".txt",)) and _has(folder, IMAGE_SUFFIXES):
        return Layout(YOLO, folder, folder, "YOLO: label files beside images")
    return None


def _has(folder: Path, suffixes: Sequence[str] | frozenset[str]) -> bool:
    for place in (folder, *(path for path in folder.iterdir() if path.is_dir())):
        if any(suffix_of(path) in suffixes for path in place.iterdir()):
            return True
    return False
