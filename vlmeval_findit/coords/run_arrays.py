"""A run's answers and truths as flat arrays, before any space is applied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..boxes import plain_label
from .conventions import CoordinateMap, CoordinateMapOf, Floats

Indices = NDArray[np.intp]

MOST_BOXES = 2000  # of a run; larger ones are sampled by query
MOST_BOXES_OF_REPLY = 200  # boxes of a reply
MOST_TRUTHS = 40  # objects that a box is compared with
_LARGEST_NUMBER = 1e7

# Objects of images of one size lie at one place if no edge is farther apart than this share of the
# image, or than half a side of theirs: conventions hardly differ in what they make of them.
_SAME_PLACE = 0.03
_SAME_PLACE_OF_SIDE = 0.5
_MOST_PLACES = 3000  # That are compared with each other; so many are no single place
_STEPS = 6  # decimals


class AnsweredQuery(NamedTuple):
    """One query with its reply."""

    width: int
    height: int
    image: str
    truths: Sequence[Sequence[float]]  # (x1, y1, x2, y2) in pixels
    numbers: Sequence[Sequence[float]]  # numbers of each box as in the reply
    # Empty if labels need not be compared
    truth_labels: Sequence[str] = ()
    labels: Sequence[str] = ()


class Paired(NamedTuple):
    """The objects of pairs, (2, p) each, in shares of the image."""

    centre: Floats
    side: Floats
    log_side: Floats


@dataclass(frozen=True)
class RunArrays:
    """A run as arrays: q queries, t objects, n boxes, p pairs of a box and a possible object."""

    sizes: Floats  # (2, q) widths and heights of images in pixels
    images: Indices  # (q,) index of each query's image
    truths: Floats  # (4, t) in shares of the image
    truth_query: Indices  # (t,)
    numbers: Floats  # (4, n) as in the reply
    box_query: Indices  # (n,) query of each box
    pair_box: Indices  # (p,)
    pair_truth: Indices  # (p,)
    log_choices: Floats  # (n,) logarithm of the number of a box's pairs, at least 1
    step: float  # precision of the numbers: 1 for integers, 0.01 for two decimals
    _maps: dict[CoordinateMapOf, CoordinateMap] = field(default_factory=dict, repr=False)

    @property
    def boxes(self) -> int:
        return len(self.box_query)

    @property
    def queries(self) -> int:
        return len(self.images)

    @cached_property
    def weights(self) -> Floats:
        """Return (n,) how much each box says: all boxes about one place are one piece of evidence.

        So are equal numbers about images of one size, wherever the objects lie.
        """
        of_box = np.exp(-self.log_choices)[self.pair_box]
        about = np.bincount(self.pair_truth, of_box, len(self.truth_query)).astype(float)
        crowd = _crowds(self.truths, self.sizes[:, self.truth_query], about)
        shares = of_box / crowd[self.pair_truth].clip(1)
        weights = np.ones(self.boxes)
        has_objects = np.bincount(self.pair_box, minlength=self.boxes) > 0
        weights[has_objects] = np.bincount(self.pair_box, shares, self.boxes)[has_objects]
        answers = np.concatenate([self.numbers, self.sizes[:, self.box_query]])
        _, which, equal = np.unique(answers, axis=1, return_inverse=True, return_counts=True)
        return np.minimum(weights, 1 / equal[which.ravel()])

    @property
    def places(self) -> float:
        """Return how many boxes about different places say as much as all boxes together."""
        return float(self.weights.sum())

    @cached_property
    def truth_weights(self) -> Floats:
        """Return (t,) how much each object says, as :attr:`weights`."""
        ones = np.ones(len(self.truth_query))
        return 1 / _crowds(self.truths, self.sizes[:, self.truth_query], ones)

    @cached_property
    def log_sides(self) -> tuple[Floats, Floats]:
        """Return mean and spread of the logarithms of objects' sides, (2, 1) each."""
        if not self.truths.size:
            return np.full((2, 1), -1.5), np.ones((2, 1))
        logs = np.log(self.truths[2:] - self.truths[:2])
        return logs.mean(1, keepdims=True), logs.std(1, keepdims=True).clip(0.7)

    @cached_property
    def paired(self) -> Paired:
        truths = self.truths[:, self.pair_truth]
        side = truths[2:] - truths[:2]
        return Paired((truths[:2] + truths[2:]) / 2, side, np.log(side))

    @cached_property
    def meaningless(self) -> Floats:
        """Return (n,) log densities of the numbers if they mean nothing."""
        logs: Floats = -np.log((np.abs(self.numbers) + 0.01) * 32).sum(0)
        return logs

    @property
    def answered(self) -> int:
        return len(np.unique(self.box_query))

    def some(self, most: int) -> RunArrays:
        """Keep at most so many boxes, spread evenly over the run, and their pairs."""
        if self.boxes <= most:
            return self
        return self.only(np.linspace(0, self.boxes - 1, most).astype(np.intp))

    def only(self, chosen: Indices) -> RunArrays:
        """Keep some of the boxes, in ascending order, and their pairs."""
        place = np.full(self.boxes, -1)
        place[chosen] = np.arange(len(chosen))
        pairs = place[self.pair_box] >= 0
        return replace(
            self,
            numbers=self.numbers[:, chosen],
            box_query=self.box_query[chosen],
            pair_box=place[self.pair_box[pairs]],
            pair_truth=self.pair_truth[pairs],
            log_choices=self.log_choices[chosen],
        )

    def coordinate_map(self, map_of: CoordinateMapOf) -> CoordinateMap:
        """Return the frame of each query; different image sizes are computed once."""
        if map_of not in self._maps:
            sizes, place = self._different_sizes
            self._maps[map_of] = map_of(sizes).of(place.ravel())
        return self._maps[map_of]

    @cached_property
    def _different_sizes(self) -> tuple[Floats, Indices]:
        return np.unique(self.sizes, axis=1, return_inverse=True)

    def by_query(self, of_boxes: Floats) -> Floats:
        """Sum over the boxes of each query: (q,)."""
        return np.bincount(self.box_query, of_boxes, self.queries).astype(float)


