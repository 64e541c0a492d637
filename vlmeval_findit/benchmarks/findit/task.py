"""What a run asks: a variant over its table, and the identity of a run that asks it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from ...core.files import file_sha256
from ...core.identity import ENGINES, Answering, Identity, installed
from ...core.messages import prompt_hash
from ...core.places import find_table
from .annotation_tables import read_table
from .query import Query
from .release_prompts import prompt_set
from .thinning import thinned
from .variant import Variant, parse


@dataclass(frozen=True, slots=True)
class Task:
    """A variant over its table: every query of it, thinned to the variant's frames."""

    name: str
    variant: Variant
    table: Path
    queries: Mapping[int, Query]


def load_task(name: str) -> Task:
    """The task of a dataset name.

    Raises:
        VariantError: the name is not valid.
        FileNotFoundError: its table is nowhere.
        TableError: its table cannot be read.
    """
    variant = parse(name)
    if variant.row.maker is not None:
        import_module(f"vlmeval_findit.data.{variant.row.maker}.tables").ensure(variant.row)
    table = find_table(variant.table)
    queries = (thinned(query, variant.frames) for query in read_table(table))
    return Task(name, variant, table, {query.index: query for query in queries})


def run_identity(
    task: Task,
    model: str,
    answering: Answering,
    rows: Iterable[int],
    space: Mapping[str, Any] | None,
) -> Identity:
    """What a run over a task that starts now is, with the prompt set in force.

    Rows of the table that are not among ``rows`` are not said to be left out: the caller adds
    those without a usable image.
    """
    name, make = prompt_set()
    return Identity(
        model=model,
        dataset=task.variant.name,
        answering=answering,
        prompts=name,
        prompt_hash=prompt_hash(make(query, task.variant) for query in task.queries.values()),
        table=task.table.name,
        table_sha256=file_sha256(task.table),
        rows=tuple(sorted(rows)),
        space=space,
        versions=installed(_AT_INFERENCE),
    )


_AT_INFERENCE = ("vlmeval-findit", *ENGINES, "pillow")
"""Packages whose version at inference a run records."""
