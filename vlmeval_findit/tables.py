"""Annotation tables: the release's Parquet subsets in, one TSV a dataset out, queries from both.

A TSV holds a dataset's rows after the thinning of protocol section 2, one row a query: ``index``
(the row number in the subset), ``label``, ``width``, ``height``, ``boxes``, ``box_labels``,
``image_path``, ``support_shots``, ``frame_indices``, ``caption``.  Lists are JSON; boxes are
[x1, y1, x2, y2] in pixels of the original image, one list of boxes a frame for videos.  Beside it
lies ``<table>.meta.json``: where the rows came from, with which checksum, and what is odd in them.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from .datasets import BENCHMARK, Dataset, Subset
from .files import atomic_write, file_sha256
from .records import Query, Truth
from .representation import Corners
from .variant import nearest

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

Row = Mapping[str, Any]
"""One row in the column layout of the release's subsets."""


class TableError(ValueError):
    """A table that cannot be trusted; the message names file, row and column."""


# --- thinning -------------------------------------------------------------------------------------


def thin(count: int, frames: int) -> list[int]:
    """The indices that thinning ``count`` frames to ``frames`` keeps (protocol section 2)."""
    if frames >= count:
        return list(range(count))
    indices: list[int] = np.linspace(0, count - 1, frames, dtype=int).tolist()
    return indices


def thinned(query: Query, frames: int) -> Query:
    """A query with at most so many of its frames: paths, frame indices and boxes alike."""
    kept = thin(len(query.images), frames)
    if len(kept) == len(query.images):
        return query
    place = {old: new for new, old in enumerate(kept)}
    truth = query.truth
    boxes = [i for i, frame in enumerate(truth.frames) if frame in place]
    return replace(
        query,
        images=tuple(query.images[i] for i in kept),
        frame_indices=tuple(query.frame_indices[i] for i in kept) if query.frame_indices else (),
        truth=Truth(
            boxes=tuple(truth.boxes[i] for i in boxes),
            frames=tuple(place[truth.frames[i]] for i in boxes),
            labels=tuple(truth.labels[i] for i in boxes) if truth.labels else (),
        ),
    )


# --- rows of the release --------------------------------------------------------------------------


def query_from_row(index: int, row: Row, dataset: Dataset, multilabel: bool, where: str) -> Query:
    """One row of a subset as a query, not thinned.

    Raises:
        TableError: a column is missing or does not hold what it should.
    """

    def fail(column: str, why: str) -> TableError:
        return TableError(f"{where}, row {index}, column {column}: {why}")

    for column in ("filename", "label", "bboxes", "height", "width"):
        if row.get(column) is None:
            raise fail(column, "is missing")
    label, width, height = str(row["label"]), row["width"], row["height"]
    if not label.strip():
        raise fail("label", "is empty")
    for column, value in (("width", width), ("height", height)):
        if not isinstance(value, int) or value < 1:
            raise fail(column, f"{value!r} is not a size in pixels")

    is_video = dataset.family.is_video
    names = row.get("frame_paths") if is_video else [row["filename"]]
    if not names:
        raise fail("frame_paths", "a video row without frames")
    per_frame = row["bboxes"] if is_video else [row["bboxes"]]
    if len(per_frame) != len(names):
        raise fail("bboxes", f"{len(per_frame)} lists of boxes for {len(names)} frames")
    frame_indices = tuple(row.get("frame_indices") or ())
    if frame_indices and len(frame_indices) != len(names):
        raise fail("frame_indices", f"{len(frame_indices)} indices for {len(names)} frames")

    boxes, frames, labels = [], [], []
    for frame, entries in enumerate(per_frame):
        for entry in entries or ():
            try:
                boxes.append(_corners(entry["bbox"] if multilabel else entry))
                labels += [str(entry["label"])] if multilabel else []
            except (TypeError, ValueError, KeyError):
                what = "a label and four finite numbers" if multilabel else "four finite numbers"
                raise fail("bboxes", f"{entry!r} is not {what}") from None
            frames.append(frame)
    return Query(
        index=index,
        label=label,
        width=width,
        height=height,
        images=tuple(dataset.image_name(name) for name in names),
        support=tuple(dataset.support_name(name) for name in row.get("support_shots") or ()),
        caption=str(row.get("caption") or ""),
        frame_indices=frame_indices,
        truth=Truth(tuple(boxes), tuple(frames), tuple(labels)),
    )


