"""Learning curves: the checkpoints of a training on a dataset, and the best of them.

A training is looked at after every checkpoint, so 5 % must hold for all its tables together:
:mod:`..statistics.multiple_tests` corrects for the pairs of one table,
:func:`..statistics.multiple_tests.alpha_share` says what a table may spend.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..analysis import estimate_run
from ..protocol import Metric
from ..scoring import Run
from ..statistics import (
    INTERVALS_LEGEND,
    TOO_FEW_IMAGES,
    BestOf,
    Difference,
    FamilyOfTests,
    Interval,
    alpha_share,
    metric_intervals,
)
from ..sweeps import name_and_step
from .columns import Column, count_column, difference_column, p_column, table_of, value_column
from .comparable import ComparableRuns, group_by
from .legends import BOLD, TIED_SIGN, UNTESTED_SIGN, difference_cell, tie_of
from .result_table import Note, Table, TableCell

# Why ranks and curves may say two things of two checkpoints
OTHER_FAMILY = (
    "Curves are corrected for all looks and datasets, too: ranks may tell apart what they do not"
)

_NAMED = 5  # Most steps that the verdict names


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A checkpoint on a learning curve."""

    step: int
    run: Run
    value: float  # Of the curve's metric
    interval: Interval | None
    # This checkpoint minus the best; None for the best itself
    to_best: Difference | None


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """The checkpoints of a training on a dataset in a format, by their step."""

    name: str  # Of the training
    metric: Metric  # The ranking metric; failed calls count as misses
    points: tuple[CurvePoint, ...]

    @property
    def dataset(self) -> str:
        """The dataset with its format, and the reviews that it was scored with."""
        return self.points[0].run.dataset_name

    @property
    def title(self) -> str:
        """The short name of the metric."""
        return self.points[0].run.benchmark.metrics[0].title

    @property
    def best(self) -> CurvePoint:
        return next(point for point in self.points if point.to_best is None)

    @property
    def has_best(self) -> bool:
        """Whether any checkpoint scores anything."""
        return self.metric.can_be_best(self.best.value)

    @property
    def verdict(self) -> str:
        """A sentence: the best checkpoint, and the result of its tests."""
        if not self.has_best:
            return f"no best checkpoint: {self.title} is {self.best.value:.1f} at every step"
        best = f"best: step {self.best.step} ({self.title} {self.best.value:.1f})"
        if len(self.points) == 1:
            return f"{best}, the only checkpoint"
        tests = [(point.step, point.to_best) for point in self.points if point.to_best is not None]
        rivals = [f"{step}" for step, test in tests if not test.significant]
        if not rivals:
            return f"{best}, significantly better than all others"
        more = f" and {len(rivals) - _NAMED} more" if len(rivals) > _NAMED else ""
        return f"{best}, not significantly better than step {', '.join(rivals[:_NAMED])}{more}"


def learning_curves(datasets: Iterable[ComparableRuns]) -> list[LearningCurve]:
    """Make a curve for each training, dataset and format; runs of other models are left out.

    Of checkpoints with the same value the first is the best. The best was chosen by the tested
    values, so its tests are corrected for those of all pairs of checkpoints; further for the tables
    after earlier checkpoints, and for the curves of its training. Curves with reviews are no
    further question about it: they are corrected apart.

    Args:
        datasets: of :func:`.group_comparable`.
    """
    checkpoints = []
    for run in (run for dataset in datasets for run in dataset.runs):
        training = name_and_step(run.model)
        if training is not None:
            checkpoints.append(_Checkpoint(*training, run))
    by_curve = group_by(checkpoints, lambda each: (each.training, each.run.dataset_name))
    families = Counter(_family(members[0]) for members in by_curve.values())
    curves = []
    for _, members in sorted(by_curve.items()):
        curve = _curve(members, families[_family(members[0])])
        if curve.points:
            curves.append(curve)
    return curves


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    training: str
    step: int
    run: Run


def _family(checkpoint: _Checkpoint) -> tuple[str, bool]:
    """Return what the curves share that are corrected together."""
    return checkpoint.training, checkpoint.run.provenance.reviews is not None


def _curve(checkpoints: Sequence[_Checkpoint], curves: int) -> LearningCurve:
    name = checkpoints[0].training
    metric = checkpoints[0].run.benchmark.headline_counting_failures
    estimates = []
    for each in sorted(checkpoints, key=lambda each: (each.step, each.run.model)):
        estimate = estimate_run(each.run, (metric,))
        value = estimate.value(metric.name)
        if value is not None:
            estimates.append((each, value, estimate))
    if not estimates:
        return LearningCurve(name, metric, ())
    # The first of equals, which are in the order of their steps
    _, _, best = min(estimates, key=lambda known: metric.better.order(known[1]))
    # A single checkpoint is tested against none.
    share = alpha_share(max(2, len(estimates))) / curves
    choice = BestOf(len(estimates), share, FamilyOfTests.CHECKPOINTS)
    points = []
    for each, value, estimate in estimates:
        interval = metric_intervals(estimate)[metric.name]
        to_best = None
        if estimate is not best:
            to_best = choice.difference(estimate, best, metric.name)
        points.append(CurvePoint(each.step, each.run, value, interval, to_best))
    return LearningCurve(name, metric, tuple(points))


def curve_table(curve: LearningCurve) -> Table:
    """Make a row for each checkpoint: its value, the difference to the best, and the p-value."""
    to_best: list[Column[Difference]] = [
        difference_column("minus best", lambda test: difference_cell(test, tie_of(test))),
        p_column("p", lambda test: test.corrected),
    ]
    columns: list[Column[CurvePoint]] = [
        count_column("step", lambda point: point.step),
        count_column("queries", lambda point: len(point.run.rows)),
        count_column("failed calls", lambda point: point.run.failed),
        value_column(
            curve.title,
            lambda point: TableCell(
                point.value, point.interval, best=curve.has_best and point is curve.best
            ),
        ),
        *(each.by(lambda point: point.to_best) for each in to_best),
    ]
    notes = (
        Note("", [curve.verdict]),
        Note(curve.title, ["failed calls count as misses"]),
        Note("Intervals", [INTERVALS_LEGEND]),
        Note("", [OTHER_FAMILY]),
    )
    title = f"{curve.name} on {curve.dataset}"
    return table_of(title, columns, curve.points, notes, _SIGNS)


_SIGNS = {
    TIED_SIGN: "the best is not significantly better",
    UNTESTED_SIGN: f"not tested, as {TOO_FEW_IMAGES}",
    BOLD: "the best",
    "p": FamilyOfTests.CHECKPOINTS.value,
}
