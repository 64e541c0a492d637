"""One query of a run after scoring: what every benchmark gives, and all that others read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .metric import sliced, unsliced


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """One query with its score.

    ``source`` is the picture or video that it shows: queries of the same one are not independent.
    ``sums`` are the additive sums that its benchmark's metrics are ratios of.  ``slices`` say which
    parts of the benchmark it belongs to, value by kind; the sums of a slice (``tp[size=small]``)
    are made of them (:func:`totals`) and are no names of a row's own sums.  ``failed`` says that
    the call failed and there is no answer, ``reason`` why an answer could not be taken as it stands
    (None: it could).  ``details`` are what else is known of it, as the details file holds them.
    """

    index: int
    source: str
    sums: Mapping[str, float]
    failed: bool = False
    reason: str | None = None
    slices: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse names that would be taken for others where sums are added up.

        Raises:
            ValueError: naming row and name.
        """
        # There are many rows: one look at all their names is enough where nothing is wrong.
        names = "".join(self.sums)
        if "[" in names or "]" in names:
            name = next(one for one in self.sums if "[" in one or "]" in one)
            of, kind, value = unsliced(name)
            said = {kind or "KIND": value or "VALUE"}
            raise ValueError(
                f"row {self.index}: the sum {name!r} has brackets, which are kept for slices: name "
                f"it {of.replace(']', '')!r}, with slices={said}"
            )
        if _SIGNS.intersection("".join(self.slices)):
            kind = next(one for one in self.slices if _SIGNS.intersection(one))
            raise ValueError(
                f"row {self.index}: the kind of slices {kind!r} has one of [ ] =, by which slices "
                "are told apart: name it without"
            )


_SIGNS = frozenset("[]=")


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
