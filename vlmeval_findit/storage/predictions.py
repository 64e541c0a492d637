"""Prediction files: ``<model>_<dataset>.<json|jsonl|tsv|xlsx>``.

Columns are ``index``, ``prediction`` and perhaps ``extra_records``, ``image_sha256`` and
``call_time``; ground truth is never read from them. Values stay as they are: "None" and "NA" are
replies, an empty cell is an empty reply. JSON's null is none: the call failed.
"""

from __future__ import annotations

import csv
import io
import json
import logging
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from ..core import (
    StandsTwiceError,
    TextError,
    UnpackedSizeError,
    atomic_write,
    check_sheets,
    counted,
    open_regular,
    open_text,
    parse_json,
    quoted_value,
    read_json,
    refuse_columns_twice,
    save_workbook,
    write_once,
    write_text_once,
)
from ..protocol import (
    NO_REPLY,
    NOTHING_RECORDED,
    CallTime,
    NotAReplyError,
    Reply,
    host_record,
    is_index,
    is_no_reply,
    stored_reply,
)
from .image_content import Shown, shown_in
from .reply_records import (
    RecordError,
    fitting_column,
    parse_call_time,
    parse_record,
    record_text,
)
from .sheet_cells import XLSX_CELL_LIMIT, for_cell, restore_replies, say_what_is_cut
from .sheet_structure import check_sheets_of_table, check_structure, most_text

log = logging.getLogger(__name__)


class PredictionError(ValueError):
    """A prediction file that cannot be read; the message names file, row and column."""


def read_predictions(path: Path, indices: Container[int] | None = None) -> list[Reply]:
    """Read the replies of a prediction file, in its order, or those to ``indices`` (None: all).

    Those that a sheet cut are whole if the run's journal lies next to it; see :mod:`.sheet_cells`.
    Rows with another index are not checked.

    Raises:
        PredictionError: unknown format, damaged file, missing column or cell, an index that is
            invalid, or a column or an index that occurs a second time.
        OSError: the file cannot be opened.
    """
    form = prediction_format(path)
    replies: dict[int, Reply] = {}
    rows: dict[int, int] = {}
    for number, row in enumerate(form.read_rows(path), 1):
        if indices is not None and not _is_among(indices, row):
            continue
        where = f"{path}, row {number}"
        try:
            reply = _reply(where, _unpacked(row))
        except RecursionError:
            raise PredictionError(f"{where}: it is nested too deeply") from None
        if reply.index in replies:
            first = rows[reply.index]
            raise PredictionError(
                f"{where}: duplicate index {reply.index}, as in row {first}: leave one of them out"
            )
        replies[reply.index] = reply
        rows[reply.index] = number
    in_order = list(replies.values())
    return form.restore(path, in_order) if form.restore is not None else in_order


def prediction_format(path: Path) -> PredictionFormat:
    """Return the format of a prediction file, by its suffix.

    Raises:
        PredictionError: prediction files have other suffixes.
    """
    suffix = path.suffix.lower()
    if suffix not in _FORMATS:
        raise PredictionError(
            f"{path}: a prediction file cannot be {path.suffix or 'without a suffix'}; formats: "
            f"{', '.join(PREDICTION_FORMATS)}"
        )
    return _FORMATS[suffix]


def check_model_name(name: str) -> str:
    """Return a model's name; a PredictionError where it cannot be in a file's name."""
    whys = {
        "is not a name": name in ("", ".", ".."),
        "should have no slash: it names files": "/" in name or "\\" in name,
        "should have no line ends or control characters: it names files": not name.isprintable(),
        # File systems take 255 bytes, and a variant's name follows.
        "should have at most 100 bytes: it names files": len(name.encode(errors="replace")) > 100,
    }
    for why, is_wrong in whys.items():
        if is_wrong:
            raise PredictionError(f"the model's name {name!r} {why}")
    return name


def _is_among(indices: Container[int], row: Mapping[str, Any]) -> bool:
    """Return whether a row has one of some indices, or none that can be read."""
    try:
        return _index(row.get("index")) in indices
    except IndexCellError:
        return True


