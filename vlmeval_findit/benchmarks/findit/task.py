"""A variant over its table."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from ...boxes.representation import Judging
from ...core.question import Task
from .annotation_tables import check_masks, read_table
from .marked_pictures import with_marks
from .names import parse
from .places import find_table
from .query import Query
from .thinning import thinned
from .variant import Variant

FindItTask = Task[Variant, Query]
"""Every query of a variant's table, thinned to the variant's frames."""


def load_task(name: str) -> FindItTask:
    """The task of a dataset name.

    Raises:
        VariantError: the name is not valid.
        FileNotFoundError: its table is nowhere.
        TableError: its table cannot be read.
        PlaceError: it shows marked pictures, and the image folder cannot be written to.
    """
    variant = parse(name)
    if variant.data.maker is not None:
        import_module(f"vlmeval_findit.data.{variant.data.maker}.tables").ensure(variant.data)
    table = find_table(variant.table)
    rows: Sequence[Query] = read_table(table)
    if variant.judged is Judging.BY_LYING_INSIDE:
        check_masks(table, rows)
    if variant.mark is not None:
        rows = with_marks(rows, variant)
    queries = (thinned(query, variant.frames) for query in rows)
    return Task(name, variant, table, {query.index: query for query in queries})
