"""Scored runs as data frames: one row a run, one row a query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from ..runs import scored_run
from ..runs.scored_run import Run

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Runs(Sequence[Run]):
    """Scored runs, by model and dataset; a sequence of :class:`..runs.scored_run.Run`."""

    runs: tuple[Run, ...]

    @overload
    def __getitem__(self, at: int) -> Run: ...
    @overload
    def __getitem__(self, at: slice) -> Runs: ...
    def __getitem__(self, at: int | slice) -> Run | Runs:
        return Runs(self.runs[at]) if isinstance(at, slice) else self.runs[at]

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def frame(self) -> pd.DataFrame:
        """One row a run: what was asked of whom, figures in percent with their 95 % intervals."""
        import pandas as pd

        return pd.DataFrame([run_row(run) for run in self.runs])

    def queries(self) -> pd.DataFrame:
        """One row a query of every run.

        ``goodness`` is the query's own figure in percent; then come its details as the details file
        has them (boxes are in pixels of the original picture), its sums, and its slices: one that
        is called as a column before it has ``(part)`` behind its name.
        """
        import pandas as pd

        return pd.DataFrame([row for run in self.runs for row in query_rows(run)])


def load_runs(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]],
) -> Runs:
    """The scored runs of prediction files and folders, each once.

    Args:
        paths: prediction files, or folders that are searched to any depth.

    Raises:
        FileNotFoundError: a path is not there.
        RunError: what is there is no scored run; the message says what to do.
    """
    if isinstance(paths, (str, PathLike)):
        paths = [paths]
    return Runs(tuple(scored_run.load_runs(map(Path, paths))))


def run_row(run: Run) -> dict[str, Any]:
    """One row of :meth:`Runs.frame`."""
    # They bring scipy.
    from ..leaderboard.rows import bounds_fields
    from ..runs.intervals import intervals

    bounds = intervals(run) if run.rows else {}
    row: dict[str, Any] = {
        "model": run.model,
        "dataset": run.question.name,
        "column": run.question.column,
        "format": run.question.format,
        "queries": len(run.rows),
        "failed calls": run.failed,
    }
    for metric in run.benchmark.all_metrics:
        row |= {
            metric.name: metric.value(run.sums),
            **bounds_fields(metric.name, bounds.get(metric.name)),
        }
    return {**row, "path": str(run.path)}


def query_rows(run: Run) -> Iterator[dict[str, Any]]:
    """The rows of :meth:`Runs.queries` that are of one run."""
    taken = {name for row in run.rows for name in (*row.details, *row.sums)}
    for row in run.rows:
        known = {
            "model": run.model,
            "dataset": run.question.name,
            "index": row.index,
            "picture": row.source,
            "failed": row.failed,
            "reason": row.reason,
            "goodness": run.benchmark.goodness(row),
        }
        # Sums go before details of their names: of a failed call they count nothing.
        rest = {**row.details, **row.sums}
        # A tag of one's own may be called as anything else is.
        for kind, value in row.slices.items():
            rest[f"{kind} (part)" if kind in taken or kind in known else kind] = value
        yield {**known, **{name: value for name, value in rest.items() if name not in known}}
