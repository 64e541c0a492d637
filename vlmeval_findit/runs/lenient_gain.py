"""What lenient parsing would add to a run's replies, counted by repair."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..core.benchmark import Benchmark
from ..core.metric import Sums
from ..core.scored_row import ScoredRow


@dataclass(frozen=True, slots=True)
class LenientGain:
    """Boxes and objects that lenient parsing adds to the strict reading."""

    replies: int = 0  # That have any
    boxes: int = 0
    objects: int = 0  # That these boxes hit

    def __add__(self, other: LenientGain) -> LenientGain:
        return LenientGain(
            self.replies + other.replies, self.boxes + other.boxes, self.objects + other.objects
        )


def _row_gain(row: ScoredRow) -> LenientGain | None:
    lenient = row.details.get("lenient")
    more = len(lenient["boxes"]) - len(row.details["boxes"]) if lenient else 0
    return LenientGain(1, more, len(lenient["recoverable"])) if lenient and more else None


def lenient_gain(rows: Iterable[ScoredRow]) -> LenientGain:
    """Add up the gains of all replies."""
    return sum(filter(None, map(_row_gain, rows)), LenientGain())


def gain_by_repair(rows: Iterable[ScoredRow]) -> Mapping[str, LenientGain]:
    """Return the gain by the names of repairs, the most replies first.

    A reply counts under every repair that it needs, so these add up to more than the whole.
    """
    gains: dict[str, LenientGain] = {}
    for row in rows:
        if gain := _row_gain(row):
            for repair in row.details["lenient"]["repairs"]:
                gains[repair] = gains.get(repair, LenientGain()) + gain
    return dict(sorted(gains.items(), key=lambda item: (-item[1].replies, item[0])))


def lenient_note(benchmark: Benchmark, rows: Iterable[ScoredRow], sums: Sums) -> str | None:
    """Write one sentence on a run; None where lenient parsing would add nothing."""
    rows, lenient_metric = list(rows), benchmark.lenient
    gain = lenient_gain(rows)
    if not gain.replies or lenient_metric is None:
        return None
    not_adherent = sum(row.reason is not None and not row.failed for row in rows)
    repairs = ", ".join(f"{name} {each.replies}" for name, each in gain_by_repair(rows).items())
    strict, lenient = (m.value(sums) or 0.0 for m in (benchmark.metrics[0], lenient_metric))
    return (
        f"lenient parsing would take boxes from {gain.replies:,} of {not_adherent:,} replies that "
        f"do not adhere ({repairs}): {benchmark.metrics[0].name} {lenient:.1f}, not {strict:.1f}"
    )
