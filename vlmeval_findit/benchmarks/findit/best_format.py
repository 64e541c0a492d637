"""Which format is the best: the one rule of search, sweep, leaderboard and report.

Formats are compared by their averages over views.  A view is what differs beside the format: the
table, the frames, the caption.  A failed call counts as an answer without boxes here: otherwise a
format would gain by failing on hard pictures.  Figures tie that are printed alike: less than a
tenth of a percent is no reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from ...boxes.reply_format import DEFAULT_KEY, DEFAULT_STRUCTURE, KEYS, OUTPUTS, STRUCTURES
from ...boxes.representation import REPRESENTATIONS
from .metrics import Figures
from .variant import CENTRES, Variant

RULE = (
    "highest F1@0.5 (failed calls as misses), averaged over the tables; "
    "then mIoU, then adherence, each to a tenth of a percent; then the grid's order"
)
"""How a winner is found, as everything that names one says it."""

UNEVEN = "of those that were run on the most datasets"
"""Averages over other views cannot be compared: those over the most views go first."""

_DIGITS = 1
"""What is printed of a figure in percent, and what formats are compared by."""


@dataclass(frozen=True, slots=True)
class Format:
    """What a box is asked to look like: the part of a variant that is no dataset's."""

    representation: str
    output: str
    key: str = DEFAULT_KEY
    structure: str = DEFAULT_STRUCTURE
    centre: str | None = None

    @property
    def place(self) -> tuple[int, ...]:
        """Its place in the grid: representation, output, key, structure, centre experiment."""
        return (
            list(REPRESENTATIONS).index(self.representation),
            OUTPUTS.index(self.output),
            KEYS.index(self.key),
            STRUCTURES.index(self.structure),
            (None, *CENTRES).index(self.centre),
        )

    def __str__(self) -> str:
        parts = [self.representation, self.output]
        parts += [self.key] * (self.key != DEFAULT_KEY)
        parts += [self.structure] * (self.structure != DEFAULT_STRUCTURE)
        parts += [f"cx-{self.centre}"] * (self.centre is not None)
        return " ".join(parts)


def format_of(variant: Variant) -> Format:
    """The format of a variant."""
    return Format(
        variant.representation, variant.output, variant.key, variant.structure, variant.centre
    )


def view_of(variant: Variant) -> tuple[str, int, bool]:
    """What a variant asks, whatever its format: table, frames, caption."""
    return variant.table, variant.frames, variant.caption


@dataclass(frozen=True, slots=True)
class FormatAverage:
    """One format's figures in percent, averaged over so many views."""

    format: Format
    views: int
    f1: float
    miou: float
    adherence: float


def ranked(scored: Iterable[tuple[Variant, Figures]]) -> list[FormatAverage]:
    """The formats of one model, the best first: :data:`RULE` among those of the most views."""
    by_format: dict[Format, dict[tuple[str, int, bool], Figures]] = {}
    for variant, figures in scored:
        by_format.setdefault(format_of(variant), {})[view_of(variant)] = figures
    found = (_average(made, list(views.values())) for made, views in by_format.items())
    return sorted(found, key=_rank)


def _average(made: Format, views: list[Figures]) -> FormatAverage:
    return FormatAverage(
        format=made,
        views=len(views),
        f1=fmean(figures.f1_failed_missed for figures in views),
        miou=fmean(figures.miou for figures in views),
        adherence=fmean(figures.adherence for figures in views),
    )


def _rank(average: FormatAverage) -> tuple[float | tuple[int, ...], ...]:
    figures = (average.f1, average.miou, average.adherence)
    best = (-round(figure, _DIGITS) for figure in figures)
    return (-average.views, *best, average.format.place)
