"""Convert the authors' stage 1 files, TSV or Parquet, to a table, and images to files.

Files exceed a gigabyte, so rows are streamed. Cells went through data frames: missing values may
be NaN, and texts may be numbers.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from ...core import open_regular, open_text, sha256_of, suffix_of, suggestion, write_once
from ...storage import (
    CellError,
    TableError,
    WrittenTable,
    describe_sources,
    image_folder,
    meta_path,
    read_image_header,
)
from .question_tables import STAGE_1, TABLES, write_table
from .vp_query import LETTERS, HintColumn, VPQuery, check_question, is_absent, question_kind

# --- cells ----------------------------------------------------------------------------------------

_OUR_SHAPES = {  # the release's masks are our contours
    "mask": "contour",
    "fill_contour": "mask",
    "circle": "oval",
    "number_label": "tag",
    "alphabet_label": "tag",
    "bbox": "box",
    "bounding_box": "box",
    "rectangle": "box",
    "ellipse": "oval",
}


def cell_text(value: Any) -> str:
    """Read a cell as text: "" for a missing value, whole numbers without ``.0``.

    >>> [cell_text(value) for value in (3.0, "3.0", float("nan"), None, " red ")]
    ['3', '3', '', '', 'red']
    """
    stated = "" if value is None else str(value).strip()
    return "" if stated.lower() in ("nan", "<na>") else re.sub(r"^(-?\d+)\.0+$", r"\1", stated)


def cell_items(value: Any) -> tuple[str, ...]:
    """Read a list, or the text of a list: JSON, Python, a NumPy array, or comma-separated.

    Items in texts have no quotes, commas or brackets.

    >>> cell_items("['box', 'circle']"), cell_items("box, circle")
    (('box', 'circle'), ('box', 'circle'))
    >>> cell_items("['box' 'circle']"), cell_items("nan")
    (('box', 'circle'), ())
    """
    if isinstance(value, str):
        is_list = value.strip().startswith(("[", "(", "{"))
        value = _ITEM.findall(value) if is_list else value.split(",")
    elif not isinstance(value, Iterable):
        value = [value]
    return tuple(stated for stated in map(cell_text, value) if stated.lower() not in _NO_ITEM)


_ITEM = re.compile(r"[^\s,'\"\[\](){}][^,'\"\[\](){}]*")
_NO_ITEM = ("", "none", "null")


def cell_shapes(value: Any) -> tuple[str, ...]:
    """Read a cell of shapes by our names, keeping unknown ones.

    >>> cell_shapes("['mask', 'fill_contour', 'circle']")
    ('contour', 'mask', 'oval')
    """
    keys = (re.sub(r"[\s-]+", "_", name.lower()) for name in cell_items(value))
    return tuple(_OUR_SHAPES.get(key, key) for key in keys)


def store_image(cell: Any, folder: Path) -> str:
    """Store the image of a cell and return its name, as :func:`named_image` does."""
    name, data = named_image(cell)
    write_once(folder / name, data)
    return name


def named_image(cell: Any) -> tuple[str, bytes]:
    """Return the name of an image, made of its hash, and its bytes.

    Args:
        cell: base64, bytes or an object of Hugging Face.

    Raises:
        ValueError: the cell holds no image.
    """
    data = cell.get("bytes") if isinstance(cell, Mapping) else cell
    if isinstance(data, str):
        data = base64.b64decode("".join(data.rpartition("base64,")[2].split()), validate=True)
    if not isinstance(data, bytes):
        raise ValueError("no image")
    try:
        suffix = f".{read_image_header(io.BytesIO(data)).format}".lower().replace("jpeg", "jpg")
    except OSError:
        raise ValueError(f"not an image (it begins with {data[:8]!r})") from None
    return f"{sha256_of(data)[:24]}{suffix}", data


# --- files ----------------------------------------------------------------------------------------

OFFICIAL = "vp_bench_stage_1.tsv"
OFFICIAL_MD5 = "21414c284f1f621be97cdc7ec4587b17"  # of the authors' TSV
NEEDED = ("index", "question", "A", "B", "answer", "image")  # required columns
USED = (*NEEDED, "C", "D", "hint", "context", "vp_amount", "vp_shape", "vp_properties")

Rows = Iterator[tuple[str, Mapping[str, Any]]]  # file and line, for messages; cells by column


def files_of(path: Path) -> list[Path]:
    """List the files of stage 1: the path, or in a folder its TSV, else its Parquet files."""
    if path.is_file():
        return [path] if "stage_2" not in path.name else []
    inside = [item for item in sorted(path.glob("*")) if "stage_2" not in item.name]
    tables = [item for item in inside if suffix_of(item) == ".tsv"]
    return tables or [item for item in inside if suffix_of(item) == ".parquet"]


def tsv_rows(path: Path, needed: Sequence[str]) -> Rows:
    """Yield the rows of a TSV file, or raise a TableError as :func:`parquet_rows` does."""
    csv.field_size_limit(2**28)
    with open_text(path) as f:
        lines = csv.DictReader(f, delimiter="\t")
        try:
            _check_columns(path, lines.fieldnames or (), needed)
            for cells in lines:
                where = f"{path}, line {lines.line_num}"
                if None in cells or None in cells.values():
                    raise TableError(f"{where}: the cells do not match the columns: is it cut off?")
                yield where, cells
        except (csv.Error, UnicodeDecodeError) as error:
            raise TableError(f"{path}, after line {lines.line_num}: {error}") from None


def parquet_rows(path: Path, needed: Sequence[str], used: Sequence[str]) -> Rows:
    """Yield the rows of a Parquet file, with those of the ``used`` columns that it has.

    Raises:
        TableError: a required column is missing, or the file cannot be read.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            there = file.schema_arrow.names
            _check_columns(path, there, needed)
            # Few at a time, since their images are in memory.
            batches = file.iter_batches(16, columns=[name for name in used if name in there])
            rows = chain.from_iterable(batch.to_pylist() for batch in batches)
            for number, cells in enumerate(rows):
                yield f"{path}, row {number}", cells
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"{path}: not a Parquet file: {error}") from None


