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

    from ..core.statistics import Difference


_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Runs(Sequence[Run]):
    """Scored runs, by model and dataset; a sequence of :class:`..runs.scored_run.Run`."""

    runs: tuple[Run, ...]

    def __repr__(self) -> str:
        """How many, and the first of them: a run has thousands of rows."""
        first = ", ".join(map(repr, self.runs[:_SHOWN]))
        more = ", …" * (len(self.runs) > _SHOWN)
        return f"Runs({len(self.runs)}: {first}{more})"

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


RunLike = Run | Runs | str | PathLike[str]
"""A run, or the path of its prediction file."""


def compare(run: RunLike, other: RunLike) -> dict[str, Difference]:
    """Subtract the metrics of ``other`` from those of ``run``: two models, or two formats of one.

    A metric that one of them lacks is left out.  Each difference has its 95 % interval and p-value,
    paired over images.

    Args:
        run: a run of :func:`load_runs`, or the path of its predictions or folder.
        other: the one that is subtracted, likewise.

    Raises:
        ValueError: what is given is not exactly one run; or (a StatisticsError) the runs have other
            rows, or none, or were scored by something else.
    """
    # It brings scipy.
    from ..runs import comparison

    return comparison.compare(_one_run(run), _one_run(other))


def _one_run(said: RunLike) -> Run:
    if isinstance(said, Run):
        return said
    if isinstance(said, (str, PathLike)) and not Path(said).exists():
        raise ValueError(
            f"{str(said)!r} is no file or folder here: give a run of load_runs(…), or the path of "
            "its predictions"
        )
    if not isinstance(said, (Runs, str, PathLike)):
        raise ValueError(
            f"{type(said).__name__} is no run: give one of load_runs(…), or the path of its "
            "predictions"
        )
    found = said if isinstance(said, Runs) else load_runs(said)
    if len(found) != 1:
        raise ValueError(f"{len(found)} runs where one is compared: choose one of {found!r}")
    return found[0]


def run_row(run: Run) -> dict[str, Any]:
    """One row of :meth:`Runs.frame`."""
    # They bring scipy.
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
        interval = bounds.get(metric.name)
        row |= {
            metric.name: metric.value(run.sums),
            f"{metric.name} low": interval.low if interval else None,
            f"{metric.name} high": interval.high if interval else None,
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
