"""Decode the images of samples, and convert boxes to the pixels of stored images.

A camera stores pixels as its sensor lies and states in EXIF how to turn them.  Some annotation
tools show the turned image, some the stored one; models are sent the stored image, and tables refer
to its pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from msgspec import structs
from numpy.typing import NDArray

from ...boxes import Corners
from ...core import unsafe_name
from ...marks import PackedMask, RLEError, packed_mask
from ...storage import (
    ImageFileError,
    Orientation,
    Size,
    content_of,
    header_problem,
    image_problem,
    is_transparent,
    orientation,
    read_image_header,
)
from ..annotated_samples import AnnotatedBox, AnnotationError, Sample, Samples, Units


class ExifPixels(Enum):
    """Which pixels boxes refer to when EXIF turns the image."""

    STORED = "stored"
    TURNED = "turned"


# --- turning --------------------------------------------------------------------------------------


# How a viewer turns a stored image, by the EXIF orientation (from 1), in this order: t transposes,
# m mirrors left for right, f flips top for bottom.
_TURNS = ("", "", "m", "mf", "f", "t", "tm", "tmf", "tf")


def turned_size(size: Size, orientation: int) -> Size:
    """Return the size (w, h) at which a viewer shows a stored image of this size."""
    return (size[1], size[0]) if "t" in _TURNS[orientation] else size


def to_stored(box: Corners, orientation: int, size: Size) -> Corners:
    """Convert a box of the turned image to the stored one; ``size`` is the stored (w, h).

    >>> to_stored((30, 0, 50, 10), 6, (100, 50))
    (0, 0, 10, 20)
    """
    turn = _TURNS[orientation]
    width, height = turned_size(size, orientation)
    x1, y1, x2, y2 = box  # corners that are swapped stay swapped
    if "m" in turn:
        x1, x2 = width - x2, width - x1
    if "f" in turn:
        y1, y2 = height - y2, height - y1
    return (y1, x1, y2, x2) if "t" in turn else (x1, y1, x2, y2)


def to_turned(box: Corners, orientation: int, size: Size) -> Corners:
    """Convert a box of the stored image to the turned one; ``size`` is the stored (w, h).

    >>> to_turned((0, 0, 10, 20), 6, (100, 50))
    (30, 0, 50, 10)
    """
    turn = _TURNS[orientation]
    width, height = turned_size(size, orientation)
    x1, y1, x2, y2 = box
    if "t" in turn:
        x1, y1, x2, y2 = y1, x1, y2, x2
    if "f" in turn:
        y1, y2 = height - y2, height - y1
    if "m" in turn:
        x1, x2 = width - x2, width - x1
    return (x1, y1, x2, y2)


def mask_to_stored(mask: NDArray[Any], orientation: int) -> NDArray[Any]:
    """Convert a mask (height, width) of the turned image to the stored one.

    >>> import numpy as np
    >>> mask_to_stored(np.array([[1, 2, 3], [4, 5, 6]]), 6).tolist()
    [[3, 6], [2, 5], [1, 4]]
    """
    turn = _TURNS[orientation]
    plain = mask[:: -1 if "f" in turn else 1, :: -1 if "m" in turn else 1]
    return plain.T if "t" in turn else plain


# --- images ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CheckedImage:
    """An image that can be used."""

    size: Size  # (width, height) as it is decoded
    orientation: int  # EXIF's; 1: none
    stated: Size | None  # By annotations; may be the size of the other image
    is_decoded: bool = False  # Whether it is decoded as viewers turn it: TIFF
    content: str = ""  # As :mod:`...storage.image_content` has it

    @property
    def pixels(self) -> ExifPixels | None:
        """Which pixels boxes refer to by the stated size, where it fits only one of both images.

        That it is the stored one is no proof: converters take the size of the file, while boxes
        were drawn on what a browser shows.
        """
        if self.stated is None or turned_size(self.size, self.orientation) == self.size:
            return None
        is_turned = (self.stated == self.size) is self.is_decoded
        return ExifPixels.TURNED if is_turned else ExifPixels.STORED

    def other_orientation(self, pixels: ExifPixels) -> int:
        """Return how to turn the decoded image so that boxes refer to it; 1: not at all."""
        if (pixels is ExifPixels.TURNED) is self.is_decoded:
            return 1
        return _BACK[self.orientation] if self.is_decoded else self.orientation


# The orientation that undoes an orientation: a quarter to the left undoes one to the right
_BACK = (0, 1, 2, 3, 4, 5, 8, 7, 6)


def checked_images(
    samples: Samples, folder: Path, skip: bool, progress: Callable[[str, int], None]
) -> tuple[Samples, dict[str, CheckedImage]]:
    """Decode every image of queries and compare it with its stated size.

    Returns the samples, with ``skip`` without the queries whose images cannot be used, and the
    images by name.

    Raises:
        AnnotationError: an image is not below the folder, is damaged, or has another size; with
            ``skip`` no query has a usable image.
    """
    names: dict[str, None] = {}
    for query in samples.queries:
        names.update(dict.fromkeys((*query.images, *query.support)))

    def check(name: str) -> CheckedImage | str:
        result = _check_image(name, samples.sizes.get(name), folder)
        progress("images", 1)
        return result

    with ThreadPoolExecutor(4) as pool:
        checked = list(pool.map(check, names))
    by_name = dict(zip(names, checked, strict=True))
    images = {name: image for name, image in by_name.items() if isinstance(image, CheckedImage)}
    for name, image in images.items():
        if is_transparent(image.content):
            samples.ledger.note("transparent images: models are shown them on white", name)
    problems = {name: why for name, why in by_name.items() if isinstance(why, str)}
    if problems and not any((folder / name).exists() for name in names):
        first = next(iter(names))
        several = f"none of the {len(names)} images is in {folder}; the first is {first}"
        which = several if len(names) > 1 else f"{folder} does not have the only image, {first}"
        raise AnnotationError(f"{which}. Name the folder of the images: --image-root DIR")
    if problems and (not skip or not images):
        missing = any(not (folder / name).exists() for name in problems)
        elsewhere = ". If they lie elsewhere, name their folder: --image-root DIR"
        flag = "--skip-unreadable-images" if images else ""
        listed = refusal(list(problems.values()), len(names), "images", flag)
        raise AnnotationError(f"{listed}{elsewhere}") if missing else listed
    return _drop_unusable(samples, problems), images


def _drop_unusable(samples: Samples, problems: Mapping[str, str]) -> Samples:
    """Leave out the queries with an image that cannot be used."""
    queries = []
    for query in samples.queries:
        bad = [problems[name] for name in (*query.images, *query.support) if name in problems]
        if bad:
            what = "queries of images that cannot be used: --skip-unreadable-images"
            samples.ledger.leave_out(what, bad[0])
        else:
            queries.append(query)
    for why in problems.values():
        what = "images that cannot be used: --skip-unreadable-images"
        samples.ledger.leave_out(what, why, unlike_file=True)
    return replace(samples, queries=tuple(queries))


# Problems that a refusal lists
_LISTED = 10


def refusal(problems: Sequence[str], count: int, what: str, flag: str) -> AnnotationError:
    """Make an AnnotationError that lists the first problems, and the flag that leaves them out.

    Where nothing would be left, ``flag`` is empty.
    """
    if len(problems) == 1:
        way = f"Correct it, or type {flag}" if flag else "Correct it"
        return AnnotationError(f"1 of {count} {what} cannot be used: {problems[0]}. {way}")
    lines = [f"{len(problems)} of {count} {what} cannot be used:"]
    lines += [f"  {why}" for why in problems[:_LISTED]]
    if len(problems) > _LISTED:
        lines.append(f"  … and {len(problems) - _LISTED} more")
    lines.append(f"Mend them, or say {flag}" if flag else "Mend them")
    return AnnotationError("\n".join(lines))


def _check_image(name: str, stated: Size | None, folder: Path) -> CheckedImage | str:
    """Return an image, or why it cannot be used."""
    why = unsafe_name(name)
    if why:
        return f"{name!r} {why}, so it does not lie below {folder}"
    path = folder / name
    try:
        info = read_image_header(path)
        exchanged = stated is not None and stated == info.size[::-1]
        # Before anything is decoded: reading the orientation of some files does.
        why = header_problem(info, info.size if exchanged else stated)
        turn = Orientation(1, False) if why else orientation(path)
    except ImageFileError as error:
        return str(error)
    fits = stated in (info.size, turned_size(info.size, turn.value))
    why = why or image_problem(path, info.size if fits else stated)
    if why:
        return f"{path} {why}"
    return CheckedImage(info.size, turn.value, stated, turn.is_decoded, content_of(path))


# --- pixels of boxes ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StoredQueries:
    """Queries whose boxes are in pixels of stored images."""

    queries: tuple[Sample, ...]
    # By image: how to turn it, as EXIF numbers it, into the image that its annotations refer to
    turned: Mapping[str, int]


def pixels_of_boxes(
    samples: Samples,
    images: Mapping[str, CheckedImage],
    exif: ExifPixels | None,
    trusts_sizes: bool = False,
) -> dict[str, ExifPixels]:
    """Return which pixels boxes refer to, by image with boxes that EXIF turns.

    Args:
        samples: what was read.
        images: their images.
        exif: what the user says; None: the turned image's where its size is stated, else it is
            asked.
        trusts_sizes: whether the stored image's size says that boxes refer to it, too.

    Raises:
        AnnotationError: nothing says which pixels they are.
    """
    if all(image.orientation == 1 for image in images.values()):
        # As nearly always
        return {}
    boxed: dict[str, None] = {}
    for query in samples.queries:
        boxed.update(dict.fromkeys(query.images[box.frame] for box in query.boxes))
    turned = [name for name in boxed if images[name].orientation != 1]
    pixels = {name: exif or images[name].pixels for name in turned}
    known = {
        name: known
        for name, known in pixels.items()
        if known and (exif or trusts_sizes or known is ExifPixels.TURNED)
    }
    unknown = [name for name in turned if name not in known]
    if unknown:
        raise AnnotationError(
            f"{samples.source}: {len(unknown)} images have an EXIF orientation by which viewers "
            f"turn them, the first: {unknown[0]} (orientation {images[unknown[0]].orientation}). "
            f"{_fits_of_both(samples, images, frozenset(unknown))}"
            "Do boxes refer to the stored image, or to the turned image? Type --exif stored or "
            "--exif turned"
        )
    return known


def annotated_sizes(
    images: Mapping[str, CheckedImage], pixels: Mapping[str, ExifPixels]
) -> dict[str, Size]:
    """Return (width, height) of every image as its annotations see it."""
    sizes = {}
    for name, image in images.items():
        turn = image.other_orientation(pixels[name]) if name in pixels else 1
        sizes[name] = turned_size(image.size, turn)
    return sizes


def to_stored_pixels(
    samples: Samples,
    images: Mapping[str, CheckedImage],
    exif: ExifPixels | None,
    trusts_sizes: bool = False,
) -> StoredQueries:
    """Convert boxes to pixels of stored images; the ledger notes turned images.

    Arguments and errors are those of :func:`pixels_of_boxes`.
    """
    pixels = pixels_of_boxes(samples, images, exif, trusts_sizes)
    if not pixels and samples.units is Units.PIXELS:
        # As nearly always: they are already.
        return StoredQueries(samples.queries, {})

    def converted(query: Sample, box: AnnotatedBox) -> AnnotatedBox:
        name = query.images[box.frame]
        known = pixels.get(name)
        turn = 1 if known is None else images[name].other_orientation(known)
        return _convert_box(box, images[name].size, turn, samples.units)

    for name, known in pixels.items():
        what = f"images with an EXIF orientation: boxes refer to the {known.value} image"
        samples.ledger.note(what, name)
    queries = []
    for query in samples.queries:
        boxes = tuple(converted(query, box) for box in query.boxes)
        queries.append(structs.replace(query, boxes=boxes))
    turned = {name: images[name].other_orientation(known) for name, known in pixels.items()}
    return StoredQueries(tuple(queries), turned)


def _fits_of_both(samples: Samples, images: Mapping[str, CheckedImage], unknown: Set[str]) -> str:
    """Say how many boxes lie in the stored and the turned images, where that differs."""
    if samples.units is not Units.PIXELS:
        return ""
    boxes = {
        box.where: (query.images[box.frame], box.corners)
        for query in samples.queries
        for box in query.boxes
        if query.images[box.frame] in unknown
    }
    counts = {}
    for pixels in ExifPixels:
        counts[pixels] = sum(
            _lies_in(
                corners, turned_size(images[name].size, images[name].other_orientation(pixels))
            )
            for name, corners in boxes.values()
        )
    if len(set(counts.values())) == 1:
        return ""
    stored, turned = counts[ExifPixels.STORED], counts[ExifPixels.TURNED]
    return f"Of {len(boxes)} boxes {stored} lie in the stored images, {turned} in the turned ones. "


def _lies_in(box: Corners, size: Size) -> bool:
    x1, y1, x2, y2 = box
    return min(x1, y1) >= -1 and x2 <= size[0] + 1 and y2 <= size[1] + 1


def _convert_box(box: AnnotatedBox, size: Size, turn: int, units: Units) -> AnnotatedBox:
    """Convert a box of an image that is turned to the decoded image of ``size`` (w, h)."""
    corners = box.corners
    mask = box.mask
    if units is not Units.PIXELS:
        w, h = turned_size(size, turn)
        x1, y1, x2, y2 = (number / units.scale for number in corners)
        corners = (x1 * w, y1 * h, x2 * w, y2 * h)
    corners = to_stored(corners, turn, size)
    if turn != 1 and mask is not None:
        try:
            inside = PackedMask(mask.height, mask.width, mask.packed).mask()
        except RLEError as error:
            raise AnnotationError(f"{box.where}: {error}") from None
        mask = packed_mask(mask_to_stored(inside, turn))
    return structs.replace(box, corners=corners, mask=mask)
