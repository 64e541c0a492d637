"""``run_findit.py report``: a page of scored runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from ..core.files import atomic_write
from ..core.formatting import counted
from ..report.cards import CARDS
from ..report.page import make_page
from ..report.pairs import FLAG, sides_of
from ..runs.scored_run import RowData
from .leaderboard import boards_from, format_option, print_remarks
from .options import PATH, Command, runs_argument

EVERY = 5.0
"""Seconds between two reads of a sweep."""


@click.command(
    cls=Command,
    examples=[
        "python run_findit.py report outputs",
        "python run_findit.py report sweep.yaml --watch",
    ],
)
@runs_argument
@click.option("--out", type=PATH, default=Path("outputs/report.html"), metavar="FILE", help="Page.")
@click.option(
    "--cards",
    type=click.IntRange(min=1),
    default=CARDS,
    metavar="N",
    help="Answers in the gallery, at most.",
)
@click.option(
    FLAG,
    "compared",
    nargs=2,
    metavar="LEFT RIGHT",
    help="Put these side by side first, and their most different answers on the page: MODEL, "
    "MODEL=FORMAT, or FORMAT if only one model has it.",
)
@format_option
@click.option(
    "--watch",
    is_flag=True,
    help="Follow a running sweep: RUN is its file, or its work dir.",
)
@click.option(
    "--every",
    type=float,
    metavar="SECONDS",
    help=f"With --watch: seconds between two versions of the page ({EVERY:g}).",
)
def command(
    runs: tuple[Path, ...],
    out: Path,
    cards: int,
    compared: tuple[str, str] | None,
    formats: tuple[str, ...],
    watch: bool,
    every: float | None,
) -> int:
    """Write a page for each benchmark: plots, and every answer on its image; needs no network."""
    if every is not None and not 0 < every < 1e6:  # nan, too
        raise ValueError(f"--every {every:g} is not a number of seconds: --every {EVERY:g}")
    if watch:
        if compared or formats or cards != CARDS:
            raise ValueError(f"--watch does not go with {FLAG}, --format or --cards")
        from .watch import watch as watch_sweep

        return watch_sweep(runs, out, every or EVERY)
    if every is not None:
        raise ValueError("--every needs --watch")
    return write_report(runs, out, compared or (), formats, cards)


def write_report(
    runs: Sequence[Path],
    out: Path,
    compared: Sequence[str] = (),
    formats: Sequence[str] = (),
    cards: int = CARDS,
) -> int:
    """Write the page of each benchmark that runs are of; returns the exit status."""
    boards = boards_from(runs, formats, RowData.QUERY_SCORES)
    sides = sides_of(compared, boards)
    out.parent.mkdir(parents=True, exist_ok=True)
    for board in boards:
        path = out
        if board is not boards[0]:
            path = path.with_name(f"{path.stem}-{board.benchmark.name}{path.suffix}")
        if len(boards) > 1:
            print(f"{board.benchmark.name}:")
        with atomic_write(path) as f:
            f.write(make_page(board, datetime.now(UTC), cards, sides))
        print_remarks(board, path.name)
        counts = f"{counted(len(board.runs), 'run')}, {counted(len(board.models), 'model')}"
        print(f"{path}: {counts}, {path.stat().st_size / 1e6:.1f} MB")
    return 0
