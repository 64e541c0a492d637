"""FindIt's annotation tables: TSVs with a row per query.

Rows are thinned (protocol section 2).  Boxes are [x1, y1, x2, y2] in pixels of the original image.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, ClassVar

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


def _row(query: FindItQuery) -> AnnotationRow:
    truth = query.truth

    def by_frame(values: Sequence[Any]) -> list[list[Any]]:
        result: list[list[Any]] = [[] for _ in query.images]
        for frame, value in zip(truth.frames, values, strict=True):
            result[frame].append(value)
        return result

    masks = [_packed(mask) for mask in truth.masks]
    return AnnotationRow(
        index=query.index,
        label=query.label,
        width=query.width,
        height=query.height,
        boxes=by_frame(truth.boxes),
        image_path=query.images,
        box_labels=by_frame(truth.labels) if truth.labels else [],
        support_shots=query.support,
        frame_indices=query.frame_indices,
        caption=query.caption,
        sightings=tuple(_SightingCell(seen.image, seen.box) for seen in query.sightings),
        tags=dict(query.tags),
        masks=by_frame(masks) if any(masks) else [],
        ignored=tuple(
            _IgnoredCell(item.box, item.frame, item.label, item.crowd, _packed(item.mask))
            for item in truth.ignored
        ),
        cluster=query.cluster,
    )


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


def odd_boxes(queries: Iterable[FindItQuery]) -> list[dict[str, Any]]:
    """Find boxes with swapped corners, no area, or more than 0.01 pixels outside their image."""
    result: list[dict[str, Any]] = []
    for query in queries:
        width = query.width + _MARGIN
        height = query.height + _MARGIN
        for box in query.truth.boxes:
            x1, y1, x2, y2 = box
            problems = []
            if x1 > x2 or y1 > y2:
                problems.append("swapped corners")
            elif x1 == x2 or y1 == y2:
                problems.append("no area")
            if min(box) < -_MARGIN or max(x1, x2) > width or max(y1, y2) > height:
                problems.append("out of the image")
            for problem in problems:
                result.append({"index": query.index, "what": problem, "box": box})
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
    return write_rows(out / f"{table}.tsv", AnnotationRow, map(_row, queries), queries, origin)


def write_rows(
    path: Path,
    kind: type[Any],
    rows: Iterable[Any],
    queries: Sequence[FindItQuery],
    origin: Mapping[str, Any],
) -> PreparedTable:
    """Write rows of the queries, like :func:`write_table`."""
    odd = odd_boxes(queries)
    truths = [query.truth for query in queries]
    boxes = sum(len(truth.boxes) for truth in truths)
    facts = {"queries": len(queries), "boxes": boxes, "odd_boxes": odd}
    table_files.write_table(path, kind, rows, {**origin, **facts})
    notes: list[str] = []
    for problem, count in sorted(Counter(each["what"] for each in odd).items()):
        notes.append(f"{count} boxes {problem}, left as they are: {meta_path(path)}")
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
