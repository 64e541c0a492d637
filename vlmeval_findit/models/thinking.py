"""Thoughts are kept apart from replies: a box that was only thought of is no answer."""

from __future__ import annotations

from typing import NamedTuple

from .families import ThoughtMarks

Span = tuple[int, int]
"""Characters of a text: the first, and the one behind the last."""


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
    spans = kept_spans(text, marks)
    reply = "".join(text[slice(*span)] for span in spans)
    if marks is None:
        return Spoken(reply)
    if marks.opens not in text:
        return Spoken(reply, _clean(text.rpartition(marks.closes)[0], marks))
    pieces = [piece.partition(marks.closes) for piece in text.split(marks.opens)[1:]]
    thoughts = (_clean(thought, marks) for thought, _, _ in pieces)
    ends_inside = not pieces[-1][1]
    return Spoken(reply, "\n\n".join(filter(None, thoughts)), ends_inside)


def kept_spans(text: str, marks: ThoughtMarks | None) -> tuple[Span, ...]:
    """What of a text is no thought.

    >>> kept_spans("[]<think>hm</think>\\n[]", ThoughtMarks("<think>", "</think>"))
    ((0, 2), (20, 22))
    """
    if marks is None:
        return ((0, len(text)),)
    before, *pieces = text.split(marks.opens)
    if not pieces:
        # A closing mark alone: the thought began without saying so.
        return ((len(text) - len(text.rpartition(marks.closes)[2]), len(text)),)
    spans, end = [(0, len(before))], len(before)
    for piece in pieces:
        end += len(marks.opens) + len(piece)
        spans.append((end - len(piece.partition(marks.closes)[2].lstrip()), end))
    return tuple(spans)


def _clean(thought: str, marks: ThoughtMarks) -> str:
    return thought.replace(marks.closes, "").strip().removeprefix(marks.title).strip()
