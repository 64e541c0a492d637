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
from pathlib import Path
from typing import Any

from ...core.files import sha256_of, write_once
from ...core.folders import image_folder
from ...core.formatting import nearest
from ...core.image_files import header
from ...core.table_files import CellError, TableError, WrittenTable, meta_path, sources
from .question_tables import STAGE_1, TABLES, write_table
from .vp_query import LETTERS, HintColumn, VPQuery, check_question, is_absent, kind_of

_MISSING = ("", "nan", "<na>")
_NO_ITEM = ("", "none", "null")

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


def text(value: Any) -> str:
    """Read a cell as text: "" for a missing value, whole numbers without ``.0``.

    >>> text(3.0), text("3.0"), text(float("nan")), text(None), text(" red ")
    ('3', '3', '', '', 'red')
    """
    stated = "" if value is None else str(value).strip()
    if stated.lower() in _MISSING:
        return ""
    return re.sub(r"^(-?\d+)\.0+$", r"\1", stated)


def items(value: Any) -> tuple[str, ...]:
    """Read a list, or the text of a list: JSON, Python, a NumPy array, or comma-separated.

    Items in texts have no quotes, commas or brackets.

    >>> items("['box', 'circle']"), items("box, circle"), items("['box' 'circle']"), items("nan")
    (('box', 'circle'), ('box', 'circle'), ('box', 'circle'), ())
    """
    if isinstance(value, str):
        is_list = value.strip().startswith(("[", "(", "{"))
        value = _ITEM.findall(value) if is_list else value.split(",")
    if isinstance(value, str) or not isinstance(value, Iterable):
        value = [value]
    return tuple(stated for item in value if (stated := text(item)).lower() not in _NO_ITEM)


_ITEM = re.compile(r"[^\s,'\"\[\](){}][^,'\"\[\](){}]*")


def shapes(value: Any) -> tuple[str, ...]:
    """Read a cell of shapes by our names, keeping unknown ones.

    >>> shapes("['mask', 'fill_contour', 'circle']")
    ('contour', 'mask', 'oval')
    """
    keys = (re.sub(r"[\s-]+", "_", name.lower()) for name in items(value))
    return tuple(_OUR_SHAPES.get(key, key) for key in keys)


def image_bytes(value: Any) -> bytes:
    """Get an image's bytes from base64, bytes or a Hugging Face object with bytes.

    Raises:
        ValueError: there are none.
    """
    data = value.get("bytes") if isinstance(value, Mapping) else value
    if isinstance(data, str):
        data = base64.b64decode("".join(data.rpartition("base64,")[2].split()), validate=True)
    if not isinstance(data, bytes) or not data:
        raise ValueError("holds no image")
    return data


def image_name(data: bytes) -> str:
    """Name an image's file by its hash, or raise ValueError."""
    try:
        suffix = f".{header(io.BytesIO(data)).format}".lower().replace("jpeg", "jpg")
    except OSError:
        raise ValueError(f"no image (begins with {data[:8]!r})") from None
    return f"{sha256_of(data)[:24]}{suffix}"


OFFICIAL = "vp_bench_stage_1.tsv"
OFFICIAL_MD5 = "21414c284f1f621be97cdc7ec4587b17"  # of the authors' TSV
NEEDED = ("index", "question", "A", "B", "answer", "image")  # required columns
USED = (*NEEDED, "C", "D", "hint", "context", "vp_amount", "vp_shape", "vp_properties")
_LARGEST_CELL = 2**28


Rows = Iterator[tuple[str, Mapping[str, Any]]]  # file and line, for messages; cells by column


def files_of(path: Path) -> list[Path]:
    """List the files of stage 1: the path, or in a folder its TSV, else its Parquet files."""
    if path.is_file():
        return [path] if "stage_2" not in path.name else []
    inside = [item for item in sorted(path.glob("*")) if "stage_2" not in item.name]
    tables = [item for item in inside if item.suffix == ".tsv"]
    return tables or [item for item in inside if item.suffix == ".parquet"]


def _tsv_rows(path: Path) -> Rows:
    csv.field_size_limit(_LARGEST_CELL)
    with path.open(encoding="utf-8-sig", newline="") as f:
        lines = csv.reader(f, delimiter="\t")
        try:
            columns = next(lines, [])
            _check_columns(path, columns, NEEDED)
            for cells in lines:
                where = f"{path}, line {lines.line_num}"
                if len(cells) != len(columns):
                    raise TableError(f"{where}: {len(cells)} cells for {len(columns)} columns")
                yield where, dict(zip(columns, cells, strict=True))
        except (csv.Error, UnicodeDecodeError) as error:
            raise TableError(f"{path}, after line {lines.line_num}: {error}") from None


