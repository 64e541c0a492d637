"""Find boxes that are stated by points: corners like "top-left", or points without names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from ...core import late_pattern
from ..representation import NO_RECTANGLE, REPRESENTATIONS, Corners, Representation
from .labels import TAG
from .records import NO_REPAIRS, Repair, Repairs

Box = tuple[int, int, tuple[float, ...], Repairs]  # Start, end, numbers in the format's order


# Sides in words, of the languages that models answer in
_TOP = ("top", "upper", "oben", "superior", "supérieur", "haut", "alto", "上", "위", "верхн")
_BOTTOM = (
    "bottom",
    "lower",
    "unten",
    "inferior",
    "inférieur",
    "bas",
    "basso",
    "下",
    "아래",
    "нижн",
)
_LEFT = ("left", "links", "izquierd", "esquerd", "gauche", "sinistr", "左", "왼쪽", "лев")
_RIGHT = ("right", "rechts", "derech", "direit", "droit", "destr", "右", "오른쪽", "прав")
_DOWN = "|".join(rf"{word}[a-zа-я]{{0,3}}" for word in _TOP + _BOTTOM if word[0] < "ᄀ")
_ACROSS = "|".join(rf"{word}[a-zа-я]{{0,3}}" for word in _LEFT + _RIGHT if word[0] < "ᄀ")
_OF = r"(?:à |a )?"  # "en haut à gauche", "in alto a sinistra"
# Corners by two letters, in front of a point: "ul = (1, 2)"
_ABBREVIATIONS = {
    **dict.fromkeys(("ul", "tl", "lt"), "left top"),
    **dict.fromkeys(("ur", "tr", "rt"), "right top"),
    **dict.fromkeys(("ll", "bl", "lb"), "left bottom"),
    **dict.fromkeys(("lr", "br", "rb"), "right bottom"),
}
# The keys above, in the way that takes least time
_SHORT = r"(?:[ult][lr]|[lr][tb]|b[lr])(?<![\w<]..)(?=[\"'`*]{0,3}\s?[:=]?\s?[(\[])"
_NUMBER = r"[-+]?(?:\d++(?:\.\d++)?|\.\d++)"
_NAMED = r"[xy][\w-]{0,4}\s?[:=]\s?"
_EVENT = late_pattern(
    rf"(?P<corner>\b(?:{_DOWN})[\s_-]?(?:most[\s_-])?{_OF}(?:{_ACROSS})"
    rf"|\b(?:{_ACROSS})[\s_-]?(?:{_DOWN})\b"
    rf"|{_SHORT}|[左右][上下]角?|[上下][左右]角?|(?:왼쪽|오른쪽) ?(?:위|아래))"
    rf"|(?P<open>[\[(]?)\s?(?P<first>{_NAMED})?(?<![\d.])(?P<a>{_NUMBER})"
    rf"(?:\s{{0,8}}[,;]\s?|\s)(?P<second>{_NAMED})?(?P<b>{_NUMBER})"
    r"(?![\w%])(?!\s?[,;]\s?[-+]?[\d.])\s{0,8}(?P<close>[\])]?)",
    re.IGNORECASE,
)
_NUMBER_BEFORE = late_pattern(r"[\d.]\s?[,;]?\s?\Z")
# "x: [100, 300]" is no point.
_RANGE_BEFORE = late_pattern(r"(?<![\w,])(?<!,\s)[xy](?:[ _-]?(?:range|axis))?\s?[:=]\s?\Z", re.I)

_REORDERED: Repairs = frozenset({Repair.ORDER})

_NEAR = 100  # Characters between a corner and its point, or between the points of a box
# Words that may stand between two points of one box; any other may name another object.
_JOINING = frozenset(
    """
    a about and approximately are around as at be begins being bis bounding by coin coordinate
    coordinates coords corner corners e ecke el en esquina est et canto angolo down end ending ends
    extending extends finally first from
    given goes going has in into is it its la le located
    of on opposite other point points position reicht s se extiende hasta
    estende jusqu
    second start starting starts the then this through till to und until up vertex while with x y
    """.split()
)
_OF_IMAGE = frozenset(("image", "picture", "photo", "screen", "canvas"))
_JOINING_SIGNS = frozenset("是为在和到至与及角坐标点的位于分别即")
_CLOSING_TAG = late_pattern(r"</|<\|/|_end\|>")
_BULLET = late_pattern(r"^\s*+\d{1,3}[.)]", re.MULTILINE)
_SENTENCE_END = late_pattern(r"\n|[.!?。]\s")
_WORD = late_pattern(r"[^\W_]+")
_NAME_OF_NUMBER = late_pattern(r"[xy](?:\d|min|max)?", re.IGNORECASE)


@dataclass(slots=True)
class _Point:
    x: float
    y: float
    start: int
    end: int
    name: str = ""  # Of a corner: "left top" and the like
    in_brackets: bool = True


@dataclass(slots=True)
class _Corner:
    name: str
    start: int
    end: int


def boxes_of_points(text: str, row: Representation) -> Iterator[tuple[bool, Box]]:
    """Yield the boxes that points state, each with whether its points are named corners.

    Named corners say which side they are on, whatever their order. Points without names are in
    the format's order.
    """
    for statement in _statements(text, row):
        points = _with_names(statement)
        is_named = bool(points) and all(point.name for point in points)
        boxes = _of_corners(points, row) if is_named else _of_nameless(points, row, text)
        for box in boxes:
            yield is_named, box


# --- which points and corners belong together -----------------------------------------------------


def _statements(text: str, row: Representation) -> Iterator[list[_Point | _Corner]]:
    """Yield the points and corners of a text, each statement's together."""
    statement: list[_Point | _Corner] = []
    for match in _EVENT.finditer(text):
        event = _event(match, text, row)
        if event is None:
            continue
        if statement and not _goes_on(statement, event, text):
            yield statement
            statement = []
        statement.append(event)
    yield statement


