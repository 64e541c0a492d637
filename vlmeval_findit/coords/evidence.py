"""A run's answers and truths as flat arrays, before any space is applied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..boxes.matching import plain_label
from .conventions import Floats, Frame, FrameOf

Places = NDArray[np.intp]

MOST_BOXES = 2000  # of a run; larger ones are sampled by query
MOST_SAID = 200  # boxes of a reply
MOST_TRUTHS = 40  # objects that a box is compared with
_LARGEST_NUMBER = 1e7
_STEPS = 6  # decimals


class Query(NamedTuple):
    """One query with its reply."""

    width: int
    height: int
    picture: str
    truths: Sequence[Sequence[float]]  # (x1, y1, x2, y2) in pixels
    said: Sequence[Sequence[float]]  # numbers of each box as in the reply
    # Empty if labels need not be compared
    truth_labels: Sequence[str] = ()
    labels: Sequence[str] = ()


class Paired(NamedTuple):
    """The objects of pairs, (2, p) each, in shares of the image."""

    centre: Floats
    side: Floats
    log_side: Floats


@dataclass(frozen=True)
class Evidence:
    """A run as arrays: q queries, t objects, n boxes, p pairs of a box and a possible object."""

    sizes: Floats  # (2, q) widths and heights of images in pixels
    pictures: Places  # (q,) index of each query's image
    truths: Floats  # (4, t) in shares of the image
    truth_query: Places  # (t,)
    numbers: Floats  # (4, n) as in the reply
    owner: Places  # (n,) query of each box
    box: Places  # (p,)
    truth: Places  # (p,)
    log_choices: Floats  # (n,) logarithm of the number of a box's pairs, at least 1
    step: float  # precision of the numbers: 1 for integers, 0.01 for two decimals
    _frames: dict[FrameOf, Frame] = field(default_factory=dict, repr=False)

    @property
    def boxes(self) -> int:
        return len(self.owner)

    @property
    def queries(self) -> int:
        return len(self.pictures)

    @cached_property
    def log_sides(self) -> tuple[Floats, Floats]:
        """Return mean and spread of the logarithms of objects' sides, (2, 1) each."""
        if not self.truths.size:
            return np.full((2, 1), -1.5), np.ones((2, 1))
        logs = np.log(self.truths[2:] - self.truths[:2])
        return logs.mean(1, keepdims=True), logs.std(1, keepdims=True).clip(0.7)

    @cached_property
    def paired(self) -> Paired:
        truths = self.truths[:, self.truth]
        side = truths[2:] - truths[:2]
        return Paired((truths[:2] + truths[2:]) / 2, side, np.log(side))

    @cached_property
    def meaningless(self) -> Floats:
        """Return (n,) log densities of the numbers if they mean nothing."""
        logs: Floats = -np.log((np.abs(self.numbers) + 0.01) * 32).sum(0)
        return logs

    @property
    def answered(self) -> int:
        """Return how many queries have boxes."""
        return len(np.unique(self.owner))

    def some(self, most: int) -> Evidence:
        """Keep at most so many boxes, spread evenly over the run, and their pairs."""
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
        """Return the frame of each query; different image sizes are computed once."""
        if frame_of not in self._frames:
            sizes, place = self._different_sizes
            self._frames[frame_of] = frame_of(sizes).of(place)
        return self._frames[frame_of]

    @cached_property
    def _different_sizes(self) -> tuple[Floats, Places]:
        sizes, place = np.unique(self.sizes, axis=1, return_inverse=True)
        return sizes, place.ravel()

    def by_query(self, of_boxes: Floats) -> Floats:
        """Sum over the boxes of each query: (q,)."""
        return np.bincount(self.owner, of_boxes, self.queries).astype(float)


def evidence_of(queries: Sequence[Query]) -> Evidence:
    """Make the arrays of a run, without boxes that have non-finite or absurdly large numbers.

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
    """Join the boxes of all queries: (4, n), the query of each, and their normalised labels."""
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
    """Pair boxes with objects of the same label among their query's first :data:`MOST_TRUTHS`."""
    first = np.searchsorted(truth_query, owner, side="left")
    count = np.minimum(np.searchsorted(truth_query, owner, side="right") - first, MOST_TRUTHS)
    box = np.repeat(np.arange(len(owner)), count)
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
