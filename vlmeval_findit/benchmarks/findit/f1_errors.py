"""Error types of FindIt answers: counts and details per query, and what they cost in F1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

from ...boxes import (
    BoxAnswer,
    BoxError,
    Corners,
    CountsAs,
    ErrorEvent,
    MatchResult,
    ParsedReply,
    Truth,
    f1_costs,
)
from ...protocol import (
    LABEL_KEY,
    WRONG,
    AnswerErrors,
    ErrorAnalysis,
    ErrorGroup,
    ErrorType,
    ScoredRow,
    Sums,
)
from .box_metrics import F1_FAILED_MISSED

SIZE_SLICES = "size"  # Slices by the size of the object, else of the box
OBJECT_COUNT_SLICES = "objects"  # Slices by the number of objects
ERRORS = "errors"  # Key of the events in a row's details

# COCO's areas: small is below, large from
_SMALL = 32.0**2
_LARGE = 96.0**2

_PLACE = frozenset(
    (BoxError.WRONG_FRAME, BoxError.LOCALISATION, BoxError.WRONG_LABEL, BoxError.BOTH)
)
_FORMAT = frozenset((BoxError.RECOVERABLE, BoxError.NOT_READABLE, BoxError.NO_RECTANGLE))
_NO_ANSWER = frozenset((BoxError.FAILED_CALL, BoxError.TRUNCATED, BoxError.REFUSED))


def _group_of(kind: BoxError) -> ErrorGroup:
    if kind in _PLACE:
        return ErrorGroup.PLACE
    if kind in _FORMAT:
        return ErrorGroup.FORMAT
    return ErrorGroup.NO_ANSWER if kind in _NO_ANSWER else ErrorGroup.NUMBER


# Types of errors in tables and details, by kind of box error
ERROR_TYPES = {kind: ErrorType(kind.value, kind.meaning, _group_of(kind)) for kind in BoxError}


class F1Errors(ErrorAnalysis):
    """Errors by their cost in F1@0.5, with failed calls as misses."""

    error_types = tuple(ERROR_TYPES.values())
    score = F1_FAILED_MISSED
    cuts = (SIZE_SLICES, OBJECT_COUNT_SLICES, LABEL_KEY)
    in_sums = True

    @property
    def keys(self) -> Collection[str]:
        return _KEYS

    def events(self, row: ScoredRow) -> Mapping[str, float]:
        return {name: count for name, count in row.sums.items() if name in _KEYS}

    def points(self, sums: Sums) -> Mapping[str, Any]:
        true = sums.get("n_gt", 0) + sums.get("n_gt_failed", 0)
        costs = f1_costs(sums.get("tp", 0), sums.get("n_pred", 0), true)
        points: dict[str, Any] = {}
        for kind in BoxError:
            key = ERROR_TYPES[kind].key
            if key not in sums:
                points[key] = 0.0
                continue
            lost = (
                _count(sums, kind, CountsAs.PAIR) * costs.pair
                + _count(sums, kind, CountsAs.BOX) * costs.box
                + _count(sums, kind, CountsAs.OBJECT) * costs.object
            )
            points[key] = 100 * lost
        return points

    def parts(self, row: ScoredRow, by: str) -> Iterator[tuple[str, Mapping[str, float]]]:
        if by == OBJECT_COUNT_SLICES:
            yield str(len(BoxAnswer.of(row).assigned)), self.events(row)
        elif by in row.slices or by not in (SIZE_SLICES, LABEL_KEY):
            yield from super().parts(row, by)
        else:
            default = row.details[LABEL_KEY] if by == LABEL_KEY else None
            by_part: dict[str, list[ErrorEvent]] = {}
            for each in row.details.get(ERRORS, ()):
                part = each.get(by, default)
                # Runs that 1.0 scored list right rejections.
                if part is not None and each["kind"] in _NAMES:
                    event = ErrorEvent(BoxError(each["kind"]), each["box"], each["object"])
                    by_part.setdefault(part, []).append(event)
            for part, events in by_part.items():
                yield part, event_sums(events)


def event_sums(events: Iterable[ErrorEvent]) -> dict[str, float]:
    """Count a row's events by kind, without kinds that have none."""
    counts: Counter[str] = Counter()
    for event in events:
        counts[ERROR_TYPES[event.kind].key] += 1
        if event.counts_as is not event.kind.usually:
            counts[_unusual(event.kind, event.counts_as)] += 1
    return dict(counts)


