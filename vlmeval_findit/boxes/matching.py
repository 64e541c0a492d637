"""Match replies with ground truth: IoU, labels, assignment, points (protocol section 5).

For speed, all boxes of a batch lie in one array, with a flat list of (prediction, truth) pairs;
only the assignment runs query by query.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain, pairwise, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .box_records import NO_BOX, MatchResult, ParsedReply, Truth
from .hungarian import assign, assign_sparse
from .representation import MatchRule
from .spaces import ToPixels

HIT = 0.5  # IoU from which a matched box counts as a hit

_BATCH = 1024  # Queries that are matched at a time
_PAIRS = 1 << 20  # Pairs that are listed at a time; a query with more is assigned without a list

Array = NDArray[np.float32]
Boxes = NDArray[Any]
Indices = NDArray[np.intp]


def iou(left: Boxes, right: Boxes) -> Boxes:
    """Return (N,) IoUs of ``left[i]`` with ``right[i]``, in their precision.

    Both are (N, 4), (x1, y1, x2, y2); corners may be swapped; an IoU that is not finite is 0.
    """
    l1, t1, r1, b1 = left.T
    l2, t2, r2, b2 = right.T
    with np.errstate(all="ignore"):
        width = np.minimum(r1, r2) - np.maximum(l1, l2)
        height = np.minimum(b1, b2) - np.maximum(t1, t2)
        both = np.maximum(width, 0) * np.maximum(height, 0)
        union = (r1 - l1) * (b1 - t1) + (r2 - l2) * (b2 - t2) - both
        values: Boxes = both / union
    values[~np.isfinite(values)] = 0
    return values


def as_decimal(value: float) -> float:
    """Return the shortest decimal that is this 32-bit float.

    An IoU must be stored like this: it then is as much below, at or above a threshold as it was
    when boxes were matched. Rounded to fewer digits a miss may become a hit.

    >>> as_decimal(float(np.float32(0.6))), as_decimal(float(np.nextafter(np.float32(0.5), 0)))
    (0.6, 0.49999997)
    """
    return float(str(np.float32(value)))


def match(
    readings: Sequence[ParsedReply],
    truths: Sequence[Truth],
    maps: Sequence[ToPixels] | None = None,
    match_rule: MatchRule = MatchRule.BOX_OVERLAP,
) -> list[MatchResult]:
    """Match readings with truths in pixels; ``maps`` convert readings to pixels, per query."""
    if maps is None:
        maps = [ToPixels()] * len(readings)
    pairs = [len(r.boxes) * len(t.boxes) for r, t in zip(readings, truths, strict=True)]
    results: list[MatchResult] = []
    # Queries without pairs count too, so a batch has at most _BATCH queries.
    for part in in_parts(np.maximum(pairs, _PAIRS // _BATCH), _PAIRS):
        results += _match_batch(readings[part], truths[part], maps[part], match_rule)
    for at, truth in enumerate(truths):
        if truth.ignored and results[at].boxes:
            places = _not_counted(results[at], readings[at], truth, match_rule)
            results[at] = results[at]._replace(ignored=places)
    return results


def _not_counted(
    matched: MatchResult, reading: ParsedReply, truth: Truth, match_rule: MatchRule
) -> tuple[int, ...]:
    """Return the places of boxes that are no hit but find an ignored object."""
    hits = {box for box, hit in zip(matched.assigned, matched.hits, strict=True) if hit}
    waiting: dict[tuple[int, str], list[int]] = {}
    for at, key in enumerate(_keys(matched.boxes, reading.frames, reading.labels)):
        if at not in hits:
            waiting.setdefault(key, []).append(at)
    boxes = _narrowed(np.array(matched.boxes, dtype=np.float64), match_rule)
    ignored: set[int] = set()
    for other in truth.ignored:
        places = waiting.get((other.frame, plain_label(other.label)), [])
        target = _narrowed(np.array(other.box, dtype=np.float64), match_rule)
        targets = np.tile(target, (len(places), 1))
        if other.crowd and match_rule is MatchRule.BOX_OVERLAP:
            values = _share(boxes[places], targets)
        else:
            truths = [Truth((other.box,), (0,), masks=(other.mask,))]
            values = _values(match_rule, boxes[places], targets, truths, np.zeros(len(places), int))
        ignored.update(at for at, hit in zip(places, (values >= HIT).tolist(), strict=True) if hit)
    return tuple(sorted(ignored))


def in_parts(counts: Sequence[int] | Indices, most: int) -> Iterator[slice]:
    """Yield slices whose counts add up to at most ``most``, or of a single larger entry."""
    ends = np.cumsum(counts)
    start = 0
    while start < len(counts):
        upto = ends[start] - counts[start] + most
        stop = max(start + 1, int(np.searchsorted(ends, upto, side="right")))
        yield slice(start, stop)
        start = stop


def _match_batch(
    readings: Sequence[ParsedReply],
    truths: Sequence[Truth],
    maps: Sequence[ToPixels],
    match_rule: MatchRule,
) -> list[MatchResult]:
    predicted = [len(reading.boxes) for reading in readings]
    expected = [len(truth.boxes) for truth in truths]
    pixels = _in_pixels(_boxes(readings, sum(predicted)), maps, predicted)
    targets = _boxes(truths, sum(expected))
    answers, truth_boxes = (_narrowed(boxes, match_rule) for boxes in (pixels, targets))
    labels = label_numbers(readings, truths)

    def compare(left: Indices, right: Indices) -> _Compared:
        ious = _values(match_rule, answers[left], truth_boxes[right], truths, right)
        agree = None if labels is None else labels[0][left] == labels[1][right]
        cost = np.float32(1) - ious
        return _Compared(ious, agree, cost if agree is None else cost - agree)

    keys = _frame_keys(readings, truths, predicted, expected)
    pairs = _Pairs(*keys, lambda left, right: compare(left, right).cost)
    ious, agree, cost = compare(pairs.left, pairs.right)
    chosen = pairs.assigned(cost)
    columns = pairs.right[chosen]

    best = np.zeros(len(targets), dtype=np.float32)
    best[columns] = ious[chosen]
    same = np.zeros(len(targets), dtype=bool)
    same[columns] = True if agree is None else agree[chosen]
    hits = (best >= HIT) & same
    # Places count within the query.
    first = np.repeat(np.cumsum([0, *predicted[:-1]]), expected)
    assigned = np.full(len(targets), NO_BOX)
    assigned[columns] = pairs.left[chosen] - first[columns]

    agreeing: Iterable[tuple[bool, ...]] = repeat(())
    if labels is not None:
        rows = zip(_split(same, expected), readings, truths, strict=True)
        agreeing = [row if truth.labels or reading.labels else () for row, reading, truth in rows]
    boxes = _split(pixels, predicted)
    objects = (_split(each, expected) for each in (best, hits, assigned))
    fields = zip(boxes, *objects, agreeing, repeat(()))
    # Not Matched(…), which takes twice as long.
    return list(map(tuple.__new__, repeat(MatchResult), fields))


def _split(values: NDArray[Any], counts: Sequence[int]) -> list[tuple[Any, ...]]:
    """Split (N,) values or (N, 4) boxes; the garbage collector skips tuples of numbers."""
    numbers = values.T.tolist()
    flat = tuple(numbers if values.ndim == 1 else zip(*numbers, strict=True))
    return [flat[a:b] for a, b in pairwise(accumulate(counts, initial=0))]


def _boxes(side: Sequence[ParsedReply | Truth], count: int) -> NDArray[np.float64]:
    numbers = chain.from_iterable(chain.from_iterable([each.boxes for each in side]))
    return np.fromiter(numbers, np.float64, 4 * count).reshape(-1, 4)


def _in_pixels(
    boxes: NDArray[np.float64], maps: Sequence[ToPixels], counts: Sequence[int]
) -> NDArray[np.float64]:
    each = np.fromiter(chain.from_iterable(maps), np.float64, 4 * len(maps)).reshape(-1, 2, 2)
    scale, offset = np.repeat(np.tile(each, 2), counts, axis=0).swapaxes(0, 1)
    with np.errstate(over="ignore", invalid="ignore"):  # models can answer 1e300
        pixels: NDArray[np.float64] = boxes * scale + offset
    return pixels


def _narrowed(boxes: NDArray[np.float64], match_rule: MatchRule) -> Boxes:
    with np.errstate(over="ignore"):
        return boxes.astype(np.float32) if match_rule is MatchRule.BOX_OVERLAP else boxes


def _values(
    match_rule: MatchRule, answers: Boxes, targets: Boxes, truths: Sequence[Truth], objects: Indices
) -> Array:
    """Return the value, 0 to 1, of pairs of an answer and an object: a hit from HIT on."""
    if match_rule is MatchRule.BOX_OVERLAP:
        return iou(answers, targets)
    return lies_in(answers, targets, truths, objects)


def _share(answers: Boxes, targets: Boxes) -> Boxes:
    """Return the share of each answer's area in the other box, for crowds."""
    low = np.maximum(answers[:, :2], targets[:, :2])
    high = np.minimum(answers[:, 2:], targets[:, 2:])
    with np.errstate(all="ignore"):
        inside = np.maximum(high - low, 0).prod(axis=1)
        values: Boxes = inside / (answers[:, 2:] - answers[:, :2]).prod(axis=1)
    values[~np.isfinite(values)] = 0
    return values


