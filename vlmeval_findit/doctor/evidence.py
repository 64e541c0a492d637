"""What a run says and what is true, flattened into arrays, before any space is applied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..boxes.matching import plain_label
from .frames import Floats, Frame, FrameOf

Places = NDArray[np.intp]

MOST_BOXES = 2000  # of a run: of longer ones a sample of queries is looked at
MOST_SAID = 200  # boxes of a reply
MOST_TRUTHS = 40  # objects of a query that a box is compared with
_LARGEST_NUMBER = 1e7
_STEPS = 6  # decimals


class Query(NamedTuple):
    """One query with its reply."""

    width: int
    height: int
    picture: str
    truths: Sequence[Sequence[float]]  # (x1, y1, x2, y2) in pixels of the picture
    said: Sequence[Sequence[float]]  # the numbers of each box, as the reply has them
    # Empty where the query has one label.
    truth_labels: Sequence[str] = ()
    labels: Sequence[str] = ()


class Paired(NamedTuple):
    """The objects of pairs, (2, p) each, in shares of the picture."""

    centre: Floats
    side: Floats
    log_side: Floats


@dataclass(frozen=True)
class Evidence:
    """A run as arrays: q queries, t objects, n boxes, p pairs of them that may be the same."""

    sizes: Floats  # (2, q) of pictures in pixels
    pictures: Places  # (q,) the number of each query's picture
    truths: Floats  # (4, t) in shares of the picture
    truth_query: Places  # (t,)
    numbers: Floats  # (4, n) as said
    owner: Places  # (n,) the query of each box
    box: Places  # (p,)
    truth: Places  # (p,)
    log_choices: Floats  # (n,) in how many pairs a box is, at least 1
    step: float  # of the numbers: 1 for whole ones, 0.01 for two decimals
    _frames: dict[FrameOf, Frame] = field(default_factory=dict, repr=False)

    @property
    def boxes(self) -> int:
        return len(self.owner)

    @property
    def queries(self) -> int:
        return len(self.pictures)

    @cached_property
    def log_sides(self) -> tuple[Floats, Floats]:
        """(2, 1) each: mean and spread of the logarithms of objects' sides."""
        if not self.truths.size:
            return np.full((2, 1), -1.5), np.ones((2, 1))
        logs = np.log(self.truths[2:] - self.truths[:2])
        return logs.mean(1, keepdims=True), logs.std(1, keepdims=True).clip(0.7)

    @cached_property
    def paired(self) -> Paired:
        """The object of every pair."""
        truths = self.truths[:, self.truth]
        side = truths[2:] - truths[:2]
        return Paired((truths[:2] + truths[2:]) / 2, side, np.log(side))

    @cached_property
    def meaningless(self) -> Floats:
        """(n,) logarithms of densities: how likely numbers are that mean nothing."""
        logs: Floats = -np.log((np.abs(self.numbers) + 0.01) * 32).sum(0)
        return logs

    @property
    def answered(self) -> int:
        """How many queries have a box."""
        return len(np.unique(self.owner))

    def some(self, most: int) -> Evidence:
        """At most so many boxes of it, spread over the run, with the pairs that they are in."""
        if self.boxes <= most:
            return self
        kept = np.linspace(0, self.boxes - 1, most).astype(np.intp)
        place = np.full(self.boxes, -1)
        place[kept] = np.arange(most)
        pairs = place[self.box] >= 0
        return replace(
            self,
            numbers=self.numbers[:, kept],
            owner=self.owner[kept],
            box=place[self.box[pairs]],
            truth=self.truth[pairs],
            log_choices=self.log_choices[kept],
        )

    def frame(self, frame_of: FrameOf) -> Frame:
        """What numbers refer to, by query; the sizes of pictures are looked at once."""
        if frame_of not in self._frames:
            sizes, place = self._different_sizes
            self._frames[frame_of] = frame_of(sizes).of(place)
        return self._frames[frame_of]

    @cached_property
    def _different_sizes(self) -> tuple[Floats, Places]:
        sizes, place = np.unique(self.sizes, axis=1, return_inverse=True)
        return sizes, place.ravel()

    def by_query(self, of_boxes: Floats) -> Floats:
        """Sums over the boxes of every query: (q,)."""
        return np.bincount(self.owner, of_boxes, self.queries).astype(float)


