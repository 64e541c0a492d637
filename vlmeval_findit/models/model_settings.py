"""The settings in force for a model: stated, known by its row, or said by a variable."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from ..boxes import SpaceError, space_from
from ..protocol import (
    READS_LIKE,
    SPACE_SETTING,
    THOUGHT_MARKS,
    Described,
    Known,
    Settings,
    choose_value,
    say_once,
    settings_from,
    variables,
)
from .model_row import ANY_QUESTION, ModelRow
from .model_table import find_model, space_of_settings, space_of_variable


def settings_of_model(
    settings: Settings, model: str, row: ModelRow | None, recorded_like: str | None = None
) -> Settings:
    """Return settings with the marks of thoughts and the ``reads_like`` in force for a model.

    What is overridden, and what a variable decides or does not, is said. The coordinate space,
    which depends on the variant, is chosen by the benchmark.

    Args:
        settings: as the user stated them, with what variables say.
        model: its name in messages.
        row: of the model table (None: not known).
        recorded_like: the ``reads_like`` that its run recorded.
    """
    of_unknown = settings.of_unknown
    table = f"model table: {row.name}" if row is not None else ""
    marks = row.named_marks if row is not None else None
    chosen_marks = choose_value(
        THOUGHT_MARKS,
        model,
        stated=settings.thought_marks,
        last=settings.last.thought_marks,
        known=None if marks is None else Known(marks, table),
        variable=of_unknown.thought_marks,
    )
    stated_row = find_model(settings.reads_like) if settings.reads_like else None
    chosen_like = choose_value(
        READS_LIKE,
        model,
        recorded=recorded_like if settings.reads_like is None else None,
        stated=stated_row.name if stated_row is not None else settings.reads_like,
        last=settings.last.reads_like,
        known=None if row is None else Known(row.name, table),
        variable=of_unknown.reads_like,
    )
    say_once(chosen_marks.remark)
    say_once(chosen_like.remark)
    like = None if chosen_like.source == table else chosen_like.value
    return replace(
        settings,
        thought_marks=None if chosen_marks.source == table else chosen_marks.value,
        reads_like=settings.reads_like or like,
        of_unknown=replace(of_unknown, thought_marks=None, reads_like=None),
    )


def space_or_variable(stated: Any, row: ModelRow | None, *, bounds_known: bool = False) -> Any:
    """Return the space to use in place of a row's: the stated one, else a variable's.

    A variable states it only where the row does not know it: there is no row, or only the server
    knows the bounds of its resize. Returns a name, a mapping, or None: the row's is used.
    """
    value = settings_from({"space": stated}).space
    if value is not None:
        return value
    of_unknown = variables().space
    if of_unknown is None or row is None:
        return of_unknown
    kind = _kind_of(row)
    if kind and (bounds_known or kind != "smart_resize"):
        return None
    completes = not kind or space_from(of_unknown).kind == kind
    return of_unknown if completes else None


def _kind_of(row: ModelRow) -> str:
    """Return the kind of a row's space, which no variant changes; "" if it states none."""
    with suppress(SpaceError):
        return row.space(ANY_QUESTION).kind
    return ""


def space_source(model: str, settings: Settings, described: Described) -> str:
    """Return who stated the space of a model's replies; what is overridden or ignored is said.

    Args:
        model: its name in messages.
        settings: with the space that is stated, and what variables say.
        described: the model, with the space that would be its if none were stated.
    """
    stated = space_of_settings(settings)
    variable = space_of_variable(settings)
    row = described.answering.row
    known = None
    if described.known is not None:
        known = Known(dict(described.known), f"model table: {row}" if row else NO_ROW)
    choice = choose_value(
        SPACE_SETTING,
        model,
        stated=stated.as_dict() if stated is not None else None,
        known=known,
        variable=variable.as_dict() if variable is not None else None,
    )
    say_once(choice.remark)
    return choice.source


NO_ROW = "its own"  # the space of a model without a row, as of a baseline
