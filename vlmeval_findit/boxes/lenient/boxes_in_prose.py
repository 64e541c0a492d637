"""Find boxes in words: tokens, tables, numbers by name, named corners, brackets, numbers alone.

Everything that may be a box is collected with its place, then what stands around it decides
which of it is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from ...core import late_pattern
from ..representation import (
    NO_RECTANGLE,
    REPRESENTATIONS,
    MatchRule,
    ReplyFormat,
    Representation,
)
from ..spaces import ImageExtent
from .boxes_in_values import POINTS, is_confidence
from .conventions import (
    RunNumbers,
    states_another_order,
    states_another_unit,
    without_own_units,
)
from .evidence import (
    Says,
    clause_before,
    is_corrected,
    is_denied,
    is_of_margins,
    is_said_to_be_absent,
    is_whole_answer,
    is_withdrawn,
    what_says,
)
from .labels import (
    FRAME,
    TOKEN_WITHOUT_UNIT,
    WITHIN,
    has_words,
    is_joining,
    label_within,
    labels_of_boxes,
)
from .location_tokens import boxes_in_tokens
from .named_corners import boxes_of_points
from .named_numbers import NUMBER, boxes_by_name, boxes_of_ranges, boxes_of_sides
from .punctuation import in_ascii
from .records import Candidate, Repair, Repairs
from .tables import Tables, tables_in
from .words import KeySays, asked_label, is_asked, says_box, what_key_says, words_of

_PROSE: Repairs = frozenset({Repair.PROSE})

BETWEEN = r"(?:\s*+[,;]\s*+|\s++)"
# 0,25; 0,30; 0,50; 0,65
_DECIMAL_COMMAS = late_pattern(r"(?<![\d,.])\d{1,6},\d{1,6}(?:\s?;\s?\d{1,6},\d{1,6}){3}(?![\d,])")
_DIGIT = late_pattern(r"\d")
_POINT_TAG = late_pattern(r"<points?\b[^<>=]*+=[^<>]*+>", re.IGNORECASE)


class BoxInText(NamedTuple):
    """What may be a box, and its place in the text."""

    start: int
    end: int
    box: Candidate
    # Whether its syntax or names say that it is one; else the words before it must
    is_certain: bool = True
    in_brackets: bool = True
    in_order: bool = False  # Its numbers are in the format's order, as nothing names them
    is_converted: bool = False  # Its syntax fixes the unit, whatever the words say


def boxes_in_prose(
    text: str,
    fmt: ReplyFormat,
    run: RunNumbers,
    asked: Sequence[str] = (),
) -> list[Candidate]:
    """Return the boxes in prose that have the label and frame asked for, each once.

    ``run`` says what the numbers of a reply count; without an extent location tokens,
    which are fractions of the image, cannot be written in these numbers and are not read.
    ``asked`` are the labels asked for.
    """
    # For speed: many replies of words have no number.
    if not _DIGIT.search(text):
        return []
    plain_text = without_own_units(in_ascii(text), run)
    plain_text = _DECIMAL_COMMAS.sub(lambda numbers: numbers[0].replace(",", "."), plain_text)
    tables = tables_in(plain_text, fmt.numbers)
    prose = _blanked(plain_text, tables.spans)
    found = [*_of_tables(tables), *_boxes_in(prose, fmt, run.extent)]
    found.sort(key=lambda box: (box.start, -box.end))
    apart: list[BoxInText] = []
    for each in found:
        same_place = apart and (each.start, each.end) == (apart[-1].start, apart[-1].end)
        if not apart or each.start >= apart[-1].end or (same_place and each.is_converted):
            apart.append(each)
    if not apart:
        return []
    apart = _as_stated(apart, plain_text, tables, fmt, run, asked)
    stated = _stated(apart, plain_text, fmt, asked)
    # Labels are cut from the text as it was written, but for headings that name numbers.
    written = _blanked(text, tables.named)
    boxes = list(_with_frames_and_labels(apart, stated, written, fmt, asked))
    # Of equal boxes the first is taken, at the place of the last.
    once = {(box.label, box.frame, tuple(map(float, box.numbers))): box for box in reversed(boxes)}
    return [*reversed(once.values())]


def _blanked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return a text of the same length with blanks at some places."""
    for start, end in spans:
        text = text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
    return text


