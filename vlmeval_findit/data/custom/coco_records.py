"""The records of a COCO file, and what is known of keys that no query needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from ...core import Checked, Expected, Text, Whole
from ...storage import Size
from .annotation_values import PixelsOfJson


def _side(value: object) -> object:
    """Return a side in pixels; None where it is not stated, as 0 or null."""
    if value in (0, None) and not isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


Id = Annotated[Whole | Text, Expected("a whole number or a text")]
_Side = Annotated[PixelsOfJson | None, Checked(_side, before=True)]


@dataclass(frozen=True, slots=True)
class CocoImage:
    """An image of a COCO file."""

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
class CocoCategory:
    """A class of a COCO file."""

    id: Id
    name: Text
    supercategory: Any = None


@dataclass(frozen=True, slots=True)
class CocoAnnotation:
    """An object of a COCO file."""

    image_id: Id
    category_id: Id
    bbox: Any = None
    bbox_mode: Any = None  # detectron2's form of the box
    area: Any = None
    segmentation: Any = None
    attributes: Any = None
    rotation: Any = None


# Keys of the lists that are known, and change no query
NOT_NEEDED = {
    "images": frozenset(
        (
            "license",
            "flickr_url",
            "flickr_640_url",
            "date_captured",
            "url",
            "extra",
        )
    ),
    "categories": frozenset(
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
    ),
    "annotations": frozenset(
        (
            "id",
            "num_keypoints",
            "keypoints",
            "track_id",
            "caption",
        )
    ),
}
# Keys of the file that change no query
FILE_KEYS = frozenset(
    ("info", "licenses", "license", "type", "images", "categories", "annotations")
)
ATTRIBUTES_NOT_NEEDED = frozenset(("occluded", "truncated", "track_id", "keyframe"))