class _Compared(NamedTuple):
    """Values of pairs; ``agree`` is None where no query of the batch has labels."""

    ious: Array
    agree: NDArray[np.bool_] | None
    cost: Array


class _Pairs:
    """The (prediction, truth) pairs of a batch, grouped by frame, in row-major order.

    ``owners`` (P,) and ``targets`` (T,; ascending) number the query and frame of each box. Above
    :data:`_PAIRS` pairs only the assigned ones, by ``cost``, are listed, each as a group.
    """

    def __init__(
        self, owners: Indices, targets: Indices, cost: Callable[[Indices, Indices], Array]
    ) -> None:
        order = np.argsort(owners, kind="stable")
        keys = owners[order]
        begins = np.searchsorted(targets, keys, side="left")
        widths = np.searchsorted(targets, keys, side="right") - begins
        firsts = np.flatnonzero(np.diff(keys, prepend=-1) != 0)
        counts = np.diff(firsts, append=len(keys))
        if widths.sum() > _PAIRS:
            tables = zip(
                firsts.tolist(), counts.tolist(), begins[firsts], widths[firsts], strict=True
            )
            pairs = [
                assign_sparse(order[first : first + count], np.arange(begin, begin + width), cost)
                for first, count, begin, width in tables
                if width
            ]
            self.left, self.right = np.concatenate(pairs, axis=1)
            self._sizes = np.ones_like(self.left)
            self._widths = np.ones_like(self.left)
            return
        self.left = np.repeat(order, widths)
        ends = np.cumsum(widths)
        self.right = np.arange(len(self.left)) - np.repeat(ends - widths - begins, widths)
        self._sizes, self._widths = counts * widths[firsts], widths[firsts]

    def assigned(self, cost: Array) -> list[int]:
        """Return the places of the assigned pairs, at most one per row and column."""
        tables = self._sizes > 0
        sizes = self._sizes[tables]
        widths = self._widths[tables]
        if not len(sizes):
            return []
        starts = np.cumsum(sizes) - sizes
        # One row or column: the first minimum, which scipy would choose too, but slower.
        line = (widths == 1) | (widths == sizes)
        least = np.flatnonzero(cost == np.repeat(np.minimum.reduceat(cost, starts), sizes))
        chosen: list[int] = least[np.searchsorted(least, starts[line])].tolist()
        for start, size, width in zip(
            *(each[~line].tolist() for each in (starts, sizes, widths)), strict=True
        ):
            rows, columns = assign(cost[start : start + size].reshape(-1, width))
            chosen += [start + row * width + c for row, c in zip(rows, columns, strict=True)]
        return chosen


