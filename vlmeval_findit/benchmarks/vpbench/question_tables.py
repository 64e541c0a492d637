"""Tables ``VPBench_<NAME>.tsv`` (the authors', generated and custom ones), names and messages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from ...core import suggestion
from ...protocol import DatasetNameError, Message, PlainVariant, image, text
from ...storage import WrittenTable, find_table, made_table, table_files, table_folders
from . import PREFIX
from .vp_query import LETTERS, HintColumn, QuestionKind, VPQuery, check_question

STAGE_1 = f"{PREFIX}Stage1"
ORIGINAL = f"{STAGE_1}_original"  # the table of stage 1 in the authors' layout
PLAIN = "_plain"  # behind a table's name: without the hint, which describes the mark
STAGE_2 = f"{PREFIX}Stage2"  # with other columns
RENDERED = tuple(f"{PREFIX}{name}" for name in ("Scenes", "Scenes_mini"))
TABLES = {STAGE_1: "VPBench", **{name: name for name in RENDERED}}  # keys of the image folders


def custom_tables() -> list[str]:
    """List the custom tables."""
    paths = chain.from_iterable(folder.glob(f"{PREFIX}*.tsv") for folder in table_folders())
    return sorted({path.stem for path in paths} - {*TABLES, STAGE_2})


def how_to_make(table: str) -> str:
    """Return the command that makes a table."""
    if table == STAGE_1:
        return "python run_findit.py data get VPBench --from FILE"
    if table in TABLES:
        return f"deleting {table}.tsv (the next run makes it again)"
    return "writing it again (columns: docs/reference/vp-bench.md)"


def table_path(table: str) -> Path:
    """Find the TSV of a table, or raise FileNotFoundError."""
    return made_table(table) if table in RENDERED else find_table(table, how_to_make(table))


# --- names and messages ---------------------------------------------------------------------------

MAX_NEW_TOKENS = 512  # room for models that explain themselves before the letter


@dataclass(frozen=True, slots=True)
class VPBenchVariant(PlainVariant):
    """A layout of a table."""

    original: bool = False  # as the authors: four options, and no hint from ``context``
    plain: bool = False  # without the hint

    @property
    def board_dataset(self) -> str:
        # Each layout is a separate dataset, so that nobody reports the better of two.
        return self.name.removeprefix(PREFIX)

    @property
    def axes(self) -> Mapping[str, str | int]:
        return {
            "layout": "original" if self.original else "ours",
            "hint": "no" if self.plain else "yes",
        }


def parse(name: str) -> VPBenchVariant:
    """Parse a name.

    >>> parse("VPBench_Stage1_original").original
    True
    >>> parse("VPBench_Stage1_plain").table
    'VPBench_Stage1'

    Raises:
        DatasetNameError: invalid name; the message says which is nearest.
    """
    tables = [*TABLES, *custom_tables()]
    names = [*tables, ORIGINAL, *(f"{table}{PLAIN}" for table in tables)]
    if name not in names or not re.fullmatch(r"\w+", name, re.ASCII):
        raise DatasetNameError(f"unknown table of VP-Bench {name!r}{suggestion(name, names)}")
    plain = name not in tables and name.endswith(PLAIN)
    table = STAGE_1 if name == ORIGINAL else name
    if plain:
        table = name.removesuffix(PLAIN)
    return VPBenchVariant(
        name,
        table,
        TABLES.get(table, table),  # a custom table's images have its name
        family_name="Visual marks",
        max_new_tokens=MAX_NEW_TOKENS,
        original=name == ORIGINAL,
        plain=plain,
    )


REQUEST = "Which option is right? Reply with its letter alone."


def message(query: VPQuery, variant: VPBenchVariant) -> Message:
    """Compose a query's message."""
    hint = query.hint.strip()
    options = dict(query.options)
    lines = [query.question.strip()]
    if variant.original:
        hint = hint if query.hint_column is HintColumn.HINT else ""
        options = {letter: options.get(letter, "") for letter in LETTERS}
        lines = [query.question]
    lines += [f"{letter}. {' '.join(option.split())}" for letter, option in options.items()]
    if variant.plain:
        hint = ""
    value = "\n".join([*filter(None, [hint]), *lines, REQUEST]).strip()
    return (*map(image, query.images), text(value))


# --- rows -----------------------------------------------------------------------------------------


def write_table(
    folder: Path, name: str, queries: Sequence[VPQuery], origin: Mapping[str, Any]
) -> WrittenTable:
    """Write queries to ``<folder>/<name>.tsv`` and its ``.meta.json``, both atomically."""
    path = folder / f"{name}.tsv"
    kinds = Counter(query.kind for query in queries)
    facts = {
        "queries": len(queries),
        "kinds": {kind.value: kinds[kind] for kind in QuestionKind},
        "absent": sum(query.absent for query in queries),
    }
    table_files.write_table(path, VPQuery, queries, {**origin, **facts})
    notes = [f"kinds: {', '.join(f'{kind.value} {count}' for kind, count in kinds.items())}"]
    unknown = kinds[QuestionKind.UNKNOWN]
    if unknown:
        notes.append(f"{unknown} of {len(queries)} questions do not say their kind")
    return WrittenTable(path, len(queries), tuple(notes))


def read_table(path: Path) -> list[VPQuery]:
    """Read a table; see :func:`.table_files.read_table`."""
    return table_files.read_table(path, VPQuery, how_to_make(path.stem), _checked)


def _checked(query: VPQuery) -> VPQuery:
    check_question(query.question, query.options, query.answer)
    return query
