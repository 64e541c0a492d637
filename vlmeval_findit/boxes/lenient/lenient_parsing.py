"""Lenient parsing: what can be read from a reply that does not adhere; never used for the score.

Nothing cut off is completed, no order or space guessed, no truth used. Libraries that repair JSON
complete silently (``[10, 20, 30, 4`` becomes a box), and some take quadratic time.
"""

from __future__ import annotations

import html
from collections import defaultdict, deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from ...core import late_pattern
from ..box_records import FormatFailure, ParsedReply
from ..reading import parsed_reply, reader
from ..representation import Corners, MatchRule, ReplyFormat
from ..spaces import ImageExtent
from .boxes_in_prose import boxes_in_prose
from .boxes_in_values import BoxSearch
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
    is_said_to_be_absent,
    is_whole_answer,
    is_withdrawn,
    what_says,
)
from .labels import has_words, is_lost
from .objects import texts_in
from .records import NO_REPAIRS, Candidate, Repair, Repairs
from .repaired_values import List, Object, ParsedValue, Value, values_in
from .words import KeySays, asked_label, rank_of_label, what_key_says

__all__ = ["LenientReply", "Repair", "parse_leniently"]

LONGEST_REPLY = 100_000  # Characters of a reply that are read; a longer one is a loop

# No answer at all
_NEVER = (FormatFailure.FAILED_CALL, FormatFailure.EMPTY, FormatFailure.TRUNCATED_THINKING)


# Special tokens around the numbers of a value
_MARKS_AT_BRACKETS = late_pattern(r"<\|[\w/]{1,40}\|>(?=\s?[\[(])|(?<=[\])])<\|[\w/]{1,40}\|>")
_LAST_WORD = late_pattern(r"(?<![\w.])[\w.]++\Z")


class LenientReply(NamedTuple):
    """What lenient parsing takes from a reply that does not adhere, or whose labels are lost."""

    # Begins with the strict reading's boxes, in order, with labels in place of lost ones
    reading: ParsedReply  # Keeps the strict reading's reason
    repairs: tuple[Repair, ...]  # In the order of :class:`Repair`


def parse_leniently(
    reply: str,
    fmt: ReplyFormat,
    strict: ParsedReply,
    extent: ImageExtent | None = None,
    asked: Sequence[str] = (),
    unit: str = "",
) -> LenientReply | None:
    """Parse a reply leniently; None if that finds no more than ``strict``, whose boxes it keeps.

    An adherent reply is left alone, unless what was read as its labels can be none: JSON in a
    text format adheres with labels like ``{"bbox"``. An empty list is returned only if a repair
    was needed or an empty list does not adhere, as over frames.

    Args:
        reply: the text without its thought.
        fmt: the format asked for.
        strict: what :func:`..reading.read` reads; boxes are in the reply's units.
        extent: where the image lies in these units (:func:`..spaces.reply_extent`). Location
            tokens are fractions of the image; without an extent they are not read, nor are
            numbers whose unit is stated.
        asked: the labels that the query asks for, where they are known: numbers behind one are
            a box, and a reply may say that the only one is not there.
        unit: what the numbers count (``SpaceKind.unit``); without it, an extent of 1, 100 or 1000
            a side is taken for fractions, percent or thousandths, any other for pixels.

    >>> how = ReplyFormat("json", "xyxy", key="bbox_2d")
    >>> cut = "[{'bbox_2d': [1, 2, 3, 4]}, {'bbox_2d': [5, 6, 7"
    >>> result = parse_leniently(cut, how, reader(how)(cut))
    >>> result.reading.boxes, [repair.value for repair in result.repairs]
    (((1.0, 2.0, 3.0, 4.0),), ['cut off', 'quotes and words of Python'])
    """
    adheres = strict.reason is None
    if strict.reason in _NEVER or (adheres and not any(map(is_lost, strict.labels))):
        return None
    written = reply[:LONGEST_REPLY]
    if "&quot;" in written:
        written = html.unescape(written)
    run = RunNumbers(extent, unit)
    text = without_own_units(written, run)
    unmarked = _MARKS_AT_BRACKETS.sub(lambda mark: " " * len(mark[0]), text)
    values = list(values_in(unmarked))
    if fmt.multilabel:
        values = _with_lists_joined(values, unmarked)
    reading, repairs = _read_structured(values, text, fmt, strict, run, asked)
    if unmarked != written and reading.boxes:
        repairs |= {Repair.NUMBERS}
    # A text with objects is not read as prose: their keys may give numbers another meaning.
    if not reading.boxes and not any(map(_has_keys, values)):
        is_cut = strict.reason is FormatFailure.TRUNCATED
        # The last word may be cut off: 12 of 128.
        whole = _LAST_WORD.sub("", text) if is_cut else text
        reading, repairs = _read_prose(whole, fmt, run, asked)
        if adheres and reading.boxes:
            repairs = frozenset({Repair.LABEL})
    if not reading.boxes:
        return None if strict.boxes or adheres else _empty(values, text, strict.reason)
    merged = _merged(strict, reading)
    if merged is None:
        return None
    if merged.reordered:
        repairs |= {Repair.ORDER}
    return LenientReply(merged.reading, tuple(repair for repair in Repair if repair in repairs))


