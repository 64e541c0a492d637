"""Runs as a dataset folder for the Hugging Face hub and ``datasets.load_dataset``, with its card.

::

    README.md              the card
    croissant.json         the same for dataset searches: files, and the types of columns
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
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from .. import __version__
from ..api import query_rows, row_of_run
from ..core import (
    agreeing,
    atomic_write,
    counted,
    first_few,
    printable,
    read_json,
    replace_surrogates,
    replacing,
)
from ..leaderboard import (
    RUN_COSTS,
    Board,
    FieldType,
    Table,
    boards,
    dull_counts,
    escape_markdown,
    how_to_read,
    legend_of,
    metric_table,
    overall_table,
    remarks,
    runs_table,
    to_markdown,
)
from ..reproduction import reproduction_line, reproductions_of
from ..scoring import Run
from ..statistics import INTERVALS_LEGEND
from ..storage import CHECKSUMS
from .croissant import (
    BOXES,
    NUMBER,
    TEXT,
    VOCABULARY,
    WHOLE,
    YES_NO,
    DescribedField,
    DescribedRecords,
    write_croissant,
)
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
        described = [_described(folder, name) for name in TABLES]
        title = private.in_record(_title(runs))
        write_croissant(folder, title, _HOLDS, described, [licence] if licence else [])
    rows_written = f"{counted(len(runs), 'run')}, {counted(len(queries), 'row')}"
    yield f"{out}/: {rows_written}; the card is README.md"
    if hidden:
        yield "paths or secrets of this machine were removed from (the card names all):"
        yield f"  {first_few(hidden)}"
    found = places_of(out, read_json(out / CHECKSUMS)["sha256"])
    places = {place: files for place, files in found.items() if place not in VOCABULARY}
    yield f"addresses and paths in it: {len(places) or 'none'}"
    for place, files in list(places.items())[:_LISTED]:
        yield f"  {printable(place)} in {first_few(files)}"
    if len(places) > _LISTED:
        yield f"  and {len(places) - _LISTED:,} more"
    yield "upload it, for whoever may see the repository, with:"
    yield f"  hf upload OWNER/NAME {shlex.quote(str(out))} . --repo-type dataset --private"


_LISTED = 20  # Most addresses and paths of a dataset that are listed


_HOLDS = (
    "Scored runs of models that answer with boxes or points: their unchanged replies, what was "
    "read of them, and their values. Images and annotations are not in here."
)


def _title(runs: Sequence[Run]) -> str:
    models = dict.fromkeys(run.model for run in runs)
    return printable(f"FindIt runs: {', '.join(models)}")


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
    **{column.name: pa.float64() for column in RUN_COSTS if column.kind is FieldType.AMOUNT},
}


Row = Mapping[str, Any]


def named_run_row(run: Run, name: str) -> Row:
    """Return the row of a run with its name, without its path on this machine."""
    return {"run": name, **{key: value for key, value in row_of_run(run).items() if key != "path"}}


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


_CROISSANT_TYPES = {
    pa.string(): TEXT,
    pa.int64(): WHOLE,
    pa.float64(): NUMBER,
    pa.bool_(): YES_NO,
}
_MEANINGS = {
    "reply": "the unchanged reply of the model",
    "boxes": "predicted boxes, [x1, y1, x2, y2] in pixels of the original image",
}
_WHAT = {"queries": "a row for each query", "runs": "a row for each run"}


def _described(folder: Path, table: str) -> DescribedRecords:
    """Describe the columns of a table that was written."""
    file = TABLES[table]
    schema = pq.read_schema(folder / file)
    fields = [_field(column.name, column.type) for column in schema if _is_known(column.type)]
    return DescribedRecords(table, _WHAT[table], file, fields)


def _is_known(kind: pa.DataType) -> bool:
    """Return whether a column has values; one of nulls alone has no type."""
    while pa.types.is_list(kind):
        kind = kind.value_type
    return kind in _CROISSANT_TYPES


def _field(name: str, kind: pa.DataType) -> DescribedField:
    lengths = []
    while pa.types.is_list(kind):
        lengths.append("-1")
        kind = kind.value_type
    what = _MEANINGS.get(name, "")
    if name == "boxes" and len(lengths) == 2:
        return DescribedField(name, BOXES, what, "-1,4")
    return DescribedField(name, _CROISSANT_TYPES[kind], what, ",".join(lengths))


# The tables of a dataset by the names of their configurations; the first is the default
TABLES = {"queries": "data/queries.parquet", "runs": "data/runs.parquet"}

_REPEAT = """```sh
pip install vlmeval-findit
findit leaderboard runs   # the values above, from the files in here
findit score runs         # the values from the replies; needs the annotations
```"""

_TAGS = ("vlmeval-findit", "visual-grounding", "evaluation-results")


def make_card(runs: Sequence[Run], licence: str | None, hidden: Sequence[str]) -> str:
    """Make the card of runs as Markdown, with the front matter that the hub reads.

    Args:
        runs: the published runs.
        licence: the hub's name of the licence (None: none is named).
        hidden: the files from which private parts were removed.
    """
    models = list(dict.fromkeys(run.model for run in runs))
    made = boards(runs)
    puts = agreeing(len(models), "puts", "put")
    parts = [
        f"---\n{_front(_title(runs), licence)}---",
        f"# Where {_listed(models)} {puts} boxes",
        f"{counted(len(runs), 'scored run')} of {counted(len(models), 'model')}, written by "
        f"`findit export` of vlmeval_findit {__version__}. `queries` has a row for each query with "
        "the unchanged reply; `runs` a row for each run; the folder `runs` the files of the runs. "
        "Images and annotations are not in here: they belong to their publishers.",
        *chain.from_iterable(_sections_of_values(made, runs)),
        f"Metrics are in percent, with 95 % intervals; costs are those of a query. Intervals: "
        f"{INTERVALS_LEGEND}. Failed calls count in no value unless its name says so.",
        *_reproductions(runs),
        *_doubts(made),
        "## How it was measured",
        "Prompts, annotations, coordinates and versions of each run are columns of `runs`. "
        "Everything that an answer depends on is in `runs/…_identity.json`, everything that a "
        "score depends on in `runs/…_provenance.json`, and checksums of all files are in "
        "`checksums.json`.",
        "## Repeat it",
        _REPEAT,
        "## Licence",
        _licence(licence),
    ]
    if hidden:
        parts += [
            "## Removed",
            "Paths or secrets of the machine that wrote them are replaced by `…/` or `***` in: "
            + ", ".join(f"`{name}`" for name in hidden)
            + ". Checksums in the provenance are those of the files in here.",
        ]
    return "\n\n".join(parts) + "\n"


def _front(title: str, licence: str | None) -> str:
    configs = [
        {"config_name": name, "data_files": [{"split": "test", "path": path}]}
        | ({"default": True} if name == "queries" else {})
        for name, path in TABLES.items()
    ]
    values: dict[str, Any] = {"pretty_name": title}
    values |= {"license": licence} if licence else {}
    values |= {"tags": list(_TAGS), "configs": configs}
    text: str = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=1000)
    return text


def _listed(models: Sequence[str]) -> str:
    names = [escape_markdown(model) for model in models]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _licence(licence: str | None) -> str:
    if licence:
        return f"`{licence}`, as named by the publisher."
    return (
        "None is named: the use of these replies depends on the terms of the model and of the "
        "images' publishers. Ask the publisher of this dataset."
    )


# --- values ---------------------------------------------------------------------------------------


def _sections_of_values(made: Sequence[Board], runs: Sequence[Run]) -> Iterator[list[str]]:
    """Yield the values of each benchmark, below a title."""
    for board in made:
        title = f"## Values of {board.benchmark.name}" if len(made) > 1 else "## Values"
        yield [title, *_values(board, runs)]


def _values(board: Board, runs: Sequence[Run]) -> Iterator[str]:
    """Yield the tables of a benchmark: its leaderboard's, and one with a row for each run."""
    overall = overall_table(board, formats=True)
    by_dataset = metric_table(board, board.headline.name, formats=True)
    tables = [table for table in (overall, by_dataset) if table.rows]
    for table in tables:
        yield f"### {escape_markdown(table.title)}"
        yield to_markdown(table)
    if tables:
        yield "\n".join(f"* {escape_markdown(line)}" for line in legend_of(tables))
        yield how_to_read(board)
    yield "### Runs"
    yield to_markdown(
        _runs_in_words([run for run in runs if run.benchmark.name == board.benchmark.name])
    )


