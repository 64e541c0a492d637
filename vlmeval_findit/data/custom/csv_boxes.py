"""Read CSV, or TSV: a box a line, ``image,label,x1,y1,x2,y2`` and, if known, ``width,height``.

Columns may be called as TensorFlow, Roboflow and OpenImages call them.  Flags that say what does
not count are honoured.  A line with an image and nothing else shows no object.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...core import shown, suffix_of
from ...storage import Size
from ..annotated_samples import CROWD, DIFFICULT, IGNORED, AnnotatedBox, AnnotationError, Samples
from ..ledger import Ledger
from .annotation_values import state_size, text_of, written_number, written_size
from .detection import Detections, detection_samples
from .image_names import ImageNames
from .reader_options import ReaderOptions
from .splits import chosen_split, names_a_split

# Sides of an image that its tool did not know
_NOT_STATED = {"", "0", "0.0"}

COLUMNS = ("image", "label", "x1", "y1", "x2", "y2")
_CORNERS = COLUMNS[2:]

# Other names of columns, without letter case and punctuation
_OTHER_NAMES: Mapping[str, Sequence[str]] = {
    "image": ("image", "filename", "file", "imagename", "imageid", "imagepath", "imgpath", "path"),
    "label": ("label", "class", "classname", "category", "labelname", "name"),
    "x1": ("x1", "xmin", "left"),
    "y1": ("y1", "ymin", "top"),
    "x2": ("x2", "xmax", "right"),
    "y2": ("y2", "ymax", "bottom"),
    "width": ("width", "imagewidth", "imgwidth"),
    "height": ("height", "imageheight", "imgheight"),
    "difficult": ("difficult",),
    "ignore": ("ignore", "ignored"),
    "iscrowd": ("iscrowd", "isgroupof"),
    "split": ("split", "subset"),
}
_IGNORED = {"iscrowd": CROWD, "difficult": DIFFICULT, "ignore": IGNORED}
_NOT_NEEDED = frozenset(
    ("source", "confidence", "isoccluded", "istruncated", "isdepiction", "isinside", "id", "")
)


def read_csv(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read a CSV file; tabs separate where the file ends in .tsv, commas elsewhere.

    Raises an AnnotationError if a column is missing or a cell is unsuitable.
    """
    options = options or ReaderOptions()
    ledger = Ledger()
    listing = _Listing(path, ledger)
    rows = _rows_of_split(path, list(listing.rows()), options, ledger)
    names = ImageNames(images, ledger)
    sizes: dict[str, Size | None] = {}
    stated: dict[str, Size] = {}
    objects: list[tuple[str, AnnotatedBox]] = []
    for where, row in rows:
        if not row["image"]:
            raise AnnotationError(f"{where}, column image: is empty")
        image = names.find(row["image"], where)
        width = row.get("width", "")
        height = row.get("height", "")
        if not {width, height} <= _NOT_STATED:
            size = written_size(width, height, f"{where}, columns width and height")
            state_size(stated, image, size, where)
        sizes[image] = stated.get(image)
        if any(row[column] for column in COLUMNS[1:]):
            objects.append((image, _box(where, row)))
        options.progress("lines", 1)
    ledger.read("lines", len(rows))
    detections = Detections(path, images, sizes, objects, classes=())
    return detection_samples(detections, options, ledger)


def _box(where: str, row: Mapping[str, str]) -> AnnotatedBox:
    x1, y1, x2, y2 = (written_number(row[name], f"{where}, column {name}") for name in _CORNERS)
    if not row["label"].strip():
        raise AnnotationError(f"{where}, column label: is empty")
    reasons = [why for flag, why in _IGNORED.items() if _is_true(row.get(flag, ""), flag, where)]
    return AnnotatedBox((x1, y1, x2, y2), where, row["label"], ignored=(reasons or [""])[0])


def _is_true(text: str, flag: str, where: str) -> bool:
    plain = text.strip().lower()
    if plain in ("1", "1.0", "true", "yes"):
        return True
    # OpenImages writes -1 for "not known".
    if plain in ("", "0", "0.0", "false", "no", "-1"):
        return False
    raise AnnotationError(f"{where}, column {flag}: {shown(text, 40)} should be 0 or 1")


_Row = tuple[str, Mapping[str, str]]


def _rows_of_split(
    path: Path, rows: list[_Row], options: ReaderOptions, ledger: Ledger
) -> list[_Row]:
    """Return the rows of the chosen split, where a column names splits."""
    there = list(dict.fromkeys(row.get("split", "") for _, row in rows))
    if not any(map(names_a_split, there)):
        if options.split is not None:
            raise AnnotationError(f"{path}: no column of splits. Leave --split out")
        return rows
    split = chosen_split(path, there, options.split)
    for where, row in rows:
        if row.get("split") != split:
            ledger.leave_out(f"lines of the split {row.get('split')}", where)
    return [(where, row) for where, row in rows if row.get("split") == split]


# --- columns --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Listing:
    """A file, whose rows have our names of columns."""

    path: Path
    ledger: Ledger

    def rows(self) -> Iterator[_Row]:
        """Yield every row by column, after its file and the line that it ends in."""
        is_tsv = suffix_of(self.path) == ".tsv"
        text = io.StringIO(text_of(self.path), newline="")
        lines = csv.reader(text, delimiter="\t" if is_tsv else ",", strict=True)
        try:
            header = next(lines, [])
            columns = self._columns([name.strip() for name in header])
            for cells in lines:
                where = f"{self.path}, line {lines.line_num}"
                if cells and len(cells) != len(header):
                    raise AnnotationError(f"{where}: {len(cells)} cells for {len(header)} columns")
                if cells:
                    yield where, {name: cells[at] for name, at in columns.items()}
        except csv.Error as error:
            raise AnnotationError(f"{self.path}, line {lines.line_num}: {error}") from None

    def _columns(self, header: Sequence[str]) -> dict[str, int]:
        """Return the places of the columns that are read; note the others."""
        where = f"{self.path}, line 1"
        if any(_is_number(name) for name in header):
            example = ",".join(COLUMNS)
            raise AnnotationError(
                f"{where}: the first line is {', '.join(header)}, but should name the "
                f"columns, as {example}"
            )
        twice = [name for name in header if name and header.count(name) > 1]
        if twice:
            raise AnnotationError(f"{where}: duplicate column {twice[0]!r}: remove one")
        columns = {}
        for name, others in _OTHER_NAMES.items():
            fits = [column for column in header if column == name]
            fits = fits or [column for column in header if _plain(column) in others]
            if len(fits) > 1:
                listed = " and ".join(fits)
                raise AnnotationError(f"{where}: both {listed} may be the {name}: remove one")
            if fits:
                columns[name] = header.index(fits[0])
        missing = [column for column in COLUMNS if column not in columns]
        if missing:
            separator = "tabs" if suffix_of(self.path) == ".tsv" else "commas"
            raise AnnotationError(
                f"{where}: columns are {list(header)}, missing: {', '.join(missing)} "
                f"({separator} separate them)"
            )
        for at, name in enumerate(header):
            if at not in columns.values():
                self._account(name, where)
        return columns

    def _account(self, name: str, where: str) -> None:
        if _plain(name) in _NOT_NEEDED:
            self.ledger.not_needed(f"columns: {name or 'one without a name'}", where)
        else:
            self.ledger.not_read(f"columns: {name}", where)


def _plain(name: str) -> str:
    return "".join(sign for sign in name.lower() if sign.isalnum())


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
