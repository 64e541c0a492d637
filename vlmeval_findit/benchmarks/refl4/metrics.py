"""The figures as ratios of sums, for the score, the leaderboard and intervals.

:mod:`.figures` has the authors' own order of operations, down to the last bit.  Both count the same
hits; they differ by rounding alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...core.metric import Metric, sliced
from .annotations import SIZES
from .judging import Judged
from .overlap import THRESHOLDS
from .sums import By, name_by

ASKED = "asked"
"""The sum that counts answered expressions."""


def hits_at(threshold: float) -> str:
    """The name of the sum of hits at a threshold.

    >>> hits_at(0.5), hits_at(0.95)
    ('hits_0.5', 'hits_0.95')
    """
    return f"hits_{threshold:g}"


HITS = tuple(map(hits_at, THRESHOLDS))
_ALL = dict.fromkeys(HITS, 1.0)
_TEN_TIMES = {ASKED: float(len(HITS))}


def _acc(threshold: float) -> Metric:
    return Metric(
        f"acc_{threshold:g}",
        {hits_at(threshold): 1},
        {ASKED: 1},
        empty=None,
        in_short_tables=threshold == 0.5,
    )


def _of_size(size: str) -> tuple[Metric, Metric]:
    def of(weights: Mapping[str, float]) -> dict[str, float]:
        return {sliced(name, By.SIZE.value, size): weight for name, weight in weights.items()}

    half, once = {hits_at(0.5): 1.0}, {ASKED: 1.0}
    return (
        Metric(f"{size}_acc", of(half), of(once), empty=None, in_short_tables=False),
        Metric(f"{size}_macc", of(_ALL), of(_TEN_TIMES), empty=None, in_short_tables=False),
    )


def _of_classes(by: By, suffix: str, key: str) -> tuple[Metric, Metric]:
    half = {hits_at(0.5): 1.0}
    short = by is By.CLASS
    return (
        Metric(
            f"class_acc{suffix}",
            half,
            {ASKED: 1},
            over=by.value,
            empty=None,
            in_short_tables=short,
            key=f"class_acc{key}",
        ),
        Metric(
            f"class_macc{suffix}",
            _ALL,
            _TEN_TIMES,
            over=by.value,
            empty=None,
            in_short_tables=False,
            key=f"class_macc{key}",
        ),
    )


_MACC = Metric("macc", _ALL, _TEN_TIMES, empty=None)

TWELVE = (
    *map(_acc, (0.5, 0.75, 0.9)),
    _MACC,
    *(metric for size in SIZES for metric in _of_size(size)),
    *_of_classes(By.CLASS, "", ""),
)
"""The published figures, by their published names and in their order."""

CORRECTED = _of_classes(By.CORRECTED, " (corrected)", "_corrected")
"""The class figures by the corrected table."""

ADHERENCE = Metric(
    "Adherence",
    {"adherent": 1},
    {ASKED: 1},
    empty=None,
    in_short_tables=False,
    key="adherence",
)

HIT_MORE = f"salvaged_{hits_at(0.5)}"
"""The sum of hits of boxes that only a tolerant reader takes."""

ACC_SALVAGED = Metric(
    "acc_0.5 (salvaged)",
    {hits_at(0.5): 1, HIT_MORE: 1},
    {ASKED: 1},
    empty=None,
    in_short_tables=False,
    key="acc_0.5_salvaged",
)
"""The headline of a tolerant reading: answers without a box, by the first that it takes."""

METRICS = (*TWELVE, *CORRECTED, ADHERENCE, ACC_SALVAGED)

WITH_FAILURES = Metric(
    "acc_0.5 (failed calls as misses)",
    {hits_at(0.5): 1},
    {ASKED: 1, "failed": 1},
    empty=None,
    key="acc_0.5_failed_missed",
)
"""The headline when failed calls are misses: they are in no other figure."""

RANKING = (WITH_FAILURES, _MACC, ADHERENCE)

COUNTS = {"hits at 0.5": hits_at(0.5), "without a box": "boxless"}
"""Sums that stand in a score's table, by what they are called there."""

SLICED_BY = tuple(by for by in By if by is not By.TOTAL)


def row_sums(judged: Judged) -> dict[str, float]:
    """The sums of one answered expression, but for what is known of its reply alone."""
    hits = dict(zip(HITS, map(float, judged.hits), strict=True))
    return {ASKED: 1, "failed": 0, "boxless": float(judged.reason is not None), **hits}


FAILED_SUMS: Mapping[str, float] = {
    ASKED: 0,
    "failed": 1,
    "boxless": 0,
    **dict.fromkeys(HITS, 0.0),
}
"""The sums of a failed call."""


def row_slices(judged: Judged) -> dict[str, str]:
    """Which parts of the benchmark an expression belongs to: those of :class:`.By`, by name."""
    found = ((by.value, name_by(by, judged.annotation)) for by in SLICED_BY)
    return {kind: name for kind, name in found if name is not None}
