"""How a reply writes its boxes: output, representation, key, structure (protocol section 1)."""

from __future__ import annotations

from dataclasses import dataclass

from .representation import BOX_KEYS, POINT_KEYS, REPRESENTATIONS, Representation
from .representation import CLASS_KEY as CLASS_KEY

OUTPUTS = ("text", "json")


DEFAULT_KEY = BOX_KEYS[0]

KEYS = tuple(dict.fromkeys((*BOX_KEYS, *POINT_KEYS)))
"""Every key; a representation says which of them are its own."""


def default_key(representation: str) -> str:
    """The key under which a representation is asked for where none is named.

    >>> default_key("xyxy"), default_key("point")
    ('bbox', 'point')
    """
    return REPRESENTATIONS[representation].json_keys[0]


DEFAULT_STRUCTURE = "per_box"


STRUCTURES = (DEFAULT_STRUCTURE, "nested", "decomposed")


PLURAL_KEYS = {
    "bbox": "bboxes",
    "bbox_2d": "bboxes_2d",
    "coordinates": "coordinates",
    "bounding_box": "bounding_boxes",
    "point": "points",
    "point_2d": "points_2d",
}
"""The key of the ``nested`` structure, by the variant's key."""


@dataclass(frozen=True, slots=True)
class ReplyFormat:
    """All that the reading of a reply depends on: how the reply is written, not what was asked.

    ``key`` is the singular key of the variant; ``frames`` counts the frames that were asked for
    (1: an image).  It differs from the variant's own only where a model answers ``unconstrained``
    prompts in a scheme of its own (:mod:`...models`).
    """

    output: str
    representation: str
    key: str = DEFAULT_KEY
    structure: str = DEFAULT_STRUCTURE
    multilabel: bool = False
    frames: int = 1

    @property
    def numbers(self) -> Representation:
        return REPRESENTATIONS[self.representation]
