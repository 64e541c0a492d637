"""Arguments of users: images, their sizes and ground truth, in many types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from numbers import Real
from os import PathLike
from typing import TYPE_CHECKING, Any

from ..benchmarks.findit import FindItVariant
from ..boxes import Corners, MatchRule, is_in_first_pixel, leaves_image
from ..boxes import Ignored as Ignored
from ..boxes import Truth as Truth
from ..core import counted, quoted_value
from ..storage import as_rgb

if TYPE_CHECKING:
    from PIL import Image

ImageLike = Any
"""The path of a file, a PIL image, or an array (height, width, 3 or 4) of 8 bits."""


def as_list(images: ImageLike | Sequence[ImageLike]) -> list[ImageLike]:
    """Return an image or several as a list; an array with four dimensions is several."""
    if isinstance(images, (list, tuple)) or getattr(images, "ndim", 0) == 4:
        return list(images)
    return [images]


def is_file(image: ImageLike) -> bool:
    """Tell whether an image is the path of a file."""
    return isinstance(image, (str, PathLike))


def image_in_memory(image: ImageLike) -> Image.Image:
    """Return a PIL image or an array as an RGB image, on white where it is transparent.

    Raises:
        ValueError: it is neither; the message names its type.
    """
    import numpy as np
    from PIL import Image

    if isinstance(image, Image.Image):
        return as_rgb(image)
    if not hasattr(image, "__array__"):
        raise ValueError(
            f"{type(image).__name__} is not an image: use a path, a PIL image or an array"
        )
    values = np.asarray(image)
    if values.dtype != np.uint8 or values.shape[2:] not in ((), (3,), (4,)) or values.ndim < 2:
        raise ValueError(
            f"an array {values.shape} of {values.dtype} is not an image: it should be "
            "(height, width, 3) of uint8. A tensor (3, height, width) from 0 to 1: "
            "(255 * tensor).byte().permute(1, 2, 0)"
        )
    return as_rgb(Image.fromarray(values))


# --- sizes ----------------------------------------------------------------------------------------

Size = tuple[int, int]
"""(width, height) in pixels of the original image."""

Sizes = Size | Sequence[Size]
"""The size of all images, or of each reply; arrays and tensors are accepted."""


def sizes_of(sizes: Sizes, count: int) -> list[Size]:
    """Return the size of each of ``count`` replies.

    >>> sizes_of((640, 480), 2), sizes_of([(640, 480), (32, 32)], 2)
    ([(640, 480), (640, 480)], [(640, 480), (32, 32)])

    Raises:
        ValueError: the number of sizes is wrong, or a size is not in whole pixels.
    """
    values = [plain(size) for size in plain(sizes)]
    if len(values) == 2 and all(isinstance(edge, Real) for edge in values):
        return [_size(tuple(values))] * count
    check_count(values, count, "sizes")
    keys = [tuple(v) if isinstance(v, (list, tuple)) else (v,) for v in values]
    try:
        known = {key: _size(tuple(map(plain, key))) for key in {*keys}}
    except TypeError:  # of what cannot be a key
        raise ValueError(f"size {quoted_value(values[0], 80)}: {_SHOULD_BE}") from None
    return [known[key] for key in keys]


_SHOULD_BE = "should be (width, height) in whole pixels"


def _size(edges: tuple[Any, ...]) -> Size:
    numbers = [float(edge) for edge in edges if isinstance(edge, Real)]
    if len(edges) != 2 or [n for n in numbers if n >= 1 and n.is_integer()] != list(edges):
        raise ValueError(f"size {edges}: {_SHOULD_BE}")
    return int(edges[0]), int(edges[1])


def plain(value: Any) -> Any:
    """Turn an array, a tensor or a number of either into lists and numbers of Python."""
    return value.tolist() if hasattr(value, "tolist") else value


def check_count(values: Sequence[object], count: int, what: str) -> None:
    """Raise ValueError unless there is a value for every reply."""
    if len(values) != count:
        raise ValueError(
            f"{len(values)} {what} for {counted(count, 'reply', 'replies')}: "
            f"there should be {count}"
        )


# --- truths ---------------------------------------------------------------------------------------

BoxesLike = Any
"""A list of (x1, y1, x2, y2) in pixels of the original image, or an array (N, 4) of them.