def _corners(box: Sequence[float]) -> Corners:
    x1, y1, x2, y2 = box
    if not all(isinstance(n, (int, float)) and isfinite(n) for n in (x1, y1, x2, y2)):
        raise ValueError(f"{box!r} is not four finite numbers")
    return (float(x1), float(y1), float(x2), float(y2))


def parquet_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of one Parquet subset, in order."""
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows


def subset_queries(path: Path, dataset: Dataset, multilabel: bool) -> list[Query]:
    """The queries of one subset file, thinned to the dataset's frames."""
    return [
        thinned(query_from_row(i, row, dataset, multilabel, path.name), dataset.frames)
        for i, row in enumerate(parquet_rows(path))
    ]


# --- checks ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Oddity:
    """Something in the annotations that is reported and left as it is."""

    index: int
    what: str
    box: Corners


_MARGIN = 0.01
"""Pixels by which rounding alone puts a box out of its image."""


def oddities(queries: Iterable[Query]) -> list[Oddity]:
    """Boxes with swapped corners, without area, or out of their image (by 0.01 pixels or more)."""
    found = []
    for query in queries:
        width, height = query.width + _MARGIN, query.height + _MARGIN
        for box in query.truth.boxes:
            x1, y1, x2, y2 = box
            what = []
            if x1 > x2 or y1 > y2:
                what.append("swapped corners")
            elif x1 == x2 or y1 == y2:
                what.append("no area")
            if min(box) < -_MARGIN or max(x1, x2) > width or max(y1, y2) > height:
                what.append("out of the image")
            found += [Oddity(query.index, w, box) for w in what]
    return found


def check_counts(queries: Sequence[Query], rows: Sequence[Row], known: Subset, where: str) -> None:
    """Hold a subset against the counts that are known of it.

    Raises:
        TableError: a count differs.
    """
    counted = {
        "rows": (len(queries), known.rows),
        "distinct file names": (len({row["filename"] for row in rows}), known.names),
        "boxes": (sum(len(q.truth.boxes) for q in queries), known.boxes),
        "rows without a box": (
            sum(not q.truth.boxes for q in queries),
            known.rows_without_box,
        ),
    }
    for what, (is_, should) in counted.items():
        if is_ != should:
            raise TableError(f"{where}: {is_} {what}, but the release has {should}")


# --- TSV ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prepared:
    """What ``prepare`` did for one table."""

    table: str
    path: Path
    queries: int
    boxes: int
    size: int
    oddities: tuple[Oddity, ...]


def prepare_subset(subsets: Path, out: Path, dataset: Dataset, multilabel: bool) -> Prepared:
    """Turn one Parquet subset into its TSV.

    Raises:
        FileNotFoundError: the subset is not in the folder.
        TableError: its checksum, a count or a column is wrong.
    """
    known = dataset.subset_for(multilabel)
    assert known is not None
    source = subsets / f"{known.file}.parquet"
    if not source.is_file():
        raise FileNotFoundError(f"{source} is missing: it holds {dataset.table_name(multilabel)}")
    checksum = file_sha256(source)
    if checksum != known.sha256:
        raise TableError(
            f"{source}: SHA-256 is {checksum}, but the release's file has {known.sha256}; "
            "scores on other annotations are not FindIt scores"
        )
    rows = parquet_rows(source)
    queries = [
        query_from_row(i, row, dataset, multilabel, source.name) for i, row in enumerate(rows)
    ]
    check_counts(queries, rows, known, source.name)
    return write_table(
        out,
        dataset.table_name(multilabel),
        [thinned(query, dataset.frames) for query in queries],
        {"source": source.name, "source_sha256": checksum},
    )