def _frame_keys(
    readings: Sequence[ParsedReply],
    truths: Sequence[Truth],
    predicted: Sequence[int],
    expected: Sequence[int],
) -> tuple[Indices, Indices]:
    queries = np.arange(len(readings))
    owners = np.repeat(queries, predicted)
    targets = np.repeat(queries, expected)
    if any(reading.frames for reading in readings) or any(any(t.frames) for t in truths):
        frames = [r.frames or (0,) * n for r, n in zip(readings, predicted, strict=True)]
        predicted_frames = np.fromiter(chain.from_iterable(frames), np.intp, len(owners))
        true_frames = np.fromiter(
            chain.from_iterable([t.frames for t in truths]), np.intp, len(targets)
        )
        span = max(predicted_frames.max(initial=0), true_frames.max(initial=0)) + 1
        owners, targets = owners * span + predicted_frames, targets * span + true_frames
    return owners, targets


# --- labels ---------------------------------------------------------------------------------------

_PUNCTUATION = str.maketrans("", "", string.punctuation)


def plain_label(label: str) -> str:
    """Normalise a label for comparison: lower case, no ASCII punctuation, single blanks."""
    return " ".join(label.lower().translate(_PUNCTUATION).split())


def label_numbers(
    readings: Sequence[ParsedReply], truths: Sequence[Truth]
) -> tuple[Indices, Indices] | None:
    """Number the labels of predictions and truths by equality; None without labels."""
    both: tuple[Sequence[ParsedReply | Truth], ...] = (readings, truths)
    if not any(each.labels for side in both for each in side):
        return None
    # Boxes of queries with a single label have none, and so agree.
    predicted, expected = (
        [*chain.from_iterable([each.labels or ("",) * len(each.boxes) for each in side])]
        for side in both
    )
    plain: dict[str, int] = {}
    number = {
        name: plain.setdefault(plain_label(name), len(plain)) for name in {*predicted, *expected}
    }
    left, right = (
        np.fromiter(map(number.get, side), np.intp, len(side)) for side in (predicted, expected)
    )
    return left, right


