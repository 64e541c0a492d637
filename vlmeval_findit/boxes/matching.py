"""Match replies with ground truth: IoU, labels, assignment, points (protocol section 5).

For speed, all boxes of a batch lie in one array, with a flat list of (prediction, truth) pairs;
only the assignment runs query by query.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain, pairwise, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .box_records import NO_BOX, MatchResult, ParsedReply, Truth
from .hungarian import assign, assign_sparse
from .representation import MatchRule
from .spaces import ToPixels

HIT_IOU = 0.5  # IoU from which a matched box counts as a hit

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
    pair_counts = [len(r.boxes) * len(t.boxes) for r, t in zip(readings, truths, strict=True)]
    results: list[MatchResult] = []
    # Queries without pairs count too, so a batch has at most _BATCH queries.
    for part in in_parts(np.maximum(pair_counts, _PAIRS // _BATCH), _PAIRS):
        results += _match_batch(readings[part], truths[part], maps[part], match_rule)
    for at, truth in enumerate(truths):
        if truth.ignored and results[at].boxes:
            places = _boxes_of_ignored(results[at], readings[at], truth, match_rule)
            results[at] = results[at]._replace(ignored=places)
    return results


def _boxes_of_ignored(
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
            values = _share_inside(boxes[places], targets)
        else:
            truths = [Truth((other.box,), (0,), masks=(other.mask,))]
            values = _values(match_rule, boxes[places], targets, truths, np.zeros(len(places), int))
        ignored.update(
            at for at, hit in zip(places, (values >= HIT_IOU).tolist(), strict=True) if hit
        )
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
    box_counts = [len(reading.boxes) for reading in readings]
    object_counts = [len(truth.boxes) for truth in truths]
    pixels = _in_pixels(_boxes(readings, sum(box_counts)), maps, box_counts)
    answers = _narrowed(pixels, match_rule)
    objects = _narrowed(_boxes(truths, sum(object_counts)), match_rule)
    labels = label_numbers(readings, truths)

    def values_of(left: Indices, right: Indices) -> Array:
        return _values(match_rule, answers[left], objects[right], truths, right)

    def labels_agree(left: Indices, right: Indices) -> NDArray[np.bool_]:
        if labels is None:
            return np.ones(len(left), dtype=bool)
        predicted, expected = labels
        agree: NDArray[np.bool_] = predicted[left] == expected[right]
        return agree

    def cost_of(left: Indices, right: Indices) -> Array:
        cost = np.float32(1) - values_of(left, right)
        # Without labels nothing is subtracted: that would round the last bits away.
        return cost if labels is None else cost - labels_agree(left, right)

    groups = _groups(*_frame_keys(readings, truths))
    left, right = _assigned_pairs(groups, cost_of)

    best = np.zeros(len(objects), dtype=np.float32)
    best[right] = values_of(left, right)
    agree = np.zeros(len(objects), dtype=bool)
    agree[right] = labels_agree(left, right)
    # Places count within the query.
    first_boxes = np.repeat(np.cumsum(box_counts) - box_counts, object_counts)
    assigned = np.full(len(objects), NO_BOX)
    assigned[right] = left - first_boxes[right]

    boxes = _split(pixels, box_counts)
    ious = _split(best, object_counts)
    hits = _split((best >= HIT_IOU) & agree, object_counts)
    places = _split(assigned, object_counts)
    if labels is None:
        return list(map(MatchResult, boxes, ious, hits, places, repeat(())))
    agreements = _split(agree, object_counts)
    results: list[MatchResult] = []
    for at, (reading, truth) in enumerate(zip(readings, truths, strict=True)):
        agreement = agreements[at] if reading.labels or truth.labels else ()
        results.append(MatchResult(boxes[at], ious[at], hits[at], places[at], agreement))
    return results


def _split(values: NDArray[Any], counts: Sequence[int]) -> list[tuple[Any, ...]]:
    """Split (N,) values or (N, 4) boxes; the garbage collector skips tuples of numbers."""
    numbers = values.T.tolist()
    flat = tuple(numbers if values.ndim == 1 else zip(*numbers, strict=True))
    return [flat[a:b] for a, b in pairwise(accumulate(counts, initial=0))]


def _boxes(side: Sequence[ParsedReply | Truth], count: int) -> NDArray[np.float64]:
    boxes = chain.from_iterable([each.boxes for each in side])
    numbers = chain.from_iterable(boxes)
    return np.fromiter(numbers, np.float64, 4 * count).reshape(-1, 4)


def _in_pixels(
    boxes: NDArray[np.float64], maps: Sequence[ToPixels], counts: Sequence[int]
) -> NDArray[np.float64]:
    of_queries = np.fromiter(chain.from_iterable(maps), np.float64, 4 * len(maps)).reshape(-1, 4)
    of_boxes = np.repeat(of_queries, counts, axis=0)
    scale = np.tile(of_boxes[:, :2], 2)
    offset = np.tile(of_boxes[:, 2:], 2)
    with np.errstate(over="ignore", invalid="ignore"):  # Models can answer 1e300
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


def _share_inside(answers: Boxes, targets: Boxes) -> Boxes:
    """Return the share of each answer's area in the other box, for crowds."""
    low = np.maximum(answers[:, :2], targets[:, :2])
    high = np.minimum(answers[:, 2:], targets[:, 2:])
    with np.errstate(all="ignore"):
        inside = np.maximum(high - low, 0).prod(axis=1)
        values: Boxes = inside / (answers[:, 2:] - answers[:, :2]).prod(axis=1)
    values[~np.isfinite(values)] = 0
    return values


