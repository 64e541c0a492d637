"""Read CSV, or TSV: a box a line, ``image,label,x1,y1,x2,y2`` and, if known, ``width,height``."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...core.files import suffix_of
from ...core.image_files import Size
from ..annotated_samples import AnnotatedBox, AnnotationError, Samples
from ..ledger import Ledger
from .annotation_values import state_size, text_of, written_number, written_size
from .detection import Detections, detection_samples
from .reader_options import ReaderOptions

COLUMNS = ("image", "label", "x1", "y1", "x2", "y2")


def read_csv(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read a CSV file; tabs separate where the file ends in .tsv, commas elsewhere.

    Raises an AnnotationError if a column is missing or a cell is unsuitable.
    """
    ledger = Ledger()
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
    named = {image: sizes.get(image) for image, _ in objects}
    found = Detections(path, images, named, objects, classes=())
    return detection_samples(found, options or ReaderOptions(), ledger)


def _csv_rows(path: Path) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield every row by column, after its file and the line that it ends in."""
    separator, name = ("\t", "tabs") if suffix_of(path) == ".tsv" else (",", "commas")
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
