"""Read CSV, or TSV: a box a line, ``image,label,x1,y1,x2,y2`` and, if known, ``width,height``.

Columns may be called as TensorFlow, Roboflow and OpenImages call them.  Flags that say what does
not count are honoured.  A line with an image and nothing else shows no object.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...core import suffix_of
from ..annotated_samples import AnnotationError, Samples
from .annotation_values import text_of, written_number, written_size
from .collector import Collector
from .flags import meaning_of_flag, plain_name
from .node import SIDES_OF_IMAGES
from .reader_options import ReaderOptions
from .splits import key_of_splits

# Sides of an image that its tool did not know
_NOT_STATED = {"", "0", "0.0"}

COLUMNS = ("image", "label", "x1", "y1", "x2", "y2")
_CORNERS = COLUMNS[2:]

# Other names of columns, without letter case and punctuation
_OTHER_NAMES: Mapping[str, Collection[str]] = {
    "image": ("image", "filename", "file", "imagename", "imageid", "imagepath", "imgpath", "path"),
    "label": ("label", "class", "classname", "category", "labelname", "name"),
    "x1": ("x1", "xmin", "left"),
    "y1": ("y1", "ymin", "top"),
    "x2": ("x2", "xmax", "right"),
    "y2": ("y2", "ymax", "bottom"),
    **SIDES_OF_IMAGES,
}
_NOT_NEEDED = frozenset(
    ("source", "confidence", "isoccluded", "istruncated", "isdepiction", "isinside", "id", "")
)


def read_csv(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read a CSV file; tabs separate where the file ends in .tsv, commas elsewhere.

    Raises an AnnotationError if a column is missing or a cell is unsuitable.
    """
    collector = Collector(path, images, options)
    rows = _rows_of_split(_read_listing(path), collector)
    for where, row in rows:
        if not row["image"]:
            raise AnnotationError(f"{where}, column image: is empty")
        width = row.get("width", "")
        height = row.get("height", "")
        size = None
        if not {width, height} <= _NOT_STATED:
            size = written_size(width, height, f"{where}, columns width and height")
        image = collector.image(row["image"], where, size, again=True)
        if any(row[column] for column in COLUMNS[1:]):
            _read_box(where, row, image, collector)
        collector.options.progress("lines", 1)
    collector.ledger.read("lines", len(rows))
    return collector.samples()


def _read_box(where: str, row: Mapping[str, str], image: str, collector: Collector) -> None:
    x1, y1, x2, y2 = (written_number(row[name], f"{where}, column {name}") for name in _CORNERS)
    if not row["label"].strip():
        raise AnnotationError(f"{where}, column label: is empty")
    flags = {name: text for name, text in row.items() if meaning_of_flag(name)}
    collector.add(image, row["label"], (x1, y1, x2, y2), where, flags)


# --- a listing ------------------------------------------------------------------------------------

# A line by our names of columns, and by the file's of flags, after its place
_Row = tuple[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class _Listing:
    """The lines of a file, each after the file and the line that it ends in."""

    path: Path
    header: Sequence[str]
    columns: Mapping[str, int]  # Those that are read, by our names; flags keep theirs
    lines: Sequence[tuple[str, Sequence[str]]]


def _read_listing(path: Path) -> _Listing:
    is_tsv = suffix_of(path) == ".tsv"
    text = io.StringIO(text_of(path), newline="")
    lines = csv.reader(text, delimiter="\t" if is_tsv else ",", strict=True)
    read = []
    try:
        header = [name.strip() for name in next(lines, [])]
        _check_header(header, f"{path}, line 1")
        columns = _columns(path, header)
        for cells in lines:
            where = f"{path}, line {lines.line_num}"
            if cells and len(cells) != len(header):
                raise AnnotationError(f"{where}: {len(cells)} cells for {len(header)} columns")
            if cells:
                read.append((where, cells))
    except csv.Error as error:
        raise AnnotationError(f"{path}, line {lines.line_num}: {error}") from None
    return _Listing(path, header, columns, read)


def _check_header(header: Sequence[str], where: str) -> None:
    if any(_is_number(name) for name in header):
        example = ",".join(COLUMNS)
        raise AnnotationError(
            f"{where}: the first line is {', '.join(header)}, but should name the "
            f"columns, as {example}"
        )
    twice = [name for name in header if name and header.count(name) > 1]
    if twice:
        raise AnnotationError(f"{where}: duplicate column {twice[0]!r}: remove one")


def _columns(path: Path, header: Sequence[str]) -> dict[str, int]:
    """Return the places of the columns that are read, by our names; flags keep theirs."""
    where = f"{path}, line 1"
    columns = {}
    for name, others in _OTHER_NAMES.items():
        fits = [column for column in header if column == name]
        fits = fits or [column for column in header if plain_name(column) in others]
        if len(fits) > 1:
            listed = " and ".join(fits)
            raise AnnotationError(f"{where}: both {listed} may be the {name}: remove one")
        if fits:
            columns[name] = header.index(fits[0])
    missing = [column for column in COLUMNS if column not in columns]
    if missing:
        separator = "tabs" if suffix_of(path) == ".tsv" else "commas"
        raise AnnotationError(
            f"{where}: columns are {list(header)}, missing: {', '.join(missing)} "
            f"({separator} separate them)"
        )
    return columns | {name: at for at, name in enumerate(header) if meaning_of_flag(name)}


def _rows_of_split(listing: _Listing, collector: Collector) -> list[_Row]:
    """Return the lines of the chosen split, where a column names splits; note unread columns."""
    others = {
        name: [cells[at] for _, cells in listing.lines]
        for at, name in enumerate(listing.header)
        if at not in listing.columns.values()
    }
    key = key_of_splits(others)
    for name in others:
        if name == key:
            continue
        known = plain_name(name) in _NOT_NEEDED
        note = collector.ledger.not_needed if known else collector.ledger.not_read
        note(f"columns: {name or 'one without a name'}", f"{listing.path}, line 1")
    chosen: Sequence[int] = range(len(listing.lines))
    if key is not None:
        places = [where for where, _ in listing.lines]
        chosen = collector.places_of_split(others[key], places, "lines of the split")
    rows: list[_Row] = []
    for at in chosen:
        where, cells = listing.lines[at]
        rows.append((where, {name: cells[place] for name, place in listing.columns.items()}))
    return rows


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