def evidence_of(queries: Sequence[Query]) -> Evidence:
    """Make the arrays of a run, without numbers that are not finite or absurdly large.

    >>> seen = evidence_of([Query(100, 50, "a", [(10, 10, 20, 20)], [(1, 2, 3, 4), (5, 6, 7, 8)])])
    >>> seen.truths.tolist(), seen.owner.tolist(), seen.box.tolist(), seen.truth.tolist()
    ([[0.1], [0.2], [0.2], [0.4]], [0, 0], [0, 1], [0, 0])
    """
    queries = _sample(
        [q._replace(said=q.said[:MOST_SAID], labels=q.labels[:MOST_SAID]) for q in queries]
    )
    sizes = np.array([(q.width, q.height) for q in queries], float).reshape(-1, 2).T
    names: dict[str, int] = {}
    pictures = np.array([names.setdefault(q.picture, len(names)) for q in queries], np.intp)
    truths, truth_query, truth_labels = _stacked([(q.truths, q.truth_labels) for q in queries])
    truths = truths / np.tile(sizes[:, truth_query], (2, 1))
    has_sides = (truths[2] > truths[0]) & (truths[3] > truths[1])
    truths, truth_query = truths[:, has_sides], truth_query[has_sides]
    numbers, owner, labels = _stacked([(q.said, q.labels) for q in queries])
    usable = (np.abs(numbers) < _LARGEST_NUMBER).all(0)
    numbers, owner = numbers[:, usable], owner[usable]
    box, truth = _pairs(owner, truth_query, labels[usable], truth_labels[has_sides])
    return Evidence(
        sizes=sizes,
        pictures=pictures,
        truths=truths,
        truth_query=truth_query,
        numbers=numbers,
        owner=owner,
        box=box,
        truth=truth,
        log_choices=np.log(np.bincount(box, minlength=len(owner)).clip(1)),
        step=_step(numbers),
    )


def _sample(queries: Sequence[Query]) -> Sequence[Query]:
    if sum(len(q.said) for q in queries) <= MOST_BOXES:
        return queries
    order = np.random.default_rng(0).permutation(len(queries))
    ends = np.cumsum([len(queries[i].said) for i in order])
    kept = order[: max(1, int(np.searchsorted(ends, MOST_BOXES, side="right")))]
    return [queries[i] for i in sorted(kept)]


def _stacked(
    rows: Sequence[tuple[Sequence[Sequence[float]], Sequence[str]]],
) -> tuple[Floats, Places, NDArray[np.str_]]:
    """Boxes (4, n) of all queries, the query of each, and labels as the score compares them."""
    boxes = [box for found, _ in rows for box in found]
    where = np.repeat(np.arange(len(rows)), [len(found) for found, _ in rows])
    labels = [plain_label(name) for found, given in rows for name in given or [""] * len(found)]
    return np.array(boxes, float).reshape(-1, 4).T, where, np.array(labels, np.str_)


def _pairs(
    owner: Places,
    truth_query: Places,
    labels: NDArray[np.str_],
    truth_labels: NDArray[np.str_],
) -> tuple[Places, Places]:
    """Every box with the objects of its query that have its label; at most :data:`MOST_TRUTHS`."""
    first = np.searchsorted(truth_query, owner, side="left")
    count = np.minimum(np.searchsorted(truth_query, owner, side="right") - first, MOST_TRUTHS)
    box = np.repeat(np.arange(len(owner)), count)
    truth = np.arange(len(box)) - np.repeat(np.cumsum(count) - count, count) + first[box]
    same = labels[box] == truth_labels[truth]
    return box[same], truth[same]


def _step(numbers: Floats) -> float:
    """The step of which nearly all numbers are multiples, so that rounding is no evidence."""
    values = np.abs(numbers).ravel()
    for digits in range(_STEPS):
        scaled = values * 10.0**digits
        if not values.size or (np.abs(scaled - np.round(scaled)) < 1e-6).mean() >= 0.95:
            return float(10.0**-digits)
    return float(10.0**-_STEPS)
