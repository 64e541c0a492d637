"""Thoughts are kept apart from replies: a box that was only thought of is no answer."""

from __future__ import annotations

from typing import NamedTuple

from .families import ThoughtMarks


class Spoken(NamedTuple):
    """A reply without its thought.  ``ends_inside`` says that the thought was never closed."""

    reply: str
    thought: str = ""
    ends_inside: bool = False


def opened_by(prompt: str, marks: ThoughtMarks) -> str:
    """The end of a prompt that a chat template left inside a thought; else nothing."""
    at = prompt.rfind(marks.opens)
    return prompt[at:] if at >= 0 and marks.closes not in prompt[at:] else ""


def split_thought(text: str, marks: ThoughtMarks | None) -> Spoken:
    """Take every thought out of a text (with :func:`opened_by` before it).

    >>> split_thought("<think>hm</think>\\n[]", ThoughtMarks("<think>", "</think>"))
    Spoken(reply='[]', thought='hm', ends_inside=False)
    >>> split_thought("<think>hm [1, 2, 3, 4]", ThoughtMarks("<think>", "</think>"))
    Spoken(reply='', thought='hm [1, 2, 3, 4]', ends_inside=True)
    """
    if marks is None:
        return Spoken(text)
    if marks.opens not in text:
        # A closing mark alone: the thought began without saying so.
        thought, _, reply = text.rpartition(marks.closes)
        return Spoken(reply, _clean(thought, marks))
    before, *pieces = text.split(marks.opens)
    said, thoughts, ends_inside = [before], [], False
    for piece in pieces:
        thought, closed, after = piece.partition(marks.closes)
        thoughts.append(_clean(thought, marks))
        said.append(after.lstrip())
        ends_inside = not closed
    return Spoken("".join(said), "\n\n".join(filter(None, thoughts)), ends_inside)


def _clean(thought: str, marks: ThoughtMarks) -> str:
    return thought.replace(marks.closes, "").strip().removeprefix(marks.title).strip()
