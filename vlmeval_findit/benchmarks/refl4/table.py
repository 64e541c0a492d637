"""Tables of Ref-L4: the authors' Parquet files in, ``RefL4Full_<val|test|all>.tsv`` out.

One row an expression, in the authors' order, ``all`` being val and then test.  The columns are the
authors' own, with ``index`` in front, which is their ``id``: a row has the same index in every
table.  ``bbox`` is a JSON list [x, y, width, height] in pixels of the original image.  Beside a
table lies its ``.meta.json``, as beside FindIt's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...boxes.records import Truth
from ...core.files import file_sha256, sha256_of
from ...core.paths import unsafe
from ...core.places import find_table
from ...core.question import Task
from ...core.spelling import nearest
from ...core.table_files import TableError, read_rows
from ..findit.annotation_tables import Prepared, write_rows
from ..findit.query import Query
from .annotations import (
    Annotation,
    Split,
    annotation,
    file_name,
    read_annotations,
    unlike_release,
)
from .judging import corners
from .refusals import Code, RefusedError
from .variant import DATASETS, RefL4Variant, parse, table_name

COLUMNS = (
    "index",
    "id",
    "caption",
    "bbox",
    "bbox_id",
    "ori_category_id",
    "image_id",
    "width",
    "height",
    "file_name",
    "is_rewrite",
    "split",
)


@dataclass(frozen=True, slots=True)
class Expression(Query):
    """One row of a table: what is asked, and the annotation with its class and split."""

    annotation: Annotation = field(kw_only=True)


RefL4Task = Task[RefL4Variant, Expression]
"""A way of asking over its split."""


def expression(one: Annotation, where: str) -> Expression:
    """An annotation as a row of a table.

    Raises:
        RefusedError: something is missing that nobody could be asked without.
    """

    def bad(key: str, why: str) -> RefusedError:
        return RefusedError(Code.BAD_ANNOTATION, f"{where}, {key}", why)

    if type(one.id) is not int:
        raise RefusedError(Code.NO_ID, f"{where}, id", f"{one.id!r} is no whole number")
    if one.caption is None or not one.caption.strip():
        raise bad("caption", "is empty")
    if not isinstance(one.file_name, str):
        raise bad("file_name", "is missing")
    why = unsafe(one.file_name)
    if why:
        raise bad("file_name", f"{one.file_name!r} {why}: images lie below their folder")
    return Expression(
        index=one.id,
        label=one.caption,
        width=_side(one.width, bad, "width"),
        height=_side(one.height, bad, "height"),
        images=(one.file_name,),
        truth=Truth((corners(one),), (0,)),
        annotation=one,
    )


def _side(value: Any, bad: Any, key: str) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not int or value < 1:
        refused: RefusedError = bad(key, f"{value!r} is not a size in pixels")
        raise refused
    return value


def split_of(table: str) -> Split:
    """The split of a table.

    >>> split_of("RefL4Full_test")
    <Split.TEST: 'test'>

    Raises:
        TableError: there is no such table; the message says which is nearest.
    """
    if table not in DATASETS:
        raise TableError(f"no dataset {table!r}{nearest(table, DATASETS)}")
    return Split(table.rpartition("_")[2])


# --- writing --------------------------------------------------------------------------------------


def splits_in(folder: Path) -> tuple[Split, ...]:
    """The splits whose tables can be made of a folder of the authors' files.

    Raises:
        FileNotFoundError: none can.
    """
    there = [s for s in (Split.VAL, Split.TEST) if (folder / file_name(s)).is_file()]
    if not there:
        names = f"{file_name(Split.VAL)} or {file_name(Split.TEST)}"
        raise FileNotFoundError(f"{folder}: no {names} there (JierunChen/Ref-L4 on Hugging Face)")
    return tuple(there) if len(there) == 1 else tuple(Split)


@dataclass(frozen=True, slots=True)
class Release:
    """What the authors' files of a split hold, and how it is unlike what they published."""

    split: Split
    files: tuple[Path, ...]
    annotations: tuple[Annotation, ...]
    unlike: tuple[str, ...]


def read_release(folder: Path, split: Split) -> Release:
    """Read the files of a split.

    Raises:
        FileNotFoundError: a file is not in the folder.
        RefusedError: it cannot be used.
    """
    found = read_annotations(folder, split)
    files = tuple(folder / file_name(part) for part in split.parts)
    return Release(split, files, found, tuple(unlike_release(found, split)))


def refuse_unlike(release: Release) -> None:
    """Refuse other annotations than were published.

    Raises:
        RefusedError: the files hold others.
    """
    if release.unlike:
        raise RefusedError(
            Code.UNLIKE_RELEASE,
            _names(release),
            f"{'; '.join(release.unlike)}. Scores on other annotations are not Ref-L4 scores; "
            "to make tables all the same: prepare --force",
        )