def _runs_in_words(runs: Sequence[Run]) -> Table:
    """Return the table of runs without what people find dull."""
    table = runs_table(runs)
    rows = table.records()
    filled = [name for name in table.header if any(row[name] not in (None, "") for row in rows)]
    dull = dull_counts([run.provenance.costs for run in runs])
    return table.only(*({*filled} - dull - {"column", "format", "path"}))


def _reproductions(runs: Sequence[Run]) -> Iterator[str]:
    """Yield a section about published figures that runs were judged against."""
    nearby = reproductions_of({run.path: run.provenance.predictions_sha256 for run in runs})
    lines = []
    for each in nearby:
        line = f"{each.stored.model}: {reproduction_line(each.stored)}"
        if each.changed:
            line += f". The replies to {', '.join(each.changed)} have changed since"
        lines.append(f"* {escape_markdown(line)}")
    if lines:
        yield "## Against published figures"
        yield "\n".join(lines)


def _doubts(made: Sequence[Board]) -> Iterator[str]:
    """Yield sections about doubts of the values."""
    by_title: dict[str, list[str]] = {}
    excluded: list[str] = []
    for board in made:
        for title, lines in remarks(board):
            by_title.setdefault(title, []).extend(lines)
        excluded += [f"{x.run.model}, {x.run.variant.name}: {x.reason}" for x in board.excluded]
    for title, lines in {**by_title, "Not to be compared with the rest": excluded}.items():
        if lines:
            yield f"## {title}"
            yield "\n".join(f"* {escape_markdown(line)}" for line in lines)
