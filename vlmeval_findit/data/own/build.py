"""Checked annotations as a dataset: two tables, and a row in the file of one's own datasets."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...benchmarks.findit import PREFIX
from ...benchmarks.findit.annotation_tables import Prepared, write_table
from ...benchmarks.findit.datasets import BENCHMARK, own_datasets
from ...benchmarks.findit.names import forget_names
from ...benchmarks.findit.query import Query
from ...boxes.matching import plain_label
from ...boxes.records import Truth
from ...boxes.reply_format import KEYS, OUTPUTS, STRUCTURES
from ...boxes.representation import REPRESENTATIONS
from ...core.data_root import lmu_data_root, own_datasets_file
from ...core.files import atomic_write
from ...core.image_files import Size
from ...core.lock import alone
from .annotations import AnnotationError, Annotations, Box
from .exif import Drawn
from .pictures import checked_pictures, placed, refuse

Sizes = Mapping[str, Size]
"""(width, height) of every image, in stored pixels."""


@dataclass(frozen=True, slots=True)
class Built:
    """What became of an import."""

    name: str
    tables: tuple[Prepared, ...]
    annotations: Annotations
    notes: tuple[str, ...]


def build(
    name: str, annotations: Annotations, images: Path, replace: bool, drawn: Drawn | None = None
) -> Built:
    """Check annotations and make them a dataset: tables below LMUData, and its registry row.

    Args:
        name: what it is to be called in ``FindIt_<name>_…``.
        annotations: what was read.
        images: the folder that the image names are relative to; it is used where it lies.
        replace: whether a dataset of one's own of this name may be replaced.
        drawn: on which pictures boxes were drawn, where a viewer turns them.

    Raises:
        AnnotationError: the name cannot be used, or an image, box or label is not as it should be.
    """
    check_name(name, replace)
    check_labels(annotations)
    pictures = checked_pictures(annotations, images)
    boxes, notes = placed(annotations, pictures, drawn)
    sizes = {name: picture.size for name, picture in pictures.items()}
    check_boxes(boxes, sizes)
    out = lmu_data_root()
    origin = {"source": annotations.source.name, "imported as": name}
    tables = tuple(
        write_table(out, table, queries, origin)
        for table, queries in (
            (name, single_label(boxes, sizes)),
            (f"{name}_multilabel", multi_label(boxes, sizes)),
        )
    )
    _write_ids(ids_path(tables[0].path), annotations)
    _register(name, images)
    return Built(name, tables, annotations, notes)


# --- the name -------------------------------------------------------------------------------------


def _grammar() -> dict[str, str]:
    """Every word that may stand between underscores in a variant's name, and what it is there."""
    words = {word: "a part of a JSON key" for key in KEYS for word in key.split("_")}
    words |= {word: "a part of a JSON structure" for s in STRUCTURES for word in s.split("_")}
    words |= dict.fromkeys(REPRESENTATIONS, "a representation")
    words |= dict.fromkeys(OUTPUTS, "an output format")
    words |= {"multilabel": "an axis of the grid", "caption": "an axis of the grid"}
    return words | {PREFIX.rstrip("_").lower(): "what every name begins with"}


def check_name(name: str, replace: bool) -> None:
    """Refuse a name that would make the names of variants ambiguous.

    Raises:
        AnnotationError: saying which part and why.
    """
    if not re.fullmatch(r"[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*", name) or not re.search("[A-Za-z]", name):
        raise AnnotationError(
            f"name {name!r}: only letters, digits, '-', and single '_' between them"
        )
    grammar = _grammar()
    for part in name.lower().split("_"):
        if part in grammar:
            raise AnnotationError(f"name {name!r}: the part {part!r} is {grammar[part]}")
        if re.fullmatch(r"f\d+", part):
            raise AnnotationError(f"name {name!r}: the part {part!r} is a number of frames")
        if part.startswith("cx-"):
            raise AnnotationError(f"name {name!r}: the part {part!r} is a centre experiment")
    # Letters of both cases: tables are files, and some file systems do not tell them apart.
    taken = {row.name.lower(): row.name for row in BENCHMARK.values()}
    taken |= {
        subset.file.lower(): row.name
        for row in BENCHMARK.values()
        if (subset := row.subset) is not None
    }
    if name.lower() in taken:
        raise AnnotationError(f"name {name!r}: is the benchmark's own {taken[name.lower()]}")
    for own in own_datasets():
        if own.lower() == name.lower() and not (replace and own == name):
            raise AnnotationError(f"name {name!r}: {own} was imported before (--replace)")


