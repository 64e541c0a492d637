"""Which format is the best: the rule of search, sweep, leaderboard and report.

Formats are compared by their averages over datasets, which differ in the table, the frames or the
caption. The benchmark's ``ranking`` says which metrics count; failed calls count as wrong answers,
or a format would gain by failing on hard images. Values that look the same in print are ties: less
than a tenth of a percent is no reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean

from ..protocol import Benchmark, Better, DatasetVariant, Metric, Sums

# Means over other datasets cannot be compared: formats on the most datasets come first, and those
# on as many are compared over the datasets that all of them have
UNEVEN_DATASETS = "of those that were run on the most datasets"

_DIGITS = 1  # Digits of a value that are printed, and that formats are compared by


def ranking_rule(benchmark: Benchmark) -> str:
    """Say how a winner is chosen, in the words of every output."""

    def named(metric: Metric, highest: str) -> str:
        word = metric.name.istitle() and metric.name.isalpha()
        which = "lowest " if metric.better is Better.LOWER else highest
        return which + (metric.name.lower() if word else metric.name)

    first, *others = benchmark.ranking
    text = f"{named(first, 'highest ')}, averaged over the tables"
    if others:
        text += "; " + ", ".join(f"then {named(metric, '')}" for metric in others)
    digits = "a tenth"
    if all(metric.share for metric in benchmark.ranking):
        digits = "a tenth of a percent"
    return f"{text}, each to {digits}; then the order of the formats"


@dataclass(frozen=True, slots=True)
class FormatAverage:
    """One format's metrics, averaged over datasets.

    ``variant`` is any variant in this format; ``metric_values`` are by the names of the
    benchmark's ranking metrics, over the datasets that all formats with as many ``datasets`` have.
    """

    variant: DatasetVariant
    datasets: int
    metric_values: Mapping[str, float]

    @property
    def format(self) -> str:
        return self.variant.format


def rank_formats(
    benchmark: Benchmark, scored: Iterable[tuple[DatasetVariant, Sums]]
) -> list[FormatAverage]:
    """Rank the formats of one model, the best first, given (variant, sums of the run)."""
    return ranked_by_values(
        benchmark, [(variant, ranking_values(benchmark, sums)) for variant, sums in scored]
    )


def ranking_values(benchmark: Benchmark, sums: Sums) -> dict[str, float]:
    """Return the values that formats are ranked by, of a run, by the names of metrics."""
    return {metric.name: metric.rank_value(sums) for metric in benchmark.ranking}


def ranked_by_values(
    benchmark: Benchmark, scored: Iterable[tuple[DatasetVariant, Mapping[str, float]]]
) -> list[FormatAverage]:
    """Rank the formats of one model, the best first, given (variant, ranking values of the run)."""
    by_format: dict[str, dict[str, tuple[DatasetVariant, Mapping[str, float]]]] = {}
    for variant, values in scored:
        by_format.setdefault(variant.format, {})[variant.board_dataset] = variant, values
    averages = []
    for by_dataset in by_format.values():
        rivals = (set(other) for other in by_format.values() if len(other) == len(by_dataset))
        # Where no dataset is common to all, each is ranked by those that it has.
        shared = set.intersection(*rivals) or set(by_dataset)
        known = [values for dataset, (_, values) in by_dataset.items() if dataset in shared]
        means = {
            metric.name: fmean(values[metric.name] for values in known)
            for metric in benchmark.ranking
        }
        first, _ = next(iter(by_dataset.values()))
        averages.append(FormatAverage(first, len(by_dataset), means))
    return sorted(averages, key=lambda average: _rank(benchmark, average))


def _rank(benchmark: Benchmark, average: FormatAverage) -> tuple[object, ...]:
    values = []
    for metric in benchmark.ranking:
        value = round(average.metric_values[metric.name], _DIGITS)
        values.append(metric.better.order(value))
    return (-average.datasets, *values, average.variant.format_place)
