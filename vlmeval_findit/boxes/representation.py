"""Reply formats (protocol section 1): what a box's numbers mean, and how a reply writes them.

A row of :data:`REPRESENTATIONS` is all that the package knows of a format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from ..core import Group, PluginTable, quoted_value

Corners = tuple[float, float, float, float]  # (x_min, y_min, x_max, y_max)
Numbers = Sequence[float]  # Of one box, in the order of its representation

# Stands for eight numbers that are no axis-parallel rectangle; matches nothing
NO_RECTANGLE: Corners = (0.0, 0.0, 0.0, 0.0)


class MatchRule(Enum):
    """How an answer is compared with an object; results of the two are never compared."""

    BOX_OVERLAP = "box overlap"  # A box, by its IoU with the object's
    POINT_IN_OBJECT = "point in object"  # A point in the object's mask, else box


CLASS_KEY = "class_name"  # Placeholder: the label itself is the key

# JSON keys under which a reply may write a box, the default first
BOX_KEYS = ("bbox", "bbox_2d", "coordinates", "bounding_box", CLASS_KEY)
POINT_KEYS = ("point", "point_2d", "coordinates", CLASS_KEY)


@dataclass(frozen=True, slots=True)
class Representation:
    """One way to write a box, or a point (a box without extent, or its centre), as numbers."""

    name: str
    width: int
    fields: tuple[str, ...]  # The numbers' names in a prompt, in order
    keys: tuple[str, ...]  # In ``decomposed`` JSON (empty: has none)
    to_corners: Callable[[Numbers], Corners]  # Never raises on finite numbers
    # Its inverse where x_min < x_max, y_min < y_max
    from_corners: Callable[[Corners], tuple[float, ...]]
    match_rule: MatchRule = MatchRule.BOX_OVERLAP
    json_keys: tuple[str, ...] = BOX_KEYS  # The default first
    excluded_keys: frozenset[str] = frozenset()  # With these keys ``keys`` mean something else


def _from_cxcywh(n: Numbers) -> Corners:
    cx, cy, w, h = n
    return (cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2)


def _from_four_corners(n: Numbers) -> Corners:
    xs = n[0::2]
    ys = n[1::2]
    x_values = set(xs)
    y_values = set(ys)
    corners = set(zip(xs, ys, strict=True))
    if len(x_values) != 2 or len(y_values) != 2 or len(corners) != 4:
        return NO_RECTANGLE
    return (min(x_values), min(y_values), max(x_values), max(y_values))


def _to_four_corners(b: Corners) -> tuple[float, ...]:
    x1, y1, x2, y2 = b
    return (x1, y1, x2, y1, x2, y2, x1, y2)


def _centre(b: Corners) -> tuple[float, float]:
    return (b[0] + b[2]) / 2, (b[1] + b[3]) / 2


_XYXY = Representation(
    name="xyxy",
    width=4,
    fields=("x_min", "y_min", "x_max", "y_max"),
    keys=("xmin", "ymin", "xmax", "ymax"),
    to_corners=tuple,  # type: ignore[arg-type]
    from_corners=lambda b: b,
)
_ALL = Representation(
    name="all",
    width=8,
    fields=("x1", "y1", "x2", "y2", "x3", "y3", "x4", "y4"),
    keys=(),
    to_corners=_from_four_corners,
    from_corners=_to_four_corners,
)
_NAMED_SIDES = ("x_min", "y_min", "x_max", "y_min", "x_max", "y_max", "x_min", "y_max")

_ROWS = (
    _XYXY,
    Representation(
        name="xywh",
        width=4,
        fields=("x_min", "y_min", "width", "height"),
        keys=("x", "y", "width", "height"),
        to_corners=lambda n: (n[0], n[1], n[0] + n[2], n[1] + n[3]),
        from_corners=lambda b: (b[0], b[1], b[2] - b[0], b[3] - b[1]),
    ),
    Representation(
        name="yxyx",
        width=4,
        fields=("y_min", "x_min", "y_max", "x_max"),
        keys=("ymin", "xmin", "ymax", "xmax"),
        to_corners=lambda n: (n[1], n[0], n[3], n[2]),
        from_corners=lambda b: (b[1], b[0], b[3], b[2]),
    ),
    Representation(
        name="yxhw",
        width=4,
        fields=("y_min", "x_min", "height", "width"),
        keys=("y", "x", "height", "width"),
        to_corners=lambda n: (n[1], n[0], n[1] + n[3], n[0] + n[2]),
        from_corners=lambda b: (b[1], b[0], b[3] - b[1], b[2] - b[0]),
    ),
    Representation(
        name="cxcywh",
        width=4,
        fields=("cx", "cy", "width", "height"),
        keys=("cx", "cy", "width", "height"),
        to_corners=_from_cxcywh,
        from_corners=lambda b: (*_centre(b), b[2] - b[0], b[3] - b[1]),
    ),
    _ALL,
    replace(_ALL, name="all-labelled", fields=_NAMED_SIDES),
    # The prompt names no format; replies are read as xyxy unless the model's row names a format
    # (protocol section 3).
    replace(_XYXY, name="unconstrained", fields=(), keys=()),
)

_POINT = Representation(
    name="point",
    width=2,
    fields=("x", "y"),
    keys=("x", "y"),
    to_corners=lambda n: (n[0], n[1], n[0], n[1]),
    from_corners=_centre,
    match_rule=MatchRule.POINT_IN_OBJECT,
    json_keys=POINT_KEYS,
    # {"x": 1, "y": 2, "width": 3, "height": 4} is a box; its corner is no answer.
    excluded_keys=frozenset(("width", "height", "w", "h")),
)

# The paper's eight, which "all" means; others must be named
PAPER_REPRESENTATIONS: tuple[str, ...] = tuple(row.name for row in _ROWS)


def _problem(row: Representation) -> str | None:
    if not re.fullmatch(r"[a-z][a-z0-9-]*", row.name) or re.fullmatch(_GRAMMAR, row.name):
        return f"{row.name!r} cannot stand in a name: letters, digits and '-', no word of the grid"
    if not isinstance(row.width, int) or row.width < 1:
        return f"width should not be {row.width!r}"
    for what, words in (("fields", row.fields), ("keys", row.keys)):
        if len(words) not in (0, row.width):
            return f"{what} are {len(words)} for {row.width} numbers"
    if not row.json_keys or not {*row.json_keys} <= {*BOX_KEYS, *POINT_KEYS}:
        return f"json_keys should be some of {', '.join((*BOX_KEYS, *POINT_KEYS))}"
    box = (1.0, 2.0, 5.0, 9.0)
    stated = box if row.match_rule is MatchRule.BOX_OVERLAP else (*_centre(box), *_centre(box))
    back = tuple(row.to_corners(row.from_corners(box)))
    return None if back == stated else f"{stated} comes back as {quoted_value(back)}"


_GRAMMAR = r"text|json|multilabel|caption|constrained|f\d+|(cx|vp)-.*"

# How four numbers stand for a box (two for a point), by name; plug-ins add rows
REPRESENTATIONS: PluginTable[Representation] = PluginTable(
    Group.REPRESENTATIONS, {row.name: row for row in (*_ROWS, _POINT)}, Representation, _problem
)


# --- how a reply writes its boxes -----------------------------------------------------------------

OUTPUTS = ("text", "json")  # Syntaxes of a reply: plain text or JSON

DEFAULT_KEY = BOX_KEYS[0]  # JSON key of a box in formats that name none
# All JSON keys of boxes and points, each once
JSON_KEYS = tuple(dict.fromkeys((*BOX_KEYS, *POINT_KEYS)))


def default_key(representation: str) -> str:
    """Return a representation's default key.

    >>> default_key("xyxy"), default_key("point")
    ('bbox', 'point')
    """
    return REPRESENTATIONS[representation].json_keys[0]


DEFAULT_STRUCTURE = "per_box"  # Structure of formats that name none: a JSON object for each box
STRUCTURES = (DEFAULT_STRUCTURE, "nested", "decomposed")  # How a JSON reply nests its boxes

# Keys of the ``nested`` structure
PLURAL_KEYS = {
    "bbox": "bboxes",
    "bbox_2d": "bboxes_2d",
    "coordinates": "coordinates",
    "bounding_box": "bounding_boxes",
    "point": "points",
    "point_2d": "points_2d",
}


@dataclass(frozen=True, slots=True)
class ReplyFormat:
    """How a reply is written: as requested, or in the model's format if ``unconstrained``."""

    output: str
    representation: str
    key: str = DEFAULT_KEY  # The singular key
    structure: str = DEFAULT_STRUCTURE
    multilabel: bool = False
    frames: int = 1  # 1: an image

    @property
    def numbers(self) -> Representation:
        return REPRESENTATIONS[self.representation]
