"""The records of a COCO file, and what is known of keys that no query needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from ...core import Checked, Expected, Text, shown
from ...storage import Size
from ..annotated_samples import CROWD, DIFFICULT, IGNORED
from .json_records import JsonRecord


def _side(value: object) -> object:
    """Return a side in pixels; None where it is not stated, as 0 or null."""
    if value in (0, None) and not isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _flag(value: object) -> object:
    return 0 if value is None else value


def _id(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"{shown(value)} should be a whole number or a text")
    return value


Id = Annotated[int | str, Checked(_id, before=True)]
_Side = Annotated[
    Annotated[int, Expected("a whole number, at least 1", strict=True, ge=1)] | None,
    Checked(_side, before=True),
]
Flag = Annotated[
    Annotated[int, Expected("0 or 1", ge=0, le=1)],
    Checked(_flag, before=True),
]


@dataclass(frozen=True, slots=True)
class CocoImage(JsonRecord):
    """An image of a COCO file."""

    called = "images"
    not_needed = frozenset(
        ("license", "flickr_url", "flickr_640_url", "date_captured", "url", "extra")
    )
    id: Id
    file_name: Text | None = None
    coco_url: Text | None = None  # LVIS names its images so
    width: _Side = None
    height: _Side = None
    neg_category_ids: list[Id] | None = None  # LVIS: classes that are not there
    not_exhaustive_category_ids: list[Id] | None = None  # LVIS: not all instances are annotated

    @property
    def size(self) -> Size | None:
        """(width, height) in pixels; None: not stated."""
        return (self.width, self.height) if self.width and self.height else None


@dataclass(frozen=True, slots=True)
class CocoCategory(JsonRecord):
    """A class of a COCO file."""

    called = "categories"
    not_needed = frozenset(
        (
            "color",
            "isthing",
            "keypoints",
            "skeleton",
            "synset",
            "synonyms",
            "def",
            "frequency",
            "image_count",
            "instance_count",
        )
    )
    id: Id
    name: Text
    supercategory: Any = None


@dataclass(frozen=True, slots=True)
class CocoAnnotation(JsonRecord):
    """An object of a COCO file."""

    called = "annotations"
    not_needed = frozenset(("id", "num_keypoints", "keypoints", "track_id", "caption"))
    image_id: Id
    category_id: Id
    bbox: Any = None
    iscrowd: Flag = 0
    ignore: Flag = 0
    ignored: Flag = 0
    difficult: Flag = 0
    is_group_of: Flag = 0
    area: Any = None
    segmentation: Any = None
    attributes: Any = None
    rotation: Any = None


# Keys that change no query
FILE_KEYS = frozenset(
    ("info", "licenses", "license", "type", "images", "categories", "annotations")
)
ATTRIBUTES_NOT_NEEDED = frozenset(("occluded", "truncated", "track_id", "keyframe"))
# Flags of an annotation or among its attributes, by what they mean
FLAGS = {
    "iscrowd": CROWD,
    "is_crowd": CROWD,
    "is_group_of": CROWD,
    "difficult": DIFFICULT,
    "ignore": IGNORED,
    "ignored": IGNORED,
}
