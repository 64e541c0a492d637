"""Tables ``VPBench_<NAME>.tsv`` (the authors', generated and custom ones), names and messages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from ...core import table_files
from ...core.folders import table_folders
from ...core.formatting import nearest
from ...core.question import Message, PlainQuestion, QuestionError, image, text
from ...core.table_files import WrittenTable
from . import PREFIX
from .vp_query import LETTERS, HintColumn, QuestionKind, VPQuery, check_question

STAGE_1 = f"{PREFIX}Stage1"
ORIGINAL = f"{STAGE_1}_original"  # the table of stage 1 in the authors' layout
STAGE_2 = f"{PREFIX}Stage2"  # with other columns
RENDERED = tuple(f"{PREFIX}{name}" for name in ("Scenes", "Scenes_mini"))
TABLES = {STAGE_1: "VPBench", **{name: name for name in RENDERED}}  # keys of the image folders


def custom_tables() -> list[str]:
    """List the custom tables."""
    result = {
        path.stem for folder in table_folders() for path in sorted(folder.glob(f"{PREFIX}*.tsv"))
    }
    return sorted(result - {*TABLES, STAGE_2})


def how_to_make(table: str) -> str:
    """Return the command that makes a table."""
    if table == STAGE_1:
        return "python run_findit.py data get VPBench --from FILE"
    if table in TABLES:
        return f"deleting {table}.tsv (the next run makes it again)"
    return "writing it again (columns: docs/reference/vp-bench.md)"


def ensure(table: str) -> None:
    """Render a table that is rendered, unless it is up to date."""
    if table in RENDERED:
        import_module("vlmeval_findit.data.rendered.tables").ensure_marked(table)


# --- names and messages ---------------------------------------------------------------------------

MAX_NEW_TOKENS = 512  # room for models that explain themselves before the letter


@dataclass(frozen=True, slots=True)
class VPQuestion(PlainQuestion):
    """A layout of a table."""

    original: bool = False  # as the authors: four options, and no hint from ``context``

    @property
    def board_dataset(self) -> str:
        # Each layout is a separate dataset, so that nobody reports the better of two.
        return self.name.removeprefix(PREFIX)


def parse(name: str) -> VPQuestion:
    """Parse a name.

    >>> parse("VPBench_Stage1_original").original
    True

    Raises:
        QuestionError: invalid name; the message says which is nearest.
    """
    table = STAGE_1 if name == ORIGINAL else name
    is_known = table in TABLES or table in custom_tables()
    if not is_known or not re.fullmatch(r"\w+", name, re.ASCII):
        names = [*TABLES, ORIGINAL, *custom_tables()]
        raise QuestionError(f"{name}: no such table of VP-Bench{nearest(name, names)}")
    return VPQuestion(
        name,
        table,
        TABLES.get(table, table),  # a custom table's images have its name
        family_name="Visual marks",
        max_new_tokens=MAX_NEW_TOKENS,
        original=name == ORIGINAL,
    )


REQUEST = "Which option is right? Reply with its letter alone."


def message(query: VPQuery, question: VPQuestion) -> Message:
    """Compose a query's message."""
    lines = _original_lines(query) if question.original else _our_lines(query)
    return (*map(image, query.images), text("\n".join((*lines, REQUEST)).strip()))


def _our_lines(query: VPQuery) -> list[str]:
    hint = [query.hint.strip()] if query.hint.strip() else []
    return [*hint, query.question.strip(), *(_line(*option) for option in query.options)]


def _original_lines(query: VPQuery) -> list[str]:
    hint = query.hint.strip() if query.hint_column is HintColumn.HINT else ""
    options = dict(query.options)
    lines = [_line(letter, options.get(letter, "")) for letter in LETTERS]
    return [*filter(None, [hint]), query.question, *lines]


def _line(letter: str, option: str) -> str:
    return f"{letter}. {' '.join(option.split())}"


# --- rows -----------------------------------------------------------------------------------------


def write_table(
    folder: Path,
    name: str,
    queries: Iterable[VPQuery],
    origin: Mapping[str, Any],
    met: Callable[[], Mapping[str, Any]] = dict,
) -> WrittenTable:
    """Stream queries to ``<folder>/<name>.tsv``, with its ``.meta.json``, both atomically.

    The ``.meta.json`` holds ``origin`` and ``met()``, called after the last query.
    """
    path = folder / f"{name}.tsv"
    kinds: Counter[QuestionKind] = Counter()
    absent = 0

    def counted() -> Iterator[VPQuery]:
        nonlocal absent
        for query in queries:
            kinds[query.kind] += 1
            absent += query.absent
            yield query

    def facts() -> Mapping[str, Any]:
        by_kind = {kind.value: kinds[kind] for kind in QuestionKind}
        return {"queries": kinds.total(), "kinds": by_kind, "absent": absent, **met()}

    table_files.write_table(path, VPQuery, counted(), origin, facts)
    notes = [f"kinds: {', '.join(f'{kind.value} {count}' for kind, count in kinds.items())}"]
    if unknown := kinds[QuestionKind.UNKNOWN]:
        notes.append(f"{unknown} of {kinds.total()} questions do not say their kind")
    return WrittenTable(path, kinds.total(), tuple(notes))


def read_table(path: Path) -> list[VPQuery]:
    """Read a table; see :func:`.table_files.read_table`."""
    return table_files.read_table(path, VPQuery, how_to_make(path.stem), _whole)


def _whole(query: VPQuery) -> VPQuery:
    check_question(query.question, query.options, query.answer)
    return query
