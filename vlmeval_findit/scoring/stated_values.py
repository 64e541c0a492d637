"""What was stated of a run's model in place of what is known: named below results and on boards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..models import MODELS, ModelRow, find_model
from ..protocol import (
    READS_LIKE,
    THOUGHT_MARKS,
    Identity,
    Known,
    Setting,
    choose_value,
    note_on_choice,
    note_on_spaces,
    thought_marks,
)


def note_on_stated(
    model: str,
    identity: Identity | None,
    spaces: Iterable[Mapping[str, Any]],
    marks: Sequence[str] | None,
    reads_like: str | None,
) -> str | None:
    """Say what was stated of a model in place of what is known; None: nothing.

    Args:
        model: its name.
        identity: of its run, with the row that it was asked by and the way of answering that it
            recorded.
        spaces: coordinate spaces in force, each with its ``source``.
        marks: before and after a thought, that the score was told.
        reads_like: known model that the score was told.
    """
    named = find_model(model)
    recorded = identity.answering.row if identity is not None else None
    row = MODELS.get(recorded or "") or named
    like = reads_like or (identity.reads_like if identity is not None else None)
    told = thought_marks(marks) if marks is not None else None
    notes = [
        _row_note(recorded, named),
        note_on_spaces(spaces),
        _note(THOUGHT_MARKS, model, told, row, row.named_marks if row else None),
        _note(READS_LIKE, model, like, row, row.name if row else None),
    ]
    return "; ".join(filter(None, notes)) or None


def _row_note(recorded: str | None, named: ModelRow | None) -> str | None:
    """Say that a run was asked as another known model than its name says."""
    if not recorded or named is None or named.name == recorded:
        return None
    return f"asked as {recorded}, in place of {named.name}, which the name says"


def _note(setting: Setting, model: str, stated: Any, row: ModelRow | None, known: Any) -> str:
    if stated is None or row is None or known is None:
        return ""
    table = Known(known, f"model table: {row.name}")
    return note_on_choice(setting, choose_value(setting, model, stated=stated, known=table))
