"""Read lists of boxes: COCO instances, CSV, and Pascal VOC XML.

* COCO (``instances.json``): boxes are [x, y, width, height] in pixels.
* CSV, or TSV: a box a line, ``image,label,x1,y1,x2,y2`` and, if known, ``width,height``.
* Pascal VOC: a file for each image, boxes as xmin, ymin, xmax, ymax.  The numbers are used as they
  stand, as in FindIt's Pascal.  Objects marked as difficult are ignored, as in the challenge.
"""

from __future__ import annotations

import csv
import io
import reprlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeGuard
from xml.etree import ElementTree

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
    SIDES,
    json_of,
    mask_of_coco,
    numbers,
    state_size,
    text_of,
    units_of,
    written_number,
    written_size,
)

# --- COCO -----------------------------------------------------------------------------------------


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
        AnnotationError: it is no COCO file, or an annotation names an unknown image or class.
    """
    values = prepare(json_of(text_of(path), str(path), "a COCO file"))
    images_by_id = _by_id(path, values, "images", "file_name")
    categories = _by_id(path, values, "categories", "name")
    sizes = {image["file_name"]: _coco_size(path, image) for image in images_by_id.values()}
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


def _coco_size(path: Path, image: Mapping[str, Any]) -> Size | None:
    width, height = image.get("width"), image.get("height")
    if width is None and height is None:
        return None
    if not _is_id(width) or not _is_id(height) or min(width, height) < 1:
        raise AnnotationError(
            f"{path}, image {image['id']}: {reprlib.repr(width)}x{reprlib.repr(height)} is not a "
            "size in pixels"
        )
    return (width, height)


# --- CSV ------------------------------------------------------------------------------------------

COLUMNS = ("image", "label", "x1", "y1", "x2", "y2")


def read_csv(path: Path, images: Path, units: Units | None = None) -> Samples:
    """Read a CSV file; tabs separate where the file ends in .tsv, commas elsewhere.

    ``units`` must be stated where no number is above 1.  Raises an AnnotationError if a column is
    missing, a cell is unsuitable, or the units are not known.
    """
    sizes: dict[str, Size] = {}
    objects: list[tuple[str, AnnotatedBox]] = []
    for line, row in _csv_rows(path):
        where = f"{path}, line {line}"
        image = row["image"]
        if not image:
            raise AnnotationError(f"{where}, column image: is empty")
        size = _csv_size(where, row)
        if size is not None:
            state_size(sizes, image, size, where)
        x1, y1, x2, y2 = (
            written_number(row[name], f"{where}, column {name}") for name in COLUMNS[2:]
        )
        objects.append((image, AnnotatedBox((x1, y1, x2, y2), where, row["label"])))
    units = units_of(path, [box for _, box in objects], units)
    named = {image: sizes.get(image) for image, _ in objects}
    return detection_samples(path, images, named, objects, units=units)


def _csv_rows(path: Path) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield every row by column, after the number of the line that it ends in."""
    separator, name = ("\t", "tabs") if path.suffix == ".tsv" else (",", "commas")
    text = io.StringIO(text_of(path), newline="")
    rows = csv.DictReader(text, delimiter=separator, strict=True)
    try:
        header = list(rows.fieldnames or ())
        missing = [column for column in COLUMNS if column not in header]
        if missing or len(set(header)) != len(header):
            what = f"missing: {', '.join(missing)}" if missing else "a name stands twice"
            raise AnnotationError(
                f"{path}, line 1: columns are {header}, {what} ({name} separate them)"
            )
        for row in rows:
            if None in row or None in row.values():
                raise AnnotationError(
                    f"{path}, line {rows.line_num}: not {len(header)} cells, as there are columns"
                )
            yield rows.line_num, row
    except csv.Error as error:
        raise AnnotationError(f"{path}, line {rows.reader.line_num}: {error}") from None


def _csv_size(where: str, row: Mapping[str, str]) -> Size | None:
    width, height = row.get("width", ""), row.get("height", "")
    if not width and not height:
        return None
    return written_size(width, height, f"{where}, columns width and height")


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
        root = _voc_root(file)
        name = _voc_text(str(file), root, "filename")
        if name in sizes:
            raise AnnotationError(f"{file}: another file too is about {name}")
        sizes[name] = _voc_size(file, root)
        for at, entry in enumerate(root.iter("object")):
            objects.append((name, _voc_box(f"{file}, object {at}", entry)))
    return detection_samples(folder, images, sizes, objects)


def _voc_root(file: Path) -> ElementTree.Element:
    text = file.read_bytes()
    if b"\0" in text:
        raise AnnotationError(f"{file}: holds zero bytes (UTF-16?): save it as UTF-8")
    if b"<!ENTITY" in text:
        # An entity may stand for more text than memory holds.
        raise AnnotationError(f"{file}: declares entities, which annotations have no use for")
    try:
        return ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise AnnotationError(f"{file}: {error}") from None


def _voc_text(where: str, element: ElementTree.Element, path: str) -> str:
    text = (element.findtext(path) or "").strip()
    if not text:
        raise AnnotationError(f"{where}: no <{path}>")
    return text


def _voc_size(file: Path, root: ElementTree.Element) -> Size | None:
    if root.find("size") is None:
        return None
    width, height = (_voc_text(str(file), root, f"size/{side}") for side in ("width", "height"))
    return written_size(width, height, f"{file}, size")


def _voc_box(where: str, entry: ElementTree.Element) -> AnnotatedBox:
    x1, y1, x2, y2 = (
        written_number(_voc_text(where, entry, f"bndbox/{side}"), where)
        for side in ("xmin", "ymin", "xmax", "ymax")
    )
    is_difficult = (entry.findtext("difficult") or "0").strip() == "1"
    ignored = DIFFICULT if is_difficult else ""
    return AnnotatedBox((x1, y1, x2, y2), where, _voc_text(where, entry, "name"), ignored=ignored)
