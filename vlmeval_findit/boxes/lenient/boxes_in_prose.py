"""Find boxes in words: brackets, tags, two points, named corners or numbers, numbers alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..representation import ReplyFormat, Representation
from ..spaces import ImageExtent
from .boxes_in_values import POINTS, is_confidence
from .labels import FRAME, TAG, WITHIN, label_within, labels_of_boxes
from .location_tokens import boxes_in_tokens
from .named_corners import boxes_of_points
from .names import names_another_order, names_of, number_name
from .punctuation import in_ascii
from .records import Candidate, Repair, Repairs

_PROSE: Repairs = frozenset({Repair.PROSE})

NUMBER = r"([-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?)"
BETWEEN = r"(?:\s*+[,;]\s*+|\s++)"
# Behind a number: a unit, which is another space, or the rest of a word
UNIT = r"(?![\w%°]|\s?(?:px\b|pixels?\b|percent\b|[cm]m\b|%|像素))"


_DIGIT = re.compile(r"\d")


class BoxInText(NamedTuple):
    """A box and its place in the text."""

    start: int
    end: int
    box: Candidate


def boxes_in_prose(
    text: str, fmt: ReplyFormat, extent: ImageExtent | None = None
) -> list[Candidate]:
    """Return the boxes in prose that have the label and frame asked for, each once.

    ``extent`` is where the image lies in the numbers of a reply; without it location tokens,
    which are fractions of the image, cannot be written in these numbers and are not read.
    """
    # For speed: many replies of words have no number.
    if not _DIGIT.search(text):
        return []
    plain_text = in_ascii(text)
    boxes_in_text = list(_boxes_in(plain_text, fmt, extent))
    boxes_in_text.sort(key=lambda box: (box.start, -box.end))
    apart: list[BoxInText] = []
    for each in boxes_in_text:
        if not apart or each.start >= apart[-1].end:
            apart.append(each)
    # Labels are cut from the text as it was written.
    boxes = list(_with_frames_and_labels(apart, text, fmt))
    # Of equal boxes the first is taken, at the place of the last.
    once = {(box.label, box.frame, tuple(map(float, box.numbers))): box for box in reversed(boxes)}
    return [*reversed(once.values())]


def _boxes_in(text: str, fmt: ReplyFormat, extent: ImageExtent | None) -> Iterator[BoxInText]:
    row = fmt.numbers
    if extent is not None:
        yield from map(BoxInText._make, boxes_in_tokens(text, fmt, extent))
    yield from _by_name(text, row)
    # Their numbers are in the format's order, unless words name another order.
    in_order = [*_bracketed(text, row), *_bare(text, row, fmt.multilabel)]
    if row.name in POINTS:
        for is_named, (start, end, numbers, repairs) in boxes_of_points(text, row):
            box = BoxInText(start, end, Candidate("", None, numbers, repairs | _PROSE))
            if is_named:
                yield box
            else:
                in_order.append(box)
    if in_order and not names_another_order(text, row):
        yield from in_order


# --- brackets, tags or nothing around the numbers -------------------------------------------------


def _bracketed(text: str, row: Representation) -> Iterator[BoxInText]:
    """Yield boxes in brackets or between tags; behind one may follow a confidence."""
    pattern = _run(row, rf"[\[({{>;]\s*+NUMBERS(?:{BETWEEN}{NUMBER})?\s*+(?=[\])}}<;])", BETWEEN)
    yield from _matched(pattern, text, row)


_IN_LINE = r"(?:[ \t]*+[,;|_][ \t]*+|[ \t]++)"
_BULLETS = r"(?:(?:\d{1,2}[.)]|[-*•])[ \t]++)?+"


def _bare(text: str, row: Representation, labelled: bool) -> Iterator[BoxInText]:
    """Yield numbers without brackets: behind ``bbox:`` or ``is``, in a table, alone in a line."""
    begins = rf"^[ \t]*+{_BULLETS}"
    # Where labels are asked for, also behind words: a line of a CSV file
    words = r"|^[^\W\d][^\d\n,;:|]{0,60}+(?:,|(?<=[ \t]))" if labelled else ""
    before = rf"(?:[:=;|]|\b(?:is|are|at)\b|[是为]|{begins}{words})[ \t\"'`*]*+"
    behind = rf"(?:{_IN_LINE}{NUMBER})?(?=[ \t\"'`*|]*+(?:[.;)]*+[ \t]*+$|[.;]\s))"
    yield from _matched(_run(row, f"{before}NUMBERS{behind}", _IN_LINE), text, row)


def _run(row: Representation, pattern: str, between: str) -> re.Pattern[str]:
    numbers = between.join([NUMBER] * row.width)
    return re.compile(pattern.replace("NUMBERS", numbers), re.MULTILINE)


def _matched(pattern: re.Pattern[str], text: str, row: Representation) -> Iterator[BoxInText]:
    for match in pattern.finditer(text):
        *numbers, more = match.groups()
        repairs = _PROSE
        if more is not None:
            if not is_confidence([*numbers, more], row.width):
                continue
            repairs = _PROSE | {Repair.CONFIDENCE}
        yield BoxInText(match.start(1), match.end(), Candidate("", None, tuple(numbers), repairs))


# --- numbers by name ------------------------------------------------------------------------------

_NAME = (
    r"(?:top|upper|bottom|lower)[ _-]?(?:left|right)[ _-]?[xy]"
    r"|(?:x|y)[ _-]?(?:min|max|minimum|maximum|cent(?:er|re)|[12])"
    r"|(?:min|max|minimum|maximum)[ _-]?[xy]"
    r"|cent(?:er|re)[ _-]?[xy]|left|top|right|bottom|width|height|c[xy]|[xywh]"
)
_FIELD = re.compile(
    rf"(?<![\w-])({_NAME})(?![\w-])(?:[ _](?:edge|side|border|boundary|coordinate))?"
    rf"[\"'`*)]{{0,3}}\s{{0,4}}(?:[:=]|is\b|at\b)[ \t\"'`*]{{0,4}}{NUMBER}{UNIT}",
    re.IGNORECASE,
)
# Sizes of the image are none of a box; coordinates of points are in another tag.
_OF_IMAGE = re.compile(r"(?:image|picture|photo|original|canvas|screen)\b[^.\n]{0,30}\Z", re.I)
_SIZES = ("width", "height", "w", "h")
_POINT_TAG = re.compile(r"<points?\b[^<>]*+>", re.IGNORECASE)
_BETWEEN_FIELDS = 80  # Characters between two numbers of a box


def _by_name(text: str, row: Representation) -> Iterator[BoxInText]:
    """Yield boxes whose numbers the text names, as in ``x_min: 100, y_min = 200, …``."""
    if row.width > 2:
        text = _POINT_TAG.sub(lambda tag: " " * len(tag[0]), text)
    fields: dict[str, str] = {}
    start = end = 0
    for match in _FIELD.finditer(text):
        name = number_name(match[1])
        at = match.start()
        if name in _SIZES and (not fields or _OF_IMAGE.search(text, max(0, at - 45), at)):
            continue
        if name in fields or at - end > _BETWEEN_FIELDS:
            yield from _of_fields(fields, start, end, row)
            fields = {}
        if not fields:
            start = at
        fields[name] = match[2]
        end = match.end()
    yield from _of_fields(fields, start, end, row)


def _of_fields(
    fields: dict[str, str], start: int, end: int, row: Representation
) -> Iterator[BoxInText]:
    for names in names_of(row):
        if row.excluded_keys.isdisjoint(fields) and all(name in fields for name in names):
            numbers = tuple(fields[name] for name in names)
            yield BoxInText(start, end, Candidate("", None, numbers, _PROSE))
            return


# --- frames and labels ----------------------------------------------------------------------------


def _with_frames_and_labels(
    boxes: Sequence[BoxInText], text: str, fmt: ReplyFormat
) -> Iterator[Candidate]:
    """Yield the boxes with the frame and label in the words around them."""
    if not boxes:
        return
    before: list[str] = []
    end = 0
    for each in boxes:
        before.append(text[max(end, each.start - WITHIN) : each.start])
        end = each.end
    labels = [""] * len(boxes)
    if fmt.multilabel:
        labels = labels_of_boxes(before, text[end : end + WITHIN])
    frame: int | None = None
    label = ""
    for each, words, stated_label in zip(boxes, before, labels, strict=True):
        if fmt.frames > 1:
            frame = _frame(words, frame)
            if frame is None:
                continue
        if fmt.multilabel:
            stated_label = stated_label or label_within(text[each.start : each.end])
            # A box without words before it has the label of the box before it.
            if stated_label or _has_words(words):
                label = stated_label
            if not label:
                continue
        yield each.box._replace(label=label, frame=frame)


def _has_words(text: str) -> bool:
    words = re.findall(r"\w+", FRAME.sub(" ", TAG.sub(" ", text)))
    return any(word not in ("and", "or") for word in words)


def _frame(before: str, last: int | None) -> int | None:
    """Return the last frame named before a box, else that of the previous box."""
    for match in FRAME.finditer(before):
        last = int(match[1] or match[2])
    return last
