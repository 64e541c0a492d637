"""Tables of single runs and of pairs: metrics, comparison, average precision, calibration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from ..analysis import (
    APValue,
    CalibrationResult,
    DefinitionResult,
    Detectable,
    SameAnswers,
    SamplesScore,
    compare_means,
    estimate_run,
    is_same_run,
    run_intervals,
    untested_metrics,
)
from ..boxes import CONFIDENCE_MEANINGS
from ..protocol import Metric
from ..scoring import Run
from ..statistics import (
    BOOTSTRAP_SAMPLES,
    CHANCE,
    FEWEST_IMAGES,
    INTERVALS_LEGEND,
    TOO_FEW_IMAGES,
    WHICH_IMAGES_COUNT,
    BestOf,
    CalibrationError,
    Difference,
    Estimate,
    Interval,
    Sized,
    Threshold,
    metric_intervals,
)
from .columns import (
    Column,
    amount_column,
    count_column,
    difference_column,
    p_column,
    plain_value_column,
    table_of,
    value_column,
)
from .comparable import group_by
from .cost_tables import RUN_COSTS
from .legends import STAR, STAR_MEANING, TIED_SIGN, difference_cell, p_cell
from .result_table import NONE, FieldType, FieldValue, Note, Table, TableCell


def runs_table(runs: Sequence[Run]) -> Table:
    """Make a row for each run of a benchmark: its metrics with intervals, model and dataset."""
    bounds: dict[int, Mapping[str, Interval | None]] = {}
    for run in runs:
        has_values = run.rows and not run.is_unanswered
        bounds[id(run)] = run_intervals(run) if has_values else {}

    def value_of(metric: Metric) -> Column[Run]:
        def cell(run: Run) -> TableCell:
            return TableCell(run.value(metric), bounds[id(run)].get(metric.name))

        return value_column(metric.name, cell)

    columns: list[Column[Run]] = [
        Column("model", lambda run: run.model),
        Column("dataset", lambda run: run.dataset_name),
        Column("column", lambda run: run.board_dataset),
        Column("format", lambda run: run.variant.format),
        count_column("queries", lambda run: len(run.rows)),
        count_column("failed calls", lambda run: run.failed),
        *map(value_of, runs[0].benchmark.all_metrics),
        *(each.by(lambda run: run.provenance.costs) for each in RUN_COSTS),
        Column("digest", lambda run: run.provenance.digest),
        Column("path", lambda run: str(run.path)),
    ]
    return table_of("Runs", columns, runs)


# --- two runs -------------------------------------------------------------------------------------

_NOTES = (Note("Intervals", [INTERVALS_LEGEND]),)

OTHER_QUERIES = "≠"  # Sign of a difference between values over different queries

_SIGNS = {
    STAR: STAR_MEANING,
    OTHER_QUERIES: "over answered calls, and A and B answered different queries: no test, no "
    "interval",
}
_TOO_FEW = {NONE: f"no test, no interval, as {TOO_FEW_IMAGES}: {WHICH_IMAGES_COUNT}"}


@dataclass(frozen=True, slots=True)
class _Compared:
    """A value of two runs or means, and the test of their difference."""

    name: str
    values: tuple[float | None, float | None]
    failed: tuple[int, int]  # Numbers of failed calls
    test: Difference
    is_untested: bool = False  # The two values are over different queries

    @property
    def difference(self) -> TableCell:
        return difference_cell(self.test, OTHER_QUERIES if self.is_untested else "")


def _compared(
    name: str, runs: tuple[Run, Run], metric: Metric, test: Difference, is_untested: bool = False
) -> _Compared:
    run, other = runs
    values = run.value(metric), other.value(metric)
    return _Compared(name, values, (run.failed, other.failed), test, is_untested)


def _compared_columns(first: str) -> list[Column[_Compared]]:
    return [
        Column(first, lambda each: each.name),
        plain_value_column("A", lambda each: each.values[0]),
        plain_value_column("B", lambda each: each.values[1]),
        difference_column("A - B", lambda each: each.difference),
        p_column("p", lambda each: p_cell(each.test)),
    ]


def _families(items: Iterable[_Compared]) -> dict[str, str]:
    """Return what the p-values of a table are corrected for, as the meaning of their column."""
    return {"p": "; ".join(dict.fromkeys(each.test.family.value for each in items))}


# What the signs of a run beside itself mean: nothing is tested
SIGNS_OF_ONE_RUN = {NONE: SameAnswers.RUN.value}


def comparison_table(run: Run, other: Run, differences: Mapping[str, Difference]) -> Table:
    """Make a row for each metric of two runs: both values, their difference, its p-value.

    ``≠``: no test, as the two values are over different queries.
    """
    untested = untested_metrics(run, other)
    items = []
    for metric in run.benchmark.all_metrics:
        if (test := differences.get(metric.name)) is not None:
            is_untested = metric.name in untested
            items.append(_compared(metric.title, (run, other), metric, test, is_untested))
    # Of values over other queries – has another cause, which their sign says.
    has_too_few = any(
        test.p_value is None for name, test in differences.items() if name not in untested
    )
    signs = {**_SIGNS, **_families(items), **(_TOO_FEW if has_too_few else {})}
    if is_same_run(run, other):
        signs = SIGNS_OF_ONE_RUN
    title = " minus ".join(f"{each.model} on {each.dataset_name}" for each in (run, other))
    return table_of(title, _compared_columns("metric"), items, _NOTES, signs)


def datasets_table(
    pairs: Sequence[tuple[Run, Run]],
    differences: Sequence[Mapping[str, Difference]],
    choice: BestOf | None = None,
) -> Table:
    """Make a row for each dataset of the runs of two models: the headline, failed calls as misses.

    The row of their mean comes first, as on a leaderboard. If any call failed, there are columns
    with their numbers. Datasets with reviews come last: they are no further question about the
    models, and not in the mean.

    Args:
        pairs: of two models on datasets of one benchmark, as :func:`pairs_by_models` groups them.
        differences: those of each pair.
        choice: how the mean is tested, as of :func:`compare_runs`.
    """
    metric = pairs[0][0].benchmark.headline_counting_failures
    items = []
    if (mean := compare_means(pairs, choice)) is not None:
        name = f"mean of {len(mean.datasets)}"
        items.append(_Compared(name, mean.values, mean.failed, mean.difference))
    shown = [each for each in zip(pairs, differences, strict=True) if metric.name in each[1]]
    for pair, by_metric in sorted(shown, key=lambda each: _is_reviewed(each[0][0])):
        items.append(_compared(pair[0].board_dataset, pair, metric, by_metric[metric.name]))
    columns = _compared_columns("dataset")
    if any(run.failed for pair in pairs for run in pair):
        columns += [
            count_column("A failed", lambda each: each.failed[0]),
            count_column("B failed", lambda each: each.failed[1]),
        ]
    run, other = pairs[0]
    title = f"{run.model} minus {other.model}: {headline_title(pairs)}"
    signs = {**_SIGNS, **_families(items), **_TOO_FEW}
    same = [is_same_run(*pair) for pair in pairs]
    if any(same):
        reasons = [SameAnswers.RUN.value] if all(same) else [SameAnswers.RUN.value, _TOO_FEW[NONE]]
        signs[NONE] = "; or ".join(reasons)
    return table_of(title, columns, items, _NOTES, signs)


def _is_reviewed(run: Run) -> bool:
    return run.provenance.reviews is not None


def pairs_by_models(pairs: Sequence[tuple[Run, Run]]) -> list[list[tuple[Run, Run]]]:
    """Group pairs of runs that are about one question: two models, and a benchmark's metric."""
    groups = group_by(pairs, lambda pair: (pair[0].benchmark.name, pair[0].model, pair[1].model))
    return list(groups.values())


