"""Accuracy by class, size, source, length and wording of the expression, and split."""

from __future__ import annotations

from dataclasses import dataclass

from .annotations import SIZES, Split
from .classes import PictureSource, class_name
from .figures import macc, percentages
from .overlap import THRESHOLDS
from .sums import WORDINGS, WORDS, By, Sums

_ORDER = {
    By.TOTAL: ("",),
    By.SPLIT: tuple(split.value for split in Split.ALL.parts),
    By.SIZE: SIZES,
    By.SOURCE: tuple(source.value for source in PictureSource),
    By.WORDS: WORDS,
    By.WORDING: WORDINGS,
}

_050, _075, _090 = (THRESHOLDS.index(t) for t in (0.5, 0.75, 0.9))


@dataclass(frozen=True, slots=True)
class Slice:
    """One row of a table: some of the expressions, and how they did, in percent."""

    by: By
    key: str
    """Name within its kind; of a class ``o365_<id>``."""
    name: str
    """The key as it is shown."""
    count: int
    acc_050: float
    acc_075: float
    acc_090: float
    macc: float


def slices(sums: Sums, by: By) -> tuple[Slice, ...]:
    """The rows of one table.  Slices without an expression are left out.

    Classes come with the most frequent first, everything else in its natural order.
    """
    tallies = sums.all_by(by)
    order = _ORDER.get(by) or sorted(tallies, key=lambda key: (-tallies[key].count, key))
    rows = []
    for key in order:
        if key not in tallies:
            continue
        shares = percentages(tallies[key])
        rows.append(
            Slice(
                by=by,
                key=key,
                name=class_name(key) if by in (By.CLASS, By.CORRECTED) else key or by.value,
                count=tallies[key].count,
                acc_050=shares[_050],
                acc_075=shares[_075],
                acc_090=shares[_090],
                macc=macc(tallies[key]),
            )
        )
    return tuple(rows)
