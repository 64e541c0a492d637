"""Thoughts in replies: the table of their marks, and the function that takes them out.

The rule is on the page reference/protocol.md, section 3.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class ThoughtMarks:
    """Marks around a thought, in any case; ``title`` is a word that the model writes at its start.

    Without ``opens`` everything before ``closes`` is a thought.
    """

    opens: str
    closes: str
    title: str = ""


THINK = ThoughtMarks("<think>", "</think>")  # Most models
CHANNEL = ThoughtMarks("<|channel>", "<channel|>", "thought")  # Gemma 4

_TAGS = (
    "thinking",
    "thought",
    "thoughts",
    "reasoning",
    "reflection",
    "analysis",
    "scratchpad",
    "seed:think",
    "longcat_think",
    "mm:think",
    "cot",
    "rationale",
    "inner_monologue",
)
_IN_TAGS = tuple(ThoughtMarks(f"<{tag}>", f"</{tag}>") for tag in _TAGS)
_FINAL = "<|channel|>final<|message|>"

MARKS: tuple[ThoughtMarks, ...] = (
    THINK,
    CHANNEL,
    *_IN_TAGS,
    ThoughtMarks("[THINK]", "[/THINK]"),  # Magistral
    ThoughtMarks("◁think▷", "◁/think▷"),  # Kimi-VL
    ThoughtMarks("<|begin_of_thought|>", "<|end_of_thought|>"),
    ThoughtMarks("<|START_THINKING|>", "<|END_THINKING|>"),  # Cohere
    ThoughtMarks("<|thinking|>", "<|/thinking|>"),
    ThoughtMarks("<unused94>", "<unused95>", "thought"),  # MedGemma
    # Harmony: everything before the final channel; its tokens may be dropped.
    ThoughtMarks("<|channel|>analysis<|message|>", _FINAL),
    ThoughtMarks("<|channel|>commentary<|message|>", _FINAL),
    ThoughtMarks("", "<|channel|>final <|constrain|>json<|message|>"),
    ThoughtMarks("", "<|end|><|start|>assistant"),
    ThoughtMarks("", "<|return|>"),
    ThoughtMarks("", "assistantfinal"),
    # Apriel
    ThoughtMarks("", "[BEGIN FINAL RESPONSE]"),
    ThoughtMarks("", "[END FINAL RESPONSE]"),
)


@dataclass(frozen=True, slots=True)
class ThoughtRule:
    """What is known of a model's thoughts, besides :data:`MARKS`."""

    marks: ThoughtMarks | None = None  # Those that only this model uses
    opened: bool = False  # Its chat template opens a thought, so replies lack that mark


USUAL_THOUGHTS = ThoughtRule()  # Rule of models with no thought marks of their own


def rule_of(marks: ThoughtMarks | None, opened: bool = False) -> ThoughtRule:
    """Return the rule of a model; marks of the table need not be named."""
    return ThoughtRule(None if marks in MARKS else marks, opened)


class MarksError(ValueError):
    """Marks of thoughts that cannot be used; the message says what to type."""


def thought_marks(value: object, argument: str = "thought_marks") -> ThoughtMarks:
    """Return the marks that a user names: two texts, or one with a blank between them.

    >>> thought_marks("<plan> </plan>")
    ThoughtMarks(opens='<plan>', closes='</plan>', title='')
    """
    named = value.split() if isinstance(value, str) else value
    if isinstance(named, Sequence) and len(named) == 2:
        opens, closes = named
        if all(isinstance(mark, str) and mark.strip() for mark in named) and opens != closes:
            return ThoughtMarks(opens.strip(), closes.strip())
    raise MarksError(f"{argument}: {value!r} is not a pair of marks, as '<plan> </plan>'")


# --- splitting ------------------------------------------------------------------------------------


class SplitReply(NamedTuple):
    """A reply without its thought."""

    answer: str
    thought: str = ""  # All that is not the answer
    ends_inside: bool = False  # A thought was never closed
    begin: int = 0  # Of the answer in the text, in characters


