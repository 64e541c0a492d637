"""``run_findit.py report --watch``: a page that follows a sweep while it runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from ..core.command import INTERRUPTED
from ..core.config import ConfigError
from ..core.files import atomic_write
from ..core.spelling import counted
from ..engine.cell_builder import CellBuilder
from ..report.followed import JOURNAL, CellView, Followed, Place, Snapshot, State, planned_rows
from ..report.live_page import make_live_page
from ..sweeps.config import Sweep, questions_in, read_sweep


def watch(what: Sequence[Path], out: Path, every: float) -> int:
    """Write the page of sweeps again and again, until nobody works on them any more.

    Args:
        what: their files, or their work dirs; a folder need not be there yet.
        out: the page; it is whole at every moment.
        every: seconds between two looks.

    Returns:
        0 when the sweep is over, 130 when somebody stopped watching.

    Raises:
        ConfigError: a sweep's file cannot be used.
        OSError: the page cannot be written, or a sweep's file cannot be read.
    """
    followed = Followed([_place(path) for path in what])
    out.parent.mkdir(parents=True, exist_ok=True)
    seen: Snapshot | None = None
    told = False
    try:
        while True:
            seen = followed.look(time.monotonic())
            over = seen.state is State.ENDED and not seen.unread
            _write(out, seen, None if over else every)
            if not told and not over:
                print(f"{out}: open it in a browser; Ctrl-C ends watching", flush=True)
                told = True
            if over:
                print(f"{out}: {_said(seen)}")
                return 0
            if not seen.unread:
                time.sleep(every)
    except KeyboardInterrupt:
        if seen is not None:
            _write(out, seen, None)
            print(f"{out}: no longer watched; {_said(seen)}")
        return INTERRUPTED


def _write(out: Path, seen: Snapshot, every: float | None) -> None:
    with atomic_write(out) as f:
        f.write(make_live_page(seen, datetime.now(UTC), every))


def _said(seen: Snapshot) -> str:
    finished = sum(cell.finished for cell in seen.cells)
    return (
        f"{seen.state.value}; {finished} of {counted(len(seen.cells), 'cell')} finished, "
        f"{seen.answered:,} calls answered, {seen.failed:,} failed, {seen.left:,} left"
    )


def _place(path: Path) -> Place:
    """Where a sweep's file, or a work dir, says that results go."""
    if path.is_file():
        sweep = read_sweep(path)
        places = sweep.work_dir.absolute(), (sweep.journal.absolute(),)
        return Place(*places, tuple(_planned(sweep)))
    if path.suffix in (".yaml", ".yml") and not path.is_dir():
        raise ConfigError(f"{path}: no such file; only a work dir is waited for")
    # The journal of a search lies beside its work dir, where nothing else was said.
    beside = path.absolute().parent / JOURNAL
    return Place(path.absolute(), (beside,) if beside.is_file() else ())


def _planned(sweep: Sweep) -> Iterator[CellView]:
    """What the first stage of a sweep asks; later ones depend on what comes of it."""
    tables = CellBuilder(skip_missing=None)
    for entry in sweep.models:
        for question in questions_in(sweep, entry.name, 0):
            rows = planned_rows(tables, question, sweep.limit)
            yield CellView(entry.name, question, rows, begun=False)
