"""Read lists of boxes: COCO instances, CSV, and Pascal VOC XML.

* COCO (``instances.json``): boxes are [x, y, width, height] in pixels.
* CSV, or TSV: a box a line, ``image,label,x1,y1,x2,y2`` and, if known, ``width,height``.
* Pascal VOC: a file for each image, boxes as xmin, ymin, xmax, ymax.  The numbers are used as they
  stand, as in FindIt's Pascal.  Objects marked as difficult are ignored, as in the challenge.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar
from xml.etree import ElementTree

from ...core.config import Count, Expected, Text, Whole
from ...core.image_files import Size
from ..annotated_samples import (
    CROWD,
    DIFFICULT,
    AnnotatedBox,
    AnnotationError,
    Samples,
    Units,
    detection_samples,
)
from .annotation_values import (
    SidesOfJson,
    json_of,
    mask_of_coco,
    state_size,
    text_of,
    units_of,
    validated,
    written_number,
    written_size,
)

# --- COCO -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Image:
    id: Whole
    file_name: Text
    width: Count | None = None
    height: Count | None = None

    @property
    def size(self) -> Size | None:
        return (self.width, self.height) if self.width and self.height else None


@dataclass(frozen=True, slots=True)
class _Category:
    id: Whole
    name: Text
    supercategory: Any = None


@dataclass(frozen=True, slots=True)
class _Annotation:
    image_id: Whole
    category_id: Whole
    bbox: SidesOfJson
    iscrowd: Annotated[int, Expected("0 or 1", ge=0, le=1)] = 0
    segmentation: Any = None


@dataclass(frozen=True, slots=True)
class _Coco:
    images: list[_Image]
    categories: list[_Category]
    annotations: list[_Annotation]


def read_coco(path: Path, images: Path, roboflow: bool = False) -> Samples:
    """Read a COCO instances file with its masks; crowd regions are ignored.

    Args:
        path: the file.
        images: the folder that its file names are relative to.
        roboflow: leave out, and count, boxes without an area; leave out the class 0 that is no
            class but the project, and often has a class's name, if no box has it.

    Raises:
        AnnotationError: it is no COCO file, or an annotation names an unknown image or class.
    """
    values: _Coco = validated(_Coco, json_of(text_of(path), str(path)), str(path))
    used = {entry.category_id for entry in values.annotations}
    classes = [
        row
        for row in values.categories
        if not roboflow or row.id != 0 or row.supercategory != "none" or 0 in used
    ]
    images_by_id = _unique(values.images, [image.file_name for image in values.images], path)
    categories = _unique(classes, [row.name for row in classes], path)
    objects, flat = [], 0
    for at, entry in enumerate(values.annotations):
        where = f"{path}, annotations[{at}]"
        if entry.image_id not in images_by_id:
            raise AnnotationError(f"{where}, image_id: there is no {entry.image_id}")
        if entry.category_id not in categories:
            raise AnnotationError(f"{where}, category_id: there is no {entry.category_id}")
        image, label = images_by_id[entry.image_id], categories[entry.category_id].name
        x, y, w, h = entry.bbox
        if roboflow and not (x < x + w and y < y + h):
            flat += 1
            continue
        mask = mask_of_coco(entry.segmentation, image.size, where)
        ignored = CROWD if entry.iscrowd else ""
        box = AnnotatedBox((x, y, x + w, y + h), where, label, ignored=ignored, mask=mask)
        objects.append((image.file_name, box))
    sizes = {image.file_name: image.size for image in values.images}
    left_out = {"boxes without an area": flat} if flat else {}
    return replace(
        detection_samples(path, images, sizes, objects, left_out=left_out, classes=len(classes)),
        image_ids={image.file_name: image.id for image in values.images},
        category_ids={row.name: row.id for row in classes},
    )


_Row = TypeVar("_Row", _Image, _Category)


def _unique(rows: Sequence[_Row], names: Sequence[str], path: Path) -> dict[int, _Row]:
    """Return rows by their ids; ids and names must not stand twice."""
    by_id = {row.id: row for row in rows}
    if len(by_id) != len(rows):
        raise AnnotationError(f"{path}: an id of an image or of a category stands twice")
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise AnnotationError(f"{path}: the name {twice[0]!r} stands twice")
    return by_id


# --- CSV ------------------------------------------------------------------------------------------

COLUMNS = ("image", "label", "x1", "y1", "x2", "y2")


def read_csv(path: Path, images: Path, units: Units | None = None) -> Samples:
    """Read a CSV file; tabs separate where the file ends in .tsv, commas elsewhere.

    ``units`` must be stated where no number is above 1.  Raises an AnnotationError if a column is
    missing, a cell is unsuitable, or the units are not known.
    """
    sizes: dict[str, Size] = {}
    objects: list[tuple[str, AnnotatedBox]] = []
    for where, row in _csv_rows(path):
        image, width, height = row["image"], row.get("width", ""), row.get("height", "")
        if not image:
            raise AnnotationError(f"{where}, column image: is empty")
        if width or height:
            size = written_size(width, height, f"{where}, columns width and height")
            state_size(sizes, image, size, where)
        x1, y1, x2, y2 = (written_number(row[c], f"{where}, column {c}") for c in COLUMNS[2:])
        objects.append((image, AnnotatedBox((x1, y1, x2, y2), where, row["label"])))
    units = units_of(path, [box for _, box in objects], units)
    named = {image: sizes.get(image) for image, _ in objects}
    return replace(detection_samples(path, images, named, objects), units=units)


def _csv_rows(path: Path) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield every row by column, after its file and the line that it ends in."""
    separator, name = ("\t", "tabs") if path.suffix == ".tsv" else (",", "commas")
    text = io.StringIO(text_of(path), newline="")
    rows = csv.DictReader(text, delimiter=separator, strict=True)
    header = list(rows.fieldnames or ())
    if missing := ", ".join(column for column in COLUMNS if column not in header):
        why = f"columns are {header}, missing: {missing} ({name} separate them)"
        raise AnnotationError(f"{path}, line 1: {why}")
    try:
        for row in rows:
            where = f"{path}, line {rows.line_num}"
            if None in row or None in row.values():
                raise AnnotationError(f"{where}: not {len(header)} cells, as there are columns")
            yield where, row
    except csv.Error as error:
        raise AnnotationError(f"{path}, line {rows.reader.line_num}: {error}") from None


