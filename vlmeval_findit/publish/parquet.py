"""The two tables of a published dataset, as Parquet: one row a query, one row a run.

They are the rows of :mod:`..api.dataframes`, with the short name of the run.  Columns whose rows
have several types are JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..api.dataframes import query_rows, run_row
from ..core.files import replacing
from ..core.redaction import of_whole_characters
from ..runs.scored_run import Run
from .private import Private, changed

_BOXES, _NUMBERS = pa.list_(pa.list_(pa.float64())), pa.list_(pa.float64())
_PLACES, _TEXTS = pa.list_(pa.int64()), pa.list_(pa.string())
_KNOWN = {
    "reply": pa.string(),
    "reason": pa.string(),
    "score": pa.float64(),
    "errors": _TEXTS,
    "cost in USD": pa.float64(),
    "boxes": _BOXES,
    "labels": _TEXTS,
    "frames": _PLACES,
    "ious": _NUMBERS,
    "hits": pa.list_(pa.bool_()),
    "assigned": _PLACES,
    "ignored": _PLACES,
    "forced": _TEXTS,
}
"""Columns whose type does not depend on what a run happened to answer."""


def write_queries(runs: Sequence[Run], names: Sequence[str], path: Path, private: Private) -> None:
    """Write one row a query of every run; ``names`` are those of the runs' files."""
    rows = [
        row for run, name in zip(runs, names, strict=True) for row in _queries(run, name, private)
    ]
    _write(rows, path)


Row = Mapping[str, Any]


def write_runs(rows: Sequence[Row], path: Path, private: Private) -> None:
    """Write the rows of :func:`run_rows`."""
    _write(changed(rows, private.in_record), path)


def run_rows(runs: Sequence[Run], names: Sequence[str]) -> list[Row]:
    """Return one row a run, with its name; where it lies on this machine is left out."""
    return [
        {"run": name, **{key: value for key, value in run_row(run).items() if key != "path"}}
        for run, name in zip(runs, names, strict=True)
    ]


def _queries(run: Run, name: str, private: Private) -> Iterator[dict[str, Any]]:
    for row in query_rows(run):
        made: dict[str, Any] = changed({"run": name, **row}, private.in_reply)
        if made.get("error"):
            # Whoever asked wrote it, and the model nothing of it.
            made["error"] = private.in_record(row["error"])
        yield made


def _write(rows: Sequence[Row], path: Path) -> None:
    # Half a surrogate pair is no text.
    whole = changed(rows, of_whole_characters)
    names = list(dict.fromkeys(name for row in whole for name in row))
    columns = {name: _column(name, [row.get(name) for row in whole]) for name in names}
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        pq.write_table(pa.table(columns), temporary, compression="zstd")


def _column(name: str, values: Sequence[Any]) -> pa.Array:
    kinds = {type(value) for value in values if value is not None}
    usual = None if kinds else pa.string()
    try:
        if kinds <= {str, bool, int, float} or name in _KNOWN:
            return pa.array(values, _KNOWN.get(name, usual))
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        # Values of several types, or another benchmark means something else by this name.
        pass
    as_json = [None if one is None else json.dumps(one, ensure_ascii=False) for one in values]
    return pa.array(as_json, pa.string())
