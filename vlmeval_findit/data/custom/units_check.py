"""Ask for the units of boxes where their numbers contradict them, whatever the format."""

from __future__ import annotations

from collections.abc import Mapping

from ...storage import Size
from ..annotated_samples import AnnotatedBox, AnnotationError, Samples, Units

# Rounding alone takes fractions so far above 1.
_ONE = 1.5
# A box within the first pixels of an image so much larger than them is no object.
_TIMES = 4
# So many boxes do not all lie in one corner of their images by chance.
_MANY = 10


def check_units(samples: Samples, sizes: Mapping[str, Size]) -> None:
    """Raise an AnnotationError where boxes in pixels look like fractions, percent or thousandths.

    What the user states is not questioned. ``sizes`` are (width, height) of every image in pixels.
    """
    if samples.units_stated or samples.units is not Units.PIXELS:
        return
    boxes: dict[str, tuple[AnnotatedBox, Size]] = {}
    for query in samples.queries:
        for box in query.boxes:
            boxes.setdefault(box.where, (box, sizes[query.images[box.frame]]))
    fractions = [box for box, size in boxes.values() if _lies_within(box, size, _ONE)]
    if fractions:
        _ask(samples, fractions, len(boxes), "within the first pixel of its image", "fractions")
    for units in (Units.PERCENT, Units.THOUSANDTHS):
        inside = [box for box, size in boxes.values() if _lies_within(box, size, units.scale)]
        if len(inside) == len(boxes) >= _MANY:
            where = f"within the first {units.scale} pixels of an image of more than twice that"
            _ask(samples, inside, len(boxes), where, units.value)


def _lies_within(box: AnnotatedBox, size: Size, most: float) -> bool:
    times = _TIMES if most == _ONE else 2
    return max(map(abs, box.corners)) <= most and min(size) >= times * most


def _ask(
    samples: Samples, suspects: list[AnnotatedBox], boxes: int, where: str, units: str
) -> None:
    first = f"the first: {suspects[0].where}, {suspects[0].corners}"
    if len(suspects) == boxes:
        raise AnnotationError(
            f"{samples.source}: each of the {boxes} boxes lies {where}, {first}. Are the numbers "
            f"{units} of the images, or pixels? Type --units {units} or --units pixels"
        )
    raise AnnotationError(
        f"{samples.source}: {len(suspects)} of {boxes} boxes lie {where}, {first}; the others do "
        f"not. If all numbers are {units} of the images, type --units {units}; if all are pixels, "
        "--units pixels; if two files were joined, import each alone"
    )
