"""Read JSON that lists images with their boxes: CreateML's, and BDD100K's (Scalabel)."""

from __future__ import annotations

from pathlib import Path

from ...core import Text
from ..annotated_samples import Samples
from .annotation_values import Coordinate
from .collector import Collector
from .reader_options import ReaderOptions
from .upright_boxes import around_centre

_SIDES = dict.fromkeys(("x", "y", "width", "height")).keys()
_CORNERS = dict.fromkeys(("x1", "y1", "x2", "y2")).keys()


def read_createml(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read CreateML's JSON: x and y are the centre of a box, in pixels."""
    collector = Collector(path, images, options)
    for _, entry in collector.json_elements(path):
        splits = entry.rest("images", {"image", "imagefilename", "annotations"}, {"verified"})
        name = entry.find("image", Text) or entry.find("imagefilename", Text)
        if not name:
            raise entry.error("no image")
        image = collector.image(name, entry, splits=splits)
        for box in entry.each("annotations"):
            flags = box.flags("annotations", {"label", "coordinates"})
            sides = box.at("coordinates")
            sides.rest("coordinates", _SIDES)
            x, y, w, h = (sides.get(side, Coordinate) for side in _SIDES)
            corners = around_centre(x, y, w, h)
            collector.add(image, box.get("label", Text), corners, box, flags)
    return collector.samples()


_OF_FRAMES = frozenset(
    (
        "timestamp",
        "attributes",
        "url",
        "videoName",
        "video_name",
        "frameIndex",
        "intrinsics",
        "extrinsics",
    )
)
_OF_LABELS = frozenset(
    ("id", "manualShape", "manualAttributes", "manual_shape", "manual_attributes", "score")
)
_NO_FLAGS = frozenset(("occluded", "truncated", "trafficLightColor"))
_ATTRIBUTES = {"attributes": ("attributes of labels", _NO_FLAGS)}


def read_bdd100k(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read the JSON of BDD100K's detection labels: a list of frames, or one below "frames".

    Lanes and areas have no box, and are left out.
    """
    collector = Collector(path, images, options)
    for key, frame in collector.json_elements(path):
        if key not in ("", "frames"):
            collector.ledger.keys("the file", [key], frozenset(("config",)), str(path))
            continue
        splits = frame.rest("frames", {"name", "labels", "size"}, _OF_FRAMES)
        size = frame.at("size")
        stated = None if size.value is None else size.size
        image = collector.image(frame.get("name", Text), frame, stated, splits)
        for label in frame.each("labels"):
            flags = label.flags("labels", {"category", "box2d"}, _OF_LABELS, _ATTRIBUTES)
            category = label.get("category", Text)
            box = label.at("box2d")
            if box.value is None:
                label.ledger.leave_out("labels without a box: lanes and areas", str(label))
                continue
            box.rest("box2d", _CORNERS)
            x1, y1, x2, y2 = (box.get(name, Coordinate) for name in _CORNERS)
            collector.add(image, category, (x1, y1, x2, y2), label, flags)
    return collector.samples()
