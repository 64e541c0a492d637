"""Read Label Studio's JSON: tasks with regions, whose numbers are percent of the image."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, ClassVar
from urllib.parse import urlsplit

from ...boxes.representation import Corners
from ...core.files import suffix_of
from ...core.validation import Expected
from ...storage.image_files import Size
from ..annotated_samples import AnnotationError, Samples, Units
from .annotation_values import IMAGE_SUFFIXES, Coordinate, validated
from .collected import Collected, around_points
from .image_names import decoded
from .json_sections import sections
from .reader_options import ReaderOptions

_List = Annotated[list[Any], Expected("a list")]
_Object = Annotated[dict[str, Any], Expected("an object")]
_Side = Annotated[int, Expected("a whole number, at least 1", strict=True, ge=1)]


@dataclass(frozen=True, slots=True)
class _Task:
    called: ClassVar[str] = "tasks"
    not_needed: ClassVar = frozenset(
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
    data: _Object
    annotations: _List | None = None
    completions: _List | None = None  # Before version 1


@dataclass(frozen=True, slots=True)
class _Annotation:
    called: ClassVar[str] = "annotations"
    not_needed: ClassVar = frozenset(
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
    result: _List
    was_cancelled: Any = None


@dataclass(frozen=True, slots=True)
class _Region:
    called: ClassVar[str] = "regions"
    not_needed: ClassVar = frozenset(
        ("id", "from_name", "to_name", "origin", "image_rotation", "score", "meta", "readonly")
    )
    type: Any
    value: _Object
    original_width: _Side | None = None
    original_height: _Side | None = None


_Sides = tuple[Coordinate, Coordinate, Coordinate, Coordinate, Coordinate]
_Points = Annotated[
    list[tuple[Coordinate, Coordinate]], Expected("a list of points [x, y]", min_length=1)
]


def read_label_studio(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read an export in Label Studio's own format.

    A task without an annotation was not annotated, and is left out; one with an empty result shows
    no object.  Rotated boxes and polygons become the upright boxes around them.

    Raises an AnnotationError if a task has annotations of several people.
    """
    collected = Collected(path, images, options)
    for element in sections(path):
        where = f"{path}, [{element.place}]"
        task: _Task = collected.record(_Task, element.value, where)
        done = [
            collected.record(_Annotation, value, f"{where}, annotations[{at}]")
            for at, value in enumerate(task.annotations or task.completions or ())
        ]
        valid = [annotation for annotation in done if not annotation.was_cancelled]
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


def _read_regions(task: _Task, annotation: _Annotation, where: str, collected: Collected) -> None:
    regions = [
        (collected.record(_Region, value, f"{where}, result[{at}]"), f"{where}, result[{at}]")
        for at, value in enumerate(annotation.result)
    ]
    sizes = {
        (region.original_width, region.original_height)
        for region, _ in regions
        if region.original_width and region.original_height
    }
    size: Any = sizes.pop() if len(sizes) == 1 else None
    image = collected.image(_image_name(task.data, where), where, size)
    for region, place in regions:
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


def _corners(region: _Region, size: Size | None, where: str, collected: Collected) -> Corners:
    """Return (x1, y1, x2, y2) in percent, or raise an AnnotationError."""
    value = region.value
    if region.type == "polygonlabels":
        return around_points(validated(_Points, value.get("points"), f"{where}, points"))
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
    collected.ledger.note("rotated boxes that became the upright boxes around them", where)
    return _around_turned((x, y, w, h), angle, size)


def _numbers(value: Mapping[str, Any], names: Sequence[str], where: str) -> _Sides:
    numbers: _Sides = validated(
        Annotated[_Sides, Expected(", ".join(names))],
        [value.get(name, 0 if name == "rotation" else None) for name in names],
        where,
    )
    return numbers


def _around_turned(sides: tuple[float, float, float, float], angle: float, size: Size) -> Corners:
    """Return the upright box around (x, y, w, h) in percent, turned about its upper left corner.

    >>> _around_turned((50, 50, 20, 10), 90, (100, 200))
    (30.0, 50.0, 50.0, 60.0)
    """
    x, y, w, h = sides
    width, height = size
    cosine = math.cos(math.radians(angle))
    sine = math.sin(math.radians(angle))
    points = []
    for right, down in ((0.0, 0.0), (w, 0.0), (0.0, h), (w, h)):
        across, along = right * width, down * height
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
            name = decoded(value).partition("?")[0]
            if suffix_of(PurePosixPath(name)) in IMAGE_SUFFIXES:
                names.append(name)
    if len(names) != 1:
        raise AnnotationError(f"{where}, data: {len(names)} names of images, should be one")
    # ImageNames looks for it without its folder, too.
    return urlsplit(names[0]).path.lstrip("/")
