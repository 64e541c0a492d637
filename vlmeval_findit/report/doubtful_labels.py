"""Doubtful labels of a page: the share by kind, and how far the ranking could move at most.

Only datasets with models of two families have them. No other number of the page depends on them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..analysis import (
    AuditedRow,
    LabelAudit,
    audit_labels,
    family_of,
    load_scored_dataset,
    sums_if_wrong,
    why_no_voter,
)
from ..coords import NotBoxesError
from ..core import counted
from ..leaderboard import Board, best_first
from ..protocol import Metric
from ..scoring import Run
from ..statistics import FAULTS, LabelFault
from .standings import MODELS

VOTERS = 5  # Most models that are compared with the labels of a dataset: the first of a board

# By dataset, then by row
Doubts = Mapping[str, Mapping[int, AuditedRow]]


@dataclass(frozen=True, slots=True)
class Bound:
    """A model's headline on a dataset as it is, and if all doubts were true; each with its rank."""

    model: str
    value: float
    rank: int
    if_true: float
    rank_if_true: int


@dataclass(frozen=True, slots=True)
class DatasetDoubts:
    """The doubtful labels of a dataset."""

    dataset: str
    rows: int  # That were judged
    listed: tuple[AuditedRow, ...]
    voters: tuple[str, ...]  # Models whose answers were compared
    bounds: tuple[Bound, ...]  # By rank
    unbounded: tuple[str, ...]  # Models whose predictions are not at hand

    @property
    def by_fault(self) -> dict[LabelFault, int]:
        """Return how many labels are listed for each fault."""
        counts = Counter(row.fault for row in self.listed)
        return {fault: counts[fault] for fault in FAULTS if counts[fault]}

    @property
    def moves(self) -> tuple[Bound, ...]:
        """Return the models whose rank would change."""
        return tuple(each for each in self.bounds if each.rank != each.rank_if_true)


def doubts_of(board: Board) -> tuple[DatasetDoubts, ...]:
    """Audit the labels of each dataset of a board on which models of two families were run."""
    doubtful = []
    for dataset in board.datasets:
        reported = [board.run(model, dataset.name) for model in board.models]
        runs = [run for run in reported if run is not None]
        audit = _audit(runs)
        if audit is None:
            continue
        listed = audit.listed()
        voters = tuple(voter.run.model for voter in audit.voters)
        bounds = tuple(_bounds(board, runs[:MODELS], listed))
        bounded = {each.model for each in bounds}
        unbounded = tuple(run.model for run in runs[:MODELS] if run.model not in bounded)
        doubts = DatasetDoubts(dataset.name, len(audit.rows), listed, voters, bounds, unbounded)
        doubtful.append(doubts)
    return tuple(doubtful)


def _audit(runs: Iterable[Run]) -> LabelAudit | None:
    """Audit a dataset; None where its runs or its table do not allow it."""
    voters = [run for run in runs if not why_no_voter(run)][:VOTERS]
    if len({family_of(run) for run in voters}) < 2:
        return None
    try:
        dataset = load_scored_dataset(voters[0])
    except (FileNotFoundError, ValueError):
        return None  # The gallery says which table is not at hand.
    try:
        audit = audit_labels(voters, dataset)
    except NotBoxesError:
        return None  # None has readable answers to most rows.
    return audit if audit.has_probabilities else None


def _bounds(board: Board, runs: Iterable[Run], listed: tuple[AuditedRow, ...]) -> Iterator[Bound]:
    """Yield the models of a dataset by rank; nothing where no label is listed."""
    if not listed:
        return
    values: dict[str, float] = {}
    if_true: dict[str, float] = {}
    for run in runs:
        value = run.value(board.headline)
        try:
            changed = board.headline.value(sums_if_wrong(run, listed))
        except (OSError, ValueError):
            continue  # Its predictions are gone, or changed.
        if value is not None and changed is not None:
            values[run.model] = value
            if_true[run.model] = changed
    ranks = _ranks(board.headline, values)
    ranks_if_true = _ranks(board.headline, if_true)
    for model, rank in ranks.items():
        yield Bound(model, values[model], rank, if_true[model], ranks_if_true[model])


def _ranks(metric: Metric, values: Mapping[str, float]) -> dict[str, int]:
    """Return the ranks of models, the best first; equal values share one."""
    ranks: dict[str, int] = {}
    before = None
    for place, model in enumerate(best_first(metric, values), 1):
        value = round(values[model], 9)
        ranks[model] = place if before is None or value != before[0] else before[1]
        before = value, ranks[model]
    return ranks


def moves_in_words(doubtful: Iterable[DatasetDoubts]) -> str:
    """Say how many models would have another rank on which datasets."""
    datasets: dict[int, list[str]] = {}
    for each in doubtful:
        if each.bounds:
            datasets.setdefault(len(each.moves), []).append(each.dataset)
    if [*datasets] == [0]:
        return "no model would have another rank"
    parts = [
        f"{counted(moves, 'model') if moves else 'none'} on {', '.join(names)}"
        for moves, names in sorted(datasets.items(), reverse=True)
    ]
    return f"models would have another rank: {'; '.join(parts)}"


def doubts_by_row(doubtful: Iterable[DatasetDoubts]) -> Doubts:
    """Return the listed rows by dataset and index."""
    return {each.dataset: {row.index: row for row in each.listed} for each in doubtful}
