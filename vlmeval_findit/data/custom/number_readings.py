"""What the numbers of boxes are: one look at all boxes of a file ranks the readings.

A reading says the units (pixels, fractions, percent, thousandths) and the form (corners or sides).
Where another reading explains all boxes and that of the format does not, or explains them far
better, the user is asked: what is wrong is easy to see in all boxes together, and in a single box
it is not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from ...boxes import BORDER_MARGIN, Corners, is_in_first_pixel
from ...storage import Size
from ..annotated_samples import AnnotatedBox, AnnotationError, BoxForm, Sample, Samples, Units

# By which part of its image a box may leave it, in units that are parts of images
_ROUNDED = 0.01
# Another reading is asked about where it explains so many more boxes, and so few are left.
_MORE_BOXES = 2
_SHARE_OF_BAD = 0.1
_LEFT = 0.25
# By chance, boxes by a reading reach no farther than so rarely: then it is not asked about.
_RARE = 1e-5
_SLIPS = 0.05  # How many boxes annotators take past the border
_SLIP = 0.05  # By which part of the image they do so, as a rule
# Another reading that explains such boxes is asked about unless slips are so much likelier.
_SLIPS_ARE_LIKELIER = 5.0
_NEVER = 1e-12  # A chance whose logarithm can be taken
# How much more likely boxes in no other place than there are, where all readings fit: boxes that
# reach nearly as far as they can, and boxes that reach half as far
_LIKELIER = ((0.85, 1e3), (0.5, 1e6))
# How far boxes may reach differently across and down
_BALANCE = 0.15
# So many boxes in the corner of an image are no chance, wherever they reach.
_MANY = 10

_Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read four numbers."""

    units: Units
    form: BoxForm

    def normalised(self, numbers: _Numbers, sizes: _Numbers) -> _Numbers:
        """Return rows of x1, y1, x2 and y2 as parts of the images, of columns of numbers.

        ``sizes`` are columns (width, height).
        """
        # NumPy takes several times as long along columns of two.
        corners = numbers.T.copy()
        if self.form is BoxForm.SIDES:
            corners[2:] += corners[:2]
        scale = np.tile(sizes.T, (2, 1)) if self.units is Units.PIXELS else self.units.scale
        return corners / scale

    def flags(self, other: Reading) -> list[str]:
        """Return the flags that say this reading and not the other."""
        units = [f"--units {self.units.value}"] if self.units is not other.units else []
        form = [f"--box {self.form.value}"] if self.form is not other.form else []
        return units + form

    def __str__(self) -> str:
        """Say it in words.

        >>> str(Reading(Units.PIXELS, BoxForm.SIDES))
        'pixels, [x, y, width, height]'
        """
        return f"{self.units.value}, {_FORMS[self.form]}"


_FORMS = {BoxForm.CORNERS: "[x1, y1, x2, y2]", BoxForm.SIDES: "[x, y, width, height]"}


@dataclass(frozen=True, slots=True)
class _Fit:
    """How a reading fits all boxes."""

    reading: Reading
    usable: NDArray[np.bool_]  # Boxes with an area, in their images
    flat: NDArray[np.bool_]  # Boxes with a side of 0
    past: _Numbers  # By which part of its image each box leaves it
    reach: tuple[float, float]  # Across and down, of usable boxes; 1: to the border

    @property
    def bad(self) -> int:
        return int((~self.usable).sum())


@dataclass(frozen=True, slots=True)
class DistinctBoxes:
    """The boxes of queries, each once: two queries may share a box."""

    boxes: list[AnnotatedBox]
    images: list[str]  # In which each lies
    corners: _Numbers  # (N, 4): x1, y1, x2, y2

    def sizes(self, of_images: Mapping[str, Size]) -> _Numbers:
        """Return (N, 2): width and height of the image of each."""
        return array_of([of_images[image] for image in self.images], 2)


def distinct_boxes(queries: Iterable[Sample]) -> DistinctBoxes:
    """Return the boxes of queries, each once."""
    boxes: dict[str, AnnotatedBox] = {}
    images = []
    for query in queries:
        for box in query.boxes:
            if box.where not in boxes:
                boxes[box.where] = box
                images.append(query.images[box.frame])
    numbers = array_of([box.corners for box in boxes.values()], 4)
    return DistinctBoxes(list(boxes.values()), images, numbers)


