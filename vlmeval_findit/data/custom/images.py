"""The images of samples: every one is decoded, and every box brought to its stored pixels.

A camera stores pixels as its sensor lies and says in EXIF how to turn them.  Some annotation tools
show the image turned, some as it is stored; models are sent, and tables count, the stored pixels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from ...boxes.representation import Corners
from ...core.files import unsafe
from ...core.image_files import ImageFileError, Size, header, misfit, orientation, problem
from ...marks.region import PackedMask, RLEError, packed_mask
from ..samples import AnnotationError, Box, Sample, Samples, Units


class Drawn(Enum):
    """On which image boxes were drawn: as it is stored, or as a viewer turns it."""

    STORED = "stored"
    TURNED = "turned"


# --- turning --------------------------------------------------------------------------------------


class _Turn(NamedTuple):
    """How a viewer makes its image of the stored one: in this order."""

    transposes: bool = False
    mirrors: bool = False  # Left for right
    flips: bool = False  # Top for bottom


_TURNS = {
    1: _Turn(),
    2: _Turn(mirrors=True),
    3: _Turn(mirrors=True, flips=True),
    4: _Turn(flips=True),
    5: _Turn(transposes=True),
    6: _Turn(transposes=True, mirrors=True),
    7: _Turn(transposes=True, mirrors=True, flips=True),
    8: _Turn(transposes=True, flips=True),
}
"""By the EXIF orientation."""


def turned_size(size: Size, orientation: int) -> Size:
    """Return the size (w, h) at which a viewer shows a stored image of this size."""
    return (size[1], size[0]) if _TURNS[orientation].transposes else size


def to_stored(box: Corners, orientation: int, size: Size) -> Corners:
    """Bring a box on the turned image to the stored one; ``size`` is the stored (w, h).

    >>> to_stored((30, 0, 50, 10), 6, (100, 50))
    (0, 0, 10, 20)
    """
    turn = _TURNS[orientation]
    width, height = turned_size(size, orientation)
    x1, y1, x2, y2 = box  # corners that are swapped stay swapped
    if turn.mirrors:
        x1, x2 = width - x2, width - x1
    if turn.flips:
        y1, y2 = height - y2, height - y1
    return (y1, x1, y2, x2) if turn.transposes else (x1, y1, x2, y2)


def mask_to_stored(mask: NDArray[Any], orientation: int) -> NDArray[Any]:
    """Bring a mask (height, width) of the turned image to the stored one.

    >>> import numpy as np
    >>> mask_to_stored(np.array([[1, 2, 3], [4, 5, 6]]), 6).tolist()
    [[3, 6], [2, 5], [1, 4]]
    """
    turn = _TURNS[orientation]
    plain = mask[:: -1 if turn.flips else 1, :: -1 if turn.mirrors else 1]
    return plain.T if turn.transposes else plain


# --- images ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CheckedImage:
    """An image that can be used."""

    size: Size  # (width, height) as it is stored
    orientation: int  # EXIF's; 1: none
    stated: Size | None  # What annotations state, which may be the size of the turned image

    @property
    def drawn(self) -> Drawn | None:
        """On which image the boxes were drawn, where the stated size fits only one."""
        turned = turned_size(self.size, self.orientation)
        if self.stated is None or turned == self.size:
            return None
        return Drawn.STORED if self.stated == self.size else Drawn.TURNED


def checked_images(samples: Samples, folder: Path) -> dict[str, CheckedImage]:
    """Decode every image that a query shows and hold it against what is stated of it.

    Raises an AnnotationError if one is not below the folder, is damaged, or has another size.
    """
    names = list(dict.fromkeys(name for q in samples.queries for name in (*q.images, *q.support)))
    with ThreadPoolExecutor(4) as pool:
        looked = pool.map(lambda name: _look(name, samples.sizes.get(name), folder), names)
        found = dict(zip(names, looked, strict=True))
    whys = [why for why in found.values() if isinstance(why, str)]
    refuse(whys, len(names), "images")
    return {name: one for name, one in found.items() if isinstance(one, CheckedImage)}


def refuse(whys: Sequence[str], count: int, what: str) -> None:
    """Raise an AnnotationError if there is a reason: how many there are and the first of them."""
    if whys:
        raise AnnotationError(f"{len(whys)} of {count} {what} cannot be used; the first: {whys[0]}")


def _look(name: str, stated: Size | None, folder: Path) -> CheckedImage | str:
    why = unsafe(name)
    if why:
        return f"{name!r} {why}, so it does not lie below {folder}"
    path = folder / name
    try:
        found = header(path)
        exchanged = stated is not None and stated == found.size[::-1]
        # Before anything is decoded: reading the orientation of some files does.
        why = misfit(found, found.size if exchanged else stated)
        turn = 1 if why else orientation(path)
    except ImageFileError as error:
        return str(error)
    fits = stated in (found.size, turned_size(found.size, turn))
    why = why or problem(path, found.size if fits else stated)
    return f"{path} {why}" if why else CheckedImage(found.size, turn, stated)


# --- which image boxes are on ---------------------------------------------------------------------


def placed(
    samples: Samples, images: Mapping[str, CheckedImage], said: Drawn | None
) -> tuple[tuple[Sample, ...], tuple[str, ...]]:
    """Bring boxes to stored pixels, and say how.

    Args:
        samples: what was read.
        images: their images.
        said: on which images boxes were drawn, where a viewer turns them; the size that
            annotations state may say it too.

    Raises:
        AnnotationError: nobody says it, or the stated size says otherwise.
    """
    boxed = dict.fromkeys(q.images[box.frame] for q in samples.queries for box in q.boxes)
    turning = {name: images[name] for name in boxed if images[name].orientation != 1}
    drawn = _drawn(samples.source, turning, said)

    def bring(query: Sample, box: Box) -> Box:
        name = query.images[box.frame]
        return _placed(box, images[name], drawn.get(name), samples.units)

    queries = tuple(
        replace(query, boxes=tuple(bring(query, box) for box in query.boxes))
        for query in samples.queries
    )
    notes = []
    for way in Drawn:
        names = [name for name, one in turning.items() if one.drawn is way and drawn[name] is way]
        if names:
            notes.append(
                f"{len(names)} images with an EXIF orientation, the first: {names[0]}: boxes "
                f"count the {way.value} image, whose size the annotations state"
            )
    return queries, tuple(notes)


def _placed(box: Box, image: CheckedImage, drawn: Drawn | None, units: Units) -> Box:
    is_turned = drawn is Drawn.TURNED
    corners, mask = box.corners, box.mask
    if units is Units.FRACTIONS:
        w, h = turned_size(image.size, image.orientation) if is_turned else image.size
        x1, y1, x2, y2 = corners
        corners = (x1 * w, y1 * h, x2 * w, y2 * h)
    if is_turned:
        corners = to_stored(corners, image.orientation, image.size)
    if is_turned and mask is not None:
        try:
            pixels = PackedMask(mask.height, mask.width, mask.packed).runs.mask()
        except RLEError as error:
            raise AnnotationError(f"{box.where}: {error}") from None
        mask = packed_mask(mask_to_stored(pixels, image.orientation))
    return replace(box, corners=corners, mask=mask)


def _drawn(
    source: Path, turning: Mapping[str, CheckedImage], said: Drawn | None
) -> dict[str, Drawn]:
    found: dict[str, Drawn] = {}
    unknown: list[str] = []
    for name, one in turning.items():
        stated = one.drawn
        if said is not None and stated is not None and stated is not said:
            raise AnnotationError(
                f"{source}: --exif {said.value}, but the size stated for {name} is that of the "
                f"{stated.value} image"
            )
        way = stated or said
        if way is None:
            unknown.append(name)
        else:
            found[name] = way
    if unknown:
        first = unknown[0]
        raise AnnotationError(
            f"{source}: {len(unknown)} images have an EXIF orientation by which viewers turn "
            f"them, the first: {first} (orientation {turning[first].orientation}). Do boxes count "
            "the stored pixels, or those of the turned image? Say --exif stored or --exif turned"
        )
    return found
