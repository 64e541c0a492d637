"""Expected average precision of boxes that all have one confidence: over the orders of them.

COCO's average precision ranks boxes by confidence.  Models that answer in words state none, so
tables give every box the same, and the value is that of whatever order the boxes have.  Here every
order of the boxes of a class is equally likely, and boxes are matched in it.

Boxes that compete for no object have their outcome whatever the order.  Those that do are a
:class:`Chain`: how often each word of hits and misses comes of their orders among themselves.

Interpolated precision from the k-th hit on is the highest from there, so it is more than ``p``
if the last hit at which precision is more than ``p`` is the k-th or a later one.  The area is the
integral over ``p`` of the recalls that this last hit reaches.  Its law follows from a walk from the
last rank to the first, which ends where the precision is more than ``p``: no orders are listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import factorial, log

import numpy as np
from numpy.typing import NDArray

from ..protocol import Array
from .confidence_measures import RECALLS

Whole = NDArray[np.int64]
Steps = tuple[Whole, Whole]  # Ascending precisions: numerators and denominators
Words = tuple[str, ...]  # Of all chains that are left in a walk, sorted

HIT, MISS, IGNORED = "H", "M", "I"
MOST_STEPS = 1500  # Values that precision may take, up to which each is looked at
_FIRST_STEPS = 64  # Of those where there are more
_PARTS = 2**20  # Into which precision is divided where there are more values
# Of each walk so little is left out: a path so far from the mean (Bernstein, Hoeffding 1963)
_FAR = log(1e16)
MOST_SETS = 500  # Of words in which a walk may begin, or through which it passes
MOST_WORK = 50_000_000  # Probabilities that are computed where boxes compete


@dataclass(frozen=True, slots=True)
class Chain:
    """Boxes of an image that compete for objects: what comes of their orders.

    A word has a letter for each box, first rank first: ``H`` a hit, ``M`` a miss, ``I`` on an
    ignored object.

    >>> Chain(("HM",), (1.0,)).words  # Two boxes on one object: the first has it
    ('HM',)
    """

    words: Words
    shares: tuple[float, ...]  # Of all orders, one a word

    @property
    def in_any_order(self) -> bool:
        """Tell whether its letters come in any order, as where nothing competes."""
        letters = sorted(self.words[0])
        if any(sorted(word) != letters for word in self.words):
            return False
        orders = factorial(len(letters))
        for letter in {*letters}:
            orders = orders // factorial(letters.count(letter))
        return len(self.words) == orders and max(self.shares) - min(self.shares) < 1e-9


@dataclass(frozen=True, slots=True)
class ExpectedPrecision:
    """Average precision over orders that are equally likely; shares of 1.

    >>> ExpectedPrecision(0.625).within
    0.0
    """

    value: float
    within: float = 0.0  # The value is within so much of the exact one; 0: exact


@dataclass(frozen=True, slots=True)
class _Walks:
    """The sets of words that walks pass through, shorter ones first."""

    shares: Sequence[float]  # Of walks that begin here
    hits: Sequence[int]
    ignored: Sequence[int]
    boxes: Sequence[int]  # With the ignored ones
    # From which a walk comes, the boxes of its chains that may go next, and whether one is a hit
    sources: Sequence[Sequence[tuple[int, int, bool]]]


_NOTHING_COMPETES = _Walks([1.0], [0], [0], [0], [[]])


@lru_cache(100_000)
def expected_precision(
    hits: int, misses: int, objects: int, chains: tuple[Chain, ...] = ()
) -> ExpectedPrecision | None:
    """Return COCO's average precision of one category over all orders; None: too much to compute.

    Args:
        hits: boxes that are matched to an object in each order.
        misses: boxes that count and are matched in no order.
        objects: number of objects that count, at least 1 and the hits of any order.
        chains: of boxes that compete.  Without any there is always a value.

    >>> expected_precision(1, 1, 1)
    ExpectedPrecision(value=0.75, within=0.0)
    >>> expected_precision(0, 0, 1, (Chain(("HM",), (1.0,)),))
    ExpectedPrecision(value=1.0, within=0.0)
    """
    starts = _starts(chains)
    if starts is None:
        return None
    value = within = 0.0
    for (more_hits, more_misses), sets in starts.items():
        share = sum(sets.values())
        all_hits = hits + more_hits
        all_misses = misses + more_misses
        if not all_hits:
            continue
        walks = _walks({words: of_set / share for words, of_set in sets.items()})
        if walks is None:
            return None
        steps = _all_steps(all_hits, all_misses)
        count = 2 * MOST_STEPS if steps is None else len(steps[0])
        work = (all_hits + all_misses) * all_hits * count * len(walks.hits)
        if len(walks.hits) > 1 and work > MOST_WORK:
            return None
        part = _expected(all_hits, all_misses, objects, walks, steps)
        value += share * part.value
        within += share * part.within
    return ExpectedPrecision(value, within)


def _starts(chains: Sequence[Chain]) -> dict[tuple[int, int], dict[Words, float]] | None:
    """Return the share of each set of words, by the hits and misses of all chains; None: many.

    Chains whose hits and misses come in any order are counted only, and so are words of one letter.
    """
    sets: dict[tuple[int, int, Words], float] = {(0, 0, ()): 1.0}
    for chain in chains:
        longer: dict[tuple[int, int, Words], float] = {}
        for (hits, misses, words), share in sets.items():
            for word, of_word in zip(chain.words, chain.shares, strict=True):
                kept = words if chain.in_any_order else _with_word(words, word)
                key = (hits + word.count(HIT), misses + word.count(MISS), kept)
                longer[key] = longer.get(key, 0.0) + share * of_word
        if len(longer) > MOST_SETS:
            return None
        sets = longer
    starts: dict[tuple[int, int], dict[Words, float]] = {}
    for (hits, misses, words), share in sets.items():
        starts.setdefault((hits, misses), {})[words] = share
    return starts


def _with_word(words: Words, word: str) -> Words:
    """Add a word; boxes of one letter do not compete any more, and only ignored ones are kept."""
    if len(set(word)) > 1:
        return tuple(sorted((*words, word)))
    return tuple(sorted((*words, *word))) if IGNORED in word else words


def _walks(starts: Mapping[Words, float]) -> _Walks | None:
    """Return all sets of words to which walks lead that take the last letter of a word away.

    None: they are too many.
    """
    if list(starts) == [()]:
        return _NOTHING_COMPETES
    sets = {*starts}
    ahead = [*starts]
    while ahead:
        words = ahead.pop()
        for word in {*words}:
            shorter = _without_last_letter(words, word)
            if shorter not in sets:
                sets.add(shorter)
                ahead.append(shorter)
        if len(sets) > MOST_SETS:
            return None
    ordered = sorted(sets, key=lambda words: (sum(map(len, words)), words))
    place = {words: at for at, words in enumerate(ordered)}
    sources: list[list[tuple[int, int, bool]]] = [[] for _ in ordered]
    for at, words in enumerate(ordered):
        for word, count in Counter(words).items():
            shorter = _without_last_letter(words, word)
            sources[place[shorter]].append((at, count * len(word), word[-1] == HIT))
    return _Walks(
        shares=[starts.get(words, 0.0) for words in ordered],
        hits=["".join(words).count(HIT) for words in ordered],
        ignored=["".join(words).count(IGNORED) for words in ordered],
        boxes=[len("".join(words)) for words in ordered],
        sources=sources,
    )


def _without_last_letter(words: Words, word: str) -> Words:
    others = list(words)
    others.remove(word)
    return _with_word(tuple(others), word[:-1])


def _expected(
    hits: int, misses: int, objects: int, walks: _Walks, steps: Steps | None
) -> ExpectedPrecision:
    """Return the expected value of so many hits and misses, at least one of them a hit."""
    reached = np.searchsorted(RECALLS, np.arange(hits + 1) / objects, side="right")
    reached[0] = 0  # Without a hit there is no precision
    if steps is None:
        lower, upper = _bounded_area(hits, misses, reached, walks)
    else:
        # The integrand is constant from each step up to the next one.
        _, upper = _area_between(steps, _mean_reached(hits, misses, reached, walks, *steps))
        lower = upper
    of_all = float(reached[-1] / len(RECALLS)) * hits / (hits + misses)
    expected = of_all + (lower + upper) / 2 / len(RECALLS)
    return ExpectedPrecision(expected, (upper - lower) / 2 / len(RECALLS))


def _all_steps(hits: int, misses: int) -> Steps | None:
    """Return all values that precision may take, from that of all boxes on; None: too many."""
    if hits * misses > 8 * MOST_STEPS:
        return None
    least = Fraction(hits, hits + misses)
    values = {Fraction(1), least}
    for hit in range(1, hits + 1):
        for miss in range(misses + 1):
            value = Fraction(hit, hit + miss)
            if value > least:
                values.add(value)
    if len(values) > MOST_STEPS:
        return None
    ordered = sorted(values)
    numerators = np.array([value.numerator for value in ordered], np.int64)
    denominators = np.array([value.denominator for value in ordered], np.int64)
    return numerators, denominators


def _area_between(steps: Steps, mean_reached: Array) -> tuple[float, float]:
    """Return bounds of the integral from the first step on, given its falling values at steps."""
    widths = np.diff(steps[0] / steps[1])
    return float(widths @ mean_reached[1:]), float(widths @ mean_reached[:-1])


def _bounded_area(hits: int, misses: int, reached: Whole, walks: _Walks) -> tuple[float, float]:
    """Return bounds of the integral from the precision of all boxes on.

    A few steps show where the integrand falls; the others lie where it does, so that bounds narrow
    most.
    """
    # At its first step the integrand is that of the precision of all boxes: nothing lies between.
    first = -(-hits * _PARTS // (hits + misses))
    numerators = np.unique(np.linspace(first, _PARTS, _FIRST_STEPS + 1).astype(np.int64))
    steps = numerators, np.full(len(numerators), _PARTS)
    values = _mean_reached(hits, misses, reached, walks, *steps)
    need = np.sqrt(np.maximum(-np.diff(values), 0.0) * np.diff(numerators))
    shares = np.ceil(MOST_STEPS * need / max(need.sum(), 1e-300)).astype(np.int64)
    parts = [numerators]
    for start, end, share in zip(numerators[:-1], numerators[1:], shares, strict=True):
        parts.append(np.linspace(start, end, int(share) + 2).astype(np.int64))
    numerators = np.unique(np.concatenate(parts))
    steps = numerators, np.full(len(numerators), _PARTS)
    lower, upper = _area_between(steps, _mean_reached(hits, misses, reached, walks, *steps))
    before = (first / _PARTS - hits / (hits + misses)) * float(reached[-1])
    return lower, upper + max(before, 0.0)


def _mean_reached(
    hits: int,
    misses: int,
    reached: Whole,
    walks: _Walks,
    numerators: Whole,
    denominators: Whole,
) -> Array:
    """Return, for each precision, the mean number of recalls that the last hit above it reaches.

    Args:
        hits: boxes that are hits.
        misses: boxes that are not.
        reached: recalls that each number of hits reaches.
        walks: the sets of words of boxes that compete.
        numerators: of the precisions, at least that of all boxes.
        denominators: of the precisions.
    """
    boxes = hits + misses
    # Ignored boxes of chains have ranks, too; as many wherever a walk begins.
    starts = [at for at, share in enumerate(walks.shares) if share]
    ranks = boxes + walks.ignored[starts[0]]
    # By set of words, and by number of hits among the first boxes
    paths = np.zeros((len(walks.hits), hits + 2, len(numerators)))
    paths[:, hits] = np.array(walks.shares)[:, None]
    means = np.zeros(len(numerators))
    lows, highs = _likely_hits(hits, misses)
    if len(walks.hits) > 1:  # Hits come earlier where boxes compete
        lows = np.zeros(ranks + 1, np.int64)
        highs = np.minimum(np.arange(ranks + 1), hits)
    low = high = hits
    for first in range(ranks, 0, -1):
        new_low, new_high = int(lows[first - 1]), int(highs[first - 1])
        some = np.arange(new_low, new_high + 1)
        # Shorter sets first: what comes of longer ones must be of those before this step.
        for words, sources in enumerate(walks.sources):
            alone = some - walks.hits[words]  # Hits that do not compete
            stay = (first - walks.boxes[words] - alone) / first
            fall = (alone + 1) / first
            fallen = paths[words, new_low + 1 : new_high + 2] * fall[:, None]
            paths[words, new_low : new_high + 1] *= stay[:, None]
            paths[words, new_low : new_high + 1] += fallen
            for longer, count, is_hit in sources:
                from_there = paths[longer, new_low + is_hit : new_high + 1 + is_hit]
                paths[words, new_low : new_high + 1] += from_there * (count / first)
        paths[:, low:new_low] = 0.0
        paths[:, new_high + 1 : high + 1] = 0.0
        low, high = new_low, new_high
        for words, ignored in enumerate(walks.ignored):
            # The fewest hits whose precision is above; before this step no path had as many.
            above = numerators * (first - 1 - ignored) // denominators + 1
            at = np.flatnonzero((above <= high) & (above >= max(low, 1)))
            ended = above[at]
            means[at] += paths[words, ended, at] * reached[ended]
            paths[words, ended, at] = 0.0
    return means


def _likely_hits(hits: int, misses: int) -> tuple[Whole, Whole]:
    """Return the fewest and the most hits among so many first boxes that are likely at all."""
    boxes = hits + misses
    first = np.arange(boxes + 1)
    mean = first * hits / boxes
    variance = mean * misses / boxes * (boxes - first) / max(boxes - 1, 1)
    reach = _FAR / 3 + np.sqrt((_FAR / 3) ** 2 + 2 * _FAR * variance)
    lows = np.maximum.reduce([np.zeros(len(first)), first - misses, np.floor(mean - reach)])
    highs = np.minimum.reduce([np.full(len(first), hits), first, np.ceil(mean + reach)])
    return lows.astype(np.int64), highs.astype(np.int64)
