"""Values, intervals, means and ranks: models x datasets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..analysis import HeldOutAnswers, estimate_run, is_favoured
from ..protocol import Benchmark, Metric, Published
from ..scoring import Run
from ..statistics import (
    BestOf,
    Difference,
    Estimate,
    Interval,
    RankRange,
    mean_of_estimates,
    metric_intervals,
    rank_ranges,
)
from .comparable import ComparableRuns, ExcludedRun, by_model, group_by, group_comparable
from .published_rows import published_rows
from .reported_formats import (
    FormatRow,
    answers_elsewhere,
    choose_reported,
    formats_by_model,
    make_format_rows,
    named_models,
)
from .result_table import FieldType, printed_number

if TYPE_CHECKING:
    from ..data import PublishedFigure

HOME = "FindIt"  # The benchmark that comes first; its files are in the folder itself

OVERALL = "Overall"  # Name of the mean over all datasets


@dataclass(frozen=True, slots=True)
class ValueElsewhere:
    """A metric of a model on images that did not choose its format."""

    value: float | None  # None: not known
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class RankedValue:
    """A metric of a model in percent, with its rank in a dataset or mean."""

    value: float
    interval: Interval | None  # None, too, of a format that was chosen on these images
    # What it is ranked and tested by where its format was chosen; else None
    elsewhere: ValueElsewhere | None = None
    rank: int | None = None  # None: failed calls, and the metric is over answered calls only
    # The ranks that the tests against all others of the column allow; None without a rank, and
    # where no other model has one
    ranks: RankRange | None = None
    # Paired difference to the model a rank above, of the same tests; None for the first, and
    # without a rank
    to_above: Difference | None = None
    # No value that has a rank in the column is printed as a better one, and it is not nothing
    best: bool = False
    voted: bool = False  # Reviewers of the labels that it is scored with saw the model's answers

    @property
    def tested(self) -> float:
        """The value that it is ranked and tested by; the value itself where no other is known."""
        known = self.elsewhere.value if self.elsewhere else None
        return self.value if known is None else known

    @property
    def tested_interval(self) -> Interval | None:
        """The interval of the value that it is ranked and tested by."""
        return self.elsewhere.interval if self.elsewhere else self.interval


@dataclass(frozen=True, slots=True)
class BoardCell:
    """A model on one dataset, or its mean over several."""

    model: str
    dataset: str  # Or the name of the mean
    run: Run | None  # None: a mean
    queries: int
    failures: int
    # Formats that its reported one was chosen from; 1: the only one, or named. Of a mean: the most
    tried: int
    # Further formats that were asked some of the queries, in runs that are not compared, and may
    # have chosen the reported one; of a mean: the most
    left_out: int
    entries: Mapping[str, RankedValue]  # By the names of metrics; only those with a value

    @property
    def format(self) -> str:
        return self.run.variant.format if self.run else ""


@dataclass(frozen=True, slots=True)
class DatasetMean:
    """The mean over the datasets of a family, or over all."""

    name: str
    datasets: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Board:
    """The leaderboard of one benchmark; no other is equal to it."""

    benchmark: Benchmark
    headline: Metric  # With failed calls as misses, if any call failed
    models: tuple[str, ...]  # By their overall headline; models that lack a dataset come last
    datasets: tuple[ComparableRuns, ...]
    means: tuple[DatasetMean, ...]
    cells: Mapping[tuple[str, str], BoardCell]  # By (model, dataset or mean)
    runs: tuple[FormatRow, ...]  # Every comparable run, in every format
    excluded: tuple[ExcludedRun, ...]
    # By (model, dataset): the answers elsewhere of models whose format was chosen
    elsewhere: Mapping[tuple[str, str], HeldOutAnswers] = field(default_factory=dict)
    # Models whose format was named beforehand: it is one of none that were tried
    named: frozenset[str] = frozenset()
    published: tuple[Published, ...] = ()  # Published values on its datasets
    # Datasets whose published values are of more rows than were asked
    published_in_part: frozenset[str] = frozenset()

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
        names -= {self.headline.name, self.benchmark.headline_counting_failures.name}
        return (self.headline, *(metric for metric in self.metrics if metric.name in names))

    @property
    def counted_datasets(self) -> tuple[str, ...]:
        """The datasets that means are over: those without reviews, or all if all have some."""
        return self.means[0].datasets

    def names(self) -> list[str]:
        """Return means, then datasets: the order in which tables show them."""
        return [mean.name for mean in self.means] + [each.name for each in self.datasets]

    def mean_names(self) -> list[str]:
        """Return the means, the first of those over the same datasets: the others are equal."""
        by_datasets: dict[tuple[str, ...], str] = {}
        for mean in self.means:
            by_datasets.setdefault(mean.datasets, mean.name)
        return [*by_datasets.values()]

    def places(self) -> list[str]:
        """Return those of :meth:`names` that say something of their own.

        A mean over one dataset is that dataset.
        """
        single = {mean.name for mean in self.means if len(mean.datasets) == 1}
        return [name for name in self.names() if name not in single]

    def ordered_cells(self) -> list[BoardCell]:
        """Return the cells of models by mean and dataset, in the order of tables."""
        places = ((model, name) for model in self.models for name in self.names())
        return [self.cells[place] for place in places if place in self.cells]

    def entry(self, model: str, name: str, metric: str) -> RankedValue | None:
        """Return the value of a model on a dataset or mean; None without one."""
        cell = self.cells.get((model, name))
        return cell.entries.get(metric) if cell else None

    def choice(self, name: str, metric: str) -> BestOf:
        """Return how two models are tested by a metric in a dataset or mean, by all outputs."""
        entries = (self.entry(model, name, metric) for model in self.models)
        return choice_among(sum(entry is not None and entry.rank is not None for entry in entries))

    def run(self, model: str, dataset: str) -> Run | None:
        """Return the reported run of a model on a dataset; None without one."""
        cell = self.cells.get((model, dataset))
        return cell.run if cell else None

    def tested_estimate(
        self, model: str, datasets: Iterable[str], metrics: Sequence[Metric]
    ) -> Estimate | None:
        """Estimate what a model is tested by in a dataset or mean; None if it is not known."""
        reported = []
        for name in datasets:
            if (run := self.run(model, name)) is not None:
                reported.append(_Reported(run, self.elsewhere.get((model, name))))
        return _tested_estimate(reported, metrics)


def boards(
    runs: Iterable[Run],
    formats: Sequence[str] = (),
    figures: Sequence[PublishedFigure] = (),
) -> list[Board]:
    """Make the leaderboards of runs, one for each benchmark: FindIt's first, then by name.

    Args:
        runs: any, at least one.
        formats: ``[MODEL=]FORMAT`` to report instead of a model's best, in benchmarks that have it.
        figures: published figures of the user, next to those that are known.

    Raises:
        FormatError: a format that no run has.
    """
    groups = group_by(runs, lambda run: run.benchmark.name)
    formats_by_model(formats, [run for group in groups.values() for run in group])
    leaderboards = []
    for name in sorted(groups, key=lambda name: (name != HOME, name)):
        known = [("", run.variant.format) for run in groups[name]]
        known += [(run.model, run.variant.format) for run in groups[name]]
        chosen = [entry for entry in formats if entry.rpartition("=")[::2] in known]
        leaderboards.append(make_board(groups[name], chosen, figures))
    return leaderboards


def make_board(
    runs: Sequence[Run],
    formats: Iterable[str] = (),
    figures: Sequence[PublishedFigure] = (),
) -> Board:
    """Make the leaderboard of scored runs of a benchmark, at least one.

    Args:
        runs: runs that cannot be compared are excluded.
        formats: ``[MODEL=]FORMAT`` to report instead of a model's best.
        figures: published figures of the user, next to those that are known.

    Raises:
        FormatError: a format that no comparable run has.
    """
    benchmark = runs[0].benchmark
    datasets, excluded = group_comparable(runs)
    comparable = [run for dataset in datasets for run in dataset.runs]
    fixed = formats_by_model(formats, comparable, excluded=excluded)
    reported = choose_reported(datasets, fixed)
    elsewhere = answers_elsewhere(datasets, reported, fixed)
    means = _means_over(datasets)
    named = named_models(reported, fixed)
    cells = _make_cells(datasets, means, reported, elsewhere, excluded, named)
    headline = benchmark.metrics[0]
    if any(run.failed for run in comparable):
        headline = benchmark.headline_counting_failures
    names = [dataset.name for dataset in datasets]
    published = published_rows(benchmark, datasets, figures)
    return Board(
        benchmark=benchmark,
        headline=headline,
        models=_order_models(cells, names, benchmark.headline_counting_failures),
        datasets=datasets,
        means=means,
        cells=cells,
        runs=tuple(make_format_rows(datasets, reported)),
        excluded=excluded,
        elsewhere=elsewhere,
        named=named,
        published=published.rows,
        published_in_part=published.in_part,
    )


def _means_over(datasets: Sequence[ComparableRuns]) -> tuple[DatasetMean, ...]:
    """Return the mean over all datasets, then those over each family.

    A dataset with reviews has the queries of another dataset, which would count twice.
    """
    counted = [dataset for dataset in datasets if dataset.reviews is None] or datasets
    means = [DatasetMean(OVERALL, tuple(dataset.name for dataset in counted))]
    for family, members in group_by(counted, lambda dataset: dataset.family).items():
        means.append(DatasetMean(family, tuple(dataset.name for dataset in members)))
    return tuple(means)


def _order_models(
    cells: Mapping[tuple[str, str], BoardCell], names: Iterable[str], metric: Metric
) -> tuple[str, ...]:
    """Order models by their overall value of a metric.

    Models without one come last, those with the most of the named datasets first.
    """
    in_datasets = Counter(model for model, place in cells if place in names)

    def rank(model: str) -> tuple[bool, float, str]:
        overall = cells.get((model, OVERALL))
        if overall is None or metric.name not in overall.entries:
            return True, -in_datasets[model], model
        return False, metric.better.order(overall.entries[metric.name].tested), model

    return tuple(sorted({model for model, _ in cells}, key=rank))


def _make_cells(
    datasets: Sequence[ComparableRuns],
    means: Sequence[DatasetMean],
    reported: Mapping[tuple[str, str], Run],
    elsewhere: Mapping[tuple[str, str], HeldOutAnswers],
    excluded: Sequence[ExcludedRun],
    named: Container[str],
) -> dict[tuple[str, str], BoardCell]:
    """Make the cells of all models by (model, dataset or mean).

    Args:
        datasets: the datasets of the leaderboard.
        means: the means over them.
        reported: the reported runs by (model, dataset).
        elsewhere: the answers elsewhere of models whose format was chosen.
        excluded: the runs that are not compared.
        named: models whose format was named beforehand.
    """
    metrics = next(iter(reported.values())).benchmark.all_metrics if reported else ()
    places: dict[str, tuple[str, ...]] = {each.name: (each.name,) for each in datasets}
    places |= {mean.name: mean.datasets for mean in means}
    single = {dataset.name for dataset in datasets}
    tried: dict[tuple[str, str], list[Run]] = {}
    for each in datasets:
        for model, runs in by_model(each.runs).items():
            tried[each.name, model] = runs
    # A format that answered nothing has chosen none
    left_out = by_model(each.run for each in excluded if not each.run.is_unanswered)
    held_out = {at: _Reported(run, elsewhere.get(at)) for at, run in reported.items()}
    groups = {members: _reported_on_all(held_out, members) for members in places.values()}
    # Once, though a dataset may be all of its family, and of the leaderboard
    values = {members: _ranked_values(group, metrics) for members, group in groups.items()}
    cells = {}
    for place, members in places.items():
        group = groups[members]
        entries = values[members]
        for model, its in group.items():
            runs_of_model = [each.run for each in its]
            formats = [_formats([run]) for run in runs_of_model]
            others = [set[str]() for _ in runs_of_model]
            if model not in named:
                formats = [_formats(tried[run.board_dataset, model]) for run in runs_of_model]
                others = [_formats_left_out(run, left_out.get(model, [])) for run in runs_of_model]
            cells[model, place] = BoardCell(
                model=model,
                dataset=place,
                run=runs_of_model[0] if place in single else None,
                queries=sum(len(run.rows) for run in runs_of_model),
                failures=sum(run.failed for run in runs_of_model),
                tried=max(map(len, formats)),
                left_out=max(len(o - f) for o, f in zip(others, formats, strict=True)),
                entries=entries[model],
            )
    return cells


@dataclass(frozen=True, slots=True)
class _Reported:
    """A reported run, and the model's answers elsewhere if its format was chosen."""

    run: Run
    elsewhere: HeldOutAnswers | None

    @property
    def failed(self) -> int:
        """Number of failed calls, of those in other formats, too."""
        return self.run.failed + (self.elsewhere.failed if self.elsewhere else 0)

    def tested(self, metrics: Sequence[Metric]) -> Estimate | None:
        """Estimate what it is tested by; None if that is not known."""
        if self.elsewhere is None:
            return estimate_run(self.run, metrics)
        return self.elsewhere.estimate(metrics)


