"""Read Supervisely's projects: ``ann/a.jpg.json`` beside ``img/a.jpg``, in pixels."""

from __future__ import annotations

import base64
import binascii
import zlib
from io import BytesIO
from itertools import chain
from pathlib import Path, PurePosixPath

from ...boxes import Corners
from ...core import Text
from ...marks import PackedMask
from ...storage import ImageFileError, Size, read_image_header
from ..annotated_samples import Samples
from .annotation_values import PointOfJson, PointsOfJson
from .collector import Collector, ListedFile, listed_files
from .node import Node
from .polygons import fill_polygons
from .reader_options import ReaderOptions
from .splits import names_a_split
from .text_encodings import refuse_attributes_twice
from .uncounted_objects import meaning_of_flag
from .upright_boxes import around_points

_HEAD = 1 << 16  # Bytes of a PNG in which its size stands
_OF_FILES = frozenset(("description", "name", "customBigData"))
_OF_OBJECTS = frozenset(
    (
        "id",
        "classId",
        "description",
        "labelerLogin",
        "createdAt",
        "updatedAt",
        "nnCreated",
        "nnUpdated",
        "instance",
        "priority",
        "customData",
        "shape",
        "smartToolInput",
    )
)
_OF_PROJECTS = ("meta.json", "obj_class_to_machine_color.json", "key_id_map.json")


def read_supervisely(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read a file, or all below the folders ``ann`` of a project; a data set may be a split.

    Polygons become the boxes around them, with masks; bitmaps the boxes around them.

    Raises an AnnotationError for a file of another kind.
    """
    collector = Collector(path, images, options)
    files = [ListedFile(path, path.stem)]
    if path.is_dir():
        there = listed_files(path, ".json", collector.ledger, "JSON file")
        about_images = [file for file in there if file.path.name not in _OF_PROJECTS]
        files = collector.files_of_split(path, about_images, "JSON file")
    for file in files:
        _read_file(file, collector)
    collector.ledger.read("JSON files", len(files))
    return collector.samples()


def _read_file(file: ListedFile, collector: Collector) -> None:
    root = collector.json(file.path)
    splits = root.rest("files", {"size", "objects", "tags"}, _OF_FILES)
    for tag in root.each("tags"):
        name = tag.get("name", Text)
        if names_a_split(name):
            if splits.get("tags", name) != name:
                raise tag.error(f"is of two splits, {splits['tags']} and {name}: remove one")
            splits["tags"] = name
        else:
            collector.ledger.not_read(f"tags of images: {name}", str(tag))
    size = root.at("size").size
    # ds/ann/a.jpg.json is about ds/img/a.jpg
    stated = PurePosixPath(file.stem)
    folder = stated.parent.with_name("img") if stated.parent.name == "ann" else stated.parent
    name = (folder / stated.name).as_posix()
    image = collector.image(name, root, size, splits)
    for thing in root.each("objects"):
        _read_object(thing, image, size, collector)


def _read_object(thing: Node, image: str, size: Size | None, collector: Collector) -> None:
    read = {"classTitle", "geometryType", "points", "bitmap", "tags"}
    flags = thing.flags("objects", read, _OF_OBJECTS)
    tags = list(thing.each("tags"))
    refuse_attributes_twice((tag.get("name", Text) for tag in tags), thing.at("tags"))
    for tag in tags:
        name = tag.get("name", Text)
        value = tag.keys.get("value")
        if meaning_of_flag(name):
            flags[name] = True if value is None else value  # Without a value it is set
        else:
            collector.ledger.not_read(f"tags of objects: {name}", str(tag))
    label = thing.get("classTitle", Text)
    kind = thing.get("geometryType", Text)
    if kind == "bitmap":
        collector.add(image, label, _around_bitmap(thing.at("bitmap")), thing, flags)
        return
    if kind not in ("rectangle", "polygon"):
        collector.add_boxless(image, label, f"is a {kind}, which has no box", thing)
        return
    points = thing.at("points").get("exterior", PointsOfJson)
    mask: PackedMask | None = None
    has_holes = bool(thing.at("points").keys.get("interior"))
    if kind == "polygon" and size is not None and not has_holes and collector.options.masks:
        mask = fill_polygons([list(chain.from_iterable(points))], size)
    collector.add(image, label, around_points(points), thing, flags, mask)


def _around_bitmap(bitmap: Node) -> Corners:
    """Return the box around a mask: a compressed PNG, and the pixel that its first one lies on."""
    x, y = bitmap.get("origin", PointOfJson)
    try:
        packed = base64.b64decode(bitmap.get("data", Text), validate=True)
        png = zlib.decompressobj().decompress(packed, _HEAD)
        width, height = read_image_header(BytesIO(png)).size
    except (binascii.Error, zlib.error, ImageFileError) as error:
        raise bitmap.error(f"data is no bitmap: {error}") from None
    return (x, y, x + width, y + height)
