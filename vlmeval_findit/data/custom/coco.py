"""Read COCO instances (``instances.json``): boxes are [x, y, width, height] in pixels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from ...core.config import Count, Expected, Text, Whole
from ...core.image_files import Size
from ..annotated_samples import CROWD, AnnotatedBox, AnnotationError, Samples
from ..ledger import Ledger
from .annotation_values import SidesOfJson, json_of, mask_of_coco, text_of, validated
from .detection import Detections, detection_samples
from .reader_options import ReaderOptions


@dataclass(frozen=True, slots=True)
class _Image:
    id: Whole
    file_name: Text
    width: Count | None = None
    height: Count | None = None

    @property
    def size(self) -> Size | None:
        return (self.width, self.height) if self.width and self.height else None


@dataclass(frozen=True, slots=True)
class _Category:
    id: Whole
    name: Text
    supercategory: Any = None


@dataclass(frozen=True, slots=True)
class _Annotation:
    image_id: Whole
    category_id: Whole
    bbox: SidesOfJson
    iscrowd: Annotated[int, Expected("0 or 1", ge=0, le=1)] = 0
    segmentation: Any = None


@dataclass(frozen=True, slots=True)
class _Coco:
    images: list[_Image]
    categories: list[_Category]
    annotations: list[_Annotation]


def read_coco(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read a COCO instances file with its masks; crowd regions are ignored.

    Roboflow writes a class 0 that is no class but the project, and often has a class's name: it is
    left out if no box has it.

    Args:
        path: the file.
        images: the folder that its file names are relative to.
        options: what the file does not tell.

    Raises:
        AnnotationError: it is no COCO file, or an annotation names an unknown image or class.
    """
    ledger = Ledger()
    values: _Coco = validated(_Coco, json_of(text_of(path), str(path)), str(path))
    used = {entry.category_id for entry in values.annotations}
    classes = [
        row for row in values.categories if row.id != 0 or row.supercategory != "none" or 0 in used
    ]
    images_by_id = _unique(values.images, [image.file_name for image in values.images], path)
    categories = _unique(classes, [row.name for row in classes], path)
    objects = []
    for at, entry in enumerate(values.annotations):
        where = f"{path}, annotations[{at}]"
        if entry.image_id not in images_by_id:
            raise AnnotationError(f"{where}, image_id: there is no {entry.image_id}")
        if entry.category_id not in categories:
            raise AnnotationError(f"{where}, category_id: there is no {entry.category_id}")
        image, label = images_by_id[entry.image_id], categories[entry.category_id].name
        x, y, w, h = entry.bbox
        mask = mask_of_coco(entry.segmentation, image.size, where)
        ignored = CROWD if entry.iscrowd else ""
        box = AnnotatedBox((x, y, x + w, y + h), where, label, ignored=ignored, mask=mask)
        objects.append((image.file_name, box))
    found = Detections(
        source=path,
        images=images,
        sizes={image.file_name: image.size for image in values.images},
        objects=objects,
        classes=[row.name for row in classes],
        image_ids={image.file_name: image.id for image in values.images},
        category_ids={row.name: row.id for row in classes},
    )
    return detection_samples(found, options or ReaderOptions(), ledger)


_Row = TypeVar("_Row", _Image, _Category)


def _unique(rows: Sequence[_Row], names: Sequence[str], path: Path) -> dict[int, _Row]:
    """Return rows by their ids; ids and names must not stand twice."""
    by_id = {row.id: row for row in rows}
    if len(by_id) != len(rows):
        raise AnnotationError(f"{path}: an id of an image or of a category stands twice")
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise AnnotationError(f"{path}: the name {twice[0]!r} stands twice")
    return by_id
