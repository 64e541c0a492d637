"""Read COCO instances (``instances.json``): boxes are [x, y, width, height] in pixels.

Flags that say what does not count are honoured: ``iscrowd``, ``ignore``, and LVIS's lists of
classes that were annotated exhaustively.  CVAT's rotated boxes become the upright boxes around
them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Annotated, Any
from urllib.parse import urlsplit

from ...boxes import Corners
from ...core import Expected
from ...marks import PackedMask, RLEError
from ..annotated_samples import (
    AnnotatedBox,
    AnnotationError,
    Samples,
    Units,
)
from ..ledger import Ledger
from .annotation_values import SidesOfJson, segmentation_of_coco, validated
from .coco_records import (
    ATTRIBUTES_NOT_NEEDED,
    FILE_KEYS,
    FLAGS,
    CocoAnnotation,
    CocoCategory,
    CocoImage,
    Flag,
)
from .detection import Detections, detection_samples
from .image_names import ImageNames
from .json_records import read_record
from .json_sections import Element, sections
from .polygons import Outlines, fill_all
from .reader_options import ReaderOptions
from .upright_boxes import ROTATED, around_turned

_REQUIRED = ("images", "categories", "annotations")

# --- a file ---------------------------------------------------------------------------------------


def read_coco(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read a COCO instances file with its masks.

    Roboflow writes a class 0 that is no class but the project, and often has a class's name: it is
    left out if no box has it.  The file is read twice, an element at a time: memory holds its
    boxes, not its text.

    Args:
        path: the file.
        images: the folder that its file names are relative to.
        options: what the file does not tell.

    Raises:
        AnnotationError: it is no COCO file, or an annotation names an unknown image or class.
    """
    options = options or ReaderOptions()
    ledger = Ledger()
    head = _read_head(path, ImageNames(images, ledger), ledger)
    reader = _AnnotationReader(path, head, ledger, options)
    for element in sections(path):
        if element.key == "annotations" and element.place is not None:
            reader.read(element)
            options.progress("annotations", 1)
    reader.finish()
    detections = Detections(
        source=path,
        images=images,
        sizes={head.names[key]: image.size for key, image in head.images.items()},
        objects=reader.objects,
        classes=[row.name for row in head.categories.values()],
        not_exhaustive=head.labels_by_image(lambda image: image.not_exhaustive_category_ids),
        absent=head.absent(),
        image_ids={head.names[key]: image.id for key, image in head.images.items()},
        category_ids={row.name: row.id for row in head.categories.values()},
        areas=reader.areas,
    )
    return detection_samples(detections, options, ledger)


@dataclass(frozen=True, slots=True)
class _Head:
    """The images and classes of a file."""

    images: Mapping[int | str, CocoImage]
    categories: Mapping[int | str, CocoCategory]
    names: Mapping[int | str, str]  # Of the images, as they lie in their folder

    def labels_by_image(
        self, ids_of: Callable[[CocoImage], Sequence[int | str] | None]
    ) -> dict[str, frozenset[str]]:
        """Return the classes that a list of ids names, by image."""
        labels = {}
        for key, image in self.images.items():
            ids = [number for number in ids_of(image) or () if number in self.categories]
            if ids:
                labels[self.names[key]] = frozenset(self.categories[number].name for number in ids)
        return labels

    def absent(self) -> dict[str, list[str]] | None:
        """Return the classes that are known to be absent, by image; None: all without a box."""
        if all(image.neg_category_ids is None for image in self.images.values()):
            return None
        labels = self.labels_by_image(lambda image: image.neg_category_ids)
        return {name: sorted(of_image) for name, of_image in labels.items()}


