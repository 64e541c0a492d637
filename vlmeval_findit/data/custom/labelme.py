"""Read labelme's JSON: a file for each image, with rectangles, polygons and circles in pixels."""

from __future__ import annotations

import base64
import binascii
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path, PurePosixPath

from ...boxes import Corners
from ...core import Text
from ...marks import PackedMask
from ...storage import Size
from ..annotated_samples import Samples
from ..ledger import Ledger
from .annotation_values import PointsOfJson
from .collector import Collector, ListedFile, listed_files
from .node import Node, read_json
from .polygons import fill_polygons
from .reader_options import ReaderOptions
from .upright_boxes import ROTATED, around_ellipse, around_points

_OF_FILES = frozenset(("version", "imageData", "lineColor", "fillColor", "flags", "text"))
_OF_SHAPES = frozenset(("line_color", "fill_color"))
_EMPTY = (None, "")  # What newer versions write of a key that a shape does not have
# Shapes that have a box; others are points and lines
_BOXED = ("rectangle", "polygon", "circle", "mask", "rotation", "oriented_rectangle")


def read_labelme(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read a file, or all JSON files below a folder.

    A polygon becomes the box around it, and its mask; polygons of one label and one ``group_id``
    are one object.  Points and lines have no box.

    Raises an AnnotationError for a file of another kind.
    """
    return _read_files(path, images, options, None)


def read_labelme_inside(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read the same, with the images that lie in the files: ``imageData``.

    Raises an AnnotationError for a file without one.
    """
    inside: dict[str, Path] = {}
    samples = _read_files(path, images, options, inside)
    samples.ledger.note("images that lie in their JSON files", str(path), len(inside))
    return replace(samples, images=_ImagesInside(inside, (options or ReaderOptions()).encoding))


@dataclass(frozen=True, slots=True)
class _ImagesInside:
    """Images that lie in files of labelme."""

    files: Mapping[str, Path]  # By the name of the image
    encoding: str | None  # Of the files, as the user states it
    missing: tuple[str, ...] = ()

    def unpack(self, folder: Path) -> None:
        """Write every image as a file, or raise an AnnotationError."""
        for name, path in self.files.items():
            data = read_json(path, Ledger(), self.encoding).at("imageData")
            image = folder / name
            image.parent.mkdir(parents=True, exist_ok=True)
            try:
                image.write_bytes(base64.b64decode(data.read(Text), validate=True))
            except binascii.Error as error:
                raise data.error(f"is no image: {error}") from None


def _read_files(
    path: Path, images: Path, options: ReaderOptions | None, inside: dict[str, Path] | None
) -> Samples:
    """Read files; where ``inside`` is given, their images are those in them: they are added."""
    collector = Collector(path, images, options)
    files = [ListedFile(path, path.stem)]
    if path.is_dir():
        files = collector.files_of_split(
            path, listed_files(path, ".json", collector.ledger, "JSON file"), "JSON file"
        )
    for file in files:
        _read_file(file, images, collector, inside)
    collector.ledger.read("JSON files", len(files))
    return collector.samples()


def _read_file(
    file: ListedFile, images: Path, collector: Collector, inside: dict[str, Path] | None
) -> None:
    root = collector.json(file.path)
    read = {"shapes", "imagePath", "imageWidth", "imageHeight"}
    splits = root.rest("files", read, _OF_FILES)
    written = root.find("imagePath", Text) or file.path.stem
    size = root.size
    if inside is None:
        stated = _image_names(written, file.path, images)
        image = collector.image_of_file(file, stated, "imagePath", "JSON file", size, splits)
    else:
        if not root.keys.get("imageData"):
            raise root.error("imageData is missing")
        image = f"{file.stem}{PurePosixPath(written).suffix or '.png'}"
        collector.packed_image(image, file.path, size, splits)
        inside[image] = file.path
    if "shapes" not in root.keys:
        raise root.error("shapes is missing")
    groups: dict[object, list[Node]] = {}
    for at, shape in enumerate(root.each("shapes")):
        # As in old files
        kind = shape.find("shape_type", Text) or "polygon"
        group = shape.keys.get("group_id")
        key = at if group is None or kind != "polygon" else (shape.get("label", Text), str(group))
        groups.setdefault(key, []).append(shape)
    for shapes in groups.values():
        _add(shapes, image, size, collector)


def _image_names(written: str, path: Path, images: Path) -> list[str]:
    """Return what imagePath may mean: relative to the images, or to the JSON file."""
    stated = written.replace("\\", "/")
    names = [stated]
    from_file = Path(os.path.normpath(path.absolute().parent / stated))
    if from_file.is_relative_to(images.absolute()):
        names.append(from_file.relative_to(images.absolute()).as_posix())
    return names


def _flags(shape: Node) -> dict[str, object]:
    """Return the flags of a shape; of its own ``flags`` only those that are set are noted."""
    read = {"label", "points", "shape_type", "group_id"}
    for name in ("description", "mask"):
        if shape.keys.get(name) in _EMPTY:
            read.add(name)
    set_by_user = shape.at("flags")
    if isinstance(set_by_user.value, dict):
        set_by_user.value = {name: value for name, value in set_by_user.value.items() if value}
    flags = shape.flags(
        "shapes", read | {"flags"}, _OF_SHAPES, {"attributes": ("attributes of shapes", set())}
    )
    return flags | (set_by_user.flags("flags of shapes", set()) if set_by_user.value else {})


def _add(shapes: list[Node], image: str, size: Size | None, collector: Collector) -> None:
    """Note the object of one shape, or of several polygons."""
    first = shapes[0]
    flags: dict[str, object] = {}
    for shape in shapes:
        flags |= _flags(shape)
    label = first.get("label", Text)
    kind = first.find("shape_type", Text) or "polygon"
    if kind not in _BOXED:
        collector.add_boxless(image, label, f"is a {kind}, which has no box", first)
        return
    polygons = [shape.at("points").read(PointsOfJson) for shape in shapes]
    if len(shapes) > 1:
        what = "polygons with one group_id that are one object"
        collector.ledger.note(what, str(first), len(shapes))
    points = list(chain.from_iterable(polygons))
    corners: Corners = around_points(points)
    if kind == "circle" and len(points) == 2:
        (x, y), edge = points
        radius = math.dist((x, y), edge)
        corners = around_ellipse(x, y, radius, radius)
    if kind in ("rotation", "oriented_rectangle"):
        collector.ledger.note(ROTATED, str(first))
    mask: PackedMask | None = None
    if kind == "polygon" and size is not None and collector.options.masks:
        mask = fill_polygons([list(chain.from_iterable(polygon)) for polygon in polygons], size)
    collector.add(image, label, corners, first, flags, mask)