def _check_columns(path: Path, columns: Sequence[str], needed: Sequence[str]) -> None:
    for name in needed:
        if name not in columns:
            raise TableError(f"{path}: no column {name!r}{suggestion(name, columns)}")


# --- questions ------------------------------------------------------------------------------------


def _read(files: Iterable[Path], folder: Path) -> tuple[list[VPQuery], int]:
    """Read questions and store their images; also count those left out for want of an image."""
    queries: list[VPQuery] = []
    images: dict[int, str | None] = {}  # by index
    for path in files:
        is_parquet = suffix_of(path) == ".parquet"
        for where, cells in (
            parquet_rows(path, NEEDED, USED) if is_parquet else tsv_rows(path, NEEDED)
        ):
            query = _query(where, cells)
            if query.index in images:
                raise TableError(f"{where}: duplicate index {query.index}")
            name = images[query.index] = _image(cells["image"], folder, images)
            if name is not None:
                queries.append(replace(query, images=(name,), cluster=name))
    return queries, len(images) - len(queries)


def _image(cell: Any, folder: Path, earlier: Mapping[int, str | None]) -> str | None:
    if isinstance(cell, str) and cell.strip().isdecimal():
        return earlier.get(int(cell))  # VLMEvalKit stores the index of a row with the same image
    try:
        return store_image(cell, folder)
    except ValueError:
        return None


def _query(where: str, row: Mapping[str, Any]) -> VPQuery:
    cells = {name: cell_text(value) for name, value in row.items() if name != "image"}
    if not cells["index"].isdecimal():
        raise TableError(f"{where}, column index: {cells['index']!r} is not a whole number")
    options = tuple((letter, cells[letter]) for letter in LETTERS if cells.get(letter))
    question = cells["question"]
    answer = cells["answer"].upper()
    try:
        check_question(question, options, answer)
    except CellError as error:
        raise TableError(f"{where}, column {error.column}: {error}") from None
    hint = cells.get("hint", "")
    return VPQuery(
        index=int(cells["index"]),
        label=question,
        images=(),
        cluster="",
        hint=hint or cells.get("context", ""),
        hint_column=HintColumn.HINT if hint else HintColumn.CONTEXT,
        question=question,
        options=options,
        answer=answer,
        amount=cells.get("vp_amount", ""),
        shapes=cell_shapes(row.get("vp_shape")),
        properties=cell_items(row.get("vp_properties")),
        kind=question_kind(question),
        absent=is_absent(question, dict(options).get(answer, "")),
        source="stage 1",
    )


def prepare_stage1(path: Path, out: Path) -> WrittenTable:
    """Write images, table and its ``.meta.json``, which says whether this is the authors' TSV.

    Raises:
        FileNotFoundError: there are none of these files.
        TableError: naming file, row and column; no table is written.
    """
    files = files_of(path)
    if not files:
        raise FileNotFoundError(
            f"{path}: neither {OFFICIAL} nor a Parquet file is there "
            "(jinpeng0528/VP-Bench on Hugging Face)"
        )
    with open_regular(files[0]) as f:
        md5 = hashlib.file_digest(f, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    official = len(files) == 1 and md5 == OFFICIAL_MD5
    queries, dropped = _read(files, image_folder(TABLES[STAGE_1]).path)
    unanswered = sum(not query.answer for query in queries)
    facts = {"official": official, "dropped": dropped, "unanswered": unanswered}
    table = write_table(out, STAGE_1, queries, {**describe_sources(files), **facts})
    notes = []
    if dropped:
        notes.append(f"{dropped} rows dropped: no image")
    if unanswered:
        notes.append(f"{unanswered} questions without an answer: asked, not scored")
    if not official:
        notes.append(f"not {OFFICIAL} with MD5 {OFFICIAL_MD5}: {meta_path(table.path)}")
    return replace(table, notes=(*table.notes, *notes))
