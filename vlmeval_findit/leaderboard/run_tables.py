"""Tables of single runs and of pairs: metrics, comparison, average precision, calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..analysis import (
    APValue,
    CalibrationResult,
    SameAnswers,
    SamplesScore,
    estimate_run,
    is_same_run,
    run_intervals,
    untested_metrics,
)
from ..boxes import CONFIDENCE_MEANINGS
from ..scoring import Run
from ..statistics import (
    ALPHA,
    BOOTSTRAP_SAMPLES,
    FEWEST_IMAGES,
    INTERVALS_LEGEND,
    TOO_FEW_IMAGES,
    WHICH_IMAGES_COUNT,
    Difference,
    Estimate,
    correct_by_holm,
    metric_intervals,
)
from .comparable import group_by
from .cost_tables import cost_cells, cost_fields
from .legends import STAR, TIED_SIGN, PValues
from .result_table import (
    NONE,
    Field,
    FieldType,
    FieldValue,
    Note,
    Table,
    TableCell,
    count_column,
    value_column,
)


def runs_table(runs: Sequence[Run]) -> Table:
    """Make a row for each run of a benchmark: its metrics with intervals, model and dataset."""
    metrics = runs[0].benchmark.all_metrics
    rows: list[list[FieldValue]] = []
    for run in runs:
        variant = run.variant
        bounds = run_intervals(run) if run.rows else {}
        row: list[FieldValue] = [run.model, run.dataset_name, run.board_dataset, variant.format]
        row += [len(run.rows), run.failed]
        row += [TableCell(run.value(metric), bounds.get(metric.name)) for metric in metrics]
        row += cost_cells(run.provenance.costs)
        rows.append([*row, run.provenance.digest, str(run.path)])
    fields = [Field("model"), Field("dataset"), Field("column"), Field("format")]
    fields += [count_column("queries"), count_column("failed calls")]
    fields += [value_column(metric.name) for metric in metrics]
    fields += [*cost_fields(), Field("digest"), Field("path")]
    return Table("Runs", fields, rows)


# --- two runs -------------------------------------------------------------------------------------

_NOTES = (Note("Intervals", [INTERVALS_LEGEND]),)

OTHER_QUERIES = "≠"  # Sign of a difference between values over different queries

_HOLM = "p (Holm)"
_SIGNS = {
    STAR: f"p below {ALPHA:g}",
    OTHER_QUERIES: "over answered calls, and A and B answered different queries: no test, no "
    "interval",
    "p": PValues.PAIR.value,
    _HOLM: PValues.DATASETS.value,
}
_TOO_FEW = {NONE: f"no test, no interval, as {TOO_FEW_IMAGES}: {WHICH_IMAGES_COUNT}"}


def comparison_table(run: Run, other: Run, differences: Mapping[str, Difference]) -> Table:
    """Make a row for each metric of two runs: both values, their difference, its p-value.

    ``≠``: no test, as the two values are over different queries.
    """
    untested = untested_metrics(run, other)
    rows = []
    for metric in run.benchmark.all_metrics:
        if metric.name not in differences:
            continue
        test = differences[metric.name]
        values = run.value(metric), other.value(metric)
        sign = OTHER_QUERIES if metric.name in untested else ""
        rows.append(_compared(metric.title, values, test, test.p_value, sign))
    # Of values over other queries – has another cause, which their sign says.
    has_too_few = any(
        test.p_value is None for name, test in differences.items() if name not in untested
    )
    signs = {**_SIGNS, **(_TOO_FEW if has_too_few else {})}
    if is_same_run(run, other):
        signs = {NONE: SameAnswers.RUN.value}
    title = " minus ".join(f"{each.model} on {each.dataset_name}" for each in (run, other))
    return Table(title, _comparison_fields("metric", "p"), rows, _NOTES, signs=signs)


def datasets_table(
    pairs: Sequence[tuple[Run, Run]], differences: Sequence[Mapping[str, Difference]]
) -> Table:
    """Make a row for each dataset of the runs of two models: the headline, failed calls as misses.

    If any call failed, there are columns with their numbers. Datasets with reviews follow, and are
    corrected apart: they are no further question about the models.

    Args:
        pairs: of two models on datasets of one benchmark, as :func:`pairs_by_models` groups them.
        differences: those of each pair.
    """
    any_failed = any(run.failed for pair in pairs for run in pair)
    shown = []
    for (run, other), by_metric in zip(pairs, differences, strict=True):
        metric = run.benchmark.headline_counting_failures
        if metric.name in by_metric:
            shown.append((run, other, metric, by_metric[metric.name]))
    as_labelled = [each for each in shown if each[0].provenance.reviews is None]
    reviewed = [each for each in shown if each[0].provenance.reviews is not None]
    tests = correct_by_holm(test for *_, test in as_labelled) + correct_by_holm(
        test for *_, test in reviewed
    )
    rows = []
    for (run, other, metric, _), test in zip(as_labelled + reviewed, tests, strict=True):
        values = run.value(metric), other.value(metric)
        row = _compared(run.board_dataset, values, test, test.corrected)
        rows.append([*row, run.failed, other.failed] if any_failed else row)
    fields = _comparison_fields("dataset", _HOLM)
    if any_failed:
        fields += [count_column("A failed"), count_column("B failed")]
    run, other = pairs[0]
    title = f"{run.model} minus {other.model}: {headline_title(pairs)}"
    return Table(title, fields, rows, _NOTES, signs={**_SIGNS, **_TOO_FEW})


def pairs_by_models(pairs: Sequence[tuple[Run, Run]]) -> list[list[tuple[Run, Run]]]:
    """Group pairs of runs that are about one question: two models, and a benchmark's metric."""
    groups = group_by(pairs, lambda pair: (pair[0].benchmark.name, pair[0].model, pair[1].model))
    return list(groups.values())


