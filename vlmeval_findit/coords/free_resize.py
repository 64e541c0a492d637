"""A resize whose rule or size no convention has: each size of images has one scale of its own.

Rules have one free number (a side, a square, bounds of ``smart_resize``), which the answers tell.
Where no rule fits, the scale of each size is measured, so that its sizes can be named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from ..boxes import Size, Space, smart_resize
from .conventions import (
    NO_DISTORTION,
    Convention,
    CoordinateMap,
    Distortion,
    Floats,
    Order,
    SpaceRow,
    of_space,
)
from .likelihood import ConventionFit, iou, placed
from .run_arrays import Indices, RunArrays

_FEWEST = 4  # Boxes of a size, so that its scale is measured
_FEWEST_SIZES = 2  # A single size tells a scale, and no rule
# Mean IoU by which a rule may be behind the measured sizes, which also fit errors
_ABOUT_AS_GOOD = 0.02
_CLEARLY_BETTER = 0.003

# Bounds of processors and programs that ship, tried before others that give the same sizes
_USUAL_BOUNDS = (
    3136, 50176, 65536, 131072, 200704, 262144, 401408, 524288, 602112, 786432, 802816, 1003520,
    1048576, 1605632, 2097152, 2408448, 3211264,
)  # fmt: skip
_FACTORS = (28, 32, 14, 16)
_TRIED_BOUNDS = 4  # Of each factor
_UNBOUNDED = 10**9
_RESIZED = 1.04  # Ratio of sides that rounding to a factor does not explain


@dataclass(frozen=True, slots=True)
class ResizeFit:
    """The resize that explains a run best."""

    convention: Convention
    rule: str  # In words; "" if no rule fits
    sizes: Mapping[Size, Size]  # From sizes of images to those that numbers refer to
    iou: float  # Mean over boxes with their nearest object

    @property
    def words(self) -> str:
        """Describe the resize with the sizes that fit.

        Of a rule they are examples.
        """
        shown = [f"{w} x {h} -> {u} x {v}" for (w, h), (u, v) in [*self.sizes.items()][:3]]
        what = self.rule or "pixels after a resize whose rule is not known"
        return f"{what} ({', '.join(shown)})"


def fit_resize(arrays: RunArrays, order: Order) -> ResizeFit | None:
    """Find a resize from the same corner, or a crop or padding, that explains a run.

    Args:
        arrays: the answers of a run, with one scale for each size of images.
        order: of the four numbers.

    Returns:
        The best rule with a free number, else the measured sizes; None with too few boxes.
    """
    pairs = _Pairs.of(arrays, order)
    sizes = pairs.measured()
    if not sizes:
        return None
    measured = _fit(arrays, order, "", _measured_map(sizes), sizes)
    rules = []
    if len(sizes) >= _FEWEST_SIZES:
        for rule, frame in _rules(pairs, _RULES):
            rules.append(_fit(arrays, order, rule, frame, sizes))
        rules += _smart_fits(arrays, order, sizes)
        for rule, frame in _rules(pairs, _LAST_RULES):
            rules.append(_fit(arrays, order, rule, frame, sizes))
    best = max(rules, key=lambda each: each.iou, default=measured)
    if best.iou < measured.iou - _ABOUT_AS_GOOD:
        return measured
    # The first of those that explain about as much is the simplest.
    return next(each for each in [*rules, best] if each.iou >= best.iou - _CLEARLY_BETTER)


# Mean IoU by which a resize must fit better than a listed convention
_GAINS = 0.02


def better_resize(
    arrays: RunArrays,
    orders: Sequence[Order],
    listed: Sequence[ConventionFit],
    second: Convention | None = None,
) -> ResizeFit | None:
    """Return the resize that explains a run clearly better than listed conventions, else None.

    Args:
        arrays: the answers of a run.
        orders: orders of numbers that are tried.
        listed: the conventions that fit best, perhaps distorted.
        second: a convention of part of the answers beside the first of ``listed``: a resize must
            explain about as much as both together.
    """
    fits = [fit_resize(arrays, order) for order in {each.name: each for each in orders}.values()]
    found = max(filter(None, fits), key=lambda each: each.iou, default=None)
    if found is None:
        return None
    known = max(mean_iou(arrays, each.convention, each.distortion) for each in listed)
    if found.iou < known + least_gain(arrays, found):
        return None
    if second is not None:
        both = np.maximum(*(box_ious(arrays, each) for each in (listed[0].convention, second)))
        if found.iou < np.average(both, weights=arrays.weights) - _GAINS:
            return None
    return found


def least_gain(arrays: RunArrays, found: ResizeFit) -> float:
    """Return the mean IoU by which a resize must fit better than a listed convention.

    Scales that are fitted to few boxes of each size fit their errors, too.
    """
    return _GAINS + (1 - found.iou) * len(found.sizes) / max(arrays.places, 1)


def mean_iou(
    arrays: RunArrays, convention: Convention, distortion: Distortion = NO_DISTORTION
) -> float:
    """Return the mean IoU of boxes with their nearest object, read in a convention."""
    if not arrays.boxes:
        return 0.0
    return float(np.average(box_ious(arrays, convention, distortion), weights=arrays.weights))


def box_ious(
    arrays: RunArrays, convention: Convention, distortion: Distortion = NO_DISTORTION
) -> Floats:
    """Return (n,) IoUs of boxes with their nearest object, read in a convention."""
    corners = placed(arrays, convention, distortion).corners
    overlaps = iou(corners[:, arrays.pair_box], arrays.truths[:, arrays.pair_truth])
    best = np.zeros(arrays.boxes)
    np.maximum.at(best, arrays.pair_box, overlaps)
    return best


Frame = Callable[[Floats], CoordinateMap]


def _fit(
    arrays: RunArrays, order: Order, rule: str, frame: Frame, sizes: Mapping[Size, Size]
) -> ResizeFit:
    name = rule or "measured sizes"
    convention = Convention(SpaceRow(name, name, 0.0, frame), order)
    asked = np.array(list(sizes), float).T
    shown = {}
    for size, sides in zip(sizes, frame(asked).scale.T, strict=True):
        shown[size] = (round(float(sides[0])), round(float(sides[1])))
    return ResizeFit(convention, rule, shown, mean_iou(arrays, convention))


# --- what the answers tell ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Edges of boxes and of the objects that they may mean; e edges."""

    numbers: Floats  # (2, e) along x and y
    pixels: Floats  # (2, e) of the objects, likewise
    sizes: Floats  # (2, e) of their images
    says: Floats  # (e,) how much each says

    @classmethod
    def of(cls, arrays: RunArrays, order: Order) -> _Pairs:
        corners = (order.corners @ arrays.numbers)[:, arrays.pair_box]
        sizes = arrays.sizes[:, arrays.box_query[arrays.pair_box]]
        pixels = arrays.truths[:, arrays.pair_truth] * np.tile(sizes, (2, 1))
        return cls(
            np.concatenate([corners[:2], corners[2:]], axis=1),
            np.concatenate([pixels[:2], pixels[2:]], axis=1),
            np.tile(sizes, 2),
            np.tile(arrays.weights[arrays.pair_box], 2),
        )

    def measured(self) -> dict[Size, Size]:
        """Return the size that numbers refer to, for each size of images with enough boxes."""
        different, place = np.unique(self.sizes, axis=1, return_inverse=True)
        result = {}
        for at, (width, height) in enumerate(different.T.tolist()):
            here = place.ravel() == at
            if here.sum() < 2 * _FEWEST:
                continue
            across, down = (
                _middle(numbers[here] / pixels[here].clip(1e-9), (pixels * self.says)[here])
                for numbers, pixels in zip(self.numbers, self.pixels, strict=True)
            )
            if across > 0 and down > 0:
                sides = (max(1, round(across * width)), max(1, round(down * height)))
                result[int(width), int(height)] = sides
        return result


