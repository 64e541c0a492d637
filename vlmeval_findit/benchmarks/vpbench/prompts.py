"""Messages: the pictures, then hint, question, options and what to answer with."""

from __future__ import annotations

from ...core.benchmark import PromptSet
from ...core.messages import Message, image, text
from .query import LETTERS, HintColumn, VPQuery
from .question import VPQuestion, Way

REQUEST = "Which option is right? Reply with its letter alone."


def message(query: VPQuery, question: VPQuestion) -> Message:
    """The message of a row."""
    lines = _original(query) if question.way is Way.ORIGINAL else _ours(query)
    return (*map(image, query.images), text("\n".join((*lines, REQUEST)).strip()))


def _ours(query: VPQuery) -> list[str]:
    hint = [query.hint.strip()] if query.hint.strip() else []
    return [*hint, query.question.strip(), *(_line(*option) for option in query.options)]


def _original(query: VPQuery) -> list[str]:
    """Always four options; the hint of the column that their code reads, where that has one."""
    hint = query.hint.strip() if query.hint_column is HintColumn.HINT else ""
    options = dict(query.options)
    lines = [_line(letter, options.get(letter, "")) for letter in LETTERS]
    return [*filter(None, [hint]), query.question, *lines]


def _line(letter: str, option: str) -> str:
    return f"{letter}. {' '.join(option.split())}"


PROMPTS = PromptSet("vp-bench-1", message)
