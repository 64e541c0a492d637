"""Ablations: runs that differ in one thing, beside the first of them.

The axis is found from the runs: a model's runs over a table that differ in one part of how it was
asked (frames, caption, key), or entries of one checkpoint that differ in one setting. Runs that
differ in two things are no ablation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..analysis import StatisticsError, check_comparable, is_same_run
from ..protocol import SETTING, Metric
from ..scoring import Run
from ..statistics import (
    INTERVALS_ALONE,
    INTERVALS_LEGEND,
    TOO_FEW_IMAGES,
    Difference,
    Estimate,
    FamilyOfTests,
    Interval,
    correct_by_holm,
    metric_intervals,
    paired_difference,
)
from .board import mean_estimate
from .columns import Column, count_column, difference_column, p_column, table_of, value_column
from .comparable import group_by, of_answered_calls
from .legends import STAR, STAR_MEANING, difference_cell, p_cell
from .result_table import NONE, Note, Table, TableCell

AxisValue = str | int | float

# Facts that name a run, or follow from its settings
_NO_AXES = ("model", "dataset", "hash of the prompts", "row of the model table", "class")


@dataclass(frozen=True, slots=True)
class AblationPoint:
    """The runs of a model with one value of the axis: one, or of a mean one a table."""

    value: AxisValue
    runs: tuple[Run, ...]
    result: float | None  # Of the headline; failed calls count as misses
    interval: Interval | None
    # This value minus the first of its line; None for the first, and where the two cannot be
    # compared
    to_first: Difference | None

    @property
    def queries(self) -> int:
        return sum(len(run.rows) for run in self.runs)

    @property
    def failed(self) -> int:
        """Number of failed calls."""
        return sum(run.failed for run in self.runs)


@dataclass(frozen=True, slots=True)
class AblationLine:
    """A model over a table, or over several on average, with each value of the axis."""

    model: str
    table: str
    points: tuple[AblationPoint, ...]


@dataclass(frozen=True, slots=True)
class Ablation:
    """What an axis changes: the headline of a benchmark with each of its values."""

    benchmark: str
    axis: str
    metric: Metric
    title: str  # Of the metric
    lines: tuple[AblationLine, ...]
    left_out: tuple[str, ...] = ()  # Why tables have no line, and values no difference

    @property
    def values(self) -> list[AxisValue]:
        """The values of the axis, in the order of the runs."""
        points = (point for line in self.lines for point in line.points)
        return list(dict.fromkeys(point.value for point in points))

    @property
    def is_number(self) -> bool:
        """Whether the axis has numbers."""
        return not any(isinstance(value, str) for value in self.values)


def find_ablations(runs: Iterable[Run], ascending: bool = False) -> list[Ablation]:
    """Find the axis in which the runs of each benchmark differ; none where they differ in several.

    Each value is tested against the first of its line, paired over images; p-values are corrected
    (Holm) for all of the table.

    Args:
        runs: in the order of the axis' values; of a model and variant one.
        ascending: whether numbers ascend instead, as runs on a disk have no order.
    """
    found = []
    for of_benchmark in group_by(runs, lambda run: run.benchmark.name).values():
        answered, unanswered = of_answered_calls(run for run in of_benchmark if run.rows)
        axis = _axis_of_variants(answered) or _axis_of_models(answered)
        if axis is None:
            continue
        left_out = list(axis.left_out)
        for each in unanswered:
            left_out.append(f"{each.run.model} on {each.run.variant.name}: {each.reason}")
        axis = replace(axis, left_out=tuple(left_out))
        found.append(_ablation(_ascending(axis) if ascending else axis))
    return found


# --- the axis -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Axis:
    """An axis, and the runs of each model and table by its values."""

    name: str
    lines: Mapping[tuple[str, str], Mapping[AxisValue, Run]]
    left_out: tuple[str, ...]


def _axis_of_variants(runs: Sequence[Run]) -> _Axis | None:
    """Find the only axis on which a model's runs over a table have several values."""
    groups = group_by(runs, lambda run: (run.model, run.variant.table))
    differing: dict[str, None] = {}
    for members in groups.values():
        differing |= dict.fromkeys(_differing([run.variant.axes for run in members]))
    if len(differing) != 1:
        return None
    (axis,) = differing
    return _with_values(axis, groups, lambda run: run.variant.axes.get(axis))