def _event(match: re.Match[str], text: str, row: Representation) -> _Point | _Corner | None:
    start, end = match.span()
    if match["corner"] is not None:
        return _Corner(_sides(match["corner"]), start, end)
    in_brackets = bool(match["open"] and match["close"])
    at = match.start("first") if match["first"] else match.start("a")
    if not in_brackets and _NUMBER_BEFORE.search(text, max(0, at - 4), at):
        return None
    if _RANGE_BEFORE.search(text, max(0, start - 12), start):
        return None
    first = float(match["a"])
    second = float(match["b"])
    y_first = row.name == "yxyx"
    if match["first"] and match["second"]:
        y_first = match["first"][0] in "yY"
    x, y = (second, first) if y_first else (first, second)
    return _Point(x, y, start, end, in_brackets=in_brackets)


def _sides(corner: str) -> str:
    words = corner.lower()
    if words in _ABBREVIATIONS:
        return _ABBREVIATIONS[words]
    across = "left" if any(word in words for word in _LEFT) else "right"
    is_top = any(word in words for word in _TOP)
    return f"{across} {'top' if is_top else 'bottom'}"


def _goes_on(statement: Sequence[_Point | _Corner], event: _Point | _Corner, text: str) -> bool:
    """Return whether a statement goes on with a point or corner: no words before it end it."""
    before = statement[-1]
    if event.start - before.end > _NEAR:
        return False
    names_follow = isinstance(statement[0], _Point) and isinstance(event, _Corner)
    if names_follow and _SENTENCE_END.search(text, before.end, event.start):
        return False
    words_between = text[before.end : event.start]
    is_nameless = isinstance(before, _Point) and isinstance(event, _Point)
    if is_nameless and _CLOSING_TAG.search(words_between):
        return False
    between = TAG.sub(" ", words_between)
    words = _WORD.findall(_BULLET.sub(" ", between))
    if isinstance(before, _Corner) and isinstance(event, _Point):
        # "the top-left corner of the red car is at": any words, but those of the image's corner.
        return not any(word.lower() in _OF_IMAGE or word.isdecimal() for word in words)
    return all(map(_is_joining, words))


def _is_joining(word: str) -> bool:
    if word.isascii():
        return word.lower() in _JOINING or _NAME_OF_NUMBER.fullmatch(word) is not None
    return _JOINING_SIGNS.issuperset(word)