def _boxes_in(text: str, fmt: ReplyFormat, extent: ImageExtent | None) -> Iterator[BoxInText]:
    """Yield whatever may be a box, outside tables."""
    row = fmt.numbers
    if extent is not None and "<" in text:
        for start, end, box in boxes_in_tokens(text, fmt, extent):
            yield BoxInText(start, end, box, is_converted=True)
    if "<" in text:
        text = _POINT_TAG.sub(lambda tag: " " * len(tag[0]), text)  # Its numbers are of points
    named = (*boxes_by_name(text, row), *boxes_of_ranges(text, row), *boxes_of_sides(text, row))
    for start, end, numbers in named:
        yield BoxInText(start, end, Candidate("", None, numbers, _PROSE))
    yield from _bracketed(text, row, fmt.output)
    yield from _of_four_corners(text, row)
    yield from _behind_names(text, row)
    yield from _in_tokens_without_unit(text, row)
    yield from _bare(text, row, fmt.multilabel)
    if row.name in POINTS:
        for is_named, (start, end, numbers, repairs) in boxes_of_points(text, row):
            box = Candidate("", None, numbers, repairs | _PROSE)
            yield BoxInText(start, end, box, is_certain=is_named, in_order=not is_named)


def _of_tables(tables: Tables) -> Iterator[BoxInText]:
    for row in tables.rows:
        box = Candidate(row.label, row.frame, row.numbers, _PROSE)
        yield BoxInText(row.start, row.end, box, in_order=not row.by_name)


# --- which of it is a box -------------------------------------------------------------------------


def _as_stated(
    boxes: list[BoxInText],
    text: str,
    tables: Tables,
    fmt: ReplyFormat,
    run: RunNumbers,
    asked: Sequence[str],
) -> list[BoxInText]:
    """Leave out boxes whose order or unit the reply denies, wherever it does so."""
    words = _blanked(text, tables.named)
    if fmt.multilabel:
        words = _without_labels(words)
    has_order = any(box.in_order for box in boxes)
    if has_order and states_another_order(words, fmt.numbers, asked):
        boxes = [box for box in boxes if not box.in_order]
    has_unit = not all(box.is_converted for box in boxes)
    if has_unit and states_another_unit(_without_labels(text), run, asked):
        boxes = [box for box in boxes if box.is_converted]
    return boxes


_LABEL_TAGS = late_pattern(r"<\|?(?:ref|p|phrase|object_ref_start|obj|label|name)\|?>[^<>]{1,200}<")


def _without_labels(text: str) -> str:
    """Blank what tags say to be a label: it states neither order nor unit."""
    return _LABEL_TAGS.sub(lambda match: " " * len(match[0]), text)


def _stated(
    boxes: Sequence[BoxInText], text: str, fmt: ReplyFormat, asked: Sequence[str]
) -> list[Says]:
    """Return for each box whether something says that it is one."""
    is_alone = is_whole_answer(text, [(box.start, box.end) for box in boxes])
    is_absent = fmt.frames == 1 and is_said_to_be_absent(text, asked)
    result: list[Says] = []
    end = 0
    for each in boxes:
        before = text[end : each.start]
        clause = clause_before(text, each.start, end)
        said = _what_is_said(each, clause, text, fmt, asked, is_absent)
        if said is Says.NOTHING and result and not has_words(before):
            said = result[-1]  # One of a list
        if said is Says.NOTHING and is_alone:
            said = Says.BOX
        if result and said is Says.BOX and is_corrected(before):
            result = [Says.NO_BOX] * len(result)
        result.append(said)
        end = each.end
    return [Says.NO_BOX] * len(result) if is_withdrawn(text[end:]) else result


