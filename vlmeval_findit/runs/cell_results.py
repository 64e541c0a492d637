"""Results of the cells of a sweep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..benchmarks import benchmark_of
from ..core.metric import metric_values
from ..core.question import Question
from .score import RunScore


class SearchError(ValueError):
    """Results that name no winner; the message says why."""


@dataclass(frozen=True, slots=True)
class DroppedFormat:
    """Why a race stopped asking in a format.

    ``round`` counts from 1; ``queries`` is the number that the format had been asked by then, of
    ``of`` in all tables.  ``behind`` is the format in front, ``points`` the format's headline
    figure minus that one's, over these queries.  ``chance`` is the probability that all queries
    would have shown it to be the better one (:func:`..core.statistics.chance_of_lead`).
    """

    round: int
    queries: int
    of: int
    behind: str
    points: float
    chance: float


@dataclass(frozen=True, slots=True, eq=False)
class CellResult:
    """The score of one cell; ``path`` is its prediction file.

    ``rows`` of the ``of`` rows of its table were asked, those that ``failed`` too.
    ``compared``: its format is one of the axes', not that of a question which the sweep names.
    ``coords_doubt`` says why its coordinate space is in doubt.  ``dropped``: a race stopped asking
    in its format, so it is never compared with results over more queries.
    """

    model: str
    question: Question
    sums: Mapping[str, float]
    rows: int
    failed: int
    path: Path
    of: int
    compared: bool = True
    coords_doubt: str | None = None
    dropped: DroppedFormat | None = None
    sample: int = 1

    @property
    def metric_values(self) -> Mapping[str, float | None]:
        """The metrics in percent, by name."""
        return metric_values(benchmark_of(self.question).metrics, self.sums)


def result_of(run: RunScore, path: Path) -> CellResult:
    """Return the result of a cell, given its score."""
    sums, rows, coords_doubt = run.sums, len(run.rows), run.coords_doubt
    return CellResult(
        run.model,
        run.task.question,
        sums,
        rows,
        run.failed,
        path,
        len(run.task.queries),
        coords_doubt=coords_doubt,
    )


def refuse_unanswered(results: Iterable[CellResult]) -> None:
    """Raise SearchError if no call of a cell was answered."""
    for result in results:
        if result.failed == result.rows:
            raise SearchError(
                f"every call of {result.model} on {result.question.name} failed: no format can be "
                f"chosen. {result.path} says why; run again to ask again."
            )