def headline_title(pairs: Sequence[tuple[Run, Run]]) -> str:
    """Return the title of the metric of :func:`datasets_table`."""
    benchmark = pairs[0][0].benchmark
    any_failed = any(run.failed for pair in pairs for run in pair)
    return benchmark.headline_counting_failures.title if any_failed else benchmark.metrics[0].title


# --- how many images ----

_NO_SIZE = {NONE: "too few images, one run twice, or a mean"}


def detection_table(found: Sequence[Detectable], points: float) -> Table:
    """Make a row for each dataset of two runs: which difference its images show."""

    def cell(size: Sized | None) -> TableCell:
        return TableCell(size.value, size.range) if size else TableCell()

    columns: list[Column[Detectable]] = [
        Column("dataset", lambda each: each.dataset),
        count_column("images", lambda each: each.images or None),
        value_column("they show", lambda each: cell(each.shown)),
        amount_column("needed", lambda each: cell(each.needed), interval=True),
    ]
    if any(each.queries for each in found):
        columns += [
            count_column("whole set", lambda each: each.queries),
            value_column("it shows", lambda each: cell(each.shown_by_all)),
        ]
    title = f"Images that a difference of {points:g} points needs"
    return table_of(title, columns, found, _SIZE_NOTES, _NO_SIZE)


_SIZE_NOTES = (
    Note(
        "They show",
        [
            f"with a chance of {100 * CHANCE:.0f} % the test of two such runs finds a difference "
            "of so many points"
        ],
    ),
    Note("Ranges", ["95 %, as few images tell how much images differ"]),
)


# --- samples --------------------------------------------------------------------------------------


def samples_table(score: SamplesScore, consensus: Run | None) -> Table:
    """Make a row for the mean of several samples, their consensus, and the best by truth."""
    names = [metric.name for metric in score.metrics]
    each_value = {name: [sample.value(name) for sample in score.each] for name in names}
    known = {name: [n for n in values if n is not None] for name, values in each_value.items()}
    lines = [
        (f"mean of {len(score.runs)} samples", _values_of(score.mean)),
        ("lowest sample", {name: min(known[name], default=None) for name in names}),
        ("highest sample", {name: max(known[name], default=None) for name in names}),
    ]
    if consensus is not None:
        lines.append(("consensus", _values_of(estimate_run(consensus, score.metrics))))
    lines.append(("best sample by truth", _values_of(score.best)))
    columns: list[Column[tuple[str, Mapping[str, FieldValue]]]] = [
        Column("replies", lambda line: line[0])
    ]
    for metric in score.metrics:
        values: Column[Mapping[str, FieldValue]] = value_column(
            metric.title, itemgetter(metric.name)
        )
        columns.append(values.by(lambda line: line[1]))
    return table_of("Samples", columns, lines)


