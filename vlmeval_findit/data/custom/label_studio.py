"""Read Label Studio's JSON: tasks with regions, whose numbers are percent of the image."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any
from urllib.parse import urlsplit

from ...boxes import Corners
from ...core import Count, Expected, suffix_of
from ...storage import Size
from ..annotated_samples import AnnotationError, Samples, Units
from .annotation_values import (
    IMAGE_SUFFIXES,
    Coordinate,
    ListOfJson,
    ObjectOfJson,
    PointsOfJson,
    validated,
)
from .collected import Collected
from .image_names import decode_name
from .json_records import JsonRecord
from .json_sections import sections
from .reader_options import ReaderOptions
from .upright_boxes import ROTATED, around_points


@dataclass(frozen=True, slots=True)
class _StudioTask(JsonRecord):
    called = "tasks"
    not_needed = frozenset(
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
    data: ObjectOfJson
    annotations: ListOfJson | None = None
    completions: ListOfJson | None = None  # Before version 1


@dataclass(frozen=True, slots=True)
class _StudioAnnotation(JsonRecord):
    called = "annotations"
    not_needed = frozenset(
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
    result: ListOfJson
    was_cancelled: Any = None


@dataclass(frozen=True, slots=True)
class _StudioRegion(JsonRecord):
    called = "regions"
    not_needed = frozenset(
        ("id", "from_name", "to_name", "origin", "image_rotation", "score", "meta", "readonly")
    )
    type: Any
    value: ObjectOfJson
    original_width: Count | None = None
    original_height: Count | None = None


_Sides = tuple[Coordinate, Coordinate, Coordinate, Coordinate, Coordinate]


def read_label_studio(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read an export in the JSON of Label Studio.

    A task without an annotation was not annotated, and is left out; one with an empty result shows
    no object.  Rotated boxes and polygons become the upright boxes around them.

    Raises an AnnotationError if a task has annotations of several people.
    """
    collected = Collected(path, images, options)
    for element in sections(path):
        where = f"{path}, [{element.place}]"
        task = collected.record(_StudioTask, element.value, where)
        stated = task.annotations or task.completions or ()
        done = collected.records(_StudioAnnotation, stated, f"{where}, annotations")
        valid = [annotation for _, annotation in done if not annotation.was_cancelled]
        if len(valid) > 1:
            raise AnnotationError(
                f"{where}: {len(valid)} annotations, of one image by several people: leave one in "
                "each task"
            )
        if not valid:
            collected.ledger.leave_out("tasks that nobody annotated", where)
            continue
        _read_regions(task, valid[0], where, collected)
    return collected.samples(Units.PERCENT)


def _read_regions(
    task: _StudioTask, annotation: _StudioAnnotation, where: str, collected: Collected
) -> None:
    regions = list(collected.records(_StudioRegion, annotation.result, f"{where}, result"))
    sizes = {
        (region.original_width, region.original_height)
        for _, region in regions
        if region.original_width and region.original_height
    }
    size: Any = sizes.pop() if len(sizes) == 1 else None
    image = collected.image(_image_name(task.data, where), where, size)
    for place, region in regions:
        labels = region.value.get(str(region.type))
        if not isinstance(labels, list) or "labels" not in str(region.type):
            collected.ledger.not_read(f"regions of the type {region.type}", place)
            continue
        if len(labels) != 1:
            raise AnnotationError(f"{place}: {len(labels)} labels, should be one")
        try:
            corners = _corners(region, size, place, collected)
        except AnnotationError as error:
            why = str(error).removeprefix(f"{place}, ")
            collected.add_unusable(image, str(labels[0]), why, place)
        else:
            collected.add(image, str(labels[0]), corners, place)


def _corners(region: _StudioRegion, size: Size | None, where: str, collected: Collected) -> Corners:
    """Return (x1, y1, x2, y2) in percent, or raise an AnnotationError."""
    value = region.value
    if region.type == "polygonlabels":
        return around_points(validated(PointsOfJson, value.get("points"), f"{where}, points"))
    if region.type == "ellipselabels":
        names: Sequence[str] = ("x", "y", "radiusX", "radiusY", "rotation")
        x, y, rx, ry, angle = _numbers(value, names, where)
        if angle % 180:
            raise AnnotationError(f"{where}, rotation: turned ellipses are not read")
        return (x - rx, y - ry, x + rx, y + ry)
    if region.type != "rectanglelabels":
        raise AnnotationError(f"{where}, type: {region.type} has no box")
    x, y, w, h, angle = _numbers(value, ("x", "y", "width", "height", "rotation"), where)
    if angle % 360 == 0:
        return (x, y, x + w, y + h)
    if size is None:
        raise AnnotationError(f"{where}, rotation: without original_width and original_height")
    collected.ledger.note(ROTATED, where)
    return _around_turned_corner((x, y, w, h), angle, size)


def _numbers(value: Mapping[str, Any], names: Sequence[str], where: str) -> _Sides:
    stated = {"rotation": 0, **value}
    expected = Annotated[_Sides, Expected(", ".join(names))]
    numbers: _Sides = validated(expected, [stated.get(name) for name in names], where)
    return numbers


def _around_turned_corner(
    sides: tuple[float, float, float, float], angle: float, size: Size
) -> Corners:
    """Return the upright box around (x, y, w, h) in percent, turned about its upper left corner.

    >>> _around_turned_corner((50, 50, 20, 10), 90, (100, 200))
    (30.0, 50.0, 50.0, 60.0)
    """
    x, y, w, h = sides
    width, height = size
    cosine = math.cos(math.radians(angle))
    sine = math.sin(math.radians(angle))
    points = []
    for right, down in ((0.0, 0.0), (w, 0.0), (0.0, h), (w, h)):
        across = right * width
        along = down * height
        points.append(
            (
                round(x + (across * cosine - along * sine) / width, 9),
                round(y + (across * sine + along * cosine) / height, 9),
            )
        )
    return around_points(points)


def _image_name(data: Mapping[str, Any], where: str) -> str:
    """Return the image of a task: /data/upload/1/a.png, or …?d=folder/a.png."""
    names = []
    for value in data.values():
        if isinstance(value, str):
            name = decode_name(value).partition("?")[0]
            if suffix_of(PurePosixPath(name)) in IMAGE_SUFFIXES:
                names.append(name)
    if len(names) != 1:
        raise AnnotationError(f"{where}, data: {len(names)} names of images, should be one")
    # ImageNames looks for it without its folder, too.
    return urlsplit(names[0]).path.lstrip("/")