def _unpacked(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row with the columns that VLMEvalKit put into its column ``prediction``."""
    return {**row, **(host_record(row.get("prediction")) or {})}


def _reply(where: str, row: Mapping[str, Any]) -> Reply:
    for column in ("index", "prediction"):
        if column not in row:
            raise PredictionError(
                f"{where}: no column {column!r}; the columns are {quoted_value(list(row), 200)}. "
                "If another program wrote the file: python run_findit.py score --convert"
            )
    cells: dict[str, Any] = {}
    for column, read in _CELL_READERS.items():
        try:
            cells[column] = read(row.get(column))
        except (IndexCellError, NotAReplyError, RecordError) as error:
            raise PredictionError(f"{where}, column {column}: {error}") from None
    text, thought = cells["prediction"]
    record = cells["extra_records"]
    if is_no_reply(row["prediction"]) and record == NOTHING_RECORDED:
        record = NO_REPLY
    if thought and not record.thought:
        record = replace(record, thought=thought)
    stated = {name: row[name] for name in STATED if row.get(name) not in (None, "")}
    return Reply(
        cells["index"], text, record, stated, shown=cells[SHOWN_COLUMN], time=cells[_TIME_COLUMN]
    )


# Columns of a prediction file that repeat what the table says
STATED = ("label", "width", "height")

# Column with the contents of the images that a row showed
SHOWN_COLUMN = "image_sha256"

# Column with the time of a row's call
_TIME_COLUMN = "call_time"


class IndexCellError(ValueError):
    """A cell with a value that cannot be read; the message is without its place."""


# The columns that are read
_READ_COLUMNS = ("index", "prediction", "extra_records", SHOWN_COLUMN, _TIME_COLUMN, *STATED)


@lru_cache(64)
def _refuse_columns_twice(header: Sequence[str]) -> None:
    """Refuse two columns of one name; of one that is read also in other letter case.

    Raises:
        StandsTwiceError: there are two.
    """
    refuse_columns_twice(header)
    for name in _READ_COLUMNS:
        alike = [column for column in header if column.strip().lower() == name]
        if len(alike) > 1:
            raise StandsTwiceError(
                f"both {quoted_value(alike[0])} and {quoted_value(alike[1])} may be the column "
                f"{name}: remove one"
            )


def _index(value: object) -> int:
    """Read a row's number, which sheets hold as 3.0 and some programs as text."""
    number = value
    is_text = isinstance(value, str) and re.fullmatch(r"\s*-?[0-9]{1,18}\s*", value)
    if is_text or (isinstance(value, float) and value.is_integer()):
        number = int(value)  # type: ignore[call-overload]
    if type(number) is int and is_index(number):
        return number
    why = "the number of a row: they begin at 0" if type(number) is int else "a whole number"
    raise IndexCellError(f"{quoted_value(value)} is not {why}")


# What reads a cell of each column
_CELL_READERS: Mapping[str, Callable[[Any], Any]] = {
    "index": _index,
    "prediction": stored_reply,
    "extra_records": parse_record,
    SHOWN_COLUMN: shown_in,
    _TIME_COLUMN: parse_call_time,
}


def _json_rows(path: Path) -> Iterable[Mapping[str, Any]]:
    try:
        rows = read_json(path)
    except TextError as error:
        raise PredictionError(error.message_for(path)) from None
    if not isinstance(rows, list):
        raise PredictionError(f"{path}: should be a list with an object for each query")
    return [_object(path, f"row {number}", row) for number, row in enumerate(rows, 1)]


def _json_lines(path: Path) -> Iterator[Mapping[str, Any]]:
    with _opened(path) as f:
        try:
            for number, line in enumerate(f, 1):
                if line.strip():
                    yield _object(path, f"line {number}", parse_json(line))
        except TextError as error:
            raise PredictionError(f"{path}, line {number}: {error}") from None
        except UnicodeDecodeError as error:
            raise PredictionError(f"{path}: {error}") from None


def _object(path: Path, place: str, row: object) -> Mapping[str, Any]:
    if not isinstance(row, dict):
        raise PredictionError(f"{path}, {place}: should be an object, not {quoted_value(row)}")
    try:
        _refuse_columns_twice(tuple(row))
    except StandsTwiceError as error:
        raise PredictionError(f"{path}, {place}: {error}") from None
    return row


def _tsv_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    csv.field_size_limit(2**31 - 1)
    with _opened(path) as f:
        # Strict: a file cut off within a reply must not give a shorter reply.
        lines = csv.reader(f, delimiter="\t", strict=True)
        try:
            header = _header(path, next(lines, []))
            for number, cells in enumerate(filter(None, lines), 1):
                if len(cells) != len(header):
                    raise PredictionError(
                        f"{path}, row {number}: {counted(len(cells), 'cell')} for "
                        f"{counted(len(header), 'column')}: is the file cut off?"
                    )
                yield dict(zip(header, cells, strict=True))
        except (csv.Error, UnicodeDecodeError) as error:
            raise PredictionError(f"{path}, line {lines.line_num}: {error}") from None


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    try:
        with open_text(path) as f:
            yield f
    except TextError as error:
        raise PredictionError(error.message_for(path)) from None


def _xlsx_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    header: list[str] | None = None
    for cells in _xlsx_cells(path):
        if header is None:
            header = _header(path, cells)
            continue
        # Rows may lack their last empty cells, and sheets may end with empty rows.
        row = dict(zip_longest(header, cells[: len(header)]))
        if any(value is not None for value in row.values()):
            # An empty text is an empty cell, too.
            yield {name: "" if value is None else value for name, value in row.items()}
    if header is None:
        _header(path, [])


def _xlsx_cells(path: Path) -> Iterator[Sequence[Any]]:
    """Yield the cells of the first sheet, a row at a time."""
    from openpyxl import load_workbook

    with open_regular(path) as f:
        try:
            check_sheets(f)
            problems = check_structure(f)
            # Not data_only: a reply that begins with "=" may be a formula without a value.
            book = load_workbook(f, read_only=True)
            sheet = book.worksheets[0]
            problem = problems.get(sheet._worksheet_path)
            problem = problem or check_sheets_of_table(book, ("index", "prediction"))
            # What a sheet says of its size is a hint: programs that add rows leave it as it was.
            sheet.reset_dimensions()
            left = most_text(path.stat().st_size)
            for cells in () if problem else sheet.iter_rows(values_only=True):
                left -= sum(len(cell) for cell in cells if isinstance(cell, str))
                if left < 0:
                    raise UnpackedSizeError(
                        "its cells unpack to too much text: no sheet of a table"
                    )
                yield cells
        except (UnpackedSizeError, StandsTwiceError) as error:
            raise PredictionError(f"{path}: {error}") from None
        except Exception as error:  # zip, XML and openpyxl raise anything
            raise PredictionError(f"{path}: not a readable xlsx sheet: {error}") from None
    if problem:
        raise PredictionError(f"{path}: {problem}")


def _header(path: Path, names: Iterable[Any]) -> list[str]:
    header = ["" if name is None else str(name) for name in names]
    if not header:
        raise PredictionError(f"{path}: no line of column names; is the file cut off?")
    try:
        _refuse_columns_twice(tuple(header))
    except StandsTwiceError as error:
        raise PredictionError(f"{path}: {error}") from None
    return header


# --- writing --------------------------------------------------------------------------------------

PredictionRow = Mapping[str, Any]  # One row of a prediction file, by column


def prediction_row(reply: Reply, *, escapes: bool = True) -> dict[str, Any]:
    """Return the row of a reply; ``escapes``: as of :func:`.record_text`."""
    return {
        "index": reply.index,
        "prediction": reply.text,
        "extra_records": record_text(reply.recorded, escapes=escapes),
        **shown_column(reply.shown),
        **call_time_column(reply.time),
    }


def shown_column(shown: Shown) -> dict[str, str]:
    """Return what a row showed as a column; empty if it is not known."""
    return {SHOWN_COLUMN: json.dumps(dict(shown))} if shown else {}


def call_time_column(time: CallTime) -> dict[str, str]:
    """Return the time of a row's call as a column; empty if it is not known."""
    values = time.as_values()
    return {_TIME_COLUMN: json.dumps(values)} if values else {}


def write_rows(path: Path, rows: Callable[[], Iterable[PredictionRow]]) -> None:
    """Write a prediction file in the format of its suffix, atomically, if it changed.

    Sheets cut replies at 32,767 characters, and the host reads "NA" in TSV as nothing. Each call of
    ``rows`` makes them again, so that JSON never holds all in memory.
    """
    prediction_format(path).write_rows(path, rows)


def _write_json(path: Path, rows: Callable[[], Iterable[PredictionRow]]) -> None:
    if not holds_rows(path, rows()):
        with atomic_write(path) as f:
            f.writelines(_as_json(rows()))


def _write_json_lines(path: Path, rows: Callable[[], Iterable[PredictionRow]]) -> None:
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows())
    write_text_once(path, "".join(lines))


