"""Tokens and tags that fix the unit of their numbers, whatever the run's coordinate space.

Their numbers are fractions of the image and are written in the run's numbers, through the extent
of the image in these. Where parsers differ by a thousandth, the row says what the model's does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...core import late_pattern
from ..representation import REPRESENTATIONS, MatchRule, ReplyFormat
from ..spaces import ImageExtent
from .records import Candidate, Repair

Found = tuple[int, int, Candidate]  # Start, end and box

_REPAIRS = frozenset({Repair.TOKENS})


@dataclass(frozen=True, slots=True)
class LocationTokens:
    """How a family of models writes the numbers of a box."""

    token: re.Pattern[str]  # One number
    order: str  # Representation of four numbers
    steps: float  # Numbers stand for so many steps over the width or height
    shift: float = 0.0  # From a number to its place, in steps
    is_quadrangle: bool = False  # Eight numbers are the corners of one box, not two boxes
    not_beside: str = ""  # A mark of another syntax, which counts these tokens otherwise


TOKENS = {
    "PaliGemma": LocationTokens(late_pattern(r"<loc(\d{4})>"), "yxyx", 1024),
    # Its processor takes the middle of a bin. DocTags use the same tokens for 500ths.
    "Florence-2": LocationTokens(
        late_pattern(r"<loc_(\d{1,3})>"), "xyxy", 1000, 0.5, not_beside="<doctag"
    ),
    "PaddleOCR-VL": LocationTokens(
        late_pattern(r"<\|LOC_(\d{1,4})\|>"), "xyxy", 1000, is_quadrangle=True
    ),
}
_PLAIN = late_pattern(r"<(\d{1,4})>")  # A number and no word: only the marks around say whose
# Rex-Omni's parser divides by 999, LocateAnything has 1,001 tokens
_REX = LocationTokens(_PLAIN, "xyxy", 999)
_LOCATE = LocationTokens(_PLAIN, "xyxy", 1000)
_NEMOTRON = LocationTokens(late_pattern(r"<[xy]_([01]?\.\d+)>"), "xyxy", 1)
_OUTLINE = "<poly>"


def boxes_in_tokens(text: str, fmt: ReplyFormat, extent: ImageExtent) -> Iterator[Found]:
    """Yield start, end and box of location tokens; of points where points are asked for.

    Args:
        text: a reply.
        fmt: the format asked for; the numbers of a box are in its order.
        extent: where the image lies in the numbers of a reply.

    >>> boxes = boxes_in_tokens("<loc0256><loc0512><loc0768><loc1023>",
    ...     ReplyFormat("text", "xyxy"), ImageExtent(1024, 1024))
    >>> [box.numbers for start, end, box in boxes]
    [(512.0, 256.0, 1023.0, 768.0)]
    """
    if fmt.numbers.match_rule is MatchRule.POINT_IN_OBJECT:
        yield from _points_in_tags(text, fmt, extent)
        for tokens, start, end, numbers in _rows_between_marks(text, 2):
            x, y = (number / tokens.steps for number in numbers)
            yield start, end, _candidate((x, y, x, y), fmt, extent)
        return
    rows = [*_rows_between_marks(text, 4), *_rows_of_nemotron(text)]
    for tokens in TOKENS.values():
        if not tokens.not_beside or tokens.not_beside not in text:
            rows += _rows_of(text, tokens)
    for tokens, start, end, numbers in rows:
        for box in _boxes_of_row(numbers, tokens):
            yield start, end, _candidate(box, fmt, extent)
    if "<patch_index_" in text:
        yield from _boxes_of_patches(text, fmt, extent)


# The tokens of a box, their start, end and numbers
_Row = tuple[LocationTokens, int, int, list[float]]


def _rows_of(text: str, tokens: LocationTokens) -> Iterator[_Row]:
    """Yield the tokens of each box, of tokens that stand next to each other."""
    row: list[re.Match[str]] = []
    for match in tokens.token.finditer(text):
        if row and text[row[-1].end() : match.start()].strip():
            yield from _split(row, text, tokens)
            row = []
        row.append(match)
    yield from _split(row, text, tokens)


def _split(row: Sequence[re.Match[str]], text: str, tokens: LocationTokens) -> Iterator[_Row]:
    """Yield the tokens of each box of a row; an outline has none."""
    if not row or len(row) % 4 or text.startswith(_OUTLINE, row[0].start() - len(_OUTLINE)):
        return
    count = 8 if tokens.is_quadrangle and len(row) == 8 else 4
    for at in range(0, len(row), count):
        box = row[at : at + count]
        yield tokens, box[0].start(), box[-1].end(), [float(match[1]) for match in box]


_BETWEEN_MARKS = {
    late_pattern(r"<\|box_start\|>((?:[>\d,\s]|<(?!\|))++)<\|box_end\|>"): _REX,
    late_pattern(r"<box>((?:[>\d,\s]|<(?!/))++)</box>"): _LOCATE,
}
_GROUP = late_pattern(r"(?:<\d{1,4}>){1,8}")


def _rows_between_marks(text: str, count: int) -> Iterator[_Row]:
    """Yield the groups of so many plain tokens between the marks of a box."""
    for marks, tokens in _BETWEEN_MARKS.items():
        for groups in marks.finditer(text):
            for group in _GROUP.finditer(text, groups.start(1), groups.end(1)):
                numbers = [float(number) for number in tokens.token.findall(group[0])]
                if len(numbers) == count and max(numbers) <= tokens.steps:
                    yield tokens, group.start(), group.end(), numbers


_NEMOTRON_BOX = late_pattern(
    r"<x_([01]?\.\d+)><y_([01]?\.\d+)>[^<>]{0,2000}+<x_([01]?\.\d+)><y_([01]?\.\d+)>"
)


def _rows_of_nemotron(text: str) -> Iterator[_Row]:
    """Yield the corners that stand before and behind the text of a page."""
    for match in _NEMOTRON_BOX.finditer(text):
        yield _NEMOTRON, match.start(), match.end(), [float(number) for number in match.groups()]


def _boxes_of_row(numbers: Sequence[float], tokens: LocationTokens) -> Iterator[tuple[float, ...]]:
    """Yield the box of four or eight numbers, as fractions of the image."""
    fractions = [(number + tokens.shift) / tokens.steps for number in numbers]
    order = "all" if len(numbers) == 8 else tokens.order
    box = REPRESENTATIONS[order].to_corners(fractions)
    if order != "all" or any(box):
        yield tuple(box)


def _candidate(
    fractions: Sequence[float], fmt: ReplyFormat, extent: ImageExtent, label: str = ""
) -> Candidate:
    """Write a box of fractions of the image in the run's numbers and the format's order."""
    x1, y1, x2, y2 = fractions
    corners = (
        extent.left + x1 * extent.width,
        extent.top + y1 * extent.height,
        extent.left + x2 * extent.width,
        extent.top + y2 * extent.height,
    )
    return Candidate(label, None, tuple(fmt.numbers.from_corners(corners)), _REPAIRS)


# --- cells ----------------------------------------------------------------------------------------

_PATCHES = late_pattern(r"<patch_index_(\d{4})><patch_index_(\d{4})>")
_SIDE = 32  # Cells in a row and in a column of Kosmos-2


def _boxes_of_patches(text: str, fmt: ReplyFormat, extent: ImageExtent) -> Iterator[Found]:
    """Yield the boxes of Kosmos-2, from the middle of a cell to that of another."""
    for match in _PATCHES.finditer(text):
        fractions: list[float] = []
        for cell in map(int, match.groups()):
            fractions += [(cell % _SIDE + 0.5) / _SIDE, (cell // _SIDE + 0.5) / _SIDE]
        if max(fractions) < 1:
            yield match.start(), match.end(), _candidate(fractions, fmt, extent)


# --- points ---------------------------------------------------------------------------------------

_POINT_TAG = late_pattern(r"<(points?)\b([^<>]{0,4000})>([^<>]{0,200})")
_ATTRIBUTE = late_pattern(r"([a-z]+\d{0,4})\s?=\s?([\"'])((?:(?!\2).)*+)\2")
_PER_CENT = 100.0
_THOUSANDTHS = 1000.0


def _points_in_tags(text: str, fmt: ReplyFormat, extent: ImageExtent) -> Iterator[Found]:
    """Yield the points of Molmo (per cent, by name) and of Molmo 2 (thousandths, in a list).

    Qwen2.5-VL has Molmo's tags with pixels: numbers above 100 count in the run's space.
    """
    for tag in _POINT_TAG.finditer(text):
        attributes = {name: value for name, _, value in _ATTRIBUTE.findall(tag[2])}
        label = (attributes.get("alt") or tag[3]).strip()
        for frame, x, y in _points_in_list(attributes.get("coords", "")):
            box = _candidate((x, y, x, y), fmt, extent, label)
            yield tag.start(), tag.end(), box._replace(frame=frame)
        points = list(_points_by_name(attributes))
        is_per_cent = all(max(point) <= _PER_CENT for point in points)
        for x, y in points:
            if is_per_cent:
                share_x, share_y = x / _PER_CENT, y / _PER_CENT
                box = _candidate((share_x, share_y, share_x, share_y), fmt, extent, label)
            else:
                numbers = fmt.numbers.from_corners((x, y, x, y))
                box = Candidate(label, None, tuple(numbers), _REPAIRS)
            yield tag.start(), tag.end(), box


def _points_by_name(attributes: dict[str, str]) -> Iterator[tuple[float, float]]:
    """Yield x and y of the points whose numbers have names: ``x1`` and ``y1``."""
    for name, value in attributes.items():
        other = f"y{name[1:]}"
        if name[0] == "x" and other in attributes:
            x, y = _float(value), _float(attributes[other])
            if x is not None and y is not None:
                yield x, y


_NEXT_IMAGE = late_pattern(r"[;\t]")


def _points_in_list(coords: str) -> Iterator[tuple[int, float, float]]:
    """Yield frame, x and y of points: of each image its number, then a number, x, y a point."""
    for image in _NEXT_IMAGE.split(coords):
        numbers = image.split()
        if len(numbers) % 3 != 1 or not all(number.isdecimal() for number in numbers):
            continue
        for at in range(1, len(numbers), 3):
            x, y = int(numbers[at + 1]), int(numbers[at + 2])
            yield int(numbers[0]), x / _THOUSANDTHS, y / _THOUSANDTHS


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
