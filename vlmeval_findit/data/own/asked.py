"""Questions of one's own, as every source of them is read into: one record a query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...benchmarks.findit.datasets import Family
from ...boxes.records import Truth
from .annotations import Units


@dataclass(frozen=True, slots=True)
class AskedQuery:
    """One query, not yet checked against its images.

    ``images`` are the picture, or the frames in their order, and ``support`` the reference shots,
    relative to the image folder.  ``label`` is what to find: a name or an expression; several
    labels are a tuple, and then every box of the truth has its own.  A truth without boxes is a
    negative: there is nothing to find.  ``tags`` are the slices that it belongs to, value by kind.
    ``where`` is for messages: the file and the place in it.
    """

    images: tuple[str, ...]
    label: str | tuple[str, ...]
    truth: Truth
    where: str
    support: tuple[str, ...] = ()
    caption: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AskedSet:
    """The queries of one family; those with several labels become the multi-label table.

    ``units`` say whether boxes are in pixels or in fractions of their image; ``left_out`` counts
    what was left out on purpose, by the reason.
    """

    source: Path
    family: Family
    queries: tuple[AskedQuery, ...]
    units: Units = Units.PIXELS
    left_out: Counter[str] = field(default_factory=Counter)
