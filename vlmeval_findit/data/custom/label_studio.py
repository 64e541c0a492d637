"""Read Label Studio's JSON: tasks with regions, whose numbers are percent of the image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from ...boxes import Corners
from ...core import Expected, suffix_of
from ...storage import Size
from ..annotated_samples import AnnotationError, Samples, Units
from .annotation_values import (
    IMAGE_SUFFIXES,
    Coordinate,
    ObjectOfJson,
    PointsOfJson,
    validated,
)
from .collector import Collector
from .image_names import decode_name
from .node import Node
from .reader_options import ReaderOptions
from .splits import names_a_split
from .upright_boxes import ROTATED, around_ellipse, around_points, around_turned_corner

_OF_TASKS = frozenset(
    (
        "id",
        "inner_id",
        "file_upload",
        "drafts",
        "predictions",
        "meta",
        "created_at",
        "updated_at",
        "updated_by",
        "project",
        "comment_count",
        "comment_authors",
        "unresolved_comment_count",
        "last_comment_updated_at",
        "total_annotations",
        "cancelled_annotations",
        "total_predictions",
        "completed_at",
        "overlap",
        "allow_skip",
    )
)
_OF_ANNOTATIONS = frozenset(
    (
        "id",
        "completed_by",
        "ground_truth",
        "created_at",
        "updated_at",
        "draft_created_at",
        "lead_time",
        "prediction",
        "result_count",
        "unique_id",
        "import_id",
        "last_action",
        "bulk_created",
        "task",
        "project",
        "updated_by",
        "parent_prediction",
        "created_ago",
        "parent_annotation",
        "last_created_by",
        "created_username",
    )
)
_OF_REGIONS = frozenset(
    ("id", "from_name", "to_name", "origin", "image_rotation", "score", "meta", "readonly")
)
_RECTANGLE = ("x", "y", "width", "height", "rotation")
_ELLIPSE = ("x", "y", "radiusX", "radiusY", "rotation")
_Sides = tuple[Coordinate, Coordinate, Coordinate, Coordinate, Coordinate]


def read_label_studio(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read an export in the JSON of Label Studio.

    A task without an annotation was not annotated, and is left out; one with an empty result shows
    no object.  Rotated boxes, ellipses and polygons become the upright boxes around them.

    Raises an AnnotationError if a task has annotations of several people.
    """
    collector = Collector(path, images, options, Units.PERCENT)
    for _, task in collector.json_elements(path):
        task.rest("tasks", {"data", "annotations", "completions"}, _OF_TASKS)
        data = task.get("data", ObjectOfJson)
        # Before version 1 they were completions.
        key = "annotations" if task.keys.get("annotations") else "completions"
        valid = []
        for annotation in task.each(key):
            annotation.rest("annotations", {"result", "was_cancelled"}, _OF_ANNOTATIONS)
            if not annotation.keys.get("was_cancelled"):
                valid.append(annotation)
        if len(valid) > 1:
            raise task.error(
                f"{len(valid)} annotations, of one image by several people: leave one in each task"
            )
        if not valid:
            collector.ledger.leave_out("tasks that nobody annotated", str(task))
            continue
        if "result" not in valid[0].keys:
            raise valid[0].error("result is missing")
        _read_regions(task, data, valid[0], collector)
    return collector.samples()