def write_table(
    out: Path, table: str, queries: Sequence[Query], origin: Mapping[str, str]
) -> Prepared:
    """Write queries as ``<out>/<table>.tsv`` with its ``.meta.json``, both atomically."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{table}.tsv"
    odd = oddities(queries)
    with atomic_write(path) as f:
        writer = csv.writer(f, delimiter="\t", lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(_cells(query) for query in queries)
    boxes = sum(len(query.truth.boxes) for query in queries)
    meta = {
        "table": table,
        **origin,
        "table_sha256": file_sha256(path),
        "queries": len(queries),
        "boxes": boxes,
        "oddities": [asdict(o) for o in odd],
    }
    with atomic_write(meta_path(path)) as f:
        json.dump(meta, f, indent=1)
    return Prepared(table, path, len(queries), boxes, path.stat().st_size, tuple(odd))


def meta_path(table: Path) -> Path:
    """Where the facts about a table lie."""
    return table.with_suffix(".meta.json")


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
    ]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def read_table(path: Path) -> list[Query]:
    """The queries of a TSV that :func:`write_table` wrote.

    Raises:
        TableError: naming file, line and column.
    """
    csv.field_size_limit(2**31 - 1)
    with path.open(encoding="utf-8", newline="") as f:
        lines = csv.reader(f, delimiter="\t")
        header = next(lines, [])
        if tuple(header) != COLUMNS:
            missing = [c for c in COLUMNS if c not in header]
            raise TableError(
                f"{path}: columns are {header}, should be {list(COLUMNS)}"
                + (f" (missing: {', '.join(missing)})" if missing else "")
                + "; make it again with: python run_findit.py prepare"
            )
        queries = [_query_from_cells(path, number, cells) for number, cells in enumerate(lines, 2)]
    seen: set[int] = set()
    for query in queries:
        if query.index in seen:
            raise TableError(f"{path}: index {query.index} stands twice")
        seen.add(query.index)
    return queries


def _query_from_cells(path: Path, number: int, cells: Sequence[str]) -> Query:
    column = "index"
    try:
        row = dict(zip(COLUMNS, cells, strict=True))
        index = int(row["index"])
        column = "boxes"
        boxes = json.loads(row["boxes"])
        flat = tuple(_corners(box) for frame in boxes for box in frame)
        frames = tuple(i for i, frame in enumerate(boxes) for _ in frame)
        column = "box_labels"
        labels = json.loads(row["box_labels"]) if row["box_labels"] else []
        if labels != [] and [*map(len, labels)] != [*map(len, boxes)]:
            raise ValueError("not one label for every box")
        column = "image_path"
        images = tuple(json.loads(row["image_path"]))
        column = "support_shots"
        support = tuple(json.loads(row["support_shots"])) if row["support_shots"] else ()
        column = "frame_indices"
        indices = tuple(json.loads(row["frame_indices"])) if row["frame_indices"] else ()
        column = "width"
        width = int(row["width"])
        column = "height"
        height = int(row["height"])
    except (ValueError, TypeError) as error:
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
        truth=Truth(flat, frames, tuple(label for frame in labels for label in frame)),
    )


def tables_of(names: Iterable[str] | None) -> Iterator[tuple[Dataset, bool]]:
    """The tables with a Parquet source that the named datasets have (default: all).

    Raises:
        TableError: an unknown name; the message says which is nearest.
    """
    with_source = {name: row for name, row in BENCHMARK.items() if row.subset is not None}
    for name in with_source if names is None else names:
        # Pascal stands for both of its tables, Pascal_multilabel for that one alone.
        dataset = name.removesuffix("_multilabel")
        if dataset not in with_source:
            raise TableError(f"no dataset {name!r}{nearest(name, with_source)}")
        for multilabel in (True,) if name != dataset else (False, True):
            if with_source[dataset].subset_for(multilabel) is not None:
                yield with_source[dataset], multilabel
