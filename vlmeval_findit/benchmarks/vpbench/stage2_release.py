"""Convert the authors' stage 2 files to a table.

Cells are lists (an entry per image or box) or JSON ``{file: {role: …}}``. Boxes are (x, y, w, h) or
(x1, y1, x2, y2) without saying which: per source, we choose the reading with all boxes inside their
images.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from ...core import file_sha256, parse_json, quoted_value
from ...storage import (
    Size,
    TableError,
    WrittenTable,
    image_folder,
    parquet_rows,
    read_image_header,
    store_image,
    write_table,
)
from .question_tables import STAGE_2
from .stage1_release import cell_text
from .stage2_dataset import IMAGES
from .vp_query import LETTERS, MarkedRegion, RegionRole, Stage2Row, check_question, check_source

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


def prepare_stage2(parts: Sequence[Path], out: Path) -> WrittenTable:
    """Write table and images of the authors' files (:func:`parts_in`).

    Raises:
        TableError: naming file, row and column; no table is written.
    """
    rows, readings = read_release(parts, image_folder(IMAGES).path)
    marks = list(chain.from_iterable(row.marks for row in rows))
    unanswered = sum(not row.answer for row in rows)
    facts = {
        "files": {path.name: file_sha256(path) for path in parts},
        "boxes": readings,
        "marks": len(marks),
        "marks without an outline": sum(not mark.outlines for mark in marks),
        "rows without an answer": unanswered,
        "queries": len(rows),
    }
    path = out / f"{STAGE_2}.tsv"
    write_table(path, Stage2Row, rows, facts)
    notes = [f"boxes read as {', '.join(f'{source} {how}' for source, how in readings.items())}"]
    if unanswered:
        notes.append(f"{unanswered} questions without an answer: asked, not scored")
    return WrittenTable(path, len(rows), tuple(notes))


def parts_in(place: Path) -> list[Path]:
    """List a folder's parts by number, or the file itself if it is a part.

    Raises:
        TableError: a part is missing in between.
    """
    paths = place.glob(PARTS) if place.is_dir() else [place]
    parts: dict[int, Path] = {}
    for path in paths:
        numbered = _NUMBER.search(path.name)
        if numbered:
            parts[int(numbered[1])] = path
    for number in range(min(parts, default=0), max(parts, default=0)):
        if number not in parts:
            raise TableError(f"{place}: part {number:04} of {PARTS} is missing")
    return [parts[number] for number in sorted(parts)]


def read_release(parts: Sequence[Path], folder: Path) -> tuple[list[Stage2Row], dict[str, str]]:
    """Read all rows and store their images; also return the reading of each source's boxes."""
    rows: list[Stage2Row] = []
    boxes: dict[str, list[Quad]] = {}
    for path in parts:
        for where, cells in parquet_rows(path, COLUMNS, needed=COLUMNS):
            row = _row(len(rows) + 1, cells, folder, where)
            rows.append(row)
            quads = boxes.setdefault(row.source, [])
            quads += [(mark.box, row.sizes[mark.image], where) for mark in row.marks]
    readings = {source: reading_of(source, quads) for source, quads in boxes.items()}
    for at, row in enumerate(rows):
        corners = readings[row.source].startswith("xyxy")
        marks = tuple(replace(mark, box=_as_xywh(mark.box, corners)) for mark in row.marks)
        rows[at] = replace(row, marks=marks)
    return rows, readings


def _row(index: int, cells: Mapping[str, Any], folder: Path, where: str) -> Stage2Row:
    column = ""

    def cell(name: str) -> Any:
        nonlocal column
        column = name
        return cells[name]

    try:
        source = check_source(cell_text(cell("meta_source")))
        question = cell_text(cells["question"])
        answer = cell_text(cells["answer"]).strip(" .():").upper()
        options = _options([cell_text(cells[letter]) for letter in LETTERS])
        check_question(question, options, answer)
        images = _images(cell("image"), _parsed(cells["data_file"]))
        names = [f"stage2/{store_image(item, folder / 'stage2')}" for item in images.values()]
        boxes = _regions(cell("meta_bbox"), list(images), source)
        quads = {key: _boxes(value) for key, value in boxes.items()}
        if not any(quads.values()):
            raise ValueError("no box: every question is about a region")
        outlines = _regions(cell("meta_polygon"), list(images), source)
        marks = tuple(_marks(quads, outlines))
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        column = getattr(error, "column", column)
        raise TableError(f"{where}, column {column}: {error}") from None
    return Stage2Row(
        index=index,
        label=question,
        images=tuple(names),
        cluster=names[0],
        sizes=tuple(read_image_header(folder / name).size for name in names),
        marks=marks,
        options=options,
        answer=answer,
        source=source,
    )


