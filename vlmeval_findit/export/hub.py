"""Runs as a dataset folder for the Hugging Face hub and ``datasets.load_dataset``.

::

    README.md              the card
    checksums.json         SHA-256 of every file
    data/queries.parquet   a row for each query
    data/runs.parquet      a row for each run
    runs/                  the files of the runs, which commands of this package read

Values of a Parquet column without a common type are JSON.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..api import query_rows, run_row
from ..core import atomic_write, counted, printable, read_json, replace_surrogates, replacing, some
from ..leaderboard import CALLS_AT_ONCE, COSTS
from ..scoring import Run
from ..storage import CHECKSUMS
from .card import TABLES, make_card
from .export_folder import check_whole, copy_run, private_of, rewrite_folder, unique_names
from .private import Private, changed, places_of


def to_hub(runs: Sequence[Run], out: Path, licence: str | None = None) -> Iterator[str]:
    """Write runs as a dataset; the same runs give the same bytes.

    ``licence`` is the hub's name of the licence (None: the card says that none is named).
    """
    for run in runs:
        check_whole(run)
    names = unique_names(runs)
    private = private_of(runs)
    hidden: list[str] = []
    with rewrite_folder(out, "hub") as folder:
        for run, name in zip(runs, names, strict=True):
            run_folder = Path("runs", name).parent
            changed_files = copy_run(run, folder / run_folder, private)
            hidden += [(run_folder / file).as_posix() for file in changed_files]
        named = list(zip(runs, names, strict=True))
        queries = [row for run, name in named for row in _queries(run, name, private)]
        _write(queries, folder / TABLES["queries"])
        rows = [changed(named_run_row(run, name), private.in_record) for run, name in named]
        _write(rows, folder / TABLES["runs"])
        with atomic_write(folder / "README.md") as f:
            f.write(private.in_record(make_card(runs, licence, hidden)))
    rows_written = f"{counted(len(runs), 'run')}, {counted(len(queries), 'row')}"
    yield f"{out}/: {rows_written}; the card is README.md"
    if hidden:
        yield "paths or secrets of this machine were removed from (the card names all):"
        yield f"  {some(hidden)}"
    places = places_of(out, read_json(out / CHECKSUMS)["sha256"])
    yield f"addresses and paths in it: {len(places) or 'none'}"
    for place, files in list(places.items())[:_LISTED]:
        yield f"  {printable(place)} in {some(files)}"
    if len(places) > _LISTED:
        yield f"  and {len(places) - _LISTED:,} more"
    yield "upload it, for whoever may see the repository, with:"
    yield f"  hf upload OWNER/NAME {shlex.quote(str(out))} . --repo-type dataset --private"


_LISTED = 20  # Most addresses and paths of a dataset that are listed


# --- Parquet --------------------------------------------------------------------------------------

_BOXES = pa.list_(pa.list_(pa.float64()))
_NUMBERS = pa.list_(pa.float64())
_PLACES = pa.list_(pa.int64())
_TEXTS = pa.list_(pa.string())
# Columns whose type does not depend on the answers of a run
_KNOWN = {
    "reply": pa.string(),
    "reason": pa.string(),
    "score": pa.float64(),
    "errors": _TEXTS,
    "cost in USD": pa.float64(),
    "seconds": pa.float64(),
    "boxes": _BOXES,
    "labels": _TEXTS,
    "frames": _PLACES,
    "ious": _NUMBERS,
    "hits": pa.list_(pa.bool_()),
    "assigned": _PLACES,
    "ignored": _PLACES,
    "forced": _TEXTS,
    **{column.name: pa.float64() for column in (*COSTS, CALLS_AT_ONCE)},
}


Row = Mapping[str, Any]


def named_run_row(run: Run, name: str) -> Row:
    """Return the row of a run with its name, without its path on this machine."""
    return {"run": name, **{key: value for key, value in run_row(run).items() if key != "path"}}


def _queries(run: Run, name: str, private: Private) -> Iterator[dict[str, Any]]:
    for row in query_rows(run):
        cleaned: dict[str, Any] = changed({"run": name, **row}, private.in_reply)
        if cleaned.get("error"):
            # The caller wrote the error, not the model.
            cleaned["error"] = private.in_record(row["error"])
        yield cleaned


def _write(rows: Sequence[Row], path: Path) -> None:
    # Half a surrogate pair is no text.
    whole = changed(rows, replace_surrogates)
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
        # Values of several types, or the name has another meaning in another benchmark.
        pass
    as_json = [None if v is None else json.dumps(v, ensure_ascii=False) for v in values]
    return pa.array(as_json, pa.string())
