"""Read CVAT's XML for images (version 1.1): boxes, polygons, ellipses and masks in pixels."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element

from ...boxes import Corners
from ...marks import PackedMask
from ...storage import Size
from ..annotated_samples import AnnotationError, Samples
from .annotation_values import written_number, written_size
from .collector import Collector
from .polygons import fill_polygons
from .reader_options import ReaderOptions
from .text_encodings import refuse_attributes_twice
from .uncounted_objects import meaning_of_flag
from .upright_boxes import ROTATED, around_ellipse, around_points, around_turned

_CORNERS = ("xtl", "ytl", "xbr", "ybr")
_OF_IMAGE = frozenset(("id", "name", "width", "height", "subset", "task_id"))
_OF_SHAPE = frozenset(
    (
        "label",
        "occluded",
        "source",
        "z_order",
        "group_id",
        "rotation",
        "points",
        "outside",
        "keyframe",
        "cx",
        "cy",
        "rx",
        "ry",
        "rle",
        "left",
        "top",
        "width",
        "height",
        *_CORNERS,
    )
)


def read_cvat(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read an export "CVAT for images".

    Polygons become the boxes around them, with masks; rotated boxes and ellipses the upright ones
    around them; of masks the stated sides are read.  Of several subsets one is read.

    Raises an AnnotationError for tracks of a video, and for other XML.
    """
    collector = Collector(path, images, options)
    root = collector.xml(path)
    if root.find("track") is not None:
        raise AnnotationError(
            f"{path}: CVAT's tracks of a video cannot be read: export the task as COCO 1.0"
        )
    entries = root.findall("image")
    others = {child.tag for child in root} - {"image"}
    collector.ledger.keys("the file", others, frozenset(("version", "meta")), str(path))
    subsets = [entry.get("subset", "") for entry in entries]
    places = [f"{path}, image {at}" for at in range(len(entries))]
    for at in collector.places_of_split(subsets, places, "images of the subset"):
        _read_image(entries[at], places[at], collector)
    return collector.samples()


def _read_image(entry: Element, where: str, collector: Collector) -> None:
    name = entry.get("name")
    if not name:
        raise AnnotationError(f"{where}: no name")
    size = written_size(entry.get("width", ""), entry.get("height", ""), f"{where}, size")
    collector.ledger.keys("images", {*entry.attrib} - _OF_IMAGE, frozenset(), where)
    image = collector.image(name, where, size)
    for at, shape in enumerate(entry):
        place = f"{where} ({name}), shape {at}"
        if shape.tag == "tag":
            collector.ledger.not_read("tags of images", place)
            continue
        _read_shape(shape, image, size, place, collector)


def _read_shape(shape: Element, image: str, size: Size, where: str, collector: Collector) -> None:
    collector.ledger.keys("shapes", {*shape.attrib} - _OF_SHAPE, frozenset(), where)
    flags = {}
    attributes = shape.findall("attribute")
    refuse_attributes_twice((each.get("name", "") for each in attributes), where)
    for attribute in attributes:
        called = attribute.get("name", "")
        if meaning_of_flag(called):
            flags[called] = attribute.text
        else:
            collector.ledger.not_read(f"attributes of shapes: {called}", where)
    label = shape.get("label", "")
    if shape.get("outside") == "1":
        collector.ledger.leave_out("shapes that are outside of the image", where)
    elif shape.tag == "polygon":
        corners, mask = _read_polygon(shape.get("points", ""), size, where)
        collector.add(image, label, corners, where, flags, mask)
    elif shape.tag in ("box", "ellipse", "mask"):
        corners = _corners(shape, where, collector)
        collector.add(image, label, corners, where, flags)
    else:
        collector.add_boxless(image, label, f"is a <{shape.tag}>, which has no box", where)


def _corners(shape: Element, where: str, collector: Collector) -> Corners:
    """Return the upright box around a box, an ellipse or a mask."""

    def number(name: str, default: str = "") -> float:
        return written_number(shape.get(name, default), f"{where}, {name}")

    if shape.tag == "mask":
        x, y, w, h = map(number, ("left", "top", "width", "height"))
        return (x, y, x + w, y + h)
    angle = number("rotation", "0") % 360
    if angle:
        collector.ledger.note(ROTATED, where)
    if shape.tag == "ellipse":
        x, y, rx, ry = map(number, ("cx", "cy", "rx", "ry"))
        return around_ellipse(x, y, rx, ry, angle)
    x1, y1, x2, y2 = map(number, _CORNERS)
    return around_turned((x1, y1, x2, y2), angle)


def _read_polygon(text: str, size: Size, where: str) -> tuple[Corners, PackedMask | None]:
    """Return the box around "x,y;x,y;…", and its mask."""
    points: list[list[float]] = []
    numbers: list[float] = []
    for pair in text.split(";"):
        x, _, y = pair.partition(",")
        points.append([written_number(number, f"{where}, points") for number in (x, y)])
        numbers += points[-1]
    return around_points(points), fill_polygons([numbers], size)