def _axis_of_models(runs: Sequence[Run]) -> _Axis | None:
    """Find the only settings in which entries of one checkpoint differ."""
    groups = group_by(runs, _checkpoint_of)
    facts = {id(run): dict(_facts(run)) for run in runs}
    differing = set()
    for (checkpoint, _), members in groups.items():
        # Each model has one run over a variant: of two it is not known what they are of.
        if checkpoint and len(members) > 1:
            differing.add(tuple(sorted(_differing([facts[id(run)] for run in members], True))))
    if len(differing) != 1 or () in differing:
        return None
    (names,) = differing
    values = {id(run): facts[id(run)].get(names[0]) for run in runs}
    are_numbers = len(names) == 1 and all(_is_number(value) for value in values.values())

    def value_of(run: Run) -> AxisValue:
        value = values[id(run)]
        return value if are_numbers and isinstance(value, int | float) else run.model

    checkpoints = {_checkpoint_of(run)[0] for run in runs}
    ends = Counter(_end_of(checkpoint) for checkpoint in checkpoints)

    def line_of(run: Run) -> tuple[str, str]:
        checkpoint = _checkpoint_of(run)[0]
        short = _end_of(checkpoint)
        return (short if ends[short] == 1 else checkpoint) or run.model, run.variant.name

    by_line = group_by(runs, line_of)
    return _with_values(" and ".join(names), by_line, value_of)


def _end_of(checkpoint: str) -> str:
    """Return the last part of a checkpoint's folder or identifier."""
    return checkpoint.rstrip("/").rpartition("/")[2]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _differing(facts: Sequence[Mapping[str, Any]], with_missing: bool = False) -> list[str]:
    """Return the facts with several values; one that is missing is a value if that is told."""
    names = dict.fromkeys(name for each in facts for name in each)
    differing = []
    for name in names:
        known = [each.get(name) for each in facts if with_missing or name in each]
        if any(value != known[0] for value in known):
            differing.append(name)
    return differing


def _checkpoint_of(run: Run) -> tuple[str, Any]:
    """Return what a run was asked of, whatever its settings; "": not recorded."""
    identity = run.provenance.identity
    who = identity.answering if identity else None
    return ((who.checkpoint if who else None) or "", run.variant)


def _facts(run: Run) -> Iterator[tuple[str, Any]]:
    """Yield what a run recorded of how its model was asked; mappings by their own keys."""
    identity = run.provenance.identity
    compared = identity.compared() if identity else {}
    for name, value in compared.items():
        if isinstance(value, Mapping):
            yield from value.items()
        elif name not in _NO_AXES and value is not None:
            yield name.removeprefix(SETTING), value


def _with_values(
    axis: str,
    groups: Mapping[tuple[str, str], Sequence[Run]],
    value_of: Callable[[Run], AxisValue | None],
) -> _Axis | None:
    """Sort runs by their values; None if a value has several runs."""
    lines: dict[tuple[str, str], dict[AxisValue, Run]] = {}
    left_out = []
    for place, members in groups.items():
        by_value = group_by(members, value_of)
        known = {value: its for value, its in by_value.items() if value is not None}
        if len(known) < 2:
            left_out.append(f"{' on '.join(place)}: one value")
        elif any(len(its) > 1 for its in by_value.values()) or len(known) < len(by_value):
            return None
        else:
            lines[place] = {value: its[0] for value, its in known.items()}
    return _Axis(axis, lines, tuple(left_out)) if lines else None


def _ascending(axis: _Axis) -> _Axis:
    """Sort the values of an axis where they are numbers."""
    values = [value for by_value in axis.lines.values() for value in by_value]
    if not all(map(_is_number, values)):
        return axis
    lines = {place: dict(sorted(by_value.items())) for place, by_value in axis.lines.items()}
    return replace(axis, lines=lines)


# --- values and differences -----------------------------------------------------------------------


def _ablation(axis: _Axis) -> Ablation:
    first = next(iter(next(iter(axis.lines.values())).values()))
    benchmark = first.benchmark
    metric = benchmark.headline_counting_failures
    lines = []
    left_out = [*axis.left_out]
    for (model, table), by_value in _with_means(axis):
        points, why = _points(by_value, metric)
        lines.append(AblationLine(model, table, points))
        left_out += [f"{model} on {table}: {each}" for each in why]
    return Ablation(
        benchmark.name,
        axis.name,
        metric,
        benchmark.metrics[0].title,
        tuple(_corrected(lines)),
        tuple(dict.fromkeys(left_out)),
    )


