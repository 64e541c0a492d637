"""What a format is worth on images that did not choose it: a model's answers *elsewhere*.

The best of many formats is optimistic on the images that it was chosen on. So it is chosen twice,
by each half of the images, with the rule of :mod:`.best_format`; each half is answered by the
format that is best on the other (:mod:`..statistics.held_out_sums`). No call is needed.

Formats of a dataset are compared by their mean over the datasets that all of them have. On a board
all candidates were asked the same queries. In a race those that it dropped were asked fewer: they
are compared with the winner over those, and a query that the best format was not asked is answered
by the next best one that was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite

import numpy as np

from ..protocol import Benchmark, Metric, RowTable, failed_calls, indices
from ..scoring import Run
from ..statistics import (
    FEWEST_IMAGES,
    Chosen,
    ClusteredSums,
    Estimate,
    Indices,
    clustered_sums,
    estimate_metrics,
    join_rows,
    mean_of_estimates,
    names_of_sums,
    second_half,
    totals_of,
)
from .best_format import ranked_by_values, ranking_values
from .run_statistics import estimate_run

ELSEWHERE = "elsewhere"  # What a value on images that did not choose the format is called
# How the value elsewhere is made, for legends
ELSEWHERE_MEANING = "each half of the images in the format that is best on the other half"

# Why a run has no value elsewhere
TOO_FEW_TO_CHOOSE = f"it needs {2 * FEWEST_IMAGES} images: {FEWEST_IMAGES} in each half"
RANDOM_ROWS = "random rows of its reviews stand for others"


@dataclass(frozen=True, slots=True)
class Answers:
    """Some answers of a run, by the indices of their queries."""

    run: Run
    queries: Indices

    @property
    def failed(self) -> int:
        """Number of failed calls among them."""
        if not self.run.failed:
            return 0
        is_here = np.isin(indices(self.run.rows), self.queries)
        return int((is_here & np.array(failed_calls(self.run.rows))).sum())


@dataclass(frozen=True, slots=True)
class HeldOutAnswers:
    """A model's answers on a dataset, each in a format that was chosen without its image."""

    reported: Run  # In the format that was chosen by all images
    answers: tuple[Answers, ...]  # Empty if they are not known
    unknown: str = ""  # Why they are not known

    @property
    def failed(self) -> int:
        """Number of failed calls among the answers."""
        return sum(each.failed for each in self.answers)

    def estimate(self, metrics: Sequence[Metric]) -> Estimate | None:
        """Estimate metrics of the answers; None if they are not known."""
        if not self.answers:
            return None
        parts = []
        for each in self.answers:
            clustered = _few_sums(each.run, metrics)
            parts.append((clustered, clustered.of_queries(each.queries)))
        images = tuple(sorted({name for clustered, _ in parts for name in clustered.images}))
        return estimate_metrics(metrics, join_rows(parts, images))


def held_out_answers(
    reported: Mapping[str, Run], tried: Mapping[str, Sequence[Run]]
) -> dict[str, HeldOutAnswers]:
    """Return the answers of one model elsewhere, by dataset; none where it had no choice.

    Args:
        reported: the reported run of each dataset.
        tried: the runs of each dataset that were asked some of its queries, a run a format; the
            reported run is one of them.
    """
    formats = _FormatsTried(reported, tried)
    answers = {}
    for dataset, run in reported.items():
        pool = formats.pool(dataset)
        if len(pool) > 1:
            answers[dataset] = _answers(formats, dataset, run, pool)
    return answers


def estimate_of_choice(
    reported: Mapping[str, Run], tried: Mapping[str, Sequence[Run]], metrics: Sequence[Metric]
) -> Estimate | str | None:
    """Estimate metrics of one model elsewhere: a mean over datasets.

    None if it had no choice; the reason, if they are not known. The arguments are those of
    :func:`held_out_answers`.
    """
    answers = held_out_answers(reported, tried)
    if not answers:
        return None
    estimates = []
    for dataset, run in reported.items():
        held_out = answers.get(dataset)
        known = estimate_run(run, metrics) if held_out is None else held_out.estimate(metrics)
        if known is None:
            return answers[dataset].unknown
        estimates.append(known)
    return mean_of_estimates(estimates)


def _answers(
    formats: _FormatsTried, dataset: str, run: Run, pool: frozenset[str]
) -> HeldOutAnswers:
    runs = [each for each in formats.tried[dataset] if each.variant.format in pool]
    if any(each.random for each in runs):
        return HeldOutAnswers(run, (), RANDOM_ROWS)
    asked = _Asked.of(run)
    if not _has_two_halves(asked, runs, run):
        return HeldOutAnswers(run, (), TOO_FEW_TO_CHOOSE)
    free = np.ones(len(asked.queries), dtype=bool)
    answers = []
    by_format = {each.variant.format: each for each in runs}
    for half in (False, True):
        for name in formats.order(pool, not half):
            if name in by_format:
                mine = free & asked.in_half(half) & asked.are_asked(by_format[name])
                answers.append(Answers(by_format[name], asked.queries[mine]))
                free &= ~mine
    return HeldOutAnswers(run, tuple(each for each in answers if len(each.queries)))


def _has_two_halves(asked: _Asked, runs: Sequence[Run], reported: Run) -> bool:
    """Return whether each half has images enough that other formats were asked about."""
    others = [asked.are_asked(each) for each in runs if each is not reported]
    compared = np.any(others, axis=0)
    counts = [len(np.unique(asked.image[compared & asked.in_half(half)])) for half in (False, True)]
    return min(counts) >= FEWEST_IMAGES


