"""Checks of a foreign row before it enters the model table."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import replace

from ..boxes.spaces import Space
from ..core.plugins import Table
from ..core.predictions import check_model_name
from ..core.question import PlainQuestion
from ..core.vlmevalkit import model_names
from .local.layout import ImageLayout
from .row import LocalFamily, ModelRow, matching

_ANY_QUESTION = PlainQuestion("any", table="any", images="any", family_name="any", in_boxes=True)
_SCENES = replace(_ANY_QUESTION, images="HRInsDet", has_references=True)


def problem(row: ModelRow, table: Table[ModelRow], replaces: Collection[str] = ()) -> str | None:
    """Return why a row cannot join a table, except for rows it replaces; None if it can."""
    check_model_name(row.entry)
    re.compile(row.names)
    others = [one for one in table.values() if one.name not in replaces]
    for name in _said(row):
        other = matching(others, name)
        if other is not None:
            return f"{name} is a name of {other.name}{_whose(other, table)}"
        if matching([row], check_model_name(name)) is None:
            return f"{name} is what people type, and is none of its names {row.names}"
    for other in others:
        for name in _said(other):
            if re.fullmatch(row.names, name, re.IGNORECASE):
                return f"its names {row.names} have {name}, of {other.name}{_whose(other, table)}"
    for name in _entries(row):
        if name in model_names():
            return f"{name} of the row {row.name} is the name of a model of VLMEvalKit: rename it"
    for question in (_ANY_QUESTION, _SCENES):
        if not isinstance(space := row.space(question), Space):
            return f"its space is {space!r:.40}"
    return None if row.local is None else _problem_here(row.local)


def _said(row: ModelRow) -> Iterable[str]:
    return (row.name, *_entries(row))


def _entries(row: ModelRow) -> Iterable[str]:
    """Yield its entries among VLMEvalKit's models."""
    by_provider = (row.entry,) if row.api else ()
    return (*by_provider, *(row.local.checkpoints if row.local else ()))


def _whose(row: ModelRow, table: Table[ModelRow]) -> str:
    plugin = table.plugin_of(row.name)
    return f" of {plugin}" if plugin else ", a row of vlmeval_findit"


def _problem_here(family: LocalFamily) -> str | None:
    layout = family.layout
    if not (isinstance(layout, type) and issubclass(layout, ImageLayout)):
        return f"its layout is {layout!r:.40}, and should be a subclass of ImageLayout"
    if not family.checkpoints:
        return "checkpoints are missing"
    for question in (_ANY_QUESTION, _SCENES):
        said = family.bounds(question).as_dict().keys() - layout.takes - {"two_step"}
        if said:
            return f"{layout.__name__} takes no {', '.join(sorted(said))}, which its bounds say"
    return None