def _middle(values: Floats, weights: Floats) -> float:
    """Return the weighted median: an edge far from the corner tells a scale best."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, total[-1] / 2)])


def _measured_map(measured: Mapping[Size, Size]) -> Frame:
    """Make the map of measured sizes; others are scaled as the size of the nearest area is."""
    known = np.array(list(measured), float)
    sides = np.array(list(measured.values()), float)

    def frame(sizes: Floats) -> CoordinateMap:
        apart = np.abs(np.log(sizes.T[:, None] / known)).sum(2)
        nearest: Indices = apart.argmin(1)
        scale = sizes * (sides[nearest] / known[nearest]).T
        return CoordinateMap(scale, np.zeros_like(sizes))

    return frame


# --- rules with one free number -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule: numbers are a free number times what it makes of pixels."""

    words: str  # With {} for the number
    place: Callable[[Floats, Floats], Floats]  # From (2, e) pixels and sizes to numbers for 1
    frame: Callable[[float], Frame]


def _scaled_by(side: Callable[[Floats], Floats], words: str) -> _Rule:
    """Make a rule that scales both axes to a side that images have."""
    return _Rule(
        words,
        lambda pixels, sizes: pixels / side(sizes),
        lambda number: (
            lambda sizes: CoordinateMap(number * sizes / side(sizes), np.zeros_like(sizes))
        ),
    )


def _padding(sizes: Floats) -> Floats:
    longer: Floats = sizes.max(0)
    return np.asarray((longer - sizes) / 2 / longer)


def _cropping(sizes: Floats) -> Floats:
    shorter: Floats = sizes.min(0)
    return np.asarray((shorter - sizes) / 2 / shorter)


