"""What a tolerant reader would take from a run's replies, counted by step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..core.benchmark import Benchmark
from ..core.metric import Sums
from ..core.scored_row import ScoredRow


@dataclass(frozen=True, slots=True)
class Taken:
    """What was taken: from how many replies, how many boxes, and how many objects they find.

    Boxes and objects are those that the strict reading does not have.
    """

    replies: int = 0
    boxes: int = 0
    objects: int = 0

    def __add__(self, other: Taken) -> Taken:
        return Taken(
            self.replies + other.replies,
            self.boxes + other.boxes,
            self.objects + other.objects,
        )


def taken_of(row: ScoredRow) -> Taken | None:
    """What one reply has for a tolerant reader; None where that is no box more."""
    salvaged = row.details.get("salvaged")
    if salvaged is None:
        return None
    more = len(salvaged["boxes"]) - len(row.details["boxes"])
    return Taken(1, more, len(salvaged["recoverable"])) if more else None


def taken(rows: Iterable[ScoredRow]) -> Taken:
    """What all replies have."""
    return sum(filter(None, map(taken_of, rows)), Taken())


def steps_of(rows: Iterable[ScoredRow]) -> Mapping[str, Taken]:
    """What there is by the names of steps, the most replies first.

    A reply counts under every step that it took, so these add up to more than there is.
    """
    found: dict[str, Taken] = {}
    for row in rows:
        one = taken_of(row)
        for step in row.details["salvaged"]["steps"] if one else ():
            found[step] = found.get(step, Taken()) + (one or Taken())
    return dict(sorted(found.items(), key=lambda item: (-item[1].replies, item[0])))


def lenient_note(benchmark: Benchmark, rows: Iterable[ScoredRow], sums: Sums) -> str | None:
    """One sentence on a run; None where a tolerant reader would take nothing more."""
    rows, salvaged = list(rows), benchmark.salvaged
    more, astray = taken(rows), sum(row.reason is not None and not row.failed for row in rows)
    if not more.replies or salvaged is None:
        return None
    steps = ", ".join(f"{step} {one.replies}" for step, one in steps_of(rows).items())
    figures = [metric.value(sums) or 0.0 for metric in (benchmark.metrics[0], salvaged)]
    return (
        f"a tolerant reader would take boxes from {more.replies:,} of {astray:,} replies that do "
        f"not adhere ({steps}): {benchmark.metrics[0].name} {figures[1]:.1f}, not {figures[0]:.1f}"
    )