def _read_regions(
    task: Node, data: Mapping[str, Any], annotation: Node, collector: Collector
) -> None:
    regions = []
    sizes = set()
    for region in annotation.each("result"):
        if region.keys.get("type") == "relation":
            collector.ledger.not_needed("relations between regions", str(region))
            continue
        regions.append(region)
        if region.size is not None:
            sizes.add(region.size)
    size = sizes.pop() if len(sizes) == 1 else None
    splits = {key: value for key, value in data.items() if _is_split(value)}
    image = collector.image(_image_name(task, data), task, size, splits)
    # A region of several parts has an id: its box, its label, the text that it shows.
    labelled = {region.keys.get("id") for region in regions if _labels(region) is not None}
    for region in regions:
        read = {"type", "value", "original_width", "original_height"}
        flags = region.flags("regions", read, _OF_REGIONS)
        labels = _labels(region)
        if labels is None:
            known = region.keys.get("id") in labelled - {None}
            note = collector.ledger.not_needed if known else collector.ledger.not_read
            note(f"regions of the type {region.keys.get('type')}", str(region))
            continue
        if len(labels) > 1:
            raise region.error(f"{len(labels)} labels, should be one")
        label = str(labels[0]) if labels else ""
        try:
            corners = _corners(region, size)
        except AnnotationError as error:
            why = str(error).removeprefix(f"{region}, ")
            collector.add_boxless(image, label, why, region)
            continue
        if label.strip():
            collector.add(image, label, corners, region, flags)
        else:
            collector.add_boxless(image, label, "has no label", region)


def _is_split(value: Any) -> bool:
    return isinstance(value, str) and names_a_split(value)


def _labels(region: Node) -> Sequence[Any] | None:
    """Return the labels of a region; None: it is of a type without labels."""
    kind = region.get("type", Any)
    labels = region.get("value", ObjectOfJson).get(str(kind))
    if "labels" not in str(kind):
        return None
    if labels is None:
        return ()
    return labels if isinstance(labels, list) else None


def _corners(region: Node, size: Size | None) -> Corners:
    """Return (x1, y1, x2, y2) in percent, or raise an AnnotationError."""
    value = region.value["value"]
    kind = region.value["type"]
    # The type "labels" is any shape.
    if kind == "polygonlabels" or (kind == "labels" and "points" in value):
        stated = validated(PointsOfJson, value.get("points"), f"{region}, points")
        return around_points(stated)
    if kind == "ellipselabels" or (kind == "labels" and "radiusX" in value):
        x, y, rx, ry, angle = _numbers(value, _ELLIPSE, region)
        if angle % 180 == 0:
            return around_ellipse(x, y, rx, ry)
        # Percent of the width and of the height are not equal: turned in pixels
        width, height = _size_of(size, region)
        x1, y1, x2, y2 = around_ellipse(x * width, y * height, rx * width, ry * height, angle)
        return (x1 / width, y1 / height, x2 / width, y2 / height)
    if kind not in ("rectanglelabels", "labels"):
        raise AnnotationError(f"{region}, type: {kind} has no box")
    x, y, w, h, angle = _numbers(value, _RECTANGLE, region)
    if angle % 360:
        return around_turned_corner((x, y, w, h), angle, _size_of(size, region))
    if w < 0 or h < 0:
        region.ledger.note("boxes that were drawn to the left or upwards", str(region))
    return (min(x, x + w), min(y, y + h), max(x, x + w), max(y, y + h))


def _size_of(size: Size | None, region: Node) -> Size:
    """Return the size of a turned region's image, and note that it is turned."""
    if size is None:
        raise AnnotationError(f"{region}, rotation: without original_width and original_height")
    region.ledger.note(ROTATED, str(region))
    return size


def _numbers(value: Mapping[str, Any], names: Sequence[str], where: Node) -> _Sides:
    stated = {"rotation": 0, **value}
    expected = Annotated[_Sides, Expected(", ".join(names))]
    numbers: _Sides = validated(expected, [stated.get(name) for name in names], where)
    return numbers


def _image_name(task: Node, data: Mapping[str, Any]) -> str:
    """Return the image of a task: /data/upload/1/a.png, or …?d=folder/a.png."""
    names = []
    for value in data.values():
        if isinstance(value, str):
            name = decode_name(value).partition("?")[0]
            if suffix_of(PurePosixPath(name)) in IMAGE_SUFFIXES:
                names.append(name)
    if len(names) != 1:
        raise AnnotationError(f"{task}, data: {len(names)} names of images, should be one")
    # ImageNames looks for it without its folder, too.
    return names[0].lstrip("/")
