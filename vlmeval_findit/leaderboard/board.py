"""Figures, intervals, averages and ranks: models x datasets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ..core.benchmark import Benchmark, Published
from ..core.estimate import Estimate, mean
from ..core.formatting import nearest
from ..core.metric import Better, Metric
from ..core.statistics import Difference, Interval, correct, difference, metric_intervals
from ..runs.run_statistics import estimate
from ..runs.scored_run import Run
from .comparable import ComparableRuns, ExcludedRun, group_comparable
from .formats import (
    EVERY_MODEL,
    FLAG,
    HALF,
    FormatError,
    FormatRow,
    choose,
    format_rows,
    split,
    wanted_formats,
)

HOME = "FindIt"
"""The benchmark that goes first, and whose files lie in a folder itself."""

OVERALL = "Overall"


TIED = "≈"
"""Stands at a rank whose difference to the one above is not significant."""

UNTOLD = "?"
"""Stands at a rank where too few pictures count to test the difference to the one above."""


@dataclass(frozen=True, slots=True)
class RankedValue:
    """One figure of a model, in percent, with its rank among the models of its column.

    ``rank`` is None for a model with failed calls, where the figure is over answered calls only.
    ``to_above`` is the paired difference to the model one rank above, corrected for the comparisons
    of its column by this figure; None for the first, and where there is no rank.
    """

    value: float
    interval: Interval | None
    rank: int | None = None
    to_above: Difference | None = None

    @property
    def tested(self) -> bool:
        """Whether there are enough pictures to test the difference to the one above."""
        return self.to_above is not None and self.to_above.p_value is not None

    @property
    def mark(self) -> str:
        """The sign of a difference to the one above that may be chance; empty where it is none."""
        if self.to_above is None or self.to_above.significant:
            return ""
        return TIED if self.tested else UNTOLD


@dataclass(frozen=True, slots=True)
class BoardCell:
    """A model in a column, or in an average over columns (``run`` is None then).

    ``tried`` is in how many formats the model was asked these queries, or some of them: of a mean
    the most of its columns.  ``entries`` are by the names of metrics; what has no figure has no
    entry.
    """

    model: str
    column: str
    run: Run | None
    queries: int
    failures: int
    tried: int
    entries: Mapping[str, RankedValue]

    @property
    def format(self) -> str:
        return self.run.question.format if self.run else ""


@dataclass(frozen=True, slots=True)
class DatasetMean:
    """The mean over columns: of a family, or of all."""

    name: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Board:
    """The leaderboard of one benchmark.

    ``models`` stand in order of their overall headline figure; those that lack a column come last,
    because they have no average that could be compared.  ``headline`` counts failed calls as
    misses, as formats are chosen; where no call failed it is the benchmark's own, which is the same
    then.  ``cells`` are by (model, column or average); ``sweep`` holds every comparable run;
    ``apart`` the runs that are not in it; ``published`` the figures of others in its columns.
    ``chosen_on`` is what models' formats were chosen on, where it is not what is reported
    (:func:`.formats.split`).
    """

    benchmark: Benchmark
    headline: Metric
    models: tuple[str, ...]
    columns: tuple[ComparableRuns, ...]
    averages: tuple[DatasetMean, ...]
    cells: Mapping[tuple[str, str], BoardCell]
    sweep: tuple[FormatRow, ...]
    apart: tuple[ExcludedRun, ...]
    published: tuple[Published, ...] = ()
    chosen_on: str = ""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """All of its figures; by the first, in which failed calls are misses, models are ordered.

        Files for programs have them all, so that their columns are the same whoever was asked.
        """
        return self.benchmark.all_metrics

    @property
    def shown(self) -> tuple[Metric, ...]:
        """What people are shown: the headline, and metrics that anybody has a figure of here."""
        found = {name for cell in self.cells.values() for name in cell.entries}
        found |= {name for one in self.published for name in one.values}
        found -= {self.headline.name, self.benchmark.with_failures.name}
        return (self.headline, *(metric for metric in self.metrics if metric.name in found))

    def names(self) -> list[str]:
        """Averages, then columns: the order in which tables show them."""
        return [average.name for average in self.averages] + [c.name for c in self.columns]


def boards(
    runs: Iterable[Run], formats: Sequence[str] = (), choose_on: Sequence[str] = ()
) -> list[Board]:
    """The leaderboards of runs, one a benchmark: FindIt's first, then by name.

    Args:
        runs: any, at least one.
        formats: ``[MODEL=]FORMAT`` to report instead of a model's best, wherever there is such.
        choose_on: datasets to choose a model's best on, wherever there are such, or ``half``.

    Raises:
        FormatError: a format or a dataset that no run has.
    """
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.benchmark.name, []).append(run)
    every = [run for group in groups.values() for run in group]
    wanted_formats(formats, every)
    columns = sorted({run.question.column for run in every})
    for name in choose_on:
        if name not in (HALF, *columns):
            raise FormatError(f"{FLAG} {name}: no dataset of these runs{nearest(name, columns)}")
    return [
        make_board(
            groups[name],
            [entry for entry in formats if _has(entry, groups[name])],
            [on for on in choose_on if on in (HALF, *(r.question.column for r in groups[name]))],
        )
        for name in sorted(groups, key=lambda name: (name != HOME, name))
    ]


def _has(entry: str, runs: Sequence[Run]) -> bool:
    try:
        wanted_formats([entry], runs)
    except FormatError:
        return False
    return True


def make_board(
    runs: Sequence[Run], formats: Iterable[str] = (), choose_on: Sequence[str] = ()
) -> Board:
    """The leaderboard of scored runs of one benchmark, at least one.

    Args:
        runs: those that cannot be compared are set apart.
        formats: ``[MODEL=]FORMAT`` to report instead of a model's best.
        choose_on: datasets to choose a model's best on, or ``half``: what is chosen on is not
            reported (:func:`.formats.split`).

    Raises:
        FormatError: a format or a dataset that no comparable run has.
    """
    benchmark = runs[0].benchmark
    metrics = benchmark.all_metrics
    columns, apart = group_comparable(runs)
    comparable = [run for column in columns for run in column.runs]
    wanted = wanted_formats(formats, comparable)
    if choose_on:
        choosing, columns, chosen_on = split(columns, choose_on)
        chosen = choose(columns, wanted, choosing)
        apart = (*apart, *_undecided(columns, chosen, wanted, choose_on))
    else:
        chosen, chosen_on = choose(columns, wanted), ""
    averages = tuple(_averages(columns))
    names = {column.name for column in columns}
    cells = {}
    for name, mine in _groups(columns, averages, chosen).items():
        entries = _entries(mine, metrics)
        for model, own in mine.items():
            cells[model, name] = BoardCell(
                model=model,
                column=name,
                run=own[0] if name in names else None,
                queries=sum(len(run.rows) for run in own),
                failures=sum(run.failed for run in own),
                tried=max(_tried(run, runs) for run in own),
                entries=entries[model],
            )
    models = {model for model, _ in chosen}
    return Board(
        benchmark=benchmark,
        headline=metrics[0] if any(run.failed for run in comparable) else benchmark.metrics[0],
        models=tuple(_ordered(models, columns, cells, metrics[0].name)),
        columns=columns,
        averages=averages,
        cells=cells,
        sweep=tuple(format_rows(columns, chosen)),
        apart=apart,
        published=tuple(one for one in benchmark.published() if one.column in names),
        chosen_on=chosen_on,
    )


def _undecided(
    columns: Sequence[ComparableRuns],
    chosen: Mapping[tuple[str, str], Run],
    wanted: Mapping[str, str],
    choose_on: Sequence[str],
) -> Iterable[ExcludedRun]:
    """The runs of models whose format nothing decides on what it was to be chosen on."""
    known = {model for model, _ in chosen} | set(wanted)
    reason = f"nothing of its model's formats is in {FLAG} {' '.join(choose_on)} to choose one by"
    for column in columns:
        for run in column.runs:
            if run.model not in known and EVERY_MODEL not in wanted:
                yield ExcludedRun(run, reason)


def _averages(columns: Sequence[ComparableRuns]) -> Iterable[DatasetMean]:
    yield DatasetMean(OVERALL, tuple(column.name for column in columns))
    for family in sorted({column.family for column in columns}):
        yield DatasetMean(family, tuple(c.name for c in columns if c.family == family))


Group = Mapping[str, Sequence[Run]]
"""The runs of models in a dataset (one each), or in all datasets of an average."""


def _groups(
    columns: Sequence[ComparableRuns],
    averages: Sequence[DatasetMean],
    chosen: Mapping[tuple[str, str], Run],
) -> dict[str, Group]:
    """Group the reported runs by dataset and average.

    An average has the models that have all of its datasets: a mean over others would not be
    comparable.
    """
    models = sorted({model for model, _ in chosen})
    places: list[tuple[str, Sequence[str]]] = [(one.name, [one.name]) for one in columns]
    places += [(one.name, one.columns) for one in averages]
    return {
        name: {
            model: [chosen[model, dataset] for dataset in datasets]
            for model in models
            if all((model, dataset) in chosen for dataset in datasets)
        }
        for name, datasets in places
    }


def _tried(run: Run, every: Sequence[Run]) -> int:
    """In how many formats its model was asked the queries of a run, or some of them.

    A search over a part of the rows is not comparable, and chose the format all the same.
    """
    asked = {
        other.question.format
        for other in every
        if (other.model, other.question.column) == (run.model, run.question.column)
        and other.provenance.table_sha256 == run.provenance.table_sha256
        and not other.provenance.rows.isdisjoint(run.provenance.rows)
    }
    return len(asked)


def _entries(group: Group, metrics: Sequence[Metric]) -> dict[str, dict[str, RankedValue]]:
    """Make the values of the models of one group, with a rank by each metric on its own.

    By the first of the metrics, in which failed calls are misses, all are ranked.  The others are
    over answered calls: who failed on hard images would gain by it, and has no rank.
    """
    entries: dict[str, dict[str, RankedValue]] = {}
    for model, runs in group.items():
        found = _estimate(runs, metrics)
        bounds = _intervals(found, runs)
        values = {metric.name: found.value(metric.name) for metric in metrics}
        entries[model] = {
            name: RankedValue(value, bounds[name])
            for name, value in values.items()
            if value is not None
        }
    for metric in metrics:
        every = metric is metrics[0]
        ranked = [
            model
            for model, runs in group.items()
            if metric.name in entries[model] and (every or not any(run.failed for run in runs))
        ]
        _rank(ranked, group, metric, entries)
    return entries


def _rank(
    models: Iterable[str],
    group: Group,
    metric: Metric,
    entries: Mapping[str, dict[str, RankedValue]],
) -> None:
    """Put ranks by one metric, and tests against the rank above, into the entries of models."""
    # Rounded: equal values must not be ordered by their last bits.
    sign = 1 if metric.better is Better.LOWER else -1
    order = sorted(models, key=lambda m: (sign * round(entries[m][metric.name].value, 9), m))
    estimates = (_estimate(group[model], (metric,)) for model in order)
    tests = correct(difference(one, above, metric.name) for above, one in pairwise(estimates))
    rank = 1
    for place, model in enumerate(order):
        to_above = tests[place - 1] if place else None
        if to_above is not None and abs(to_above.value) > 1e-9:
            rank = place + 1
        entry = entries[model][metric.name]
        entries[model][metric.name] = replace(entry, rank=rank, to_above=to_above)


def _estimate(runs: Sequence[Run], metrics: Sequence[Metric]) -> Estimate:
    """The values of a model and what they rest on.

    Made when they are wanted, for two models at a time: those of a thousand are as many numbers as
    all their images together.
    """
    found = [estimate(run, metrics) for run in runs]
    return mean(found) if len(found) > 1 else found[0]


def _intervals(found: Estimate, runs: Sequence[Run]) -> dict[str, Interval | None]:
    """The intervals of a model's values, given what they rest on."""
    bounds = metric_intervals(found)
    lacking = [one for one in found.metrics if one.name in bounds and bounds[one.name] is None]
    if len(runs) > 1 and lacking:
        parts = [estimate(run, found.metrics) for run in runs]
        bounds |= {one.name: _over_all(parts, one) for one in lacking}
    return bounds


def _over_all(parts: Sequence[Estimate], metric: Metric) -> Interval | None:
    """The interval of a mean of which some datasets have too few images for one of their own.

    Those count as anything from 0 to 100 %: that is all that so few images tell.
    """
    enough = [part for part in parts if part.counted[part.place(metric.name)]]
    inner = metric_intervals(mean(enough)).get(metric.name) if enough else None
    if inner is None or not metric.share:
        return None
    known = len(enough) / len(parts)
    return Interval(known * inner.low, known * inner.high + 100 * (1 - known))


def _ordered(
    models: Iterable[str],
    columns: Sequence[ComparableRuns],
    cells: Mapping[tuple[str, str], BoardCell],
    headline: str,
) -> list[str]:
    def place(model: str) -> tuple[float, float, str]:
        overall = cells.get((model, OVERALL))
        figure = overall.entries.get(headline) if overall is not None else None
        if figure is not None:
            return -1.0, -figure.value, model
        have = sum((model, column.name) in cells for column in columns)
        return 0.0, -have, model

    return sorted(models, key=place)
