"""How a reply writes its boxes: output, representation, key, structure (protocol section 1)."""

from __future__ import annotations

from dataclasses import dataclass

from .representation import BOX_KEYS, POINT_KEYS, REPRESENTATIONS, Representation
from .representation import CLASS_KEY as CLASS_KEY

OUTPUTS = ("text", "json")

DEFAULT_KEY = BOX_KEYS[0]
KEYS = tuple(dict.fromkeys((*BOX_KEYS, *POINT_KEYS)))


def default_key(representation: str) -> str:
    """Return a representation's default key.

    >>> default_key("xyxy"), default_key("point")
    ('bbox', 'point')
    """
    return REPRESENTATIONS[representation].json_keys[0]


DEFAULT_STRUCTURE = "per_box"
STRUCTURES = (DEFAULT_STRUCTURE, "nested", "decomposed")

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
    """How a reply is written: as asked, or the model's own way if ``unconstrained``."""

    output: str
    representation: str
    key: str = DEFAULT_KEY  # The singular key
    structure: str = DEFAULT_STRUCTURE
    multilabel: bool = False
    frames: int = 1  # 1: an image

    @property
    def numbers(self) -> Representation:
        return REPRESENTATIONS[self.representation]
