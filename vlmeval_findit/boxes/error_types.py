"""Classify the errors of a query: each surplus box and each missed object has exactly one type.

Boxes and objects that are no hits are paired again, as many and as well as possible, frame by
frame, then across a video's frames. What is left is surplus or missed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .answer_kinds import AnswerKind
from .box_records import FormatFailure, MatchResult, ParsedReply, Truth
from .hungarian import assign
from .lenient.labels import is_lost
from .matching import HIT, iou, plain_label
from .representation import Corners

# --- error types ------------------------------------------------------------------------------

NEAR = 0.1  # IoU from which a box that is no hit may be meant for an object


class CountsAs(Enum):
    """What an event takes from the score; this decides its price."""

    PAIR = "pair"  # A box that is no hit, and its object
    BOX = "box"  # A surplus box
    OBJECT = "object"  # A missed object


class BoxError(Enum):
    """Types of errors in display order; the value is the name shown."""

    usually: CountsAs  # For most of its events
    meaning: str

    def __new__(
        cls, value: str, usually: CountsAs = CountsAs.OBJECT, meaning: str = ""
    ) -> BoxError:
        member = object.__new__(cls)
        member._value_, member.usually, member.meaning = value, usually, meaning
        return member

    FAILED_CALL = "failed call", CountsAs.OBJECT, "the call failed: there is no reply"
    TRUNCATED = "truncated", CountsAs.OBJECT, "reply or thinking was cut off before the object"
    RECOVERABLE = "recoverable", CountsAs.OBJECT, "lenient parsing finds the box or its label"
    NOT_READABLE = "not readable", CountsAs.OBJECT, "empty, malformed, or numbers nobody reads"
    NO_RECTANGLE = "no rectangle", CountsAs.PAIR, "numbers that make no box, or a box without area"
    WRONG_FRAME = "wrong frame", CountsAs.PAIR, "the right box in another frame, or in none"
    LOCALISATION = "localisation", CountsAs.PAIR, f"same label, IoU from {NEAR} to below {HIT}"
    WRONG_LABEL = "wrong label", CountsAs.PAIR, f"IoU {HIT} or more, another label"
    BOTH = "both", CountsAs.PAIR, f"another label, and IoU from {NEAR} to below {HIT}"
    DUPLICATE = "duplicate", CountsAs.BOX, "another box of an object that is hit"
    BACKGROUND = "background", CountsAs.BOX, "a box where there is no such object"
    MISSED = "missed", CountsAs.OBJECT, "an object without a box, in an answer with other boxes"
    NOTHING_FOUND = "nothing found", CountsAs.OBJECT, "the answer says that there is no object"
    REFUSED = "refused", CountsAs.OBJECT, "words without any number"
    FALSE_ALARM = "false alarm", CountsAs.BOX, "a box, though there is nothing to find"


class ErrorEvent(NamedTuple):
    """One error, with the places of its box and its object in their query (None: has none)."""

    kind: BoxError
    box: int | None = None
    object: int | None = None  # At least one of the two is there

    @property
    def counts_as(self) -> CountsAs:
        """Return what it takes from the score.

        >>> ErrorEvent(BoxError.NO_RECTANGLE, None, 0).counts_as
        <CountsAs.OBJECT: 'object'>
        """
        if self.box is None:
            return CountsAs.OBJECT
        return CountsAs.BOX if self.object is None else CountsAs.PAIR


# --- classification -------------------------------------------------------------------------------

# Type of a missed object, by the reply's reason
_OF_REASON: Mapping[FormatFailure | None, BoxError] = {
    FormatFailure.FAILED_CALL: BoxError.FAILED_CALL,
    FormatFailure.EMPTY: BoxError.NOT_READABLE,
    FormatFailure.TRUNCATED: BoxError.TRUNCATED,
    FormatFailure.TRUNCATED_THINKING: BoxError.TRUNCATED,
    FormatFailure.WRONG_SHAPE: BoxError.NO_RECTANGLE,
    FormatFailure.NOT_A_NUMBER: BoxError.NO_RECTANGLE,
    FormatFailure.NOT_FINITE: BoxError.NO_RECTANGLE,
    FormatFailure.FRAME_OUT_OF_RANGE: BoxError.WRONG_FRAME,
}


# Else by what the reply says; for other kinds: not readable
_OF_KIND = {
    AnswerKind.NO_BOX: BoxError.NOTHING_FOUND,
    AnswerKind.WORDS: BoxError.REFUSED,
}


class JudgedAnswer(NamedTuple):
    """One query with its answer."""

    matched: MatchResult
    reading: ParsedReply
    truth: Truth
    kind: AnswerKind
    cut: bool = False  # Adheres, but was cut at its token limit: boxes may be missing
    recoverable: Collection[int] = ()  # Places of objects that lenient parsing finds


def classify_errors(queries: Sequence[JudgedAnswer]) -> list[list[ErrorEvent]]:
    """Return the errors of each query."""
    return [_events(query) for query in queries]


def _events(query: JudgedAnswer) -> list[ErrorEvent]:
    matched, reading, truth, *_ = query
    if matched.counted == len(matched.hits) and all(matched.hits):
        return []
    # What is left to explain: boxes, then objects, are deleted as they are paired.
    counted_for = {box for box, hit in zip(matched.assigned, matched.hits, strict=True) if hit}
    counted_for.update(matched.ignored)
    boxes = {at: None for at in range(len(matched.boxes)) if at not in counted_for}
    objects = {at: None for at, hit in enumerate(matched.hits) if not hit}
    near = _near_pairs(query, [*boxes]) if boxes and truth.boxes else []
    duplicates = {
        n.box for n in near if matched.hits[n.object] and n.iou >= HIT and n.agree and n.in_frame
    }
    near = [n for n in near if n.object in objects]
    events: list[ErrorEvent] = []

    def pair(kind: BoxError, box: int, object_: int) -> None:
        events.append(ErrorEvent(kind, box, object_))
        del boxes[box], objects[object_]

    for n in _best([n for n in near if n.in_frame]):
        pair(_why_no_hit(n, query), n.box, n.object)
    if reading.frames:
        right = [n for n in near if n.iou >= HIT and n.agree]
        for n in _best([n for n in right if n.box in boxes and n.object in objects]):
            pair(BoxError.WRONG_FRAME, n.box, n.object)
    flat = {at for at in boxes if _has_no_area(matched.boxes[at])}
    # Boxes without an area stand for missed objects of their frame and label, in order.
    waiting: dict[tuple[int, str], list[int]] = {}
    for at in reversed(objects) if flat else ():
        waiting.setdefault(_group(at, truth.frames, truth.labels), []).append(at)
    for box in sorted(flat):
        if missed := waiting.get(_group(box, reading.frames, reading.labels)):
            pair(BoxError.NO_RECTANGLE, box, missed.pop())
    for box in boxes:
        if not truth.boxes:
            kind = BoxError.FALSE_ALARM
        elif box in flat:
            kind = BoxError.NO_RECTANGLE
        else:
            kind = BoxError.DUPLICATE if box in duplicates else BoxError.BACKGROUND
        events.append(ErrorEvent(kind, box))
    return [*events, *(ErrorEvent(_why_missed(query, at), None, at) for at in objects)]


def _why_no_hit(near: _Near, query: JudgedAnswer) -> BoxError:
    """Say why a box near an object, in its frame, is no hit."""
    if near.agree:
        return BoxError.LOCALISATION
    if near.iou < HIT:
        return BoxError.BOTH
    # The reply does not say another label: its label was not read.
    if near.object in query.recoverable:
        return BoxError.RECOVERABLE
    label = query.reading.labels[near.box] if query.reading.labels else ""
    return BoxError.NOT_READABLE if label and is_lost(label) else BoxError.WRONG_LABEL


def _has_no_area(box: Corners) -> bool:
    x1, y1, x2, y2 = box
    return not (x1 < x2 and y1 < y2)


def _group(at: int, frames: Sequence[int], labels: Sequence[str]) -> tuple[int, str]:
    return frames[at] if frames else 0, plain_label(labels[at]) if labels else ""


def _why_missed(query: JudgedAnswer, object_: int) -> BoxError:
    reason = query.reading.reason
    if reason is not FormatFailure.FAILED_CALL and object_ in query.recoverable:
        return BoxError.RECOVERABLE
    if reason in _OF_REASON:
        return _OF_REASON[reason]
    if query.cut:
        return BoxError.TRUNCATED
    if reason is None and query.matched.boxes:
        return BoxError.MISSED
    return _OF_KIND.get(query.kind, BoxError.NOT_READABLE)


class _Near(NamedTuple):
    box: int
    object: int
    iou: float
    agree: bool
    in_frame: bool


def _near_pairs(query: JudgedAnswer, boxes: Sequence[int]) -> list[_Near]:
    """Find the objects near each box, hits among them."""
    reading, truth = query.reading, query.truth
    with np.errstate(over="ignore"):  # models can answer 1e300
        predicted = _array(query.matched.boxes[at] for at in boxes)
        true = _array(truth.boxes)
    rows, columns = np.indices((len(predicted), len(true))).reshape(2, -1)
    values = iou(predicted[rows], true[columns])
    near = np.flatnonzero(values >= NEAR)
    pairs = []
    for row, at, value in zip(
        *(each[near].tolist() for each in (rows, columns, values)), strict=True
    ):
        frame, label = _group(boxes[row], reading.frames, reading.labels)
        true_frame, true_label = _group(at, truth.frames, truth.labels)
        agree = not truth.labels or label == true_label
        pairs.append(_Near(boxes[row], at, value, agree, frame == true_frame))
    return pairs


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


class F1Costs(NamedTuple):
    """What a wrong pair, a surplus box and a missed object take from F1, as shares of 1."""

    pair: Floats
    box: Floats
    object: Floats


def prices(hits: ArrayLike, boxes: ArrayLike, objects: ArrayLike) -> F1Costs:
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
    return F1Costs(pair, box, np.where(g > 0, pair - box, nothing))


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
