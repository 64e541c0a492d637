"""Boxes that stand in words: in round brackets, as two points, between tags, or all alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..reply_format import ReplyFormat
from .entries import POINTS, Candidate
from .steps import Step

_NUMBER = r"([-+]?\d++(?:\.\d*+)?(?:[eE][-+]?\d++)?)"
_SEPARATOR = r"(?:\s*+[,;]\s*+|\s++)"
_POINT = rf"\(\s*+{_NUMBER}{_SEPARATOR}{_NUMBER}\s*+\)"
_FOUND = frozenset({Step.PROSE})

_FRAME = re.compile(r"frame\W{0,4}(\d{1,9})|^\s*+<?\s*+(\d{1,9})\s*+[>:.)]", re.I | re.M)
_MARKS = " \t\r:;,.*-–—=>#\"'`([{)]}•"
_BULLET = re.compile(r"^\s*+(?:\d{1,3}[.)]|[-*•])\s++")
_LONGEST = 200
"""Characters before a box in which its label and its frame stand."""


def boxes_in(text: str, how: ReplyFormat) -> Iterator[Candidate]:
    """The boxes of a text, found by their numbers; one without a label or frame that was asked for
    is left out."""
    width = how.numbers.width
    numbers = _SEPARATOR.join([_NUMBER] * width)
    alone = re.fullmatch(rf"\s*+{numbers}\s*+\.?", text)
    if alone is not None and not how.multilabel and how.frames == 1:
        yield Candidate("", None, alone.groups(), _FOUND)
        return
    # Between the points of one box: a word or an arrow, no other number.
    points = r"[^()\d\n]{0,20}+".join([_POINT] * (width // 2))
    kinds = [rf"[\[(>]\s*+{numbers}\s*+[\])<]"] + [points] * (how.representation in POINTS)
    end = 0
    label, frame = "", None
    for found in re.finditer("|".join(kinds), text):
        before = text[max(end, found.start() - _LONGEST) : found.start()]
        end = found.end()
        said = [n for n in found.groups() if n is not None]
        if how.frames > 1:
            frame = _frame(before, frame)
            if frame is None:
                continue
        if how.multilabel:
            label = _label(before) or label
            if not label:
                continue
        yield Candidate(label, frame, tuple(said), _FOUND)


def _frame(before: str, last: int | None) -> int | None:
    """The frame that is said last before a box; else that of the box before it."""
    for found in _FRAME.finditer(before):
        last = int(found[1] or found[2])
    return last


def _label(before: str) -> str:
    """What stands before a box in its line, without marks and bullets."""
    line = before.rstrip(_MARKS + "\n").rpartition("\n")[2]
    line = _FRAME.sub("", line)
    return _BULLET.sub("", line).strip(_MARKS)
