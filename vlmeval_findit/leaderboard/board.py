"""Values, intervals, means and ranks: models x datasets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ..core.benchmark_protocol import Benchmark, Published
from ..core.influences import Estimate, mean
from ..core.intervals import Difference, Interval, correct, difference, metric_intervals
from ..core.metric import Better, Metric
from ..runs.run_statistics import estimate
from ..runs.scored_run import Run
from .comparable import ComparableRuns, ExcludedRun, group_comparable, grouped
from .formats import FormatError, FormatRow, choose, formats_by_model, make_format_rows

HOME = "FindIt"
"""The benchmark that comes first; its files are in the folder itself."""

OVERALL = "Overall"

TIED = "≈"
"""Sign of a rank whose difference to the rank above is not significant."""

UNTESTED = "?"
"""Sign of a rank with too few images to test the difference to the rank above."""


@dataclass(frozen=True, slots=True)
class RankedValue:
    """A metric of a model in percent, with its rank in a dataset or mean."""

    value: float
    interval: Interval | None
    rank: int | None = None  # None: failed calls, and the metric is over answered calls only
    # Paired difference to the model a rank above, corrected for the comparisons of this metric
    # here; None for the first, and without a rank
    to_above: Difference | None = None

    @property
    def mark(self) -> str:
        """The sign of a difference to the rank above that may be chance; else empty."""
        if self.to_above is None or self.to_above.significant:
            return ""
        return UNTESTED if self.to_above.p_value is None else TIED


@dataclass(frozen=True, slots=True)
class BoardCell:
    """A model on one dataset, or its mean over several."""

    model: str
    dataset: str  # Or the name of the mean
    run: Run | None  # None: a mean
    queries: int
    failures: int
    tried: (
        int  # Formats in which it was asked these queries, or some; for a mean the largest number
    )
    entries: Mapping[str, RankedValue]  # By the names of metrics; only those with a value

    @property
    def format(self) -> str:
        return self.run.question.format if self.run else ""


@dataclass(frozen=True, slots=True)
class DatasetMean:
    """The mean over the datasets of a family, or over all."""

    name: str
    datasets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Board:
    """The leaderboard of one benchmark."""

    benchmark: Benchmark
    headline: Metric  # With failed calls as misses, if any call failed
    models: tuple[str, ...]  # By their overall headline; models that lack a dataset come last
    datasets: tuple[ComparableRuns, ...]
    means: tuple[DatasetMean, ...]
    cells: Mapping[tuple[str, str], BoardCell]  # By (model, dataset or mean)
    runs: tuple[FormatRow, ...]  # Every comparable run, in every format
    excluded: tuple[ExcludedRun, ...]
    published: tuple[Published, ...] = ()  # Published values on its datasets

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """All metrics; models are ordered by the first, in which failed calls are misses.

        Files for programs have all of them, so that their columns are the same for all runs.
        """
        return self.benchmark.all_metrics

    @property
    def shown(self) -> tuple[Metric, ...]:
        """Metrics of tables for people: the headline, and metrics with any value here."""
        names = {name for cell in self.cells.values() for name in cell.entries}
        names |= {name for each in self.published for name in each.values}
        names -= {self.headline.name, self.benchmark.with_failures.name}
        return (self.headline, *(metric for metric in self.metrics if metric.name in names))

    def names(self) -> list[str]:
        """Return means, then datasets: the order in which tables show them."""
        return [mean.name for mean in self.means] + [each.name for each in self.datasets]


def boards(runs: Iterable[Run], formats: Sequence[str] = ()) -> list[Board]:
    """Make the leaderboards of runs, one for each benchmark: FindIt's first, then by name.

    Args:
        runs: any, at least one.
        formats: ``[MODEL=]FORMAT`` to report instead of a model's best, in benchmarks that have it.

    Raises:
        FormatError: a format that no run has.
    """
    groups = grouped(runs, lambda run: run.benchmark.name)
    every = [run for group in groups.values() for run in group]
    formats_by_model(formats, every)
    leaderboards = []
    for name in sorted(groups, key=lambda name: (name != HOME, name)):
        group = groups[name]
        known_formats = [entry for entry in formats if _has_format(entry, group)]
        leaderboards.append(make_board(group, known_formats))
    return leaderboards


def _has_format(entry: str, runs: Sequence[Run]) -> bool:
    try:
        formats_by_model([entry], runs)
    except FormatError:
        return False
    return True


def make_board(runs: Sequence[Run], formats: Iterable[str] = ()) -> Board:
    """Make the leaderboard of scored runs of a benchmark, at least one.

    Args:
        runs: runs that cannot be compared are excluded.
        formats: ``[MODEL=]FORMAT`` to report instead of a model's best.

    Raises:
        FormatError: a format that no comparable run has.
    """
    benchmark = runs[0].benchmark
    metrics = benchmark.all_metrics
    datasets, excluded = group_comparable(runs)
    comparable = [run for dataset in datasets for run in dataset.runs]
    reported = choose(datasets, formats_by_model(formats, comparable))
    means = tuple(_means(datasets))
    names = {dataset.name for dataset in datasets}
    alike: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        alike.setdefault(_asked(run), []).append(run)
    cells = {}
    for name, group in _groups(datasets, means, reported).items():
        entries = _entries(group, metrics)
        for model, of_model in group.items():
            cells[model, name] = BoardCell(
                model=model,
                dataset=name,
                run=of_model[0] if name in names else None,
                queries=sum(len(run.rows) for run in of_model),
                failures=sum(run.failed for run in of_model),
                tried=max(_formats_tried(run, alike[_asked(run)]) for run in of_model),
                entries=entries[model],
            )
    any_failed = any(run.failed for run in comparable)
    return Board(
        benchmark=benchmark,
        headline=metrics[0] if any_failed else benchmark.metrics[0],
        models=tuple(_ordered({model for model, _ in reported}, datasets, cells, metrics[0].name)),
        datasets=datasets,
        means=means,
        cells=cells,
        runs=tuple(make_format_rows(datasets, reported)),
        excluded=excluded,
        published=tuple(each for each in benchmark.published() if each.dataset in names),
    )


def _means(datasets: Sequence[ComparableRuns]) -> Iterable[DatasetMean]:
    yield DatasetMean(OVERALL, tuple(dataset.name for dataset in datasets))
    for family in dict.fromkeys(dataset.family for dataset in datasets):
        yield DatasetMean(family, tuple(each.name for each in datasets if each.family == family))


Group = Mapping[str, Sequence[Run]]
"""The runs of models in a dataset (one run each), or in all datasets of a mean."""


def _groups(
    datasets: Sequence[ComparableRuns],
    means: Sequence[DatasetMean],
    reported: Mapping[tuple[str, str], Run],
) -> dict[str, Group]:
    """Group the reported runs by dataset and mean.

    A mean has the models that have all of its datasets: others would not be comparable.
    """
    models = sorted({model for model, _ in reported})
    places: list[tuple[str, Sequence[str]]] = [(each.name, [each.name]) for each in datasets]
    places += [(each.name, each.datasets) for each in means]
    return {
        name: {
            model: [reported[model, dataset] for dataset in inside]
            for model in models
            if all((model, dataset) in reported for dataset in inside)
        }
        for name, inside in places
    }


def _asked(run: Run) -> tuple[str, ...]:
    return run.model, run.question.board_dataset, run.provenance.table_sha256


def _formats_tried(run: Run, alike: Iterable[Run]) -> int:
    """Count the formats in which a run's model was asked its queries, or some of them.

    A search over a part of the rows counts: it is not comparable, but it chose the format.

    Args:
        run: a reported run.
        alike: all runs of its model over its table.
    """
    rows = run.provenance.rows
    return len(
        {each.question.format for each in alike if not each.provenance.rows.isdisjoint(rows)}
    )


def _entries(group: Group, metrics: Sequence[Metric]) -> dict[str, dict[str, RankedValue]]:
    """Make the values of a group's models, with a rank by each metric.

    By the first metric, in which failed calls are misses, all are ranked. The others are over
    answered calls: a model that fails on hard images would gain, and has no rank.
    """
    entries: dict[str, dict[str, RankedValue]] = {}
    for model, runs in group.items():
        of_model = _estimate(runs, metrics)
        bounds = metric_intervals(of_model)
        values = {metric.name: of_model.value(metric.name) for metric in metrics}
        entries[model] = {
            name: RankedValue(value, bounds[name])
            for name, value in values.items()
            if value is not None
        }
    for metric in metrics:
        ranked = [
            model
            for model, runs in group.items()
            if metric.name in entries[model]
            and (metric is metrics[0] or not any(run.failed for run in runs))
        ]
        _rank(ranked, group, metric, entries)
    return entries


def _rank(
    models: Iterable[str],
    group: Group,
    metric: Metric,
    entries: Mapping[str, dict[str, RankedValue]],
) -> None:
    """Set ranks by a metric, and tests against the rank above, in the entries of models."""
    # Rounded: equal values must not be ordered by their last bits.
    sign = 1 if metric.better is Better.LOWER else -1
    order = sorted(models, key=lambda m: (sign * round(entries[m][metric.name].value, 9), m))
    # Two models at a time: a thousand estimates are as many numbers as all their images.
    estimates = (_estimate(group[model], (metric,)) for model in order)
    tests = correct(difference(lower, above, metric.name) for above, lower in pairwise(estimates))
    rank = 1
    for place, model in enumerate(order):
        to_above = tests[place - 1] if place else None
        if to_above is not None and abs(to_above.value) > 1e-9:
            rank = place + 1
        entry = entries[model][metric.name]
        entries[model][metric.name] = replace(entry, rank=rank, to_above=to_above)


def _estimate(runs: Sequence[Run], metrics: Sequence[Metric]) -> Estimate:
    estimates = [estimate(run, metrics) for run in runs]
    return mean(estimates) if len(estimates) > 1 else estimates[0]


def _ordered(
    models: Iterable[str],
    datasets: Sequence[ComparableRuns],
    cells: Mapping[tuple[str, str], BoardCell],
    headline: str,
) -> list[str]:
    def place(model: str) -> tuple[float, float, str]:
        overall = cells.get((model, OVERALL))
        entry = overall.entries.get(headline) if overall is not None else None
        if entry is not None:
            return -1.0, -entry.value, model
        return 0.0, -sum((model, dataset.name) in cells for dataset in datasets), model

    return sorted(models, key=place)
