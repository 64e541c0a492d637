"""Where FindIt's tables lie, and what makes one that is nowhere."""

from __future__ import annotations

from pathlib import Path

from ...core import places
from .datasets import DATASETS, OF_THE_RELEASE


def find_table(table: str) -> Path:
    """The TSV of a table; see :func:`...core.places.find_table`."""
    return places.find_table(table, how_to_make(table))


def how_to_make(table: str) -> str:
    """The command that makes a table."""
    dataset = DATASETS.get(table.removesuffix("_multilabel"))
    command = OF_THE_RELEASE if dataset is None else dataset.how_to_make
    return command.format(table=table)