@dataclass(frozen=True, slots=True)
class _Asked:
    """The queries of a run, in the order of their indices."""

    queries: Indices
    image: Indices
    second: Chosen  # Whether the image of each is in the second half

    @classmethod
    def of(cls, run: Run) -> _Asked:
        clustered = _few_sums(run, ())
        assert clustered.query is not None
        queries, first = np.unique(clustered.query, return_index=True)
        image = clustered.image[first]
        return cls(queries, image, second_half(clustered.images)[image])

    def in_half(self, half: bool) -> Chosen:
        mask: Chosen = self.second == half
        return mask

    def are_asked(self, run: Run) -> Chosen:
        """Return which of the queries another run was asked, too."""
        mask: Chosen = np.isin(self.queries, indices(run.rows))
        return mask


def _few_sums(run: Run, metrics: Iterable[Metric]) -> ClusteredSums:
    """Return the sums of a run that metrics need, and no others."""
    rows = run.rows
    if isinstance(rows, RowTable) and rows.parts is None:
        names, kinds = names_of_sums(metrics)
        sums = {name: column for name, column in rows.sums.items() if name in names}
        slices = {kind: column for kind, column in rows.slices.items() if kind in kinds}
        rows = replace(rows, sums=sums, slices=slices)
    return clustered_sums(rows, run.variant.images)


# --- the choice -----------------------------------------------------------------------------------

_HALVES = (None, False, True)  # All images, the first half, the second half
_Values = Mapping[str, float]  # That formats are ranked by


@dataclass(frozen=True)
class _FormatsTried:
    """The formats of one model, and how each half of the images ranks them."""

    reported: Mapping[str, Run]
    tried: Mapping[str, Sequence[Run]]

    def pool(self, dataset: str) -> frozenset[str]:
        """Return the formats that a dataset's reported format was chosen from.

        These are all that were tried on it. Where one of them is better than the reported one, its
        value was not what decided: then they are those that were run on as many datasets.
        """
        source = self._source(dataset)
        names = self._formats[source]
        best = self.reported[source].variant.format
        if len(names) < 2 or self.order(names, None)[0] == best:
            return names
        datasets = {name: self._count(name) for name in names}
        return frozenset(name for name in names if datasets[name] >= datasets[best])

    def _source(self, dataset: str) -> str:
        """Return the dataset that chooses: reviews of labels must not."""
        labelled = self.reported[dataset].variant.board_dataset
        return labelled if labelled in self.reported else dataset

    @cached_property
    def _formats(self) -> Mapping[str, frozenset[str]]:
        return {
            dataset: frozenset(run.variant.format for run in runs)
            for dataset, runs in self.tried.items()
        }

    def _count(self, name: str) -> int:
        """Return the number of datasets that a format was run on."""
        return sum(name in names for names in self._formats.values())

    @cached_property
    def _benchmark(self) -> Benchmark:
        return next(iter(self.reported.values())).benchmark

    @cached_property
    def _orders(self) -> dict[tuple[frozenset[str], bool | None], list[str]]:
        return {}

    def order(self, pool: frozenset[str], half: bool | None) -> list[str]:
        """Return the formats of a pool by one of :data:`_HALVES`, the best first.

        They are ranked by their mean over the datasets that all of them have.
        """
        if (pool, half) not in self._orders:
            scored = []
            for dataset in self._choosing:
                if not pool <= self._formats[dataset]:
                    continue
                for run in self.tried[dataset]:
                    values = self._values[dataset][run.variant.format][_HALVES.index(half)]
                    if run.variant.format in pool and values is not None:
                        scored.append((run.variant, values))
            ranked = ranked_by_values(self._benchmark, scored)
            self._orders[pool, half] = [each.format for each in ranked]
        return self._orders[pool, half]

    @cached_property
    def _choosing(self) -> list[str]:
        return list(dict.fromkeys(map(self._source, self.reported)))

    @cached_property
    def _values(self) -> Mapping[str, Mapping[str, list[_Values | None]]]:
        """The values of formats by dataset and format: of each of :data:`_HALVES`."""
        return {
            dataset: {
                run.variant.format: self._values_of(run, self.reported[dataset])
                for run in self.tried[dataset]
            }
            for dataset in self._choosing
        }

    def _values_of(self, run: Run, reported: Run) -> list[_Values | None]:
        """Return the values of a run; of one with fewer queries, as if it had been asked all.

        It is then as far from the reported run as over the queries that both were asked.
        """
        its = _few_sums(run, self._benchmark.ranking)
        if run.provenance.rows == reported.provenance.rows:
            return [ranking_values(self._benchmark, totals_of(its, m)) for m in _masks(its)]
        base = _few_sums(reported, self._benchmark.ranking)
        shared = np.array(sorted(run.provenance.rows & reported.provenance.rows))
        values: list[_Values | None] = []
        for of_run, of_base in zip(_masks(its), _masks(base), strict=True):
            both = its.of_queries(shared) & of_run
            if not both.any():
                values.append(None)
                continue
            here = ranking_values(self._benchmark, totals_of(its, both))
            in_base = base.of_queries(shared) & of_base
            there = ranking_values(self._benchmark, totals_of(base, in_base))
            whole = ranking_values(self._benchmark, totals_of(base, of_base))
            as_if = {name: whole[name] + here[name] - there[name] for name in whole}
            # Without an answer a mean of amounts is infinite.
            values.append(as_if if all(map(isfinite, as_if.values())) else None)
        return values


def _masks(clustered: ClusteredSums) -> list[Chosen]:
    """Return the rows of each of :data:`_HALVES`."""
    second = second_half(clustered.images)[clustered.image]
    return [np.ones(len(second), dtype=bool), ~second, second]
