"""What people give: images, their sizes and what is right, of whatever types they have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from numbers import Real
from os import PathLike
from typing import TYPE_CHECKING, Any

from ..benchmarks.findit.variant import Variant
from ..boxes.records import Ignored as Ignored
from ..boxes.records import Truth as Truth
from ..boxes.representation import Corners
from ..core.image_files import rgb

if TYPE_CHECKING:
    from PIL import Image

Picture = Any
"""The path of a file, a PIL image, or an array (height, width, 3) of 8 bits."""


def several(pictures: Picture | Sequence[Picture]) -> list[Picture]:
    """Return one image or many as a list; an array with four dimensions is many."""
    if isinstance(pictures, (list, tuple)) or getattr(pictures, "ndim", 0) == 4:
        return list(pictures)
    return [pictures]


def is_file(picture: Picture) -> bool:
    """Tell whether an image is the path of a file."""
    return isinstance(picture, (str, PathLike))


def in_memory(picture: Picture) -> Image.Image:
    """Return an image that is no file, as RGB.

    Raises:
        ValueError: it is neither an image nor an array of one; the message says what it is.
    """
    import numpy as np
    from PIL import Image

    if isinstance(picture, Image.Image):
        return rgb(picture)
    if not hasattr(picture, "__array__"):
        raise ValueError(
            f"{type(picture).__name__} is no picture: give a path, a PIL image or an array"
        )
    values = np.asarray(picture)
    if values.dtype != np.uint8 or values.shape[2:] not in ((), (3,), (4,)) or values.ndim < 2:
        raise ValueError(
            f"an array {values.shape} of {values.dtype} is no picture: it should be "
            "(height, width, 3) of uint8. A tensor (3, height, width) from 0 to 1: "
            "(255 * tensor).byte().permute(1, 2, 0)"
        )
    return rgb(Image.fromarray(values))


# --- sizes ----------------------------------------------------------------------------------------

Size = tuple[int, int]
"""(width, height) in pixels of the original picture."""

Sizes = Size | Sequence[Size]
"""The size of all pictures, or one a reply; arrays and tensors are taken, too."""


def sizes_of(sizes: Sizes, count: int) -> list[Size]:
    """Return one size a reply.

    >>> sizes_of((640, 480), 2), sizes_of([(640, 480), (32, 32)], 2)
    ([(640, 480), (640, 480)], [(640, 480), (32, 32)])

    Raises:
        ValueError: there is not one a reply, or one is none.
    """
    given = [plain(one) for one in plain(sizes)]
    if len(given) == 2 and all(isinstance(edge, Real) for edge in given):
        return [_size(tuple(given))] * count
    check_count(given, count, "sizes")
    keys = [tuple(map(plain, one)) if isinstance(one, Sequence) else (one,) for one in given]
    known = {key: _size(key) for key in {*keys}}
    return [known[key] for key in keys]


def _size(edges: tuple[Any, ...]) -> Size:
    """Return one size; whole numbers may be of any type."""
    if len(edges) != 2 or not all(
        isinstance(edge, Real) and float(edge) >= 1 and float(edge).is_integer() for edge in edges
    ):
        raise ValueError(f"size {edges}: should be (width, height) in whole pixels")
    return int(edges[0]), int(edges[1])


def plain(value: Any) -> Any:
    """Turn an array, a tensor or a number of one into lists and numbers of Python."""
    return value.tolist() if hasattr(value, "tolist") else value


def check_count(given: Sequence[object], count: int, what: str) -> None:
    """Raise ValueError unless there is one a reply."""
    if len(given) != count:
        raise ValueError(f"{len(given)} {what} of {count} replies: one a reply")


# --- truths ---------------------------------------------------------------------------------------

Boxes = Any
"""A list of (x1, y1, x2, y2) in pixels of the original picture, or an array (N, 4) of them.

