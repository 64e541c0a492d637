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
    StandsTwiceError,
    UnpackedSizeError,
    check_unpacked,
    limited_memory,
    most_unpacked,
    open_text,
    refuse_columns_twice,
    sha256_of,
    suggestion,
    write_once,
)
from .image_files import read_image_header
from .table_files import TableError

_ROWS_AT_ONCE = 16  # of Parquet; images may have 50 MB
_BYTES_AT_ONCE = 32 << 20
_READ_AT_ONCE = 1 << 20
_BYTES_OF_A_ROW = 8  # in memory, at least
_MOST_CELLS = 1 << 30  # bytes of the cells of any table
_MOST_VALUES = 4 << 20  # of a row; an image as lists of numbers has three million
_MORE_MEMORY = 192 << 20  # for decoding, beside three times what a group of rows has on the disk

Rows = Iterator[tuple[str, dict[str, Any]]]  # file and line, for messages; cells by column


def tsv_rows(path: Path, needed: Sequence[str]) -> Rows:
    """Yield the rows of a TSV file after their places.

    Raises:
        TableError: a ``needed`` column is missing, two have one name, or the file cannot be read.
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
        error: a needed column is missing, two have one name, the file is no Parquet file, a cell
            cannot be read, or what comes out of it is too large.
    """
    import pyarrow as pa

    try:
        with _open_parquet(path) as file:
            _check_sizes(path, file.metadata)
            there = file.schema_arrow.names
            _check_columns(path, there, needed, error)
            read = None if columns is None else [name for name in columns if name in there]
            batches = file.iter_batches(
                _rows_at_once(file.metadata), columns=read, use_threads=False
            )
            limited = _in_limited_memory(batches, _more_memory(path, file.metadata))
            rows = chain.from_iterable(_within(limited, path))
            for number, cells in enumerate(rows):
                yield f"{path}, row {number}", cells
    except error:
        raise
    except UnpackedSizeError as problem:
        raise error(f"{path}: {problem}") from None
    except MemoryError:  # pyarrow's is an ArrowException, too
        raise error(
            f"{path}: a few of its rows take more memory than the file may ask for: no table of "
            "annotations"
        ) from None
    except (pa.ArrowException, OSError) as problem:
        raise error(f"{path}: not a Parquet file: {problem}") from None
    except (ValueError, OverflowError) as problem:  # text that is none, a date of no calendar
        raise error(f"{path}: a cell cannot be read: {problem}") from None


def _open_parquet(path: Path) -> Any:
    """Open a file that is decoded without threads, which would die of a limit of memory."""
    import pyarrow as pa
    from pyarrow import parquet

    usual = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())  # The usual one has room beyond any limit
    try:
        return parquet.ParquetFile(path, pre_buffer=False, buffer_size=_READ_AT_ONCE)
    finally:
        pa.set_memory_pool(usual)


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
    return max(1, min(_ROWS_AT_ONCE, _BYTES_AT_ONCE // max(_largest_group(metadata), 1)))


def _more_memory(path: Path, metadata: Any) -> int:
    """Return how many bytes decoding may take: its pages may be as large as a group of rows.

    What the footer says counts only as far as the file has so many bytes.
    """
    return _MORE_MEMORY + 3 * min(_largest_group(metadata), path.stat().st_size)


def _largest_group(metadata: Any) -> int:
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    return max((group.total_byte_size for group in groups), default=0)


def _in_limited_memory(batches: Iterator[Any], more: int) -> Iterator[Any]:
    """Yield batches, each decoded in limited memory.

    Pages may have more than the footer states, and a list may repeat a text, or nothing, in no room
    at all.
    """
    while True:
        with limited_memory(more):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def _within(batches: Iterable[Any], path: Path) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of batches; UnpackedSizeError if they become too many bytes.

    A text of a dictionary is as long again in each of its rows, and a null of a list, which takes
    no room in the file, has a place in the list.
    """
    most = max(_MOST_CELLS, most_unpacked(path.stat().st_size))
    bytes_so_far = 0
    for batch in batches:
        bytes_so_far += batch.nbytes
        if bytes_so_far > most:
            raise UnpackedSizeError(
                f"its cells have more than {most >> 20:,} MB: no table of annotations"
            )
        pieces = [batch]
        if _count_values(batch) > _MOST_VALUES:
            pieces = [batch.slice(at, 1) for at in range(batch.num_rows)]
        for piece in pieces:
            if _count_values(piece) > _MOST_VALUES:
                raise UnpackedSizeError(
                    f"a row has more than {_MOST_VALUES:,} values: no table of annotations"
                )
            yield piece.to_pylist()


def _count_values(batch: Any) -> int:
    """Return how many values the cells of a batch have, those in lists and objects too."""
    import pyarrow as pa

    count = 0
    waiting = list(batch.columns)
    while waiting:
        array = waiting.pop()
        count += len(array)
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        if pa.types.is_struct(array.type):
            waiting += array.flatten()
        elif pa.types.is_nested(array.type) and not pa.types.is_union(array.type):
            waiting.append(array.flatten())
    return count


def _check_columns(
    path: Path, columns: Sequence[str], needed: Sequence[str], error: type[ValueError]
) -> None:
    try:
        refuse_columns_twice(columns)
    except StandsTwiceError as problem:
        raise error(f"{path}: {problem}") from None
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
