"""Writing prediction files, in the host's formats."""

from __future__ import annotations

import csv
import io
import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .files import atomic_write, holds_text, write_once, write_text_once
from .prediction_reader import XLSX_CELL_LIMIT, check_format
from .replies import RECORD_KEY, record_in

log = logging.getLogger(__name__)

PredictionRow = Mapping[str, Any]
"""One row of a prediction file, by column."""


def write_rows(path: Path, rows: Callable[[], Iterable[PredictionRow]]) -> None:
    """Write the rows of a prediction file in the format of its name, whole or not at all.

    JSON holds every reply as it is.  A sheet cuts it at 32,767 characters, and leaves out parts of
    a record that is longer, and says so; TSV, as the host reads it, does not know "NA" from
    nothing.  A file that is the same already is not touched.

    Args:
        path: the file.
        rows: makes the rows anew at every call, so that JSON never holds them all in memory.

    Raises:
        PredictionError: there is no such format.
    """
    check_format(path)
    if path.suffix == ".json":
        if not holds_rows(path, rows()):
            with atomic_write(path) as f:
                f.writelines(_as_json(rows()))
    elif path.suffix == ".tsv":
        out, whole = io.StringIO(), list(rows())
        writer = csv.DictWriter(
            out, _columns(whole), delimiter="\t", quoting=csv.QUOTE_ALL, lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows(whole)
        write_text_once(path, out.getvalue())
    else:
        _write_sheet(path, list(rows()))


def _as_json(rows: Iterable[PredictionRow]) -> Iterator[str]:
    """Rows as VLMEvalKit writes them: a list in JSON, indented by four."""
    before = "["
    for row in rows:
        yield before
        if any(isinstance(value, dict | list | tuple) for value in row.values()):
            yield ("\n" + json.dumps(row, indent=4, ensure_ascii=False)).replace("\n", "\n    ")
        else:
            # The same text; JSON's writer in C does not indent.
            yield f"\n    {{\n        {_FLAT.encode(row)[1:-1]}\n    }}"
        before = ","
    yield "[]" if before == "[" else "\n]"


_FLAT = json.JSONEncoder(ensure_ascii=False, separators=(",\n        ", ": "))


def holds_rows(path: Path, rows: Iterable[PredictionRow]) -> bool:
    """Whether a JSON file has just these rows, as :func:`write_rows` writes them."""
    return holds_text(path, _as_json(rows))


def _columns(rows: Sequence[PredictionRow]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _write_sheet(path: Path, rows: Sequence[PredictionRow]) -> None:
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell

    book = Workbook(write_only=True)
    sheet = book.create_sheet()
    columns = _columns(rows)
    sheet.append(columns)
    shortened = [_with_fitting_record(row) for row in rows]
    if lost := sum(before is not after for before, after in zip(rows, shortened, strict=True)):
        log.warning(
            "%s: a cell holds %d characters, and the records of %d replies are longer: their "
            "log-probabilities or thoughts are left out (PRED_FORMAT=json holds them)",
            path,
            XLSX_CELL_LIMIT,
            lost,
        )
    for row in shortened:
        cells = []
        for name in columns:
            value = row.get(name)
            cell = WriteOnlyCell(sheet, _for_cell(value) if isinstance(value, str) else value)
            if isinstance(value, str):
                cell.data_type = "s"  # also where it begins like a formula
            cells.append(cell)
        sheet.append(cells)
    out = io.BytesIO()
    book.save(out)
    write_once(path, out.getvalue())


def _with_fitting_record(row: PredictionRow) -> PredictionRow:
    """A row whose record is whole in a cell: one that was cut could not be read at all."""
    text = row.get("extra_records")
    record = dict(record_in(text))
    if not isinstance(text, str) or len(text) <= XLSX_CELL_LIMIT or not record:
        return row
    for part in ("logprobs", "thought"):
        if len(text) > XLSX_CELL_LIMIT and record.pop(part, None) is not None:
            text = json.dumps({RECORD_KEY: record})
    return {**row, "extra_records": text}


def _for_cell(text: str) -> str:
    """What a cell can hold of a text: what XML has no sign for is written as its number."""
    shown = re.sub(
        "[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]",
        lambda found: f"\\u{ord(found[0]):04x}",
        text,
    )
    return shown[:XLSX_CELL_LIMIT]