Not narrower: arrays of every library are accepted.
"""


def truth(
    boxes: BoxesLike,
    labels: Iterable[str] = (),
    frames: Iterable[int] = (),
    *,
    ignored: Iterable[Ignored | Corners] = (),
) -> Truth:
    """Make the ground truth of a query.

    >>> truth([[60, 10, 90, 40], [10, 10, 40, 40]], frames=[2, 0]).boxes
    ((10, 10, 40, 40), (60, 10, 90, 40))

    Args:
        boxes: (N, 4) corners (x1, y1, x2, y2) in pixels of the original image; empty: there is
            nothing to find.
        labels: (N,) labels, if the query has several.
        frames: (N,) frames counted from 0, if the query has several; not stated: frame 0.
        ignored: objects that count neither as hits nor as misses, matched last: boxes, or
            :class:`.Ignored`, which has a frame, a label, and whether it is a crowd (an answer
            need only lie inside).

    Returns:
        The boxes in the order of their frames.

    Raises:
        ValueError: a box is invalid, or the number of labels or frames is not N.
    """
    corners = _corners(boxes)
    names = tuple(labels)
    if isinstance(labels, str) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"labels should be a list of texts, not {quoted_value(labels, 80)}")
    places = tuple(frames) or (0,) * len(corners)
    for what, values in (("labels", names or corners), ("frames", places)):
        if len(values) != len(corners):
            raise ValueError(f"{len(values)} {what} for {counted(len(corners), 'box')}")
    order = sorted(range(len(corners)), key=places.__getitem__)
    return Truth(
        tuple(corners[at] for at in order),
        tuple(places[at] for at in order),
        tuple(names[at] for at in order) if names else (),
        ignored=tuple(map(_to_ignore, ignored)),
    )


def _to_ignore(value: Ignored | Corners) -> Ignored:
    ignored = value if isinstance(value, Ignored) else Ignored(value)
    return ignored._replace(box=_corners([ignored.box])[0])


def predicted_boxes(boxes: BoxesLike) -> tuple[Corners, ...]:
    """Return boxes that a model answered: their corners may stand in any order.

    >>> predicted_boxes([[18, 96, 67, 67]])
    ((18, 96, 67, 67),)

    Args:
        boxes: (M, 4) finite numbers in pixels of the original image.

    Raises:
        ValueError: a box is not four finite numbers.
    """
    rows = plain(boxes)
    try:
        corners = tuple([tuple(plain(row)) for row in rows])
        for x1, y1, x2, y2 in corners:
            if not all(-inf < number < inf for number in (x1, y1, x2, y2)):
                raise ValueError
    except (TypeError, ValueError):
        raise ValueError(
            f"boxes should be [[x1, y1, x2, y2], …] in pixels, not {quoted_value(rows, 80)}"
        ) from None
    return corners


def truths_of(
    values: Sequence[Truth | BoxesLike],
    variant: FindItVariant,
    sizes: Sequence[Size],
    rows: Sequence[int] | None = None,
) -> list[Truth]:
    """Return the truths of queries of a variant, with the sizes of their images.

    ``rows`` are the numbers of the queries, if they are part of a batch.

    Raises:
        ValueError: a box is invalid or not in its image, or labels or frames do not fit the
            variant; the message names the query.
    """
    truths: list[Truth] = []
    last: object = None
    last_size: Size | None = None
    for at, (value, size) in enumerate(zip(values, sizes, strict=True)):
        # In training the replies to a prompt share its truth: it is checked once.
        if truths and value is last and size == last_size:
            truths.append(truths[-1])
            continue
        try:
            truths.append(checked_truth(value, variant, size))
        except ValueError as error:
            raise ValueError(f"truth {rows[at] if rows else at}: {error}") from None
        last = value
        last_size = size
    return truths


def checked_truth(value: Truth | BoxesLike, variant: FindItVariant, size: Size) -> Truth:
    """Return the truth of a query of a variant about an image of a size.

    Raises:
        ValueError: a box is invalid or not in its image, or labels or frames do not fit.
    """
    true = value if isinstance(value, Truth) else truth(value)
    if true.boxes and variant.frames > 1 and not isinstance(value, Truth):
        raise ValueError("it has no frames: say truth(boxes, frames=[0, 2])")
    check_in_image(true, size)
    flat = [box for box in true.boxes if box[0] == box[2] or box[1] == box[3]]
    if flat and variant.match_rule is MatchRule.BOX_OVERLAP:
        raise ValueError(f"the box {[*flat[0]]} has no area, so no answer can hit it")
    if true.boxes and bool(true.labels) != variant.multilabel:
        has = "has labels" if true.labels else "has no labels"
        raise ValueError(f"it {has}, but multilabel={variant.multilabel}")
    frames = {*true.frames, *(ignored.frame for ignored in true.ignored)}
    if not frames <= {*range(variant.frames)}:
        raise ValueError(f"it is in frames {frames}, but frames={variant.frames}")
    for ignored in true.ignored:
        if variant.multilabel is not bool(ignored.label):
            has = "has a label" if ignored.label else "has no label"
            raise ValueError(f"an ignored box {has}, but multilabel={variant.multilabel}")
    return true


def check_in_image(true: Truth, size: Size) -> None:
    """Raise ValueError where a box of a truth is not in its image; the message says what may be.

    >>> check_in_image(truth([[10, 10, 1900, 400]]), (480, 640))
    Traceback (most recent call last):
    ValueError: the box [10, 10, 1900, 400] leaves its image, which is 480 wide and 640 high. \