def check_units(
    samples: Samples, sizes: Mapping[str, Size], distinct: DistinctBoxes | None = None
) -> None:
    """Raise an AnnotationError where the numbers of boxes have another meaning than is stated.

    What the user states is not questioned. ``sizes`` are (width, height) of every image in pixels;
    ``distinct`` are the boxes, if they are known.
    """
    if samples.units_stated and samples.form is None:
        return
    distinct = distinct or distinct_boxes(samples.queries)
    if not distinct.boxes:
        return
    declared = Reading(samples.units, samples.form or BoxForm.CORNERS)
    numbers = distinct.corners.copy()
    if declared.form is BoxForm.SIDES:
        numbers[:, 2:] -= numbers[:, :2]
    of_images = distinct.sizes(sizes)
    forms = [declared.form] if samples.form is None else [declared.form, *_other(declared.form)]
    units = [samples.units]
    if not samples.units_stated:
        units += [unit for unit in Units if unit is not samples.units]
    fits = [_fit(Reading(unit, form), numbers, of_images) for form in forms for unit in units]
    places = [box.where for box in distinct.boxes]
    if not samples.units_stated and samples.units is Units.PIXELS:
        _ask_for_fractions(samples, fits, numbers, of_images, places)
    _ask_for_better(samples, fits, numbers, of_images, places)


def _other(form: BoxForm) -> list[BoxForm]:
    return [other for other in BoxForm if other is not form]


def _fit(reading: Reading, numbers: _Numbers, sizes: _Numbers) -> _Fit:
    parts = reading.normalised(numbers, sizes)
    margin = BORDER_MARGIN / sizes.T if reading.units is Units.PIXELS else _ROUNDED
    low, high = parts[:2], parts[2:]
    fits = (low >= -margin) & (high <= 1 + margin) & (high > low)
    usable: NDArray[np.bool_] = np.all(fits, axis=0)
    flat: NDArray[np.bool_] = np.any(high == low, axis=0)
    past: _Numbers = np.maximum(high - 1, -low).max(axis=0, initial=0.0)
    reach = high[:, usable].max(axis=1, initial=0.0)
    return _Fit(reading, usable, flat, past, (float(reach[0]), float(reach[1])))


def array_of(rows: Iterable[Sequence[float]], width: int) -> _Numbers:
    """Return rows of so many numbers as an array, in a third of NumPy's time."""
    return np.fromiter(chain.from_iterable(rows), float).reshape(-1, width)


def forms_that_fit(boxes: Sequence[Corners], sizes: Sequence[Size], units: Units) -> list[BoxForm]:
    """Return the forms in which every box has an area and lies in its image.

    ``boxes`` are four numbers each, ``sizes`` (width, height) of their images in pixels.
    """
    numbers = np.array(boxes, float)
    of_images = np.array(sizes, float)
    return [form for form in BoxForm if not _fit(Reading(units, form), numbers, of_images).bad]


# --- fractions ------------------------------------------------------------------------------------


def _ask_for_fractions(
    samples: Samples,
    fits: Sequence[_Fit],
    numbers: _Numbers,
    sizes: _Numbers,
    places: Sequence[str],
) -> None:
    """Ask where a box lies within the first pixel; one without an area is no sign."""
    in_pixel = is_in_first_pixel(numbers.T, sizes.T)
    is_box = np.zeros(len(numbers), bool)
    for fit in fits:
        if fit.reading.units in (Units.FRACTIONS, Units.PIXELS):
            is_box |= fit.usable
    suspects = np.flatnonzero(in_pixel & is_box)
    if len(suspects) == 0:
        return
    count = int(is_box.sum())
    first = _first(samples, places, numbers, int(suspects[0]))
    where = "within the first pixel of its image"
    if len(suspects) == count:
        raise AnnotationError(
            f"{samples.source}: each of the {count} boxes lies {where}, {first}. Are the numbers "
            "fractions of the images, or pixels? Type --units fractions or --units pixels"
        )
    raise AnnotationError(
        f"{samples.source}: {len(suspects)} of {count} boxes lie {where}, {first}; the others do "
        "not. If all numbers are fractions of the images, type --units fractions; if all are "
        "pixels, --units pixels; if two files were joined, import each alone"
    )


