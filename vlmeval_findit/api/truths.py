"""What is right, from whatever it comes in: lists, arrays, detections."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import Any

from ..benchmarks.findit.variant import Variant
from ..boxes.records import Ignored as Ignored
from ..boxes.records import Truth as Truth
from ..boxes.representation import Corners
from .sizes import plain

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
    """The ground truth of one query.

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
    """The truths of queries, checked against how they are asked.

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
