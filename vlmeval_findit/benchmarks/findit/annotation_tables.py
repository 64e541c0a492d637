"""Annotation tables: the release's Parquet subsets in, one TSV a dataset out, queries from both.

A TSV holds a dataset's rows after the thinning of protocol section 2, one row a query: ``index``
(the row number in the subset), ``label``, ``width``, ``height``, ``boxes``, ``box_labels``,
``image_path``, ``support_shots``, ``frame_indices``, ``caption``; and ``sightings`` where a row has
any: a list of {"image", "box"}, the pictures that its shots were taken from; ``tags`` likewise: an
object, what its author says of it; and ``masks``: what of each box is the object, COCO's packed run
lengths of the whole image (null: its box alone is known); and ``ignored``: a list of {"box",
"frame", "label", "crowd", "mask"}, objects that count neither way.  Lists are JSON; boxes are
[x1, y1, x2, y2] in pixels of the original image, one list of boxes (and of masks) a frame for
videos.  Beside it lies ``<table>.meta.json``: where the rows came from, with which checksum, and
what is odd in them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from ...boxes.records import Ignored, Mask, Truth
from ...boxes.representation import Corners
from ...core.metric import slice_problem
from ...core.table_files import (
    TableError,
    all_of,
    json_cell,
    list_cell,
    paths_cell,
    read_rows,
    write_cells,
)
from ...marks.rle import PackedMask, RLEError
from .oddities import Oddity, oddities
from .places import how_to_make
from .query import Query, Sighting

COLUMNS = (
    "index",
    "label",
    "width",
    "height",
    "boxes",
    "box_labels",
    "image_path",
    "support_shots",
    "frame_indices",
    "caption",
)
OPTIONAL = ("sightings", "tags", "masks", "ignored")
"""Columns behind these, in this order; a table has those that a row of it has something in."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What ``prepare`` did for one table."""

    table: str
    path: Path
    queries: int
    boxes: int
    without_box: int
    size: int
    oddities: tuple[Oddity, ...]
    ignored: int = 0


def write_table(
    out: Path, table: str, queries: Sequence[Query], origin: Mapping[str, str]
) -> Prepared:
    """Write queries as ``<out>/<table>.tsv`` with its ``.meta.json``, both atomically."""
    used = [name for name in OPTIONAL if any(_OPTIONAL_CELLS[name](query) for query in queries)]
    columns = (*COLUMNS, *used)
    cells = (
        [
            *_cells(query),
            *(json_cell(said) if (said := _OPTIONAL_CELLS[name](query)) else "" for name in used),
        ]
        for query in queries
    )
    return write_rows(out / f"{table}.tsv", columns, cells, queries, origin)


def write_rows(
    path: Path,
    columns: Sequence[str],
    cells: Iterable[Sequence[Any]],
    queries: Sequence[Query],
    origin: Mapping[str, Any],
) -> Prepared:
    """Write a table of any columns with its ``.meta.json``, both atomically.

    ``cells`` are those of the ``queries``, row by row; ``origin`` says where they came from.
    """
    odd = oddities(queries)
    boxes = sum(len(query.truth.boxes) for query in queries)
    facts = {"queries": len(queries), "boxes": boxes, "oddities": [asdict(o) for o in odd]}
    write_cells(path, columns, cells, origin, lambda: facts)
    without = sum(not query.truth.boxes for query in queries)
    size = path.stat().st_size
    ignored = sum(len(query.truth.ignored) for query in queries)
    return Prepared(path.stem, path, len(queries), boxes, without, size, tuple(odd), ignored)


def _cells(query: Query) -> list[Any]:
    frames = len(query.images)
    boxes: list[list[Corners]] = [[] for _ in range(frames)]
    labels: list[list[str]] = [[] for _ in range(frames)]
    for i, frame in enumerate(query.truth.frames):
        boxes[frame].append(query.truth.boxes[i])
        if query.truth.labels:
            labels[frame].append(query.truth.labels[i])
    return [
        query.index,
        query.label,
        query.width,
        query.height,
        json_cell(boxes),
        json_cell(labels) if query.truth.labels else "",
        json_cell(query.images),
        json_cell(query.support) if query.support else "",
        json_cell(query.frame_indices) if query.frame_indices else "",
        query.caption,
    ]


def _masks_by_frame(query: Query) -> list[list[str | None]]:
    """The packed masks of the boxes, frame by frame; nothing where no box has one."""
    if not any(query.truth.masks):
        return []
    found: list[list[str | None]] = [[] for _ in query.images]
    for frame, mask in zip(query.truth.frames, query.truth.masks, strict=True):
        found[frame].append(None if mask is None else mask.packed)
    return found


_OPTIONAL_CELLS: Mapping[str, Callable[[Query], Any]] = {
    "sightings": lambda query: [seen._asdict() for seen in query.sightings],
    "tags": lambda query: query.tags,
    "masks": _masks_by_frame,
    "ignored": lambda query: [
        one._asdict() | {"mask": one.mask.packed if one.mask else None}
        for one in query.truth.ignored
    ],
}
"""What the optional columns hold; nothing is an empty cell."""


def read_table(path: Path) -> list[Query]:
    """The queries of a TSV that :func:`write_table` wrote.

    Raises:
        TableError: naming file, line and column; or the table is not the one that its
            ``.meta.json`` describes.
    """
    return read_rows(path, COLUMNS, _query_from_cells, how_to_make(path.stem), OPTIONAL)