# --- assignment -----------------------------------------------------------------------------------

Cost = Callable[[Indices, Indices], Array]  # Of (N,) boxes with (N,) objects


class _Groups(NamedTuple):
    """The boxes and objects of each frame that has both; only these are paired.

    Places are those in the arrays of a batch; all but ``boxes`` have an entry per group.
    """

    boxes: Indices  # Places of boxes, group by group
    first_boxes: Indices  # Where the group begins in ``boxes``
    box_counts: Indices
    first_objects: Indices  # Place of the first object; the others follow
    object_counts: Indices


def _frame_keys(
    readings: Sequence[ParsedReply], truths: Sequence[Truth]
) -> tuple[Indices, Indices]:
    """Return a number for the query and frame of each box and of each object."""
    queries = np.arange(len(readings))
    box_keys = np.repeat(queries, [len(reading.boxes) for reading in readings])
    object_keys = np.repeat(queries, [len(truth.boxes) for truth in truths])
    has_frames = any(reading.frames for reading in readings)
    if not has_frames and not any(any(truth.frames) for truth in truths):
        return box_keys, object_keys
    stated = [reading.frames or (0,) * len(reading.boxes) for reading in readings]
    box_frames = np.fromiter(chain.from_iterable(stated), np.intp, len(box_keys))
    true_frames = chain.from_iterable([truth.frames for truth in truths])
    object_frames = np.fromiter(true_frames, np.intp, len(object_keys))
    span = max(box_frames.max(initial=0), object_frames.max(initial=0)) + 1
    return box_keys * span + box_frames, object_keys * span + object_frames


def _groups(box_keys: Indices, object_keys: Indices) -> _Groups:
    """Group boxes and objects by equal keys; those of the objects ascend."""
    boxes = np.flatnonzero(np.isin(box_keys, object_keys))
    boxes = boxes[np.argsort(box_keys[boxes], kind="stable")]
    keys, first_boxes, box_counts = np.unique(
        box_keys[boxes], return_index=True, return_counts=True
    )
    first_objects = np.searchsorted(object_keys, keys, side="left")
    object_counts = np.searchsorted(object_keys, keys, side="right") - first_objects
    return _Groups(boxes, first_boxes, box_counts, first_objects, object_counts)