@cache
def _unusual(kind: BoxError, counts_as: CountsAs) -> str:
    """Name the sum of the events of a kind that count as something else than usually."""
    return f"{ERROR_TYPES[kind].key} ({counts_as.value})"


def _count(sums: Sums, kind: BoxError, counts_as: CountsAs) -> Any:
    if counts_as is not kind.usually:
        return sums.get(_unusual(kind, counts_as), 0)
    unusual = [_unusual(kind, other) for other in CountsAs if other is not counts_as]
    return sums.get(ERROR_TYPES[kind].key, 0) - sum(sums.get(key, 0) for key in unusual)


_NAMES = frozenset(each.name for each in ERROR_TYPES.values())
_KEYS = {
    *(each.key for each in ERROR_TYPES.values()),
    *(_unusual(kind, counts_as) for kind, counts_as in product(BoxError, CountsAs)),
}


def details_of(
    events: Sequence[ErrorEvent], matched: MatchResult, reading: ParsedReply, truth: Truth
) -> list[dict[str, Any]]:
    """List events for a row's details; size and label are the object's, else the box's."""
    result = []
    for event in events:
        each: dict[str, Any] = {"kind": event.kind.value, "box": event.box, "object": event.object}
        if event.object is not None:
            each |= _size_and_label(event.object, truth.boxes, truth.labels)
        elif event.box is not None:
            each |= _size_and_label(event.box, matched.boxes, reading.labels)
        result.append(each)
    return result


def _size_and_label(at: int, boxes: Sequence[Corners], labels: Sequence[str]) -> dict[str, str]:
    size = {SIZE_SLICES: coco_size(boxes[at])}
    return size | {LABEL_KEY: labels[at]} if labels else size


SIZES = ("small", "medium", "large", "no area")  # Those of :func:`coco_size`, in their order


def coco_size(box: Sequence[float]) -> str:
    """Return the COCO size of a box x1, y1, x2, y2 in pixels.

    >>> coco_size((0, 0, 31, 31)), coco_size((0, 0, 32, 32)), coco_size((0, 0, 96, 96))
    ('small', 'medium', 'large')
    """
    x1, y1, x2, y2 = box
    if not (x1 < x2 and y1 < y2):
        return "no area"
    area = (x2 - x1) * (y2 - y1)
    if area < _SMALL:
        return "small"
    return "medium" if area < _LARGE else "large"


FALSE_ALARM = ErrorType(
    "false alarm", "a point, though there is nothing to find", ErrorGroup.NUMBER
)
OFF_TARGET = ErrorType(
    "off target", "a point in no object, and an object without a point", ErrorGroup.PLACE
)
TOO_MANY = ErrorType("too many", "a point more than there are objects", ErrorGroup.NUMBER)
MISSED = ErrorType("missed", "an object more than there are points", ErrorGroup.NUMBER)


@dataclass(frozen=True)
class PointErrors(AnswerErrors):
    """Errors of point answers.

    An unmatched point and an unmatched object together are an "off target"; the rest is
    "too many" or "missed".
    """

    @property
    def error_types(self) -> tuple[ErrorType, ...]:  # type: ignore[override]
        known = [each for each in super().error_types if each is not WRONG]
        return (*known, FALSE_ALARM, OFF_TARGET, TOO_MANY, MISSED)

    def events(self, row: ScoredRow) -> Mapping[str, float]:
        if row.failed or row.reason is not None:
            return super().events(row)
        points = row.sums["points"] - row.sums["pointed"]
        objects = row.sums["objects"] - row.sums["pointed"]
        surplus = TOO_MANY if row.sums["objects"] else FALSE_ALARM
        counts = {
            OFF_TARGET: min(points, objects),
            surplus: max(0, points - objects),
            MISSED: max(0, objects - points),
        }
        return {error.key: count for error, count in counts.items() if count}