def headline_title(pairs: Sequence[tuple[Run, Run]]) -> str:
    """Return the title of the metric of :func:`datasets_table`."""
    benchmark = pairs[0][0].benchmark
    any_failed = any(run.failed for pair in pairs for run in pair)
    return benchmark.headline_counting_failures.title if any_failed else benchmark.metrics[0].title


def _comparison_fields(first: str, test: str) -> list[Field]:
    values = [Field(name, FieldType.VALUE) for name in ("A", "B")]
    difference = Field("A - B", FieldType.DIFFERENCE, interval=True)
    return [Field(first), *values, difference, Field(test, FieldType.P)]


def _compared(
    name: str,
    values: tuple[float | None, float | None],
    test: Difference,
    p_value: float | None,
    sign: str = "",
) -> list[FieldValue]:
    star = STAR if p_value is not None and p_value < ALPHA else ""
    difference = TableCell(test.value, test.interval, sign=sign)
    return [name, *values, difference, TableCell(p_value, sign=star)]


# --- samples --------------------------------------------------------------------------------------


def samples_table(score: SamplesScore, consensus: Run | None) -> Table:
    """Make a row for the mean of several samples, their consensus, and the best by truth."""
    names = [metric.name for metric in score.metrics]

    def row(name: str, summary: Estimate) -> list[FieldValue]:
        bounds = metric_intervals(summary)
        return [name, *(TableCell(summary.value(each), bounds.get(each)) for each in names)]

    each_value = ([sample.value(name) for sample in score.each] for name in names)
    known = [[number for number in values if number is not None] for values in each_value]
    rows = [row(f"mean of {len(score.runs)} samples", score.mean)]
    rows.append(["lowest sample", *(min(values, default=None) for values in known)])
    rows.append(["highest sample", *(max(values, default=None) for values in known)])
    if consensus is not None:
        rows.append(row("consensus", estimate_run(consensus, score.metrics)))
    rows.append(row("best sample by truth", score.best))
    fields = [Field("replies"), *(value_column(metric.title) for metric in score.metrics)]
    return Table("Samples", fields, rows)


def passes_table(score: SamplesScore) -> Table:
    """Make one row of pass@k, for each k."""
    assert score.passes is not None
    bounds = metric_intervals(score.passes)
    names = [metric.name for metric in score.passes.metrics]
    cells = [TableCell(score.passes.value(name), bounds[name]) for name in names]
    return Table("pass@k", list(map(value_column, names)), [cells])


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
    rows = [[name, *_with_gain(each.ap), *_with_gain(each.ap50)] for name, each in rankings]
    fields = [Field("boxes ranked")]
    for name in ("AP", "AP50"):
        fields += [value_column(name), Field(f"{name} gain", FieldType.DIFFERENCE)]
    signs = {TIED_SIGN: "the gain is not significant"}
    return Table(f"{run.model} on {run.dataset}", fields, rows, signs=signs)


def _with_gain(precision: APValue) -> list[FieldValue]:
    value = TableCell(precision.value, precision.interval)
    bounds = precision.gain_interval
    is_chance = bounds is not None and bounds.low <= 0 <= bounds.high
    gain = TableCell(precision.gain, sign=TIED_SIGN if is_chance else "")
    return [value, "" if precision.gain is None else gain]


def calibration_table(run: CalibrationResult) -> Table:
    """Make a row for each definition of confidence: its error, and the best threshold."""
    fields = [
        Field("confidence"),
        Field("ECE", FieldType.VALUE),
        Field("best cut", FieldType.PROBABILITY, interval=True),
        *(Field(name, FieldType.VALUE) for name in ("F1 there", "elsewhere", "uncut")),
        count_column("unsure"),
    ]
    rows: list[list[FieldValue]] = []
    for result in run.by_definition:
        error = None if result.error is None else 100 * result.error
        row: list[FieldValue] = [result.definition, error]
        if (cut := result.threshold) is None:
            row += [None, None, None, None, None]
        else:
            row.append(TableCell(cut.value, cut.interval))
            row += [cut.f1, cut.f1_elsewhere, cut.f1_uncut, result.unsure]
        rows.append(row)
    return Table("Calibration", fields, rows)


def explain_tables(runs: Sequence[CalibrationResult]) -> Note:
    """Explain the words of both tables."""
    names = {each.definition for run in runs for each in run.by_definition}
    lines = [f"{name}: {means}" for name, means in CONFIDENCE_MEANINGS.items() if name in names]
    lines += [
        "gain: over the order of output",
        f"brackets: 95 %, images resampled {BOOTSTRAP_SAMPLES} times; none of fewer than "
        f"{FEWEST_IMAGES} images",
        "best cut: without boxes of a lower confidence F1 is highest, chosen on these boxes; "
        "elsewhere: F1 with each half cut where the other is best",
    ]
    return Note("", lines)
