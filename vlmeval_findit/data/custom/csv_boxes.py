"""Read CSV, or TSV: a box a line, ``image,label,x1,y1,x2,y2`` and, if known, ``width,height``.

Columns may be called as tools call them, and have corners, or a corner or centre and sides.
Commas, semicolons (with decimal commas) or tabs separate.  Flags that say what does not count are
honoured.  A line with an image and nothing else shows no object.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ...boxes import Corners
from ...core import suffix_of
from ..annotated_samples import AnnotationError, BoxForm, Samples
from .annotation_values import IMAGE_SUFFIXES, text_of, written_number, written_size
from .collector import Collector
from .flags import meaning_of_flag, plain_name
from .node import SIDES_OF_IMAGES
from .reader_options import ReaderOptions
from .splits import key_of_splits

# Sides of an image that its tool did not know
_NOT_STATED = {"", "0", "0.0"}
# What pandas and databases write for an empty cell
_EMPTY = ("", "nan", "null", "none", "na", "n/a", "<na>")

COLUMNS = ("image", "label", "x1", "y1", "x2", "y2")

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
# The same of boxes that have sides
_CORNER_AND_SIDES: Mapping[str, Collection[str]] = {
    "x": ("x", "bboxx", "boxx", "x1", "xmin", "left", "bboxleft"),
    "y": ("y", "bboxy", "boxy", "y1", "ymin", "top", "bboxtop"),
}
_CENTRE_AND_SIDES: Mapping[str, Collection[str]] = {
    "cx": ("cx", "xcenter", "xcentre", "centerx", "centrex"),
    "cy": ("cy", "ycenter", "ycentre", "centery", "centrey"),
}
_SIDES_OF_BOXES: Mapping[str, Collection[str]] = {
    "w": ("w", "bboxwidth", "boxwidth", "bboxw", "boxw", "bw"),
    "h": ("h", "bboxheight", "boxheight", "bboxh", "boxh", "bh"),
}
_NOT_NEEDED = frozenset(
    ("source", "confidence", "isoccluded", "istruncated", "isdepiction", "isinside", "id", "")
)
# Orders of columns in files without a header: keras-retinanet's, torchvision's, makesense.ai's
_ORDERS = (
    ("image", "x1", "y1", "x2", "y2", "label"),
    COLUMNS,
    ("label", "x", "y", "w", "h", "image", "width", "height"),
)


def read_csv(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read a CSV file; in one that ends in .tsv tabs separate.

    Raises an AnnotationError if a column is missing or a cell is unsuitable.
    """
    listing = _read_listing(path)
    form = BoxForm.CORNERS if not listing.is_named and listing.box == COLUMNS[2:] else None
    collector = Collector(path, images, options, form=form)
    if form is None and collector.options.form is not None:
        raise AnnotationError(f"{path}: its columns say what the numbers are. Leave --box out")
    if not listing.is_named:
        order = ",".join(listing.header)
        collector.ledger.note(f"files without a header, read as {order}", str(path))
    rows = _rows_of_split(listing, collector)
    for where, row in rows:
        if _is_empty(row["image"]):
            raise AnnotationError(f"{where}, column image: is empty")
        width = row.get("width", "")
        height = row.get("height", "")
        size = None
        if not {width, height} <= _NOT_STATED:
            size = written_size(width, height, f"{where}, columns width and height")
        image = collector.image(row["image"], where, size, again=True)
        _read_box(where, row, listing, image, collector)
        collector.options.progress("lines", 1)
    if listing.sides_are_unnamed:
        _check_sides(rows, listing)
    collector.ledger.read("lines", len(rows))
    return collector.samples()


def _check_sides(rows: Sequence[_Row], listing: _Listing) -> None:
    """Raise an AnnotationError where width and height may be those of the images."""
    sides: dict[str, set[tuple[str, str]]] = {}
    count = 0
    for _, row in rows:
        if not all(_is_empty(row[name]) for name in listing.box):
            count += 1
            sides.setdefault(row["image"], set()).add((row["w"], row["h"]))
    if count > len(sides) and all(len(of_image) == 1 for of_image in sides.values()):
        raise AnnotationError(
            f"{listing.path}: are width and height those of the boxes? All boxes of an image have "
            "the same. Call the columns box_width and box_height, or image_width and image_height"
        )


