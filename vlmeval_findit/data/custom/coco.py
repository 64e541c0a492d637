"""Read COCO instances (``instances.json``): boxes are [x, y, width, height] in pixels.

Flags that say what does not count are honoured: ``iscrowd``, ``ignore``, and LVIS's lists of
classes that were annotated exhaustively.  CVAT's rotated boxes become the upright boxes around
them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from math import isclose, isnan
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, TypedDict
from urllib.parse import urlsplit

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from ...boxes import Corners
from ...core import Expected, quoted_value
from ...marks import PackedMask, RLEError
from ..annotated_samples import AnnotationError, BoxForm, RenamedClass, Samples, Units
from .annotation_values import (
    CornersOfJson,
    SidesOfJson,
    box_around_polygons,
    segmentation_of_coco,
    validated,
    validated_together,
)
from .class_rules import check_class_names, label_text
from .coco_ids import number_and_text
from .coco_records import (
    ATTRIBUTES_NOT_NEEDED,
    FILE_KEYS,
    NOT_NEEDED,
    CocoAnnotation,
    CocoCategory,
    CocoImage,
    Id,
)
from .collector import Collector
from .json_sections import parts
from .node import Node
from .number_readings import array_of
from .polygons import Outlines, fill_outlines
from .reader_options import ReaderOptions
from .uncounted_objects import meaning_of_flag
from .upright_boxes import ROTATED, around_turned

_REQUIRED = ("images", "categories", "annotations")
_IMAGE_KEYS = frozenset(each.name for each in fields(CocoImage))
_CATEGORY_KEYS = frozenset(each.name for each in fields(CocoCategory))
_ANNOTATION_KEYS = frozenset(each.name for each in fields(CocoAnnotation))

# --- a file ---------------------------------------------------------------------------------------


def read_coco(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read a COCO instances file with its masks.

    Roboflow writes a class 0 that is no class but the project, and often has a class's name: it is
    left out if no box has it.  The file is read twice, a part at a time: memory holds its boxes,
    not its text.

    Args:
        path: the file.
        images: the folder that its file names are relative to.
        options: what the file does not tell.

    Raises:
        AnnotationError: it is no COCO file, or an annotation names an unknown image or class.
    """
    collector = Collector(path, images, options, form=BoxForm.SIDES)
    head = _read_head(path, collector)
    reader = _AnnotationReader(path, head, collector)
    for key, place, values in parts(path, collector.options.encoding):
        if key == "annotations" and place is not None:
            reader.read(place, values)
            collector.options.progress("annotations", len(values))
    reader.finish()
    category_ids: dict[str, int | str] = {}
    joined = []  # Classes whose names differ in blanks only
    for row in head.categories.values():
        if category_ids.setdefault(row.name, row.id) != row.id:
            joined.append(RenamedClass(row.name, row.id, row.name))
    return collector.samples(
        classes=list(category_ids),
        not_exhaustive=head.labels_by_image(lambda image: image.not_exhaustive_category_ids),
        absent=head.absent(),
        image_ids={head.names[key]: image.id for key, image in head.images.items()},
        category_ids=category_ids,
        renamed_classes=tuple(joined),
        areas=reader.areas,
    )


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


class _OfClass(TypedDict, total=False):
    """What the head needs of an annotation."""

    category_id: Any