_AT_A_TIME = 16  # rows of a Parquet file, with their images in memory


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
            columns = [name for name in used if name in there]
            batches = file.iter_batches(_AT_A_TIME, columns=columns)
            rows = (cells for batch in batches for cells in batch.to_pylist())
            for number, cells in enumerate(rows):
                yield f"{path}, row {number}", cells
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"{path}: no Parquet file: {error}") from None


def _check_columns(path: Path, columns: Sequence[str], needed: Sequence[str]) -> None:
    for name in needed:
        if name not in columns:
            raise TableError(f"{path}: no column {name!r}{nearest(name, columns)}")


class Stage1Release:
    """The questions of stage 1, and counts; images are written to ``folder``."""

    def __init__(self, files: Iterable[Path], folder: Path) -> None:
        self.dropped = 0  # rows without an image that can be read
        self.unanswered = 0
        self._files = files
        self._folder = folder
        self._images: dict[int, str | None] = {}  # by index; None: the row is dropped

    def queries(self) -> Iterator[VPQuery]:
        """Yield the questions and write their images."""
        for path in self._files:
            is_parquet = path.suffix == ".parquet"
            for where, cells in parquet_rows(path, NEEDED, USED) if is_parquet else _tsv_rows(path):
                query = query_of(where, cells)
                if query.index in self._images:
                    raise TableError(f"{where}: index {query.index} stands twice")
                name = self._images[query.index] = self._image(cells["image"])
                if name is None:
                    self.dropped += 1
                    continue
                self.unanswered += not query.answer
                yield replace(query, images=(name,), cluster=name)

    def met(self) -> dict[str, Any]:
        return {"dropped": self.dropped, "unanswered": self.unanswered}

    def _image(self, cell: Any) -> str | None:
        """Store a cell's image and return its name; None where there is none."""
        if not isinstance(cell, bytes | Mapping) and text(cell).isdecimal():
            return self._images.get(int(text(cell)))  # of an earlier row, as VLMEvalKit stores it
        try:
            data = image_bytes(cell)
            name = image_name(data)
        except ValueError:
            return None
        write_once(self._folder / name, data)
        return name


def query_of(where: str, row: Mapping[str, Any]) -> VPQuery:
    """Convert a row to a question without its image."""

    cells = {name: text(row.get(name)) for name in USED if name not in _OWN_TYPES}
    if not cells["index"].isdecimal():
        why = f"{cells['index']!r} is no whole number"
        raise TableError(f"{where}, column index: {why}")
    options = tuple((letter, cells[letter]) for letter in LETTERS if cells[letter])
    answer = cells["answer"].upper()
    try:
        check_question(cells["question"], options, answer, first_option="A")
    except CellError as error:
        raise TableError(f"{where}, column {error.column}: {error}") from None
    right = dict(options).get(answer, "")
    return VPQuery(
        index=int(cells["index"]),
        label=cells["question"],
        images=(),
        cluster="",
        hint=cells["hint"] or cells["context"],
        question=cells["question"],
        options=options,
        answer=answer,
        amount=cells["vp_amount"],
        shapes=shapes(row.get("vp_shape")),
        properties=items(row.get("vp_properties")),
        kind=kind_of(cells["question"]),
        absent=is_absent(cells["question"], right),
        source="stage 1",
        hint_column=HintColumn.HINT if cells["hint"] else HintColumn.CONTEXT,
    )


_OWN_TYPES = ("image", "vp_shape", "vp_properties")


# --- the table ------------------------------------------------------------------------------------


def prepare(path: Path, out: Path) -> WrittenTable:
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
    release = Stage1Release(files, image_folder(TABLES[STAGE_1]).path)
    with files[0].open("rb") as f:
        md5 = hashlib.file_digest(f, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    origin = {**sources(files), "official": len(files) == 1 and md5 == OFFICIAL_MD5}
    table = write_table(out, STAGE_1, release.queries(), origin, release.met)
    notes = []
    if release.dropped:
        notes.append(f"{release.dropped} rows dropped: no image")
    if release.unanswered:
        notes.append(f"{release.unanswered} questions without an answer: asked, not scored")
    if not origin["official"]:
        notes.append(f"not {OFFICIAL} with MD5 {OFFICIAL_MD5}: {meta_path(table.path)}")
    return table._replace(notes=(*table.notes, *notes))
