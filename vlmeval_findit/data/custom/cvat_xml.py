"""Read CVAT's XML for images (version 1.1): boxes and polygons in pixels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from ...boxes import Corners
from ...core import open_regular
from ...marks import PackedMask
from ...storage import Size
from ..annotated_samples import AnnotationError, Samples
from .annotation_values import written_number, written_size
from .collected import Collected
from .polygons import fill
from .reader_options import ReaderOptions
from .splits import chosen_split
from .upright_boxes import ROTATED, around_points, around_turned

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
        *_CORNERS,
    )
)


def read_cvat(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read an export "CVAT for images".

    Polygons become the boxes around them, with masks; rotated boxes the upright ones around them.
    Of several subsets one is read.

    Raises an AnnotationError for tracks of a video, and for other XML.
    """
    collected = Collected(path, images, options)
    try:
        with open_regular(path) as stream:
            root = ElementTree.parse(stream).getroot()
    except (ElementTree.ParseError, ValueError) as error:
        raise AnnotationError(f"{path}: not XML: {error}") from None
    if root.find("track") is not None:
        raise AnnotationError(
            f"{path}: CVAT's tracks of a video cannot be read: export the task as COCO 1.0"
        )
    entries = root.findall("image")
    others = {child.tag for child in root} - {"image"}
    collected.ledger.keys("the file", others, frozenset(("version", "meta")), str(path))
    for at, entry in _images_of_split(path, entries, collected):
        _read_image(entry, f"{path}, image {at}", collected)
    return collected.samples()


def _images_of_split(
    path: Path, entries: list[ElementTree.Element], collected: Collected
) -> list[tuple[int, ElementTree.Element]]:
    """Return the images of the chosen subset with their places; all, where there are none."""
    numbered = list(enumerate(entries))
    subsets = list(dict.fromkeys(entry.get("subset", "") for entry in entries))
    if subsets in ([], [""], ["default"]):
        if collected.options.split is not None:
            raise AnnotationError(f"{path}: no image has a subset. Leave --split out")
        return numbered
    split = chosen_split(path, subsets, collected.options.split)
    for at, entry in numbered:
        if entry.get("subset", "") != split:
            what = f"images of the subset {entry.get('subset', '')}"
            collected.ledger.leave_out(what, f"{path}, image {at}")
    return [(at, entry) for at, entry in numbered if entry.get("subset", "") == split]


def _read_image(entry: ElementTree.Element, where: str, collected: Collected) -> None:
    name = entry.get("name")
    if not name:
        raise AnnotationError(f"{where}: no name")
    size = written_size(entry.get("width", ""), entry.get("height", ""), f"{where}, size")
    collected.ledger.keys("images", {*entry.attrib} - _OF_IMAGE, frozenset(), where)
    image = collected.image(name, where, size)
    for at, shape in enumerate(entry):
        place = f"{where} ({name}), shape {at}"
        if shape.tag == "tag":
            collected.ledger.not_read("tags of images", place)
            continue
        collected.ledger.keys("shapes", {*shape.attrib} - _OF_SHAPE, frozenset(), place)
        for attribute in shape.findall("attribute"):
            collected.ledger.not_read(f"attributes of shapes: {attribute.get('name')}", place)
        label = shape.get("label", "")
        if shape.get("outside") == "1":
            collected.ledger.leave_out("shapes that are outside of the image", place)
            continue
        if shape.tag == "box":
            collected.add(image, label, _corners(shape.attrib, place, collected), place)
        elif shape.tag == "polygon":
            corners, mask = _read_polygon(shape.get("points", ""), size, place)
            collected.add(image, label, corners, place, mask=mask)
        else:
            why = f"is a <{shape.tag}>, which has no box"
            collected.add_unusable(image, label, why, place)


def _corners(shape: Mapping[str, str], where: str, collected: Collected) -> Corners:
    x1, y1, x2, y2 = (written_number(shape.get(side, ""), f"{where}, {side}") for side in _CORNERS)
    angle = written_number(shape.get("rotation", "0"), f"{where}, rotation")
    if angle % 360:
        collected.ledger.note(ROTATED, where)
    return around_turned((x1, y1, x2, y2), angle % 360)


def _read_polygon(text: str, size: Size, where: str) -> tuple[Corners, PackedMask | None]:
    """Return the box around "x,y;x,y;…", and its mask."""
    points: list[list[float]] = []
    numbers: list[float] = []
    for pair in text.split(";"):
        x, _, y = pair.partition(",")
        points.append([written_number(number, f"{where}, points") for number in (x, y)])
        numbers += points[-1]
    return around_points(points), fill([numbers], size)
