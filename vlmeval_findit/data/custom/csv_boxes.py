"""Read CSV, or TSV: a box a line, ``image,label,x1,y1,x2,y2`` and, if known, ``width,height``.

Columns may be called as tools call them, and have corners, or a corner or centre and sides; or one
column has the four numbers of a box.  Classes that are numbers (``class_id``) need names.
Commas, semicolons (with decimal commas) or tabs separate.  Flags that say what does not count are
honoured.  A line with an image and nothing else shows no object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from pathlib import Path, PurePosixPath

from ...boxes import Corners
from ...core import StandsTwiceError, counted, quoted_value, refuse_columns_twice, suffix_of
from ...storage import ImageFileError, Size, read_image_header
from ..annotated_samples import AnnotationError, BoxForm, Samples, Units
from .annotation_values import (
    IMAGE_SUFFIXES,
    plain_name,
    written_number,
    written_numbers,
    written_size,
)
from .collector import Collector
from .csv_lines import CsvLine, cell_of_several_lines, csv_lines, lines_in, takes_in_rows
from .node import SIDES_OF_IMAGES
from .number_readings import forms_that_fit
from .reader_options import ReaderOptions
from .splits import key_of_splits, names_a_split
from .text_encodings import text_of
from .uncounted_objects import meaning_of_flag
from .upright_boxes import around_centre

# Sides of an image that its tool did not know
_NOT_STATED = {"", "0", "0.0"}
# What pandas and databases write for an empty cell
_EMPTY = ("", "nan", "null", "none", "na", "n/a", "<na>")

COLUMNS = ("image", "label", "x1", "y1", "x2", "y2")

# What names of columns begin with, if they are about an object or its box
_OF_OBJECTS = ("object", "obj", "bbox", "box", "boundingbox", "bb")


def _of_object(*names: str) -> frozenset[str]:
    """Return names of columns, and the same after what says that they are about an object."""
    prefixed = (f"{prefix}{name}" for prefix in _OF_OBJECTS for name in names)
    return frozenset((*names, *prefixed))


_X1 = _of_object("x1", "xmin", "minx", "left")
_Y1 = _of_object("y1", "ymin", "miny", "top")

# Other names of columns, without letter case and punctuation
_OTHER_NAMES: Mapping[str, Collection[str]] = {
    "image": {
        "filename",
        "file",
        "filepath",
        "path",
        "image",
        "img",
        "imagename",
        "imgname",
        "imagefile",
        "imgfile",
        "imagepath",
        "imgpath",
        "imageid",
        "imgid",
        "imagefilename",
        "imgfilename",
    },
    "label": _of_object(
        "label", "class", "cls", "classname", "classlabel", "category", "categoryname", "labelname"
    )
    | {"name", "objectname", "objname", "object"},
    "x1": _X1,
    "y1": _Y1,
    "x2": _of_object("x2", "xmax", "maxx", "right"),
    "y2": _of_object("y2", "ymax", "maxy", "bottom"),
    **SIDES_OF_IMAGES,
}
# Columns of classes that may be numbers, where no other has the names
_CODES: Mapping[str, Collection[str]] = {
    "label": _of_object("classid", "clsid", "categoryid", "labelid", "classindex", "classidx"),
}
# The same of boxes that have sides
_CORNER_AND_SIDES: Mapping[str, Collection[str]] = {
    "x": _of_object("x") | _X1,
    "y": _of_object("y") | _Y1,
}
_CENTRE_AND_SIDES: Mapping[str, Collection[str]] = {
    "cx": _of_object("cx", "xcenter", "xcentre", "centerx", "centrex"),
    "cy": _of_object("cy", "ycenter", "ycentre", "centery", "centrey"),
}
# width and height alone may be those of the image.
_SIDES_OF_BOXES: Mapping[str, Collection[str]] = {
    "w": (_of_object("w", "width") | {"bw"}) - {"width"},
    "h": (_of_object("h", "height") | {"bh"}) - {"height"},
}
# One column with four numbers
_ONE_COLUMN: Mapping[str, Collection[str]] = {
    "box": ("bbox", "box", "bndbox", "boundingbox", "objectbbox", "objectbox"),
}
# AutoML's and Vertex AI's lines, which may have no split: four corners, of which two may be empty
_AUTOML = (
    "split",
    "image",
    "label",
    "x1",
    "y1",
    "upper right x",
    "upper right y",
    "x2",
    "y2",
    "lower left x",
    "lower left y",
)
_NOT_NEEDED = {
    "source",
    "confidence",
    "isoccluded",
    "istruncated",
    "isdepiction",
    "isinside",
    "id",
    "area",
    *(plain_name(name) for name in _AUTOML if " " in name),
    # pandas writes its index so
    "",
    "unnamed0",
}
# Orders of columns in files without a header: keras-retinanet's, torchvision's, makesense.ai's
_ORDERS = (
    ("image", "x1", "y1", "x2", "y2", "label"),
    COLUMNS,
    ("label", "x", "y", "w", "h", "image", "width", "height"),
)


# Names of OpenImages, whose numbers are fractions
_OPEN_IMAGES = frozenset(("ImageID", "LabelName", "XMin", "XMax", "YMin", "YMax"))


def read_csv(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read a CSV file; in one that ends in .tsv tabs separate.

    Raises an AnnotationError if a column is missing or a cell is unsuitable.
    """
    options = options or ReaderOptions()
    listing = _read_listing(path, options.encoding)
    form = BoxForm.CORNERS if listing.numbers_are_unnamed else None
    collector = Collector(path, images, options, listing.units, form)
    if form is None and collector.options.form is not None:
        raise AnnotationError(f"{path}: its columns say what the numbers are. Leave --box out")
    if not listing.is_named:
        order = ",".join(listing.header)
        collector.ledger.note(f"files without a header, read as {order}", str(path))
    rows = _rows_of_split(listing, collector)
    entries = []
    sizes: dict[tuple[str, ...], Size | None] = {}  # As they are written: most lines have the same
    # Images that are where they are stated: a further line with the same sides says nothing new.
    plain: set[tuple[str, tuple[str, ...]]] = set()
    image_at = listing.columns["image"]
    sides_at = [listing.columns[name] for name in SIDES_OF_IMAGES if name in listing.columns]
    for where, cells in rows:
        stated = cells[image_at]
        if _is_empty(stated):
            raise AnnotationError(f"{where}, column image: is empty")
        sides = tuple([cells[at] for at in sides_at])
        if sides not in sizes:
            sizes[sides] = _size_of(where, cells, listing)
        image = stated
        if (stated, sides) not in plain:
            image = collector.image(stated, where, sizes[sides], again=True)
            if image == stated:
                plain.add((stated, sides))
        entries.append((where, cells, image))
    if listing.numbers_are_unnamed and collector.options.form is None:
        if listing.is_named:
            collector.form = _form_of_column(entries, listing, images, collector)
        else:
            _check_order(rows, listing)
    corners_of = _corners_of(listing, collector)
    flags = {name: at for name, at in listing.columns.items() if meaning_of_flag(name)}
    for where, cells, image in entries:
        stated_flags = {name: cells[at] for name, at in flags.items()} if flags else {}
        _read_box(where, cells, listing, image, collector, corners_of, stated_flags)
        collector.options.progress("lines", 1)
    if listing.sides_are_unnamed:
        _check_sides(rows, listing)
    collector.ledger.read("lines", len(rows))
    return collector.samples()


