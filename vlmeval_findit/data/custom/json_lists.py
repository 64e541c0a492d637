"""Read JSON that lists images with their boxes: CreateML's, and BDD100K's (Scalabel)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core import Text
from ..annotated_samples import CROWD, IGNORED, AnnotationError, Samples
from .annotation_values import Coordinate, ListOfJson
from .collected import Collected
from .json_records import JsonRecord
from .json_sections import sections
from .reader_options import ReaderOptions

# --- CreateML -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _CreateMLImage(JsonRecord):
    called = "images"
    not_needed = frozenset(("verified",))
    annotations: ListOfJson
    image: Text | None = None
    imagefilename: Text | None = None


@dataclass(frozen=True, slots=True)
class _CreateMLSides(JsonRecord):
    called = "coordinates"
    x: Coordinate
    y: Coordinate
    width: Coordinate
    height: Coordinate


@dataclass(frozen=True, slots=True)
class _CreateMLBox(JsonRecord):
    called = "annotations"
    label: Text
    coordinates: Any


def read_createml(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read CreateML's JSON: x and y are the centre of a box, in pixels."""
    collected = Collected(path, images, options)
    for element in sections(path):
        where = f"{path}, [{element.place}]"
        entry = collected.record(_CreateMLImage, element.value, where)
        name = entry.image or entry.imagefilename
        if not name:
            raise AnnotationError(f"{where}: no image")
        image = collected.image(name, where)
        for place, box in collected.records(
            _CreateMLBox, entry.annotations, f"{where}, annotations"
        ):
            sides = collected.record(_CreateMLSides, box.coordinates, f"{place}, coordinates")
            half_width = sides.width / 2
            half_height = sides.height / 2
            corners = (
                sides.x - half_width,
                sides.y - half_height,
                sides.x + half_width,
                sides.y + half_height,
            )
            collected.add(image, box.label, corners, place)
    return collected.samples()


# --- BDD100K --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _BDDFrame(JsonRecord):
    called = "frames"
    not_needed = frozenset(
        (
            "timestamp",
            "attributes",
            "url",
            "videoName",
            "video_name",
            "frameIndex",
            "intrinsics",
            "extrinsics",
            "size",
        )
    )
    name: Text
    labels: ListOfJson | None = None


@dataclass(frozen=True, slots=True)
class _BDDLabel(JsonRecord):
    called = "labels"
    not_needed = frozenset(
        ("id", "manualShape", "manualAttributes", "manual_shape", "manual_attributes", "score")
    )
    category: Text
    box2d: Any = None
    attributes: Any = None


@dataclass(frozen=True, slots=True)
class _BDDCorners(JsonRecord):
    called = "box2d"
    x1: Coordinate
    y1: Coordinate
    x2: Coordinate
    y2: Coordinate


_NO_FLAGS = frozenset(("occluded", "truncated", "trafficLightColor"))


def read_bdd100k(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read the JSON of BDD100K's detection labels: a list of frames, or one below "frames".

    Lanes and areas have no box, and are left out.  ``crowd`` and ``ignored`` are honoured.
    """
    collected = Collected(path, images, options)
    for element in sections(path):
        if element.key not in ("", "frames"):
            collected.ledger.keys("the file", [element.key], frozenset(("config",)), str(path))
            continue
        where = f"{path}, {element.key}[{element.place}]"
        frame = collected.record(_BDDFrame, element.value, where)
        image = collected.image(frame.name, where)
        for place, label in collected.records(_BDDLabel, frame.labels or (), f"{where}, labels"):
            if label.box2d is None:
                collected.ledger.leave_out("labels without a box: lanes and areas", place)
                continue
            box = collected.record(_BDDCorners, label.box2d, f"{place}, box2d")
            corners = (box.x1, box.y1, box.x2, box.y2)
            ignored = _ignored(label.attributes, place, collected)
            collected.add(image, label.category, corners, place, ignored=ignored)
    return collected.samples()


def _ignored(attributes: Any, where: str, collected: Collected) -> str:
    if not isinstance(attributes, dict):
        return ""
    flags = {"crowd": CROWD, "ignored": IGNORED, "ignore": IGNORED}
    rest = attributes.keys() - flags.keys()
    collected.ledger.keys("attributes of labels", rest, _NO_FLAGS, where)
    reasons = [why for flag, why in flags.items() if attributes.get(flag)]
    return reasons[0] if reasons else ""
