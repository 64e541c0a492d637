"""Names and ways of asking: ``VPBench_<table>``, and the authors' own layout of stage 1."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from ...core.question import PlainQuestion, QuestionError
from ...core.spelling import nearest
from . import PREFIX
from .tables import STAGE_1, TABLES, own_tables, table_of

MAX_NEW_TOKENS = 512
"""One letter is asked for; a model that explains itself first has room to."""


class Way(Enum):
    """How a row is asked, as names end in it."""

    OURS = ""
    """Hint, question and the options that there are."""
    ORIGINAL = "original"
    """The authors' layout: four options, blank ones too, and no hint but from their one column."""


WAYS = {f"{STAGE_1}_{Way.ORIGINAL.value}": (STAGE_1, Way.ORIGINAL)}
"""The names that stand for a table and a way of asking other than ours."""


@dataclass(frozen=True, slots=True)
class VPQuestion(PlainQuestion):
    """One way of asking one table."""

    way: Way = Way.OURS

    @property
    def column(self) -> str:
        """Another way is another column: nobody reports the better of two layouts."""
        return self.name.removeprefix(PREFIX)


def parse(name: str) -> VPQuestion:
    """The question that a name stands for.

    >>> parse("VPBench_Stage1_original").way
    <Way.ORIGINAL: 'original'>

    Raises:
        QuestionError: it is none; the message says which is nearest.
    """
    table, way = WAYS.get(name, (name, Way.OURS))
    known = table_of(table) if re.fullmatch(r"\w+", name, re.ASCII) else None
    if known is None:
        names = [*TABLES, *WAYS, *own_tables()]
        raise QuestionError(f"{name}: no such table of VP-Bench{nearest(name, names)}")
    return VPQuestion(
        name=name,
        table=table,
        images=known.images,
        family_name="marks",
        max_new_tokens=MAX_NEW_TOKENS,
        way=way,
    )