def run_arrays(queries: Sequence[AnsweredQuery]) -> RunArrays:
    """Make the arrays of a run, without boxes that have non-finite or absurdly large numbers.

    >>> query = AnsweredQuery(100, 50, "a", [(10, 10, 20, 20)], [(1, 2, 3, 4), (5, 6, 7, 8)])
    >>> arrays = run_arrays([query])
    >>> arrays.truths.tolist(), arrays.pair_box.tolist(), arrays.pair_truth.tolist()
    ([[0.1], [0.2], [0.2], [0.4]], [0, 1], [0, 0])
    """
    most = slice(MOST_BOXES_OF_REPLY)
    queries = _sample([q._replace(numbers=q.numbers[most], labels=q.labels[most]) for q in queries])
    sizes = np.array([(q.width, q.height) for q in queries], float).reshape(-1, 2).T
    names: dict[str, int] = {}
    images = np.array([names.setdefault(q.image, len(names)) for q in queries], np.intp)
    truths, truth_query, truth_labels = _stacked([(q.truths, q.truth_labels) for q in queries])
    truths = truths / np.tile(sizes[:, truth_query], (2, 1))
    proper = (truths[2] > truths[0]) & (truths[3] > truths[1])
    truths = truths[:, proper]
    truth_query = truth_query[proper]
    truth_labels = truth_labels[proper]
    numbers, box_query, labels = _stacked([(q.numbers, q.labels) for q in queries])
    usable = (np.abs(numbers) < _LARGEST_NUMBER).all(0)
    numbers = numbers[:, usable]
    box_query = box_query[usable]
    labels = labels[usable]
    box, truth = _pairs(box_query, truth_query, labels, truth_labels)
    return RunArrays(
        sizes=sizes,
        images=images,
        truths=truths,
        truth_query=truth_query,
        numbers=numbers,
        box_query=box_query,
        pair_box=box,
        pair_truth=truth,
        log_choices=np.log(np.bincount(box, minlength=len(box_query)).clip(1)),
        step=_step(numbers),
    )


def _crowds(truths: Floats, sizes: Floats, amounts: Floats) -> Floats:
    """Add up the amounts of all objects at the place of each: (t,)."""
    rounded = np.concatenate([np.round(truths, 3), sizes])
    different, place = np.unique(rounded, axis=1, return_inverse=True)
    place = place.ravel()
    of_places = np.bincount(place, amounts, different.shape[1])
    if different.shape[1] > _MOST_PLACES:
        return of_places[place].astype(float)
    sides = different[2:4] - different[:2]
    reach = np.tile(np.minimum(_SAME_PLACE, _SAME_PLACE_OF_SIDE * sides), (2, 1))
    crowds = np.empty(different.shape[1])
    for row, there in enumerate(different.T):
        apart = np.abs(different[:4] - there[:4, None])
        near = (apart <= np.minimum(reach, reach[:, row, None])).all(0)
        alike = near & (different[4:] == there[4:, None]).all(0)
        crowds[row] = of_places[alike].sum()
    return crowds[place]


def _sample(queries: Sequence[AnsweredQuery]) -> Sequence[AnsweredQuery]:
    if sum(len(q.numbers) for q in queries) <= MOST_BOXES:
        return queries
    order = np.random.default_rng(0).permutation(len(queries))
    ends = np.cumsum([len(queries[i].numbers) for i in order])
    chosen = order[: max(1, int(np.searchsorted(ends, MOST_BOXES, side="right")))]
    return [queries[i] for i in sorted(chosen)]


Labels = NDArray[np.str_]


def _stacked(
    rows: Sequence[tuple[Sequence[Sequence[float]], Sequence[str]]],
) -> tuple[Floats, Indices, Labels]:
    """Join the boxes of all queries: (4, n), the query of each, and their normalised labels."""
    boxes = [box for boxes_, _ in rows for box in boxes_]
    where = np.repeat(np.arange(len(rows)), [len(boxes_) for boxes_, _ in rows])
    labels = [plain_label(name) for boxes_, names_ in rows for name in names_ or [""] * len(boxes_)]
    return np.array(boxes, float).reshape(-1, 4).T, where, np.array(labels, np.str_)


def _pairs(
    box_query: Indices, truth_query: Indices, labels: Labels, truth_labels: Labels
) -> tuple[Indices, Indices]:
    """Pair boxes with objects of the same label among their query's first :data:`MOST_TRUTHS`."""
    first = np.searchsorted(truth_query, box_query, side="left")
    count = np.minimum(np.searchsorted(truth_query, box_query, side="right") - first, MOST_TRUTHS)
    box = np.repeat(np.arange(len(box_query)), count)
    truth = np.arange(len(box)) - np.repeat(np.cumsum(count) - count, count) + first[box]
    same = labels[box] == truth_labels[truth]
    return box[same], truth[same]


def _step(numbers: Floats) -> float:
    """Find the step that nearly all numbers are multiples of, to allow for rounding."""
    values = np.abs(numbers).ravel()
    for digits in range(_STEPS):
        scaled = values * 10.0**digits
        if not values.size or (np.abs(scaled - np.round(scaled)) < 1e-6).mean() >= 0.95:
            return float(10.0**-digits)
    return float(10.0**-_STEPS)
