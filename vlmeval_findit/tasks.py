"""What a run asks: a variant over its table, and the record of it.

``<model>_<dataset>_asked.json`` is written before the first call.  It says with which prompts, over
which table and without which rows, so that replies to other questions are never taken for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from .files import file_sha256, write_once
from .places import find_table
from .predictions import PredictionError
from .prompts import prompt_hash
from .records import Query
from .release_prompts import prompt_set
from .tables import read_table, thinned
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
        import_module(f"{__package__}.{variant.row.maker}.tables").ensure(variant.row)
    table = find_table(variant.table)
    queries = (thinned(query, variant.frames) for query in read_table(table))
    return Task(name, variant, table, {query.index: query for query in queries})


@dataclass(frozen=True, slots=True)
class Asked:
    """What a run asked, written before its first call.

    ``prompt_hash`` covers every row of the table, so that runs with other limits can be compared.
    ``left_out`` are rows without an image that the user left out; ``space`` the settings of the
    model's run where its configuration says them.
    """

    prompts: str
    prompt_hash: str
    table_sha256: str
    left_out: tuple[int, ...] = ()
    space: Mapping[str, Any] | None = None


def asked_now(
    task: Task, left_out: Iterable[int] = (), space: Mapping[str, Any] | None = None
) -> Asked:
    """What a run that starts now asks, with the prompt set in force."""
    name, make = prompt_set()
    hashed = prompt_hash(make(query, task.variant) for query in task.queries.values())
    return Asked(name, hashed, file_sha256(task.table), tuple(left_out), space)


def asked_path(predictions: Path) -> Path:
    """Where the record of what was asked lies."""
    return predictions.with_name(f"{predictions.stem}_asked.json")


def write_asked(path: Path, asked: Asked) -> None:
    """Write it, whole or not at all; one that says the same already is left alone."""
    write_once(path, json.dumps(asdict(asked), indent=1).encode())


def read_asked(predictions: Path) -> Asked | None:
    """What the run of a prediction file asked; None for runs of others.

    VLMEvalKit puts predictions into the model's folder or into a folder of the run below it; the
    record lies beside them or one folder up.
    """
    beside = asked_path(predictions)
    for path in (beside, beside.parent.parent / beside.name):
        if path.is_file():
            try:
                values = json.loads(path.read_text(encoding="utf-8"))
                values["left_out"] = tuple(values["left_out"])
                return Asked(**values)
            except (ValueError, TypeError, KeyError) as error:
                raise PredictionError(f"{path}: {error}") from None
    return None
