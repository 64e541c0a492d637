"""Read the VGG Image Annotator's JSON (version 1 and 2): regions of images in pixels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from ...boxes import Corners
from ...core import Expected, Text
from ..annotated_samples import AnnotationError, Samples
from .annotation_values import Coordinate, ObjectOfJson, json_of, text_of, validated
from .collected import Collected
from .json_records import JsonRecord
from .reader_options import ReaderOptions
from .upright_boxes import around_points


@dataclass(frozen=True, slots=True)
class _ViaImage(JsonRecord):
    called = "images"
    not_needed = frozenset(
        ("size", "file_attributes", "fileref", "base64_img_data", "caption", "public_domain")
    )
    filename: Text
    regions: Any = None


@dataclass(frozen=True, slots=True)
class _ViaRegion(JsonRecord):
    called = "regions"
    shape_attributes: ObjectOfJson
    region_attributes: ObjectOfJson


# What people call the attribute that says what a region shows
_LABELS = ("label", "class", "name", "category", "type", "object", "class_name")


def read_via(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read annotations or a project of VIA.

    The label is the only attribute of regions, or the only attribute that is called label, class,
    name … .

    Raises an AnnotationError where it is not clear which attribute is the label.
    """
    collected = Collected(path, images, options)
    values = json_of(text_of(path), str(path))
    entries = values.get("_via_img_metadata", values)
    regions = []
    for key, value in entries.items():
        where = f"{path}, {key}"
        entry = collected.record(_ViaImage, value, where)
        image = collected.image(entry.filename, where)
        for place, stated in _listed(entry.regions, where):
            region = collected.record(_ViaRegion, stated, place)
            regions.append((image, place, region))
    attribute = _label_attribute(path, [region for _image, _place, region in regions])
    for image, place, region in regions:
        rest = region.region_attributes.keys() - {attribute}
        collected.ledger.keys("attributes of regions", rest, frozenset(), place)
        label = _label(region.region_attributes.get(attribute), place)
        try:
            corners = _corners(region.shape_attributes, place)
        except AnnotationError as error:
            collected.add_unusable(image, label, str(error).removeprefix(f"{place}, "), place)
        else:
            collected.add(image, label, corners, place)
    return collected.samples()


def _listed(regions: Any, where: str) -> Iterator[tuple[str, Any]]:
    """Yield regions with their places; version 1 has an object in place of the list."""
    if isinstance(regions, Mapping):
        regions = list(regions.values())
    if not isinstance(regions or [], list):
        raise AnnotationError(f"{where}, regions: should be a list")
    for at, region in enumerate(regions or ()):
        yield f"{where}, regions[{at}]", region


def _label_attribute(path: Path, regions: list[_ViaRegion]) -> str:
    attributes = chain.from_iterable(region.region_attributes for region in regions)
    used = list(dict.fromkeys(attributes))
    if len(used) == 1:
        return used[0]
    named = [key for key in used if key.lower() in _LABELS]
    if len(named) == 1:
        return named[0]
    there = f"there are {', '.join(used)}" if used else "there are none"
    raise AnnotationError(
        f"{path}: which attribute of regions is the label? {there}. Rename it to label"
    )


def _label(value: Any, where: str) -> str:
    """Return a label: a text, or the only chosen one of several."""
    if isinstance(value, Mapping):
        chosen = [name for name, is_chosen in value.items() if is_chosen]
        value = chosen[0] if len(chosen) == 1 else None
    if not isinstance(value, str) or not value.strip():
        raise AnnotationError(f"{where}: no label, or several")
    return value


def _corners(shape: Mapping[str, Any], where: str) -> Corners:
    """Return the upright box around a shape, or raise an AnnotationError."""

    def numbers(*names: str) -> list[float]:
        return [validated(Coordinate, shape.get(name), f"{where}, {name}") for name in names]

    kind = shape.get("name")
    if kind == "rect":
        x, y, w, h = numbers("x", "y", "width", "height")
        return (x, y, x + w, y + h)
    if kind == "circle":
        x, y, radius = numbers("cx", "cy", "r")
        return (x - radius, y - radius, x + radius, y + radius)
    if kind == "polygon":
        sides = Annotated[list[Coordinate], Expected("a list of numbers", min_length=1)]
        xs = validated(sides, shape.get("all_points_x"), f"{where}, all_points_x")
        ys = validated(sides, shape.get("all_points_y"), f"{where}, all_points_y")
        return around_points(list(zip(xs, ys, strict=False)))
    raise AnnotationError(f"{where}, a {kind}, which has no upright box")
