"""The figures as ratios of sums, and which parts of the benchmark a question belongs to.

Questions without a known answer are counted and in no other sum.  Failed calls are in those figures
alone that say so, and in the published one, whose authors read them like any reply.
"""

from __future__ import annotations

from ...core.metric import Better, Metric, sliced
from .choice import Reason
from .query import VPQuery

SHAPES = ("box", "oval", "arrow", "mask", "contour", "tag", "point", "scribble")
"""Of marks, by our names."""

ACCURACY = Metric("Accuracy", {"right": 1}, {"answered": 1}, empty=None, key="accuracy")

AS_PUBLISHED = Metric(
    "Accuracy (as published)",
    {"right_as_published": 1},
    {"asked": 1},
    empty=None,
    key="accuracy_as_published",
)
"""By the authors' reading; rounded to four digits of a share of 1 it is their score."""

HALLUCINATION = Metric(
    "Hallucination rate",
    {"hallucinated": 1},
    {"absent": 1},
    empty=None,
    key="hallucination_rate",
    better=Better.LOWER,
)
"""Wrong letters to questions about a mark that is not there."""

READ = Metric("Read", {"read": 1}, {"answered": 1}, empty=None, key="read")
"""Replies that a letter could be taken from."""


def shape_metric(shape: str) -> Metric:
    """The published accuracy on the questions about marks of one shape."""
    return Metric(
        f"{shape} (as published)",
        {sliced("right_as_published", "shape", shape): 1},
        {sliced("asked", "shape", shape): 1},
        empty=None,
        in_short_tables=False,
        key=f"{shape}_as_published",
    )


SOURCES = ("MIA", "3D", "emotion", "street", "GUI", "SGG")
"""Of stage 2."""

MEAN_OVER_SOURCES = Metric(
    "Mean over sources (as published)",
    {"right_as_published": 1},
    {"asked": 1},
    over="source",
    empty=None,
    in_short_tables=False,
    key="sources_as_published",
)
"""Every source counts alike, however many questions it has."""


def source_metric(source: str) -> Metric:
    """The published accuracy on the questions of one source of stage 2."""
    return Metric(
        f"{source} (as published)",
        {sliced("right_as_published", "source", source): 1},
        {sliced("asked", "source", source): 1},
        empty=None,
        in_short_tables=False,
        key=f"{source}_as_published",
    )


METRICS = (
    ACCURACY,
    AS_PUBLISHED,
    HALLUCINATION,
    READ,
    *map(shape_metric, SHAPES),
    MEAN_OVER_SOURCES,
    *map(source_metric, SOURCES),
)

WITH_FAILURES = Metric(
    "Accuracy (failed calls as wrong)",
    {"right": 1},
    {"asked": 1},
    empty=None,
    key="accuracy_failed_wrong",
)

RANKING = (WITH_FAILURES, ACCURACY, READ)

UNSCORED = {"unscored": 1}
"""The sums of a question without a known answer."""

COUNTS = {
    "right": "right",
    "right as published": "right_as_published",
    "about absent marks": "absent",
    "hallucinated": "hallucinated",
    "without a known answer": "unscored",
    **{reason.value: reason.value for reason in Reason if reason is not Reason.FAILED},
}
"""Sums that stand in a score's table, by what they are called there; it has failed calls anyway."""


def row_slices(query: VPQuery) -> dict[str, str]:
    """Which parts of the benchmark a question belongs to, as far as it is known.

    Several shapes or properties are a part of their own: ``box + oval``.
    """
    found = {
        "shape": " + ".join(sorted(set(query.shapes))),
        "amount": query.amount,
        "kind": query.kind.value,
        "property": " + ".join(sorted(set(query.properties))),
        "mark": "absent" if query.absent else "present",
        "source": query.source,
    }
    return {name: value for name, value in found.items() if value}