def _first(samples: Samples, places: Sequence[str], numbers: _Numbers, at: int) -> str:
    first = tuple(round(number, 9) for number in numbers[at].tolist())
    return f"the first: {places[at]}, {first}"


# --- all readings ---------------------------------------------------------------------------------


def _ask_for_better(
    samples: Samples,
    fits: Sequence[_Fit],
    numbers: _Numbers,
    sizes: _Numbers,
    places: Sequence[str],
) -> None:
    """Ask where another reading explains many boxes that the stated one does not, or far better."""
    declared, *others = fits
    better = [
        fit
        for fit in others
        if _explains_all(declared, fit, numbers) or _explains_more(declared, fit)
    ]
    if not better:
        better = [fit for fit in others if _is_likelier(declared, fit, numbers, sizes)]
    if not better:
        return
    least = min(fit.bad for fit in better)
    best = [fit for fit in better if fit.bad == least]
    nearest = min(len(fit.reading.flags(declared.reading)) for fit in best)
    best = [fit for fit in best if len(fit.reading.flags(declared.reading)) == nearest]
    what = _what_contradicts(declared, best, numbers, sizes, samples, places)
    alone = ". If that box alone is wrong, correct it" if declared.bad == 1 else ""
    raise AnnotationError(
        f"{samples.source}: {what}. Which are they? Type {_typed(declared, best)}{alone}"
    )


def _typed(declared: _Fit, best: Sequence[_Fit]) -> str:
    """Return the flags of each reading that may be meant, that of the format as the last."""
    flags = [" ".join(fit.reading.flags(declared.reading)) for fit in best]
    of_format = dict.fromkeys(flag for fit in best for flag in declared.reading.flags(fit.reading))
    return " or ".join((*flags, " ".join(of_format)))


def _what_contradicts(
    declared: _Fit,
    best: Sequence[_Fit],
    numbers: _Numbers,
    sizes: _Numbers,
    samples: Samples,
    places: Sequence[str],
) -> str:
    here = _in_words(declared.reading, best[0].reading)
    there = " or ".join(_in_words(fit.reading, declared.reading) for fit in best)
    count = len(numbers)
    first = _first(samples, places, numbers, 0)
    if declared.bad:
        can = count - best[0].bad if best[0].bad else "all"
        explained = ~declared.usable & best[0].usable
        shown = explained if explained.any() else ~declared.usable
        at = int(np.flatnonzero(shown)[0])
        first = _first(samples, places, numbers, at)
        why = _why_unusable(declared.reading, numbers[at], sizes[at])
        return (
            f"{declared.bad} of {count} boxes cannot be used as {here}, {first}, {why}; as "
            f"{there}, {can} can"
        )
    if declared.reading.form is best[0].reading.form:
        return (
            f"as {here}, all {count} boxes lie in a corner of their images, {first}; as {there}, "
            "they lie all over them"
        )
    return (
        f"as {here}, all {count} boxes are larger than they are far from the upper left, {first}; "
        f"as {there}, they may lie anywhere"
    )


def _why_unusable(reading: Reading, box: _Numbers, size: _Numbers) -> str:
    """Say what is wrong with a box that cannot be used by a reading."""
    x1, y1, x2, y2 = reading.normalised(box[None], size[None])[:, 0].tolist()
    is_corners = reading.form is BoxForm.CORNERS
    if x2 <= x1:
        return "whose x2 is not above its x1" if is_corners else "whose width is not above 0"
    if y2 <= y1:
        return "whose y2 is not above its y1" if is_corners else "whose height is not above 0"
    width, height = size.tolist()
    return f"which leaves its image of {width:g}x{height:g}"


def _in_words(reading: Reading, other: Reading) -> str:
    """Return in what a reading differs from another."""
    if reading.form is other.form:
        return reading.units.value
    return _FORMS[reading.form] if reading.units is other.units else str(reading)


