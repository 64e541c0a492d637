"""Learning curves: the checkpoints of a training on a dataset, and the best of them.

A training is looked at after every checkpoint, so 5 % must hold for all its tables together:
:mod:`..statistics.multiple_tests` corrects for the pairs of one table,
:func:`..statistics.multiple_tests.alpha_share` says what a table may spend.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..analysis import check_comparable, estimate_run
from ..protocol import Better, Metric
from ..scoring import Run
from ..statistics import (
    INTERVALS_LEGEND,
    TOO_FEW_IMAGES,
    BestOf,
    Difference,
    Interval,
    alpha_share,
    metric_intervals,
)
from ..sweeps import name_and_step
from .legends import BOLD, TIED_SIGN, UNTESTED_SIGN
from .result_table import (
    Field,
    FieldType,
    FieldValue,
    Note,
    Table,
    TableCell,
    count_column,
    value_column,
)

_NAMED = 5  # Most steps that the verdict names

# What the p-values of a curve are corrected for
CORRECTION = "paired over images; 5 % hold for all pairs, looks and datasets of a training"


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A checkpoint on a learning curve."""

    step: int
    run: Run
    value: float  # Of the curve's metric
    interval: Interval | None
    # This checkpoint minus the best, corrected as CORRECTION says; None for the best itself
    to_best: Difference | None


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """The checkpoints of a training on a dataset in a format, by their step."""

    name: str  # Of the training
    metric: Metric  # The ranking metric; failed calls count as misses
    points: tuple[CurvePoint, ...]

    @property
    def dataset(self) -> str:
        """The dataset with its format, a name for ``--data``."""
        return self.points[0].run.variant.name

    @property
    def title(self) -> str:
        """The short name of the metric."""
        return self.points[0].run.benchmark.metrics[0].title

    @property
    def best(self) -> CurvePoint:
        return next(point for point in self.points if point.to_best is None)

    @property
    def verdict(self) -> str:
        """A sentence: the best checkpoint, and the result of its tests."""
        best = f"best: step {self.best.step} ({self.title} {self.best.value:.1f})"
        if len(self.points) == 1:
            return f"{best}, the only checkpoint"
        tests = [(point.step, point.to_best) for point in self.points if point.to_best is not None]
        rivals = [f"{step}" for step, test in tests if not test.significant]
        if not rivals:
            return f"{best}, significantly better than all others"
        more = f" and {len(rivals) - _NAMED} more" if len(rivals) > _NAMED else ""
        return f"{best}, not significantly better than step {', '.join(rivals[:_NAMED])}{more}"


def learning_curves(runs: Sequence[Run]) -> list[LearningCurve]:
    """Make a curve for each training, dataset and format; runs of other models are left out.

    So are runs of which every call failed: they say nothing of the checkpoint.

    Of checkpoints with the same value the first is the best. The best was chosen by the tested
    values, so its tests are corrected for those of all pairs of checkpoints; further for the tables
    after earlier checkpoints, and for the curves of its training.

    Raises:
        StatisticsError: checkpoints of a curve were scored over different rows.
    """
    by_curve: dict[tuple[str, str], dict[int, Run]] = {}
    for run in runs:
        training = name_and_step(run.model)
        if training is not None and run.failed < len(run.rows):
            name, step = training
            by_curve.setdefault((name, run.variant.name), {})[step] = run
    curves_of_training = Counter(name for name, _ in by_curve)
    curves = []
    for (name, _), by_step in sorted(by_curve.items()):
        curve = _curve(name, by_step, curves_of_training[name])
        if curve.points:
            curves.append(curve)
    return curves


def _curve(name: str, runs: Mapping[int, Run], curves: int = 1) -> LearningCurve:
    metric = next(iter(runs.values())).benchmark.headline_counting_failures
    estimates = {step: estimate_run(runs[step], (metric,)) for step in sorted(runs)}
    values = {step: each.value(metric.name) for step, each in estimates.items()}
    valued = {step: each for step, each in values.items() if each is not None}
    if not valued:
        return LearningCurve(name, metric, ())
    sign = 1 if metric.better is Better.HIGHER else -1
    best = max(valued, key=lambda step: (sign * valued[step], -step))
    for step in valued:
        check_comparable(runs[best], runs[step])
    to_best: dict[int, Difference] = {}
    if len(valued) > 1:
        choice = BestOf(len(valued), alpha_share(len(valued)) / curves)
        for step in valued:
            if step != best:
                tested = choice.difference(estimates[step], estimates[best], metric.name)
                to_best[step] = tested
    points = []
    for step, known in valued.items():
        interval = metric_intervals(estimates[step])[metric.name]
        points.append(CurvePoint(step, runs[step], known, interval, to_best.get(step)))
    return LearningCurve(name, metric, tuple(points))


def curve_table(curve: LearningCurve) -> Table:
    """Make a row for each checkpoint: its value, the difference to the best, and the p-value."""
    rows: list[list[FieldValue]] = []
    for point in curve.points:
        row: list[FieldValue] = [point.step, len(point.run.rows), point.run.failed]
        row.append(TableCell(point.value, point.interval, best=point.to_best is None))
        if point.to_best is None:
            row += [None, None]
        else:
            row += _test_cells(point.to_best)
        rows.append(row)
    fields = [
        count_column("step"),
        count_column("queries"),
        count_column("failed calls"),
        value_column(curve.title),
    ]
    fields += [Field("minus best", FieldType.DIFFERENCE, interval=True), Field("p", FieldType.P)]
    notes = (
        Note("", [curve.verdict]),
        Note(curve.title, ["failed calls count as misses"]),
        Note("Intervals", [INTERVALS_LEGEND]),
    )
    return Table(f"{curve.name} on {curve.dataset}", fields, rows, notes, signs=_SIGNS)


_SIGNS = {
    TIED_SIGN: "the best is not significantly better",
    UNTESTED_SIGN: f"not tested, as {TOO_FEW_IMAGES}",
    BOLD: "the best",
    "p": CORRECTION,
}


def _test_cells(test: Difference) -> list[FieldValue]:
    sign = ""
    if test.p_value is None:
        sign = UNTESTED_SIGN
    elif not test.significant:
        sign = TIED_SIGN
    return [TableCell(test.value, test.interval, sign=sign), test.corrected]