# --- Pascal VOC -----------------------------------------------------------------------------------


def read_voc(folder: Path, images: Path) -> Samples:
    """Read a folder of XML files, or its ``Annotations``, or raise an AnnotationError."""
    inner = folder / "Annotations"
    files = sorted((inner if inner.is_dir() else folder).glob("*.xml"))
    if not files:
        raise AnnotationError(f"{folder}: no XML files there, nor in Annotations")
    sizes: dict[str, Size | None] = {}
    objects: list[tuple[str, AnnotatedBox]] = []
    for file in files:
        try:
            root = ElementTree.parse(file).getroot()
        except (ElementTree.ParseError, ValueError) as error:
            raise AnnotationError(f"{file}: {error}") from None
        name = _voc_text(str(file), root, "filename")
        if name in sizes:
            raise AnnotationError(f"{file}: another file too is about {name}")
        sizes[name] = None
        if root.find("size") is not None:
            w, h = (_voc_text(str(file), root, f"size/{side}") for side in ("width", "height"))
            sizes[name] = written_size(w, h, f"{file}, size")
        for at, entry in enumerate(root.iter("object")):
            objects.append((name, _voc_box(f"{file}, object {at}", entry)))
    return detection_samples(folder, images, sizes, objects)


def _voc_text(where: str, element: ElementTree.Element, path: str) -> str:
    text = (element.findtext(path) or "").strip()
    if not text:
        raise AnnotationError(f"{where}: no <{path}>")
    return text


def _voc_box(where: str, entry: ElementTree.Element) -> AnnotatedBox:
    x1, y1, x2, y2 = (
        written_number(_voc_text(where, entry, f"bndbox/{side}"), where)
        for side in ("xmin", "ymin", "xmax", "ymax")
    )
    ignored = DIFFICULT if (entry.findtext("difficult") or "").strip() == "1" else ""
    return AnnotatedBox((x1, y1, x2, y2), where, _voc_text(where, entry, "name"), ignored=ignored)
