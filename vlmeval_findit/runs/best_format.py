"""Which format is the best: the rule of search, sweep, leaderboard and report.

Formats are compared by their averages over datasets, which differ in the table, the frames or the
caption. The benchmark's ``ranking`` says which metrics count; failed calls count as wrong answers,
or a format would gain by failing on hard images. Values that are printed alike are ties: less than
a tenth of a percent is no reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean

from ..core.benchmark_protocol import Benchmark
from ..core.metric import Better, Metric
from ..core.question import Question

UNEVEN = "of those that were run on the most datasets"
"""Means over other datasets cannot be compared: those over the most datasets come first."""

_DIGITS = 1  # Digits of a value that are printed, and that formats are compared by


def rule(benchmark: Benchmark) -> str:
    """Say how a winner is chosen, in the words of every output."""
    first, *others = benchmark.ranking
    parts = [f"{_lowest(first) or 'highest '}{_in_text(first.name)}, averaged over the tables"]
    if others:
        parts.append(
            ", ".join(f"then {_lowest(metric)}{_in_text(metric.name)}" for metric in others)
        )
    of = " of a percent" if all(metric.share for metric in benchmark.ranking) else ""
    return f"{'; '.join(parts)}, each to a tenth{of}; then the order of the formats"


def _lowest(metric: Metric) -> str:
    return "lowest " if metric.better is Better.LOWER else ""


def _in_text(name: str) -> str:
    """Return the name of a metric within a sentence, in lower case if it is a word."""
    return name.lower() if name.istitle() and name.isalpha() else name


def worst(metric: Metric) -> float:
    """Return the value of a format without an answer."""
    if metric.better is Better.HIGHER:
        return 0.0
    return metric.scale if metric.share else math.inf


@dataclass(frozen=True, slots=True)
class FormatAverage:
    """One format's metrics, averaged over datasets.

    ``question`` is any question in this format; ``metric_values`` are by the benchmark's
    ranking metrics' names.
    """

    question: Question
    datasets: int
    metric_values: Mapping[str, float]

    @property
    def format(self) -> str:
        return self.question.format


def ranked(
    benchmark: Benchmark, scored: Iterable[tuple[Question, Mapping[str, float]]]
) -> list[FormatAverage]:
    """Rank the formats of one model, the best first, given (question, sums of the run)."""
    by_format: dict[str, dict[str, tuple[Question, Mapping[str, float]]]] = {}
    for question, sums in scored:
        by_format.setdefault(question.format, {})[question.board_dataset] = question, sums
    averages = [_average(benchmark, list(of.values())) for of in by_format.values()]
    return sorted(averages, key=lambda average: _rank(benchmark, average))


def _average(
    benchmark: Benchmark, columns: list[tuple[Question, Mapping[str, float]]]
) -> FormatAverage:
    return FormatAverage(
        question=columns[0][0],
        datasets=len(columns),
        metric_values={
            metric.name: fmean(_value(metric, sums) for _, sums in columns)
            for metric in benchmark.ranking
        },
    )


def _value(metric: Metric, sums: Mapping[str, float]) -> float:
    value = metric.value(sums)
    return worst(metric) if value is None else value


def _rank(benchmark: Benchmark, average: FormatAverage) -> tuple[object, ...]:
    best = (
        round(average.metric_values[metric.name], _DIGITS)
        * (1 if metric.better is Better.LOWER else -1)
        for metric in benchmark.ranking
    )
    return (-average.datasets, *best, average.question.format_place)
