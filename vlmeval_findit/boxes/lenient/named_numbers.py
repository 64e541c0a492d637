"""Boxes in words whose numbers have names: ``x_min: 100``, ``x1, y1 = 1, 2``, ranges of x and y."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from ...core import late_pattern
from ..representation import Representation
from .languages import sides_by_word
from .number_names import NAME, number_name, numbers_by_name, requested_order

NamedBox = tuple[int, int, tuple[object, ...]]  # Start, end, numbers in the format's order

NUMBER = r"([-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?)"
# Behind a number: the rest of a word, or a unit, which is another space: one of ours, or a word
# written as units are (an abbreviation, a plural) at the end of what is said of the number
UNIT = (
    r"(?![\w%°]|\s?(?:px\b|pixels?\b|percent\b|[cm]m\b|%|像素"
    r"|(?:[^\W\d_]{2,3}|[^\W\d_]{2,20}s)\s?(?:[,;.)\]}|\n]|and\b|\Z)))"
)
# Names that need nothing between them and their number
_CLEAR_NAME = r"[xy][ _-]?(?:min|max|[0-4])|width|height"
_FIELD = late_pattern(
    rf"(?<![\w-])(?:(?P<name>{NAME})(?![\w-])(?:[ _](?:edge|side|border|boundary|coordinate))?"
    rf"[\"'`*)]{{0,3}}\s{{0,4}}(?:=?[:=>]|is\b(?: at\b)?|at\b|of\b)"
    rf"|(?P<clear>{_CLEAR_NAME}|(?:left|top|right|bottom)[ _-](?:edge|side|border|boundary)))"
    rf"[ \t\"'`*]{{0,4}}{NUMBER}{UNIT}",
    re.IGNORECASE,
)
_EDGE = late_pattern(r"[ _-](?:edge|side|border|boundary)\Z")
_CENTRE = late_pattern(
    rf"\bcent(?:er|re)(?:\s(?:is|at|point|lies|of|it|the|located)){{0,4}}\s?[:=]?\s?"
    rf"\({NUMBER}\s?,\s?{NUMBER}\)",
    re.IGNORECASE,
)
# "It starts at (1, 2) with width 3 and height 4"
_UPPER_LEFT = late_pattern(
    r"\b(?:starts?|begins|origin|(?:top|upper)[- ]left(?: corner)?)\b[^.\d()]{0,20}"
    rf"\({NUMBER}\s?,\s?{NUMBER}\)",
    re.IGNORECASE,
)
# (x1, y1) = (1, 2)
_NAMED_PAIR = late_pattern(
    rf"\(\s?({NAME})\s?,\s?({NAME})\s?\)\s?=\s?\(\s?{NUMBER}\s?,\s?{NUMBER}\s?\)", re.IGNORECASE
)
# x1, y1, x2, y2 = 1, 2, 3, 4
_ASSIGNED = late_pattern(
    rf"(?P<names>(?<![\w-])(?:{NAME})(?:\s?,\s?\\?(?:{NAME})){{1,7}})[)\]$ ]{{0,3}}=[($\[ ]{{0,3}}"
    r"(?P<numbers>[-+.\d]++(?:\s?,\s?[-+.\d]++){1,7})(?!\s?,|[\w%])",
    re.IGNORECASE,
)
# Calls and tags whose standard says that their numbers are xmin, ymin, xmax, ymax, by a word in
# lower case without which none is there: PostGIS (a fifth number is that of a reference system)
# and image maps of HTML
_FOUR = rf"{NUMBER}\s?,\s?{NUMBER}\s?,\s?{NUMBER}\s?,\s?{NUMBER}"
_STANDARDS = {
    "envelope": late_pattern(
        rf"\bST_MakeEnvelope\(\s?{_FOUR}(?:\s?,\s?\d{{1,6}})?\s?\)", re.IGNORECASE
    ),
    "<area": late_pattern(
        rf"<area\b(?=[^<>]{{0,400}}\bshape\s?=\s?[\"']?rect)[^<>]{{0,400}}?"
        rf"\bcoords\s?=\s?[\"']\s?{_FOUR}\s?[\"']",
        re.IGNORECASE,
    ),
}
# Sizes of the image are none of a box.
_OF_IMAGE = late_pattern(
    r"(?:image|picture|photo|original|canvas|screen|svg)\b[^.\n]{0,30}\Z", re.I
)
_SIZES = ("width", "height")
_CORNERS = ("xmin", "ymin", "xmax", "ymax")
_BETWEEN_FIELDS = 80  # Characters between two numbers of a box


class _Field(NamedTuple):
    start: int
    end: int
    name: str
    number: str


def _fields(text: str, has_sizes: bool) -> list[_Field]:
    """Return the numbers with names in a text, in order."""
    found: list[_Field] = []
    for match in _FIELD.finditer(text):
        name = _EDGE.sub("", (match["name"] or match["clear"]).lower())
        found.append(_Field(match.start(), match.end(), name, match[3]))
    for match in _CENTRE.finditer(text):
        for name, number in zip(("cx", "cy"), match.groups(), strict=True):
            found.append(_Field(match.start(), match.end(), name, number))
    if has_sizes:
        for match in _UPPER_LEFT.finditer(text):
            for name, number in zip("xy", match.groups(), strict=True):
                found.append(_Field(match.start(), match.end(), name, number))
    for match in _NAMED_PAIR.finditer(text):
        for name, number in ((match[1], match[3]), (match[2], match[4])):
            found.append(_Field(match.start(), match.end(), name.lower(), number))
    fields: list[_Field] = []
    for field in sorted(found):
        if number_name(field.name) in _SIZES:
            is_far = not fields or field.start - fields[-1].end > _BETWEEN_FIELDS
            if is_far or _OF_IMAGE.search(text, max(0, field.start - 45), field.start):
                continue
        fields.append(field)
    return fields


def boxes_by_name(text: str, row: Representation) -> Iterator[NamedBox]:
    """Yield boxes whose numbers the text names, as in ``x_min: 100, y_min = 200, …``."""
    group: list[_Field] = []
    for field in _fields(text, has_sizes="width" in requested_order(row)):
        is_repeated = any(field.name == each.name for each in group)
        if group and (is_repeated or field.start - group[-1].end > _BETWEEN_FIELDS):
            yield from _of_fields(group, row)
            group = []
        group.append(field)
    yield from _of_fields(group, row)
    lower = text.lower()
    for word, standard in _STANDARDS.items():
        for match in standard.finditer(text) if word in lower else ():
            fields = [
                _Field(*match.span(), name, number)
                for name, number in zip(_CORNERS, match.groups(), strict=True)
            ]
            yield from _of_fields(fields, row)
    for match in _ASSIGNED.finditer(text) if "=" in text else ():
        names = re.split(r"\s?,\s?\\?", match["names"])
        numbers = re.split(r"\s?,\s?", match["numbers"])
        are_numbers = all(re.fullmatch(NUMBER, number) for number in numbers)
        if are_numbers and len(names) == len(numbers) == len(set(names)):
            fields = [
                _Field(match.start(), match.end(), name, number)
                for name, number in zip(names, numbers, strict=True)
            ]
            yield from _of_fields(fields, row)


def _of_fields(fields: Sequence[_Field], row: Representation) -> Iterator[NamedBox]:
    if not fields:
        return
    numbers = numbers_by_name({field.name: field.number for field in fields}, row)
    if numbers is not None:
        yield fields[0].start, max(field.end for field in fields), tuple(numbers)


_SIDES = sides_by_word()
_WORD = late_pattern(r"[^\W\d_]+")
# A side, at most a word such as "edge" behind it, its number
_SIDE = late_pattern(rf"(?<!\w)([^\W\d_]{{2,20}})(?: [^\W\d_]{{2,12}})?\s?[:=]?\s?{NUMBER}{UNIT}")


def boxes_of_sides(text: str, row: Representation) -> Iterator[NamedBox]:
    """Yield boxes by the names of their sides in other languages, four beside each other.

    >>> from ..representation import REPRESENTATIONS
    >>> list(boxes_of_sides("sol 1, üst 2, sağ 3, alt 4", REPRESENTATIONS["xyxy"]))
    [(0, 26, ('1', '2', '3', '4'))]
    """
    lower = text.lower()
    words = {*_WORD.findall(lower)}
    if len({_SIDES[word] for word in words & _SIDES.keys()}) < 4:
        return  # For speed: few texts have them
    group: list[_Field] = []
    for match in _SIDE.finditer(lower):
        side = _SIDES.get(match[1])
        if side is None:
            continue
        is_repeated = any(side == each.name for each in group)
        if group and (is_repeated or match.start() - group[-1].end > _BETWEEN_FIELDS):
            yield from _of_fields(group, row)
            group = []
        group.append(_Field(*match.span(), side, match[2]))
    yield from _of_fields(group, row)


_RANGE = late_pattern(
    r"(?<![\w-])(?P<axis>[xy])"
    r"(?:\s?[:=]\s?|[- ](?:\w{2,10} ){0,2}(?:from|between|entre|von|de|od|от|від) )"
    rf"{NUMBER}\s?(?:→|->|–|—|-|(?:to|and|until|bis|et|hasta|até|до)\b)\s?"
    rf"(?:[xy]\s?[:=]\s?)?{NUMBER}{UNIT}",
    re.IGNORECASE,
)


def boxes_of_ranges(text: str, row: Representation) -> Iterator[NamedBox]:
    """Yield boxes that are stated as a range of x and one of y, beside each other."""
    for first, second in pairwise(_RANGE.finditer(text)):
        if second.start() - first.end() > _BETWEEN_FIELDS:
            continue
        if {first["axis"].lower(), second["axis"].lower()} != {"x", "y"}:
            continue
        fields: dict[str, object] = {}
        for match in (first, second):
            axis = match["axis"].lower()
            fields[f"{axis}min"] = match[2]
            fields[f"{axis}max"] = match[3]
        numbers = numbers_by_name(fields, row)
        if numbers is not None:
            yield first.start(), second.end(), tuple(numbers)
