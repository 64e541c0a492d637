"""CSV (or TSV) of one box a line: ``image,label,x1,y1,x2,y2`` and, if known, ``width,height``."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...core.image_files import Size
from ..annotated_samples import AnnotatedBox, AnnotationError, Samples, Units, detection_samples
from .text import state_size, text_of, units_of, written_number, written_size

COLUMNS = ("image", "label", "x1", "y1", "x2", "y2")


def read_csv(path: Path, images: Path, units: Units | None = None) -> Samples:
    """Read a CSV file; tabs separate where the file ends in .tsv, commas elsewhere.

    ``units`` must be stated where no number is above 1.  Raises an AnnotationError if a column is
    missing, a cell is unsuitable, or the units are not known.
    """
    sizes: dict[str, Size] = {}
    objects: list[tuple[str, AnnotatedBox]] = []
    for line, row in _rows(path):
        where = f"{path}, line {line}"
        image = row["image"]
        if not image:
            raise AnnotationError(f"{where}, column image: is empty")
        size = _size(where, row)
        if size is not None:
            state_size(sizes, image, size, where)
        x1, y1, x2, y2 = (
            written_number(row[name], f"{where}, column {name}") for name in COLUMNS[2:]
        )
        objects.append((image, AnnotatedBox((x1, y1, x2, y2), where, row["label"])))
    units = units_of(path, [box for _, box in objects], units)
    named = {image: sizes.get(image) for image, _ in objects}
    return detection_samples(path, images, named, objects, units=units)


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield every row by column, after the number of the line that it ends in."""
    tabs = path.suffix == ".tsv"
    text = io.StringIO(text_of(path), newline="")
    lines = csv.reader(text, delimiter="\t" if tabs else ",", strict=True)
    try:
        header = next(lines, [])
        missing = [name for name in COLUMNS if name not in header]
        if missing or len(set(header)) != len(header):
            what = f"missing: {', '.join(missing)}" if missing else "of which one stands twice"
            raise AnnotationError(
                f"{path}, line 1: columns are {header}, {what} "
                f"({'tabs' if tabs else 'commas'} separate them)"
            )
        for cells in lines:
            if not cells:
                continue
            if len(cells) != len(header):
                raise AnnotationError(
                    f"{path}, line {lines.line_num}: {len(cells)} cells, but {len(header)} columns"
                )
            yield lines.line_num, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise AnnotationError(f"{path}, line {lines.line_num}: {error}") from None


def _size(where: str, row: Mapping[str, str]) -> Size | None:
    width, height = row.get("width", ""), row.get("height", "")
    if not width and not height:
        return None
    return written_size(width, height, f"{where}, columns width and height")
