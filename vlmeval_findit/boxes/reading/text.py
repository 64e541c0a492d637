"""Replies that are text.

The patterns are possessive (``++``): a token is never given back, so a long run of digits, blanks
or brackets is looked at once.  What stands *before* a box (its label, its frame index) is found by
looking back from the box, not by a pattern that starts anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from ..records import Reading, Reason
from ..reply_format import ReplyFormat
from ..representation import Numbers, Representation
from .boxes import CLOSE, OPEN, Boxes, Said, as_index, in_frames, nothing

Reader = Callable[[str], Reading]

_NUMBER = r"(\d++(?:\.\d++)?)"
_COMMA = r"\s*+,\s*+"
_EMPTY_LIST = re.compile(r"\[\s*+\]")
_PAIR = re.compile(rf"\(\s*+{_NUMBER}{_COMMA}{_NUMBER}\s*+\)")


def _bracketed(
    representation: Representation, before: str = "", brackets: str = r"\[\]"
) -> re.Pattern[str]:
    """The pattern of a box in brackets; its groups are the numbers."""
    opening, closing = brackets[:2], brackets[2:]
    numbers = _COMMA.join([_NUMBER] * representation.width)
    return re.compile(rf"{before}{opening}\s*+{numbers}\s*+{closing}")


def _marked_text(reply: str) -> str:
    """What stands in the first pair of GLM's markers, or everything."""
    start = reply.find(OPEN)
    end = reply.find(CLOSE, start + len(OPEN)) if start >= 0 else -1
    return reply if end < 0 else reply[start + len(OPEN) : end]


def _text_verdict(found: Boxes, text: str) -> Reading:
    """A text reply adheres when it has a box or says that there is none."""
    if not found.boxes and found.reason is None and not _EMPTY_LIST.search(text):
        found.blame(Reason.NO_BOX if text.strip() else Reason.EMPTY)
    return found.done()


def unlabelled(how: ReplyFormat) -> Reader:
    """Reads a reply about one image and one label: every box in brackets."""
    representation = how.numbers
    box = _bracketed(representation)
    round_box = _bracketed(representation, brackets=r"\(\)")
    unconstrained = how.representation == "unconstrained"

    def groups(text: str) -> Iterator[Numbers | tuple[str, ...]]:
        yield from box.findall(text)
        if unconstrained:
            pairs = iter(_PAIR.findall(text))
            # (a, b) … (c, d): the first pair belongs to the second, the third to the fourth.
            yield from (first + second for first, second in zip(pairs, pairs, strict=False))
            yield from round_box.findall(text)

    def reading(reply: str) -> Reading:
        text = _marked_text(reply)
        found = Boxes()
        found.add_all(representation, [("", numbers) for numbers in groups(text)], labelled=False)
        return _text_verdict(found, text)

    return reading


def labelled(how: ReplyFormat) -> Reader:
    """Reads a reply about one image and several labels: every ``label: [a, b, c, d]``."""
    representation = how.numbers
    passes = [(_bracketed(representation, before=r":\s*+"), ":[]")]
    if how.representation == "unconstrained":
        passes.append((_bracketed(representation, before=r":\s*+", brackets=r"\(\)"), ":[]()"))

    def reading(reply: str) -> Reading:
        text = _marked_text(reply)
        said: list[Said] = []
        for pattern, stops in passes:
            for box, start in _matches(pattern, text):
                label = _back_to(stops, text, start, box.start())
                if label:
                    said.append((label.strip(), box.groups()))
        found = Boxes()
        found.add_all(representation, said, labelled=True)
        return _text_verdict(found, text)

    return reading


def video(how: ReplyFormat) -> Reader:
    """Reads a reply about frames: every ``<index>: [a, b, c, d]``, labels after the index."""
    representation = how.numbers
    pattern = _bracketed(representation, before=r":\s*+")

    def entries(text: str) -> Iterator[tuple[int, str, Sequence[str]]]:
        for box, start in _matches(pattern, text):
            end = box.start()
            label = ""
            if how.multilabel:
                # <index>: label: [a, b, c, d]
                label = _back_to(":[]", text, start, end)
                end -= len(label) + 1
                if end < start or text[end] != ":":
                    continue
            index = _index_before(text, start, end)
            if index is not None:
                yield index, label.strip(), box.groups()

    def reading(reply: str) -> Reading:
        text = _marked_text(reply)
        found = list(entries(text))
        if not found:
            return nothing(Reason.NO_BOX if text.strip() else Reason.EMPTY)
        return in_frames(how, found, (index for index, _, _ in found), Boxes())

    return reading


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str], int]]:
    """The matches of a pattern, each with the end of the one before it."""
    start = 0
    for found in pattern.finditer(text):
        yield found, start
        start = found.end()


def _back_to(stops: str, text: str, start: int, end: int) -> str:
    """What stands before ``end``, back to the nearest of the stop characters or to ``start``."""
    before = text[start:end]
    for stop in stops:
        before = before.rpartition(stop)[2]
    return before


def _index_before(text: str, start: int, end: int) -> int | None:
    """The frame number that ends at ``end``: digits, perhaps with a closing angle bracket."""
    before = text[start:end].rstrip()
    before = before.removesuffix(">").rstrip()
    digits = len(before)
    while digits and before[digits - 1].isdecimal():
        digits -= 1
    return as_index(before[digits:])