# --- prose ----------------------------------------------------------------------------------------


def _read_prose(
    text: str, fmt: ReplyFormat, run: RunNumbers, asked: Sequence[str]
) -> tuple[ParsedReply, Repairs]:
    candidates = boxes_in_prose(text, fmt, run, asked)
    indices = [candidate.frame for candidate in candidates if candidate.frame is not None]
    reading = _read(candidates, indices, fmt)
    if fmt.output == "json" and reading.boxes:
        in_text = reader(replace(fmt, output="text", structure="per_box"))(text)
        if in_text.boxes == reading.boxes:
            return reading, frozenset({Repair.OTHER_OUTPUT})
    return reading, _repairs_of(candidates)


def _has_keys(value: ParsedValue) -> bool:
    """Return whether a value is or has an object with keys."""
    items = value.value.items if isinstance(value.value, List) else [value.value]
    return any(isinstance(item, Object) and any(key for key, _ in item.pairs) for item in items)


# --- lists and objects ----------------------------------------------------------------------------


def _read_structured(
    values: Sequence[ParsedValue],
    text: str,
    fmt: ReplyFormat,
    strict: ParsedReply,
    run: RunNumbers,
    asked: Sequence[str],
) -> tuple[ParsedReply, Repairs]:
    """Read the boxes of lists and objects."""
    search = BoxSearch(fmt, run, asked)
    answers = _distinct_answers(_stated(values, text, fmt, asked), search)
    around = _around([answer.value for answer in answers], text)
    boxes = list(chain.from_iterable(answer.boxes for answer in answers))
    # A list that is no box, as [0, 1000], stays among the words.
    starts = {answer.value.start for answer in answers}
    as_values = [value for value in values if value.start in starts or _has_keys(value)]
    words = "\n".join(_words(as_values, text)) if boxes else ""
    if not words.strip():
        pass  # For speed: nothing is stated
    elif states_another_unit(words, run, asked):
        boxes = []
    elif states_another_order(words, fmt.numbers, asked):
        boxes = [box for box in boxes if box.named]
    repaired: list[Candidate] = []
    for box in boxes:
        if fmt.output == "text":
            repairs = _repairs_in_text(box)
        else:
            repairs = _repairs_in_json(box, around, len(answers), strict.reason)
        repaired.append(box._replace(repairs=repairs))
    return _read(repaired, search.indices, fmt), _repairs_of(repaired)


def _stated(
    values: Sequence[ParsedValue], text: str, fmt: ReplyFormat, asked: Sequence[str]
) -> list[ParsedValue]:
    """Return the values that the words before them let be an answer.

    Keys say that there are boxes; of a list without any, the words before it must, or it is the
    whole answer, or the requested syntax of a text.
    """
    of_points = fmt.numbers.match_rule is MatchRule.POINT_IN_OBJECT
    are_certain = [fmt.output == "text" or _has_keys(value) for value in values]
    is_alone = not all(are_certain) and is_whole_answer(
        text, [(value.start, value.end) for value in values]
    )
    is_absent = fmt.frames == 1 and is_said_to_be_absent(text, asked)
    stated: list[ParsedValue] = []
    is_refused = False
    end = 0
    for value, is_certain in zip(values, are_certain, strict=True):
        if is_absent and not asked_label(text[value.start : value.end], asked):
            continue
        said = what_says(clause_before(text, value.start, end), asked, of_points=of_points)
        between = text[end : value.start]
        end = value.end
        # One of a list is what the one before it is.
        is_next = is_refused and said is Says.NOTHING and not has_words(between)
        is_refused = is_next or (said is Says.NO_BOX and not _is_of_tag(between, value))
        if is_refused:
            continue
        if said is Says.BOX or is_certain or is_alone:
            if is_corrected(between):
                stated = []
            stated.append(value)
    return [] if is_withdrawn(text[end:]) else stated