def _read_box(
    where: str, row: Mapping[str, str], listing: _Listing, image: str, collector: Collector
) -> None:
    texts = [row[name] for name in listing.box]
    is_empty = all(_is_empty(text) for text in texts)
    if is_empty and _is_empty(row["label"]):
        return
    # A class may be called NA or none.
    if row["label"].strip().lower() in ("", "nan", "<na>"):
        raise AnnotationError(f"{where}, column label: is empty")
    if is_empty:
        collector.add_boxless(image, row["label"], "has no numbers", where)
        return
    first, second, third, fourth = (
        _number(row[name], f"{where}, column {name}", listing.decimal_commas)
        for name in listing.box
    )
    numbers = (first, second, third, fourth)
    flags = {name: text for name, text in row.items() if meaning_of_flag(name)}
    collector.add(image, row["label"], _corners(numbers, listing, collector), where, flags)


def _corners(numbers: Corners, listing: _Listing, collector: Collector) -> Corners:
    """Return (x1, y1, x2, y2)."""
    x, y, w, h = numbers
    if listing.box[0] == "cx":
        return (x - w / 2, y - h / 2, x + w / 2, y + h / 2)
    if listing.box[2] == "w":
        return BoxForm.SIDES.corners(numbers)
    form = collector.options.form if collector.form is not None else None
    return (form or BoxForm.CORNERS).corners(numbers)


def _is_empty(text: str) -> bool:
    return text.strip().lower() in _EMPTY


def _number(text: str, where: str, decimal_commas: bool) -> float:
    if decimal_commas and text.count(",") == 1 and "." not in text:
        text = text.replace(",", ".")
    return written_number(text, where)


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
    box: Sequence[str]  # Our names of the columns with the numbers of a box
    is_named: bool  # Whether there is a header
    sides_are_unnamed: bool  # Whether width and height may be those of boxes or images
    decimal_commas: bool


def _read_listing(path: Path) -> _Listing:
    text = text_of(path)
    first, _, rest = text.partition("\n")
    stated = re.fullmatch("sep=(.)\\s*", first)  # As Excel writes it
    separator = stated[1] if stated else _separator(path, first)
    lines = csv.reader(
        io.StringIO(rest if stated else text, newline=""), delimiter=separator, strict=True
    )
    skipped = 1 if stated else 0
    read = []
    try:
        for cells in lines:
            if any(cell.strip() for cell in cells):
                read.append((f"{path}, line {lines.line_num + skipped}", cells))
    except csv.Error as error:
        raise AnnotationError(f"{path}, line {lines.line_num + skipped}: {error}") from None
    where = read[0][0] if read else f"{path}, line 1"
    header = [name.strip() for name in read[0][1]] if read else []
    is_named = not any(map(_is_value, header))
    if is_named:
        read = read[1:]
    else:
        header = list(_order_of_columns([cells for _, cells in read], where))
    for place, cells in read:
        if len(cells) != len(header):
            raise AnnotationError(f"{place}: {len(cells)} cells for {len(header)} columns")
    twice = [name for name in header if name and header.count(name) > 1]
    if twice:
        raise AnnotationError(f"{where}: duplicate column {twice[0]!r}: remove one")
    columns, box = _columns(where, header, separator)
    decimal_commas = separator != ","
    if decimal_commas:
        places = [columns[name] for name in box]
        _check_commas([(place, cells[at]) for place, cells in read for at in places])
    return _Listing(
        path,
        header,
        columns,
        read,
        box,
        is_named,
        sides_are_unnamed="w" in columns and plain_name(header[columns["w"]]) == "width",
        decimal_commas=decimal_commas,
    )