def split_thought(text: str, rule: ThoughtRule = USUAL_THOUGHTS) -> SplitReply:
    """Take the thoughts out of a text (prefixed with :func:`opened_by`).

    The answer is the last part that no marks enclose and that is not blank.

    >>> split_thought("<think>hm</think>\\n[]").answer
    '[]'
    >>> split_thought("[] <think>hm [1, 2, 3, 4]")
    SplitReply(answer='[]', thought='hm [1, 2, 3, 4]', ends_inside=True, begin=0)
    >>> split_thought("[]</think>").answer
    '[]'
    """
    # The usual case, for speed: rewards read millions of replies.
    if rule.marks is None and not _HINT.search(text):
        return SplitReply(text)
    marks = list(_marks_in(text, rule.marks))
    if not marks:
        return SplitReply(text)
    outside, ends_inside = _outside(text, marks)
    if rule.opened and marks[0].closes:
        del outside[0]
    answers = (span for span in reversed(outside) if text[slice(*span)].strip())
    begin, end = next(answers, (len(text), len(text)))
    answer = text[begin:end]
    if end < len(text):
        answer = answer.rstrip()
    begin += len(answer) - len(answer.lstrip())
    return SplitReply(answer.lstrip(), _rest(text, marks, begin, end), ends_inside, begin)


def opened_by(prompt: str, rule: ThoughtRule = USUAL_THOUGHTS) -> str:
    """Return the mark with which a prompt ends, if it opens a thought; else "".

    A mark that only stands in the instructions opens nothing.

    >>> opened_by("Think in <think> tags.<|assistant|><think>\\n")
    '<think>\\n'
    >>> opened_by("Think in <think> tags.<|assistant|>")
    ''
    """
    # One mark would do, but titles and attributes may follow it.
    start = max(0, len(prompt) - _LONGEST_END)
    marks = list(_marks_in(prompt[start:], rule.marks))
    if not marks or marks[-1].closes or prompt[start + marks[-1].end :].strip():
        return ""
    return prompt[start + marks[-1].start :]


_LONGEST_END = 400  # Characters of a prompt that may be its last mark

Span = tuple[int, int]


class _Mark(NamedTuple):
    start: int
    end: int
    closes: bool
    family: str  # The mark that closes its thought, in lower case


def _outside(text: str, marks: Sequence[_Mark]) -> tuple[list[Span], bool]:
    """Return the parts outside of thoughts, and whether a thought was never closed."""
    closings = _closings(marks)
    spans: list[Span] = []
    begin = at = 0
    while at < len(marks):
        spans.append((begin, marks[at].start))
        closing = closings[at]
        if closing is None:
            return spans, True
        begin = marks[closing].end
        at = closing + 1
    return [*spans, (begin, len(text))], False


def _closings(marks: Sequence[_Mark]) -> list[int | None]:
    """Return for each mark the place of the next that closes its thought, or None.

    That is the next of its family, else the next of a family that was not opened before. A closing
    mark closes itself.
    """
    opened: set[str] = set()
    is_unopened: list[bool] = []  # Closes a family that was not opened before
    for mark in marks:
        is_unopened.append(mark.closes and mark.family not in opened)
        if not mark.closes:
            opened.add(mark.family)
    closings: list[int | None] = []
    next_unopened: int | None = None
    next_of_family: dict[str, int] = {}
    for at in reversed(range(len(marks))):
        mark = marks[at]
        if mark.closes:
            next_of_family[mark.family] = at
        if is_unopened[at]:
            next_unopened = at
        closings.append(next_of_family.get(mark.family, next_unopened))
    closings.reverse()
    return closings


def _rest(text: str, marks: Sequence[_Mark], begin: int, end: int) -> str:
    """Return all of a text but its marks and its answer."""
    pieces = []
    last = 0
    for mark in marks:
        pieces += [(last, min(mark.start, begin)), (max(last, end), mark.start)]
        last = mark.end
    pieces += [(last, begin), (max(last, end), len(text))]
    stripped = (text[start:stop].strip() for start, stop in pieces if start < stop)
    return "\n\n".join(filter(None, stripped))


# --- marks that nobody named ------------------------------------------------------------------

_FIRST = re.compile(
    r"\s*+(?:<(?P<tag>[A-Za-z][\w:-]{2,30})(?:\s[^<>]*+)?>|\[(?P<word>[A-Z]{3,30})\]"
    r"|<\|begin_of_(?P<token>[a-z]{3,30})\|>)",
    re.ASCII,
)
_SPELT = {
    "tag": ("<{}>", "</{}>"),
    "word": ("[{}]", "[/{}]"),
    "token": ("<|begin_of_{}|>", "<|end_of_{}|>"),
}
_PARTS_OF_ANSWERS: frozenset[str] = frozenset(
    (
        "answer",
        "response",
        "output",
        "result",
        "conclusion",
        "final",
        "summary",
        "caption",
        "ref",
        "box",
        "bbox",
        "quad",
        "poly",
        "point",
        "points",
        "obj",
        "object",
        "label",
        "det",
        "phrase",
        "grounding",
        "img",
        "image",
        "html",
        "div",
        "code",
        "pre",
        "table",
        "solution",
    )
)


