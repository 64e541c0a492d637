"""Classify the errors of an answer: each surplus box and each missed object has exactly one type.

Boxes and objects that are no hits are paired again, as many and as well as possible, frame by
frame, then across a video's frames. What is left is surplus or missed.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .answer_kinds import AnswerKind
from .box_records import FormatFailure, MatchResult, ParsedReply, Truth
from .hungarian import assign
from .lenient.labels import is_lost
from .matching import HIT_IOU, iou, plain_label
from .representation import Corners

# --- error types ------------------------------------------------------------------------------

NEAR = 0.1  # IoU from which a box that is no hit may be meant for an object


class CountsAs(Enum):
    """What an event takes from the score; this decides its cost."""

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
        member._value_ = value
        member.usually = usually
        member.meaning = meaning
        return member

    FAILED_CALL = "failed call", CountsAs.OBJECT, "the call failed: there is no reply"
    TRUNCATED = "truncated", CountsAs.OBJECT, "reply or thinking was cut off before the object"
    RECOVERABLE = "recoverable", CountsAs.OBJECT, "lenient parsing finds the box or its label"
    NOT_READABLE = (
        "not readable",
        CountsAs.OBJECT,
        "empty or malformed, and lenient parsing finds no box on the object",
    )
    NO_RECTANGLE = (
        "no rectangle",
        CountsAs.PAIR,
        "corners not in order (top left, bottom right), no area, or not the numbers of a box",
    )
    WRONG_FRAME = "wrong frame", CountsAs.PAIR, "the right box in another frame, or in none"
    LOCALISATION = "localisation", CountsAs.PAIR, f"same label, IoU from {NEAR} to below {HIT_IOU}"
    WRONG_LABEL = "wrong label", CountsAs.PAIR, f"IoU {HIT_IOU} or more, another label"
    BOTH = "both", CountsAs.PAIR, f"another label, and IoU from {NEAR} to below {HIT_IOU}"
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

    match: MatchResult
    reading: ParsedReply
    truth: Truth
    kind: AnswerKind
    cut: bool = False  # Adheres, but was cut at its token limit: boxes may be missing
    recoverable: Collection[int] = ()  # Places of objects that lenient parsing finds


def classify_errors(answers: Sequence[JudgedAnswer]) -> list[list[ErrorEvent]]:
    """Return the errors of each answer."""
    return [_events(answer) for answer in answers]


def _events(answer: JudgedAnswer) -> list[ErrorEvent]:
    """Return the errors of an answer: wrong pairs, then surplus boxes, then missed objects."""
    match = answer.match
    if match.tp == match.counted == len(match.hits):
        return []
    open_places = _OpenPlaces(match)
    near = _near_pairs(answer, sorted(open_places.boxes))
    duplicates = {
        pair.box for pair in near if pair.is_right and pair.in_frame and match.hits[pair.object]
    }
    near = [pair for pair in near if not match.hits[pair.object]]

    events = _pair_in_frames(near, answer, open_places)
    if answer.reading.frames:
        events += _pair_across_frames(near, open_places)
    without_area = {at for at in open_places.boxes if _has_no_area(match.boxes[at])}
    events += _pair_in_order(sorted(without_area), answer, open_places)
    for box in sorted(open_places.boxes):
        if not answer.truth.boxes:
            kind = BoxError.FALSE_ALARM
        elif box in without_area:
            kind = BoxError.NO_RECTANGLE
        elif box in duplicates:
            kind = BoxError.DUPLICATE
        else:
            kind = BoxError.BACKGROUND
        events.append(ErrorEvent(kind, box))
    for object_ in sorted(open_places.objects):
        events.append(ErrorEvent(_why_missed(object_, answer), None, object_))
    return events


class _OpenPlaces:
    """The boxes and objects of an answer that neither a hit nor an error explains so far."""

    def __init__(self, match: MatchResult) -> None:
        hits = {box for box, hit in zip(match.assigned, match.hits, strict=True) if hit}
        self.boxes = set(range(len(match.boxes))) - hits - set(match.ignored)
        self.objects = {at for at, hit in enumerate(match.hits) if not hit}

    def has_both(self, pair: _NearPair) -> bool:
        return pair.box in self.boxes and pair.object in self.objects

    def pair(self, kind: BoxError, box: int, object_: int) -> ErrorEvent:
        """Explain a box and an object by one error."""
        self.boxes.remove(box)
        self.objects.remove(object_)
        return ErrorEvent(kind, box, object_)


# --- wrong pairs ----------------------------------------------------------------------------------


class _NearPair(NamedTuple):
    """A box and an object that it may be meant for."""

    box: int
    object: int
    iou: float
    agree: bool  # Their labels agree
    in_frame: bool  # They are in the same frame

    @property
    def is_right(self) -> bool:
        """Return whether the box is right for the object, but for its frame."""
        return self.iou >= HIT_IOU and self.agree


def _near_pairs(answer: JudgedAnswer, boxes: Sequence[int]) -> list[_NearPair]:
    """Find the objects near each box, hits among them."""
    reading = answer.reading
    truth = answer.truth
    if not boxes or not truth.boxes:
        return []
    with np.errstate(over="ignore"):  # Models can answer 1e300
        predicted = _array([answer.match.boxes[at] for at in boxes])
        true = _array(truth.boxes)
    rows, columns = np.indices((len(predicted), len(true))).reshape(2, -1)
    ious = iou(predicted[rows], true[columns])
    near = np.flatnonzero(ious >= NEAR)
    pairs: list[_NearPair] = []
    for row, object_, value in zip(
        rows[near].tolist(), columns[near].tolist(), ious[near].tolist(), strict=True
    ):
        box = boxes[row]
        frame, label = _frame_and_label(box, reading.frames, reading.labels)
        true_frame, true_label = _frame_and_label(object_, truth.frames, truth.labels)
        agree = not truth.labels or label == true_label
        pairs.append(_NearPair(box, object_, value, agree, frame == true_frame))
    return pairs


def _array(boxes: Iterable[Sequence[float]]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    flat = np.fromiter(chain.from_iterable(boxes), dtype=np.float64)
    return flat.astype(np.float32).reshape(-1, 4)


def _frame_and_label(at: int, frames: Sequence[int], labels: Sequence[str]) -> tuple[int, str]:
    return frames[at] if frames else 0, plain_label(labels[at]) if labels else ""


def _pair_in_frames(
    near: Sequence[_NearPair], answer: JudgedAnswer, open_places: _OpenPlaces
) -> list[ErrorEvent]:
    """Pair boxes with objects of their frames."""
    events = []
    for pair in _best_pairs([pair for pair in near if pair.in_frame]):
        kind = _why_no_hit(pair, answer)
        events.append(open_places.pair(kind, pair.box, pair.object))
    return events


def _pair_across_frames(near: Sequence[_NearPair], open_places: _OpenPlaces) -> list[ErrorEvent]:
    """Pair boxes with objects that they would hit in another frame."""
    candidates = [pair for pair in near if pair.is_right and open_places.has_both(pair)]
    events = []
    for pair in _best_pairs(candidates):
        events.append(open_places.pair(BoxError.WRONG_FRAME, pair.box, pair.object))
    return events


def _pair_in_order(
    boxes: Sequence[int], answer: JudgedAnswer, open_places: _OpenPlaces
) -> list[ErrorEvent]:
    """Pair boxes without area with missed objects of their frame and label, in order."""
    if not boxes:
        return []
    reading = answer.reading
    truth = answer.truth
    waiting: dict[tuple[int, str], deque[int]] = defaultdict(deque)
    for object_ in sorted(open_places.objects):
        waiting[_frame_and_label(object_, truth.frames, truth.labels)].append(object_)
    events = []
    for box in boxes:
        objects = waiting[_frame_and_label(box, reading.frames, reading.labels)]
        if objects:
            events.append(open_places.pair(BoxError.NO_RECTANGLE, box, objects.popleft()))
    return events


def _best_pairs(pairs: list[_NearPair]) -> list[_NearPair]:
    """Choose as many pairs as possible, then those that overlap and agree best."""
    if len(pairs) < 2:
        return pairs
    boxes = list(dict.fromkeys(pair.box for pair in pairs))
    objects = list(dict.fromkeys(pair.object for pair in pairs))
    if len(boxes) == len(pairs) == len(objects):  # No conflicts
        return pairs
    rows = {box: row for row, box in enumerate(boxes)}
    columns = {object_: column for column, object_ in enumerate(objects)}
    cost = np.zeros((len(boxes), len(objects)), dtype=np.float32)
    # One more pair outweighs any better ones.
    another_pair = 2 * (min(cost.shape) + 1)
    by_cell: dict[tuple[int, int], _NearPair] = {}
    for pair in pairs:
        cell = rows[pair.box], columns[pair.object]
        by_cell[cell] = pair
        cost[cell] = -(another_pair + pair.iou + pair.agree)
    return [by_cell[cell] for cell in zip(*assign(cost), strict=True) if cell in by_cell]


def _has_no_area(box: Corners) -> bool:
    x1, y1, x2, y2 = box
    return not (x1 < x2 and y1 < y2)


# --- why ------------------------------------------------------------------------------------------


def _why_no_hit(pair: _NearPair, answer: JudgedAnswer) -> BoxError:
    """Say why a box near an object, in its frame, is no hit."""
    if pair.agree:
        return BoxError.LOCALISATION
    if pair.iou < HIT_IOU:
        return BoxError.BOTH
    # The reply does not say another label: its label was not read.
    if pair.object in answer.recoverable:
        return BoxError.RECOVERABLE
    label = answer.reading.labels[pair.box] if answer.reading.labels else ""
    return BoxError.NOT_READABLE if label and is_lost(label) else BoxError.WRONG_LABEL


def _why_missed(object_: int, answer: JudgedAnswer) -> BoxError:
    """Say why an object has no box."""
    reason = answer.reading.reason
    if reason is not FormatFailure.FAILED_CALL and object_ in answer.recoverable:
        return BoxError.RECOVERABLE
    if reason in _OF_REASON:
        return _OF_REASON[reason]
    if answer.cut:
        return BoxError.TRUNCATED
    if reason is None and answer.match.boxes:
        return BoxError.MISSED
    return _OF_KIND.get(answer.kind, BoxError.NOT_READABLE)


# --- the cost of an error: its Aumann-Shapley share of the lost F1 --------------------------------
#
# F1 is 2 T / (P + G), with T hits, P boxes and G objects. Fixing an error removes a surplus box
# (P - 1), finds a missed object (T + 1, P + 1) or makes a wrong pair a hit (T + 1). Its cost is
# what it adds on average while all are fixed in the same proportion, so counts times costs add up
# to exactly 1 - F1, whatever the order and however errors are divided into kinds.

Floats = NDArray[np.float64]


class F1Costs(NamedTuple):
    """What a wrong pair, a surplus box and a missed object take from F1, as shares of 1."""

    pair: Floats
    box: Floats
    object: Floats


def f1_costs(hits: ArrayLike, boxes: ArrayLike, objects: ArrayLike) -> F1Costs:
    """Return the costs of a run's errors; all are 0 without boxes and objects.

    ``hits``: T; ``boxes``: P, all predicted; ``objects``: G, all in the truth.

    >>> [round(100 * float(cost), 2) for cost in f1_costs(2, 7, 6)]
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


_NEAR_ZERO = 0.01  # Below it quotients lose digits, and a short series is exact


def _log_ratio(x: Any) -> Any:
    """ln(1 + x) / x: the mean of 1 / (1 + s x) over s from 0 to 1."""
    return _exact_near_zero(x, np.log1p(x) / x, lambda k: 1 / (k + 1))


def _log_excess(x: Any) -> Any:
    """(ln(1 + x) - x / (1 + x)) / x²: the mean of s / (1 + s x)² over s from 0 to 1."""
    direct = (np.log1p(x) - x / (1 + x)) / x**2
    return _exact_near_zero(x, direct, lambda k: (k + 1) / (k + 2))


def _exact_near_zero(x: Any, direct: Any, term: Callable[[int], float]) -> Any:
    """Return ``direct``, and near zero the sum of ``term(k) * (-x)**k``."""
    is_near = np.abs(x) < _NEAR_ZERO
    if not np.any(is_near):
        return direct
    return np.where(is_near, sum(term(k) * (-x) ** k for k in range(10)), direct)
