"""``run_findit.py report --watch``: a page that follows a sweep while it runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from ..core.command import INTERRUPTED
from ..core.config import ConfigError
from ..core.files import atomic_write
from ..core.formatting import counted
from ..engine.calls import CellBuilder
from ..engine.cancel import cancelled_by_signals
from ..report.followed import (
    JOURNAL,
    CellView,
    Followed,
    Snapshot,
    SweepFiles,
    SweepState,
    planned_rows,
)
from ..report.live_page import make_live_page
from ..sweeps.sweep_file import Sweep, read_sweep, stage_questions


def watch(paths: Sequence[Path], out: Path, every: float) -> int:
    """Write the page of sweeps again and again, until they have ended.

    Args:
        paths: their files, or their work dirs; a folder need not exist yet.
        out: the page; it is whole at every moment.
        every: seconds between two updates.

    Returns:
        0 when the sweep is over, 130 when the user stopped watching.

    Raises:
        ConfigError: a sweep's file cannot be used.
        OSError: the page cannot be written, or a sweep's file cannot be read.
    """
    followed = Followed([_place(path) for path in paths])
    out.parent.mkdir(parents=True, exist_ok=True)
    snapshot: Snapshot | None = None
    is_announced = False
    # Python drops an interrupt that comes while an object is finalized: the token keeps it.
    with cancelled_by_signals(_interrupt) as cancel, suppress(KeyboardInterrupt):
        while not cancel.requested:
            snapshot = followed.read(time.monotonic())
            is_over = snapshot.state is SweepState.ENDED and not snapshot.unread
            _write(out, snapshot, None if is_over else every)
            if is_over:
                print(f"{out}: {_counts(snapshot)}")
                return 0
            if not is_announced:
                print(f"{out}: open it in a browser; Ctrl-C ends watching", flush=True)
                is_announced = True
            if not snapshot.unread:
                time.sleep(every)
    if snapshot is not None:
        _write(out, snapshot, None)
        print(f"{out}: no longer watched; {_counts(snapshot)}")
    return INTERRUPTED


def _interrupt(_: str) -> None:
    raise KeyboardInterrupt


def _write(out: Path, snapshot: Snapshot, every: float | None) -> None:
    with atomic_write(out) as f:
        f.write(make_live_page(snapshot, datetime.now(UTC), every))


def _counts(snapshot: Snapshot) -> str:
    finished = sum(cell.finished for cell in snapshot.cells)
    return (
        f"{snapshot.state.value}; {finished} of {counted(len(snapshot.cells), 'cell')} finished, "
        f"{snapshot.answered:,} calls answered, {snapshot.failed:,} failed, {snapshot.left:,} left"
    )


def _place(path: Path) -> SweepFiles:
    """Return where the results of a sweep's file, or of a work dir, are written."""
    if path.is_file():
        sweep = read_sweep(path)
        return SweepFiles(
            sweep.work_dir.absolute(), (sweep.journal.absolute(),), tuple(_first_cells(sweep))
        )
    if path.suffix in (".yaml", ".yml") and not path.is_dir():
        raise ConfigError(f"{path}: no such file (a work dir may be created later)")
    # By default the journal of a search lies next to its work dir.
    journal = path.absolute().parent / JOURNAL
    return SweepFiles(path.absolute(), (journal,) if journal.is_file() else ())


def _first_cells(sweep: Sweep) -> Iterator[CellView]:
    """Yield the cells of a sweep's first stage; later stages depend on its results."""
    tables = CellBuilder(skip_missing=None)
    for entry in sweep.models:
        for question in stage_questions(sweep, entry.name, 0):
            rows = planned_rows(tables, question, sweep.limit)
            yield CellView(entry.name, question, rows, begun=False)
