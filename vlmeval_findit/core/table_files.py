"""Tables as files: TSV rows and the facts beside them, written at once, read with every check.

What the columns hold is a benchmark's to say.
"""

from __future__ import annotations

import csv
import io
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from .files import atomic_write, file_sha256, sha256_of
from .paths import unsafe
from .question import Query, is_index
from .table_facts import contradiction, meta_path


class TableError(ValueError):
    """A table that cannot be trusted; the message names file, row and column."""


def write_cells(
    path: Path,
    columns: Sequence[str],
    cells: Iterable[Sequence[Any]],
    origin: Mapping[str, Any],
    facts: Callable[[], Mapping[str, Any]],
) -> None:
    """Write a table of any columns with its ``.meta.json``, both atomically.

    Args:
        path: the table.
        columns: their names.
        cells: row by row; may be made one after the other.
        origin: where they came from.
        facts: what else is known of the rows once all of them are written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as f:
        writer = csv.writer(f, delimiter="\t", lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(cells)
        # Before the table, so that a kill between the two leaves none beside the facts of another.
        meta_path(path).unlink(missing_ok=True)
    said = {"table": path.stem, **origin, "table_sha256": file_sha256(path), **facts()}
    with atomic_write(meta_path(path)) as f:
        json.dump(said, f, indent=1)


Row = TypeVar("Row", bound=Query)


def read_rows(
    path: Path,
    columns: Sequence[str],
    read: Callable[[Path, int, Sequence[str]], Row],
    anew: str,
    optional: Sequence[str] = (),
) -> list[Row]:
    """The queries of a table that :func:`write_cells` wrote.

    Those of the last tables are kept by their content: one run reads a table more than once.

    Args:
        path: the table.
        columns: those that it has.
        read: makes a query of a row, given the table's path and the number of the line.
        anew: the command that makes the table, for messages.
        optional: columns of which it may have any behind the others, in this order; the cells of
            those that it has not are empty.

    Raises:
        TableError: naming file, line and column; or the table is not the one that its
            ``.meta.json`` describes.
    """
    data = path.read_bytes()
    sha256 = sha256_of(data)
    wrong = contradiction(path, sha256)
    if wrong:
        raise TableError(f"{wrong}: {anew}")
    with _READ_LOCK:
        known = _READ.get((path, sha256))
    if known is not None:
        return list(known)
    rows = _lines(path, data, columns, anew, optional)
    queries: dict[int, Row] = {}
    for number, cells in rows:
        query = read(path, number, cells)
        if not is_index(query.index):
            raise TableError(
                f"{path}, line {number}, column index: {query.index} is no number of a row: "
                "they begin at 0"
            )
        if query.index in queries:
            raise TableError(f"{path}: index {query.index} stands twice")
        queries[query.index] = query
    with _READ_LOCK:
        while len(_READ) >= _TABLES_KEPT:
            del _READ[next(iter(_READ))]
        _READ[path, sha256] = tuple(queries.values())
    return list(queries.values())


_TABLES_KEPT = 32
"""More than FindIt's release has."""

_READ: dict[tuple[Path, str], tuple[Any, ...]] = {}
_READ_LOCK = threading.Lock()
"""Programs that ask several models at once read tables in several threads."""


def _lines(
    path: Path, data: bytes, columns: Sequence[str], anew: str, optional: Sequence[str]
) -> Iterator[tuple[int, Sequence[str]]]:
    csv.field_size_limit(2**31 - 1)
    try:
        lines = csv.reader(io.StringIO(data.decode("utf-8"), newline=""), delimiter="\t")
        header = next(lines, [])
        more = [c for c in optional if c in header]
        if header != [*columns, *more]:
            missing = [c for c in columns if c not in header]
            raise TableError(
                f"{path}: columns are {header}, should be {list(columns)}"
                + (f" (missing: {', '.join(missing)})" if missing else "")
                + f"; make it anew with: {anew}"
            )
        places = [header.index(c) if c in more else None for c in optional]
        for cells in filter(None, lines):
            if len(cells) != len(header):
                raise TableError(
                    f"{path}, line {lines.line_num}: {len(cells)} cells for {len(header)} columns: "
                    f"is the file cut off? Make it anew with: {anew}"
                )
            rest = ["" if at is None else cells[at] for at in places]
            yield lines.line_num, cells[: len(columns)] + rest
    except (csv.Error, UnicodeDecodeError) as error:
        raise TableError(f"{path}: {error}; make it anew with: {anew}") from None


def json_cell(value: Any) -> str:
    """A value as the JSON of a cell; :func:`list_cell` reads lists back.

    >>> json_cell(("a", "ü"))
    '["a","ü"]'
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def list_cell(kind: type[Any], cell: str) -> tuple[Any, ...]:
    """A cell that is a JSON list of one type; see :func:`all_of`."""
    return tuple(all_of(kind, json.loads(cell)))


def all_of(kind: type[Any], values: Any) -> list[Any]:
    """Values that are a list of just this type; a bool is no int here.

    Raises:
        ValueError: they are not.
    """
    if not isinstance(values, list) or any(type(value) is not kind for value in values):
        raise ValueError(f"{values!r} is not a list of {kind.__name__}")
    return values


def paths_cell(cell: str) -> tuple[str, ...]:
    """A cell that is a JSON list of paths below a folder.

    Raises:
        ValueError: it is none, or a path leaves the folder.
    """
    names = list_cell(str, cell)
    for name in names:
        why = unsafe(name)
        if why:
            raise ValueError(f"{name!r} {why}: images lie below their dataset's folder")
    return names
