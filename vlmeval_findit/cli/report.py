"""``run_findit.py report``: a page of scored runs, or one that follows a sweep."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..core import (
    EXIT_INTERRUPTED,
    EXIT_SOME_FAILED,
    ConfigError,
    as_called,
    atomic_write,
    counted,
    not_there,
    suffix_of,
    write_together,
)
from ..engine import CellBuilder
from ..leaderboard import Board
from ..report import (
    CARDS_ON_A_PAGE,
    COMPARE_FLAG,
    CellView,
    FollowedSweep,
    SectionFailure,
    SweepFiles,
    SweepSnapshot,
    SweepState,
    make_live_page,
    make_page,
    planned_rows,
    read_shown,
    setups_of,
    shown_on_page,
    sides_of,
)
from ..scoring import RowData
from ..storage import SWEEP_JOURNAL
from ..sweeps import Sweep, read_sweep, stage_variants
from .command_base import (
    BESIDE_RUNS,
    WRITTEN_FILE,
    Command,
    beside_runs,
    figures_option,
    is_verbose,
    option,
    print_note,
    results_argument,
    reviews_option,
    say,
    say_traceback,
    switch,
)
from .leaderboard import boards_from, boards_to_show, figures_in, format_option, print_remarks

if TYPE_CHECKING:
    from ..data import PublishedFigure

_PAGE = "report.html"

EVERY = 5.0
"""Seconds between two reads of a sweep."""


@click.command(
    cls=Command,
    examples=[
        "python run_findit.py report outputs",
        "python run_findit.py report sweep.yaml --watch  # yours, while it runs",
    ],
)
@results_argument
@option("--out", "FILE", f"Page.  [default: {_PAGE}, {BESIDE_RUNS}]", type=WRITTEN_FILE)
@option(
    "--cards",
    "N",
    "Answers in the gallery, at most.",
    type=click.IntRange(min=1),
    default=CARDS_ON_A_PAGE,
)
@click.option(
    COMPARE_FLAG,
    "compared",
    nargs=2,
    metavar="LEFT RIGHT",
    help="Put these side by side first, and their most different answers on the page: MODEL "
    "or MODEL=FORMAT.",
)
@format_option
@reviews_option
@figures_option
@switch("--watch", "Follow a running sweep: RUN is its file, or its work dir.")
@option(
    "--every",
    "SECONDS",
    f"With --watch: seconds between two versions of the page ({EVERY:g}).",
    type=float,
)
def command(
    runs: tuple[Path, ...],
    out: Path | None,
    cards: int,
    compared: tuple[str, str] | None,
    formats: tuple[str, ...],
    reviews: tuple[Path, ...],
    figures_file: Path | None,
    watch: bool,
    every: float | None,
) -> int:
    """Write a page for each benchmark: plots, and every answer on its image; needs no network."""
    if every is not None and not 0 < every < 1e6:  # nan, too
        raise ValueError(f"--every {every:g} should be seconds, more than 0: --every {EVERY:g}")
    if watch:
        if compared or formats or reviews or figures_file or cards != CARDS_ON_A_PAGE:
            excluded = f"{COMPARE_FLAG}, --format, --reviews, --figures and --cards"
            raise ValueError(f"--watch excludes {excluded}: leave them out")
        if len(runs) > 1:
            raise ValueError("--watch follows one sweep: name its file or its work dir")
        files = _files_of(runs[0])
        folder = read_sweep(runs[0]).work_dir if runs[0].is_file() else runs[0]
        page = out or WRITTEN_FILE.begin(folder / _PAGE, "--out")
        return _watch(files, page, every or EVERY)
    if every is not None:
        raise ValueError("--every needs --watch")
    figures = figures_in(figures_file)
    out = out or WRITTEN_FILE.begin(beside_runs(runs, _PAGE), "--out")
    return write_report(runs, out, compared or (), formats, cards, reviews, figures)


def write_report(
    runs: Sequence[Path],
    out: Path,
    compared: Sequence[str] = (),
    formats: Sequence[str] = (),
    cards: int = CARDS_ON_A_PAGE,
    reviews: Sequence[Path] = (),
    figures: Sequence[PublishedFigure] = (),
) -> int:
    """Write the page of each benchmark that runs are of; returns the exit status.

    A section that cannot be made is named, on the page and here; the others are written.
    """
    every = boards_from(runs, formats, RowData.SUMS, reviews, figures)
    boards = boards_to_show(every, "report", _has_content)
    sides = sides_of(compared, boards)
    out.parent.mkdir(parents=True, exist_ok=True)
    pages = []
    texts = {}
    for board in boards:
        path = out
        if board is not boards[0]:
            path = path.with_name(f"{path.stem}-{board.benchmark.name}{path.suffix}")
        failures: list[SectionFailure] = []
        texts[path] = make_page(board, datetime.now(UTC), cards, sides, failures.append)
        pages.append((board, path, failures))
    replaced = {path: read_shown(path) for path in texts}
    write_together(texts)
    status = 0 if len(boards) == len(every) else EXIT_SOME_FAILED
    for board, path, failures in pages:
        if len(boards) > 1:
            say(f"{board.benchmark.name}:")
        print_remarks(board, path.name)
        counts = f"{counted(len(board.runs), 'run')}, {counted(len(board.models), 'model')}"
        before = replaced[path]
        instead = "" if before in (None, shown_on_page(board)) else f", in place of {before}"
        say(f"{path}: {counts}, {path.stat().st_size / 1e6:.1f} MB{instead}")
        for failure in failures:
            _print_failure(path, failure)
            status = EXIT_SOME_FAILED
    return status


def _print_failure(path: Path, failure: SectionFailure) -> None:
    """Print which section a page lacks, and why."""
    error = failure.error
    if is_verbose():
        say_traceback(type(error), error, error.__traceback__)
    where = "" if is_verbose() else "; --verbose shows where"
    lacking = f'the section "{failure.title}" could not be made, all others are there'
    print_note(as_called(f"error: {path}: {lacking}: {failure.reason}{where}"))


# --- a page that follows a sweep while it runs ---


def _has_content(board: Board) -> bool:
    """Tell whether a page has runs, or reproductions that judged runs, to show.

    Two reproductions of one model in different setups are not compared, and each has its verdict.
    """
    return bool(board.runs) or bool(setups_of(board))


def _watch(files: SweepFiles, out: Path, every: float) -> int:
    """Write the page of a sweep again and again, until it has ended; the page is always whole."""
    followed = FollowedSweep(files)
    out.parent.mkdir(parents=True, exist_ok=True)
    snapshot: SweepSnapshot | None = None
    is_announced = False
    try:
        while True:
            snapshot = followed.read(time.monotonic())
            is_over = snapshot.state is SweepState.ENDED and not snapshot.unread
            _write_live_page(out, snapshot, None if is_over else every)
            if is_over:
                say(f"{out}: {_counts(snapshot)}")
                return 0
            if not is_announced:
                say(f"{out}: open it in a browser; Ctrl-C ends watching", flush=True)
                is_announced = True
            if not snapshot.unread:
                time.sleep(every)
    except KeyboardInterrupt:
        if snapshot is not None:
            _write_live_page(out, snapshot, None)
            say(f"{out}: no longer watched; {_counts(snapshot)}")
        return EXIT_INTERRUPTED


def _write_live_page(out: Path, snapshot: SweepSnapshot, every: float | None) -> None:
    with atomic_write(out) as f:
        f.write(make_live_page(snapshot, datetime.now(UTC), every))


def _counts(snapshot: SweepSnapshot) -> str:
    finished = sum(cell.finished for cell in snapshot.cells)
    return (
        f"{snapshot.state.value}; {finished} of {counted(len(snapshot.cells), 'cell')} finished, "
        f"{counted(snapshot.answered, 'call')} answered, {snapshot.failed:,} failed, "
        f"{snapshot.left:,} left"
    )


def _files_of(path: Path) -> SweepFiles:
    """Return where the results of a sweep's file, or of a work dir, are written."""
    if path.is_file():
        sweep = read_sweep(path)
        planned = tuple(_first_cells(sweep))
        return SweepFiles(sweep.work_dir.absolute(), sweep.journal.absolute(), planned)
    if suffix_of(path) in (".yaml", ".yml") and not path.is_dir():
        why = not_there(path, " (a work dir may be created later)")
        raise ConfigError(f"{path}: the file {why}")
    # By default the journal of a search lies next to its work dir.
    journal = path.absolute().parent / SWEEP_JOURNAL
    return SweepFiles(path.absolute(), journal if journal.is_file() else None)


def _first_cells(sweep: Sweep) -> Iterator[CellView]:
    """Yield the cells of a sweep's first stage; later stages depend on its results."""
    tables = CellBuilder(skip_missing=None)
    for entry in sweep.models:
        for variant in stage_variants(sweep, entry.name, 0):
            rows = planned_rows(tables, variant, sweep.limit)
            yield CellView(entry.name, variant, rows, begun=False)
