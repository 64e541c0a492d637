"""Metrics as ratios of additive sums: one row, evaluated alike wherever a figure is needed.

A benchmark gives every query its *sums*: plain numbers that add up (found boxes, expected boxes,
right letters).  A :class:`Metric` says which of them it divides by which.  Whoever needs a figure
(the score, the leaderboard, intervals, paired tests, the report, exports) evaluates it: on the sums
of one query or of a run, or on arrays of sums, one entry a picture.

A *slice* is sums of a part of the queries (a size, a class) under a key of its own::

    >>> sliced("tp", "size", "small")
    'tp[size=small]'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .spelling import is_one_line

Sums = Mapping[str, Any]
"""Sums by name: numbers, or arrays of numbers that all have one shape."""

Weights = Mapping[str, float]
"""How often each sum counts."""

Array = NDArray[np.float64]


def sliced(name: str, kind: str, value: str) -> str:
    """The key of a sum over the queries of one slice."""
    return f"{name}[{kind}={value}]"


def slice_problem(kind: str, value: str) -> str | None:
    """Why sums cannot be sliced so, or None when they can.

    >>> slice_problem("time", "night"), slice_problem("time", "[0, 6]")
    (None, "'[0, 6]' has one of [ ] =, by which slices are told apart")
    """
    for text in (kind, value):
        if not text.strip():
            return "is empty"
        if any(sign in text for sign in "[]="):
            return f"{text!r} has one of [ ] =, by which slices are told apart"
        if not is_one_line(text):
            return f"{text!r} is not plain text on one line"
    return None


def is_sliced(name: str) -> bool:
    """Whether a key is that of a slice."""
    return "[" in name


def unsliced(name: str) -> tuple[str, str, str]:
    """The sum, the kind and the value of a slice's key; of another key the last two are empty.

    >>> unsliced("tp[size=small]"), unsliced("tp")
    (('tp', 'size', 'small'), ('tp', '', ''))
    """
    of, _, rest = name.partition("[")
    kind, _, value = rest.removesuffix("]").partition("=")
    return of, kind, value


@dataclass(frozen=True, slots=True)
class Ratio:
    """One weighted sum over another."""

    part: Weights
    whole: Weights


class Better(Enum):
    """Which of two figures is the better one."""

    HIGHER = "higher"
    LOWER = "lower"


@dataclass(frozen=True, slots=True)
class Metric:
    """A named ratio of sums; in percent where it is a share.

    ``part`` and ``whole`` say what is divided by what.  ``over`` names a kind of slices: the metric
    is then the unweighted mean of the ratio over all slices of that kind that have a whole (a mean
    over classes).  ``empty`` is the value where there is no whole; None says that there is no
    figure then.  ``in_short_tables``: whether tables with little room show it.  ``key`` is its name
    in files for programs ("": the same).  ``better`` says which way models are ranked by it.
    ``share``: whether the part is a part of the whole, so that the ratio lies between 0 and 1.  A
    mean error is none: it is given as it is, and its interval is one of a mean.

    >>> f1 = Metric("F1", {"tp": 2}, {"predicted": 1, "expected": 1})
    >>> f1.value({"tp": 3, "predicted": 4, "expected": 4})
    75.0
    >>> f1.values({name: np.array([n, 0]) for name, n in (("tp", 3), ("predicted", 8))})
    array([75.,  0.])
    >>> Metric("MAE", {"error": 1}, {"answered": 1}, share=False).value({"error": 9, "answered": 4})
    2.25
    >>> by_class = Metric("class", {"hits": 1}, {"asked": 1}, over="class")
    >>> by_class.value({"hits[class=a]": 1, "asked[class=a]": 1, "asked[class=b]": 3})
    50.0
    """

    name: str
    part: Weights
    whole: Weights
    over: str = ""
    empty: float | None = 0.0
    in_short_tables: bool = True
    key: str = ""
    better: Better = Better.HIGHER
    share: bool = True

    @property
    def title(self) -> str:
        """Its name, its unit where that is not percent, which way is better where not plain."""
        said = ["not in percent"] * (not self.share)
        said += ["lower is better"] * (self.better is Better.LOWER)
        return f"{self.name} ({', '.join(said)})" if said else self.name

    @property
    def scale(self) -> float:
        """What its figure is a ratio times."""
        return 100.0 if self.share else 1.0

    def ratios(self, names: Iterable[str]) -> list[Ratio]:
        """The ratios whose mean it is, given the names of the sums that there are."""
        if not self.over:
            return [Ratio(self.part, self.whole)]
        begin = f"[{self.over}="
        kept = {name[name.index(begin) :] for name in names if begin in name}
        return [
            Ratio(
                {f"{name}{end}": weight for name, weight in self.part.items()},
                {f"{name}{end}": weight for name, weight in self.whole.items()},
            )
            for end in sorted(kept)
        ]

    def value(self, sums: Sums) -> float | None:
        """The figure of sums that are numbers."""
        found = []
        for ratio in self.ratios(sums):
            whole = weighted(sums, ratio.whole)
            if whole:
                found.append(self.scale * weighted(sums, ratio.part) / whole)
        if not found:
            return self.empty
        return found[0] if len(found) == 1 else float(np.mean(found))

    def values(self, sums: Sums) -> Array:
        """The figures of sums that are arrays of one shape; NaN for None."""
        parts = [
            (weighted(sums, ratio.part), weighted(sums, ratio.whole)) for ratio in self.ratios(sums)
        ]
        empty = np.nan if self.empty is None else self.empty
        shape = np.shape(next(iter(sums.values()), ()))
        if not parts:
            return np.full(shape, empty)
        part, whole = (
            # What is not there is 0, a number among arrays.
            np.stack([np.broadcast_to(np.asarray(x, dtype=float), shape) for x in xs])
            for xs in zip(*parts, strict=True)
        )
        ratios = np.divide(self.scale * part, whole, out=np.zeros_like(part), where=whole != 0)
        there = (whole != 0).sum(axis=0)
        made: Array = np.where(there > 0, ratios.sum(axis=0) / np.maximum(there, 1), empty)
        return made


def weighted(sums: Sums, weights: Weights) -> Any:
    """The sum of sums, each as often as it counts; what is not there is 0."""
    total: Any = 0
    for name, weight in weights.items():
        if name in sums:
            total = total + weight * sums[name]
    return total


def figures(metrics: Iterable[Metric], sums: Sums) -> dict[str, float | None]:
    """The figures of a run by the names of its metrics."""
    return {metric.name: metric.value(sums) for metric in metrics}
