"""Prediction files that are cut off or of another kind."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pandas as pd
import pytest

from vlmeval_findit.core.predictions import PredictionError, read_predictions
from vlmeval_findit.core.replies import Reply

ROWS = [{"index": i, "prediction": f"[{i}, 2, 3, 4]\n", "extra_records": "{}"} for i in range(50)]


def xlsx() -> bytes:
    out = io.BytesIO()
    pd.DataFrame(ROWS).to_excel(out, index=False)
    return out.getvalue()


def tsv() -> bytes:
    return pd.DataFrame(ROWS).to_csv(sep="\t", index=False, quoting=csv.QUOTE_ALL).encode()


def empty_sheet() -> bytes:
    from openpyxl import Workbook

    out = io.BytesIO()
    Workbook().save(out)
    return out.getvalue()


DAMAGED: dict[str, tuple[str, bytes, str]] = {
    "xlsx, cut off": ("xlsx", xlsx()[:-300], "not a sheet that can be read"),
    "xlsx without cells": ("xlsx", empty_sheet(), "has no line of column names"),
    "JSON, cut off": ("json", json.dumps(ROWS).encode()[:-100], "not JSON: "),
    "TSV, empty": ("tsv", b"", "has no line of column names"),
    "TSV, cut off in a reply": ("tsv", tsv()[: tsv().rfind(b"2, 3")], "unexpected end of data"),
    "TSV, cut off before a reply":
        ("tsv", tsv()[: tsv().rfind(b'\t"[49')], "row 50: 1 cells for 3"),
    "TSV, too many cells": ("tsv", b"index\tprediction\n1\ta\tb\n", "row 1: 3 cells for 2 columns"),
    "TSV of other columns": ("tsv", b"id\tanswer\n1\ta\n", "row 1: no column 'index', only ['id',"),
}  # fmt: skip


@pytest.mark.parametrize(("suffix", "content", "why"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file(tmp_path: Path, suffix: str, content: bytes, why: str) -> None:
    path = tmp_path / f"p.{suffix}"
    path.write_bytes(content)
    with pytest.raises(PredictionError) as error:
        read_predictions(path)
    assert str(error.value).startswith(str(path))
    assert why in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("end", range(0, len(tsv()), 397))
def test_a_file_that_is_cut_off_anywhere_has_no_shortened_reply(tmp_path: Path, end: int) -> None:
    """All replies that are read are whole, wherever the file ends."""
    path = tmp_path / "p.tsv"
    path.write_bytes(tsv()[:end])
    try:
        read = read_predictions(path)
    except PredictionError:
        return
    assert read == [Reply(row["index"], row["prediction"]) for row in ROWS[: len(read)]]


def test_what_files_may_have(tmp_path: Path) -> None:
    """A byte order mark, blank lines, zero bytes and very long replies are no damage."""
    long = "x" * 1_000_000
    path = tmp_path / "p.tsv"
    path.write_bytes(f"\ufeffindex\tprediction\n\n0\ta\0b\n1\t{long}\n".encode())
    assert read_predictions(path) == [Reply(0, "a\0b"), Reply(1, long)]
    path = tmp_path / "p.json"
    path.write_bytes(b'\xef\xbb\xbf[{"index": 0, "prediction": "a"}]')
    assert read_predictions(path) == [Reply(0, "a")]


def test_empty_cells_and_rows_of_a_sheet(tmp_path: Path) -> None:
    from openpyxl import Workbook

    book = Workbook()
    for row in (["index", "note", "prediction", None], [0, "n"], [1, None, "b"], [], [None]):
        book.active.append(row)
    path = tmp_path / "p.xlsx"
    book.save(path)
    assert read_predictions(path) == [Reply(0, ""), Reply(1, "b")]
