"""Tables as TSV files, whose columns are the fields of a frozen dataclass.

Text and enums stand in a cell as they are, all else as JSON. An empty cell or missing column is the
field's default; a field without a default must be filled. ``<name>.meta.json`` has the checksum.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from enum import Enum
from functools import cache, lru_cache, partial
from itertools import islice
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from ..core import (
    Checked,
    StandsTwiceError,
    TextError,
    atomic_write,
    counted,
    file_sha256,
    quoted_value,
    read_bytes,
    read_json,
    refuse_columns_twice,
    sha256_of,
    unsafe_name,
)
from ..protocol import Query, is_index
from .folders import lmu_data_root


class TableError(ValueError):
    """A table that cannot be trusted; the message names file, row and column."""


class CellError(ValueError):
    """A cell that contradicts others of its row."""

    def __init__(self, column: str, why: str) -> None:
        super().__init__(why)
        self.column = column


def image_path(name: str) -> str:
    """Return a path below an image folder; a ValueError for any other."""
    why = unsafe_name(name)
    if why:
        raise ValueError(f"{name!r} {why}: images lie below their dataset's folder")
    return name


def _pixels(side: int) -> int:
    if side < 1:
        raise ValueError(f"{side} is not a size in pixels")
    return side


# ``__pydantic_config__`` of dataclasses in cells
NESTED_CONFIG: Any = {"allow_inf_nan": False, "extra": "forbid"}

# A path below an image folder, checked not to leave it
ImagePath = Annotated[str, Checked(image_path)]
ImagePaths = tuple[ImagePath, ...]  # A query's images, in the order in which they are shown
ImageSide = Annotated[int, Checked(_pixels)]  # Width or height of an image in pixels, at least 1
AsQuery = TypeVar("AsQuery", bound=Query)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainQuery:
    """The columns of every benchmark's table, to be extended; see :class:`.Query`."""

    index: int
    images: ImagePaths
    cluster: str
    label: str = ""
    support: ImagePaths = ()
    width: ImageSide = 0
    height: ImageSide = 0


class _Column(NamedTuple):
    name: str
    default: Any
    is_text: bool
    read: Callable[[str], Any]


@cache
def _columns(kind: Any) -> tuple[_Column, ...]:
    types = get_type_hints(kind, include_extras=True)
    return tuple(_column(field, types[field.name]) for field in fields(kind))


def _column(field: Field[Any], kind: Any) -> _Column:
    from pydantic import TypeAdapter

    has_factory = field.default_factory is not MISSING
    default = field.default_factory() if has_factory else field.default  # type: ignore[operator]
    plain = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    is_text = isinstance(plain, type) and issubclass(plain, (str, Enum))
    config: Any = None if hasattr(plain, "__dataclass_fields__") else {"allow_inf_nan": False}
    adapter = TypeAdapter(kind, config=config)
    read = adapter.validate_strings if is_text else partial(adapter.validate_json, strict=True)
    return _Column(field.name, default, is_text, read)


def _cells(column: _Column, values: Sequence[Any]) -> list[str]:
    """Format the values of a column."""
    if values.count(column.default) == len(values):
        # As most columns of most tables
        return [""] * len(values)
    cells = _text_cells(values) if column.is_text else _json_cells(values)
    if column.default is MISSING:
        return cells
    default = column.default
    return ["" if value == default else cell for value, cell in zip(values, cells, strict=True)]


def _text_cells(values: Sequence[Any]) -> list[str]:
    if {*map(type, values)} == {str}:
        return list(values)
    return [_text_cell(value) for value in values]


def _quoted(cells: list[str]) -> list[str]:
    """Quote the cells of a column as csv does, which asks every sign: half the time of a table."""
    if _SPECIAL.search("".join(cells)) is None:
        return cells
    return [_quoted_cell(cell) if _SPECIAL.search(cell) else cell for cell in cells]


def _quoted_cell(cell: str) -> str:
    doubled = cell.replace('"', '""')
    return f'"{doubled}"'


_SPECIAL = re.compile('[\t\n\r"]')


def _text_cell(value: Any) -> str:
    return str(value.value if isinstance(value, Enum) else value)


def json_cell(value: Any) -> str:
    """Format a value as the JSON of a cell.

    >>> json_cell(("a", "ü"))
    '["a","ü"]'
    """
    return _json_cells([value])[0]