def _keys(
    boxes: Sequence[object], frames: Sequence[int], labels: Sequence[str]
) -> list[tuple[int, str]]:
    plain = [plain_label(label) for label in labels] or [""] * len(boxes)
    return list(zip(frames or [0] * len(boxes), plain, strict=True))


# --- points ---------------------------------------------------------------------------------------


def lies_in(points: Boxes, targets: Boxes, truths: Sequence[Truth], objects: Indices) -> Array:
    """Return 1 where ``points[i]`` lies in ``targets[i]`` (its mask, else its box), else 0.

    Both are (N, 4) in pixels: points (x, y, x, y), or boxes, whose centres count; targets
    (x1, y1, x2, y2), edges included. ``objects`` (N,) are places among the objects of ``truths``.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        x, y = (points[:, :2] + points[:, 2:]).T / 2
        x1, y1, x2, y2 = targets.T
        inside = (x1 <= x) & (x <= x2) & (y1 <= y) & (y <= y2)
    values: Array = inside.astype(np.float32)
    if any(truth.masks for truth in truths):
        masks = list(chain.from_iterable(t.masks or (None,) * len(t.boxes) for t in truths))
        for at, place in enumerate(objects.tolist()):
            mask = masks[place]
            if mask is not None:
                values[at] = mask.covers(float(x[at]), float(y[at]))
    return values


_POINT_PAIRS = 1 << 18  # (point, object) pairs that are listed at a time


def points_inside(matched: MatchResult, reading: ParsedReply, truth: Truth) -> int:
    """Count the points in any object of their frame and label; an object may have several.

    >>> points = [(1, 1, 1, 1), (2, 2, 2, 2), (9, 9, 9, 9)]
    >>> points_inside(MatchResult(points, [1], [True], [0], ()), ParsedReply(points, [], [], None),
    ...               Truth(((0, 0, 4, 4),), (0,)))
    2
    """
    points = matched.boxes
    if not points or not truth.boxes:
        return 0
    expected = _keys(truth.boxes, truth.frames, truth.labels)
    ignored = {*matched.ignored}
    keys = enumerate(_keys(points, reading.frames, reading.labels))
    candidates = [(at, key) for at, key in keys if at not in ignored]
    boxes = np.array(points, dtype=float)
    targets = np.array(truth.boxes, dtype=float)
    at_a_time = max(1, _POINT_PAIRS // len(expected))
    inside: set[int] = set()
    for first in range(0, len(candidates), at_a_time):
        pairs = [
            (point, at)
            for point, this in candidates[first : first + at_a_time]
            for at, other in enumerate(expected)
            if this == other
        ]
        if pairs:
            left, right = np.array(pairs, dtype=np.intp).T
            inside.update(left[lies_in(boxes[left], targets[right], [truth], right) > 0].tolist())
    return len(inside)