def _read_head(path: Path, names: ImageNames, ledger: Ledger) -> _Head:
    """Read images and classes, and account for all other keys of the file."""
    images: dict[int | str, CocoImage] = {}
    categories: dict[int | str, CocoCategory] = {}
    used: set[object] = set()
    keys: dict[str, None] = {}
    for element in sections(path):
        keys[element.key] = None
        where = f"{path}, {element.key}[{element.place}]"
        if element.key in _REQUIRED and element.place is None:
            if element.value != []:
                raise AnnotationError(f"{path}, {element.key}: should be a list")
        elif element.key == "images":
            _add(images, read_record(CocoImage, element.value, where, ledger), where)
        elif element.key == "categories":
            _add(categories, read_record(CocoCategory, element.value, where, ledger), where)
        elif element.key == "annotations" and isinstance(element.value, dict):
            # Unhashable ids are refused when annotations are read.
            used.add(str(element.value.get("category_id")))
    ledger.keys("the file", keys.keys() - _REQUIRED, FILE_KEYS, str(path))
    missing = [key for key in _REQUIRED if key not in keys]
    if missing:
        raise AnnotationError(
            f"{path}: no {' and no '.join(missing)}; a COCO file has {', '.join(_REQUIRED)}"
        )
    for row in images.values():
        if row.size is None:
            ledger.note("images without a stated size: they are measured", f"{path}: {row.id}")
    placeholder = categories.get(0)
    if placeholder is not None and placeholder.supercategory == "none" and "0" not in used:
        ledger.leave_out(
            "class 0 that no box has: Roboflow's project", f"{path}: {placeholder.name}"
        )
        del categories[0]
    _refuse_equal_names(path, "categories", {key: row.name for key, row in categories.items()})
    image_names = {key: names.find(_file_name(row, path), str(path)) for key, row in images.items()}
    _refuse_equal_names(path, "images", image_names)
    return _Head(images, categories, image_names)


def _add(rows: dict[int | str, Any], row: Any, where: str) -> None:
    if row.id in rows:
        raise AnnotationError(f"{where}: duplicate id {row.id!r}")
    rows[row.id] = row


def _refuse_equal_names(path: Path, what: str, names: Mapping[int | str, str]) -> None:
    ids: dict[str, int | str] = {}
    for key, name in names.items():
        before = ids.setdefault(name, key)
        if before != key:
            raise AnnotationError(
                f"{path}, {what}: {before!r} and {key!r} have one name, {name!r}: whose boxes are "
                "meant? Name them differently, or join them in the file"
            )


def _file_name(row: CocoImage, path: Path) -> str:
    if row.file_name:
        return row.file_name
    if not row.coco_url:
        raise AnnotationError(f"{path}, images: the image {row.id!r} has no file_name")
    # …/val2017/000000397133.jpg: with its folder, or without.
    parts = PurePosixPath(urlsplit(row.coco_url).path).parts
    return "/".join(parts[-2:])


# --- annotations ----------------------------------------------------------------------------------


# Masks that are filled at once
OBJECTS_AT_ONCE = 100


