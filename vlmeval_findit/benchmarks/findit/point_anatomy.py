"""What a pointing accuracy lost: every place without a hit has one cause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...core.anatomy import WRONG, Cause, WrongAnswers, cause
from ...core.scored_row import ScoredRow

FALSE_ALARM = cause("false alarm", "a point, though there is nothing to find")
BESIDE = cause("beside", "a point that lies in no object of its own, and an object without one")
TOO_MANY = cause("too many", "a point more than there are objects")
MISSED = cause("missed", "an object more than points were said")


@dataclass(frozen=True)
class PointAnatomy(WrongAnswers):
    """Failed calls and replies not as asked as everywhere; the rest by what the points are.

    A query lacks as many hits as it has points without an object or objects without a point,
    whichever are more: as many as there are of both are beside, the others too many or missed.
    """

    @property
    def causes(self) -> tuple[Cause, ...]:  # type: ignore[override]
        known = (one for one in super().causes if one is not WRONG)
        return *known, FALSE_ALARM, BESIDE, TOO_MANY, MISSED

    def events(self, row: ScoredRow) -> Mapping[str, float]:
        if row.failed or row.reason is not None:
            return super().events(row)
        points, objects = (row.sums[name] - row.sums["pointed"] for name in ("points", "objects"))
        found = {
            BESIDE: min(points, objects),
            (TOO_MANY if row.sums["objects"] else FALSE_ALARM): max(0, points - objects),
            MISSED: max(0, objects - points),
        }
        return {one.key: count for one, count in found.items() if count}
