"""Choose the reported format of a model, and compare the others with it.

A model is reported on every dataset in its best format (:mod:`..analysis.best_format`) of those
that were run on the most datasets; a dataset that lacks it gets the next best.

The best of many formats is optimistic on the queries that it was chosen on: models are ranked and
tested by their value elsewhere (:mod:`..analysis.held_out_answers`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..analysis import HeldOutAnswers, estimate_run, held_out_answers, is_favoured, rank_formats
from ..core import suggestion
from ..protocol import Metric
from ..scoring import Run
from ..statistics import (
    BestOf,
    Difference,
    Estimate,
    FamilyOfTests,
    Interval,
    metric_intervals,
)
from .comparable import ComparableRuns, ExcludedRun, by_model, group_by
from .result_table import TableCell

EVERY_MODEL = ""  # The key of a format for every model without a format under its name


class FormatError(ValueError):
    """A format that no run has; the message suggests the nearest."""


def formats_by_model(
    entries: Iterable[str],
    runs: Sequence[Run],
    flag: str = "--format",
    excluded: Iterable[ExcludedRun] = (),
) -> dict[str, str]:
    """Parse ``[MODEL=]FORMAT`` entries; ``flag`` is the option's name in messages.

    Raises:
        FormatError: a model that has no run, or a format that no run has; or the run that has it
            is ``excluded``, and why.
    """
    excluded = list(excluded)
    models = sorted({run.model for run in runs})
    formats = {}
    for entry in entries:
        model, _, name = entry.rpartition("=")
        known = sorted({run.variant.format for run in runs if model in (EVERY_MODEL, run.model)})
        if name not in known:
            _refuse_excluded(model, name, excluded, f"{flag} {entry}")
        if model and model not in models:
            raise FormatError(f"{flag} {entry}: no run of {model!r}{suggestion(model, models)}")
        formats[model] = name
        if name not in known:
            raise FormatError(f"{flag} {entry}: no run has this format{suggestion(name, known)}")
    return formats


def _refuse_excluded(model: str, name: str, excluded: Iterable[ExcludedRun], what: str) -> None:
    """Raise FormatError if a run has this format, and is not compared."""
    for run, reason in ((each.run, each.reason) for each in excluded):
        if model in (EVERY_MODEL, run.model) and run.variant.format == name:
            raise FormatError(f"{what}: {run.path} exists, but is not compared: {reason}")


def choose_reported(
    datasets: Sequence[ComparableRuns], fixed: Mapping[str, str] | None = None
) -> dict[tuple[str, str], Run]:
    """Return the reported runs by (model, dataset).

    Args:
        datasets: comparable runs.
        fixed: a format by model, or for all under :data:`EVERY_MODEL`; a dataset that lacks it has
            no entry then.
    """
    fixed = fixed or {}
    reported: dict[tuple[str, str], Run] = {}
    runs_by_model = by_model(run for dataset in datasets for run in dataset.runs)
    for model, runs in sorted(runs_by_model.items()):
        # Reviews must not choose: a format would be the best for what reviewers looked at.
        as_labelled = [run for run in runs if run.provenance.reviews is None] or runs
        averages = rank_formats(runs[0].benchmark, [(run.variant, run.sums) for run in as_labelled])
        only = fixed.get(model, fixed.get(EVERY_MODEL))
        order = {average.format: place for place, average in enumerate(averages)}
        for run in sorted(runs, key=lambda run: order.get(run.variant.format, len(order))):
            if only in (None, run.variant.format):
                reported.setdefault((model, run.board_dataset), run)
    return reported


def named_models(reported: Iterable[tuple[str, str]], fixed: Mapping[str, str]) -> frozenset[str]:
    """Return the models whose format the user named: no value of theirs chose it.

    Args:
        reported: the reported runs by (model, dataset).
        fixed: the formats that the user named, as for :func:`choose_reported`.
    """
    return frozenset(model for model, _ in reported if model in fixed or EVERY_MODEL in fixed)


def answers_elsewhere(
    datasets: Sequence[ComparableRuns],
    reported: Mapping[tuple[str, str], Run],
    fixed: Mapping[str, str],
) -> dict[tuple[str, str], HeldOutAnswers]:
    """Return the answers elsewhere of every model and dataset whose format was chosen.

    Args:
        datasets: comparable runs; no others are candidates, as no others are compared.
        reported: the reported runs by (model, dataset).
        fixed: the formats that the user named, as for :func:`choose_reported`.
    """
    comparable = {dataset.name: by_model(dataset.runs) for dataset in datasets}
    answers = {}
    named = named_models(reported, fixed)
    for model, its in group_by(reported, lambda place: place[0]).items():
        if model in named:
            continue
        runs_of_model = {dataset: reported[model, dataset] for _, dataset in its}
        tried = {dataset: comparable[dataset][model] for dataset in runs_of_model}
        for dataset, held_out in held_out_answers(runs_of_model, tried).items():
            answers[model, dataset] = held_out
    return answers


@dataclass(frozen=True, slots=True)
class FormatRow:
    """A comparable run, with its test against the reported run of its model and dataset."""

    run: Run
    dataset: str
    intervals: Mapping[str, Interval | None]
    reported: bool
    # Its headline minus the reported run's, failed calls as misses; None for the reported run
    # itself, and if either has no value
    to_reported: Difference | None
    choice: BestOf  # How two formats of its model on the dataset are tested, by all outputs

    def cell(self, metric: Metric) -> TableCell:
        """Return the value of a metric with its interval."""
        return TableCell(self.run.value(metric), self.intervals.get(metric.name))


def make_format_rows(
    datasets: Iterable[ComparableRuns], reported: Mapping[tuple[str, str], Run]
) -> list[FormatRow]:
    """Make a row for every comparable run.

    Args:
        datasets: comparable runs.
        reported: the reported runs by (model, dataset).
    """
    groups = {}
    for dataset in datasets:
        for model, runs in sorted(by_model(dataset.runs).items()):
            groups[model, dataset.name] = runs
    # All that stand in one table have equal shares of 5 %, so that they hold for the table.
    alpha_share = 1 / max(1, sum(len(runs) > 1 for runs in groups.values()))
    rows = []
    for (model, dataset_name), runs in groups.items():
        estimates = [estimate_run(run) for run in runs]
        chosen = reported.get((model, dataset_name))
        best = next((at for at, run in enumerate(runs) if run is chosen), None)
        choice = _choice_of(estimates, alpha_share)
        tests = {} if best is None else tests_against(runs, estimates, best, choice)
        for at, run in enumerate(runs):
            bounds = metric_intervals(estimates[at])
            rows.append(FormatRow(run, dataset_name, bounds, at == best, tests.get(at), choice))
    return rows


def _choice_of(estimates: Sequence[Estimate], alpha_share: float) -> BestOf:
    """Return how formats are tested: the values decide which is the best, and the reported."""
    headline = estimates[0].metrics[0].name
    known = sum(each.value(headline) is not None for each in estimates)
    return BestOf(max(2, known), alpha_share, FamilyOfTests.FORMATS)


def tests_against(
    runs: Sequence[Run], estimates: Sequence[Estimate], chosen: int, choice: BestOf
) -> dict[int, Difference]:
    """Return the differences to a chosen run by the headline, by the places of runs.

    Args:
        runs: those of a model on a dataset.
        estimates: of the runs, the headline first.
        chosen: the place of the run that the others are compared with.
        choice: how two of them are tested.
    """
    headline = estimates[chosen].metrics[0].name
    known = [at for at, each in enumerate(estimates) if each.value(headline) is not None]
    if chosen not in known:
        return {}
    # Reviews that favour one of two formats would make the difference.
    favoured = is_favoured(runs[chosen])
    others = [at for at in known if at != chosen and is_favoured(runs[at]) == favoured]
    best = estimates[chosen]
    return {at: choice.difference(estimates[at], best, headline) for at in others}
