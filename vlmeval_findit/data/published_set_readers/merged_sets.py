"""Read the hub's copies of several detection sets in one: Parquet with a set's name in each row.

Columns: ``image``; ``dataset_name``; ``categories``, the classes of the row's set; ``bboxes``
[x1, y1, x2, y2] in pixels, and as many ``labels``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from ...core import Expected, Name
from ...storage import named_image
from ..annotated_samples import AnnotationError, BoxForm, Samples
from ..custom.annotation_values import CornersOfJson
from ..custom.class_rules import label_text
from ..custom.collector import Collector
from ..custom.parquet_images import ParquetImages
from ..custom.reader_options import ReaderOptions

_Classes = Annotated[list[Name], Expected("a list of names", min_length=1)]


@dataclass(frozen=True, slots=True)
class _SetRow:
    dataset_name: Name


@dataclass(frozen=True, slots=True)
class _Row:
    image: Any
    dataset_name: Name
    categories: _Classes
    bboxes: list[CornersOfJson]
    labels: list[Name]


def sets_in(copy: ParquetImages) -> Sequence[str]:
    """Return the names of the sets of a copy, in their order, or raise an AnnotationError."""
    return list(dict.fromkeys(row.dataset_name for _, row in copy.rows(_SetRow)))


def read_set(folder: Path, copy: ParquetImages, name: str, options: ReaderOptions) -> Samples:
    """Read the rows of one set, whose boxes are corners in pixels.

    Images are called after their row and their content, as some may be the same.

    Raises an AnnotationError for other columns and cells.
    """
    collector = Collector(folder, folder, options, form=BoxForm.CORNERS)
    form = options.form or BoxForm.CORNERS
    names: list[str] = []
    classes: list[str] = []
    for number, (where, row) in enumerate(copy.rows(_Row)):
        if row.dataset_name != name:
            names.append("")
            continue
        image = collector.packed_image(_name_of_image(number, row.image, where), where)
        names.append(image)
        classes += map(label_text, row.categories)
        if len(row.labels) != len(row.bboxes):
            raise AnnotationError(
                f"{where}: {len(row.bboxes)} bboxes, but {len(row.labels)} labels"
            )
        for at, (box, label) in enumerate(zip(row.bboxes, row.labels, strict=True)):
            collector.add(image, label, form.corners(box), f"{where}, bboxes[{at}]")
    samples = collector.samples(classes=list(dict.fromkeys(classes)))
    return replace(samples, images=ParquetImages(copy.files, (), tuple(names)))


def _name_of_image(number: int, cell: Any, where: str) -> str:
    try:
        content, _ = named_image(cell)
    except ValueError as error:
        raise AnnotationError(f"{where}, image: {error}") from None
    return f"{number:05}-{content}"