class _AnnotationReader:
    """Reads annotations one after the other."""

    def __init__(self, path: Path, head: _Head, ledger: Ledger, options: ReaderOptions) -> None:
        self._path = path
        self._head = head
        self._ledger = ledger
        self._masks = options.masks
        self._is_in_pixels = options.units in (None, Units.PIXELS)
        # Boxes around their masks: as [x, y, width, height], and better as corners
        self._fit_sides = self._fit_corners = 0
        self.objects: list[tuple[str, AnnotatedBox]] = []
        # Masks that are not filled yet, with the place of their object and its bbox
        self._outlines: list[tuple[Outlines, int, Any]] = []
        # The area that the file states, by image, label and corners: masks have smaller ones.
        self.areas: dict[tuple[str, str, Corners], float] = {}

    def read(self, element: Element) -> None:
        """Read an object; masks of polygons are filled many at once."""
        where = f"{self._path}, annotations[{element.place}]"
        entry = read_record(CocoAnnotation, element.value, where, self._ledger)
        image = _known(self._head.images, entry.image_id, f"{where}, image_id")
        label = _known(self._head.categories, entry.category_id, f"{where}, category_id").name
        name = self._head.names[entry.image_id]
        corners, problem = self._corners(entry, where)
        self._note_area(entry, (name, label, corners), where)
        ignored = self._ignored(entry, where)
        box = AnnotatedBox(corners, where, label, 0, ignored, problem=problem)
        self.objects.append((name, box))
        if not self._masks:
            if entry.segmentation:
                self._ledger.leave_out("masks: --no-masks", where)
            return
        stated = segmentation_of_coco(entry.segmentation, image.size, where)
        if isinstance(stated, Outlines):
            self._outlines.append((stated, len(self.objects) - 1, entry.bbox))
        elif stated is not None:
            self._add_mask(stated, len(self.objects) - 1, entry.bbox)
        if len(self._outlines) == OBJECTS_AT_ONCE:
            self._fill()

    def finish(self) -> None:
        """Fill what is left, and refuse a file whose masks say that bbox is [x1, y1, x2, y2]."""
        self._fill()
        if self._fit_corners > self._fit_sides:
            raise AnnotationError(
                f"{self._path}, annotations: bbox should be [x, y, width, height], but the masks "
                f"of {self._fit_corners} annotations fit [x1, y1, x2, y2]: convert them"
            )

    def _fill(self) -> None:
        masks = fill_all([outlines for outlines, _, _ in self._outlines])
        for mask, (_, at, bbox) in zip(masks, self._outlines, strict=True):
            if mask is not None:
                self._add_mask(mask, at, bbox)
        self._outlines = []

    def _add_mask(self, mask: PackedMask, at: int, bbox: Any) -> None:
        name, box = self.objects[at]
        self.objects[at] = (name, replace(box, mask=mask))
        self._compare_mask(bbox, box.corners, mask, box.where)

    def _ignored(self, entry: CocoAnnotation, where: str) -> str:
        """Return why an object does not count; empty: it does."""
        attributes = entry.attributes if isinstance(entry.attributes, dict) else {}
        for flag, why in FLAGS.items():
            stated = attributes.get(flag)
            place = f"{where}, attributes, {flag}"
            if getattr(entry, flag, 0) or validated(Flag, stated, place):
                return why
        return ""

    def _corners(self, entry: CocoAnnotation, where: str) -> tuple[Corners, str]:
        """Return (x1, y1, x2, y2), and why they cannot be used."""
        try:
            x, y, w, h = validated(SidesOfJson, entry.bbox, f"{where}, bbox")
        except AnnotationError as error:
            return (math.nan,) * 4, str(error).removeprefix(f"{where}, ")
        angle = self._angle(entry, where)
        if entry.rotation:
            return (x, y, x + w, y + h), "has a rotation, which is not read: state an upright box"
        if angle:
            self._ledger.note(ROTATED, where)
        return around_turned((x, y, x + w, y + h), angle), ""

    def _angle(self, entry: CocoAnnotation, where: str) -> float:
        """Return the angle in degrees by which CVAT turned a box, clockwise about its centre."""
        if not isinstance(entry.attributes, dict):
            return 0.0
        rest = entry.attributes.keys() - {"rotation", *FLAGS}
        self._ledger.keys("attributes of annotations", rest, ATTRIBUTES_NOT_NEEDED, where)
        angle: float = validated(
            _Angle, entry.attributes.get("rotation") or 0, f"{where}, rotation"
        )
        return angle % 360

    def _note_area(self, entry: CocoAnnotation, key: tuple[str, str, Corners], where: str) -> None:
        area = entry.area
        if isinstance(area, bool) or not isinstance(area, int | float) or not math.isfinite(area):
            return
        x1, y1, x2, y2 = key[2]
        of_box = (x2 - x1) * (y2 - y1)
        if area > 0 and not math.isclose(area, of_box, rel_tol=1e-3):
            self.areas[key] = float(area)
        if area > 1.05 * of_box + 1 and self._is_in_pixels and not self._angle(entry, where):
            self._ledger.note("annotations whose area is larger than their box", where)

    def _compare_mask(
        self, bbox: Any, corners: Corners, mask: PackedMask | None, where: str
    ) -> None:
        """Note a box that is not the box around its mask; invalid masks are refused later."""
        extent = None
        if mask is not None and self._is_in_pixels:
            with suppress(RLEError):
                extent = mask.extent
        if extent is None or not math.isfinite(corners[0]):
            return
        as_sides = _distance(corners, extent)
        as_corners = _distance(bbox, extent)
        margin = max(2.0, (extent[2] - extent[0]) / 10, (extent[3] - extent[1]) / 10)
        if as_corners < as_sides and as_corners <= margin:
            self._fit_corners += 1
        elif as_sides <= margin:
            self._fit_sides += 1
        if as_sides > margin:
            self._ledger.note("boxes that are not the boxes around their masks", where)


_Angle = Annotated[float, Expected("an angle in degrees", strict=True, allow_inf_nan=False)]


def _distance(box: Sequence[float], other: Corners) -> float:
    """Return by how much the corner of one box that is farthest from the other's is apart."""
    return max(abs(here - there) for here, there in zip(box, other, strict=True))


def _known(rows: Mapping[int | str, Any], key: int | str, where: str) -> Any:
    if key in rows:
        return rows[key]
    other: int | str = str(key)
    if isinstance(key, str) and key.isdecimal():
        other = int(key)
    if other in rows:
        raise AnnotationError(
            f"{where}: unknown id {key!r}; {other!r} exists: write both as the same type"
        )
    raise AnnotationError(f"{where}: unknown id {key!r}")