def _assigned_pairs(groups: _Groups, cost_of: Cost) -> tuple[Indices, Indices]:
    """Return the assigned boxes and their objects, which cost least in each group."""
    sizes = groups.box_counts * groups.object_counts
    if sizes.sum() > _PAIRS:
        return _assigned_without_list(groups, cost_of)
    left, right = _all_pairs(groups)
    if not len(left):
        return left, right
    cost = cost_of(left, right)
    starts = np.cumsum(sizes) - sizes
    # With one box or one object: the first minimum, which scipy would choose too, but slower.
    simple = (groups.box_counts == 1) | (groups.object_counts == 1)
    chosen: list[int] = _first_minima(cost, starts, sizes)[simple].tolist()
    for start, rows, columns in zip(
        starts[~simple].tolist(),
        groups.box_counts[~simple].tolist(),
        groups.object_counts[~simple].tolist(),
        strict=True,
    ):
        table = cost[start : start + rows * columns].reshape(rows, columns)
        chosen += [
            start + row * columns + column for row, column in zip(*assign(table), strict=True)
        ]
    return left[chosen], right[chosen]


def _all_pairs(groups: _Groups) -> tuple[Indices, Indices]:
    """List all pairs of each group: its first box with each object, its second box, and so on."""
    object_counts = np.repeat(groups.object_counts, groups.box_counts)
    first_objects = np.repeat(groups.first_objects, groups.box_counts)
    left = np.repeat(groups.boxes, object_counts)
    row_starts = np.cumsum(object_counts) - object_counts
    column = np.arange(len(left)) - np.repeat(row_starts, object_counts)
    return left, np.repeat(first_objects, object_counts) + column


def _first_minima(cost: Array, starts: Indices, sizes: Indices) -> Indices:
    """Return the place of the first minimum of each part of ``cost``."""
    minima = np.repeat(np.minimum.reduceat(cost, starts), sizes)
    places = np.flatnonzero(cost == minima)
    return places[np.searchsorted(places, starts)]


def _assigned_without_list(groups: _Groups, cost_of: Cost) -> tuple[Indices, Indices]:
    """Assign as :func:`_assigned_pairs` does, where all pairs would take too much memory."""
    parts = []
    for first_box, box_count, first_object, object_count in zip(*groups[1:], strict=True):
        boxes = groups.boxes[first_box : first_box + box_count]
        objects = np.arange(first_object, first_object + object_count)
        parts.append(assign_sparse(boxes, objects, cost_of))
    left, right = np.concatenate(parts, axis=1)
    return left, right


# --- labels ---------------------------------------------------------------------------------------

_PUNCTUATION = str.maketrans("", "", string.punctuation)


def plain_label(label: str) -> str:
    """Normalise a label for comparison: lower case, no ASCII punctuation, single blanks."""
    return " ".join(label.lower().translate(_PUNCTUATION).split())


def label_numbers(
    readings: Sequence[ParsedReply], truths: Sequence[Truth]
) -> tuple[Indices, Indices] | None:
    """Number the labels of predictions and truths by equality; None without labels."""
    has_labels = any(reading.labels for reading in readings)
    if not has_labels and not any(truth.labels for truth in truths):
        return None
    predicted = _flat_labels(readings)
    expected = _flat_labels(truths)
    by_plain: dict[str, int] = {}
    numbers: dict[str, int] = {}
    for label in {*predicted, *expected}:
        numbers[label] = by_plain.setdefault(plain_label(label), len(by_plain))
    left = np.array([numbers[label] for label in predicted], dtype=np.intp)
    right = np.array([numbers[label] for label in expected], dtype=np.intp)
    return left, right


def _flat_labels(side: Sequence[ParsedReply | Truth]) -> list[str]:
    """Return the label of each box; boxes of queries with a single label have none, and agree."""
    labels: list[str] = []
    for each in side:
        labels += each.labels or ("",) * len(each.boxes)
    return labels


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
    part_size = max(1, _POINT_PAIRS // len(expected))
    inside: set[int] = set()
    for first in range(0, len(candidates), part_size):
        pairs: list[tuple[int, int]] = []
        for point, key in candidates[first : first + part_size]:
            pairs += [(point, at) for at, other in enumerate(expected) if key == other]
        if pairs:
            left, right = np.array(pairs, dtype=np.intp).T
            hits = lies_in(boxes[left], targets[right], [truth], right) > 0
            inside.update(left[hits].tolist())
    return len(inside)
