"""Metrics as ratios of additive sums, for a query, a run, or arrays by image.

A sum over all queries has its name as key, a sum over a *slice* of them (a size, a class) has a
:class:`SumKey`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..core import is_one_line

Array = NDArray[np.float64]  # Array of 64-bit floats of any shape


class SumKey(NamedTuple):
    """The key of a sum over the queries of one slice. Files have it as text.

    >>> print(SumKey("tp", "size", "small"))
    tp[size=small]
    """

    name: str  # Of the sum
    kind: str  # Of the slice
    value: str

    def __str__(self) -> str:
        return f"{self.name}[{self.kind}={self.value}]"


SumName: TypeAlias = str | SumKey  # Name of a sum, or of a slice's part of it

# By Key, which may be ``str`` throughout: numbers, or arrays that all have one shape
Sums: TypeAlias = Mapping[Any, Any]
Weights: TypeAlias = Mapping[Any, float]  # By Key: how often each sum counts


def slice_problem(kind: str, value: str) -> str | None:
    """Say why sums cannot be sliced by a kind and its value; None if they can.

    >>> slice_problem("time", "night"), slice_problem("time", "[0, 6]"), slice_problem("time", "")
    (None, None, 'is empty')
    """
    for text in (kind, value):
        if not text.strip():
            return "is empty"
        if not is_one_line(text):
            return f"{text!r} is not plain text on one line"
    return None


def name_of(key: SumName) -> str:
    """Return the name of a sum: the same over all queries and over any slice.

    >>> name_of("tp"), name_of(SumKey("tp", "size", "small"))
    ('tp', 'tp')
    """
    return key.name if isinstance(key, SumKey) else key


@dataclass(frozen=True, slots=True)
class Ratio:
    """One weighted sum over another."""

    part: Weights
    whole: Weights


class Better(Enum):
    """Which values are better."""

    HIGHER = "higher"
    LOWER = "lower"

    def order(self, value: float) -> float:
        """Return a number by which values are sorted, the best first; of a difference, the loss.

        >>> sorted([60.0, 80.0, 70.0], key=Better.HIGHER.order)
        [80.0, 70.0, 60.0]
        >>> Better.HIGHER.order(-2.5), Better.LOWER.order(-2.5)
        (2.5, -2.5)
        """
        return value if self is Better.LOWER else -value


_NOT_STATED: Any = object()


def _values_of(kind: str, keys: Iterable[SumName]) -> list[str]:
    """Return the values of a kind of slices, in order."""
    values = set()
    for key in keys:
        if isinstance(key, SumKey) and key.kind == kind:
            values.add(key.value)
    return sorted(values)


@dataclass(frozen=True, slots=True)
class Metric:
    """A named ratio of sums; in percent where it is a share.

    >>> f1 = Metric("F1", {"tp": 2}, {"predicted": 1, "expected": 1})
    >>> f1.value({"tp": 3, "predicted": 4, "expected": 4})
    75.0
    >>> f1.values({name: np.array([n, 0]) for name, n in (("tp", 3), ("predicted", 8))})
    array([75.,  0.])
    >>> Metric("MAE", {"error": 1}, {"answered": 1}, unit="px").value({"error": 9, "answered": 4})
    2.25
    >>> by_class = Metric("class", {"hits": 1}, {"asked": 1}, over="class")
    >>> by_class.value({
    ...     SumKey("hits", "class", "a"): 1,
    ...     SumKey("asked", "class", "a"): 1,
    ...     SumKey("asked", "class", "b"): 3,
    ... })
    50.0
    """

    name: str
    part: Weights
    whole: Weights
    over: str = ""  # Kind of slices to average over, unweighted, where they have a whole
    # Value without a whole; None: no value. Unless stated 0 where it is the worst, else none
    empty: float | None = _NOT_STATED
    in_short_tables: bool = True
    key: str = ""  # Name in files ("": the same)
    better: Better = Better.HIGHER
    unit: str = "%"  # "%": a share (part of the whole, 0 to 1); else the unit of a mean, or ""
    # Of a share whose part is graded, as an IoU: the hits among all, over the same rows. None: the
    # part counts hits, or, where it has fractions, a row without any part is a miss
    hits: Ratio | None = None

    def __post_init__(self) -> None:
        if self.empty is _NOT_STATED:
            is_worst = self.share and self.better is Better.HIGHER
            object.__setattr__(self, "empty", 0.0 if is_worst else None)

    @property
    def share(self) -> bool:
        return self.unit == "%"

    @property
    def title(self) -> str:
        """Return its name with its unit if not percent, and whether lower is better."""
        notes = []
        if not self.share:
            notes.append(self.unit or "not in percent")
        if self.better is Better.LOWER:
            notes.append("lower is better")
        return f"{self.name} ({', '.join(notes)})" if notes else self.name

    @property
    def scale(self) -> float:
        return 100.0 if self.share else 1.0

    @property
    def worst(self) -> float:
        """Return its value where nothing was answered."""
        if self.better is Better.HIGHER:
            return 0.0
        return self.scale if self.share else math.inf

    def can_be_best(self, value: float) -> bool:
        """Return whether a value is better than that of no answer; of a share, as it is printed.

        What scores nothing is called the best nowhere, and is on no front.

        >>> mean_iou = Metric("mIoU", {"iou": 1}, {"asked": 1})
        >>> mean_iou.can_be_best(0.1), mean_iou.can_be_best(0.04), mean_iou.can_be_best(0.0)
        (True, False, False)
        """
        apart = abs(value - self.worst)
        return round(apart, 1) > 0 if self.share else apart > 0

    def of_hits(self, hits: Ratio) -> Metric:
        """Return the share of hits, averaged over slices like the metric."""
        return Metric(self.name, hits.part, hits.whole, over=self.over, empty=self.empty)

    def ratios(self, keys: Iterable[SumName]) -> list[Ratio]:
        """Return the ratios whose mean it is, given the keys of all sums."""
        if not self.over:
            return [Ratio(self.part, self.whole)]
        return [
            Ratio(
                slice_weights(self.part, self.over, value),
                slice_weights(self.whole, self.over, value),
            )
            for value in _values_of(self.over, keys)
        ]

    def values_over(self, sums: Sums) -> dict[str, float]:
        """Return the values that it is the mean of, by what it is over.

        >>> metric = Metric("Right", {"right": 1}, {"asked": 1}, over="class", empty=None)
        >>> sums = {SumKey("right", "class", "cat"): 1, SumKey("asked", "class", "cat"): 4}
        >>> metric.values_over(sums)
        {'cat': 25.0}
        """
        values = {}
        for value in _values_of(self.over, sums):
            part = slice_weights(self.part, self.over, value)
            whole = slice_weights(self.whole, self.over, value)
            known = replace(self, part=part, whole=whole, over="", empty=None).value(sums)
            if known is not None:
                values[value] = known
        return values

    def value(self, sums: Sums) -> float | None:
        values = []
        for ratio in self.ratios(sums):
            if whole := weighted(sums, ratio.whole):
                values.append(self.scale * weighted(sums, ratio.part) / whole)
        if not values:
            return self.empty
        return values[0] if len(values) == 1 else float(np.mean(values))

    def rank_value(self, sums: Sums) -> float:
        """Return the value that answers are ranked by: where there is none, the worst."""
        value = self.value(sums)
        return self.worst if value is None else value

    def printed(self, sums: Sums) -> float | None:
        """Return the value with two decimals, rounded as the program of its authors rounds it."""
        value = self.value(sums)
        return None if value is None else round(value, 2)

    def values(self, sums: Sums) -> Array:
        """Evaluate it for sums that are arrays of one shape; NaN for None."""
        empty = np.nan if self.empty is None else self.empty
        shape = np.shape(next(iter(sums.values()), ()))
        total = np.zeros(shape)
        there = np.zeros(shape)
        for ratio in self.ratios(sums):
            # Missing sums are the number 0 among arrays.
            part = np.broadcast_to(np.asarray(weighted(sums, ratio.part), dtype=float), shape)
            whole = np.broadcast_to(np.asarray(weighted(sums, ratio.whole), dtype=float), shape)
            total += np.divide(self.scale * part, whole, out=np.zeros(shape), where=whole != 0)
            there += whole != 0
        result: Array = np.where(there > 0, total / np.maximum(there, 1), empty)
        return result


def slice_weights(weights: Weights, kind: str, value: str) -> dict[SumKey, float]:
    """Return the weights of sums, given by name, for the sums of a slice."""
    return {SumKey(name, kind, value): weight for name, weight in weights.items()}


def weighted(sums: Sums, weights: Weights) -> Any:
    """Add up sums by their weights; missing ones are 0."""
    total: Any = 0
    for key, weight in weights.items():
        value = sums.get(key)
        if value is not None:
            total = total + weight * value
    return total


def divide(part: Array, whole: Array, otherwise: float = 0.0) -> Array:
    """Divide arrays; ``otherwise`` where the whole is 0.

    >>> divide(np.array([1.0, 0.0]), np.array([4.0, 0.0]))
    array([0.25, 0.  ])
    """
    shape = np.shape(part)
    if shape != np.shape(whole):
        shape = np.broadcast_shapes(shape, np.shape(whole))
    ratio: Array = np.divide(part, whole, out=np.full(shape, otherwise), where=whole != 0)
    return ratio


def metric_values(metrics: Iterable[Metric], sums: Sums) -> dict[str, float | None]:
    """Return the values of metrics by their names."""
    return {metric.name: metric.value(sums) for metric in metrics}
