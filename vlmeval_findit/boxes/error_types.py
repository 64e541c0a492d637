"""Classify the errors of a query: each surplus box and each missed object has exactly one type.

Boxes and objects that are no hits are paired again, as many and as well as possible, frame by
frame, then across a video's frames. What is left is surplus or missed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .box_records import FormatFailure, Matched, ParsedReply, Truth
from .hungarian import assign
from .matching import HIT, iou, plain_label

# --- error types ------------------------------------------------------------------------------

NEAR = 0.1  # IoU from which a box that is no hit may be meant for an object


class CountsAs(Enum):
    """What an event takes from the score; this decides its price."""

    PAIR = "pair"  # A box that is no hit, and its object
    BOX = "box"  # A surplus box
    OBJECT = "object"  # A missed object
    NOTHING = "nothing"


class BoxError(Enum):
    """Types of errors in display order; the value is the name shown."""

    usually: CountsAs  # For most of its events
    meaning: str

    def __new__(
        cls, value: str, usually: CountsAs = CountsAs.NOTHING, meaning: str = ""
    ) -> BoxError:
        member = object.__new__(cls)
        member._value_, member.usually, member.meaning = value, usually, meaning
        return member

    FAILED_CALL = "failed call", CountsAs.OBJECT, "the call failed: there is no reply"
    TRUNCATED = "truncated", CountsAs.OBJECT, "reply or thinking was cut off before the object"
    RECOVERABLE = "recoverable", CountsAs.OBJECT, "lenient parsing finds it in a malformed reply"
    NOT_READABLE = "not readable", CountsAs.OBJECT, "the reply is empty or malformed, without it"
    NO_RECTANGLE = "no rectangle", CountsAs.PAIR, "numbers that make no box, or a box without area"
    WRONG_FRAME = "wrong frame", CountsAs.PAIR, "the right box in another frame, or in none"
    LOCALISATION = "localisation", CountsAs.PAIR, f"same label, IoU from {NEAR} to below {HIT}"
    WRONG_LABEL = "wrong label", CountsAs.PAIR, f"IoU {HIT} or more, another label"
    BOTH = "both", CountsAs.PAIR, f"another label, and IoU from {NEAR} to below {HIT}"
    DUPLICATE = "duplicate", CountsAs.BOX, "another box of an object that is hit"
    BACKGROUND = "background", CountsAs.BOX, "a box where there is no such object"
    MISSED = "missed", CountsAs.OBJECT, "an object without a box, in an answer with other boxes"
    REFUSED = "refused", CountsAs.OBJECT, "the answer has no box, though there are objects"
    FALSE_ALARM = "false alarm", CountsAs.BOX, "a box, though there is nothing to find"
    REJECTED = "rejected rightly", CountsAs.NOTHING, "rightly no box; costs nothing"


class ErrorEvent(NamedTuple):
    """One error, with the places of its box and its object in their query (None: has none)."""

    kind: BoxError
    box: int | None = None
    object: int | None = None

    @property
    def counts_as(self) -> CountsAs:
        """Return what it takes from the score.

        >>> ErrorEvent(BoxError.NO_RECTANGLE, None, 0).counts_as
        <CountsAs.OBJECT: 'object'>
        """
        if self.box is None:
            return CountsAs.NOTHING if self.object is None else CountsAs.OBJECT
        return CountsAs.BOX if self.object is None else CountsAs.PAIR


# --- classification -------------------------------------------------------------------------------

# Kind of a missed object, by the reply's reason; for other reasons: not readable
_OF_REASON: Mapping[FormatFailure | None, BoxError] = {
    FormatFailure.FAILED_CALL: BoxError.FAILED_CALL,
    FormatFailure.TRUNCATED: BoxError.TRUNCATED,
    FormatFailure.TRUNCATED_THINKING: BoxError.TRUNCATED,
    FormatFailure.WRONG_SHAPE: BoxError.NO_RECTANGLE,
    FormatFailure.NOT_A_NUMBER: BoxError.NO_RECTANGLE,
    FormatFailure.NOT_FINITE: BoxError.NO_RECTANGLE,
    FormatFailure.FRAME_OUT_OF_RANGE: BoxError.WRONG_FRAME,
}


class MatchedQuery(NamedTuple):
    """One query with its answer."""

    matched: Matched
    reading: ParsedReply
    truth: Truth
    cut: bool = False  # Adheres, but was cut at its token limit: boxes may be missing
    recoverable: Collection[int] = ()  # Places of objects that lenient parsing finds
    rejected: bool = False  # Nothing to find, and the reply says so in the requested format


def classify_errors(queries: Sequence[MatchedQuery]) -> list[list[ErrorEvent]]:
    """Return the errors of each query."""
    return [_events(query) for query in queries]


def _events(query: MatchedQuery) -> list[ErrorEvent]:
    boxes, hits = query.matched.counted, query.matched.hits
    if boxes == len(hits) and all(hits):
        return [ErrorEvent(BoxError.REJECTED)] if query.rejected else []
    return _Errors(query).events()


class _Near(NamedTuple):
    box: int
    object: int
    iou: float
    agree: bool
    in_frame: bool


class _Errors:
    def __init__(self, query: MatchedQuery) -> None:
        matched, reading = query.matched, query.reading
        self.query = query
        self.hits = {box for box, hit in zip(matched.assigned, matched.hits, strict=True) if hit}
        counted_for = {*self.hits, *matched.ignored}
        self.boxes = [at for at in range(len(matched.boxes)) if at not in counted_for]
        self.objects = [at for at, hit in enumerate(matched.hits) if not hit]
        self.frames: Sequence[int] = reading.frames or [0] * len(matched.boxes)
        self.near: list[_Near] = []
        self.duplicates: set[int] = set()  # Boxes of objects that another box hits
        if self.boxes and query.truth.boxes:
            _compare(self)

    def events(self) -> list[ErrorEvent]:
        paired = self._pairs() if self.boxes and self.objects else []
        boxes = {event.box for event in paired}
        objects = {event.object for event in paired}
        return [
            *paired,
            *(self._surplus(box) for box in self.boxes if box not in boxes),
            *(self._missed(at) for at in self.objects if at not in objects),
        ]

    def _pairs(self) -> list[ErrorEvent]:
        near, events = self.near, []
        if near:
            inside = _best([n for n in near if n.in_frame])
            events = [ErrorEvent(_pair_error(n), n.box, n.object) for n in inside]
        if self.query.reading.frames and near:
            boxes, objects = self._left(events)
            elsewhere = [n for n in near if n.iou >= HIT and n.agree]
            best = _best([n for n in elsewhere if n.box in boxes and n.object in objects])
            events += [ErrorEvent(BoxError.WRONG_FRAME, n.box, n.object) for n in best]
        flat = [box for box in self.boxes if self._has_no_area(box)]
        if flat:
            _, objects = self._left(events)
            events += self._flat(flat, objects)
        return events

    def _left(self, events: Sequence[ErrorEvent]) -> tuple[list[int], list[int]]:
        boxes, objects = {event.box for event in events}, {event.object for event in events}
        return (
            [at for at in self.boxes if at not in boxes],
            [at for at in self.objects if at not in objects],
        )

    def _flat(self, boxes: Iterable[int], objects: Sequence[int]) -> Iterator[ErrorEvent]:
        """Pair boxes without an area with missed objects of their frame and label."""
        predicted, true = self.query.reading.labels, self.query.truth.labels
        waiting: dict[tuple[int, str], list[int]] = {}
        for at in reversed(objects):
            key = self.query.truth.frames[at], plain_label(true[at]) if true else ""
            waiting.setdefault(key, []).append(at)
        for box in boxes:
            key = self.frames[box], plain_label(predicted[box]) if predicted else ""
            if waiting.get(key):
                yield ErrorEvent(BoxError.NO_RECTANGLE, box, waiting[key].pop())

    def _has_no_area(self, box: int) -> bool:
        x1, y1, x2, y2 = self.query.matched.boxes[box]
        return not (x1 < x2 and y1 < y2)

    def _surplus(self, box: int) -> ErrorEvent:
        if not self.query.truth.boxes:
            return ErrorEvent(BoxError.FALSE_ALARM, box)
        if self._has_no_area(box):
            return ErrorEvent(BoxError.NO_RECTANGLE, box)
        return ErrorEvent(
            BoxError.DUPLICATE if box in self.duplicates else BoxError.BACKGROUND, box
        )

    def _missed(self, object_: int) -> ErrorEvent:
        reason = self.query.reading.reason
        if reason is not FormatFailure.FAILED_CALL and object_ in self.query.recoverable:
            return ErrorEvent(BoxError.RECOVERABLE, None, object_)
        if reason not in (None, FormatFailure.NO_BOX):
            return ErrorEvent(_OF_REASON.get(reason, BoxError.NOT_READABLE), None, object_)
        if self.query.cut:
            return ErrorEvent(BoxError.TRUNCATED, None, object_)
        return ErrorEvent(
            BoxError.MISSED if self.query.matched.boxes else BoxError.REFUSED, None, object_
        )


def _pair_error(n: _Near) -> BoxError:
    if n.agree:
        return BoxError.LOCALISATION
    return BoxError.WRONG_LABEL if n.iou >= HIT else BoxError.BOTH


def _compare(errors: _Errors) -> None:
    """Find the objects near each box, and the boxes that repeat a hit."""
    reading, truth = errors.query.reading, errors.query.truth
    boxes = [errors.query.matched.boxes[at] for at in errors.boxes]
    with np.errstate(over="ignore"):  # models can answer 1e300
        predicted, true = _array(boxes), _array(truth.boxes)
    rows, columns = np.indices((len(predicted), len(true))).reshape(2, -1)
    values = iou(predicted[rows], true[columns])
    near = np.flatnonzero(values >= NEAR)
    pairs = zip(*(each[near].tolist() for each in (rows, columns, values)), strict=True)
    for row, object_, value in pairs:
        box = errors.boxes[row]
        agree = not truth.labels or plain_label(reading.labels[box]) == plain_label(
            truth.labels[object_]
        )
        pair = _Near(box, object_, value, agree, errors.frames[box] == truth.frames[object_])
        if not errors.query.matched.hits[object_]:
            errors.near.append(pair)
        elif value >= HIT and agree and pair.in_frame:
            errors.duplicates.add(box)


def _array(boxes: Iterable[Sequence[float]]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    flat = np.fromiter(chain.from_iterable(boxes), dtype=np.float64)
    return flat.astype(np.float32).reshape(-1, 4)


def _best(pairs: list[_Near]) -> list[_Near]:
    """Choose as many pairs as possible, then those that overlap and agree best."""
    if len(pairs) < 2:
        return pairs
    boxes = {box: at for at, box in enumerate(dict.fromkeys(n.box for n in pairs))}
    objects = {thing: at for at, thing in enumerate(dict.fromkeys(n.object for n in pairs))}
    if len(boxes) == len(pairs) == len(objects):  # no conflicts
        return pairs
    cost = np.zeros((len(boxes), len(objects)), dtype=np.float32)
    # One more pair outweighs any better ones.
    another_pair = 2 * (min(cost.shape) + 1)
    table: dict[tuple[int, int], _Near] = {}
    for n in pairs:
        place = boxes[n.box], objects[n.object]
        table[place] = n
        cost[place] = -(another_pair + n.iou + n.agree)
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


def prices(hits: ArrayLike, boxes: ArrayLike, objects: ArrayLike) -> Prices:
    """Return the prices of a run's errors; all are 0 without boxes and objects.

    ``hits``: T; ``boxes``: P, all predicted; ``objects``: G, all in the truth.

    >>> [round(100 * float(price), 2) for price in prices(2, 7, 6)]
    [16.01, 5.2, 10.81]
    """
    t, p, g = (np.asarray(n, dtype=float) for n in (hits, boxes, objects))
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
