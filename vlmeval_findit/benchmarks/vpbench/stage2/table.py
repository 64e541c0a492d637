"""The table of stage 2, ``VPBench_Stage2.tsv``, with its ``.meta.json`` beside it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....core.places import image_folder
from ....core.table_files import TableError, all_of, json_cell, paths_cell, read_rows, write_cells
from ..query import LETTERS
from ..tables import STAGE_2
from .phrases import uneven
from .question import IMAGES
from .release import read_release
from .row import Marked, Role, Source, Stage2Row

COLUMNS = ("index", "image", "size", "marks", "question", *LETTERS, "answer", "source")

HOW_TO_MAKE = "python run_findit.py prepare --vp-bench DIR"


@dataclass(frozen=True, slots=True)
class Prepared:
    """The table that was written, its number of rows, and what a user should know of it."""

    path: Path
    queries: int
    notes: tuple[str, ...]


def prepare(parts: Sequence[Path], out: Path) -> Prepared:
    """Make the table of the authors' files, and put their pictures below the image folder.

    Args:
        parts: the files (:func:`.release.parts_in`).
        out: the folder for the table.

    Raises:
        TableError: naming file, row and column; no table is written then.
    """
    release = read_release(parts, image_folder(IMAGES).path)
    odd = [row.index for row in release.rows if uneven(row)]
    path = out / f"{STAGE_2}.tsv"
    facts = {**release.facts, "spans unlike regions": odd, "queries": len(release.rows)}
    write_cells(path, COLUMNS, map(_cells, release.rows), {}, lambda: facts)
    readings = (f"{source} {how}" for source, how in release.facts["boxes"].items())
    notes = [f"boxes read as {', '.join(readings)}"]
    unanswered = release.facts["rows without an answer"]
    notes += [f"{unanswered} questions without an answer: asked, not scored"] * bool(unanswered)
    notes += [f"{len(odd)} questions name marks less or more often than there are"] * bool(odd)
    return Prepared(path, len(release.rows), tuple(notes))


def _cells(row: Stage2Row) -> list[Any]:
    options = dict(row.options)
    marks = [[mark.picture, mark.role.value, mark.box, mark.outlines] for mark in row.marks]
    return [
        row.index,
        json_cell(row.images),
        json_cell(row.sizes),
        json_cell(marks),
        row.label,
        *(options.get(letter, "") for letter in LETTERS),
        row.answer,
        row.source.value,
    ]


def read_table(path: Path) -> list[Stage2Row]:
    """The rows of the table.

    Raises:
        TableError: naming file, line and column; or the table is not the one that its
            ``.meta.json`` describes.
    """
    return read_rows(path, COLUMNS, _row, HOW_TO_MAKE)


def _row(path: Path, number: int, cells: Sequence[str]) -> Stage2Row:
    column = "index"
    try:
        row = dict(zip(COLUMNS, cells, strict=True))
        index = int(row["index"])
        column = "image"
        images = paths_cell(row["image"])
        column = "size"
        sizes = tuple(_size(one) for one in json.loads(row["size"]))
        if not images or len(sizes) != len(images):
            raise ValueError(f"{len(sizes)} sizes of {len(images)} pictures")
        column = "marks"
        marks = tuple(_mark(one, len(images)) for one in json.loads(row["marks"]))
        column = "answer"
        options = tuple((letter, row[letter]) for letter in LETTERS if row[letter])
        if row["answer"] and row["answer"] not in dict(options):
            raise ValueError(f"{row['answer']!r} is no option: {', '.join(dict(options))}")
        column = "source"
        source = Source(row["source"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise TableError(f"{path}, line {number}, column {column}: {error}") from None
    return Stage2Row(index, row["question"], images, sizes, marks, options, row["answer"], source)


def _size(value: Any) -> tuple[int, int]:
    width, height = all_of(int, value)
    return width, height


def _mark(value: Any, pictures: int) -> Marked:
    picture, role, box, outlines = value
    if type(picture) is not int or not 0 <= picture < pictures:
        raise ValueError(f"there is no picture {picture!r}")
    x, y, w, h = map(float, box)
    polygons = tuple(tuple(map(float, polygon)) for polygon in outlines)
    return Marked(picture, Role(role), (x, y, w, h), polygons)
