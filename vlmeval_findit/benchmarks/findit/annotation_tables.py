"""FindIt's annotation tables: TSVs with a row per query.

Rows are thinned (protocol section 2).  Boxes are [x1, y1, x2, y2] in pixels of the original image.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import numpy as np

from ...boxes import Corners, Ignored, Mask, Truth
from ...core import Checked
from ...marks import PackedMask
from ...protocol import LoadedDataset, slice_problem
from ...storage import (
    NESTED_CONFIG,
    CellError,
    ImagePath,
    ImagePaths,
    ImageSide,
    WrittenTable,
    folders,
    meta_path,
    table_files,
)
from .dataset_names import parse
from .findit_datasets import DATASETS, OF_THE_RELEASE
from .findit_query import FindItQuery, Sighting, thinned_query
from .marked_references import with_marks
from .variant import FindItVariant


def _tags(stated: Mapping[str, str]) -> Mapping[str, str]:
    for kind, value in stated.items():
        why = slice_problem(kind, value)
        if why is not None:
            raise ValueError(why)
    return stated


@dataclass(frozen=True)
class _SightingCell:
    __pydantic_config__: ClassVar[Any] = NESTED_CONFIG
    image: ImagePath
    box: Corners


@dataclass(frozen=True)
class _IgnoredCell:
    __pydantic_config__: ClassVar[Any] = NESTED_CONFIG
    box: Corners
    frame: int = 0
    label: str = ""
    crowd: bool = False
    mask: str | None = None


@dataclass(frozen=True, slots=True)
class AnnotationRow:
    """Columns of a table; boxes, labels and masks are lists per frame."""

    index: int
    label: str
    width: ImageSide
    height: ImageSide
    boxes: list[list[Corners]]
    image_path: ImagePaths
    box_labels: list[list[str]] = field(default_factory=list)
    support_shots: ImagePaths = ()
    frame_indices: tuple[int, ...] = ()
    caption: str = ""
    sightings: tuple[_SightingCell, ...] = ()  # Images that the shots are crops of
    tags: Annotated[dict[str, str], Checked(_tags)] = field(default_factory=dict)
    masks: list[list[str | None]] = field(default_factory=list)  # COCO RLE; null: only a box
    ignored: tuple[_IgnoredCell, ...] = ()  # Objects that are neither hit nor missed
    cluster: str = ""  # Rows of a cluster (image or video) are not independent


def _by_frame(query: FindItQuery, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
    """Return what stands beside the boxes of a query as a list for each of its frames."""
    if len(query.images) == 1:
        return [values]
    result: list[list[Any]] = [[] for _ in query.images]
    for frame, value in zip(query.truth.frames, values, strict=True):
        result[frame].append(value)
    return result


def _box_labels(query: FindItQuery) -> Sequence[Sequence[str]]:
    return _by_frame(query, query.truth.labels) if query.truth.labels else []


def _masks(query: FindItQuery) -> Sequence[Sequence[str | None]]:
    if not query.truth.masks:
        return []
    masks = [_packed(mask) for mask in query.truth.masks]
    return _by_frame(query, masks) if any(masks) else []


def _ignored(query: FindItQuery) -> tuple[_IgnoredCell, ...]:
    if not query.truth.ignored:
        return ()
    cells = [
        _IgnoredCell(item.box, item.frame, item.label, item.crowd, _packed(item.mask))
        for item in query.truth.ignored
    ]
    return tuple(cells)


# How a query becomes the columns of :class:`AnnotationRow` that it does not have itself
_VALUES: Mapping[str, Callable[[FindItQuery], Any]] = {
    "boxes": lambda query: _by_frame(query, query.truth.boxes),
    "image_path": lambda query: query.images,
    "box_labels": _box_labels,
    "support_shots": lambda query: query.support,
    "sightings": lambda query: tuple([_SightingCell(*seen) for seen in query.sightings]),
    "tags": lambda query: dict(query.tags),
    "masks": _masks,
    "ignored": _ignored,
}


def _packed(mask: Mask | None) -> str | None:
    return None if mask is None else mask.packed


def _query(row: AnnotationRow) -> FindItQuery:
    _check_counts(row)

    def mask(packed: str | None) -> PackedMask | None:
        return None if packed is None else PackedMask(row.height, row.width, packed)

    frames: list[int] = []
    for frame, boxes in enumerate(row.boxes):
        frames += [frame] * len(boxes)
    return FindItQuery(
        index=row.index,
        label=row.label,
        width=row.width,
        height=row.height,
        images=row.image_path,
        truth=Truth(
            boxes=tuple(chain.from_iterable(row.boxes)),
            frames=tuple(frames),
            labels=tuple(chain.from_iterable(row.box_labels)),
            masks=tuple(map(mask, chain.from_iterable(row.masks))),
            ignored=tuple(
                Ignored(item.box, item.frame, item.label, item.crowd, mask(item.mask))
                for item in row.ignored
            ),
        ),
        support=row.support_shots,
        caption=row.caption,
        frame_indices=row.frame_indices,
        sightings=tuple(Sighting(seen.image, seen.box) for seen in row.sightings),
        tags=row.tags,
        cluster=row.cluster,
    )


def _check_counts(row: AnnotationRow) -> None:
    """Refuse columns that do not fit together."""
    frames = len(row.image_path)
    counts = [len(boxes) for boxes in row.boxes]
    if len(counts) != frames:
        raise CellError("boxes", f"{len(counts)} lists for {frames} images")
    for column, values in (("box_labels", row.box_labels), ("masks", row.masks)):
        if values and list(map(len, values)) != counts:
            raise CellError(column, "should have an entry for every box")
    for item in row.ignored:
        if not 0 <= item.frame < frames:
            raise CellError("ignored", f"frame {item.frame} is out of range 0..{frames - 1}")
        if row.box_labels and not item.label:
            raise CellError("ignored", "a label is missing, but boxes have labels")


_MARGIN = 0.01  # Pixels: rounding alone puts boxes this far out of their image


def odd_boxes(queries: Sequence[FindItQuery]) -> list[dict[str, Any]]:
    """Find boxes with swapped corners, no area, or more than 0.01 pixels outside their image."""
    boxes = [box for query in queries for box in query.truth.boxes]
    numbers = np.fromiter(chain.from_iterable(boxes), float)
    x1, y1, x2, y2 = numbers.reshape(-1, 4).T
    counts = [len(query.truth.boxes) for query in queries]
    owners = np.repeat(np.arange(len(counts)), counts)
    widths = np.array([query.width for query in queries], float)[owners]
    heights = np.array([query.height for query in queries], float)[owners]
    swapped = (x1 > x2) | (y1 > y2)
    before = (np.minimum(x1, x2) < -_MARGIN) | (np.minimum(y1, y2) < -_MARGIN)
    behind_width = np.maximum(x1, x2) > widths + _MARGIN
    behind_height = np.maximum(y1, y2) > heights + _MARGIN
    problems = {
        "swapped corners": swapped,
        "no area": ((x1 == x2) | (y1 == y2)) & ~swapped,
        "out of the image": before | behind_width | behind_height,
    }
    result: list[dict[str, Any]] = []
    for at in np.flatnonzero(np.any([*problems.values()], axis=0)):
        for problem, has_it in problems.items():
            if has_it[at]:
                index = queries[owners[at]].index
                result.append({"index": index, "what": problem, "box": boxes[at]})
    return result


@dataclass(frozen=True)
class PreparedTable(WrittenTable):
    """A table of boxes that was written."""

    boxes: int = 0
    without_box: int = 0
    ignored: int = 0


def write_table(
    out: Path, table: str, queries: Sequence[FindItQuery], origin: Mapping[str, Any]
) -> PreparedTable:
    """Write queries to ``<out>/<table>.tsv`` and its ``.meta.json``, both atomically."""
    path = out / f"{table}.tsv"
    return write_rows(path, AnnotationRow, queries, queries, origin, _VALUES)


def write_rows(
    path: Path,
    kind: type[Any],
    rows: Iterable[Any],
    queries: Sequence[FindItQuery],
    origin: Mapping[str, Any],
    values: Mapping[str, Callable[[Any], Any]] = MappingProxyType({}),
) -> PreparedTable:
    """Write rows of the queries, like :func:`write_table`; ``values`` are its of table files."""
    odd = odd_boxes(queries)
    truths = [query.truth for query in queries]
    boxes = sum(len(truth.boxes) for truth in truths)
    facts = {"queries": len(queries), "boxes": boxes, "odd_boxes": odd}
    table_files.write_table(path, kind, rows, {**origin, **facts}, values)
    notes: list[str] = []
    for problem, count in sorted(Counter(each["what"] for each in odd).items()):
        notes.append(f"{count} boxes {problem}, left as they are: {meta_path(path).name}")
    without_box = sum(not truth.boxes for truth in truths)
    ignored = sum(len(truth.ignored) for truth in truths)
    shown = f"{boxes:>8} boxes"
    return PreparedTable(path, len(queries), tuple(notes), shown, boxes, without_box, ignored)


def find_table(table: str) -> Path:
    """Find the TSV of a table; see :func:`...storage.folders.find_table`."""
    dataset = DATASETS.get(table.removesuffix("_multilabel"))
    if dataset is not None and dataset.is_made:
        return folders.made_table(table)
    return folders.find_table(table, how_to_make(table))


def how_to_make(table: str) -> str:
    """Return the command that makes a table."""
    dataset = DATASETS.get(table.removesuffix("_multilabel"))
    command = OF_THE_RELEASE if dataset is None else dataset.how_to_make
    return command.format(table=table)


def read_table(path: Path) -> list[FindItQuery]:
    """Read the queries of a TSV; see :func:`.table_files.read_table`."""
    return table_files.read_table(path, AnnotationRow, how_to_make(path.stem), _query)


def corners(box: Sequence[float]) -> Corners:
    """Convert a box of a foreign file, or raise ValueError unless it is four finite numbers."""
    x1, y1, x2, y2 = box
    for n in (x1, y1, x2, y2):
        if isinstance(n, bool) or not isinstance(n, (int, float)) or not isfinite(n):
            raise ValueError(f"{box!r} is not four finite numbers")
    return (float(x1), float(y1), float(x2), float(y2))


# All queries of a table, thinned to the variant's frames
LoadedFindIt = LoadedDataset[FindItVariant, FindItQuery]


def load_findit(name: str) -> LoadedFindIt:
    """Load a dataset whose table is there.

    A name that is not valid, a table that is nowhere or cannot be read, or a folder that is not
    writable raises VariantError, FileNotFoundError, TableError or FolderError.
    """
    variant = parse(name)
    table = find_table(variant.table)
    rows = read_table(table)
    if variant.mark is not None:
        rows = with_marks(rows, variant)
    queries = (thinned_query(query, variant.frames) for query in rows)
    return LoadedDataset(name, variant, table, {query.index: query for query in queries})
