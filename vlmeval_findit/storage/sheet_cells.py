"""What a cell of a sheet holds, and the whole replies of sheets that cut them.

xlsx is VLMEvalKit's default format. A cell holds 32,767 characters, and XML not all of them; the
run's journal, which lies next to the sheet, has every reply whole.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..core import TextError, open_regular, parse_json
from ..protocol import Reply
from .run_files import RunFiles

log = logging.getLogger(__name__)

XLSX_CELL_LIMIT = 32_767  # Characters

_SHOWN = 3  # Cut cells that are named in the log

_ESCAPED = re.compile(r"\\u[0-9a-f]{4}")


def for_cell(text: str) -> str:
    r"""Cut a text to fit a cell, and escape characters that XML cannot hold.

    Line ends become LF, the only one that XML has: with lxml openpyxl would write CR as it is,
    without lxml it would come back as LF, and a cut reply would no longer fill its cell.

    >>> for_cell("a\x00b\r\nc"), len(for_cell("a" * 40_000))
    ('a\\u0000b\nc', 32767)
    """
    return _escaped(text.replace("\r\n", "\n").replace("\r", "\n"))[:XLSX_CELL_LIMIT]


def _escaped(text: str) -> str:
    unfit = "[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]"
    return re.sub(unfit, lambda match: f"\\u{ord(match[0]):04x}", text)


def say_what_is_cut(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Log an error for every reply that a cell of a new sheet does not hold."""
    cut = []
    for number, row in enumerate(rows, 1):
        text = row.get("prediction")
        if isinstance(text, str) and len(text) > XLSX_CELL_LIMIT:
            cut.append(f"row {number} (index {row.get('index')}): {len(text):,} characters")
    if not cut:
        return
    more = f", and {len(cut) - _SHOWN} more" if len(cut) > _SHOWN else ""
    log.error(
        "%s: a cell of xlsx holds %s characters, so the sheet cuts column prediction of %s%s. "
        "Scores rest on the whole replies in %s: keep it next to the sheet. For whole predictions "
        "type PRED_FORMAT=json",
        path,
        f"{XLSX_CELL_LIMIT:,}",
        "; ".join(cut[:_SHOWN]),
        more,
        RunFiles(path).calls.name,
    )


def restore_replies(sheet: Path, replies: Sequence[Reply]) -> list[Reply]:
    """Return a sheet's replies, whole where the run's journal has them.

    Others that fill a cell are marked as cut.
    """
    changed = {each.index for each in replies if _fills_cell(each) or _ESCAPED.search(each.text)}
    whole = _whole_replies(sheet, changed) if changed else {}
    restored = []
    for reply in replies:
        text = whole.get((reply.index, reply.text))
        if text is not None:
            restored.append(replace(reply, text=text))
        else:
            restored.append(replace(reply, is_cut_by_sheet=_fills_cell(reply)))
    return restored


def _fills_cell(reply: Reply) -> bool:
    return len(reply.text) == XLSX_CELL_LIMIT


def _whole_replies(sheet: Path, rows: Set[int]) -> dict[tuple[int, str], str]:
    """Return the whole replies to rows, by row and by what a cell holds of them."""
    whole = {}
    for record in _journal_records(sheet):
        row = record.get("row")
        reply = record.get("reply")
        if isinstance(row, int) and row in rows and isinstance(reply, str):
            whole[row, for_cell(reply)] = reply
            # Sheets of version 1.0 have line ends as they were.
            whole[row, _escaped(reply)[:XLSX_CELL_LIMIT]] = reply
    return whole


def _journal_records(sheet: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the records of answers to the sheet's queries in the journal of its run."""
    # Upstream has a folder for every run below the model's, which has the journal.
    for path in (sheet, sheet.parent.parent / sheet.name):
        journal = RunFiles(path).calls
        if not journal.is_file():
            continue
        with open_regular(journal) as lines:
            for line in lines:
                record = _record_in(line)
                name = f"{record.get('model')}_{record.get('dataset')}"
                if name == sheet.stem and not record.get("error"):
                    yield record


def _record_in(line: bytes) -> dict[str, Any]:
    """Return the record of a line of a journal; empty if it is damaged or something else."""
    with suppress(TextError):
        record = parse_json(line)
        return record if isinstance(record, dict) else {}
    return {}
