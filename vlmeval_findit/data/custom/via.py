"""Read the VGG Image Annotator's JSON (version 1 and 2): regions of images in pixels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from ...boxes import Corners
from ...core import Expected, Text
from ..annotated_samples import AnnotationError, Samples
from .annotation_values import Coordinate, ObjectOfJson
from .collector import Collector
from .node import Node
from .reader_options import ReaderOptions
from .splits import names_a_split
from .uncounted_objects import meaning_of_flag
from .upright_boxes import ROTATED, around_ellipse, around_points

_OF_IMAGES = frozenset(
    ("size", "fileref", "base64_img_data", "caption", "public_domain", "file_attributes")
)
# What people call the attribute that says what a region shows
_LABELS = ("label", "class", "name", "category", "type", "object", "class_name")

_Sides = Annotated[list[Coordinate], Expected("a list of numbers", min_length=1)]


def read_via(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read annotations or a project of VIA.

    The label is the only attribute of regions, or the only attribute that is called label, class,
    name … .

    Raises an AnnotationError where it is not clear which attribute is the label.
    """
    collector = Collector(path, images, options)
    root = collector.json(path)
    entries = root.at("_via_img_metadata") if "_via_img_metadata" in root.keys else root
    regions = []
    for key in entries.read(ObjectOfJson):
        entry = Node(entries.value[key], f", {key}", collector.ledger, root)
        splits = entry.rest("images", {"filename", "regions"}, _OF_IMAGES)
        about = entry.at("file_attributes")
        size = None
        if isinstance(about.value, dict):
            size = about.size
            splits |= {
                name: value
                for name, value in about.value.items()
                if isinstance(value, str) and names_a_split(value)
            }
        image = collector.image(entry.get("filename", Text), entry, size, splits)
        for region in _regions(entry):
            region.rest("regions", {"shape_attributes", "region_attributes"})
            regions.append((image, region, region.get("region_attributes", ObjectOfJson)))
    attribute = _label_attribute(path, [attributes for _, _, attributes in regions])
    for image, region, attributes in regions:
        about = region.at("region_attributes")
        flags = about.flags("attributes of regions", {attribute})
        label = _label(attributes.get(attribute), region)
        shape = region.at("shape_attributes")
        try:
            corners = _corners(shape, region)
        except AnnotationError as error:
            collector.add_boxless(image, label, str(error).removeprefix(f"{region}, "), region)
        else:
            collector.add(image, label, corners, region, flags)
    return collector.samples()


def _regions(entry: Node) -> list[Node]:
    """Return regions with their places; version 1 has an object in place of the list."""
    regions = entry.at("regions")
    if isinstance(regions.value, Mapping):
        regions.value = list(regions.value.values())
    return list(regions.elements())


def _label_attribute(path: Path, regions: list[dict[str, Any]]) -> str:
    used = list(dict.fromkeys(chain.from_iterable(regions)))
    candidates = [key for key in used if not meaning_of_flag(key)]
    if len(candidates) == 1:
        return candidates[0]
    named = [key for key in candidates if key.lower() in _LABELS]
    if len(named) == 1:
        return named[0]
    there = f"there are {', '.join(used)}" if used else "there are none"
    raise AnnotationError(
        f"{path}: which attribute of regions is the label? {there}. Rename it to label"
    )


def _label(value: Any, where: Node) -> str:
    """Return a label: a text, or the only chosen one of several."""
    if isinstance(value, Mapping):
        chosen = [name for name, is_chosen in value.items() if is_chosen]
        value = chosen[0] if len(chosen) == 1 else None
    if not isinstance(value, str) or not value.strip():
        raise where.error("no label, or several")
    return value


def _corners(shape: Node, region: Node) -> Corners:
    """Return the upright box around a shape, or raise an AnnotationError."""

    def number(name: str) -> float:
        stated: float = Node(shape.keys.get(name), f", {name}", shape.ledger, region).read(
            Coordinate
        )
        return stated

    kind = shape.keys.get("name")
    if kind == "rect":
        x, y, w, h = map(number, ("x", "y", "width", "height"))
        return (x, y, x + w, y + h)
    if kind == "circle":
        x, y, radius = map(number, ("cx", "cy", "r"))
        return around_ellipse(x, y, radius, radius)
    if kind == "ellipse":
        x, y, rx, ry = map(number, ("cx", "cy", "rx", "ry"))
        # In radians
        angle = math.degrees(number("theta")) if "theta" in shape.keys else 0.0
        if angle % 180:
            shape.ledger.note(ROTATED, str(region))
        return around_ellipse(x, y, rx, ry, angle)
    if kind == "polygon":
        xs, ys = (
            Node(shape.keys.get(name), f", {name}", shape.ledger, region).read(_Sides)
            for name in ("all_points_x", "all_points_y")
        )
        if len(xs) != len(ys):
            raise AnnotationError(f"{region}, has {len(xs)} x and {len(ys)} y of points")
        return around_points(list(zip(xs, ys, strict=True)))
    raise AnnotationError(f"{region}, a {kind}, which has no upright box")