def _is_of_tag(before: str, value: ParsedValue) -> bool:
    """Return whether only a tag speaks against a value that has keys."""
    return _has_keys(value) and before.rstrip().endswith(">")


_NAME_OF_LIST = late_pattern(r"([^\W\d]\w{1,30})[\"'`*]{0,3}\s?[:=]\s?\Z")


def _with_lists_joined(values: list[ParsedValue], text: str) -> list[ParsedValue]:
    """Make one object of a list of labels and one of boxes, each behind its name, as in code."""
    if len(values) != 2:
        return values
    pairs: list[tuple[str, Value]] = []
    start = values[0].start
    end = 0
    for each in values:
        name = _NAME_OF_LIST.search(text, max(end, each.start - 40), each.start)
        if name is None or not isinstance(each.value, List):
            return values
        pairs.append((name[1], each.value))
        start = min(start, name.start())
        end = each.end
    names = {name for name, value in pairs if _are_labels(name, value)}
    boxes = {name for name, _ in pairs if what_key_says(name) is KeySays.BOX}
    if len(names) != 1 or len(boxes) != 1 or names == boxes:
        return values
    first, second = values
    whole = all(isinstance(value, List) and value.whole for _, value in pairs)
    repairs = first.repairs | second.repairs
    return [ParsedValue(Object(pairs, whole), start, end, repairs)]


def _are_labels(name: str, value: Value) -> bool:
    is_texts = isinstance(value, List) and all(isinstance(item, str) for item in value.items)
    return is_texts and rank_of_label(name) is not None


_COMMENT = late_pattern(r"//[^\n]*+|/\*(?:[^*]|\*(?!/))*+")


def _words(values: Sequence[ParsedValue], text: str) -> Iterator[str]:
    """Yield what may state an order or a unit: words around values, comments and texts in them."""
    yield _around(values, text)
    for value in values:
        yield from _COMMENT.findall(text, value.start, value.end)
        yield from texts_in(value.value)


class _StructuredAnswer(NamedTuple):
    """A list or object with its boxes; each has the repairs of the whole value, too."""

    value: ParsedValue
    boxes: list[Candidate]


def _distinct_answers(values: Sequence[ParsedValue], search: BoxSearch) -> list[_StructuredAnswer]:
    """Return the values that have boxes; the same boxes again are a repeated answer."""
    answers: list[_StructuredAnswer] = []
    seen: set[Hashable] = set()
    for value in values:
        boxes = list(search.boxes_of(value.value))
        key = tuple((box.label, box.frame, box.numbers) for box in boxes)
        if not boxes or key in seen:
            continue
        seen.add(key)
        boxes = [box._replace(repairs=box.repairs | value.repairs) for box in boxes]
        answers.append(_StructuredAnswer(value, boxes))
    return answers


def _repairs_in_text(box: Candidate) -> Repairs:
    """Return the repairs of a list or object where text was asked for: keys need none."""
    needed = box.repairs & {Repair.NUMBERS, Repair.CUT_OFF, Repair.CONFIDENCE, Repair.PUNCTUATION}
    if not box.bare:
        return needed - {Repair.PUNCTUATION} | {Repair.OTHER_OUTPUT}
    return needed or frozenset({Repair.NUMBERS})


def _repairs_in_json(
    box: Candidate, around: str, count: int, reason: FormatFailure | None
) -> Repairs:
    """Add the repairs that what stands around ``count`` lists and objects needs."""
    words = around.strip(_SEPARATORS)
    if words and reason in (FormatFailure.NOT_JSON, FormatFailure.TRUNCATED):
        if box.bare and any(map(str.isalpha, words)):
            return box.repairs - {Repair.STRUCTURE} | {Repair.PROSE}
        return box.repairs | {Repair.AROUND}
    if box.repairs or not (around or count > 1):
        return box.repairs
    if words:
        return frozenset({Repair.AROUND})
    return frozenset({Repair.STRUCTURE if count > 1 else Repair.PUNCTUATION})


_BLANKS = " \t\r\n"
_SEPARATORS = _BLANKS + ",;"


def _around(used: Sequence[ParsedValue], text: str) -> str:
    if not used:
        return ""
    pieces: list[str] = []
    end = 0
    for value in used:
        pieces.append(text[end : value.start])
        end = value.end
    return "".join([*pieces, text[end:]]).strip(_BLANKS)