Not narrower, because arrays of every library are taken.
"""


def truth(
    boxes: Boxes,
    labels: Iterable[str] = (),
    frames: Iterable[int] = (),
    *,
    ignored: Iterable[Ignored | Corners] = (),
) -> Truth:
    """Make the ground truth of one query.

    >>> truth([[60, 10, 90, 40], [10, 10, 40, 40]], frames=[2, 0]).boxes
    ((10, 10, 40, 40), (60, 10, 90, 40))

    Args:
        boxes: (x1, y1, x2, y2) each, in pixels of the original picture; none: nothing to find.
        labels: one a box, where boxes have labels of their own.
        frames: one a box, counted from 0, where the query has several frames.
        ignored: objects that count neither way, matched last: boxes, or :class:`.Ignored`, which
            says a frame, a label, and whether it is a crowd (in which an answer need only lie).

    Returns:
        The boxes in the order of their frames.

    Raises:
        ValueError: a box is none, or there is not one label or frame a box.
    """
    corners = _corners(boxes)
    names, places = tuple(labels), tuple(frames) or (0,) * len(corners)
    for what, given in (("labels", names or corners), ("frames", places)):
        if len(given) != len(corners):
            raise ValueError(f"{len(given)} {what} of {len(corners)} boxes: one a box")
    order = sorted(range(len(corners)), key=places.__getitem__)
    return Truth(
        tuple(corners[at] for at in order),
        tuple(places[at] for at in order),
        tuple(names[at] for at in order) if names else (),
        ignored=tuple(map(_to_ignore, ignored)),
    )


def _to_ignore(said: Ignored | Corners) -> Ignored:
    one = said if isinstance(said, Ignored) else Ignored(said)
    return one._replace(box=_corners([one.box])[0])


def truths_of(given: Sequence[Truth | Boxes], variant: Variant) -> list[Truth]:
    """Return the truths of queries, checked against how they are asked.

    Raises:
        ValueError: a box is none, or labels or frames are not as the queries are asked; the message
            names the query.
    """
    made: list[Truth] = []
    last: object = None
    for at, one in enumerate(given):
        # In training the replies to a prompt share its truth: it is looked at once.
        if made and one is last:
            made.append(made[-1])
            continue
        try:
            made.append(_checked(one, variant))
        except ValueError as error:
            raise ValueError(f"truth {at}: {error}") from None
        last = one
    return made


def _checked(one: Truth | Boxes, variant: Variant) -> Truth:
    if not isinstance(one, Truth):
        corners = _corners(one)
        one = Truth(corners, (0,) * len(corners))
    if one.boxes and bool(one.labels) != variant.multilabel:
        has = "has labels" if one.labels else "has no labels"
        raise ValueError(f"it {has}, but multilabel={variant.multilabel}")
    if one.frames and not (one.frames[0] >= 0 and one.frames[-1] < variant.frames):
        raise ValueError(f"it is in frames {set(one.frames)}, but frames={variant.frames}")
    for other in one.ignored:
        if not 0 <= other.frame < variant.frames:
            raise ValueError(
                f"an ignored box is in frame {other.frame}, but frames={variant.frames}"
            )
        if variant.multilabel is not bool(other.label):
            has = "has a label" if other.label else "has no label"
            raise ValueError(f"an ignored box {has}, but multilabel={variant.multilabel}")
    return one


def _corners(boxes: Boxes) -> tuple[Corners, ...]:
    rows = plain(boxes)
    try:
        found = tuple([tuple(plain(row)) for row in rows])
        for box in found:
            x1, y1, x2, y2 = box
            if not (-inf < x1 <= x2 < inf and -inf < y1 <= y2 < inf):
                raise ValueError
    except (TypeError, ValueError):
        raise ValueError(
            f"boxes should be [[x1, y1, x2, y2], …] in pixels with x1 <= x2 and y1 <= y2, "
            f"not {rows!r:.80}"
        ) from None
    return found