def _with_means(
    axis: _Axis,
) -> Iterator[tuple[tuple[str, str], Mapping[AxisValue, tuple[Run, ...]]]]:
    """Yield the lines of each model, after its mean over tables that have the same values."""
    by_model = group_by(axis.lines.items(), lambda line: line[0][0])
    for model, of_model in by_model.items():
        values = [tuple(by_value) for _, by_value in of_model]
        if len(of_model) > 1 and all(each == values[0] for each in values):
            mean = {}
            for value in values[0]:
                mean[value] = tuple(by_value[value] for _, by_value in of_model)
            yield (model, f"mean of {len(of_model)}"), mean
        for place, by_value in of_model:
            yield place, {value: (run,) for value, run in by_value.items()}


def _points(
    by_value: Mapping[AxisValue, tuple[Run, ...]], metric: Metric
) -> tuple[tuple[AblationPoint, ...], list[str]]:
    """Make the points of a line, and say which cannot be compared with the first."""
    points = []
    left_out = []
    first: tuple[tuple[Run, ...], Estimate] | None = None
    for value, runs in by_value.items():
        estimate = mean_estimate(runs, (metric,))
        to_first = None
        if first is None:
            first = runs, estimate
        else:
            try:
                to_first = _difference((runs, estimate), first, metric)
            except StatisticsError as error:
                left_out.append(f"{value}: {error}")
        interval = metric_intervals(estimate)[metric.name]
        points.append(AblationPoint(value, runs, estimate.value(metric.name), interval, to_first))
    return tuple(points), left_out


def _difference(
    one: tuple[Sequence[Run], Estimate], first: tuple[Sequence[Run], Estimate], metric: Metric
) -> Difference | None:
    """Subtract the first value of a line from another; None where either has no value."""
    pairs = list(zip(one[0], first[0], strict=True))
    for run, of_first in pairs:
        check_comparable(of_first, run)
    if one[1].value(metric.name) is None or first[1].value(metric.name) is None:
        return None
    if all(is_same_run(*pair) for pair in pairs):
        return Difference.untested(0.0, FamilyOfTests.AXIS)
    return paired_difference(one[1], first[1], metric.name)


def _corrected(lines: Sequence[AblationLine]) -> Iterator[AblationLine]:
    """Correct the p-values of all lines together."""
    points = (point for line in lines for point in line.points)
    tests = (point.to_first for point in points if point.to_first is not None)
    corrected = iter(correct_by_holm(tests, FamilyOfTests.AXIS))
    for line in lines:
        points_of_line = []
        for point in line.points:
            to_first = None if point.to_first is None else next(corrected)
            points_of_line.append(replace(point, to_first=to_first))
        yield replace(line, points=tuple(points_of_line))


# --- the table ------------------------------------------------------------------------------------


def ablation_table(ablation: Ablation) -> Table:
    """Make a row for each model, table and value: the headline, and what it is above the first.

    Models and tables have a column where there are several.
    """
    of_line: list[Column[AblationLine]] = []
    if len({line.model for line in ablation.lines}) > 1:
        of_line.append(Column("model", lambda line: line.model))
    if len({line.table for line in ablation.lines}) > 1:
        of_line.append(Column("dataset", lambda line: line.table))
    of_test: list[Column[Difference]] = [
        difference_column("minus first", difference_cell),
        p_column("p", p_cell),
    ]
    columns: list[Column[AblationPoint]] = [
        Column(ablation.axis, lambda point: str(point.value)),
        count_column("queries", lambda point: point.queries),
        count_column("failed calls", lambda point: point.failed),
        value_column(ablation.title, lambda point: TableCell(point.result, point.interval)),
        *(each.by(lambda point: point.to_first) for each in of_test),
    ]
    items = [(line, point) for line in ablation.lines for point in line.points]
    shown = [each.by(lambda item: item[0]) for each in of_line]
    shown += [each.by(lambda item: item[1]) for each in columns]
    models = dict.fromkeys(line.model for line in ablation.lines)
    tables = dict.fromkeys(line.table for line in ablation.lines)
    of = [next(iter(names)) for names in (models, tables) if len(names) == 1]
    notes = [
        Note(ablation.title, ["failed calls count as misses"]),
        Note("Intervals", [INTERVALS_LEGEND, f"of differences {INTERVALS_ALONE}"]),
    ]
    if ablation.left_out:
        notes.append(Note("Not in the table", ablation.left_out))
    signs = {
        STAR: STAR_MEANING,
        "p": FamilyOfTests.AXIS.value,
        NONE: f"the first value, or no test, as {TOO_FEW_IMAGES}",
    }
    title = f"{ablation.title} by {ablation.axis}"
    return table_of(
        ": ".join([title, *filter(None, [" on ".join(of)])]), shown, items, notes, signs
    )