def _repairs_of(candidates: Sequence[Candidate]) -> Repairs:
    return NO_REPAIRS.union(*(candidate.repairs for candidate in candidates))


def _read(candidates: Sequence[Candidate], indices: Sequence[int], fmt: ReplyFormat) -> ParsedReply:
    """Make a reading of boxes; over frames a box without a frame is left out."""
    is_video = fmt.frames > 1
    used = [box for box in candidates if box.frame is not None or not is_video]
    raw_boxes = [(box.label, box.numbers, box.frame or 0) for box in used]
    return parsed_reply(fmt, fmt.numbers, raw_boxes, indices if is_video else ())


# --- together with the strict reading -------------------------------------------------------------

_NULL = str(None)  # How strict reading takes the label null, which states none


class _Merged(NamedTuple):
    reading: ParsedReply
    reordered: bool  # Corners of an added box were exchanged


def _merged(strict: ParsedReply, lenient: ParsedReply) -> _Merged | None:
    """Add new boxes and lost labels to the strict reading.

    None if there are neither, or if the lenient reading lacks a box of the strict one.
    """
    places: dict[Hashable, deque[int]] = defaultdict(deque)
    for place, key in enumerate(_keys(lenient)):
        places[key].append(place)
    lost: list[int] = []  # Places of strict boxes that the lenient reading has with another label
    for place, key in enumerate(_keys(strict)):
        if places[key]:
            places[key].popleft()
        elif strict.labels and (is_lost(strict.labels[place]) or strict.labels[place] == _NULL):
            lost.append(place)
        else:
            return None
    added = sorted(chain.from_iterable(places.values()))
    labels = list(strict.labels)
    relabelled: set[int] = set()
    for place, other in _same_boxes(strict, lost, lenient, added):
        labels[place] = lenient.labels[other]
        relabelled.add(other)
    added = [place for place in added if place not in relabelled]
    if not added and labels == list(strict.labels):
        return None
    boxes = [lenient.boxes[place] for place in added]
    in_order = list(map(_ordered, boxes))
    added_labels: list[str] = []
    if lenient.labels:
        added_labels = [lenient.labels[place] for place in added]
    added_frames: list[int] = []
    if lenient.frames:
        added_frames = [lenient.frames[place] for place in added]
    reading = ParsedReply(
        (*strict.boxes, *in_order),
        (*labels, *added_labels),
        (*strict.frames, *added_frames),
        strict.reason,
    )
    return _Merged(reading, in_order != boxes)


def _same_boxes(
    strict: ParsedReply, lost: Sequence[int], lenient: ParsedReply, added: Sequence[int]
) -> list[tuple[int, int]]:
    """Pair strict boxes whose labels are lost with the same added boxes whose labels are not."""
    if not lost:
        return []
    waiting: dict[Hashable, deque[int]] = defaultdict(deque)
    for other in added:
        if not is_lost(lenient.labels[other]):
            frame = lenient.frames[other] if lenient.frames else 0
            waiting[lenient.boxes[other], frame].append(other)
    pairs: list[tuple[int, int]] = []
    for place in lost:
        frame = strict.frames[place] if strict.frames else 0
        others = waiting[strict.boxes[place], frame]
        if others:
            pairs.append((place, others.popleft()))
    return pairs


def _ordered(box: Corners) -> Corners:
    """Return a box with its upper left corner first."""
    x1, y1, x2, y2 = box
    return (min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))


def _keys(reading: ParsedReply) -> list[Hashable]:
    labels = reading.labels or [""] * len(reading.boxes)
    frames = reading.frames or [0] * len(reading.boxes)
    return list(zip(reading.boxes, labels, frames, strict=True))


# --- empty lists ----------------------------------------------------------------------------------


def _empty(
    values: Sequence[ParsedValue], text: str, reason: FormatFailure | None
) -> LenientReply | None:
    """Read a reply whose lists are all empty: it says that there is nothing."""
    if not values or not all(_is_empty_list(each.value) for each in values):
        return None
    around = _around(values, text).strip(_SEPARATORS)
    is_alone = not around.strip("`").removeprefix("json").strip()
    as_asked = is_alone and reason in (FormatFailure.NO_BOX, FormatFailure.NO_FRAME)
    repairs = () if as_asked else (Repair.AROUND,)
    return LenientReply(ParsedReply((), (), (), reason), repairs)


def _is_empty_list(value: List | Object) -> bool:
    return isinstance(value, List) and value.whole and not value.items
