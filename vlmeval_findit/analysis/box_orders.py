"""The boxes of one class in any order, matched with objects as pycocotools matches them.

pycocotools takes the boxes of an image in their order: each takes the object that it overlaps most
of those that are left.  So the order decides between boxes that compete for an object, and they are
matched in each order; what other boxes are worth depends on no order.  Only the first boxes of an
image count, as many as COCO takes: where there are more, the order decides which.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ..protocol import Array
from ..statistics import Chain, Flags, Matches, MissLimits, average_precision

Outcomes = NDArray[np.int8]
Places = NDArray[np.intp]

MISSED, FOUND, IGNORED = 0, 1, 2  # What comes of a box
_LETTERS = {MISSED: "M", FOUND: "H", IGNORED: "I"}

MOST_LISTED = 6  # Boxes that compete, of which all orders are listed
_NUMBERS_AT_A_TIME = 4_000_000


class Overlaps(NamedTuple):
    """The boxes and objects of a class in one image, as pycocotools has them."""

    ious: Array  # (boxes, objects); boxes in the order of the reply, ignored objects last
    ignored: Flags
    crowd: Flags

    def of(self, boxes: Places) -> Overlaps:
        """Return some of the boxes, with the objects that one of them overlaps."""
        ious = self.ious[boxes]
        near = (ious > 0).any(axis=0)
        return Overlaps(ious[:, near], self.ignored[near], self.crowd[near])


def match_in_orders(overlaps: Overlaps, thresholds: Array, orders: Places) -> Outcomes:
    """Return (orders, thresholds, boxes) what comes of each box, as ``COCOeval`` has it.

    ``orders`` are (orders, boxes): the boxes from the first rank on.
    """
    ious, ignored, crowd = overlaps
    count, boxes = orders.shape
    least = np.broadcast_to(np.minimum(thresholds, 1 - 1e-10), (count, len(thresholds)))
    outcomes = np.zeros((count, len(thresholds), boxes), np.int8)
    taken = np.zeros((count, len(thresholds), len(ignored)), bool)
    every = np.arange(count)
    for rank in range(boxes):
        box = orders[:, rank]
        best = least.copy()
        match = np.full(best.shape, -1)
        for at in range(len(ignored)):
            iou = ious[box, at][:, None]
            free = crowd[at] | ~taken[:, :, at]
            better = free & (iou >= best)
            if ignored[at]:  # Only if there is no object that counts: those came before
                better &= (match < 0) | ignored[match]
            best = np.where(better, iou, best)
            match[better] = at
        found = match >= 0
        order, threshold = np.nonzero(found)
        taken[order, threshold, match[found]] = True
        of_match = np.where(ignored[match], IGNORED, FOUND) if len(ignored) else match
        outcomes[every, :, box] = np.where(found, of_match, MISSED)
    return outcomes


@dataclass(frozen=True, slots=True, eq=False)
class Competing:
    """Boxes of an image between which their order decides."""

    boxes: Places  # Among all boxes of the class
    overlaps: Overlaps
    listed: Outcomes | None  # (orders, thresholds, boxes) in all their orders; None: too many

    def outcomes(self, orders: Places, thresholds: Array) -> Outcomes:
        """Return (orders, thresholds, boxes) what comes of its boxes in orders of theirs."""
        if self.listed is None:
            return match_in_orders(self.overlaps, thresholds, orders)
        count = len(self.boxes)
        codes = orders @ (count ** np.arange(count))
        outcomes: Outcomes = self.listed[_places_of_orders(count)[codes]]
        return outcomes


@lru_cache
def _all_orders(count: int) -> Places:
    return np.array(list(permutations(range(count))), np.intp)


@lru_cache
def _places_of_orders(count: int) -> Places:
    """Return the place of each order among all, by its digits in base ``count``."""
    orders = _all_orders(count)
    places = np.zeros(count**count, np.intp)
    places[orders @ (count ** np.arange(count))] = np.arange(len(orders))
    return places


@dataclass(frozen=True, slots=True)
class AtThreshold:
    """The boxes of a class at one IoU threshold."""

    hits: int  # Of boxes that do not compete
    misses: int
    chains: tuple[Chain, ...] | None  # Of those that do; None: not all of their orders are known
    limits: tuple[MissLimits, ...]


class BoxOrders:
    """The boxes of one class, in pycocotools' order: by image, within it as the reply has them.

    Args:
        images: those in which the class has a box.
        objects: number of objects that count, of all images.
        thresholds: of IoU, ascending.
        most: boxes of an image that count, the first ones of an order.
    """

    def __init__(
        self, images: Sequence[Overlaps], objects: int, thresholds: Array, most: int
    ) -> None:
        self.objects = objects
        self.most = most
        self.thresholds = thresholds
        self.boxes = sum(len(image.ious) for image in images)
        # Outcomes of boxes that do not compete
        self.alone = np.zeros((len(thresholds), self.boxes), np.int8)
        self.competing: list[Competing] = []
        self.cut: list[Places] = []  # The boxes of each image that has more than count
        self.best_iou = np.zeros(self.boxes)  # With an object that counts
        first = 0
        for image in images:
            here = np.arange(first, first + len(image.ious))
            regular = image.ious[:, ~image.ignored]
            if regular.shape[1]:
                self.best_iou[here] = regular.max(axis=1)
            for group in groups_of(image, thresholds[0]):
                self._add(here[group], image.of(group))
            if len(here) > most:
                self.cut.append(here)
            first += len(here)
        self.competes = np.zeros(self.boxes, bool)
        for competing in self.competing:
            self.competes[competing.boxes] = True

    def _add(self, boxes: Places, overlaps: Overlaps) -> None:
        count = len(boxes)
        if count > MOST_LISTED:
            self.competing.append(Competing(boxes, overlaps, None))
            return
        listed = match_in_orders(overlaps, self.thresholds, _all_orders(count))
        if (listed == listed[0]).all():
            self.alone[:, boxes] = listed[0]
        else:
            self.competing.append(Competing(boxes, overlaps, listed))

    def outcomes(self, orders: Places) -> Outcomes:
        """Return (orders, thresholds, boxes) what comes of each box."""
        outcomes = self.matched(orders)
        ranks = np.argsort(orders, axis=1) if self.cut else orders
        # The first boxes are matched as if there were no others.
        for image in self.cut:
            beyond = image[np.argsort(ranks[:, image], axis=1)[:, self.most :]]
            outcomes[np.arange(len(orders))[:, None], :, beyond] = IGNORED
        return outcomes

    def matched(self, orders: Places) -> Outcomes:
        """Return (orders, thresholds, boxes) what came of each box if all of an image counted."""
        outcomes = np.repeat(self.alone[None], len(orders), axis=0)
        ranks = np.argsort(orders, axis=1)
        for group in self.competing:
            of_group = np.argsort(ranks[:, group.boxes], axis=1)
            outcomes[:, :, group.boxes] = group.outcomes(of_group, self.thresholds)
        return outcomes

    def precision(self, orders: Places, outcomes: Outcomes | None = None) -> Array:
        """Return (orders, thresholds) average precision, a share of 1; of known outcomes, too."""
        if outcomes is None:
            outcomes = self.outcomes(orders)
        ranked = np.take_along_axis(outcomes, orders[:, None], axis=2)
        rows = ranked.reshape(-1, self.boxes)
        nowhere = np.zeros(self.boxes, np.intp)
        matches = Matches(rows != MISSED, rows != IGNORED, nowhere, np.array([float(self.objects)]))
        values = average_precision(matches, np.ones((1, 1)))
        return values.reshape(ranked.shape[:2])

    @property
    def at_a_time(self) -> int:
        """Return how many orders fit into memory at a time."""
        return max(1, _NUMBERS_AT_A_TIME // max(1, self.alone.size))

    def at_threshold(self, place: int) -> AtThreshold:
        """Count and describe the boxes at a threshold."""
        is_cut = np.zeros(self.boxes, bool)
        limits: list[MissLimits] = []
        for image in self.cut:
            is_cut[image] = True
            part = self._of_boxes(place, image)
            ignored = len(image) - part.sizes - part.hits - part.misses
            counts = (part.hits, part.misses, ignored)
            limits.append(MissLimits.of_first(self.most, *counts, part.limits))
        others = self._of_boxes(place, np.flatnonzero(~is_cut))
        chains = None if self.cut or others.unknown else tuple(others.chains)
        return AtThreshold(others.hits, others.misses, chains, (*limits, *others.limits))

    def _of_boxes(self, place: int, boxes: Places) -> _Part:
        """Describe the boxes of some images at a threshold, all of which count."""
        chosen = np.zeros(self.boxes, bool)
        chosen[boxes] = True
        alone = self.alone[place][chosen & ~self.competes]
        part = _Part(hits=int((alone == FOUND).sum()), misses=int((alone == MISSED).sum()))
        for group in self.competing:
            if not chosen[group.boxes[0]]:
                continue
            for few in groups_of(group.overlaps, self.thresholds[place]):
                self._add_group(part, group, few, place)
        part.chains.sort(key=lambda chain: (chain.words, chain.shares))
        return part

    def _add_group(self, part: _Part, group: Competing, few: Places, place: int) -> None:
        chain = _chain(group, few, place, self.thresholds)
        if chain is not None and chain.in_any_order:
            part.hits += chain.words[0].count("H")
            part.misses += chain.words[0].count("M")
            return
        part.sizes += len(few)
        if chain is None:
            part.unknown = True
            part.limits.append(_wide_limits(group, few, place, self.thresholds))
        else:
            part.chains.append(chain)
            part.limits.append(MissLimits.of_chain(chain))


@dataclass(slots=True)
class _Part:
    """The boxes of some images at one IoU threshold."""

    hits: int  # Of boxes that do not compete
    misses: int
    sizes: int = 0  # How many compete
    chains: list[Chain] = field(default_factory=list)
    limits: list[MissLimits] = field(default_factory=list)
    unknown: bool = False  # Whether not all orders of some that compete are known


def groups_of(overlaps: Overlaps, threshold: float) -> Iterator[Places]:
    """Yield the boxes of an image that compete, directly or through others; most are alone."""
    # Any number of boxes may lie in a crowd, so nothing competes for it.
    near = (overlaps.ious >= min(threshold, 1 - 1e-10)) & ~overlaps.crowd
    count, objects = near.shape
    if near.sum(axis=0).max(initial=0) < 2:
        yield from np.arange(count)[:, None]
        return
    boxes, targets = np.nonzero(near)
    links = coo_array(
        (np.ones(len(boxes), bool), (boxes, count + targets)), (count + objects, count + objects)
    )
    _, group = connected_components(links, directed=False)
    group = group[:count]
    _, firsts = np.unique(group, return_index=True)
    for first in np.sort(firsts):
        yield np.flatnonzero(group == group[first])


def _chain(group: Competing, few: Places, place: int, thresholds: Array) -> Chain | None:
    """Return what comes of the orders of a few boxes of a group; None: they are too many."""
    count = len(few)
    overlaps = group.overlaps.of(few)
    here = thresholds[place : place + 1]
    if count > MOST_LISTED:
        near = overlaps.ious >= min(here[0], 1 - 1e-10)
        all_on_one = (near == near[0]).all() and near[0].sum() == 1
        if not all_on_one:
            return None
        if overlaps.ignored[near[0]][0]:
            return None
        return Chain(("H" + "M" * (count - 1),), (1.0,))
    orders = _all_orders(count)
    outcomes = match_in_orders(overlaps, here, orders)[:, 0]
    ranked = np.take_along_axis(outcomes, orders, axis=1)
    words = Counter("".join(_LETTERS[letter] for letter in row) for row in ranked.tolist())
    return Chain(tuple(sorted(words)), tuple(words[word] / len(orders) for word in sorted(words)))


def _wide_limits(group: Competing, few: Places, place: int, thresholds: Array) -> MissLimits:
    """Return limits that hold in all orders of boxes of which not all orders are listed.

    A box next to a free object that counts is a hit, so that of any two orders the one has at least
    half of the other's hits.
    """
    overlaps = group.overlaps.of(few)
    here = thresholds[place : place + 1]
    near = overlaps.ious >= min(here[0], 1 - 1e-10)
    near = near[:, ~overlaps.ignored]
    can_hit = int(near.any(axis=1).sum())
    most_hits = min(can_hit, int(near.any(axis=0).sum()))
    in_order = match_in_orders(overlaps, here, np.arange(len(few))[None])
    fewest_hits = -(-int((in_order == FOUND).sum()) // 2)
    most = [len(few) - can_hit, *[len(few) - fewest_hits] * most_hits]
    fewest_of_first = []
    for left in range(len(few), -1, -1):
        first_hits = int(left < can_hit)
        fewest_of_first.append(max(first_hits, fewest_hits - left))
    return MissLimits(tuple(fewest_of_first), tuple(most), (0,) * (most_hits + 1))