def _read_head(path: Path, collector: Collector) -> _Head:
    """Read images and classes, and account for all other keys of the file."""
    ledger = collector.ledger
    images: dict[int | str, CocoImage] = {}
    splits: dict[int | str, dict[str, str]] = {}
    categories: dict[int | str, CocoCategory] = {}
    has_boxes_of_0 = False
    keys: dict[str, None] = {}
    for section, first, values in parts(
        path, collector.options.encoding, {"annotations": _OfClass}
    ):
        keys[section] = None
        if section in _REQUIRED and first is None:
            if values != [[]]:
                raise AnnotationError(f"{path}, {section}: should be a list")
        elif section == "annotations":
            ids = [each.get("category_id") for each in values if isinstance(each, dict)]
            has_boxes_of_0 |= 0 in ids or "0" in ids
        elif section == "images":
            for value, where, image in _rows(CocoImage, values, f"{path}, images", first):
                _add(images, image, where)
                if value.keys() - _IMAGE_KEYS:
                    splits[image.id] = Node(value, where, ledger).rest(
                        "images", _IMAGE_KEYS, NOT_NEEDED["images"]
                    )
        elif section == "categories":
            for value, where, category in _rows(CocoCategory, values, f"{path}, categories", first):
                _add(categories, category, where)
                rest = value.keys() - _CATEGORY_KEYS
                ledger.keys("categories", rest, NOT_NEEDED["categories"], where)
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
    if placeholder is not None and placeholder.supercategory == "none" and not has_boxes_of_0:
        ledger.leave_out(
            "class 0 that no box has: Roboflow's project", f"{path}: {placeholder.name}"
        )
        del categories[0]
    _refuse_mixed_ids(images, "image", path)
    _refuse_mixed_ids(categories, "category", path)
    names_of_classes = {key: row.name for key, row in categories.items()}
    check_class_names(names_of_classes, f"{path}, categories", ledger)
    classes = {key: replace(row, name=label_text(row.name)) for key, row in categories.items()}
    names = {}
    for key, row in images.items():
        place = f"{path}, images: {key!r}"
        names[key] = collector.image(_file_name(row, path), place, row.size, splits.get(key))
    return _Head(images, classes, names)


def _rows(
    kind: Any, values: list[Any], list_of: str, first: int | None
) -> Iterator[tuple[Any, str, Any]]:
    """Yield values of a list, their places and what they are as a type."""
    together = validated_together(kind, values)
    for at, value in enumerate(values):
        where = f"{list_of}[{(first or 0) + at}]"
        yield value, where, validated(kind, value, where) if together is None else together[at]


def _add(rows: dict[int | str, Any], row: Any, where: str) -> None:
    if row.id in rows:
        raise AnnotationError(f"{where}: duplicate id {row.id!r}")
    rows[row.id] = row


