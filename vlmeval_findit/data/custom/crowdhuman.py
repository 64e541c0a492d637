"""Read CrowdHuman's annotations (.odgt): an image a line, its persons with three boxes each."""

from __future__ import annotations

from pathlib import Path

from ...core import Text
from ..annotated_samples import BoxForm, Samples
from .annotation_values import SidesOfJson
from .collector import Collector
from .node import Node
from .reader_options import ReaderOptions

_PERSON = "person"
_INSIDE = {"extra": ("extra", {"box_id", "occ", "unsure"})}


def read_crowdhuman(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read the boxes of whole bodies (fbox), which reach past what is seen, and past the border.

    Persons to ignore are ignored; a "mask" is a region of persons that are not told apart.

    Raises an AnnotationError for other lines.
    """
    collector = Collector(path, images, options)
    for line in collector.json_lines(path):
        splits = line.rest("lines", {"ID", "gtboxes"})
        # IDs have no suffix.
        image = collector.image(f"{line.get('ID', Text)}.jpg", line, splits=splits)
        for thing in line.each("gtboxes"):
            _read_person(thing, image, collector)
    return collector.samples()


def _read_person(thing: Node, image: str, collector: Collector) -> None:
    flags = thing.flags("boxes", {"tag", "fbox"}, {"head_attr"}, _INSIDE)
    label = thing.get("tag", Text)
    if label == "mask":
        label = _PERSON
        flags["crowd"] = True
    corners = BoxForm.SIDES.corners(thing.get("fbox", SidesOfJson))
    collector.add(image, label, corners, thing, flags)
