"""Names (``VPBench_<table>``) and messages of stage 1 and tables like it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from ...core.benchmark import PromptSet
from ...core.messages import Message, image, text
from ...core.question import PlainQuestion, QuestionError
from ...core.spelling import nearest
from . import PREFIX
from .query import LETTERS, HintColumn, VPQuery
from .tables import STAGE_1, TABLES, own_tables, table_of

MAX_NEW_TOKENS = 512  # room for models that explain themselves before the letter


class Way(Enum):
    """The layout of a message; values are suffixes of names."""

    OURS = ""
    ORIGINAL = "original"  # the authors': always four options, and no hint from ``context``


WAYS = {f"{STAGE_1}_{Way.ORIGINAL.value}": (STAGE_1, Way.ORIGINAL)}


@dataclass(frozen=True, slots=True)
class VPQuestion(PlainQuestion):
    """One layout of one table."""

    way: Way = Way.OURS

    @property
    def column(self) -> str:
        # Each layout is a dataset of its own, so that nobody reports the better of two.
        return self.name.removeprefix(PREFIX)


def parse(name: str) -> VPQuestion:
    """Parse a name.

    >>> parse("VPBench_Stage1_original").way
    <Way.ORIGINAL: 'original'>

    Raises:
        QuestionError: invalid name; the message says which is nearest.
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


REQUEST = "Which option is right? Reply with its letter alone."


def message(query: VPQuery, question: VPQuestion) -> Message:
    """Compose a query's message."""
    lines = _original(query) if question.way is Way.ORIGINAL else _ours(query)
    return (*map(image, query.images), text("\n".join((*lines, REQUEST)).strip()))


def _ours(query: VPQuery) -> list[str]:
    hint = [query.hint.strip()] if query.hint.strip() else []
    return [*hint, query.question.strip(), *(_line(*option) for option in query.options)]


def _original(query: VPQuery) -> list[str]:
    hint = query.hint.strip() if query.hint_column is HintColumn.HINT else ""
    options = dict(query.options)
    lines = [_line(letter, options.get(letter, "")) for letter in LETTERS]
    return [*filter(None, [hint]), query.question, *lines]


def _line(letter: str, option: str) -> str:
    return f"{letter}. {' '.join(option.split())}"


PROMPTS = PromptSet("vp-bench-1", message)
