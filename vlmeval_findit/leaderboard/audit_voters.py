"""Choose the runs whose answers are held against the labels of a dataset: one of each model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..analysis import why_no_voter
from ..core import counted, suggestion
from ..scoring import Run
from .comparable import ExcludedRun, group_by, group_comparable
from .reported_formats import choose_reported


class VotersError(ValueError):
    """Runs of which none can be held against labels, or of several datasets."""


@dataclass(frozen=True, slots=True)
class ChosenVoters:
    """One run of each model, by model, and the runs that are left out."""

    runs: tuple[Run, ...]
    left_out: tuple[ExcludedRun, ...]


def choose_voters(runs: Sequence[Run], dataset: str | None = None) -> ChosenVoters:
    """Choose the voters among the runs of a dataset.

    They are over the same rows, and each is in the format that a leaderboard would report.

    Args:
        runs: at least one; those of other datasets are not looked at.
        dataset: a leaderboard's name of it, or that of a variant; None: the runs are all of one.

    Raises:
        VotersError: the dataset is not among them, or is not clear, or none of its runs can vote.
    """
    runs = _runs_of(runs, dataset)
    reasons = [(run, why_no_voter(run)) for run in runs]
    left_out = [ExcludedRun(run, why) for run, why in reasons if why]
    datasets, excluded = group_comparable(run for run, why in reasons if not why)
    left_out += excluded
    chosen = choose_reported(datasets)
    for run in (run for each in datasets for run in each.runs):
        voter = chosen[run.model, run.board_dataset]
        if run is not voter:
            why = f"another format of its model is compared: {voter.variant.format}"
            left_out.append(ExcludedRun(run, why))
    if not chosen:
        first = left_out[0]
        more = f"; {counted(len(left_out) - 1, 'more run')}" if len(left_out) > 1 else ""
        raise VotersError(f"{first.run.path}: {first.reason}{more}")
    return ChosenVoters(tuple(chosen.values()), tuple(left_out))


def _runs_of(runs: Sequence[Run], dataset: str | None) -> Sequence[Run]:
    by_dataset = group_by(runs, lambda run: run.variant.board_dataset)
    if dataset is None:
        if len(by_dataset) > 1:
            names = ", ".join(sorted(by_dataset))
            first = min(by_dataset)
            raise VotersError(f"the runs are of several datasets: {names}. Type --data {first}")
        return runs
    by_name = {run.variant.name: run.variant.board_dataset for run in runs}
    name = by_name.get(dataset, dataset)
    if name not in by_dataset:
        raise VotersError(f"--data {dataset}: no run of it{suggestion(dataset, by_dataset)}")
    return by_dataset[name]
