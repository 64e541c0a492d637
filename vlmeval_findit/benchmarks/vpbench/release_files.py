"""The authors' stage 1 files, TSV or Parquet, as rows: one at a time, nothing kept.

A file has more than a gigabyte, nearly all of it pictures.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...core.spelling import nearest
from ...core.table_files import TableError

OFFICIAL = "vp_bench_stage_1.tsv"
OFFICIAL_MD5 = "21414c284f1f621be97cdc7ec4587b17"
"""Of the authors' TSV."""

NEEDED = ("index", "question", "A", "B", "answer", "image")
"""Columns without which nothing can be asked."""

USED = (*NEEDED, "C", "D", "hint", "context", "vp_amount", "vp_shape", "vp_properties")

_LARGEST_CELL = 2**28


class Row(NamedTuple):
    """One row of a file, and where it stands."""

    where: str
    cells: Mapping[str, Any]


def files_of(path: Path) -> list[Path]:
    """The files of stage 1 at a path: itself, or in a folder its TSV, else its Parquet files.

    Raises:
        FileNotFoundError: there are none.
        TableError: there are several TSVs.
    """
    if path.is_file():
        return [path]
    inside = _inside(path)
    tables = [one for one in inside if one.suffix == ".tsv"]
    if len(tables) > 1:
        names = ", ".join(one.name for one in tables)
        raise TableError(f"{path}: several tables ({names}): name one")
    found = tables or [one for one in inside if one.suffix == ".parquet"]
    if not found:
        raise FileNotFoundError(
            f"{path}: neither {OFFICIAL} nor a Parquet file is there "
            "(jinpeng0528/VP-Bench on Hugging Face)"
        )
    return found


def _inside(folder: Path) -> list[Path]:
    """The files of a folder that are none of stage 2."""
    return [one for one in sorted(folder.glob("*")) if "stage_2" not in one.name]


def is_at(path: Path) -> bool:
    """Whether stage 1 lies in a folder."""
    return any(one.suffix in (".tsv", ".parquet") for one in _inside(path))


def rows_of(path: Path) -> Iterator[Row]:
    """The rows of a file, one after the other.

    Raises:
        TableError: a column is missing, or the file cannot be read.
    """
    return _parquet_rows(path) if path.suffix == ".parquet" else _tsv_rows(path)


def _tsv_rows(path: Path) -> Iterator[Row]:
    csv.field_size_limit(_LARGEST_CELL)
    with path.open(encoding="utf-8-sig", newline="") as f:
        lines = csv.reader(f, delimiter="\t")
        try:
            columns = next(lines, [])
            _check_columns(path, columns)
            for cells in lines:
                where = f"{path}, line {lines.line_num}"
                if len(cells) != len(columns):
                    raise TableError(f"{where}: {len(cells)} cells for {len(columns)} columns")
                yield Row(where, dict(zip(columns, cells, strict=True)))
        except (csv.Error, UnicodeDecodeError) as error:
            raise TableError(f"{path}, after line {lines.line_num}: {error}") from None


def _parquet_rows(path: Path) -> Iterator[Row]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            _check_columns(path, file.schema_arrow.names)
            columns = [name for name in USED if name in file.schema_arrow.names]
            number = 0
            for batch in file.iter_batches(batch_size=32, columns=columns):
                for cells in batch.to_pylist():
                    yield Row(f"{path}, row {number}", cells)
                    number += 1
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"{path}: {error}") from None


def _check_columns(path: Path, columns: Sequence[str]) -> None:
    for name in NEEDED:
        if name not in columns:
            raise TableError(f"{path}: no column {name!r}{nearest(name, columns)}")