def _size_of(where: str, cells: Sequence[str], listing: _Listing) -> Size | None:
    sides = [
        cells[listing.columns[name]] if name in listing.columns else "" for name in SIDES_OF_IMAGES
    ]
    if {*sides} <= _NOT_STATED:
        return None
    width, height = sides
    return written_size(width, height, f"{where}, columns width and height")


def _check_sides(rows: Sequence[_Row], listing: _Listing) -> None:
    """Raise an AnnotationError where width and height may be those of the images."""
    sides: dict[str, set[tuple[str, str]]] = {}
    count = 0
    image_at, w, h = (listing.columns[name] for name in ("image", "w", "h"))
    for _, cells in rows:
        if not all(map(_is_empty, listing.box_of(cells))):
            count += 1
            sides.setdefault(cells[image_at], set()).add((cells[w], cells[h]))
    if count > len(sides) and all(len(of_image) == 1 for of_image in sides.values()):
        raise AnnotationError(
            f"{listing.path}: are width and height those of the boxes? All boxes of an image have "
            "the same. Call the columns box_width and box_height, or image_width and image_height"
        )


def _form_of_column(
    entries: Sequence[tuple[str, Sequence[str], str]],
    listing: _Listing,
    images: Path,
    collector: Collector,
) -> BoxForm:
    """Return the form of the numbers in one column, where all boxes have an area in one form only.

    Raises an AnnotationError if both forms fit, or none.  Where images are missing, nothing is
    asked: they come first.
    """
    boxes: list[Corners] = []
    sizes: list[Size] = []
    for where, cells, image in entries:
        numbers = _numbers_of(where, cells, listing)
        if numbers is None:
            continue
        try:
            sizes.append(read_image_header(images / image).size)
        except ImageFileError:
            return BoxForm.CORNERS
        boxes.append(numbers)
    if not boxes:
        return BoxForm.CORNERS
    units = collector.options.units or Units.PIXELS
    largest = max(max(numbers) for numbers in boxes)
    if collector.options.units is None and largest <= 1:
        units = Units.FRACTIONS
    fits = forms_that_fit(boxes, sizes, units)
    if len(fits) == 1:
        form = fits[0]
        shape = "[x1, y1, x2, y2]" if form is BoxForm.CORNERS else "[x, y, width, height]"
        collector.ledger.note(f"columns of boxes, read as {shape}", str(listing.path))
        return form
    both = "both fit" if fits else "neither fits all boxes"
    raise AnnotationError(
        f"{listing.path}: is a box [x1, y1, x2, y2] or [x, y, width, height]? By the numbers, "
        f"{both}. Type --box corners or --box sides"
    )