def _options(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """List the options by letter, without letters in the texts.

    >>> _options(["A. a car", "B. a bus", "", ""]), _options(["A.M.", "P.M.", "", ""])
    ((('A', 'a car'), ('B', 'a bus')), (('A', 'A.M.'), ('B', 'P.M.')))
    """
    options = [(letter, value) for letter, value in zip(LETTERS, texts, strict=True) if value]
    bare = []
    for letter, value in options:
        lettered = re.fullmatch(rf"{letter}\.\s*(.+)", value, re.DOTALL)
        if lettered:
            bare.append((letter, lettered[1]))
    # If only some texts begin with their letter, they do so by chance.
    return tuple(bare if len(bare) == len(options) else options)


# --- images and regions ---------------------------------------------------------------------------


def _parsed(cell: object) -> Any:
    if not isinstance(cell, str) or cell.strip()[:1] not in ("[", "{"):
        return cell or None
    return parse_json(cell) or None


def _images(cell: object, files: Any) -> dict[str, Any]:
    """Map file names to images; numbers where there is no name for each."""
    result = _parsed(cell)
    if not isinstance(result, list):
        return dict(result)
    names = files if isinstance(files, list) else [files]
    if len(set(names)) != len(result):
        names = list(map(str, range(len(result))))
    return dict(zip(names, result, strict=True))


Regions = dict[tuple[int, RegionRole], Any]


def _regions(cell: object, files: Sequence[str], source: str) -> Regions:
    """Read a cell by image and role.

    Lists have no roles: in SGG (relations) the first of two entries is the subject.
    """
    result = _parsed(cell)
    if result is None:
        return {}
    if isinstance(result, dict):
        by_image = [_by_role(result[file]) for file in files]
    elif not isinstance(result, list) or (len(files) > 1 and len(result) != len(files)):
        raise ValueError(f"should have an entry for each of {len(files)} images")
    elif len(files) > 1:
        by_image = [{RegionRole.DEFAULT: item} for item in result]
    elif source == "SGG" and len(result) == 2:
        by_image = [{RegionRole.SUBJECT: result[0], RegionRole.OBJECT: result[1]}]
    else:
        by_image = [{RegionRole.DEFAULT: result}]
    regions: Regions = {}
    for at, by_role in enumerate(by_image):
        for role in RegionRole:
            if role in by_role:
                regions[at, role] = by_role[role]
    return regions


def _by_role(by_name: Mapping[str, Any]) -> dict[RegionRole, Any]:
    return {RegionRole(name): item for name, item in by_name.items()}


def _marks(
    boxes: Mapping[tuple[int, RegionRole], Sequence[Any]], outlines: Regions
) -> Iterator[MarkedRegion]:
    for (at, role), result in boxes.items():
        inputs = outlines.get((at, role))
        lines = [inputs] if len(result) == 1 else inputs or [None] * len(result)
        if len(lines) != len(result):
            raise ValueError(f"has {len(lines)} entries for {len(result)} boxes")
        for box, line in zip(result, lines, strict=True):
            yield MarkedRegion(at, role, box, _polygons(line))


def _boxes(value: list[Any]) -> list[Any]:
    boxes = value if isinstance(value[0], list) else [value]
    for box in boxes:
        if len(box) != 4:
            raise ValueError(f"{box} is not a box of four numbers")
    return [tuple(map(float, box)) for box in boxes]


def _polygons(value: Any) -> tuple[tuple[float, ...], ...]:
    """Read polygons (x1, y1, x2, y2, …) from pairs nested at any depth.

    >>> _polygons([[[1, 2], [3, 4], [5, 6]]])
    ((1.0, 2.0, 3.0, 4.0, 5.0, 6.0),)
    """
    if not value:
        return ()
    if not isinstance(value, list):
        raise ValueError(f"{quoted_value(value)} is not a list of polygons")
    if isinstance(value[0][0], list):
        return tuple(chain.from_iterable(map(_polygons, value)))
    return (tuple(map(float, chain.from_iterable(value))),)


# --- readings of boxes ----------------------------------------------------------------------------

Box = tuple[float, float, float, float]
Quad = tuple[Box, Size, str]  # numbers, size of the image, file and row

_SLACK = 1.0  # pixels that a box may lie outside its image, because numbers are rounded
_LEAST = 1.0  # pixels of a box's side; smaller ones are fractions of the image


def _as_xywh(numbers: Box, corners: bool) -> Box:
    x, y, a, b = numbers
    return (x, y, a - x, b - y) if corners else numbers


def _fits(quad: Quad, corners: bool) -> bool:
    x, y, w, h = _as_xywh(quad[0], corners)
    width, height = quad[1]
    inside = x + w <= width + _SLACK and y + h <= height + _SLACK
    return inside and min(x, y) >= -_SLACK and min(w, h) >= _LEAST


def reading_of(source: str, quads: Sequence[Quad]) -> str:
    """Choose a source's reading: "xywh", "xyxy" or, COCO's taking precedence, "xywh (both fit)".

    Raises:
        TableError: neither fits all boxes; the message names a box and counts all.
    """
    outside = {
        "xywh": [quad for quad in quads if not _fits(quad, corners=False)],
        "xyxy": [quad for quad in quads if not _fits(quad, corners=True)],
    }
    good = [name for name, bad in outside.items() if not bad]
    if good:
        return f"{good[0]} (both fit)" if len(good) == 2 else good[0]
    better = min(outside, key=lambda name: len(outside[name]))
    numbers, size, where = outside[better][0]
    raise TableError(
        f"{where}, column meta_bbox: {list(numbers)} is not a box of an image of "
        f"{size[0]}x{size[1]}, read as {better}; of {len(quads)} boxes of {source} "
        f"{len(outside['xywh'])} do not fit as xywh, {len(outside['xyxy'])} as xyxy"
    )
