"""Counts by size, class and so on.  They are additive: shards add up to the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from .annotations import Annotation, size_of
from .classes import AUTHORS, CORRECTED, class_of, source_of
from .judging import Judged
from .overlap import THRESHOLDS
from .predictions import MissReason

WORDS = ("<=10", "11-20", "21-40", ">40")
WORDINGS = ("original", "rewritten")


class By(Enum):
    """What expressions are counted by; the value is its name in tables."""

    TOTAL = "total"
    SPLIT = "split"
    SIZE = "size"
    SOURCE = "source"
    WORDS = "words"
    WORDING = "wording"
    CLASS = "class"
    """By the authors' table."""
    CORRECTED = "corrected class"


Key = tuple[By, str]


@dataclass(frozen=True, slots=True)
class Tally:
    """How many expressions there are, and how many are hits at each of the ten thresholds."""

    count: int
    hits: tuple[int, ...]

    def __add__(self, other: Tally) -> Tally:
        hits = tuple(a + b for a, b in zip(self.hits, other.hits, strict=True))
        return Tally(self.count + other.count, hits)


@dataclass(frozen=True, slots=True)
class Sums:
    """Tallies by key, and expressions without a box by reason.  Absent keys are empty."""

    tallies: Mapping[Key, Tally] = field(default_factory=dict)
    misses: Mapping[MissReason, int] = field(default_factory=dict)

    def __add__(self, other: Sums) -> Sums:
        tallies = dict(self.tallies)
        for key, tally in other.tallies.items():
            tallies[key] = tallies[key] + tally if key in tallies else tally
        return Sums(tallies, Counter(self.misses) + Counter(other.misses))

    def get(self, by: By, name: str = "") -> Tally | None:
        """The tally of one key; None where no expression has it."""
        return self.tallies.get((by, name))

    def all_by(self, by: By) -> dict[str, Tally]:
        """The tallies of a kind, by name."""
        return {name: tally for (kind, name), tally in self.tallies.items() if kind is by}


def words_of(annotation: Annotation) -> str | None:
    """In which range the number of words is; None where the expression is unknown."""
    words = annotation.words
    if words is None:
        return None
    ranges = zip((10, 20, 40), WORDS[:-1], strict=True)
    return next((name for most, name in ranges if words <= most), WORDS[-1])


def name_by(by: By, annotation: Annotation) -> str | None:
    """What an annotation is counted under; None where it is not known."""
    match by:
        case By.TOTAL:
            return ""
        case By.SPLIT:
            return None if annotation.split is None else annotation.split.value
        case By.SIZE:
            return size_of(annotation)
        case By.WORDS:
            return words_of(annotation)
        case By.WORDING:
            rewritten = annotation.is_rewrite
            return None if rewritten is None else WORDINGS[rewritten]
        case By.SOURCE | By.CLASS | By.CORRECTED if annotation.ori_category_id is None:
            return None
        case By.SOURCE:
            source = source_of(annotation.ori_category_id)
            return None if source is None else source.value
        case By.CLASS:
            return class_of(annotation.ori_category_id, AUTHORS)
        case By.CORRECTED:
            return class_of(annotation.ori_category_id, CORRECTED)


def sums(judged: Sequence[Judged]) -> Sums:
    """The sums of expressions."""
    passed = np.array([one.hits for one in judged], dtype=bool).reshape(-1, len(THRESHOLDS))
    tallies: dict[Key, Tally] = {}
    for by in By:
        numbers: dict[str, int] = {}
        names = [name_by(by, one.annotation) for one in judged]
        group = np.array(
            [-1 if name is None else numbers.setdefault(name, len(numbers)) for name in names],
            dtype=np.intp,
        )
        known = group >= 0
        found = np.zeros((len(numbers), len(THRESHOLDS)), dtype=np.int64)
        np.add.at(found, group[known], passed[known])
        counts = np.bincount(group[known], minlength=len(numbers)).tolist()
        for name, count, hits in zip(numbers, counts, found.tolist(), strict=True):
            tallies[by, name] = Tally(count, tuple(hits))
    return Sums(tallies, Counter(one.reason for one in judged if one.reason is not None))


def add_up(parts: Iterable[Sums]) -> Sums:
    """The sums of many shards."""
    return sum(parts, Sums())