def _json_cells(values: Sequence[Any]) -> list[str]:
    """Format values as the JSON of cells, all at once if they can be."""
    try:
        text = _fast_encode()(values).decode()
    except (TypeError, ValueError, OverflowError):
        text = "null"
    # It writes null for NaN.
    if "null" not in text and not _has_other_numbers(text):
        # In JSON a line feed inside of a text is written as \\n.
        return text[:-1].split("\n")
    if len(values) == 1:
        return [_CELLS.encode(values[0])]
    return [json_cell(value) for value in values]


@cache
def _fast_encode() -> Callable[[Any], bytes]:
    from msgspec.json import Encoder

    return Encoder().encode_lines


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else vars(value)


def _has_other_numbers(text: str) -> bool:
    """Return whether a number may be one that json.dumps writes otherwise.

    That writes 1e+16 for 1e16, and 6e-05 for 0.00006. Most columns have neither an "e" nor so many
    zeros, and a search for these alone is far faster.
    """
    if "e" in text and _EXPONENT.search(text):
        return True
    return "0.0000" in text and _SMALL.search(text) is not None


_EXPONENT = re.compile(r"\de")
_SMALL = re.compile(r"(?<!\d)0\.0000")
# One for all cells: json.dumps would make one for each
_CELLS = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain)


@dataclass(frozen=True)
class WrittenTable:
    """A table that was written; ``more`` is printed after its queries, ``notes`` below."""

    path: Path
    queries: int
    notes: tuple[str, ...] = ()
    more: str = ""


# Rows whose cells are made a column at a time
AT_ONCE = 1000