def _tested_estimate(reported: Iterable[_Reported], metrics: Sequence[Metric]) -> Estimate | None:
    """Estimate what a model is tested by in a dataset or mean; None if one is not known."""
    estimates = []
    for each in reported:
        known = each.tested(metrics)
        if known is None:
            return None
        estimates.append(known)
    return mean_of_estimates(estimates) if len(estimates) > 1 else estimates[0]


def _reported_on_all(
    reported: Mapping[tuple[str, str], _Reported], datasets: Sequence[str]
) -> dict[str, list[_Reported]]:
    """Return the reported runs on datasets by model.

    Models that lack a dataset are left out: their mean would not be comparable with the others.
    """
    runs_by_model = {}
    for model in sorted({model for model, _ in reported}):
        if all((model, name) in reported for name in datasets):
            runs_by_model[model] = [reported[model, name] for name in datasets]
    return runs_by_model


def _formats(runs: Iterable[Run]) -> set[str]:
    return {run.variant.format for run in runs}


def _formats_left_out(run: Run, excluded: Iterable[Run]) -> set[str]:
    """Return the formats in which a model's excluded runs were asked some queries of a run."""
    rows = run.provenance.rows
    table = run.provenance.table_sha256
    return _formats(
        other
        for other in excluded
        if (other.board_dataset, other.provenance.table_sha256) == (run.board_dataset, table)
        and not rows.isdisjoint(other.provenance.rows)
    )


