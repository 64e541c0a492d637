"""A race of formats: who is asked how many queries, and who is out. Nothing is asked here.

All formats are asked about the same images, a few more each round. After a round those formats are
dropped that would hardly be better than the leading format, by however little, over all queries
(:func:`..statistics.intervals.chance_of_lead`). The sum of their chances limits how likely the
race drops the format that a search over all queries chooses. It stays below :data:`ALPHA` over all
rounds, stages and formats, and is spent on the least likely formats first, little of it early.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from ..protocol import AnyDataset, Benchmark, DatasetVariant, ScoredRow, picture_places, sum_rows
from ..statistics import (
    ALPHA,
    Estimate,
    chance_of_lead,
    clustered_sums,
    estimate_metrics,
    least_likely,
    mean_of_estimates,
)
from .best_format import FormatAverage, rank_formats

# How much of all images has been asked about after each round; at last all
RACE_ROUNDS = tuple(tenths / 10 for tenths in range(2, 11))

# How formats are dropped, in the words of every output
RULE = (
    "after each round those formats are dropped that would hardly be better than the leading "
    "format over all queries, by however little; the chances of all that are dropped add up to "
    f"{100 * ALPHA:g} % at most"
)


def rounds_of(dataset: AnyDataset, rows: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the rows that are asked by the end of each round, in their order.

    Each round holds those before it. Images come whole, in the order in which samples are drawn
    (:mod:`..protocol.picture_sample`).
    """
    queries = dataset.queries
    place = picture_places(queries, rows)
    return [
        tuple(row for row in rows if place[queries[row].images] < ceil(share * len(place)))
        for share in RACE_ROUNDS
    ]


# --- who is out -----------------------------------------------------------------------------------

# The rows of one format so far, by variant: one a table
Scored = Mapping[DatasetVariant, Sequence[ScoredRow]]


@dataclass(frozen=True, slots=True)
class Elimination:
    """A format that is out: its points behind the format in front, and the chance that it had."""

    format: str
    points: float
    chance: float


class RoundResult(NamedTuple):
    """After a round: the formats that go on, the best first, and those that are out."""

    going: tuple[FormatAverage, ...]
    out: tuple[Elimination, ...]


def rank_round(
    benchmark: Benchmark, runners: Mapping[str, Scored], share: float, allowed: float
) -> RoundResult:
    """Decide which formats go on after a round, given the rows of each over the same queries.

    The benchmark's ranking decides which format leads, its first metric which are dropped. They are
    a ``share`` of all queries (1: no format is dropped). The chances of those that are dropped now
    add up to ``allowed`` at most.
    """
    scored = []
    for rows_by_variant in runners.values():
        scored += [(variant, sum_rows(rows)) for variant, rows in rows_by_variant.items()]
    order = rank_formats(benchmark, scored)
    front = order[0].format
    metric = benchmark.ranking[0]
    estimates = {name: _estimate(benchmark, rows) for name, rows in runners.items()}
    chances: dict[str, float] = {}
    # Nothing is left to predict where all was asked: the ranking decides.
    if share < 1:
        for average in order[1:]:
            name = average.format
            chance = chance_of_lead(estimates[name], estimates[front], metric.name, share)
            if chance is not None:
                chances[name] = chance
    out = []
    for name in least_likely(chances, allowed):
        points = 100 * float(estimates[name].values[0] - estimates[front].values[0])
        out.append(Elimination(name, points, chances[name]))
    names = {each.format for each in out}
    going = [average for average in order if average.format not in names]
    return RoundResult(tuple(going), tuple(out))


def _estimate(benchmark: Benchmark, scored: Scored) -> Estimate:
    first = benchmark.ranking[:1]
    sums = (clustered_sums(rows, variant.images) for variant, rows in scored.items())
    return mean_of_estimates([estimate_metrics(first, each) for each in sums])