def _check_order(rows: Sequence[_Row], listing: _Listing) -> None:
    """Raise an AnnotationError where the columns without names may be x1, x2, y1, y2."""
    bad = []
    for where, cells in rows:
        numbers = _numbers_of(where, cells, listing)
        if numbers is None:
            continue
        first, second, third, fourth = numbers
        if first >= second or third >= fourth:
            return
        if first >= third or second >= fourth:
            bad.append(where)
    if bad:
        order = ",".join(listing.header)
        other = order.replace("x1,y1,x2,y2", "x1,x2,y1,y2")
        raise AnnotationError(
            f"{bad[0]}: without a header, the columns are read as {order}, and {len(bad)} of "
            f"{len(rows)} boxes have no area then. Put their names on top in their order, perhaps "
            f"{other}; or type --box sides, if they are x, y, width, height"
        )


def _numbers_of(where: str, line: Sequence[str], listing: _Listing) -> Corners | None:
    """Return the four numbers of a line; None if it has none."""
    cells = listing.box_of(line)
    numbers = written_numbers(cells)
    if numbers is None:
        # Some are empty, have commas, or are none.
        if all(map(_is_empty, cells)):
            return None
        numbers = [
            _number(cell, f"{where}, column {name}", listing.decimal_commas)
            for name, cell in zip(listing.box, cells, strict=True)
        ]
    first, second, third, fourth = numbers
    return (first, second, third, fourth)


