"""One query of a run after scoring: what every benchmark gives, and all that others read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .metric import sliced


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """One query with its score.

    ``source`` is the picture or video that it shows: queries of the same one are not independent.
    ``sums`` are the additive sums that its benchmark's metrics are ratios of.  ``slices`` say which
    parts of the benchmark it belongs to, value by kind.  ``failed`` says that the call failed and
    there is no answer, ``reason`` why an answer could not be taken as it stands (None: it could).
    ``details`` are what else is known of it, as the details file holds them.
    """

    index: int
    source: str
    sums: Mapping[str, float]
    failed: bool = False
    reason: str | None = None
    slices: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)


def totals(rows: Iterable[ScoredRow]) -> dict[str, float]:
    """The sums of all rows, and of every slice under keys of its own."""
    parts: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        for part in (_ALL, *row.slices.items()):
            total = parts.setdefault(part, {})
            for name, value in row.sums.items():
                total[name] = total.get(name, 0) + value
    return {
        name if part == _ALL else sliced(name, *part): value
        for part, sums in parts.items()
        for name, value in sums.items()
    }


_ALL = ("", "")


def add_up(rows: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The sums of many, name by name."""
    total: dict[str, float] = {}
    for sums in rows:
        for name, value in sums.items():
            total[name] = total.get(name, 0) + value
    return total