_RULES = (
    _scaled_by(lambda sizes: sizes, "pixels of a {0:.0f} x {0:.0f} input"),
    _scaled_by(lambda sizes: np.ones_like(sizes[0]), "pixels scaled by {0:.3f}"),
    _scaled_by(lambda sizes: sizes.max(0), "pixels after scaling the longer side to {0:.0f}"),
    _scaled_by(lambda sizes: sizes.min(0), "pixels after scaling the shorter side to {0:.0f}"),
    _scaled_by(lambda sizes: sizes[0], "pixels after scaling the width to {0:.0f}"),
    _scaled_by(lambda sizes: sizes[1], "pixels after scaling the height to {0:.0f}"),
    _scaled_by(
        lambda sizes: sizes / sizes[::-1], "pixels scaled by {0:.3f}, width and height exchanged"
    ),
    _Rule(
        "pixels of the image padded to {0:.0f} x {0:.0f}",
        lambda pixels, sizes: pixels / sizes.max(0) + _padding(sizes),
        lambda number: (
            lambda sizes: CoordinateMap(number * sizes / sizes.max(0), number * _padding(sizes))
        ),
    ),
    _Rule(
        "pixels of the square in the image's middle, cropped to {0:.0f} x {0:.0f}",
        lambda pixels, sizes: pixels / sizes.min(0) + _cropping(sizes),
        lambda number: (
            lambda sizes: CoordinateMap(number * sizes / sizes.min(0), number * _cropping(sizes))
        ),
    ),
)
_LAST_RULES = (  # Near ``smart_resize``, which is commoner
    _scaled_by(
        lambda sizes: np.sqrt(sizes.prod(0)), "pixels after scaling to the area of {0:.0f} squared"
    ),
)


def _rules(pairs: _Pairs, rules: Sequence[_Rule]) -> Iterator[tuple[str, Frame]]:
    """Yield rules in words and their maps, with the number that answers tell."""
    for rule in rules:
        places = rule.place(pairs.pixels, pairs.sizes)
        told = places > 0.02
        if told.any():
            number = _middle(pairs.numbers[told] / places[told], (places * pairs.says)[told])
            if number > 0:
                yield rule.words.format(number), rule.frame(number)


# --- smart_resize with other bounds ---------------------------------------------------------------


def _smart_fits(arrays: RunArrays, order: Order, measured: Mapping[Size, Size]) -> list[ResizeFit]:
    """Return the best ``smart_resize`` of each factor."""
    fits = []
    for factor in _FACTORS:
        for least, most in _nearest_bounds(measured, factor):
            space = Space("smart_resize", None, least, most, False, factor)
            words = f"pixels after smart_resize (factor {factor}{_bound_words(least, most)})"
            fits.append(_fit(arrays, order, words, of_space(space), measured))
    return fits


def _nearest_bounds(measured: Mapping[Size, Size], factor: int) -> list[tuple[int, int]]:
    """Return the bounds whose sizes are nearest to those measured, a few that make others."""
    by_sizes: dict[tuple[Size, ...], tuple[int, int]] = {}
    for least, most in _likely_bounds(measured, factor):
        sizes = tuple(smart_resize(size, least, most, factor) for size in measured)
        by_sizes.setdefault(sizes, (least, most))
    nearest = sorted(by_sizes, key=lambda sizes: _distance(measured, sizes))
    return [by_sizes[sizes] for sizes in nearest[:_TRIED_BOUNDS]]


def _bound_words(least: int, most: int) -> str:
    words = f", at least about {least:,} pixels" if least > 1 else ""
    return words + (f", at most about {most:,} pixels" if most < _UNBOUNDED else "")


def _likely_bounds(measured: Mapping[Size, Size], factor: int) -> Iterator[tuple[int, int]]:
    """Yield bounds that some of the measured sizes may come of, usual ones first."""
    grown = []
    shrunk = []
    for (width, height), (across, down) in measured.items():
        ratio = np.sqrt(across * down / (width * height))
        if ratio > _RESIZED:
            grown.append(across * down)
        elif ratio < 1 / _RESIZED:
            shrunk.append(across * down)
    least = _around(grown, 0.85, 1.05) if grown else [1]
    most = _around(shrunk, 0.95, 1.2) if shrunk else [_UNBOUNDED]
    yield from (each for each in product(least, most) if each[0] <= each[1])


def _around(areas: Sequence[float], low: float, high: float) -> list[int]:
    """Return bounds near the areas that sizes have: usual ones, then others."""
    middle = float(np.median(areas))
    usual = [each for each in _USUAL_BOUNDS if low * middle <= each <= high * middle]
    return usual + [round(middle * share) for share in np.linspace(low, high, 21)]


def _distance(measured: Mapping[Size, Size], sizes: Sequence[Size]) -> float:
    """Return by how much the sides of sizes differ from those measured, as a mean of logarithms."""
    apart = np.log(np.array(sizes, float) / np.array(list(measured.values()), float))
    return float(np.abs(apart).mean())