def write_table(
    path: Path,
    kind: Any,
    rows: Iterable[Any],
    facts: Mapping[str, Any],
    values: Mapping[str, Callable[[Any], Any]] = MappingProxyType({}),
) -> None:
    """Write a table, then its ``.meta.json``, both atomically.

    Args:
        path: the table.
        kind: a dataclass, whose fields are the columns.
        rows: any records.
        facts: what ``.meta.json`` says of the table.
        values: makes the value of a column of a record, by the column's name; others are the
            record's attribute of that name.
    """
    columns = _columns(kind)
    makers = [values.get(column.name) or attrgetter(column.name) for column in columns]
    rest = iter(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as f:
        f.write("\t".join([column.name for column in columns]) + "\n")
        while batch := list(islice(rest, AT_ONCE)):
            by_column = [
                _quoted(_cells(column, [make(row) for row in batch]))
                for column, make in zip(columns, makers, strict=True)
            ]
            f.writelines(["\t".join(cells) + "\n" for cells in zip(*by_column, strict=True)])
        # In this order: after a kill no new table may stand next to old facts.
        meta_path(path).unlink(missing_ok=True)
    with atomic_write(meta_path(path)) as f:
        json.dump({"table": path.stem, **facts, "table_sha256": file_sha256(path)}, f, indent=1)


def describe_sources(files: Sequence[Path]) -> dict[str, Any]:
    """Describe the files that a table is made of, for its ``.meta.json``."""
    checksums = {path.name: file_sha256(path) for path in files}
    several = sha256_of(*(value.encode() for value in checksums.values()))
    return {
        "source": " and ".join(checksums) if len(files) < 3 else f"{len(files)} files",
        "source_sha256": several if len(files) > 1 else checksums[files[0].name],
        "sources": checksums,
    }


def read_table(
    path: Path, kind: Any, how_to_make: str, query: Callable[[Any], AsQuery] | None = None
) -> list[AsQuery]:
    """Read the queries of a table; tables are cached by content, since a run rereads them.

    ``query`` makes a query of a row (None: rows are queries) and may raise :class:`CellError`.

    Raises:
        TableError: naming file, line and column; or the checksum in ``.meta.json`` differs.
    """
    sha256 = file_sha256(path)
    facts = table_facts(path)
    if facts is not None and facts.get("table_sha256") != sha256:
        raise TableError(
            f"{path}: SHA-256 is {sha256}, but {meta_path(path).name} records "
            f"{facts.get('table_sha256')}: the table was changed after it was made. Make it again "
            f"with: {how_to_make}"
        )
    return list(_queries(path, sha256, kind, how_to_make, query))


@lru_cache(maxsize=32)  # more than FindIt's release has
def _queries(path: Path, sha256: str, kind: Any, how_to_make: str, query: Any) -> tuple[Any, ...]:
    """Read a table; ``sha256`` is a key of the cache."""
    queries: dict[int, Any] = {}
    for line, cells in _lines(path, read_bytes(path), _columns(kind), how_to_make):
        query_ = _query(f"{path}, line {line}", kind, cells, query)
        if query_.index in queries:
            raise TableError(f"{path}, line {line}: duplicate index {query_.index}")
        queries[query_.index] = query_
    return tuple(queries.values())


def _lines(
    path: Path, data: bytes, columns: Sequence[_Column], how_to_make: str
) -> Iterator[tuple[int, Mapping[str, str]]]:
    csv.field_size_limit(2**31 - 1)
    again = f"make it again with: {how_to_make}"
    try:
        lines = csv.reader(io.StringIO(data.decode("utf-8"), newline=""), delimiter="\t")
        header = next(lines, [])
        refuse_columns_twice(header)
        known = [column.name for column in columns]
        needed = [column.name for column in columns if column.default is MISSING]
        missing = [name for name in needed if name not in header]
        if missing or not {*header} <= {*known}:
            lacking = f" (missing: {', '.join(missing)})" if missing else ""
            raise TableError(f"{path}: columns are {header}, should be {known}{lacking}; {again}")
        for cells in filter(None, lines):
            if len(cells) != len(header):
                raise TableError(
                    f"{path}, line {lines.line_num}: {counted(len(cells), 'cell')} for "
                    f"{counted(len(header), 'column')}: "
                    f"is the file cut off? M{again[1:]}"
                )
            yield lines.line_num, dict(zip(header, cells, strict=True))
    except (csv.Error, UnicodeDecodeError, StandsTwiceError) as error:
        raise TableError(f"{path}: {error}; {again}") from None


def _query(where: str, kind: Any, cells: Mapping[str, str], query: Any) -> Any:
    values = {}
    name = ""
    try:
        for column in _columns(kind):
            name = column.name
            cell = cells.get(name, "")
            if cell:
                values[name] = column.read(cell)
            elif column.default is MISSING:
                raise ValueError("is empty")
        query_ = kind(**values) if query is None else query(kind(**values))
        if not is_index(query_.index):
            raise CellError("index", f"{query_.index} is out of range: rows are numbered from 0")
        if not query_.images:
            raise CellError("images", "names no image")
        if not query_.cluster.strip():
            why = "is empty: it says what is not independent, as the image or the video"
            raise CellError("cluster", why)
        return query_
    except CellError as error:
        raise TableError(f"{where}, column {error.column}: {error}") from None
    except ValueError as error:
        raise TableError(f"{where}, column {name}: {_why(error)}") from None


def _why(error: ValueError) -> str:
    if not hasattr(error, "errors"):
        return str(error)
    first = error.errors(include_url=False)[0]
    if first["type"] == "value_error":
        return str(first["ctx"]["error"])
    text = first["msg"].replace("Input should", "should").replace("Field required", "is missing")
    place = "".join(f"[{step}]" for step in first["loc"])
    where = f"{place} " if place else ""
    return f"{where}{text}: {quoted_value(first['input'])}"


def meta_path(table: Path) -> Path:
    """Return the file with the facts about a table."""
    return table.with_suffix(".meta.json")


def is_users_table(name: str) -> bool:
    """Return whether LMUData has a table ``<name>.tsv`` that we did not make."""
    table = lmu_data_root() / f"{name}.tsv"
    return table.is_file() and not meta_path(table).is_file()


def source_checksum(table: Path) -> str | None:
    """Return the checksum of a table's source; None if unknown."""
    facts = table_facts(table)
    return facts.get("source_sha256") if facts is not None and table.is_file() else None


UNLIKE_PUBLISHED = "unlike published"  # The fact that says how a table differs from the published


def unlike_published(facts: Mapping[str, Any]) -> str:
    """Say how the annotations of a table differ from the published ones; "" if they do not.

    Args:
        facts: those of the table; version 1.0 wrote some under another key.
    """
    said = facts.get(UNLIKE_PUBLISHED) or facts.get("unlike_release") or ""
    return said if isinstance(said, str) else "; ".join(map(str, said))


def table_facts(table: Path) -> dict[str, Any] | None:
    """Return the facts about a table: what made it of which files; None if there are none.

    Raises:
        TableError: their file is damaged.
    """
    try:
        facts = read_json(meta_path(table))
    except FileNotFoundError:
        return None
    except TextError as error:
        raise TableError(f"{error.message_for(meta_path(table))}; delete it") from None
    if not isinstance(facts, dict):
        raise TableError(f"{meta_path(table)}: not a JSON object; delete it")
    return facts
