"""Objects with several expressions: does a model find each by all of its words?

RefCOCO has 2.8 expressions an object, Ref-L4 2.4. What a run found is known from its sums; which
expressions name one object, from its table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations

from ..core import file_sha256
from ..data import load_dataset
from ..protocol import DatasetNameError, Metric, ScoredRow
from ..scoring import Run
from ..statistics import Interval, clustered_sums, estimate_metrics, metric_intervals
from ..storage import TableError
from .run_statistics import HIT_SCORE

# Over the expressions of objects that have several
FOUND = Metric("found", {"found": 1}, {"expressions": 1}, empty=None)
# The share of objects that are found by each of their expressions
WORST_OF_K = Metric("worst of k", {"always found": 1}, {"objects": 1}, empty=None)
# The share of pairs of expressions of one object of which both find it, or neither
AGREEMENT = Metric("agreement", {"agreeing": 1}, {"pairs": 1}, empty=None)

# What is measured of objects with several expressions
WORDED_METRICS = (FOUND, WORST_OF_K, AGREEMENT)


@dataclass(frozen=True, slots=True)
class WordedObjects:
    """What a run made of objects that have several expressions."""

    objects: int
    expressions: int
    values: Mapping[str, float | None]  # By the names of :data:`WORDED_METRICS`, in percent
    intervals: Mapping[str, Interval | None]


def find_by_all_words(run: Run, names: Mapping[int, str]) -> WordedObjects | None:
    """Measure how a run depends on the words; None where no object has several expressions.

    An expression finds its object if the headline is at least 50 % for it; failed calls find
    nothing.

    Args:
        run: over expressions.
        names: what each row names, of :func:`objects_named`.
    """
    if run.random is not None:
        return None
    metric = run.benchmark.headline_counting_failures
    by_object: dict[str, list[ScoredRow]] = {}
    for row in run.rows:
        if row.index in names:
            by_object.setdefault(names[row.index], []).append(row)
    rows = [_row_of_object(each, metric) for each in by_object.values() if len(each) > 1]
    if not rows:
        return None
    estimate = estimate_metrics(WORDED_METRICS, clustered_sums(rows, run.variant.images))
    return WordedObjects(
        objects=len(rows),
        expressions=int(sum(row.sums["expressions"] for row in rows)),
        values={metric.name: estimate.value(metric.name) for metric in WORDED_METRICS},
        intervals=metric_intervals(estimate),
    )


def _row_of_object(rows: Sequence[ScoredRow], metric: Metric) -> ScoredRow:
    """Return the sums of an object, given the rows of its expressions."""
    found = [(metric.value(row.sums) or 0.0) >= HIT_SCORE for row in rows]
    pairs = list(combinations(found, 2))
    sums = {
        "found": sum(found),
        "expressions": len(found),
        "always found": int(all(found)),
        "objects": 1,
        "agreeing": sum(one == other for one, other in pairs),
        "pairs": len(pairs),
    }
    return ScoredRow(rows[0].index, rows[0].source, sums)


def objects_named(run: Run) -> Mapping[int, str]:
    """Return by row what the expressions of a run's table name, alike for one object.

    It is empty where queries are no expressions, and where the table is not there any more or is
    another one.
    """
    benchmark = run.benchmark
    if not benchmark.names_objects(run.variant):
        return {}
    with suppress(DatasetNameError, OSError, TableError):
        dataset = load_dataset(run.variant.name)
        if file_sha256(dataset.table) == run.provenance.table_sha256:
            named = {at: benchmark.object_of(query) for at, query in dataset.queries.items()}
            return {at: each for at, each in named.items() if each}
    return {}