def _what_is_said(
    each: BoxInText,
    clause: str,
    text: str,
    fmt: ReplyFormat,
    asked: Sequence[str],
    is_absent: bool,
) -> Says:
    """Return what syntax, names, the clause before it and the heading above say of numbers."""
    if each.is_converted:
        return Says.BOX
    if is_absent and not asked_label(clause, asked):
        return Says.NO_BOX
    if each.is_certain:
        is_other = is_denied(clause) or is_of_margins(clause)
        return Says.NO_BOX if is_other else Says.BOX
    of_points = fmt.numbers.match_rule is MatchRule.POINT_IN_OBJECT
    said = what_says(clause, asked, each.in_brackets, of_points)
    if said is Says.NOTHING:
        of_frame = fmt.frames > 1 and _is_frame_alone(clause)
        if of_frame or _is_below_boxes(text, each.start):
            return Says.BOX
    return said


def _is_frame_alone(clause: str) -> bool:
    """Return whether a clause names a frame and nothing else."""
    rest = _IN_PARENTHESES.sub(" ", _ORDINAL_FRAME.sub(" ", FRAME.sub(" ", clause)))
    return rest != clause and all(map(is_joining, words_of(rest)))


_IN_PARENTHESES = late_pattern(r"\([^()\n]{0,40}\)")
_ITEM = late_pattern(r"\n[ \t]*+(?:\d{1,3}[.)]|[-*•])[^\n]*+\Z")
_HEADING = late_pattern(r"^[^\n]*(?::|^#[^\n]*)[ \t*]*$", re.MULTILINE)
_ABOVE = 600  # Characters above an item in which its heading is looked for


def _is_below_boxes(text: str, start: int) -> bool:
    """Return whether a box stands in a list whose heading says that it has boxes."""
    above = text[max(0, start - _ABOVE) : start]
    item = _ITEM.search(above)
    if item is None:
        return False
    lines = [line.rstrip(" \t*") for line in above[: item.start()].split("\n")]
    headings = [line for line in lines if line.endswith(":") or line.startswith("#")]
    return bool(headings) and says_box(headings[-1])


# --- brackets, tags or nothing around the numbers -------------------------------------------------


def _bracketed(text: str, row: Representation, output: str) -> Iterator[BoxInText]:
    """Yield boxes in brackets or between tags; behind one may follow a confidence."""
    pattern = _run(
        row.width, rf"[\[({{>;]\s*+NUMBERS(?:{BETWEEN}{NUMBER})?\s*+(?=[\])}}<;])", BETWEEN
    )
    for box in _matched(pattern, text, row, in_brackets=True):
        # The syntax that a text format asks for
        is_certain = (
            output == "text" and text[max(0, box.start - 9) : box.start].rstrip()[-1:] == "["
        )
        yield box._replace(is_certain=is_certain)


def _behind_names(text: str, row: Representation) -> Iterator[BoxInText]:
    """Yield the boxes of expressions such as ``(bbox 1 2 3 4)``, whose first word names a box."""
    pattern = r"[(\[{]\s*+([^\W\d][\w-]{0,30}+)\s++NUMBERS\s*+(?=[)\]}])"
    for match in _run(row.width, pattern, BETWEEN).finditer(text):
        name, *numbers = match.groups()
        if what_key_says(name) is KeySays.BOX:
            box = Candidate("", None, tuple(numbers), _PROSE)
            yield BoxInText(match.start(2), match.end(), box, is_certain=False, in_order=True)