def _refuse_mixed_ids(ids: Collection[int | str], what: str, path: Path) -> None:
    """Refuse ids that are numbers and texts."""
    both = number_and_text(ids)
    if both is not None:
        number, text = both
        raise AnnotationError(
            f"{path}: {what} ids are numbers, as {number}, and texts, as {text!r}, and pycocotools "
            f"reads no such file. Write them all as numbers, or all as texts, also in {what}_id"
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

    def __init__(self, path: Path, head: _Head, collector: Collector) -> None:
        options = collector.options
        self._path = path
        self._head = head
        # Classes have their labels as they are asked for.
        self._labels = {key: row.name for key, row in head.categories.items()}
        self._collector = collector
        self._ledger = collector.ledger
        self._masks = options.masks
        self._form = options.form or BoxForm.SIDES
        # What is stated beside a box is compared with it, unless the user says what it is.
        self._compares = options.units in (None, Units.PIXELS) and options.form is None
        # Annotations whose masks and whose areas say what bbox is
        self._fits = dict.fromkeys(BoxForm, 0)
        self._areas_fit = dict.fromkeys(BoxForm, 0)
        self._areas = 0
        self._has_modes = False  # Whether annotations say themselves what bbox is
        # By the keys of an annotation: most have the same
        self._keys: dict[tuple[str, ...], _Keys] = {}
        # Masks that are not filled yet, with the place of their object and its bbox
        self._outlines: list[tuple[Outlines, int, Any]] = []
        # The area that the file states, by image, label and corners: masks have smaller ones.
        self.areas: dict[tuple[str, str, Corners], float] = {}

    def read(self, first: int, values: list[Any]) -> None:
        """Read objects, the first of which has this place; ids and boxes are checked at once.

        Where one is unsuitable, each is checked when it is its turn, so that the first is named.
        """
        are_checked = _have_ids(values)
        if are_checked:
            self._note_ids_of_0(values, first)
        boxes: list[Corners] | None = None
        if are_checked:
            stated = [value.get("bbox") for value in values]
            boxes = validated_together(_KINDS[self._form], stated)
        if boxes is not None and self._are_plain(values, first):
            self._read_plain(values, boxes, first)
            return
        for at, value in enumerate(values):
            where = f"{self._path}, annotations[{first + at}]"
            if not are_checked:
                validated(CocoAnnotation, value, where)
            self._read_one(value, where, None if boxes is None else boxes[at])

    def _are_plain(self, values: Sequence[Mapping[str, Any]], first: int) -> bool:
        """Return whether annotations have no key that changes what their boxes are."""
        kinds = {*map(tuple, values)}
        if len(kinds) == 1:
            self._keys_of(tuple(values[0]), f"{self._path}, annotations[{first}]")
        return all(kind in self._keys and self._keys[kind].are_plain for kind in kinds)

    def _read_plain(
        self, values: Sequence[Mapping[str, Any]], boxes: Sequence[Corners], first: int
    ) -> None:
        """Read objects as :meth:`_read_one` does, where there is less to ask, in half its time."""
        flags: set[str] = set()
        for kind, count in Counter(map(tuple, values)).items():
            self._keys[kind].count += count
            flags.update(self._keys[kind].flags)
        corners = [*map(self._form.corners, boxes)]
        are_noted = self._note_areas_of_boxes(values, boxes, corners)
        beginning = f"{self._path}, annotations["
        names = self._head.names
        labels = self._labels
        for at, value in enumerate(values):
            where = f"{beginning}{first + at}]"
            name = names.get(value["image_id"])
            label = labels.get(value["category_id"])
            if name is None or label is None:
                name, label = self._image_and_label(value, where)
            segmentation = value.get("segmentation")
            stated = self._mask(value, where) if segmentation and self._masks else None
            if not are_noted[at]:
                self._note_area(value, (name, label, corners[at]), 0.0, where)
            of_value = {key: value[key] for key in flags if value.get(key)}
            self._collector.add(name, label, corners[at], where, of_value)
            if of_value:
                self._note_flags(value, where)
            if segmentation:
                self._note_mask(value, stated, where)

    def _read_one(self, entry: Mapping[str, Any], where: str, box: Corners | None) -> None:
        """Read an object; ``box`` is the four numbers of its bbox, if they are checked."""
        name, label = self._image_and_label(entry, where)
        flags = self._flags(entry, where)
        bbox = entry.get("bbox")
        stated = None
        if entry.get("segmentation") and (self._masks or not bbox):
            stated = self._mask(entry, where)
        if not bbox and stated is None and entry.get("keypoints"):
            self._collector.add_boxless(name, label, "has key points, and no bbox", where)
            return
        try:
            corners, angle = self._corners(entry, box, stated, where)
        except AnnotationError as error:
            why = str(error).removeprefix(f"{where}, ").removeprefix(f"{where}: ")
            self._collector.add_boxless(name, label, why, where)
            return
        self._note_area(entry, (name, label, corners), angle, where)
        self._collector.add(name, label, corners, where, flags)
        if flags:
            self._note_flags(entry, where)
        if entry.get("segmentation"):
            self._note_mask(entry, stated, where)

    def _note_ids_of_0(self, values: Sequence[Mapping[str, Any]], first: int) -> None:
        """Note objects with the id 0, by which pycocotools says "not matched"."""
        ids = [value.get("id") for value in values]
        if 0 not in ids:
            return
        for at, value in enumerate(values):
            if ids[at] == 0 and not value.get("iscrowd"):
                where = f"{self._path}, annotations[{first + at}]"
                self._ledger.note(_ID_OF_0, where, unlike_file=True)

    def _note_flags(self, entry: Mapping[str, Any], where: str) -> None:
        """Note the last object if it does not count, and pycocotools counts it."""
        _, box = self._collector.objects[-1]
        if box.ignored and not entry.get("iscrowd"):
            self._ledger.note(_IGNORED_HERE, where, unlike_file=True)

    def _image_and_label(self, entry: Mapping[str, Any], where: str) -> tuple[str, str]:
        """Return the name of the image and of the class of an object with checked ids."""
        name = self._head.names.get(entry["image_id"])
        if name is None:
            raise _unknown(self._head.names, entry["image_id"], f"{where}, image_id")
        label = self._labels.get(entry["category_id"])
        if label is None:
            raise _unknown(self._labels, entry["category_id"], f"{where}, category_id")
        return name, label

    def _mask(self, entry: Mapping[str, Any], where: str) -> PackedMask | Outlines | None:
        size = self._head.images[entry["image_id"]].size
        return segmentation_of_coco(entry["segmentation"], size, where)

    def _note_mask(
        self, entry: Mapping[str, Any], stated: PackedMask | Outlines | None, where: str
    ) -> None:
        """Note the mask of the last object; outlines are filled later, many at once."""
        bbox = entry.get("bbox")
        at = len(self._collector.objects) - 1
        if not self._masks:
            self._ledger.leave_out("masks: --no-masks", where)
        elif isinstance(stated, Outlines):
            self._outlines.append((stated, at, bbox))
        elif stated is not None:
            self._add_mask(stated, at, bbox)
        if len(self._outlines) == OBJECTS_AT_ONCE:
            self._fill()

    def finish(self) -> None:
        """Fill what is left, and refuse a file whose masks or areas say that bbox is corners."""
        self._fill()
        for keys in self._keys.values():
            self._note_keys(keys, keys.where, keys.count - 1)
        of_masks = self._fits[BoxForm.CORNERS]
        of_areas = self._areas_fit[BoxForm.CORNERS]
        by_masks = of_masks > self._fits[BoxForm.SIDES]
        by_areas = of_areas >= 2 and of_areas >= self._areas / 2
        if by_masks or (by_areas and of_areas > self._areas_fit[BoxForm.SIDES]):
            fits = f"masks of {of_masks}" if by_masks else f"areas of {of_areas}"
            raise AnnotationError(
                f"{self._path}, annotations: bbox should be [x, y, width, height], but the {fits} "
                "annotations fit [x1, y1, x2, y2]: convert them, or type --box corners (--box "
                "sides, if they are right)"
            )
        if self._has_modes:
            self._collector.form = None
        elif self._form is BoxForm.CORNERS:
            count = len(self._collector.objects)
            self._ledger.note(_CORNERS, str(self._path), count, unlike_file=True)

    def _fill(self) -> None:
        masks = fill_outlines([outlines for outlines, _, _ in self._outlines])
        for mask, (_, at, bbox) in zip(masks, self._outlines, strict=True):
            if mask is not None:
                self._add_mask(mask, at, bbox)
        self._outlines = []

    def _add_mask(self, mask: PackedMask, at: int, bbox: Any) -> None:
        name, box = self._collector.objects[at]
        self._collector.objects[at] = (name, structs.replace(box, mask=mask))
        if bbox:
            self._compare_mask(bbox, box.corners, mask, box.where)

    def _flags(self, entry: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Return the flags of an annotation, and note keys that are not read."""
        keys = self._keys_of(tuple(entry), where)
        keys.count += 1
        stated = {key: entry[key] for key in keys.flags if entry[key]}
        there = entry.get("attributes")
        if isinstance(there, dict):
            attributes = Node(there, f"{where}, attributes", self._ledger)
            inner = {key: each for key, each in there.items() if meaning_of_flag(key)}
            attributes.rest(
                "attributes of annotations", {"rotation", *inner}, ATTRIBUTES_NOT_NEEDED
            )
            stated |= inner
        return stated

    def _keys_of(self, names: tuple[str, ...], where: str) -> _Keys:
        """Return what is known of the keys of an annotation, and note those that are not read."""
        keys = self._keys.get(names)
        if keys is None:
            flags = [key for key in names if meaning_of_flag(key)]
            rest = [key for key in names if key not in _ANNOTATION_KEYS and key not in flags]
            keys = _Keys(flags, rest, where, are_plain=_CHANGES_BOXES.isdisjoint(names))
            self._keys[names] = keys
            # The first at once, in the order of all that is noted; the others are counted.
            self._note_keys(keys, where, 1)
        return keys

    def _note_keys(self, keys: _Keys, where: str, count: int) -> None:
        self._ledger.keys("annotations", keys.rest, NOT_NEEDED["annotations"], where, count)

    def _corners(
        self,
        entry: Mapping[str, Any],
        box: Corners | None,
        stated: PackedMask | Outlines | None,
        where: str,
    ) -> tuple[Corners, float]:
        """Return (x1, y1, x2, y2), and by how much they were turned; or raise an AnnotationError.

        CVAT turns boxes clockwise about their centre, by degrees.
        """
        if stated is not None and not entry.get("bbox"):
            around = _around(stated)
            if around is not None:
                self._ledger.note("boxes made of their masks: there was no bbox", where)
                return around, self._angle(entry, where)
        mode = entry.get("bbox_mode")
        form = self._form if mode is None else self._form_of(mode, where)
        if box is None:
            box = validated(_KINDS[form], entry.get("bbox"), f"{where}, bbox")
        corners = form.corners(box)
        if entry.get("rotation"):
            raise AnnotationError(
                f"{where}: has a rotation, which is not read: state an upright box"
            )
        angle = self._angle(entry, where)
        if angle:
            self._ledger.note(ROTATED, where, unlike_file=True)
            corners = around_turned(corners, angle)
        return corners, angle

    def _form_of(self, mode: Any, where: str) -> BoxForm:
        self._has_modes = True
        if mode not in (0, 1):
            raise AnnotationError(f"{where}, bbox_mode: {mode!r} should be 0 or 1")
        if _MODES[mode] is BoxForm.CORNERS:
            self._ledger.note(_CORNERS, where, unlike_file=True)
        return _MODES[mode]

    def _angle(self, entry: Mapping[str, Any], where: str) -> float:
        attributes = entry.get("attributes")
        if not isinstance(attributes, dict):
            return 0.0
        stated = attributes.get("rotation") or 0
        angle: float = validated(_Angle, stated, f"{where}, rotation")
        return angle % 360

    def _note_area(
        self,
        entry: Mapping[str, Any],
        key: tuple[str, str, Corners],
        angle: float,
        where: str,
    ) -> None:
        """Note the area of an object, and compare it with its box, which was turned by degrees."""
        area: Any = entry.get("area")
        if type(area) not in _NUMBERS:
            return
        if abs(area) > _LARGEST_AREA:
            # Infinity is how some tools write that they do not know it.
            if isinstance(area, int):
                raise AnnotationError(
                    f"{where}, area: {quoted_value(area, 40)} is no area in pixels"
                )
            return
        if isnan(area):
            return
        x1, y1, x2, y2 = key[2]
        of_box = (x2 - x1) * (y2 - y1)
        if area > 0 and not isclose(area, of_box, rel_tol=1e-3):
            self.areas[key] = float(area)
        if angle or not self._compares:
            return
        if area > 1.05 * of_box + 1:
            self._ledger.note("annotations whose area is larger than their box", where)
        bbox = entry.get("bbox")
        if bbox and entry.get("bbox_mode") is None and area > 0:
            x, y, w, h = bbox
            self._areas += 1
            if isclose(area, w * h, rel_tol=1e-3):
                self._areas_fit[BoxForm.SIDES] += 1
            if isclose(area, (w - x) * (h - y), rel_tol=1e-3):
                self._areas_fit[BoxForm.CORNERS] += 1

    def _note_areas_of_boxes(
        self,
        values: Sequence[Mapping[str, Any]],
        boxes: Sequence[Corners],
        corners: Sequence[Corners],
    ) -> list[bool]:
        """Return which areas are noted: those that are their boxes' are only counted."""
        stated = [value.get("area") for value in values]
        if not _NUMBERS.issuperset(map(type, stated)):
            return [False] * len(values)
        x, y, w, h = array_of(boxes, 4).T
        x1, y1, x2, y2 = array_of(corners, 4).T
        with np.errstate(all="ignore"), suppress(OverflowError):
            areas = np.array(stated, float)
            is_area = (areas > 0) & (areas <= _LARGEST_AREA)
            is_area &= _are_close(areas, (x2 - x1) * (y2 - y1))
            if self._compares:
                is_area &= _are_close(areas, w * h)
                self._areas += int(is_area.sum())
                self._areas_fit[BoxForm.SIDES] += int(is_area.sum())
                of_corners = _are_close(areas, (w - x) * (h - y))
                self._areas_fit[BoxForm.CORNERS] += int((is_area & of_corners).sum())
            return [*is_area.tolist()]
        return [False] * len(values)

    def _compare_mask(self, bbox: Any, corners: Corners, mask: PackedMask, where: str) -> None:
        """Note a box that is not the box around its mask; invalid masks are refused later."""
        if not self._compares:
            return
        try:
            extent = mask.extent
        except RLEError:
            return
        if extent is None:
            return
        as_sides = _distance(corners, extent)
        as_corners = _distance(bbox, extent)
        margin = max(2.0, (extent[2] - extent[0]) / 10, (extent[3] - extent[1]) / 10)
        if as_corners < as_sides and as_corners <= margin:
            self._fits[BoxForm.CORNERS] += 1
        elif as_sides <= margin:
            self._fits[BoxForm.SIDES] += 1
        if as_sides > margin:
            self._ledger.note("boxes that are not the boxes around their masks", where)


# How pycocotools reads a file otherwise than the import
_ID_OF_0 = "objects with the id 0: pycocotools counts boxes on them as wrong"
_IGNORED_HERE = "objects that do not count, by a flag other than iscrowd: pycocotools counts them"
_CORNERS = "boxes that are corners: pycocotools reads sides"

# detectron2's BoxMode
_MODES = {0: BoxForm.CORNERS, 1: BoxForm.SIDES}
_KINDS = {BoxForm.CORNERS: CornersOfJson, BoxForm.SIDES: SidesOfJson}
_NUMBERS = frozenset((int, float))
# Keys that change what a box is
_CHANGES_BOXES = frozenset(("attributes", "bbox_mode", "rotation"))
# More than any image has
_LARGEST_AREA = 2**62
_Angle = Annotated[float, Expected("an angle in degrees", strict=True, allow_inf_nan=False)]


@dataclass(slots=True)
class _Keys:
    """The keys of annotations that have the same."""

    flags: list[str]
    rest: list[str]  # Those that are not read
    where: str  # The first such annotation
    are_plain: bool  # Whether none changes what a box is
    count: int = 0


def _have_ids(values: Sequence[Any]) -> bool:
    """Return whether all annotations are objects that name an image and a class."""
    try:
        ids = [value["image_id"] for value in values]
        ids += [value["category_id"] for value in values]
    except (KeyError, TypeError):
        return False
    return {*map(type, ids)} <= {int, str} and validated_together(Id, [*{*ids}]) is not None


def _are_close(areas: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return what :func:`math.isclose` does of a thousandth, for arrays of finite numbers."""
    most = np.maximum(np.abs(areas), np.abs(others))
    return np.abs(areas - others) <= 1e-3 * most


def _around(stated: PackedMask | Outlines) -> Corners | None:
    """Return the box around a mask; None: it is empty, or cannot be read."""
    if isinstance(stated, Outlines):
        return box_around_polygons(stated.polygons)
    try:
        extent: Corners | None = stated.extent
    except RLEError:
        return None
    return extent


def _distance(box: Sequence[float], other: Corners) -> float:
    """Return by how much the corner of one box that is farthest from the other's is apart."""
    return max(abs(here - there) for here, there in zip(box, other, strict=True))


def _unknown(rows: Mapping[int | str, Any], key: int | str, where: str) -> AnnotationError:
    """Make the error of an id that no row has."""
    other: int | str = str(key)
    if isinstance(key, str) and key.isdecimal():
        other = int(key)
    if other in rows:
        return AnnotationError(
            f"{where}: unknown id {key!r}; {other!r} exists: write both as the same type"
        )
    return AnnotationError(f"{where}: unknown id {key!r}")
