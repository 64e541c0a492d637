"""The twelve figures, in percent.

The order of operations is that of the authors' evaluator, down to the last bit: the mean over
thresholds is taken of shares for the total, but of percentages for sizes and classes, and always
with :func:`statistics.mean`, which rounds once at its end.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import astuple, dataclass
from statistics import mean

from .overlap import THRESHOLDS
from .sums import By, Sums, Tally

NAMES = (
    "acc_0.5",
    "acc_0.75",
    "acc_0.9",
    "macc",
    "small_acc",
    "small_macc",
    "medium_acc",
    "medium_macc",
    "large_acc",
    "large_macc",
    "class_acc",
    "class_macc",
)
"""Names of the twelve figures, in the authors' order."""

DIGITS = 2
"""Decimals of what is printed."""

_050, _075, _090 = (THRESHOLDS.index(t) for t in (0.5, 0.75, 0.9))


@dataclass(frozen=True, slots=True)
class ClassFigures:
    """Means over the classes that are present, in percent; None without any expression."""

    class_acc: float | None
    class_macc: float | None


@dataclass(frozen=True, slots=True)
class Figures:
    """The twelve figures, in percent; None for a size that no expression has.

    ``acc`` is at IoU 0.5, ``macc`` the mean over the ten thresholds.  The fields are in the order
    of :data:`NAMES`.
    """

    acc_050: float | None
    acc_075: float | None
    acc_090: float | None
    macc: float | None
    small_acc: float | None
    small_macc: float | None
    medium_acc: float | None
    medium_macc: float | None
    large_acc: float | None
    large_macc: float | None
    class_acc: float | None
    class_macc: float | None

    @property
    def named(self) -> dict[str, float | None]:
        """The figures by their published names."""
        return dict(zip(NAMES, astuple(self), strict=True))

    @property
    def rounded(self) -> list[float | None]:
        """The figures as they are printed, in the order of :data:`NAMES`."""
        return [None if value is None else round(value, DIGITS) for value in astuple(self)]


def percentages(tally: Tally) -> list[float]:
    """The share of hits at each of the ten thresholds, in percent."""
    return [hits / tally.count * 100 for hits in tally.hits]


def macc(tally: Tally) -> float:
    """The mean accuracy over the ten thresholds, in percent, as it is taken of the total."""
    return mean(hits / tally.count for hits in tally.hits) * 100


def figures(sums: Sums) -> Figures:
    """The twelve figures of sums, with the authors' classes."""
    total = sums.get(By.TOTAL)
    shares = None if total is None else percentages(total)
    small, medium, large = (_of_size(sums, name) for name in ("small", "medium", "large"))
    classes = class_figures(sums)
    return Figures(
        acc_050=None if shares is None else shares[_050],
        acc_075=None if shares is None else shares[_075],
        acc_090=None if shares is None else shares[_090],
        macc=None if total is None else macc(total),
        small_acc=small[0],
        small_macc=small[1],
        medium_acc=medium[0],
        medium_macc=medium[1],
        large_acc=large[0],
        large_macc=large[1],
        class_acc=classes.class_acc,
        class_macc=classes.class_macc,
    )


def class_figures(sums: Sums) -> ClassFigures:
    """The class figures by the authors' table: those that were published."""
    return _over_classes(sums.all_by(By.CLASS).values())


def corrected_figures(sums: Sums) -> ClassFigures:
    """The class figures by the corrected table."""
    return _over_classes(sums.all_by(By.CORRECTED).values())


def _of_size(sums: Sums, name: str) -> tuple[float | None, float | None]:
    tally = sums.get(By.SIZE, name)
    if tally is None:
        return None, None
    shares = percentages(tally)
    return shares[_050], mean(shares)


def _over_classes(tallies: Collection[Tally]) -> ClassFigures:
    if not tallies:
        return ClassFigures(None, None)
    by_threshold = [mean(shares) for shares in zip(*map(percentages, tallies), strict=True)]
    return ClassFigures(by_threshold[_050], mean(by_threshold))