def _separator(path: Path, first: str) -> str:
    """Return what separates the cells of a file, by its first line."""
    if suffix_of(path) == ".tsv":
        return "\t"
    # The first line may hold numbers with decimal commas.
    return max(",;\t", key=first.count)


def _check_commas(cells: Sequence[tuple[str, str]]) -> None:
    """Raise an AnnotationError where commas may separate thousands: all have three digits."""
    with_comma = [(where, text.strip()) for where, text in cells if "," in text]
    if with_comma and all(re.fullmatch(r"-?[1-9]\d{0,2},\d{3}", text) for _, text in with_comma):
        where, text = with_comma[0]
        raise AnnotationError(
            f"{where}: is {text} {text.replace(',', '')} or {text.replace(',', '.')}? Save the "
            "numbers with decimal points, without signs between thousands"
        )


def _is_value(name: str) -> bool:
    """Tell whether what stands in the first line is no name of a column: a number, an image."""
    return _is_number(name) or suffix_of(PurePosixPath(name)) in IMAGE_SUFFIXES


def _order_of_columns(lines: Sequence[Sequence[str]], where: str) -> Sequence[str]:
    """Return what the columns of a file without a header are, told by where the numbers are."""
    full = [cells for cells in lines if sum(map(_is_number, cells)) >= 4]
    fits = []
    for order in _ORDERS:
        numbers = [name not in ("image", "label") for name in order]
        if full and all([*map(_is_number, cells)] == numbers for cells in full):
            fits.append(order)
    if len(fits) == 1:
        return fits[0]
    first = ", ".join(lines[0])
    raise AnnotationError(
        f"{where}: the first line is {first:.60}, but should name the columns: put a line like "
        f"{','.join(COLUMNS)} on top"
    )


def _columns(
    where: str, header: Sequence[str], separator: str
) -> tuple[dict[str, int], Sequence[str]]:
    """Return the places of the columns that are read, and the names of those with the box.

    Names are ours; flags keep theirs.
    """
    columns = _places(where, header, _OTHER_NAMES)
    box: Sequence[str] = COLUMNS[2:]
    if not {*box} <= columns.keys():
        sides = _places(where, header, _SIDES_OF_BOXES)
        for first in (_CORNER_AND_SIDES, _CENTRE_AND_SIDES):
            there = _places(where, header, first)
            if there.keys() != first.keys():
                continue
            if not sides and {"width", "height"} <= columns.keys():
                # There are no others: these are of boxes.
                sides = {"w": columns.pop("width"), "h": columns.pop("height")}
            if sides.keys() == _SIDES_OF_BOXES.keys():
                columns = {key: at for key, at in columns.items() if key not in COLUMNS[2:]}
                columns |= there | sides
                box = (*first, *_SIDES_OF_BOXES)
                break
    missing = [column for column in (*COLUMNS[:2], *box) if column not in columns]
    if missing:
        separated = {",": "commas", ";": "semicolons", "\t": "tabs"}.get(separator, separator)
        raise AnnotationError(
            f"{where}: columns are {list(header)}, missing: {', '.join(missing)} "
            f"({separated} separate them)"
        )
    return columns | {name: at for at, name in enumerate(header) if meaning_of_flag(name)}, box


def _places(
    where: str, header: Sequence[str], names: Mapping[str, Collection[str]]
) -> dict[str, int]:
    """Return the places of the columns of these names, by our names."""
    places = {}
    for name, others in names.items():
        fits = [column for column in header if column == name]
        fits = fits or [column for column in header if plain_name(column) in others]
        if len(fits) > 1:
            listed = " and ".join(fits)
            raise AnnotationError(f"{where}: both {listed} may be the {name}: remove one")
        if fits:
            places[name] = header.index(fits[0])
    return places


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
    """Tell whether a cell is a number, perhaps with a decimal comma; nan is none."""
    return re.fullmatch(r"\s*[-+]?(\d+([.,]\d*)?|[.,]\d+)(e[-+]?\d+)?\s*", text, re.I) is not None