def _of_four_corners(text: str, row: Representation) -> Iterator[BoxInText]:
    """Yield the upright boxes whose four corners are eight numbers in brackets or between tags."""
    if row.name not in POINTS or row.width != 4:
        return
    for match in _run(8, r"[\[({>]\s*+NUMBERS\s*+(?=[\])}<])", BETWEEN).finditer(text):
        numbers = [float(number) for number in match.groups()]
        if row.name == "yxyx":
            numbers = [numbers[at ^ 1] for at in range(8)]
        corners = REPRESENTATIONS["all"].to_corners(numbers)
        if corners != NO_RECTANGLE:
            box = Candidate("", None, tuple(row.from_corners(corners)), _PROSE)
            yield BoxInText(match.start(1), match.end(), box, is_certain=False, in_order=True)


def _in_tokens_without_unit(text: str, row: Representation) -> Iterator[BoxInText]:
    """Yield boxes of tokens that are plain numbers, as ``<|coord_100|>``: they state no unit."""
    if "<|" not in text:
        return
    for match in re.finditer(r"\s?".join([TOKEN_WITHOUT_UNIT] * row.width), text):
        box = Candidate("", None, match.groups(), frozenset({Repair.TOKENS}))
        yield BoxInText(match.start(), match.end(), box, is_certain=False, in_order=True)


_IN_LINE = r"(?:[ \t]*+[,;|_、][ \t]*+|[ \t]++)"
_BULLETS = r"(?:(?:\d{1,2}[.)]|[-*•])[ \t]++)?+"


def _bare(text: str, row: Representation, labelled: bool) -> Iterator[BoxInText]:
    """Yield numbers without brackets: behind ``bbox:`` or ``is``, in a list, alone in a line."""
    begins = rf"^[ \t]*+{_BULLETS}"
    # A line of a CSV file
    words = r"|^[^\W\d][^\d\n,;:|]{0,60}+(?:,|(?<=[ \t]))"
    before = rf"(?:[:=;|「\]]|\b(?:is|are|at)\b|[是为]|{begins}{words})[ \t\"'`*]*+"
    ends = r"(?:[.;)!]*+[ \t]*+$|[.;!]\s|[(\[「」』。<>\"'])"
    behind = rf"(?:{_IN_LINE}{NUMBER})?(?![\w%])(?=[ \t\"'`*|]*+{ends})"
    yield from _matched(_run(row.width, f"{before}NUMBERS{behind}", _IN_LINE), text, row, False)
    block = r":[ \t]*+\n[ \t]*+-[ \t]++NUMBERS[ \t]*+(?:\n(?![ \t]*+-[ \t]++[-+\d.])|\Z)()"
    yield from _matched(_run(row.width, block, r"[ \t]*+\n[ \t]*+-[ \t]++"), text, row, False)


@lru_cache
def _run(width: int, pattern: str, between: str) -> re.Pattern[str]:
    """Compile a pattern around the numbers of a box."""
    numbers = between.join([NUMBER] * width)
    return late_pattern(pattern.replace("NUMBERS", numbers), re.MULTILINE)


def _matched(
    pattern: re.Pattern[str], text: str, row: Representation, in_brackets: bool
) -> Iterator[BoxInText]:
    for match in pattern.finditer(text):
        *numbers, more = match.groups()
        if row.name not in POINTS and _IN_PAIRS.match(text, match.start(1), match.end()):
            continue  # Two corners, no size
        repairs = _PROSE
        if more:
            if not is_confidence([*numbers, more], row.width):
                continue
            repairs = _PROSE | {Repair.CONFIDENCE}
        box = Candidate("", None, tuple(numbers), repairs)
        yield BoxInText(match.start(1), match.end(), box, False, in_brackets, in_order=True)


# "1 2, 3 4", as PostGIS writes BOX(1 2, 3 4)
_IN_PAIRS = late_pattern(rf"{NUMBER} +{NUMBER} ?, ?{NUMBER} +{NUMBER}")


# --- frames and labels ----------------------------------------------------------------------------


