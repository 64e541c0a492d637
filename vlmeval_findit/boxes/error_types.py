"""Classify the errors of a query: each surplus box and each missed object has one kind.

Boxes and objects that are no hits are paired again, as many and as well as possible, frame by
frame, then across a video's frames. What is left is surplus or missed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .assignment import assign
from .matching import HIT, in_parts, iou, label_numbers, plain_label
from .records import FormatFailure, Matched, ParsedReply, Truth

# --- kinds of errors ------------------------------------------------------------------------------

NEAR = 0.1  # IoU from which a box that is no hit may be meant for an object


class CountsAs(Enum):
    """What an event takes from the score; this decides its price."""

    PAIR = "pair"  # A box that is no hit, and its object
    BOX = "box"  # A surplus box
    OBJECT = "object"  # A missed object
    NOTHING = "nothing"


class Kind(Enum):
    """Kinds of errors in display order; the value is the name shown."""

    usually: CountsAs  # For most of its events
    meaning: str

    def __new__(cls, value: str, usually: CountsAs = CountsAs.NOTHING, meaning: str = "") -> Kind:
        one = object.__new__(cls)
        one._value_, one.usually, one.meaning = value, usually, meaning
        return one

    FAILED_CALL = "failed call", CountsAs.OBJECT, "the call failed: there is no reply"
    TRUNCATED = (
        "truncated",
        CountsAs.OBJECT,
        "the reply, or its thinking, was cut off before the object",
    )
    RECOVERABLE = (
        "recoverable",
        CountsAs.OBJECT,
        "lenient parsing finds it in a malformed reply",
    )
    NOT_READABLE = (
        "not readable",
        CountsAs.OBJECT,
        "the reply is empty or not as asked, and holds no such box",
    )
    NO_RECTANGLE = (
        "no rectangle",
        CountsAs.PAIR,
        "a box was said, but its numbers make none, or it has no area",
    )
    WRONG_FRAME = (
        "wrong frame",
        CountsAs.PAIR,
        "the right box in another frame, or in one that is none",
    )
    LOCALISATION = "localisation", CountsAs.PAIR, f"same label, IoU from {NEAR} to below {HIT}"
    WRONG_LABEL = (
        "wrong label",
        CountsAs.PAIR,
        f"IoU {HIT} or more, another label",
    )
    BOTH = "both", CountsAs.PAIR, f"another label, and IoU from {NEAR} to below {HIT}"
    DUPLICATE = "duplicate", CountsAs.BOX, "one more box of an object that is found"
    BACKGROUND = "background", CountsAs.BOX, "a box where nothing asked for is"
    MISSED = "missed", CountsAs.OBJECT, "other boxes were said, none of this object"
    REFUSED = "refused", CountsAs.OBJECT, "no box was said, though there are objects"
    FALSE_ALARM = "false alarm", CountsAs.BOX, "a box, though there is nothing to find"
    REJECTED = (
        "rejected rightly",
        CountsAs.NOTHING,
        "rightly no box; costs nothing",
    )


class Event(NamedTuple):
    """One error, with the places of its box and its object in their query (None: has none)."""

    kind: Kind
    box: int | None = None
    object: int | None = None

    @property
    def counts_as(self) -> CountsAs:
        """Return what it takes from the score.

        >>> Event(Kind.NO_RECTANGLE, None, 0).counts_as
        <Lacks.OBJECT: 'object'>
        """
        if self.box is None:
            return CountsAs.NOTHING if self.object is None else CountsAs.OBJECT
        return CountsAs.BOX if self.object is None else CountsAs.PAIR


# --- classification -------------------------------------------------------------------------------

_CELLS = 1 << 20  # (box, object) pairs that are compared at a time

Indices = NDArray[np.intp]
Same = Callable[[Indices, Indices], NDArray[np.bool_]]

# Kind of a missed object, by the reply's reason; for other reasons: not readable
_OF_REASON: Mapping[FormatFailure | None, Kind] = {
    FormatFailure.FAILED_CALL: Kind.FAILED_CALL,
    FormatFailure.TRUNCATED: Kind.TRUNCATED,
    FormatFailure.TRUNCATED_THINKING: Kind.TRUNCATED,
    FormatFailure.WRONG_SHAPE: Kind.NO_RECTANGLE,
    FormatFailure.NOT_A_NUMBER: Kind.NO_RECTANGLE,
    FormatFailure.NOT_FINITE: Kind.NO_RECTANGLE,
    FormatFailure.FRAME_OUT_OF_RANGE: Kind.WRONG_FRAME,
}


class Answered(NamedTuple):
    """One query with its answer."""

    matched: Matched
    reading: ParsedReply
    truth: Truth
    cut: bool = False  # Adheres, but was cut at its token limit: boxes may be missing
    recoverable: Collection[int] = ()  # Places of objects that lenient parsing finds
    rejected: bool = False  # Nothing to find, and the reply says so as asked


def classify_errors(queries: Sequence[Answered]) -> list[list[Event]]:
    """Return the errors of each query."""
    events = [_without_loss(one) for one in queries]
    open_ = [_Open(one) for one, done in zip(queries, events, strict=True) if done is None]
    _compare(open_)
    rest = iter(open_)
    return [next(rest).events() if done is None else done for done in events]


def _without_loss(one: Answered) -> list[Event] | None:
    """Return the events of a query without errors; None for one with errors."""
    boxes, hits = one.matched.counted, one.matched.hits
    if boxes != len(hits) or not all(hits):
        return None
    return [Event(Kind.REJECTED)] if one.rejected else []


class _Near(NamedTuple):
    box: int
    object: int
    iou: float
    agree: bool
    in_frame: bool


class _Open:
    def __init__(self, one: Answered) -> None:
        matched, reading = one.matched, one.reading
        self.one = one
        self.hits = {box for box, hit in zip(matched.assigned, matched.hits, strict=True) if hit}
        counted_for = {*self.hits, *matched.ignored}
        self.boxes = [at for at in range(len(matched.boxes)) if at not in counted_for]
        self.objects = [at for at, hit in enumerate(matched.hits) if not hit]
        self.frames: Sequence[int] = reading.frames or [0] * len(matched.boxes)
        self.near: list[_Near] = []
        self.again: set[int] = set()  # Boxes of objects that another box hits

    def events(self) -> list[Event]:
        paired = self._pairs() if self.boxes and self.objects else []
        boxes = {event.box for event in paired}
        objects = {event.object for event in paired}
        return [
            *paired,
            *(self._too_many(box) for box in self.boxes if box not in boxes),
            *(self._too_few(at) for at in self.objects if at not in objects),
        ]

    def _pairs(self) -> list[Event]:
        near, found = self.near, []
        if near:
            inside = _best([n for n in near if n.in_frame])
            found = [Event(_pair_kind(n), n.box, n.object) for n in inside]
        if self.one.reading.frames and near:
            boxes, objects = self._left(found)
            beside = [n for n in near if n.iou >= HIT and n.agree]
            best = _best([n for n in beside if n.box in boxes and n.object in objects])
            found += [Event(Kind.WRONG_FRAME, n.box, n.object) for n in best]
        flat = [box for box in self.boxes if self._has_no_area(box)]
        if flat:
            _, objects = self._left(found)
            found += self._flat(flat, objects)
        return found

    def _left(self, found: Sequence[Event]) -> tuple[list[int], list[int]]:
        boxes, objects = {one.box for one in found}, {one.object for one in found}
        return (
            [at for at in self.boxes if at not in boxes],
            [at for at in self.objects if at not in objects],
        )

    def _flat(self, boxes: Iterable[int], objects: Sequence[int]) -> Iterator[Event]:
        """Pair boxes without an area with missed objects of their frame and label."""
        said, true = self.one.reading.labels, self.one.truth.labels
        waiting: dict[tuple[int, str], list[int]] = {}
        for at in reversed(objects):
            key = self.one.truth.frames[at], plain_label(true[at]) if true else ""
            waiting.setdefault(key, []).append(at)
        for box in boxes:
            key = self.frames[box], plain_label(said[box]) if said else ""
            if waiting.get(key):
                yield Event(Kind.NO_RECTANGLE, box, waiting[key].pop())

    def _has_no_area(self, box: int) -> bool:
        x1, y1, x2, y2 = self.one.matched.boxes[box]
        return not (x1 < x2 and y1 < y2)

    def _too_many(self, box: int) -> Event:
        if not self.one.truth.boxes:
            return Event(Kind.FALSE_ALARM, box)
        if self._has_no_area(box):
            return Event(Kind.NO_RECTANGLE, box)
        return Event(Kind.DUPLICATE if box in self.again else Kind.BACKGROUND, box)

    def _too_few(self, object_: int) -> Event:
        reason = self.one.reading.reason
        if reason is not FormatFailure.FAILED_CALL and object_ in self.one.recoverable:
            return Event(Kind.RECOVERABLE, None, object_)
        if reason not in (None, FormatFailure.NO_BOX):
            return Event(_OF_REASON.get(reason, Kind.NOT_READABLE), None, object_)
        if self.one.cut:
            return Event(Kind.TRUNCATED, None, object_)
        return Event(Kind.MISSED if self.one.matched.boxes else Kind.REFUSED, None, object_)


def _pair_kind(n: _Near) -> Kind:
    if n.agree:
        return Kind.LOCALISATION
    return Kind.WRONG_LABEL if n.iou >= HIT else Kind.BOTH


def _compare(queries: Sequence[_Open]) -> None:
    boxes = [[one.one.matched.boxes[at] for at in one.boxes] for one in queries]
    truths = [one.one.truth.boxes for one in queries]
    widths = np.fromiter(map(len, truths), dtype=np.intp, count=len(queries))
    counts = np.fromiter(map(len, boxes), dtype=np.intp, count=len(queries))
    with np.errstate(over="ignore"):  # models can say 1e300
        said, true = (_array(chain.from_iterable(each)) for each in (boxes, truths))
    agree, in_frame = _agreement(queries)
    found = np.array([*chain.from_iterable(one.one.matched.hits for one in queries)], dtype=bool)
    owners = list(chain.from_iterable(zip(repeat(one), one.boxes) for one in queries))
    # All rows of the queries' (boxes x objects) tables, in parts.
    width, begin = np.repeat(widths, counts), np.repeat(np.cumsum(widths) - widths, counts)
    for part in in_parts(width, _CELLS):
        rows = np.arange(part.start, part.stop)
        left = np.repeat(rows, width[rows])
        cells = np.cumsum(width[rows])
        inside = np.arange(len(left)) - np.repeat(cells - width[rows], width[rows])
        right = begin[left] + inside
        values = iou(said[left], true[right])
        near = np.flatnonzero(values >= NEAR)
        left, right, inside, values = left[near], right[near], inside[near], values[near]
        same, here, hit = agree(left, right), in_frame(left, right), found[right]
        for row in np.unique(left[hit & same & here & (values >= HIT)]).tolist():
            one, box = owners[row]
            one.again.add(box)
        columns = (each[~hit].tolist() for each in (left, inside, values, same, here))
        for row, *rest in zip(*columns, strict=True):
            one, box = owners[row]
            one.near.append(_Near(box, *rest))


def _agreement(queries: Sequence[_Open]) -> tuple[Same, Same]:
    readings, truths = [one.one.reading for one in queries], [one.one.truth for one in queries]
    sizes = [len(one.frames) for one in queries]
    begins = np.repeat(np.cumsum([0, *sizes])[:-1], [len(one.boxes) for one in queries])
    place = begins + np.array([*chain.from_iterable(one.boxes for one in queries)], dtype=np.intp)
    frames = tuple(
        np.array([*chain.from_iterable(one.frames for one in side)], dtype=np.intp)
        for side in (queries, truths)
    )

    def same(numbers: Sequence[Indices]) -> Same:
        said, true = numbers[0][place], numbers[1]
        return lambda left, right: said[left] == true[right]

    # Without labels all agree.
    none = tuple(np.zeros_like(each) for each in frames)
    return same(label_numbers(readings, truths) or none), same(frames)


def _array(boxes: Iterable[Sequence[float]]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    flat = np.fromiter(chain.from_iterable(boxes), dtype=np.float64)
    return flat.astype(np.float32).reshape(-1, 4)


def _best(found: list[_Near]) -> list[_Near]:
    """Choose as many pairs as possible, then those that overlap and agree best."""
    if len(found) < 2:
        return found
    boxes = {box: at for at, box in enumerate(dict.fromkeys(n.box for n in found))}
    objects = {one: at for at, one in enumerate(dict.fromkeys(n.object for n in found))}
    if len(boxes) == len(found) == len(objects):  # no conflicts
        return found
    cost = np.zeros((len(boxes), len(objects)), dtype=np.float32)
    # One more pair outweighs any better ones.
    one_more = 2 * (min(cost.shape) + 1)
    table: dict[tuple[int, int], _Near] = {}
    for n in found:
        place = boxes[n.box], objects[n.object]
        table[place] = n
        cost[place] = -(one_more + n.iou + n.agree)
    return [table[place] for place in zip(*assign(cost), strict=True) if place in table]


# --- the price of an error: its Aumann-Shapley share of the lost F1 -------------------------------
#
# F1 is 2 T / (P + G), with T hits, P boxes and G objects. Fixing an error removes a surplus box
# (P - 1), finds a missed object (T + 1, P + 1) or makes a wrong pair a hit (T + 1). Its price is
# what it adds on average while all are fixed in the same proportion, so counts times prices add up
# to exactly 1 - F1, whatever the order and however errors are divided into kinds.

Floats = NDArray[np.float64]


class Prices(NamedTuple):
    """What a wrong pair, a surplus box and a missed object take from F1, as shares of 1."""

    pair: Floats
    box: Floats
    object: Floats


def prices(found: ArrayLike, said: ArrayLike, true: ArrayLike) -> Prices:
    """Return the prices of a run's errors; all are 0 without boxes and objects.

    ``found``: T, hits; ``said``: P, all boxes; ``true``: G, all objects.

    >>> [round(100 * float(price), 2) for price in prices(2, 7, 6)]
    [16.01, 5.2, 10.81]
    """
    t, p, g = (np.asarray(n, dtype=float) for n in (found, said, true))
    both = p + g
    with np.errstate(divide="ignore", invalid="ignore"):
        # With a share s of all errors fixed, F1 is 2 (t + s (g - t)) / (both (1 + s x)).
        x = (g - p) / both
        pair = 2 * _log_ratio(x) / both
        box = t / (both * g) + 2 * (g - t) / both**2 * _log_excess(x)
    nothing = np.zeros_like(both)
    # Without objects F1 is 0 while there is a box, so boxes share the 1 equally.
    pair = np.where(g > 0, pair, nothing)
    box = np.where(g > 0, box, np.divide(1.0, p, out=nothing.copy(), where=p > 0))
    return Prices(pair, box, np.where(g > 0, pair - box, nothing))


_NEAR_0 = 0.01  # Below it quotients lose digits, and a short series is exact


def _log_ratio(x: Any) -> Any:
    """ln(1 + x) / x: the mean of 1 / (1 + s x) over s from 0 to 1."""
    return np.where(np.abs(x) < _NEAR_0, _series(x, lambda k: 1 / (k + 1)), np.log1p(x) / x)


def _log_excess(x: Any) -> Any:
    """(ln(1 + x) - x / (1 + x)) / x²: the mean of s / (1 + s x)² over s from 0 to 1."""
    direct = (np.log1p(x) - x / (1 + x)) / x**2
    return np.where(np.abs(x) < _NEAR_0, _series(x, lambda k: (k + 1) / (k + 2)), direct)


def _series(x: Any, term: Any) -> Any:
    return sum(term(k) * (-x) ** k for k in range(10))