def _values_of(estimate: Estimate) -> Mapping[str, FieldValue]:
    """Return the values of an estimate with their intervals, by the names of metrics."""
    bounds = metric_intervals(estimate)
    names = [metric.name for metric in estimate.metrics]
    return {name: TableCell(estimate.value(name), bounds.get(name)) for name in names}


def passes_table(score: SamplesScore) -> Table:
    """Make one row of pass@k, for each k."""
    assert score.passes is not None
    values = _values_of(score.passes)
    columns: list[Column[Mapping[str, FieldValue]]] = [
        value_column(name, itemgetter(name)) for name in values
    ]
    return table_of("pass@k", columns, [values])


def samples_legend(score: SamplesScore, consensus: Run | None) -> Note:
    """Explain the words of both tables."""
    lines = ["best sample by truth: what choosing among the samples could reach; no score"]
    if consensus is not None:
        lines.append("consensus: boxes in more than half of a query's answers, as one reply")
    if score.passes is not None:
        lines.append("pass@k: one of k samples solves the query: all objects hit, no box too many")
    return Note("", [*lines, f"brackets: {INTERVALS_LEGEND}"])


# --- confidences ----------------------------------------------------------------------------------


def ranking_table(run: CalibrationResult) -> Table:
    """Make a row for each order of the boxes: average precision, and its gain over the output's."""
    rankings = [("as output", run.as_output)]
    rankings += [(f"by {each.definition}", each.ranking) for each in run.by_definition]
    precisions = [
        *(each.by(lambda item: item[1].ap) for each in _precision_columns("AP")),
        *(each.by(lambda item: item[1].ap50) for each in _precision_columns("AP50")),
    ]
    columns = [Column("boxes ranked", lambda item: item[0]), *precisions]
    signs = {TIED_SIGN: "the gain is not significant"}
    return table_of(f"{run.model} on {run.dataset}", columns, rankings, signs=signs)


def _precision_columns(name: str) -> list[Column[APValue]]:
    return [
        value_column(name, lambda precision: TableCell(precision.value, precision.interval)),
        difference_column(f"{name} gain", _gain, interval=False),
    ]


def _gain(precision: APValue) -> FieldValue:
    if precision.gain is None:
        return ""
    bounds = precision.gain_interval
    is_chance = bounds is not None and bounds.low <= 0 <= bounds.high
    return TableCell(precision.gain, sign=TIED_SIGN if is_chance else "")


def calibration_table(run: CalibrationResult) -> Table:
    """Make a row for each definition of confidence: its error, and the best threshold."""
    cuts: list[Column[Threshold]] = [
        Column(
            "best cut",
            lambda cut: TableCell(cut.value, cut.interval) if cut.f1 else TableCell(),
            FieldType.PROBABILITY,
            interval=True,
        ),
        plain_value_column("F1 there", lambda cut: cut.f1),
        plain_value_column("elsewhere", lambda cut: cut.f1_elsewhere),
        plain_value_column("uncut", lambda cut: cut.f1_uncut),
    ]
    errors: list[Column[CalibrationError]] = [
        plain_value_column("ECE", lambda error: 100 * error.value),
        plain_value_column("by chance", lambda error: _percent(error.by_chance)),
        value_column("beyond", _beyond_chance),
    ]
    columns: list[Column[DefinitionResult]] = [
        Column("confidence", lambda result: result.definition),
        *(each.by(lambda result: result.error) for each in errors),
        *(each.by(lambda result: result.threshold) for each in cuts),
        count_column("unsure", lambda result: None if result.threshold is None else result.unsure),
    ]
    return table_of("Calibration", columns, run.by_definition)


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _beyond_chance(error: CalibrationError) -> TableCell:
    bounds = error.interval
    if bounds is not None:
        bounds = Interval(100 * bounds.low, 100 * bounds.high)
    return TableCell(_percent(error.beyond_chance), bounds)


def explain_tables(runs: Sequence[CalibrationResult]) -> Note:
    """Explain the words of both tables."""
    names = {each.definition for run in runs for each in run.by_definition}
    lines = [f"{name}: {means}" for name, means in CONFIDENCE_MEANINGS.items() if name in names]
    lines += [
        "gain: over the order of output",
        f"brackets: 95 %, images resampled {BOOTSTRAP_SAMPLES} times; none of fewer than "
        f"{FEWEST_IMAGES} images",
        "ECE: the calibration error; by chance: what few boxes add to it; beyond: ECE beyond "
        "chance, by which runs can be compared",
        "best cut: without boxes of a lower confidence F1 is highest, chosen on these boxes; "
        "elsewhere: F1 with each half cut where the other is best",
    ]
    return Note("", lines)
