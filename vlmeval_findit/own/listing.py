"""CSV (or TSV) of one box a line: ``image,label,x1,y1,x2,y2`` and, if known, ``width,height``."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from .annotations import AnnotationError, Annotations, Box, number

COLUMNS = ("image", "label", "x1", "y1", "x2", "y2")


def read_listing(path: Path) -> Annotations:
    """Read a listing; tabs separate where the file ends in .tsv, commas elsewhere.

    Raises:
        AnnotationError: a column is missing, or a cell does not hold what it should.
    """
    sizes: dict[str, tuple[int, int] | None] = {}
    boxes: list[Box] = []
    with path.open(encoding="utf-8-sig", newline="") as f:
        rows = csv.DictReader(f, delimiter="\t" if path.suffix == ".tsv" else ",")
        missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
        if missing:
            raise AnnotationError(
                f"{path}: columns are {rows.fieldnames}, missing: {', '.join(missing)}"
            )
        for row in rows:
            where = f"{path}, line {rows.line_num}"
            if not row["image"]:
                raise AnnotationError(f"{where}, column image: is empty")
            sizes[row["image"]] = _size(where, row) or sizes.get(row["image"])
            x1, y1, x2, y2 = (number(row[name], f"{where}, column {name}") for name in COLUMNS[2:])
            boxes.append(Box(row["image"], row["label"] or "", (x1, y1, x2, y2), where))
    return Annotations(path, sizes, tuple(boxes))


def _size(where: str, row: Mapping[str, str]) -> tuple[int, int] | None:
    if not row.get("width") or not row.get("height"):
        return None
    width, height = (number(row[side], f"{where}, column {side}") for side in ("width", "height"))
    return (int(width), int(height))