def _ranked_values(
    group: Mapping[str, Sequence[_Reported]], metrics: Sequence[Metric]
) -> dict[str, dict[str, RankedValue]]:
    """Make the values of models, given their runs in a dataset or mean, with a rank by each metric.

    By the first metric, in which failed calls are misses, all are ranked. The others are over
    answered calls: a model that fails on hard images would gain, and has no rank. With reviews
    without random rows, models whose answers chose the rows have no rank among others. A model
    whose format was chosen has the rank of its value elsewhere.
    """
    entries = {model: _values(reported, metrics) for model, reported in group.items()}
    ranked = _rankable(group)
    answered = [model for model in ranked if not any(each.failed for each in group[model])]
    for metric in metrics:
        models = ranked if metric is metrics[0] else answered
        values = {
            model: entries[model][metric.name].tested
            for model in models
            if metric.name in entries[model]
        }
        order = best_first(metric, values)
        estimates = [_tested_estimate(group[model], (metric,)) for model in order]
        choice = choice_among(len(order))
        ranges = rank_ranges(estimates, metric.name, choice)
        printed = [printed_number(FieldType.VALUE, values[model]) for model in order]
        # One alone is in no contest, and of those that score nothing none is the best.
        has_best = len(order) > 1 and metric.can_be_best(values[order[0]])
        rank = 1
        for at, model in enumerate(order):
            test = None
            if at:
                apart = values[model] - values[order[at - 1]]
                lower = estimates[at]
                above = estimates[at - 1]
                test = difference_of(choice, apart, lower, above, metric.name)
                if abs(apart) > _EQUAL:
                    rank = at + 1
            unranked = entries[model][metric.name]
            entries[model][metric.name] = replace(
                unranked,
                rank=rank,
                ranks=ranges[at] if len(order) > 1 else None,
                to_above=test,
                best=has_best and printed[at] == printed[0],
            )
    return entries