def _read_box(
    where: str,
    cells: Sequence[str],
    listing: _Listing,
    image: str,
    collector: Collector,
    corners_of: Callable[[Corners], Corners],
    flags: Mapping[str, str],
) -> None:
    label = cells[listing.columns["label"]]
    if _is_empty(label):
        if all(map(_is_empty, listing.box_of(cells))):
            return
        # A class may be called NA or none.
        if label.strip().lower() in ("", "nan", "<na>"):
            raise AnnotationError(f"{where}, column label: is empty")
    if listing.has_codes and label.strip().isdecimal():
        column = listing.header[listing.columns["label"]]
        place = f"{where}, column {column}"
        label = collector.options.classes.text_of_code(int(label), place)
    numbers = _numbers_of(where, cells, listing)
    if numbers is None:
        collector.add_boxless(image, label, "has no numbers", where)
        return
    collector.add(image, label, corners_of(numbers), where, flags)


def _corners_of(listing: _Listing, collector: Collector) -> Callable[[Corners], Corners]:
    """Return how four numbers of a line become (x1, y1, x2, y2)."""
    if listing.box[0] == "cx":
        return lambda numbers: around_centre(*numbers)
    if listing.box[2] == "w":
        return BoxForm.SIDES.corners
    form = collector.options.form or collector.form or BoxForm.CORNERS
    return form.corners


@lru_cache(10_000)
def _is_empty(text: str) -> bool:
    return text.strip().lower() in _EMPTY


def _number(text: str, where: str, decimal_commas: bool) -> float:
    if decimal_commas and text.count(",") == 1 and "." not in text:
        text = text.replace(",", ".")
    return written_number(text, where)


# --- a listing ------------------------------------------------------------------------------------

# The cells of a line, after its place
_Row = tuple[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class _Listing:
    """The lines of a file, each after the file and the line that it ends in."""

    path: Path
    header: Sequence[str]
    columns: Mapping[str, int]  # Those that are read, by our names; flags keep theirs
    lines: Sequence[tuple[str, Sequence[str]]]
    box: Sequence[str]  # Our names of the columns with the numbers of a box
    box_of: Callable[[Sequence[str]], tuple[str, ...]]  # Returns these cells of a line
    is_named: bool  # Whether there is a header
    numbers_are_unnamed: bool  # Whether a box may have corners or sides
    has_codes: bool  # Whether labels may be numbers that stand for classes
    sides_are_unnamed: bool  # Whether width and height may be those of boxes or images
    decimal_commas: bool
    units: Units  # Of the format


def _read_listing(path: Path, encoding: str | None) -> _Listing:
    text = text_of(path, encoding)
    first, _, rest = text.partition("\n")
    stated = re.fullmatch("sep=(.)\\s*", first)  # As Excel writes it
    separator = stated[1] if stated else _separator(path, first)
    lines = csv_lines(path, rest, separator, 1) if stated else csv_lines(path, text, separator)
    line_of_file = f"{path}, line "
    read = []
    longer = []  # With a cell that has several lines
    for line in lines:
        if any(map(str.strip, line.cells)):
            read.append((line_of_file + str(line.last), line.cells))
            if line.last > line.first:
                longer.append(line)
    where = read[0][0] if read else f"{path}, line 1"
    header = [name.strip() for name in read[0][1]] if read else []
    is_named = not any(map(_is_value, header))
    if is_named:
        read = read[1:]
    else:
        header = list(_order_of_columns([cells for _, cells in read], where))
    for place, cells in read:
        if len(cells) != len(header):
            raise AnnotationError(
                f"{place}: {counted(len(cells), 'cell')} for {counted(len(header), 'column')}"
            )
    try:
        refuse_columns_twice(header)
    except StandsTwiceError as error:
        raise AnnotationError(f"{where}: {error}") from None
    columns, box = _columns(where, header, separator)
    for line in longer:
        _refuse_several_lines(path, line, {*columns.values()}, separator)
    one_column = "box" in columns
    if one_column:
        columns |= {name: at for at, name in enumerate(box, len(header))}
        header, read = _split_boxes(header, read, columns["box"])
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
        itemgetter(*[columns[name] for name in box]),
        is_named,
        numbers_are_unnamed=one_column or (not is_named and box == COLUMNS[2:]),
        has_codes=plain_name(header[columns["label"]]) in _CODES["label"],
        sides_are_unnamed="w" in columns and plain_name(header[columns["w"]]) == "width",
        decimal_commas=decimal_commas,
        units=_units(header, is_named),
    )