def _with_names(statement: Sequence[_Point | _Corner]) -> list[_Point]:
    """Return the points, named by the corners before them, or behind if a point comes first."""
    points: list[_Point] = []
    corners: list[_Corner] = []
    names_first = bool(statement) and isinstance(statement[0], _Corner)
    for event in statement:
        if isinstance(event, _Point):
            points.append(event)
            if names_first and corners:
                corner = corners.pop(0)
                event.name = corner.name
                event.start = corner.start
        elif not names_first:
            nameless = next((point for point in points[-4:] if not point.name), None)
            if nameless is not None:
                nameless.name = event.name
                nameless.end = event.end
        elif not corners or corners[-1].name != event.name:
            corners.append(event)
    return points


# --- points to boxes ------------------------------------------------------------------------------


def _of_corners(points: Sequence[_Point], row: Representation) -> Iterator[Box]:
    """Yield the boxes of named corners; a name that comes again begins the next box."""
    group: dict[str, _Point] = {}
    for point in points:
        if point.name in group:
            yield from _of_group([*group.values()], row)
            group = {}
        group[point.name] = point
    yield from _of_group([*group.values()], row)


def _of_group(points: Sequence[_Point], row: Representation) -> Iterator[Box]:
    """Yield the box of two opposite corners or more, unless their numbers deny their names."""
    corners = box_of_corners([(point.name, point.x, point.y) for point in points])
    if corners is None:
        return
    in_order = [point.name for point in points] == ["left top", "right bottom"]
    repairs = NO_REPAIRS if in_order or row.width > 4 else _REORDERED
    start = min(point.start for point in points)
    end = max(point.end for point in points)
    yield start, end, tuple(row.from_corners(corners)), repairs


def _rectangle(points: Sequence[_Point]) -> Corners | None:
    """Return the box whose four corners the points are; None if they are no rectangle."""
    if len(points) != 4:
        return None
    numbers = list(chain.from_iterable((point.x, point.y) for point in points))
    box = REPRESENTATIONS["all"].to_corners(numbers)
    return None if box == NO_RECTANGLE else box


def box_of_corners(points: Sequence[tuple[str, float, float]]) -> Corners | None:
    """Return the box of named corners (name, x, y); None if they leave a side open or disagree.

    >>> box_of_corners([("left bottom", 1, 4), ("right top", 3, 2)])
    (1, 2, 3, 4)
    >>> box_of_corners([("left bottom", 1, 2), ("right top", 3, 4)])
    """
    sides: dict[str, set[float]] = {"left": set(), "right": set(), "top": set(), "bottom": set()}
    for name, x, y in points:
        across, down = name.split()
        sides[across].add(x)
        sides[down].add(y)
    if any(len(values) != 1 for values in sides.values()):
        return None
    x1, y1, x2, y2 = (sides[side].pop() for side in ("left", "top", "right", "bottom"))
    return (x1, y1, x2, y2) if x1 <= x2 and y1 <= y2 else None


def corner_of(name: str) -> str | None:
    """Return the corner that a key names; None if it names none.

    >>> corner_of("top_left"), corner_of("ul"), corner_of("dog")
    ('left top', 'left top', None)
    """
    if name.lower() in _ABBREVIATIONS:
        return _sides(name)
    match = _EVENT.fullmatch(name.strip())
    return _sides(match["corner"]) if match and match["corner"] else None


def _of_nameless(points: Sequence[_Point], row: Representation, text: str) -> Iterator[Box]:
    """Yield the boxes of points in brackets, so many a box as the format has, in one sentence."""
    points = [point for point in points if point.in_brackets]
    count = row.width // 2
    rectangle = _rectangle(points) if count == 2 else None
    if rectangle is not None:
        yield points[0].start, points[-1].end, tuple(row.from_corners(rectangle)), _REORDERED
        return
    if len(points) % count:
        return
    for at in range(0, len(points), count):
        of_box = points[at : at + count]
        start = of_box[0].start
        end = of_box[-1].end
        if _SENTENCE_END.search(text, start, end):
            continue
        numbers: list[float] = []
        for point in of_box:
            numbers += (point.y, point.x) if row.name == "yxyx" else (point.x, point.y)
        yield start, end, tuple(numbers), NO_REPAIRS