def check_masks(path: Path, queries: Iterable[Query]) -> None:
    """Unpack the masks of a table, for those who ask for points in them.

    Raises:
        TableError: one cannot be unpacked; the message names file, row and box.
    """
    for query in queries:
        ignored = [one.mask for one in query.truth.ignored]
        for column, masks in (("masks", query.truth.masks), ("ignored", ignored)):
            for at, mask in enumerate(masks):
                try:
                    if mask is not None:
                        mask.covers(0, 0)
                except RLEError as error:
                    raise TableError(
                        f"{path}, row {query.index}, column {column}, box {at}: {error}"
                    ) from None


def _query_from_cells(path: Path, number: int, cells: Sequence[str]) -> Query:
    column = "index"
    try:
        row = dict(zip((*COLUMNS, *OPTIONAL), cells, strict=True))
        index = int(row["index"])
        column = "boxes"
        boxes = json.loads(row["boxes"])
        flat = tuple(corners(box) for frame in boxes for box in frame)
        frames = tuple(i for i, frame in enumerate(boxes) for _ in frame)
        column = "box_labels"
        labels = list_cell(list, row["box_labels"] or "[]")
        if labels and [*map(len, labels)] != [*map(len, boxes)]:
            raise ValueError("not one label for every box")
        names = tuple(label for frame in labels for label in all_of(str, frame))
        column = "image_path"
        images = paths_cell(row["image_path"])
        column = "support_shots"
        support = paths_cell(row["support_shots"] or "[]")
        column = "frame_indices"
        indices = list_cell(int, row["frame_indices"] or "[]")
        column = "sightings"
        sightings = tuple(map(_sighting, list_cell(dict, row["sightings"] or "[]")))
        column = "tags"
        tags = _tags(json.loads(row["tags"] or "{}"))
        column = "width"
        width = _side(row["width"])
        column = "height"
        height = _side(row["height"])
        column = "masks"
        masks = _masks(json.loads(row["masks"] or "[]"), boxes, (height, width))
        column = "ignored"
        ignored = _ignored(row["ignored"], len(images), bool(labels), (height, width))
    except (ValueError, TypeError, RecursionError) as error:
        raise TableError(f"{path}, line {number}, column {column}: {error}") from None
    if len(boxes) != len(images):
        raise TableError(
            f"{path}, line {number}, column boxes: {len(boxes)} lists for {len(images)} images"
        )
    return Query(
        index=index,
        label=row["label"],
        width=width,
        height=height,
        images=images,
        support=support,
        caption=row["caption"],
        frame_indices=indices,
        sightings=sightings,
        tags=tags,
        truth=Truth(flat, frames, names, masks, ignored),
    )


def _sighting(said: Mapping[str, Any]) -> Sighting:
    if said.keys() != {"image", "box"}:
        raise ValueError(f"{said!r} is not an image and a box")
    (image,) = paths_cell(json.dumps([said["image"]]))
    return Sighting(image, corners(said["box"]))


def _masks(said: Any, boxes: Any, size: tuple[int, int]) -> tuple[Mask | None, ...]:
    """The masks of a row's boxes, not unpacked yet: answers in boxes need none."""
    if not isinstance(said, list):
        raise ValueError(f"{said!r:.40} is not a list")
    if said and [*map(len, said)] != [*map(len, boxes)]:
        raise ValueError("not one mask, or null, for every box")
    flat = [mask for frame in said for mask in frame]
    if not all(mask is None or isinstance(mask, str) for mask in flat):
        raise ValueError("a mask is neither text nor null")
    return tuple(None if mask is None else PackedMask(*size, mask) for mask in flat)


_OF_IGNORED = {"box": list, "frame": int, "label": str, "crowd": bool, "mask": str | None}


def _ignored(cell: str, frames: int, labelled: bool, size: tuple[int, int]) -> tuple[Ignored, ...]:
    """The objects of a row that count neither way; their masks are not unpacked yet."""
    found = []
    for one in list_cell(dict, cell or "[]"):
        if one.keys() != _OF_IGNORED.keys():
            raise ValueError(f"{one!r:.80} should have the keys {', '.join(_OF_IGNORED)}")
        for key, kind in _OF_IGNORED.items():
            if not isinstance(one[key], kind) or (kind is int and isinstance(one[key], bool)):
                raise ValueError(f"{key}: {one[key]!r:.40} is of the wrong type")
        if not 0 <= one["frame"] < frames:
            raise ValueError(f"frame {one['frame']} is none of the {frames}, counted from 0")
        if labelled and not one["label"]:
            raise ValueError("has no label where boxes have one each")
        mask = None if one["mask"] is None else PackedMask(*size, one["mask"])
        found.append(Ignored(**{**one, "box": corners(one["box"]), "mask": mask}))
    return tuple(found)


def _tags(said: Any) -> Mapping[str, str]:
    if not isinstance(said, dict):
        raise ValueError(f"{said!r} is not an object of tags")
    for (kind, _), value in zip(said.items(), all_of(str, [*said.values()]), strict=True):
        why = slice_problem(kind, value)
        if why:
            raise ValueError(why)
    return said


def _side(cell: str) -> int:
    side = int(cell)
    if side < 1:
        raise ValueError(f"{side} is not a size in pixels")
    return side


def corners(box: Sequence[float]) -> Corners:
    """Four numbers of a table as a box.

    Raises:
        ValueError: they are not four finite numbers.
    """
    x1, y1, x2, y2 = box
    for n in (x1, y1, x2, y2):
        if isinstance(n, bool) or not isinstance(n, (int, float)) or not isfinite(n):
            raise ValueError(f"{box!r} is not four finite numbers")
    return (float(x1), float(y1), float(x2), float(y2))
