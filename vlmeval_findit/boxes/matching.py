"""IoU and assignment (protocol section 5).

Everything is vectorised over a batch of queries: boxes of all queries lie in one array, every
(prediction, truth) pair of a query's frame becomes one row of a flat pair list, and only the
assignment itself runs query by query.  That is what makes scoring thousands of short replies cost
little more than reading them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .assignment import assign, assign_sparse
from .labels import label_numbers
from .labels import plain_label as plain_label
from .pointing import lies_in
from .records import NO_BOX, Matched, Reading, Truth
from .representation import Judging

HIT = 0.5
"""IoU from which a matched box counts as found."""

_BATCH = 1024
"""Queries that are matched at a time."""

_PAIRS = 1 << 20
"""Pairs that are listed at a time; a query that has more is assigned without such a list."""

Array = NDArray[np.float32]
Indices = NDArray[np.intp]


def iou(left: Array, right: Array) -> Array:
    """IoU of box ``left[i]`` with box ``right[i]``, in 32-bit floats.

    Args:
        left: (N, 4) boxes (x1, y1, x2, y2); corners may be swapped, values may not be finite.
        right: (N, 4) likewise.

    Returns:
        (N,) values; what is not finite counts as 0.
    """
    l1, t1, r1, b1 = left.T
    l2, t2, r2, b2 = right.T
    with np.errstate(all="ignore"):
        width = np.minimum(r1, r2) - np.maximum(l1, l2)
        height = np.minimum(b1, b2) - np.maximum(t1, t2)
        both = np.maximum(width, 0) * np.maximum(height, 0)
        union = (r1 - l1) * (b1 - t1) + (r2 - l2) * (b2 - t2) - both
        values: Array = both / union
    values[~np.isfinite(values)] = 0
    return values


def match(
    readings: Sequence[Reading],
    truths: Sequence[Truth],
    scales: Sequence[tuple[float, float]],
    judged: Judging = Judging.BY_OVERLAP,
) -> list[Matched]:
    """Match each reading with its ground truth.

    Args:
        readings: boxes in the units of the replies.
        truths: boxes in pixels of the original images, in frame order.
        scales: per query the factors (x, y) from units of the reply to pixels.
        judged: how an answer is held against an object.
    """
    results: list[Matched] = []
    for part in _batches(readings, truths):
        results += _match_batch(readings[part], truths[part], scales[part], judged)
    for at, (reading, truth) in enumerate(zip(readings, truths, strict=True)):
        if truth.ignored and reading.boxes:
            places = _not_counted(results[at], reading, truth, judged)
            results[at] = results[at]._replace(ignored=places)
    return results


def _not_counted(
    matched: Matched, reading: Reading, truth: Truth, judged: Judging
) -> tuple[int, ...]:
    """The places of boxes that are no hit but find an ignored object of their frame and label.

    Any number of boxes may find the same one.
    """
    hits = {box for box, hit in zip(matched.assigned, matched.hits, strict=True) if hit}
    frames = reading.frames or [0] * len(matched.boxes)
    labels = [*map(plain_label, reading.labels)] or [""] * len(matched.boxes)
    waiting: dict[tuple[int, str], list[int]] = {}
    for at, key in enumerate(zip(frames, labels, strict=True)):
        if at not in hits:
            waiting.setdefault(key, []).append(at)
    with np.errstate(over="ignore"):
        said = np.array(matched.boxes, dtype=np.float64).astype(_PRECISION[judged])
    found: set[int] = set()
    for other in truth.ignored:
        places = waiting.get((other.frame, plain_label(other.label)), [])
        box = np.tile(np.array(other.box, dtype=_PRECISION[judged]), (len(places), 1))
        alone = Truth((other.box,), (0,), masks=(other.mask,))
        value = _share if other.crowd and judged is Judging.BY_OVERLAP else _VALUES[judged]
        values = value(said[places], box, [alone], np.zeros(len(places), dtype=np.intp))
        found.update(at for at, hit in zip(places, (values >= HIT).tolist(), strict=True) if hit)
    return tuple(sorted(found))


def _batches(readings: Sequence[Reading], truths: Sequence[Truth]) -> Iterator[slice]:
    """As many queries at a time as their number and that of their pairs allow; at least one."""
    start = pairs = 0
    for at, (reading, truth) in enumerate(zip(readings, truths, strict=True)):
        more = len(reading.boxes) * len(truth.boxes)
        if at > start and (at - start == _BATCH or pairs + more > _PAIRS):
            yield slice(start, at)
            start, pairs = at, 0
        pairs += more
    if readings:
        yield slice(start, len(readings))


def _match_batch(
    readings: Sequence[Reading],
    truths: Sequence[Truth],
    scales: Sequence[tuple[float, float]],
    judged: Judging,
) -> list[Matched]:
    predicted = [len(reading.boxes) for reading in readings]
    expected = [len(truth.boxes) for truth in truths]
    pixels = _in_pixels(readings, scales, predicted)
    targets = _boxes(chain.from_iterable(truth.boxes for truth in truths))

    labels = label_numbers(readings, truths)
    with np.errstate(over="ignore"):  # 1e300 is a number that a model can say
        said, true = (boxes.astype(_PRECISION[judged]) for boxes in (pixels, targets))

    def compare(left: Indices, right: Indices) -> _Compared:
        ious = _VALUES[judged](said[left], true[right], truths, right)
        if labels is None:
            return _Compared(ious, None, np.float32(1) - ious)
        agree = labels[0][left] == labels[1][right]
        return _Compared(ious, agree, np.float32(1) - ious - agree)

    groups = _Groups(readings, truths, predicted, expected, lambda *pairs: compare(*pairs).cost)
    ious, agree, cost = compare(groups.left, groups.right)
    hits = ious >= HIT if agree is None else (ious >= HIT) & agree

    best = np.zeros(len(targets), dtype=np.float32)
    found = np.zeros(len(targets), dtype=bool)
    same = np.zeros(len(targets), dtype=bool)
    chosen, columns = groups.assigned(cost)
    best[columns] = ious[chosen]
    found[columns] = hits[chosen]
    if agree is not None:
        same[columns] = agree[chosen]
    # The place of a box among those of its own query.
    first = np.repeat(np.cumsum([0, *predicted[:-1]]), expected)
    taken = np.full(len(targets), NO_BOX)
    taken[columns] = groups.left[chosen] - first[columns]

    box_list, iou_list, hit_list = pixels.tolist(), best.tolist(), found.tolist()
    taken_list = taken.tolist()
    same_list = [] if agree is None else _of_labelled(same, readings, truths, expected)
    results: list[Matched] = []
    p = t = 0
    for p_count, t_count in zip(predicted, expected, strict=True):
        p_end, t_end = p + p_count, t + t_count
        results.append(
            Matched(
                box_list[p:p_end],
                iou_list[t:t_end],
                hit_list[t:t_end],
                taken_list[t:t_end],
                same_list[len(results)] if same_list else (),
            )
        )
        p, t = p_end, t_end
    return results


def _overlaps(said: Array, true: Array, truths: Sequence[Truth], objects: Indices) -> Array:
    """The IoU of every pair; whatever masks there are."""
    return iou(said, true)


def _share(said: Array, true: Array, truths: Sequence[Truth], objects: Indices) -> Array:
    """Which share of each answer lies in the other box: what is compared with crowds."""
    low, high = np.maximum(said[:, :2], true[:, :2]), np.minimum(said[:, 2:], true[:, 2:])
    with np.errstate(all="ignore"):
        inside = np.maximum(high - low, 0).prod(axis=1)
        values: Array = inside / (said[:, 2:] - said[:, :2]).prod(axis=1)
    values[~np.isfinite(values)] = 0
    return values


_PRECISION = {Judging.BY_OVERLAP: np.float32, Judging.BY_LYING_INSIDE: np.float64}
"""Of the coordinates that are compared."""

_VALUES: Mapping[Judging, Callable[..., Array]] = {
    Judging.BY_OVERLAP: _overlaps,
    Judging.BY_LYING_INSIDE: lies_in,
}
"""What a pair of an answer and an object is worth, 0 to 1: a hit from :data:`HIT` on."""


def _of_labelled(
    same: NDArray[np.bool_],
    readings: Sequence[Reading],
    truths: Sequence[Truth],
    expected: Sequence[int],
) -> list[Sequence[bool]]:
    """Whether labels agree, query by query; nothing of one without labels, whoever is beside it."""
    values = same.tolist()
    found: list[Sequence[bool]] = []
    start = 0
    for reading, truth, count in zip(readings, truths, expected, strict=True):
        found.append(values[start : start + count] if truth.labels or reading.labels else ())
        start += count
    return found


def _boxes(boxes: Iterable[Sequence[float]]) -> NDArray[np.float64]:
    flat = np.fromiter(chain.from_iterable(boxes), dtype=np.float64)
    return flat.reshape(-1, 4)


def _in_pixels(
    readings: Sequence[Reading], scales: Sequence[tuple[float, float]], counts: Sequence[int]
) -> NDArray[np.float64]:
    """All boxes of the batch, (P, 4), in pixels of their original images."""
    boxes = _boxes(chain.from_iterable(reading.boxes for reading in readings))
    per_query = np.fromiter(chain.from_iterable(scales), dtype=np.float64).reshape(-1, 2)
    per_box = np.repeat(per_query, counts, axis=0)
    with np.errstate(over="ignore"):
        scaled: NDArray[np.float64] = boxes * np.tile(per_box, 2)
    return scaled


class _Compared(NamedTuple):
    """What pairs are worth; ``agree`` is None where no query of the batch has labels."""

    ious: Array
    agree: NDArray[np.bool_] | None
    cost: Array


class _Groups:
    """The (prediction, truth) pairs of a batch, frame by frame.

    A group is one frame of one query that has both predictions and truths.  Pair k compares
    prediction ``left[k]`` with truth ``right[k]``; the pairs of a group are consecutive, row by row
    of its (predictions x truths) table.

    Where those would be more than :data:`_PAIRS`, only the pairs that are assigned are listed, each
    as a group of its own.  ``cost`` of predictions and truths is what pairs of them cost.
    """

    def __init__(
        self,
        readings: Sequence[Reading],
        truths: Sequence[Truth],
        predicted: Sequence[int],
        expected: Sequence[int],
        cost: Callable[[Indices, Indices], Array],
    ) -> None:
        owners, targets = _frame_keys(readings, truths, predicted, expected)
        order = np.argsort(owners, kind="stable")
        keys, firsts, counts = np.unique(owners[order], return_index=True, return_counts=True)
        begins = np.searchsorted(targets, keys, side="left")
        widths = np.searchsorted(targets, keys, side="right") - begins
        keep = widths > 0
        firsts, counts, begins, widths = (a[keep] for a in (firsts, counts, begins, widths))

        if (counts * widths).sum() > _PAIRS:
            tables = zip(*(a.tolist() for a in (firsts, counts, begins, widths)), strict=True)
            pairs = [
                assign_sparse(order[first : first + count], np.arange(begin, begin + width), cost)
                for first, count, begin, width in tables
            ]
            order, begins = np.concatenate(pairs, axis=1)
            firsts, counts = np.arange(len(order)), np.ones_like(order)
            widths = counts

        sizes = counts * widths
        self.ends = np.concatenate(([0], np.cumsum(sizes)))
        self.widths = widths
        # Pair k of a group is row k // width, column k % width of its table.
        inside = np.arange(self.ends[-1]) - np.repeat(self.ends[:-1], sizes)
        width = np.repeat(widths, sizes)
        self.left: Indices = order[np.repeat(firsts, sizes) + inside // width]
        self.right: Indices = np.repeat(begins, sizes) + inside % width

    def assigned(self, cost: Array) -> tuple[list[int], list[int]]:
        """The pairs that are assigned, and the truth of each."""
        chosen: list[int] = []
        for (start, end), width in zip(
            pairwise(self.ends.tolist()), self.widths.tolist(), strict=True
        ):
            if end - start == 1:
                chosen.append(start)
                continue
            rows, columns = assign(cost[start:end].reshape(-1, width))
            chosen += [start + row * width + c for row, c in zip(rows, columns, strict=True)]
        return chosen, self.right[chosen].tolist()


def _frame_keys(
    readings: Sequence[Reading],
    truths: Sequence[Truth],
    predicted: Sequence[int],
    expected: Sequence[int],
) -> tuple[Indices, Indices]:
    """For every prediction and every truth of a batch one number that says query and frame."""
    queries = np.arange(len(readings))
    owners, targets = np.repeat(queries, predicted), np.repeat(queries, expected)
    frames = list(chain.from_iterable(truth.frames for truth in truths))
    said = list(
        chain.from_iterable(r.frames or [0] * n for r, n in zip(readings, predicted, strict=True))
    )
    span = max(max(frames, default=0), max(said, default=0)) + 1
    if span > 1:
        owners = owners * span + np.array(said, dtype=np.intp)
        targets = targets * span + np.array(frames, dtype=np.intp)
    return owners, targets
