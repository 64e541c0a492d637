"""The words under which boxes, labels and frames stand when they stand elsewhere than asked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from ..representation import Representation

_NO_LETTER = re.compile(r"[\W_]+")


@lru_cache(maxsize=4096)
def plain(key: str) -> str:
    """A key without case and punctuation.

    >>> plain("Bbox_2D"), plain("x min")
    ('bbox2d', 'xmin')
    """
    return _NO_LETTER.sub("", key.lower())


BOXES = frozenset(
    (
        *("bbox", "bboxes", "bbox2d", "bboxes2d", "box", "boxes", "box2d", "boxes2d", "bndbox"),
        *("boundingbox", "boundingboxes", "coordinates", "coordinate", "coords", "points"),
        *("position", "positions", "location", "locations", "rect", "rectangle", "region"),
    )
)
"""Keys of boxes; where labels are asked for, any other key may be one."""

LABELS = ("class", "classname", "category", "name", "object", "objectname", "type", "text")
FRAMES = ("frame", "frameindex", "frameid", "framenumber", "frameno", "image", "imageindex")

_ORDERS = re.compile(
    "(?P<cxcywh>cxcyw(?:idth)?h|(?:xcent|cent(?:er|re)x)[a-z]{0,2}(?:ycent|cent(?:er|re)y))"
    "|(?P<xyxy>x(?:min|1)?y(?:min|1)?x(?:max|2)?y(?:max|2)?|ltrb|lefttopright)"
    "|(?P<yxyx>y(?:min|1)?x(?:min|1)?y(?:max|2)?x(?:max|2)?|topleftbottom)"
    "|(?P<xywh>x(?:min|1)?y(?:min|1)?w(?:idth)?h|ltwh|lefttopwidth)"
    "|(?P<yxhw>y(?:min|1)?x(?:min|1)?h(?:eight)?w|topleftheight)"
)


def says_another_order(words: str, representation: Representation) -> bool:
    """Whether a key, or words, name an order of numbers that is not the one asked for.

    Such boxes stay unread: what they are is said, and it is not what was asked.
    """
    said = _ORDERS.search(plain(words))
    if said is None:
        return False
    asked = "xyxy" if representation.name == "unconstrained" else representation.name
    return said.lastgroup != asked


_SIDES = {
    "xyxy": (("x1", "y1", "x2", "y2"), ("left", "top", "right", "bottom")),
    "yxyx": (("y1", "x1", "y2", "x2"), ("top", "left", "bottom", "right")),
    "xywh": (("x", "y", "w", "h"), ("left", "top", "width", "height")),
    "yxhw": (("y", "x", "h", "w"), ("top", "left", "height", "width")),
    "cxcywh": (("cx", "cy", "w", "h"), ("xcenter", "ycenter", "width", "height")),
}


@lru_cache
def names_of(representation: Representation) -> Sequence[tuple[str, ...]]:
    """The names, plain, that the numbers of a representation go by: those that were asked for
    first.  No name means anything else in any of them."""
    found = [representation.keys] if representation.keys else []
    if representation.keys and len(set(representation.fields)) == representation.width:
        found.append(tuple(map(plain, representation.fields)))
    order = "xyxy" if representation.name == "unconstrained" else representation.name
    return [*found, *_SIDES.get(order, ())]


def numbers_by_name(
    fields: Mapping[str, object], representation: Representation
) -> tuple[tuple[str, ...], list[object]] | None:
    """The numbers of an object that names each, with the names; None where it names not all."""
    by_name = {plain(key): value for key, value in fields.items()}
    if not representation.never_beside.isdisjoint(by_name):
        return None
    for names in names_of(representation):
        if all(name in by_name for name in names):
            return names, [by_name[name] for name in names]
    return None
