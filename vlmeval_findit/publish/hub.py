"""A folder that the Hugging Face hub and ``datasets.load_dataset`` take as a dataset.

::

    README.md              the card
    checksums.json         SHA-256 of every file
    data/queries.parquet   one row a query
    data/runs.parquet      one row a run
    runs/                  the runs' own files, as commands of this package read them
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..core.files import atomic_write
from ..core.formatting import counted
from ..runs.scored_run import Run
from .card import TABLES, make_card
from .export_folder import rewrite_folder
from .parquet import run_rows, write_queries, write_runs
from .run_copies import check_whole, copy_run, private_of, unique_names
from .targets import some


def to_hub(runs: Sequence[Run], out: Path, licence: str | None = None) -> Iterator[str]:
    """Write runs as a dataset; the same runs are the same bytes.

    ``licence`` is the hub's name of it (None: the card says that nobody said one).
    """
    for run in runs:
        check_whole(run)
    names = unique_names(runs)
    private = private_of(runs)
    hidden: list[str] = []
    with rewrite_folder(out, "hub") as folder:
        for run, name in zip(runs, names, strict=True):
            below = Path("runs", name).parent
            hidden += [(below / one).as_posix() for one in copy_run(run, folder / below, private)]
        write_queries(runs, names, folder / TABLES["queries"], private)
        write_runs(run_rows(runs, names), folder / TABLES["runs"], private)
        with atomic_write(folder / "README.md") as f:
            f.write(private.in_record(make_card(runs, licence, hidden)))
    queries = counted(sum(len(run.rows) for run in runs), "row")
    yield f"{out}/: {counted(len(runs), 'run')}, {queries}; the card is README.md"
    if hidden:
        yield "paths or secrets of this machine were taken out of (the card names all):"
        yield f"  {some(hidden)}"
