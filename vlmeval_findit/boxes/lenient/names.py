"""Names of boxes, labels, frames and single numbers, and of the order of numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from ..representation import Representation

_NO_LETTER = re.compile(r"[\W_]+")


def plain(key: str) -> str:
    """Normalise a key: no case, no punctuation.

    >>> plain("Bbox_2D"), plain("x min")
    ('bbox2d', 'xmin')
    """
    return _NO_LETTER.sub("", key.lower())


# Keys of boxes; where labels are asked for, any other key may be a label
BOXES = frozenset(
    """
    bbox bboxes bbox2d bboxes2d box boxes box2d boxes2d bndbox boundingbox boundingboxes
    coordinates coordinate coords points position positions location locations rect rectangle
    region
    """.split()
)

# Keys of labels, the likeliest first
LABELS = tuple(
    """
    label class classname category categoryname name object objectname labels classes classnames
    categories names bboxeslabels phrase description sublabel textcontent text type
    """.split()
)
FRAMES = ("frame", "frameindex", "frameid", "framenumber", "frameno", "image", "imageindex")

# Keys around lists of objects; none is a label
CONTAINERS = frozenset(
    """
    objects detections detectedobjects results result predictions annotations answer answers
    output response items instances data
    """.split()
)


def first_of(keys: Iterable[str], words: Sequence[str]) -> str | None:
    """Return the key that is the earliest of some words; of equal keys the first."""
    by_word: dict[str, str] = {}
    for key in keys:
        by_word.setdefault(plain(key), key)
    return next((by_word[word] for word in words if word in by_word), None)


# --- the order of numbers -------------------------------------------------------------------------

_ORDERS = re.compile(
    "(?P<cxcywh>cxcyw(?:idth)?h|(?:xcent|cent(?:er|re)x)[a-z]{0,2}(?:ycent|cent(?:er|re)y))"
    "|(?P<xyxy>x(?:min|1)?y(?:min|1)?x(?:max|2)?y(?:max|2)?|ltrb|lefttopright)"
    "|(?P<yxyx>y(?:min|1)?x(?:min|1)?y(?:max|2)?x(?:max|2)?|topleftbottom)"
    "|(?P<xywh>x(?:min|1)?y(?:min|1)?w(?:idth)?h|ltwh|lefttopwidth)"
    "|(?P<yxhw>y(?:min|1)?x(?:min|1)?h(?:eight)?w|topleftheight)"
)
# "top-left", "(top left, …", "upper left corner": a corner, not the two sides top and left
_CORNER_WORD = re.compile(
    r"(?:top|upper|bottom|lower)(?:[-_]?|\s)(?:left|right)"
    r"(?=\s*+(?:[^\s\w]|and\b|to\b|corner|point|x\b|\Z))"
    r"|(?:top|upper|bottom|lower)[-_](?:left|right)",
    re.IGNORECASE,
)


def names_another_order(words: str, representation: Representation) -> bool:
    """Return whether words name another order of numbers than was asked for.

    >>> from ..representation import REPRESENTATIONS
    >>> xyxy = REPRESENTATIONS["xyxy"]
    >>> names_another_order("(top, left, bottom, right)", xyxy)
    True
    >>> names_another_order("(top-left, bottom-right)", xyxy)
    False
    """
    match = _ORDERS.search(plain(_CORNER_WORD.sub(" corner ", words)))
    if match is None:
        return False
    requested = "xyxy" if representation.name == "unconstrained" else representation.name
    return match.lastgroup != requested


# --- single numbers -------------------------------------------------------------------------------

_SIDES = {
    "xyxy": (("x1", "y1", "x2", "y2"), ("left", "top", "right", "bottom")),
    "yxyx": (("y1", "x1", "y2", "x2"), ("top", "left", "bottom", "right")),
    "xywh": (("x", "y", "w", "h"), ("left", "top", "width", "height")),
    "yxhw": (("y", "x", "h", "w"), ("top", "left", "height", "width")),
    "cxcywh": (("cx", "cy", "w", "h"), ("xcenter", "ycenter", "width", "height")),
}
# Other spellings of plain names
_OTHER_SPELLINGS = {
    "minx": "xmin",
    "miny": "ymin",
    "maxx": "xmax",
    "maxy": "ymax",
    "xminimum": "xmin",
    "yminimum": "ymin",
    "xmaximum": "xmax",
    "ymaximum": "ymax",
    "minimumx": "xmin",
    "minimumy": "ymin",
    "maximumx": "xmax",
    "maximumy": "ymax",
    "xcentre": "xcenter",
    "centerx": "xcenter",
    "centrex": "xcenter",
    "ycentre": "ycenter",
    "centery": "ycenter",
    "centrey": "ycenter",
}


_OF_CORNER = re.compile("(top|upper|bottom|lower)(left|right)([xy])")


def number_name(key: str) -> str:
    """Return the plain name of a number.

    >>> number_name("X_min"), number_name("min x"), number_name("top_left_x")
    ('xmin', 'xmin', 'xmin')
    """
    name = plain(key)
    corner = _OF_CORNER.fullmatch(name)
    if corner is None:
        return _OTHER_SPELLINGS.get(name, name)
    down, across, axis = corner.groups()
    is_low = across == "left" if axis == "x" else down in ("top", "upper")
    return f"{axis}min" if is_low else f"{axis}max"


@lru_cache
def names_of(representation: Representation) -> Sequence[tuple[str, ...]]:
    """Return the plain names that the numbers may have, those asked for first."""
    names = [representation.keys] if representation.keys else []
    if representation.keys and len(set(representation.fields)) == representation.width:
        names.append(tuple(map(number_name, representation.fields)))
    if representation.name == "unconstrained":
        return [("xmin", "ymin", "xmax", "ymax"), *_SIDES["xyxy"]]
    return [*names, *_SIDES.get(representation.name, ())]


def numbers_by_name(
    fields: Mapping[str, object], representation: Representation
) -> tuple[tuple[str, ...], list[object]] | None:
    """Return names and numbers of an object that names all of them; else None."""
    by_name = {number_name(key): value for key, value in fields.items()}
    if not representation.excluded_keys.isdisjoint(by_name):
        return None
    for names in names_of(representation):
        if all(name in by_name for name in names):
            return names, [by_name[name] for name in names]
    return None
