"""Convert the authors' stage 1 files, TSV or Parquet, to a table, and images to files.

Cells went through data frames: missing values may be NaN, and texts may be numbers.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...core import open_regular, suffix_of
from ...storage import (
    CellError,
    TableError,
    WrittenTable,
    describe_sources,
    image_folder,
    meta_path,
    parquet_rows,
    store_image,
    tsv_rows,
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


# --- files ----------------------------------------------------------------------------------------

OFFICIAL = "vp_bench_stage_1.tsv"
OFFICIAL_MD5 = "21414c284f1f621be97cdc7ec4587b17"  # of the authors' TSV
NEEDED = ("index", "question", "A", "B", "answer", "image")  # required columns
USED = (*NEEDED, "C", "D", "hint", "context", "vp_amount", "vp_shape", "vp_properties")


def files_of(path: Path) -> list[Path]:
    """List the files of stage 1: the path, or in a folder its TSV, else its Parquet files."""
    if path.is_file():
        return [path] if "stage_2" not in path.name else []
    inside = [item for item in sorted(path.glob("*")) if "stage_2" not in item.name]
    tables = [item for item in inside if suffix_of(item) == ".tsv"]
    return tables or [item for item in inside if suffix_of(item) == ".parquet"]


# --- questions ------------------------------------------------------------------------------------


def _read(files: Iterable[Path], folder: Path) -> tuple[list[VPQuery], int]:
    """Read questions and store their images; also count those left out for want of an image."""
    queries: list[VPQuery] = []
    images: dict[int, str | None] = {}  # by index
    for path in files:
        is_parquet = suffix_of(path) == ".parquet"
        for where, cells in (
            parquet_rows(path, USED, needed=NEEDED) if is_parquet else tsv_rows(path, NEEDED)
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