def _explains_all(declared: _Fit, other: _Fit, numbers: _Numbers) -> bool:
    """Return whether all boxes with an area are usable by another reading only, and likely so."""
    if declared.usable.all():
        return False
    has_area = ~declared.flat
    # A box that begins before the border does so in all units.
    begins_outside = (numbers[:, :2] < 0).any(axis=1)
    explained = declared.usable | (other.usable & ~begins_outside)
    is_all = (other.usable & explained)[has_area].all()
    if declared.usable[has_area].all() or not is_all:
        return False
    # Several expressions of one object say it once.
    said = np.column_stack((numbers, declared.past))[has_area]
    _, first = np.unique(said, axis=0, return_index=True)
    across, down = other.reach
    by_other = len(first) * math.log(min(1.0, max(across * down, _NEVER)))
    past = declared.past[has_area][first]
    slips = past[~declared.usable[has_area][first]]
    by_slips = _log_chance_of(slips, len(first)) - math.log(_SLIPS_ARE_LIKELIER)
    return by_other >= max(math.log(_RARE), by_slips)


def _log_chance_of(slips: _Numbers, count: int) -> float:
    """Return how likely annotators take so many of their boxes past the border, and so far.

    ``slips`` are the parts of their images by which boxes leave them, of ``count`` boxes.
    """
    bad = len(slips)
    rate = min(_SLIPS, bad / count)
    ways = math.lgamma(count + 1) - math.lgamma(bad + 1) - math.lgamma(count - bad + 1)
    as_many = ways + bad * math.log(rate) + (count - bad) * math.log(1 - rate)
    return as_many - float(slips.sum()) / _SLIP


def _explains_more(declared: _Fit, other: _Fit) -> bool:
    """Return whether a reading makes boxes usable that are not by the stated one."""
    explained = int((other.usable & ~declared.usable).sum())
    count = len(declared.usable)
    is_of_units = other.reading.units is declared.reading.units
    reaches_far = is_of_units or min(other.reach) >= _LIKELIER[0][0]
    return (
        explained >= _MORE_BOXES
        and declared.bad >= _SHARE_OF_BAD * count
        and other.bad <= _LEFT * declared.bad
        and reaches_far
    )


def _is_likelier(declared: _Fit, other: _Fit, numbers: _Numbers, sizes: _Numbers) -> bool:
    """Return whether boxes that fit both readings would hardly lie so by the stated one."""
    if other.bad > declared.bad or not other.usable.any():
        return False
    if other.reading.form is not declared.reading.form:
        return other.reading.units is declared.reading.units and _other_form_is_likelier(
            declared, other, numbers, sizes
        )
    # Fractions: see _ask_for_fractions. Only pixels leave most of a large image empty.
    if declared.reading.units is not Units.PIXELS or other.reading.units is Units.FRACTIONS:
        return False
    across, down = other.reach
    if max(across, down) > 1 + _ROUNDED:
        return False
    # As pixels, the boxes lie in a part of their images; each of them would by chance.
    of_image = np.prod(np.minimum(sizes / other.reading.units.scale, 1e9), axis=1)
    in_corner = (sizes.min(axis=1) >= 2 * other.reading.units.scale).all()
    if of_image.max() <= 1 and not in_corner:
        return False
    of_one = math.log(float(np.median(of_image)))
    distinct = np.unique(numbers[other.usable], axis=0)
    count = len(distinct)
    if in_corner and count >= _MANY:
        return True
    return abs(across - down) <= _BALANCE and any(
        min(across, down) >= reach and count * of_one >= math.log(likelier)
        for reach, likelier in _LIKELIER
    )


def _other_form_is_likelier(
    declared: _Fit, other: _Fit, numbers: _Numbers, sizes: _Numbers
) -> bool:
    """Return whether boxes that fit both forms would hardly do so by the stated one."""
    if declared.bad or other.bad:
        return False
    # Several expressions of one object say it once.
    distinct = np.unique(np.hstack((numbers, sizes)), axis=0)
    numbers = distinct[:, :4]
    sizes = distinct[:, 4:]
    in_pixels = declared.reading.units is Units.PIXELS
    whole = sizes if in_pixels else np.full_like(sizes, declared.reading.units.scale)
    sides = numbers[:, 2:]
    # A box of these sides, anywhere in its image, is seldom larger than it is far from its corner.
    chance = np.minimum(1.0, sides / np.maximum(whole - sides, 1e-9))
    as_sides = float(np.log(np.maximum(chance, 1e-9)).sum())
    likelier = math.log(_LIKELIER[0][1])
    if declared.reading.form is BoxForm.SIDES:
        return as_sides < -likelier
    # Corners, anywhere, have their middle in the upper left quarter once in four times.
    return as_sides > len(numbers) * math.log(0.25) + likelier
