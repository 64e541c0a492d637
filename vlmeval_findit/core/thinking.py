"""Thoughts are taken out of replies, by one set of rules: what was only thought is no answer.

The answer is what stands behind the last mark that closes a thought; the mark that opens it may be
missing, since chat templates write it into the prompt.  Where a thought opens behind that, the
reply was cut off inside it and holds no answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class ThoughtMarks:
    """What stands around a thought; ``title`` is a word that the model writes at its start."""

    opens: str
    closes: str
    title: str = ""


THINK = ThoughtMarks("<think>", "</think>")
"""What most models write."""

CHANNEL = ThoughtMarks("<|channel>", "<channel|>", "thought")
"""What Gemma 4 writes."""

_ALL = (
    THINK,
    ThoughtMarks("<thinking>", "</thinking>"),
    CHANNEL,
    ThoughtMarks("◁think▷", "◁/think▷"),
)


def _any_of(marks: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(marks), re.IGNORECASE)


_OPENS = _any_of(
    re.escape(one.opens) + (rf"(?:{one.title}\b)?" if one.title else "") for one in _ALL
)
_CLOSES = _any_of(re.escape(one.closes) for one in _ALL)
_MARK = _any_of((_OPENS.pattern, _CLOSES.pattern))

_SIGNS = frozenset(sign[0] for one in _ALL for sign in (one.opens, one.closes))


class Spoken(NamedTuple):
    """A reply without its thought: ``answer`` is the end of the text.

    ``ends_inside`` says that a thought was never closed.
    """

    answer: str
    thought: str = ""
    ends_inside: bool = False


def split_thought(text: str) -> Spoken:
    """Take every thought out of a text (with :func:`opened_by` before it).

    >>> split_thought("<think>hm</think>\\n[]")
    Spoken(answer='[]', thought='hm', ends_inside=False)
    >>> split_thought("[] <think>hm [1, 2, 3, 4]")
    Spoken(answer='', thought='[]\\n\\nhm [1, 2, 3, 4]', ends_inside=True)
    """
    # Nearly every reply, and rewards are taken of millions.
    if not any(sign in text for sign in _SIGNS):
        return Spoken(text)
    begin = 0
    for closes in _CLOSES.finditer(text):
        begin = closes.end()
    if ends_inside := _OPENS.search(text, begin) is not None:
        begin = len(text)
    if not begin:
        return Spoken(text)
    thoughts = map(str.strip, _MARK.split(text[:begin]))
    return Spoken(text[begin:].lstrip(), "\n\n".join(filter(None, thoughts)), ends_inside)


def opened_by(prompt: str, marks: ThoughtMarks) -> str:
    """The end of a prompt that a chat template left inside a thought; else nothing."""
    at = prompt.rfind(marks.opens)
    return prompt[at:] if at >= 0 and marks.closes not in prompt[at:] else ""