# --- boxes, labels -----------------------------------------------------------------------------


def check_labels(annotations: Annotations) -> None:
    """Labels must be told apart as the metric does, and be listed with commas between them.

    Raises:
        AnnotationError: an empty label, one with a comma, or two that count as the same.
    """
    if not annotations.boxes:
        raise AnnotationError(f"{annotations.source}: no boxes")
    plain: dict[str, str] = {}
    for box in annotations.boxes:
        label = box.label
        if "," in label or not plain_label(label):
            raise AnnotationError(
                f"{box.where}: label {label!r} {'has a comma' if ',' in label else 'is empty'}; "
                "several labels are asked with commas between them"
            )
        if any(sign in label for sign in "\t\r\n"):
            raise AnnotationError(f"{box.where}: label {label!r} is not on one line")
        other = plain.setdefault(plain_label(label), label)
        if other != label:
            raise AnnotationError(
                f"{box.where}: labels {other!r} and {label!r} count as the same: letter case and "
                "punctuation make no difference"
            )


_MARGIN = 1.0
"""Pixels by which rounding, in steps of a pixel, puts a box out of its image."""


def check_boxes(boxes: Sequence[Box], sizes: Sizes) -> None:
    """Boxes must have an area and lie in their image, by rounding apart.

    Raises:
        AnnotationError: naming the first box that does not.
    """
    whys = [f"{box.where}: {why}" for box in boxes if (why := _box_problem(box, sizes))]
    refuse(whys, len(boxes), "boxes")


def _box_problem(box: Box, sizes: Sizes) -> str | None:
    x1, y1, x2, y2 = box.corners
    width, height = sizes[box.image]
    if x2 <= x1 or y2 <= y1:
        return f"the box {box.corners} has no area"
    if min(x1, y1) < -_MARGIN or x2 > width + _MARGIN or y2 > height + _MARGIN:
        return f"the box {box.corners} leaves {box.image}, which is {width}x{height}"
    return None


# --- queries --------------------------------------------------------------------------------------


def single_label(boxes: Sequence[Box], sizes: Sizes) -> list[Query]:
    """One query an image and label, in the order of the annotations."""
    groups = _grouped(boxes, lambda box: (box.image, box.label))
    return [
        Query(index, label, *sizes[image], (image,), _truth(group, ()))
        for index, ((image, label), group) in enumerate(groups.items())
    ]


def multi_label(boxes: Sequence[Box], sizes: Sizes) -> list[Query]:
    """One query an image, for all of its labels."""
    groups = _grouped(boxes, lambda box: (box.image, ""))
    return [
        Query(
            index,
            ", ".join(sorted({box.label for box in group})),
            *sizes[image],
            (image,),
            _truth(group, tuple(box.label for box in group)),
        )
        for index, ((image, _), group) in enumerate(groups.items())
    ]


def _grouped(
    boxes: Iterable[Box], key: Callable[[Box], tuple[str, str]]
) -> dict[tuple[str, str], list[Box]]:
    groups: dict[tuple[str, str], list[Box]] = {}
    for box in boxes:
        groups.setdefault(key(box), []).append(box)
    return groups


def _truth(boxes: Sequence[Box], labels: tuple[str, ...]) -> Truth:
    return Truth(tuple(box.corners for box in boxes), (0,) * len(boxes), labels)


# --- files ----------------------------------------------------------------------------------------


def ids_path(table: Path) -> Path:
    """Where the numbers of the COCO file lie that a table was made from."""
    return table.with_name(f"{table.stem.removesuffix('_multilabel')}.coco.json")


def _write_ids(path: Path, annotations: Annotations) -> None:
    with atomic_write(path) as f:
        json.dump(
            {
                "images": dict(annotations.image_ids),
                "categories": dict(annotations.category_ids),
            },
            f,
        )


def _register(name: str, images: Path) -> None:
    path = own_datasets_file()
    with alone(path.with_name(f"{path.name}.lock")):
        rows = {row.name: {"folder": row.folder} for row in own_datasets().values()}
        rows[name] = {"folder": str(images.resolve())}
        with atomic_write(path) as f:
            json.dump(rows, f, indent=1)
    forget_names()
