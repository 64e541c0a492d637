"""Tables of VP-Bench: ``VPBench_<NAME>.tsv``, with its ``.meta.json`` beside it.

One row a question, one column a field of :class:`.VPQuery`; ``image``, ``shape`` and
``properties`` are JSON lists, an option that there is not is an empty cell.  All tables but that of
stage 1 say which photograph a question is about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.table_files import TableError, json_cell, list_cell, paths_cell, read_rows, write_cells
from .query import LETTERS, HintColumn, Kind, VPQuery
from .tables import STAGE_1, how_to_make

COLUMNS = (
    "index",
    "image",
    "hint",
    "hint_column",
    "question",
    *LETTERS,
    "answer",
    "amount",
    "shape",
    "properties",
    "kind",
    "absent",
    "source",
)
"""Of the table of stage 1."""

PHOTOGRAPH = "photograph"
"""The last column of every other table."""


def columns_of(table: str) -> tuple[str, ...]:
    """The columns of a table, by its name."""
    return COLUMNS if table == STAGE_1 else (*COLUMNS, PHOTOGRAPH)


@dataclass(frozen=True, slots=True)
class Written:
    """A table that was written: how many questions it has, of which kinds."""

    path: Path
    kinds: Mapping[Kind, int]

    @property
    def queries(self) -> int:
        return sum(self.kinds.values())


def write_table(
    folder: Path,
    name: str,
    queries: Iterable[VPQuery],
    origin: Mapping[str, Any],
    met: Callable[[], Mapping[str, Any]] = dict,
) -> Written:
    """Write queries as ``<folder>/<name>.tsv`` with its ``.meta.json``, both atomically.

    Args:
        folder: where to.
        name: of the table, with its prefix.
        queries: one after the other: they need not all be in memory.
        origin: where they came from, for the ``.meta.json``.
        met: what else the ``.meta.json`` is to say; asked once the last query is written.
    """
    path, columns = folder / f"{name}.tsv", columns_of(name)
    kinds: Counter[Kind] = Counter()
    absent = 0

    def cells() -> Iterator[list[Any]]:
        for query in queries:
            nonlocal absent
            kinds[query.kind] += 1
            absent += query.absent
            yield _cells(query)[: len(columns)]

    def facts() -> Mapping[str, Any]:
        by_kind = {kind.value: kinds[kind] for kind in Kind}
        return {"queries": kinds.total(), "kinds": by_kind, "absent": absent, **met()}

    write_cells(path, columns, cells(), origin, facts)
    return Written(path, kinds)


def _cells(query: VPQuery) -> list[Any]:
    options = dict(query.options)
    return [
        query.index,
        json_cell(query.images),
        query.hint,
        query.hint_column.value,
        query.question,
        *(options.get(letter, "") for letter in LETTERS),
        query.answer,
        query.amount,
        json_cell(query.shapes),
        json_cell(query.properties),
        query.kind.value,
        "true" if query.absent else "false",
        query.source,
        query.photograph,
    ]


def read_table(path: Path) -> list[VPQuery]:
    """The queries of a table that :func:`write_table` wrote.

    Raises:
        TableError: naming file, line and column; or the table is not the one that its
            ``.meta.json`` describes.
    """
    return read_rows(path, columns_of(path.stem), _query, how_to_make(path.stem))


def _query(path: Path, number: int, cells: Sequence[str]) -> VPQuery:
    column = "index"
    try:
        row = dict(zip(columns_of(path.stem), cells, strict=True))
        index = int(row["index"])
        column = "image"
        images = paths_cell(row["image"])
        if not images:
            raise ValueError("names no picture")
        column = "hint_column"
        hint_column = HintColumn(row["hint_column"])
        column = "question"
        question = _filled(row["question"])
        column = LETTERS[0]
        options = tuple((letter, row[letter]) for letter in LETTERS if row[letter].strip())
        if not options:
            raise ValueError("there is no option")
        column = "answer"
        answer = row["answer"]
        if answer and answer not in dict(options):
            raise ValueError(f"{answer!r} is no option: {''.join(dict(options))}")
        column = "shape"
        shapes = list_cell(str, row["shape"])
        column = "properties"
        properties = list_cell(str, row["properties"])
        column = "kind"
        kind = Kind(row["kind"])
        column = "absent"
        absent = {"true": True, "false": False}[row["absent"]]
        column = PHOTOGRAPH
        photograph = _filled(row[column]) if column in row else ""
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise TableError(f"{path}, line {number}, column {column}: {error}") from None
    return VPQuery(
        index=index,
        label=question,
        images=images,
        hint=row["hint"],
        question=question,
        options=options,
        answer=answer,
        amount=row["amount"],
        shapes=shapes,
        properties=properties,
        kind=kind,
        absent=absent,
        source=row["source"],
        hint_column=hint_column,
        photograph=photograph,
    )


def _filled(cell: str) -> str:
    if not cell.strip():
        raise ValueError("is empty")
    return cell