def prepare(release: Release, out: Path) -> Prepared:
    """Write the table of a split; its ``.meta.json`` notes what is unlike the release.

    Raises:
        RefusedError: a row lacks what is asked or shown.
    """
    name = table_name(release.split)
    rows = [expression(one, f"{_names(release)}, id {one.id!r}") for one in release.annotations]
    checksums = {path.name: file_sha256(path) for path in release.files}
    several = sha256_of(*(value.encode() for value in checksums.values()))
    origin = {
        "source": _names(release),
        "source_sha256": several if len(checksums) > 1 else next(iter(checksums.values())),
        "sources": checksums,
        "unlike_release": release.unlike,
    }
    return write_rows(out / f"{name}.tsv", COLUMNS, map(_cells, rows), rows, origin)


def _names(release: Release) -> str:
    return " and ".join(path.name for path in release.files)


def _cells(row: Expression) -> list[Any]:
    one = row.annotation
    return [
        row.index,
        one.id,
        one.caption,
        json.dumps(one.bbox, separators=(",", ":")),
        _json(one.bbox_id),
        one.ori_category_id,
        _json(one.image_id),
        row.width,
        row.height,
        one.file_name,
        "" if one.is_rewrite is None else json.dumps(one.is_rewrite),
        one.split.value if one.split else "",
    ]


def _json(value: object) -> str:
    """An id: in JSON 7 and "7" differ."""
    return "" if value is None else json.dumps(value, ensure_ascii=False)


# --- reading --------------------------------------------------------------------------------------


def how_to_make(split: Split) -> str:
    """The command that makes the table of a split."""
    name = table_name(split)
    prepare = f"python run_findit.py prepare --ref-l4 DIR --only {name}"
    return f"python run_findit.py fetch {name}, or {prepare}"


def read_table(path: Path) -> list[Expression]:
    """The rows of a table that :func:`prepare` wrote.

    Raises:
        TableError: naming file, line and column; or the table is not the one that its
            ``.meta.json`` describes.
    """
    split = split_of(path.stem) if path.stem in DATASETS else Split.ALL
    return read_rows(path, COLUMNS, _expression_from_cells, how_to_make(split))


def _expression_from_cells(path: Path, number: int, cells: Sequence[str]) -> Expression:
    where = f"{path}, line {number}"
    try:
        return expression(_annotation(dict(zip(COLUMNS, cells, strict=True)), where), where)
    except RefusedError as error:
        raise TableError(str(error)) from None
    except (ValueError, TypeError, RecursionError) as error:
        raise TableError(f"{where}: {error}") from None


def _annotation(cells: Mapping[str, str], where: str) -> Annotation:
    row: dict[str, Any] = dict(cells)
    for column in ("id", "bbox", "bbox_id", "image_id", "width", "height", "is_rewrite"):
        try:
            row[column] = json.loads(cells[column]) if cells[column] else None
        except ValueError as error:
            raise ValueError(f"column {column}: {error}") from None
    return annotation(row, where)


def unlike_release_of(rows: Sequence[Expression], split: Split) -> list[str]:
    """How the rows of a table are unlike what the authors published."""
    return unlike_release([row.annotation for row in rows], split)


def load_task(name: str) -> RefL4Task:
    """The task of a name.

    Raises:
        VariantError: the name is not valid.
        FileNotFoundError: its table is nowhere.
        TableError: its table cannot be read.
    """
    variant = parse(name)
    table = find_table(variant.table, how_to_make(variant.split))
    return Task(name, variant, table, {row.index: row for row in read_table(table)})


def annotations_at(place: Path | None, split: Split) -> tuple[tuple[Annotation, ...], list[Path]]:
    """The annotations of a split and the files that they came from.

    ``place`` is a folder with the authors' Parquet files, or a prepared table, or a folder with
    prepared tables; without it, the table is looked for where runs look.

    Raises:
        FileNotFoundError: they are not there.
        RefusedError, TableError: they cannot be used.
    """
    if place is not None and place.is_dir():
        files = [place / file_name(part) for part in split.parts]
        table = place / f"{table_name(split)}.tsv"
        if table.is_file() and not all(path.is_file() for path in files):
            place = table
        else:
            return read_annotations(place, split), files
    path = find_table(table_name(split), how_to_make(split)) if place is None else place
    parts: Sequence[Split] = split.parts
    kept = tuple(row.annotation for row in read_table(path) if row.annotation.split in parts)
    if not kept:
        raise RefusedError(Code.EMPTY_SPLIT, path.name, f"no row is of the split {split.value}")
    return kept, [path]