def _with_frames_and_labels(
    boxes: Sequence[BoxInText],
    stated: Sequence[Says],
    text: str,
    fmt: ReplyFormat,
    asked: Sequence[str],
) -> Iterator[Candidate]:
    """Yield the boxes with the frame and label in the words around them."""
    if not boxes:
        return
    before: list[str] = []
    end = 0
    for each in boxes:
        before.append(text[max(end, each.start - WITHIN) : each.start])
        end = max(end, each.end)
    tail = text[end : end + WITHIN]
    labels = [""] * len(boxes)
    if fmt.multilabel:
        labels = _labels(boxes, before, tail, text, asked)
    frames: tuple[int, ...] = ()
    last_label = ""
    for place, (each, words, said) in enumerate(zip(boxes, before, stated, strict=True)):
        if fmt.frames > 1:
            behind = before[place + 1] if place + 1 < len(boxes) else tail
            frames = _frames(words, behind, frames, fmt.frames)
            if each.box.frame is not None:
                frames = (each.box.frame,)
            if not frames:
                continue
        label = labels[place]
        if fmt.multilabel:
            # A box without words before it has the label of the box before it.
            if label or has_words(words):
                last_label = label
            label = last_label
            if not label:
                continue
            if said is Says.NOTHING and _is_line_of_label(each, words, label, asked):
                said = Says.BOX
        if said is not Says.BOX:
            continue
        for frame in frames or (None,):
            yield each.box._replace(label=label, frame=frame)


def _labels(
    boxes: Sequence[BoxInText], before: Sequence[str], tail: str, text: str, asked: Sequence[str]
) -> list[str]:
    """Return the labels of boxes: of their syntax, of the words around, of those asked for."""
    labels: list[str] = []
    for each, words, label in zip(boxes, before, labels_of_boxes(before, tail), strict=True):
        label = each.box.label or label or label_within(text[each.start : each.end])
        if not is_asked(label, asked):
            clause = clause_before(words, len(words))
            label = asked_label(clause, asked) or asked_label(label, asked) or label
        is_several = asked and not is_asked(label, asked) and _names_several(label, asked)
        if is_several or label.startswith("\\"):  # \\boxed{1, 2, 3, 4}
            label = ""
        labels.append(label)
    return labels


def _names_several(text: str, asked: Sequence[str]) -> bool:
    """Return whether a text has more than one of the labels asked for."""
    return sum(bool(asked_label(text, [label])) for label in asked) > 1


def _is_line_of_label(each: BoxInText, words: str, label: str, asked: Sequence[str]) -> bool:
    """Return whether a label and numbers are the requested form of a line, in other brackets."""
    if asked and not is_asked(label, asked):
        return False
    line = words.rsplit("\n", 1)[-1].strip(" *`-")
    is_alone = bool(asked) and is_asked(line, asked)
    return each.in_brackets or is_alone or line[-1:] in ("", *",:|=\t")


_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6,
    "seventh": 7, "eighth": 8}  # fmt: skip
_ORDINAL_FRAME = late_pattern(rf"\b({'|'.join(_ORDINALS)}|last) frame", re.IGNORECASE)
_FRAME_RANGE = late_pattern(r"frames?\s+(\d{1,4})\s?(?:-|–|to)\s?(\d{1,4})", re.IGNORECASE)
_ALL_FRAMES = late_pattern(r"\b(?:all|every|each)(?: of the)? frames?\b", re.IGNORECASE)


def _frames(before: str, behind: str, last: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Return the frames named before a box, else those of the previous box."""
    places: list[tuple[int, tuple[int, ...]]] = []
    for match in FRAME.finditer(before):
        places.append((match.start(), (int(match[1] or match[2]),)))
    for match in _ORDINAL_FRAME.finditer(before):
        places.append((match.start(), (_ORDINALS.get(match[1].lower(), count),)))
    for match in _FRAME_RANGE.finditer(before):
        first, final = int(match[1]), int(match[2])
        if final - first < count:
            places.append((match.start(), tuple(range(first, final + 1))))
    if not places and not last and _ALL_FRAMES.search(before + behind.split(".")[0]):
        return tuple(range(1, count + 1))
    return max(places, default=(0, last))[1]
