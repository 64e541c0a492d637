"""Tables of others with images in their cells, as TSV or Parquet.

Files exceed a gigabyte, so rows are streamed. The name of an image is made of its content.
"""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from ..core import (
    UnpackedSizeError,
    check_unpacked,
    most_unpacked,
    open_text,
    sha256_of,
    suggestion,
    write_once,
)
from .image_files import read_image_header
from .table_files import TableError

_ROWS_AT_ONCE = 16  # of Parquet; images may have 50 MB
_BYTES_AT_ONCE = 64 << 20
_BYTES_OF_A_ROW = 8  # in memory, at least
_MOST_CELLS = 1 << 30  # bytes of the cells of any table

Rows = Iterator[tuple[str, dict[str, Any]]]  # file and line, for messages; cells by column


def tsv_rows(path: Path, needed: Sequence[str]) -> Rows:
    """Yield the rows of a TSV file after their places.

    Raises:
        TableError: a ``needed`` column is missing, or the file cannot be read.
    """
    csv.field_size_limit(2**28)
    with open_text(path) as f:
        lines = csv.DictReader(f, delimiter="\t")
        try:
            _check_columns(path, lines.fieldnames or (), needed, TableError)
            for cells in lines:
                where = f"{path}, line {lines.line_num}"
                if None in cells or None in cells.values():
                    raise TableError(f"{where}: the cells do not match the columns: is it cut off?")
                yield where, cells
        except (csv.Error, UnicodeDecodeError) as error:
            raise TableError(f"{path}, after line {lines.line_num}: {error}") from None


def parquet_rows(
    path: Path,
    columns: Sequence[str] | None = None,
    *,
    needed: Sequence[str] = (),
    error: type[ValueError] = TableError,
) -> Rows:
    """Yield the rows of a Parquet file after their places.

    Args:
        path: of the file.
        columns: to read, of those that it has (None: all).
        needed: columns that it must have.
        error: what is raised.

    Raises:
        error: a needed column is missing, the file is no Parquet file, a cell cannot be read, or
            what comes out of it is too large.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            _check_sizes(path, file.metadata)
            there = file.schema_arrow.names
            _check_columns(path, there, needed, error)
            read = None if columns is None else [name for name in columns if name in there]
            batches = file.iter_batches(_rows_at_once(file.metadata), columns=read)
            rows = chain.from_iterable(_within(batches, path))
            for number, cells in enumerate(rows):
                yield f"{path}, row {number}", cells
    except error:
        raise
    except UnpackedSizeError as problem:
        raise error(f"{path}: {problem}") from None
    except (pa.ArrowException, OSError) as problem:
        raise error(f"{path}: not a Parquet file: {problem}") from None
    except (ValueError, OverflowError) as problem:  # text that is none, a date of no calendar
        raise error(f"{path}: a cell cannot be read: {problem}") from None


def _check_sizes(path: Path, metadata: Any) -> None:
    """Raise UnpackedSizeError for a file whose pages unpack to more than a table has.

    A value that is repeated, or none, takes no room in a page.  How many values a column states is
    not looked at: for a damaged footer pyarrow ends the process then.
    """
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    stated = sum(group.total_byte_size for group in groups)
    stated = max(stated, metadata.num_rows * _BYTES_OF_A_ROW)
    check_unpacked(stated, path.stat().st_size, "no table of annotations")


def _rows_at_once(metadata: Any) -> int:
    """Return how many rows fit into memory, though each may have the longest text of a column."""
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    largest = max((group.total_byte_size for group in groups), default=0)
    return max(1, min(_ROWS_AT_ONCE, _BYTES_AT_ONCE // max(largest, 1)))


def _within(batches: Iterable[Any], path: Path) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of batches; UnpackedSizeError if they become too many bytes.

    A text of a dictionary is as long again in each of its rows.
    """
    most = max(_MOST_CELLS, most_unpacked(path.stat().st_size))
    bytes_so_far = 0
    for batch in batches:
        bytes_so_far += batch.nbytes
        if bytes_so_far > most:
            raise UnpackedSizeError(
                f"its cells have more than {most >> 20:,} MB: no table of annotations"
            )
        yield batch.to_pylist()


def _check_columns(
    path: Path, columns: Sequence[str], needed: Sequence[str], error: type[ValueError]
) -> None:
    for name in needed:
        if name not in columns:
            raise error(f"{path}: no column {name!r}{suggestion(name, columns)}")


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


def store_image(cell: Any, folder: Path) -> str:
    """Store the image of a cell and return its name, as :func:`named_image` does."""
    name, data = named_image(cell)
    write_once(folder / name, data)
    return name