def unnamed_marks(answer: str) -> str:
    """Return the marks that may enclose a thought at the start of an answer; "" if none do.

    >>> unnamed_marks("<plan>Is it [1, 2, 3, 4]?</plan>[]"), unnamed_marks("<answer>[]</answer>.")
    ('<plan> </plan>', '')
    """
    first = _FIRST.match(answer)
    if first is None:
        return ""
    kind = first.lastgroup or ""
    name = first[kind]
    if name.lower() in _PARTS_OF_ANSWERS:
        return ""
    opens, closes = (mark.format(name) for mark in _SPELT[kind])
    after = answer[first.end() :].partition(closes)[2]
    return f"{opens} {closes}" if after.strip() else ""


def has_meaning(mark: str, rule: ThoughtRule = USUAL_THOUGHTS) -> bool:
    """Return whether a mark belongs to a thought or to a part of an answer.

    >>> has_meaning("<|box_end|>"), has_meaning("</think>"), has_meaning("<|im_end|>")
    (True, True, False)
    """
    plain = mark.translate(_LOWER)
    if not _PARTS_OF_ANSWERS.isdisjoint(re.findall(r"[a-z]+", plain)):
        return True
    return _table(rule.marks).pattern.fullmatch(plain) is not None


# --- marks in a text ------------------------------------------------------------------------------

# Every mark of the table begins like this.
_HINT = re.compile(r"<|◁|\[/?(?:THINK|BEGIN|END)|assistantfinal", re.IGNORECASE)
# Marks count in any case; lower() would change the length of some texts.
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)

# Texts in quotes within lists and objects: a mark inside is part of a label
_STRING = re.compile(r"""[\[{,:(]\s*+("(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+')(?=\s*+[,:}\])])""")
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "«": "»", "「": "」"}


def _marks_in(text: str, more: ThoughtMarks | None) -> Iterator[_Mark]:
    """Yield the marks of a text that are not quoted."""
    table = _table(more)
    strings = _Strings(text)
    families: dict[str, str] = {}
    for match in table.pattern.finditer(text.translate(_LOWER)):
        start, end = match.span()
        mark = match[0]
        if strings.have(start, end):
            continue
        if mark not in families:
            families[mark] = mark if mark in table.closes else table.family(mark)
        yield _Mark(start, end, mark in table.closes, families[mark])


class _Strings:
    """The quoted parts of a text, for places that are asked about in ascending order."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._strings = _STRING.finditer(text)
        self._span: Span = (0, 0)  # Of the last string that was looked at

    def have(self, start: int, end: int) -> bool:
        """Return whether a part is quoted: between two quotes, or in a string of JSON."""
        before = self._text[start - 1 : start]
        if before in _QUOTES and _QUOTES[before] == self._text[end : end + 1]:
            return True
        while self._span[1] < end:
            string = next(self._strings, None)
            if string is None:
                self._span = (len(self._text), len(self._text))
                break
            self._span = string.span(1)
        return self._span[0] < start and end < self._span[1]


class _Table(NamedTuple):
    """All marks, in lower case."""

    pattern: re.Pattern[str]
    opens: Mapping[str, str]  # What closes each
    closes: frozenset[str]

    def family(self, opening: str) -> str:
        """Return what closes a thought that begins like this, with attributes or a title."""
        begins = (opening, f"{opening.split()[0]}>", *(mark for mark in _TITLED if mark in opening))
        return next(self.opens[mark] for mark in begins if mark in self.opens)


_TITLED = tuple(marks.opens for marks in MARKS if marks.title)


@lru_cache(maxsize=64)
def _table(more: ThoughtMarks | None) -> _Table:
    table = (*MARKS, more) if more else MARKS
    opens = {m.opens.translate(_LOWER): m.closes.translate(_LOWER) for m in table if m.opens}
    closes = frozenset(marks.closes.translate(_LOWER) for marks in table)
    patterns = [_opening(marks) for marks in table if marks.opens]
    patterns += map(re.escape, closes)
    # Longer marks first: some begin like others.
    longest = sorted(patterns, key=len, reverse=True)
    return _Table(re.compile("|".join(longest)), opens, closes)


def _opening(marks: ThoughtMarks) -> str:
    opens = marks.opens.translate(_LOWER)
    pattern = re.escape(opens)
    if re.fullmatch(r"<[\w:]+>", opens):
        pattern = pattern[:-1] + r"(?:\s[^<>]*+)?>"  # With attributes
    return pattern + (rf"(?:{re.escape(marks.title)}\b)?" if marks.title else "")
