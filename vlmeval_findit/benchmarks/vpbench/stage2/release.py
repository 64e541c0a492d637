"""The authors' stage 2 files, ``vp_bench_stage_2_meta.part<NNNN>.parquet``, read as they are.

The release's texts describe its cells in two ways: as lists (``image`` and ``meta_bbox`` with one
entry a picture or a box) and as JSON objects ``{file: {role: …}}``.  Both are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ....core.files import file_sha256
from ....core.spelling import nearest
from ....core.table_files import TableError
from ..cells import text
from ..query import LETTERS
from . import regions, values
from .boxes import Found, Quad, as_xywh, reading_of
from .pictures import keep
from .row import Source, Stage2Row

PARTS = "vp_bench_stage_2_meta.part*.parquet"

COLUMNS = (
    "meta_source",
    "data_file",
    "image",
    "meta_bbox",
    "meta_polygon",
    "question",
    *LETTERS,
    "answer",
)

_NUMBER = re.compile(r"\.part(\d+)\.parquet")

_AT_A_TIME = 16
"""Rows that are in memory with their pictures."""


@dataclass(frozen=True, slots=True)
class Release:
    """What the files hold: rows in their order, how the boxes of each source were read, and the
    SHA-256 of each file.
    """

    rows: tuple[Stage2Row, ...]
    readings: Mapping[Source, Found]
    files: Mapping[str, str]

    @property
    def facts(self) -> dict[str, Any]:
        """What the ``.meta.json`` of a table says of where it came from."""
        return {
            "files": dict(self.files),
            "boxes": {
                source.value: found.reading.value + " (both fit)" * found.either
                for source, found in self.readings.items()
            },
            "marks": sum(len(row.marks) for row in self.rows),
            "marks without an outline": sum(
                not mark.outlines for row in self.rows for mark in row.marks
            ),
            "rows without an answer": sum(not row.answer for row in self.rows),
        }


def parts_in(place: Path) -> list[Path]:
    """The files of a folder by their numbers, or the one that is named; none where there is none.

    Raises:
        TableError: a part between two others is missing.
    """
    if not place.is_dir():
        return [place] if _NUMBER.search(place.name) else []
    found = {
        int(number[1]): path for path in place.glob(PARTS) if (number := _NUMBER.search(path.name))
    }
    missing = sorted(set(range(min(found, default=0), max(found, default=0))) - set(found))
    if missing:
        raise TableError(f"{place}: part {missing[0]:04} of {PARTS} is missing")
    return [found[number] for number in sorted(found)]


def read_release(parts: Sequence[Path], folder: Path) -> Release:
    """Read all parts; their pictures go below an image folder as they are.

    Raises:
        TableError: naming file, row and column.
    """
    found = [one for path in parts for one in _rows(path, folder)]
    if not found:
        raise TableError(f"{', '.join(path.name for path in parts)}: there is no row")
    by_source: dict[Source, list[Quad]] = {}
    for row, quads in found:
        by_source.setdefault(row.source, []).extend(quads)
    readings = {source: reading_of(source.value, quads) for source, quads in by_source.items()}
    rows = tuple(
        replace(
            row,
            index=index,
            marks=tuple(
                replace(mark, box=as_xywh(mark.box, readings[row.source].reading))
                for mark in row.marks
            ),
        )
        for index, (row, _) in enumerate(found, 1)
    )
    return Release(rows, readings, {path.name: file_sha256(path) for path in parts})


def _rows(path: Path, folder: Path) -> Iterator[tuple[Stage2Row, list[Quad]]]:
    """The rows of a file with the boxes as they stand: what they are is not known yet."""
    for number, cells in enumerate(_cells(path)):
        where = f"{path.name}, row {number}"
        row = _row(cells, folder, where)
        quads = [Quad(mark.box, row.sizes[mark.picture], where) for mark in row.marks]
        yield row, quads


def _cells(path: Path) -> Iterator[Mapping[str, Any]]:
    import pyarrow
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            missing = [name for name in COLUMNS if name not in file.schema_arrow.names]
            if missing:
                raise TableError(f"{path.name}: there is no column {', '.join(missing)}")
            for batch in file.iter_batches(_AT_A_TIME, columns=list(COLUMNS)):
                yield from batch.to_pylist()
    except pyarrow.ArrowException as error:
        raise TableError(f"{path.name}: no Parquet file: {error}") from None


def _row(cells: Mapping[str, Any], folder: Path, where: str) -> Stage2Row:
    column = ""

    def cell(name: str) -> Any:
        nonlocal column
        column = name
        return cells[name]

    try:
        source = _source(text(cell("meta_source")))
        question = text(cell("question"))
        if not question:
            raise ValueError("is empty")
        options = _options([text(cell(letter)) for letter in LETTERS])
        answer = _answer(text(cell("answer")), options)
        given = values.pictures(cell("image"))
        stored = [keep(data, folder) for data in given.values()]
        called = regions.names(list(given), values.parsed(cell("data_file")))
        by_role = regions.by_role(
            regions.by_picture(values.parsed(cell("meta_bbox")), called), source
        )
        boxes = [{role: values.quads(one) for role, one in by.items()} for by in by_role]
        polygons = regions.by_role(
            regions.by_picture(values.parsed(cell("meta_polygon")), called), source
        )
        marks = tuple(regions.marks_of(boxes, polygons))
        column = "meta_bbox"
        if not marks:
            raise ValueError("holds no box: every question is about a region")
    except ValueError as error:
        at = f", column {column}" if column else ""
        raise TableError(f"{where}{at}: {error}") from None
    return Stage2Row(
        index=0,
        label=question,
        images=tuple(one.name for one in stored),
        sizes=tuple(one.size for one in stored),
        marks=marks,
        options=options,
        answer=answer,
        source=source,
    )


# --- texts ----------------------------------------------------------------------------------------


def _source(said: str) -> Source:
    known = {source.value: source for source in Source}
    if said not in known:
        raise ValueError(f"{said!r} is no source{nearest(said, known)}")
    return known[said]


def _options(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The options that there are, by letter, without the letters that they may begin with.

    >>> _options(["A. a car", "B. a bus", "", ""]), _options(["A.M.", "P.M.", "", ""])
    ((('A', 'a car'), ('B', 'a bus')), (('A', 'A.M.'), ('B', 'P.M.')))
    """
    given = [(letter, said) for letter, said in zip(LETTERS, texts, strict=True) if said]
    if not given:
        raise ValueError("there is no option")
    bare = [(letter, said) for letter, full in given if (said := _without_letter(letter, full))]
    # One that begins so by chance is no reason: all do, or none has a prefix.
    return tuple(bare if len(bare) == len(given) else given)


def _without_letter(letter: str, said: str) -> str | None:
    found = re.fullmatch(rf"\(?{letter}\s*[.):]\s*(.+)", said, re.DOTALL)
    return found[1] if found else None


def _answer(said: str, options: Sequence[tuple[str, str]]) -> str:
    """The letter of an answer that is a letter, an option, or both; "" of none."""
    if not said:
        return ""
    letters = dict(options)
    bare = said.strip(" .():").upper()
    if bare in letters:
        return bare
    for letter, option in options:
        if option in (said, _without_letter(letter, said)):
            return letter
    raise ValueError(f"{said!r} is no option: {', '.join(letters)}")