Boxes are in pixels of the original image: was it resized?
    >>> check_in_image(truth([[10, 10, 600, 400]]), (480, 640))
    Traceback (most recent call last):
    ValueError: the box [10, 10, 600, 400] leaves its image, which is 480 wide and 640 high. All \
boxes lie in an image of 640 x 480: is size (width, height)?
    """
    boxes = [*true.boxes, *(ignored.box for ignored in true.ignored)]
    outside = next((box for box in boxes if leaves_image(box, size)), None)
    if outside is not None:
        width, height = size
        raise ValueError(
            f"the box {[*outside]} leaves its image, which is {width} wide and {height} high"
            f"{_why_outside(boxes, size)}"
        )
    has_area = any(x1 < x2 and y1 < y2 for x1, y1, x2, y2 in true.boxes)
    if has_area and all(is_in_first_pixel(box, size) for box in true.boxes):
        raise ValueError(
            f"the box {[*true.boxes[0]]} lies within the first pixel of its image. Are these "
            "fractions? Multiply them by width and height: boxes are in pixels"
        )


def _why_outside(boxes: Sequence[Corners], size: Size) -> str:
    """Say which slip it may be: the likeliest that would put all boxes into their image."""
    width, height = size
    if not any(leaves_image(box, (height, width)) for box in boxes):
        return f". All boxes lie in an image of {height} x {width}: is size (width, height)?"
    reach = max(max(x2 / width, y2 / height) for _, _, x2, y2 in boxes)
    in_thousand = not any(leaves_image(box, (_THOUSAND, _THOUSAND)) for box in boxes)
    if in_thousand and reach > _BY_FAR:
        return (
            ". Are these thousandths? Multiply x by width / 1000, and y by height / 1000: boxes "
            "are in pixels of the original image"
        )
    return ". Boxes are in pixels of the original image: was it resized?"


_BY_FAR = 1.05  # Of a side: a box that is cut off a little too late reaches less far

_THOUSAND = 1000  # Models are often taught so: a slip of many data sets


def _corners(boxes: BoxesLike) -> tuple[Corners, ...]:
    rows = plain(boxes)
    try:
        corners = tuple([tuple(plain(row)) for row in rows])
        for x1, y1, x2, y2 in corners:
            if not (-inf < x1 <= x2 < inf and -inf < y1 <= y2 < inf):
                raise ValueError
    except (TypeError, ValueError):
        raise ValueError(
            f"boxes should be [[x1, y1, x2, y2], …] in pixels with x1 <= x2 and y1 <= y2, "
            f"not {quoted_value(rows, 80)}"
        ) from None
    return corners
