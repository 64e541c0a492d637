"""Simulated runs of deployments whose convention is known, from profiles of images and objects.

Nothing here is of a data set: a profile has the sizes of images and objects, as numbers; pictures,
objects and replies are drawn from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vlmeval_findit.coords import ORDERS, SPACES, AnsweredQuery, Convention, to_numbers

Floats = NDArray[np.float64]
Rng = np.random.Generator


@dataclass(frozen=True)
class Profile:
    """Pictures and objects.

    ``sizes`` are (width, height, how often); ``sides`` mean, deviation and correlation of the
    logarithms of objects' sides in shares of the picture; ``objects`` how often a query has 0, 1,
    2, … of them; ``queries_a_picture`` on the average.
    """

    sizes: tuple[tuple[int, int, float], ...]
    sides: tuple[tuple[float, float], tuple[float, float], float]
    objects: tuple[float, ...]
    queries_a_picture: float


def _sizes(text: str) -> tuple[tuple[int, int, float], ...]:
    """Return sizes written as ``640x480:28``: width, height, how often."""
    matches = re.findall(r"(\d+)x(\d+):(\d+)", text)
    return tuple((int(width), int(height), float(often)) for width, height, often in matches)


_COCO = _sizes(
    "640x480:28 640x427:20 480x640:9 500x375:7 427x640:5 640x360:4 612x612:4 640x503:4 333x500:3 "
    "640x640:2"
)
_WIDE = _COCO + _sizes(
    "1024x768:8 1024x683:6 2048x1365:6 768x1024:4 1920x1080:4 4000x3000:3 5184x3456:2 800x400:2"
)
_THOUSAND = _sizes(
    "1024x768:30 1024x683:22 768x1024:9 683x1024:6 1024x1024:6 1024x576:5 1024x680:4 1024x819:3"
)
_VOC = _sizes("500x375:40 500x333:20 375x500:9 333x500:7 500x334:3 500x400:3 500x281:2")

PROFILES: Mapping[str, Profile] = {
    "referring": Profile(_COCO, ((-1.2, -0.65), (0.48, 0.45), 0.2), (0, 1), 3.0),
    "referring, wide": Profile(_WIDE, ((-1.4, -1.1), (0.68, 0.63), 0.5), (0, 1), 2.4),
    "phrases": Profile(_COCO, ((-1.7, -1.5), (0.96, 0.85), 0.7), (0, 65, 22, 9, 4), 2.4),
    "detection": Profile(_VOC, ((-1.7, -1.3), (0.97, 0.82), 0.8), (0, 55, 20, 12, 7, 4, 2), 2.4),
    "detection, 1024": Profile(
        _THOUSAND, ((-2.0, -1.7), (1.1, 1.05), 0.8), (0, 50, 18, 14, 10, 5, 3), 1.6
    ),
    "dense": Profile(_THOUSAND, ((-2.0, -1.7), (1.1, 1.0), 0.8), (0, 4, 6, *[10] * 10), 1.4),
    "negatives": Profile(_WIDE, ((-1.7, -1.4), (1.0, 1.0), 0.8), (69, 21, 8, 2), 1.5),
    "tiny, 8k": Profile(((8192, 6144, 1.0),), ((-3.3, -3.0), (0.56, 0.55), 0.35), (0, 1), 1.1),
}

SIGMA = {0.9: 0.032, 0.7: 0.115, 0.5: 0.235, 0.3: 0.428}
"""By mean IoU the error of edges in shares of the side that leaves it."""


@dataclass(frozen=True)
class Habit:
    """Errors of a deployment's boxes in addition to its convention.

    ``miou`` is the mean IoU of boxes that mean their object; ``size`` how many times too large they
    are, ``shift`` the share of the side by which they are moved, ``pull`` the share by which they
    are drawn to the middle of the picture, ``frame`` an error of edges in shares of the picture,
    ``coarse`` the step of the numbers in units, ``wrong`` the share of boxes about another object,
    ``missed`` of objects without a box, ``extra`` boxes a query about nothing, ``garbage`` the
    share of boxes whose numbers mean nothing.
    """

    miou: float = 0.5
    size: float = 1.0
    shift: float = 0.0
    pull: float = 0.0
    frame: float = 0.0
    coarse: float = 0.0
    wrong: float = 0.05
    missed: float = 0.1
    extra: float = 0.1
    garbage: float = 0.01


HABITS: Mapping[str, Habit] = {
    "plain": Habit(),
    "good": Habit(miou=0.7),
    "very good": Habit(miou=0.9),
    "weak": Habit(miou=0.3),
    "half wrong objects": Habit(miou=0.9, wrong=0.45),
    "seven of ten wrong": Habit(miou=0.7, wrong=0.7),
    "8 % too large": Habit(size=1.08),
    "8 % too small": Habit(size=0.92),
    "shifted": Habit(miou=0.7, shift=0.04),
    "pulled 5 %": Habit(miou=0.7, pull=0.05),
    "pulled 10 %": Habit(pull=0.10),
    "pulled 10 %, good": Habit(miou=0.7, pull=0.10),
    "pulled 20 %": Habit(pull=0.20),
    "errors of 3 % of the frame": Habit(miou=0.7, frame=0.03),
    "errors of 8 % of the frame": Habit(miou=0.7, frame=0.08),
    "coarse numbers": Habit(coarse=0.02),
    "much of everything": Habit(
        size=0.95, shift=0.02, pull=0.05, extra=0.5, garbage=0.1, missed=0.3
    ),
}
"""Models of every kind whose convention is right."""

_DECIMALS = {"unit": 3, "longer1": 3, "letterbox1": 3, "crop1": 3, "percent": 1}
_DECIMALS |= {name: 3 for name in SPACES if "_unit" in name}


@dataclass(frozen=True)
class Fault:
    """By axis a scale and an offset, in shares of the picture, that a deployment adds."""

    scale: tuple[float, float] = (1.0, 1.0)
    offset: tuple[float, float] = (0.0, 0.0)


def convention(name: str) -> Convention:
    """Return the convention of a name such as ``grid1000/xyxy``."""
    space, order = name.split("/")
    return Convention(SPACES[space], ORDERS[order])


def run(
    rng: Rng,
    profile: Profile,
    says: Callable[[Rng], Convention] | Convention,
    habit: Habit,
    queries: int = 200,
    fault: Fault | None = None,
) -> list[AnsweredQuery]:
    """Return a run of so many queries; ``says`` may draw a convention for every query."""
    weights = np.array([often for *_, often in profile.sizes])
    weights = weights / weights.sum()
    counts = np.array(profile.objects, float)
    answered: list[AnsweredQuery] = []
    picture, size, others = -1, (0, 0), np.zeros((0, 4))
    for _ in range(queries):
        if picture < 0 or rng.random() < 1 / profile.queries_a_picture:
            picture += 1
            width, height, _often = profile.sizes[rng.choice(len(weights), p=weights)]
            size = (width, height)
            others = objects(rng, profile, 3)
        truths = objects(rng, profile, int(rng.choice(len(counts), p=counts / counts.sum())))
        boxes = _drawn(rng, profile, truths, np.concatenate([others, truths]), habit)
        actual = says if isinstance(says, Convention) else says(rng)
        numbers = _numbers(rng, boxes, size, actual, habit, fault)
        edges = np.tile(size, 2)
        answered.append(
            AnsweredQuery(*size, f"picture {picture}", (truths * edges).tolist(), numbers.tolist())
        )
    return answered


def objects(rng: Rng, profile: Profile, count: int) -> Floats:
    """(count, 4) boxes in shares of the picture."""
    mean, spread, together = profile.sides
    covariance = np.outer(spread, spread) * np.array([[1, together], [together, 1]])
    sides = np.exp(rng.multivariate_normal(mean, covariance, count)).clip(0.01, 0.98)
    centre = sides / 2 + rng.random((count, 2)) * (1 - sides)
    return np.concatenate([centre - sides / 2, centre + sides / 2], axis=1)


def _drawn(rng: Rng, profile: Profile, truths: Floats, others: Floats, habit: Habit) -> Floats:
    """Return the boxes that a model means, in shares of the picture."""
    drawn = truths[rng.random(len(truths)) >= habit.missed * (len(truths) > 1)]
    wrong = rng.random(len(drawn)) < habit.wrong
    if wrong.any():
        near = others[rng.integers(len(others), size=len(drawn))]
        far = objects(rng, profile, len(drawn))
        other = np.where(rng.random((len(drawn), 1)) < 0.5, near, far)
        drawn = np.where(wrong[:, None], other, drawn)
    centre = (drawn[:, :2] + drawn[:, 2:]) / 2
    side = drawn[:, 2:] - drawn[:, :2]
    noise = rng.standard_t(5, (len(drawn), 4)) * SIGMA[habit.miou] * 0.77
    centre = 0.5 + (1 - habit.pull) * (centre - 0.5) + (noise[:, :2] + habit.shift) * side
    side = side * habit.size * np.exp(noise[:, 2:].clip(-2, 2))
    boxes = np.concatenate([centre - side / 2, centre + side / 2], axis=1)
    boxes = boxes + rng.normal(0, 1, boxes.shape) * habit.frame
    boxes = np.concatenate([boxes, objects(rng, profile, int(rng.poisson(habit.extra)))])
    ends = np.sort(boxes.reshape(-1, 2, 2), axis=1).reshape(-1, 4)
    return ends.clip(0, 1)


def _numbers(
    rng: Rng,
    boxes: Floats,
    size: tuple[int, int],
    actual: Convention,
    habit: Habit,
    fault: Fault | None,
) -> Floats:
    frame = actual.space.map_of(np.array([size], float).T)
    if fault is not None:
        boxes = boxes * np.tile(fault.scale, 2) + np.tile(fault.offset, 2)
    numbers = to_numbers(boxes.T, frame.of(np.zeros(len(boxes), np.intp)), actual.order.numbers).T
    decimals = _DECIMALS.get(actual.space.name, 0)
    if habit.coarse:
        step = habit.coarse * np.abs(frame.scale).max()
        numbers = np.round(numbers / step) * step
    numbers = np.round(numbers, decimals)
    bad = rng.random(len(numbers)) < habit.garbage
    unit = rng.choice([1, 100, 1000, 2000], (len(numbers), 1))
    return np.where(bad[:, None], np.round(rng.random(numbers.shape) * unit, decimals), numbers)
