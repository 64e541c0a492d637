"""Annotation tables: the release's Parquet subsets in, one TSV a dataset out, queries from both.

A TSV holds a dataset's rows after the thinning of protocol section 2, one row a query: ``index``
(the row number in the subset), ``label``, ``width``, ``height``, ``boxes``, ``box_labels``,
``image_path``, ``support_shots``, ``frame_indices``, ``caption``; and ``sightings`` where a row has
any: a list of {"image", "box"}, the pictures that its shots were taken from.  Lists are JSON; boxes
are [x1, y1, x2, y2] in pixels of the original image, one list of boxes a frame for videos.  Beside
it lies ``<table>.meta.json``: where the rows came from, with which checksum, and what is odd in
them.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from ...boxes.records import Truth
from ...boxes.representation import Corners
from ...core.files import atomic_write, file_sha256, sha256_of
from ...core.paths import unsafe
from .oddities import Oddity, oddities
from .places import how_to_make
from .query import Query, Sighting
from .table_facts import contradiction, meta_path

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
OPTIONAL = ("sightings",)
"""Columns behind these that a table may have."""


class TableError(ValueError):
    """A table that cannot be trusted; the message names file, row and column."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What ``prepare`` did for one table."""

    table: str
    path: Path
    queries: int
    boxes: int
    size: int
    oddities: tuple[Oddity, ...]


def write_table(
    out: Path, table: str, queries: Sequence[Query], origin: Mapping[str, str]
) -> Prepared:
    """Write queries as ``<out>/<table>.tsv`` with its ``.meta.json``, both atomically."""
    columns = (*COLUMNS, *(OPTIONAL if any(query.sightings for query in queries) else ()))
    cells = (_cells(query)[: len(columns)] for query in queries)
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
    path.parent.mkdir(parents=True, exist_ok=True)
    odd = oddities(queries)
    # First, so that a kill between the two files leaves no table beside the facts of another.
    meta_path(path).unlink(missing_ok=True)
    with atomic_write(path) as f:
        writer = csv.writer(f, delimiter="\t", lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(cells)
    boxes = sum(len(query.truth.boxes) for query in queries)
    facts = {
        "table": path.stem,
        **origin,
        "table_sha256": file_sha256(path),
        "queries": len(queries),
        "boxes": boxes,
        "oddities": [asdict(o) for o in odd],
    }
    with atomic_write(meta_path(path)) as f:
        json.dump(facts, f, indent=1)
    return Prepared(path.stem, path, len(queries), boxes, path.stat().st_size, tuple(odd))


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
        _json(boxes),
        _json(labels) if query.truth.labels else "",
        _json(query.images),
        _json(query.support) if query.support else "",
        _json(query.frame_indices) if query.frame_indices else "",
        query.caption,
        _json([seen._asdict() for seen in query.sightings]) if query.sightings else "",
    ]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def read_table(path: Path) -> list[Query]:
    """The queries of a TSV that :func:`write_table` wrote.

    Those of the last tables are kept by their content: one run reads a table more than once.

    Raises:
        TableError: naming file, line and column; or the table is not the one that its
            ``.meta.json`` describes.
    """
    return read_rows(path, COLUMNS, _query_from_cells, how_to_make(path.stem), OPTIONAL)


Row = TypeVar("Row", bound=Query)


def read_rows(
    path: Path,
    columns: Sequence[str],
    read: Callable[[Path, int, Sequence[str]], Row],
    anew: str,
    optional: Sequence[str] = (),
) -> list[Row]:
    """The queries of a table that :func:`write_rows` wrote; see :func:`read_table`.

    Args:
        path: the table.
        columns: those that it has.
        read: makes a query of a row, given the table's path and the number of the line.
        anew: the command that makes the table, for messages.
        optional: columns that it may have behind the others; without them their cells are empty.
    """
    data = path.read_bytes()
    sha256 = sha256_of(data)
    wrong = contradiction(path, sha256)
    if wrong:
        raise TableError(f"{wrong}: {anew}")
    if (path, sha256) not in _READ:
        while len(_READ) >= _TABLES_KEPT:
            del _READ[next(iter(_READ))]
        rows = _lines(path, data, columns, anew, optional)
        queries = [read(path, number, cells) for number, cells in rows]
        seen: set[int] = set()
        for query in queries:
            if query.index in seen:
                raise TableError(f"{path}: index {query.index} stands twice")
            seen.add(query.index)
        _READ[path, sha256] = tuple(queries)
    return list(_READ[path, sha256])


_TABLES_KEPT = 32
"""More than the release has."""

_READ: dict[tuple[Path, str], tuple[Any, ...]] = {}


def _lines(
    path: Path, data: bytes, columns: Sequence[str], anew: str, optional: Sequence[str]
) -> Iterator[tuple[int, Sequence[str]]]:
    csv.field_size_limit(2**31 - 1)
    try:
        lines = csv.reader(io.StringIO(data.decode("utf-8"), newline=""), delimiter="\t")
        header = next(lines, [])
        if header not in ([*columns], [*columns, *optional]):
            missing = [c for c in columns if c not in header]
            raise TableError(
                f"{path}: columns are {header}, should be {list(columns)}"
                + (f" (missing: {', '.join(missing)})" if missing else "")
                + f"; make it anew with: {anew}"
            )
        absent = [""] * (len(columns) + len(optional) - len(header))
        for cells in lines:
            yield lines.line_num, cells + absent
    except (csv.Error, UnicodeDecodeError) as error:
        raise TableError(f"{path}: {error}; make it anew with: {anew}") from None


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
        labels = _list_of(list, row["box_labels"] or "[]")
        if labels and [*map(len, labels)] != [*map(len, boxes)]:
            raise ValueError("not one label for every box")
        names = tuple(label for frame in labels for label in _all(str, frame))
        column = "image_path"
        images = _paths(row["image_path"])
        column = "support_shots"
        support = _paths(row["support_shots"] or "[]")
        column = "frame_indices"
        indices = _list_of(int, row["frame_indices"] or "[]")
        column = "sightings"
        sightings = tuple(_sighting(seen) for seen in _list_of(dict, row["sightings"] or "[]"))
        column = "width"
        width = _side(row["width"])
        column = "height"
        height = _side(row["height"])
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
        truth=Truth(flat, frames, names),
    )


def _list_of(kind: type[Any], cell: str) -> tuple[Any, ...]:
    return tuple(_all(kind, json.loads(cell)))


def _all(kind: type[Any], values: Any) -> list[Any]:
    """Values that are a list of just this type; a bool is no int here."""
    if not isinstance(values, list) or any(type(value) is not kind for value in values):
        raise ValueError(f"{values!r} is not a list of {kind.__name__}")
    return values


def _sighting(said: Mapping[str, Any]) -> Sighting:
    if said.keys() != {"image", "box"}:
        raise ValueError(f"{said!r} is not an image and a box")
    (image,) = _safe(_all(str, [said["image"]]))
    return Sighting(image, corners(said["box"]))


def _paths(cell: str) -> tuple[str, ...]:
    return _safe(_list_of(str, cell))


def _safe(names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        why = unsafe(name)
        if why:
            raise ValueError(f"{name!r} {why}: images lie below their dataset's folder")
    return tuple(names)


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