def _refuse_several_lines(
    path: Path, line: CsvLine, places: Collection[int], separator: str
) -> None:
    """Refuse a cell of several lines at a place that is read, or that may hold other rows."""
    for at, cell in enumerate(line.cells):
        is_read = at in places and lines_in(cell) > 1
        if is_read or takes_in_rows(line, at, separator):
            raise cell_of_several_lines(path, line, at)


def _units(header: Sequence[str], is_named: bool) -> Units:
    """Return the units that the names or the order of columns fix; else pixels."""
    is_automl = not is_named and "lower left x" in header
    return Units.FRACTIONS if is_automl or {*header} >= _OPEN_IMAGES else Units.PIXELS


def _split_boxes(
    header: Sequence[str], lines: Sequence[tuple[str, list[str]]], at: int
) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Return the header and the lines, with a further column for each number of a box."""
    split = []
    for place, cells in lines:
        numbers = re.split(r"[\s,;]+", cells[at].strip(" []()"))
        if _is_empty(cells[at]):
            numbers = [""] * 4
        elif len(numbers) != 4 or not all(map(_is_number, numbers)):
            raise AnnotationError(
                f"{place}, column {header[at]}: {quoted_value(cells[at])} should be four numbers"
            )
        split.append((place, [*cells, *numbers]))
    return [*header, *COLUMNS[2:]], split


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
    for automl in (_AUTOML, _AUTOML[1:]):
        if all(_is_automl(cells, automl) for cells in lines):
            return automl
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


def _is_automl(cells: Sequence[str], order: Sequence[str]) -> bool:
    """Return whether a line is of AutoML's: a split, an image, a class, and numbers or nothing."""
    if len(cells) != len(order):
        return False
    row = dict(zip(order, cells, strict=True))
    numbers = [row[name] for name in order if name not in ("split", "image", "label")]
    split = row.get("split", "unassigned")
    return (
        (split.lower() == "unassigned" or names_a_split(split))
        and suffix_of(PurePosixPath(row["image"])) in IMAGE_SUFFIXES
        and all(_is_number(cell) or _is_empty(cell) for cell in numbers)
    )


def _columns(
    where: str, header: Sequence[str], separator: str
) -> tuple[dict[str, int], Sequence[str]]:
    """Return the places of the columns that are read, and the names of those with the box.

    Names are ours; flags keep theirs.
    """
    columns = _places(where, header, _OTHER_NAMES)
    if "label" not in columns:
        columns |= _places(where, header, _CODES)
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
    one = {} if {*box} <= columns.keys() else _places(where, header, _ONE_COLUMN)
    if one:
        columns = {key: at for key, at in columns.items() if key not in COLUMNS[2:]} | one
    needed = (*COLUMNS[:2], *(one or box))
    missing = [column for column in needed if column not in columns]
    if missing:
        label = ""
        if missing == ["label"]:
            label = ". Add a column label with the class of each box"
        separated = {",": "commas", ";": "semicolons", "\t": "tabs"}.get(separator, separator)
        raise AnnotationError(
            f"{where}: columns are {list(header)}, missing: {', '.join(missing)} "
            f"({separated} separate them){label}"
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
    return [listing.lines[at] for at in chosen]


def _is_number(text: str) -> bool:
    """Tell whether a cell is a number, perhaps with a decimal comma; nan is none."""
    return re.fullmatch(r"\s*[-+]?(\d+([.,]\d*)?|[.,]\d+)(e[-+]?\d+)?\s*", text, re.I) is not None