def _write_tsv(path: Path, rows: Callable[[], Iterable[PredictionRow]]) -> None:
    out = io.StringIO()
    whole = list(rows())
    writer = csv.DictWriter(
        out, _columns(whole), delimiter="\t", quoting=csv.QUOTE_ALL, lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows(whole)
    write_text_once(path, out.getvalue())


def _as_json(rows: Iterable[PredictionRow]) -> Iterator[str]:
    before = "["
    for row in rows:
        yield before
        if any(isinstance(value, dict | list | tuple) for value in row.values()):
            yield ("\n" + json.dumps(row, indent=4, ensure_ascii=False)).replace("\n", "\n    ")
        else:
            # The same text, but faster: JSON's writer in C does not indent.
            yield f"\n    {{\n        {_FLAT.encode(row)[1:-1]}\n    }}"
        before = ","
    yield "[]" if before == "[" else "\n]"


_FLAT = json.JSONEncoder(ensure_ascii=False, separators=(",\n        ", ": "))


def holds_rows(path: Path, rows: Iterable[PredictionRow]) -> bool:
    """Return whether a JSON file has just these rows, as :func:`write_rows` writes them."""
    if not path.exists():
        return False
    with open_regular(path) as f:
        parts = (part.encode("utf-8", "backslashreplace") for part in _as_json(rows))
        return all(f.read(len(part)) == part for part in parts) and not f.read(1)


def _columns(rows: Sequence[PredictionRow]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _write_sheet(path: Path, rows: Callable[[], Iterable[PredictionRow]]) -> None:
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell

    book = Workbook(write_only=True)
    sheet = book.create_sheet()
    whole = list(rows())
    columns = _columns(whole)
    sheet.append(columns)
    say_what_is_cut(path, whole)
    shortened = [_with_fitting_record(row) for row in whole]
    lost = sum(before is not after for before, after in zip(whole, shortened, strict=True))
    if lost:
        log.warning(
            "%s: a cell holds %d characters, and the records of %d replies are longer: their "
            "log-probabilities, thoughts or all they hold are left out (PRED_FORMAT=json holds "
            "them)",
            path,
            XLSX_CELL_LIMIT,
            lost,
        )
    for row in shortened:
        cells = []
        for name in columns:
            value = row.get(name)
            cell = WriteOnlyCell(sheet, for_cell(value) if isinstance(value, str) else value)
            if isinstance(value, str):
                cell.data_type = "s"  # also where it begins like a formula
            cells.append(cell)
        sheet.append(cells)
    out = io.BytesIO()
    save_workbook(book, out)
    write_once(path, out.getvalue())


def _with_fitting_record(row: PredictionRow) -> PredictionRow:
    """Shorten a row's record to fit a cell, or leave it out."""
    text = row.get("extra_records")
    if not isinstance(text, str):
        return row
    fitting = fitting_column(text, XLSX_CELL_LIMIT)
    return row if fitting == text else {**row, "extra_records": fitting}


# --- formats --------------------------------------------------------------------------------------


class PredictionFormat(NamedTuple):
    """How the prediction files with a suffix are read and written."""

    read_rows: Callable[[Path], Iterable[Mapping[str, Any]]]
    write_rows: Callable[[Path, Callable[[], Iterable[PredictionRow]]], None]
    # Completes replies that the format does not hold whole
    restore: Callable[[Path, Sequence[Reply]], list[Reply]] | None = None


_FORMATS = {
    ".json": PredictionFormat(_json_rows, _write_json),
    ".jsonl": PredictionFormat(_json_lines, _write_json_lines),
    ".tsv": PredictionFormat(_tsv_rows, _write_tsv),
    ".xlsx": PredictionFormat(_xlsx_rows, _write_sheet, restore_replies),
}
PREDICTION_FORMATS = tuple(_FORMATS)  # Their suffixes
