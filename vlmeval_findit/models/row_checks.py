"""What is asked of a row that a plug-in adds to the model table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from ..boxes.spaces import Space
from ..core.model_names import check_model_name
from ..core.plugin_table import Table
from ..core.question import PlainQuestion
from ..core.spelling import nearest
from .families import LocalFamily
from .row import ModelRow, matching

_ANY_QUESTION = PlainQuestion("any", table="any", images="any", family_name="any", in_boxes=True)
_SCENES = replace(_ANY_QUESTION, images="HRInsDet", has_references=True)


def problem(row: ModelRow, table: Table[ModelRow]) -> str | None:
    """Why a plug-in's row cannot be used beside those that a table has."""
    check_model_name(row.entry)
    re.compile(row.names)
    for name in _said(row):
        other = matching(table.values(), name)
        if other is not None:
            return f"{name} is a name of {other.name}{_whose(other, table)}"
        if matching([row], check_model_name(name)) is None:
            return f"{name} is what people type, and is none of its names {row.names}"
    for other in table.values():
        for name in _said(other):
            if re.fullmatch(row.names, name, re.IGNORECASE):
                return f"its names {row.names} have {name}, of {other.name}{_whose(other, table)}"
    for question in (_ANY_QUESTION, _SCENES):
        if not isinstance(space := row.space(question), Space):
            return f"its space is {space!r:.40}"
    return None if row.local is None else _problem_here(row.local, table)


def _said(row: ModelRow) -> Iterable[str]:
    """The names of a row that people type."""
    by_provider = (row.entry,) if row.api else ()
    return (row.name, *by_provider, *(row.local.checkpoints if row.local else ()))


def _whose(row: ModelRow, table: Table[ModelRow]) -> str:
    plugin = table.plugin_of(row.name)
    return f" of {plugin}" if plugin else ", a row of vlmeval_findit"


def _problem_here(family: LocalFamily, table: Table[ModelRow]) -> str | None:
    """Why models of a plug-in's row cannot run on this machine."""
    ours = [row.local for row in table.ours.values() if row.local]
    for what in ("class_name", "layout"):
        said, known = getattr(family, what), dict.fromkeys(getattr(one, what) for one in ours)
        if said not in known:
            return f"no {what} {said!r}{nearest(str(said), known)}"
    if not family.checkpoints:
        return "checkpoints are missing"
    for question in (_ANY_QUESTION, _SCENES):
        family.bounds(question).as_dict()
    return None