_EQUAL = 1e-9  # Points: values so near to each other are equal but for their last bits


def choice_among(models: int) -> BestOf:
    """Return how two models of a column are tested, which ranks so many.

    Their values decide who stands above whom: as of the best of many, tests hold for all pairs.
    """
    return BestOf(max(2, models))


def difference_of(
    choice: BestOf, value: float, left: Estimate | None, right: Estimate | None, metric: str
) -> Difference:
    """Subtract one model's value from another's in a column; its test holds for all its pairs.

    Every output tests two models of a column by this, whichever of them it names.

    Args:
        choice: how many models the column ranks.
        value: the difference, where one of the estimates is not known; there is no test then.
        left: what the first is tested by.
        right: what is subtracted.
        metric: the name of the column's metric.
    """
    if left is None or right is None:
        return Difference.untested(value, choice.family)
    return choice.difference(left, right, metric)


def _rankable(group: Mapping[str, Sequence[_Reported]]) -> list[str]:
    """Return the models that can be ranked among each other."""
    voters = {model for model, its in group.items() if any(is_favoured(each.run) for each in its)}
    others = [model for model in group if model not in voters]
    return others or list(group)


def _values(reported: Sequence[_Reported], metrics: Sequence[Metric]) -> dict[str, RankedValue]:
    """Make the values of a model, not ranked yet, by the names of metrics."""
    runs = [each.run for each in reported]
    estimate_of_model = mean_estimate(runs, metrics)
    intervals = metric_intervals(estimate_of_model)
    elsewhere = _values_elsewhere(reported, metrics)
    voted = any(run.voted for run in runs)
    values = {}
    for metric in metrics:
        value = estimate_of_model.value(metric.name)
        if value is not None:
            held_out = elsewhere.get(metric.name)
            # An interval of the best of many holds the true value too seldom.
            interval = None if held_out else intervals[metric.name]
            values[metric.name] = RankedValue(value, interval, held_out, voted=voted)
    return values


def _values_elsewhere(
    reported: Sequence[_Reported], metrics: Sequence[Metric]
) -> dict[str, ValueElsewhere]:
    """Return the values elsewhere of a model by metric; none if no format of it was chosen."""
    if all(each.elsewhere is None for each in reported):
        return {}
    tested = _tested_estimate(reported, metrics)
    if tested is None:
        return {metric.name: ValueElsewhere(None, None) for metric in metrics}
    intervals = metric_intervals(tested)
    return {
        metric.name: ValueElsewhere(tested.value(metric.name), intervals.get(metric.name))
        for metric in metrics
    }


def best_first(metric: Metric, values: Mapping[str, float]) -> list[str]:
    """Order models by their values of a metric; those of equal values by name."""
    # Rounded: equal values must not be ordered by their last bits.
    return sorted(values, key=lambda model: (metric.better.order(round(values[model], 9)), model))


def mean_estimate(runs: Sequence[Run], metrics: Sequence[Metric]) -> Estimate:
    """Estimate metrics of a run, or their mean over several."""
    estimates = [estimate_run(run, metrics) for run in runs]
    return mean_of_estimates(estimates) if len(estimates) > 1 else estimates[0]
