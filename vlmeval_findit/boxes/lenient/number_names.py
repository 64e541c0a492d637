"""Names of single numbers, and reading numbers by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from ...core import late_pattern
from ..representation import Corners, MatchRule, Representation
from .remembered import Remembered

# Names of one word, in the languages in which a box is known by its word, too
_IN_WORDS = {
    "xmin": "left 左 links gauche izquierda esquerda sinistra лево слева 왼쪽 vänster",
    "ymin": "top 上 oben haut arriba cima верх сверху 위 boven góra",
    "xmax": "right 右 rechts droite derecha direita destra право справа 오른쪽 höger",
    "ymax": "bottom 下 unten bas abajo baixo basso низ снизу 아래 onder dół",
    "width": "width w breite largeur ancho largura larghezza ширина 宽 宽度 寬 寬度 幅 너비"
    " breedte szerokość genişlik bredd lebar šířka",
    "height": "height h höhe hauteur alto altura altezza высота 高 高度 高さ 높이"
    " hoogte wysokość yükseklik höjd tinggi výška",
}
_ALONE = {word: name for name, words in _IN_WORDS.items() for word in words.split()}
# A name of a number in words; the longer ones first
NAME = (
    r"(?:top|upper|bottom|lower)[ _-]?(?:left|right)[ _-]?[xy]"
    r"|[xy]_\{\\?(?:min|max|[0-4])\}"
    r"|[xy][ _-]?(?:minimum|maximum|min|max|start|end|cent(?:er|re)|left|right|top|bottom|tl|br"
    r"|[0-4])"
    r"|(?:minimum|maximum|min|max|start|end|left|right|top|bottom|ul|lr|tl|br)[ _-]?[xy]"
    r"|cent(?:er|re)[ _-]?[xy]|left|top|right|bottom|width|height|c[xy]|[xy]c|[xywh]"
    rf"|{'|'.join(sorted(_ALONE, key=len, reverse=True))}"
)
# Sides by letter, of which a single one is no name
SIDES = {"l": "left", "t": "top", "r": "right", "b": "bottom"}
_LOW = frozenset(("min", "minimum", "start", "left", "top", "tl", "ul", "topleft", "upperleft"))
_HIGH = frozenset(
    ("max", "maximum", "end", "right", "bottom", "br", "lr", "bottomright", "lowerright")
)
_CORNER = late_pattern("(top|upper|bottom|lower)(left|right)")
# "xywh", "ltrb", "x1y1x2y2": names written as one word; an "n" behind them is for fractions
PART_OF_JOINED = r"(?:xmin|ymin|xmax|ymax|cx|cy|xc|yc|[xy][0-4]?|[whltrb])"
JOINED = late_pattern(rf"((?:{PART_OF_JOINED}){{2,8}})n?")
_PART = late_pattern(PART_OF_JOINED)
_NO_LETTER = late_pattern(r"[\W_]+")


@Remembered
def number_name(key: str) -> str:
    """Return the plain name of a number: xmin, ymax, cx, width, x1 and the like.

    >>> number_name("X_min"), number_name("min x"), number_name("top_left_x"), number_name("topX")
    ('xmin', 'xmin', 'xmin', 'xmin')
    """
    name = _NO_LETTER.sub("", key.lower())
    if name in _ALONE:
        return _ALONE[name]
    for axis, side in ((name[:1], name[1:]), (name[-1:], name[:-1])):
        if axis in ("x", "y") and side:
            if side in ("center", "centre", "c"):
                return f"c{axis}"
            corner = _CORNER.fullmatch(side)
            if corner is not None:
                is_low = corner[2] == "left" if axis == "x" else corner[1] in ("top", "upper")
                return f"{axis}{'min' if is_low else 'max'}"
            if side in _LOW:
                return f"{axis}min"
            if side in _HIGH:
                return f"{axis}max"
    return name


@Remembered
def joined_names(word: str) -> tuple[str, ...]:
    """Return the names of two, four or eight numbers that are written as one word; else none.

    >>> joined_names("xywh"), joined_names("boxy")
    (('x', 'y', 'w', 'h'), ())
    """
    joined = JOINED.fullmatch(word)
    parts = tuple(_PART.findall(joined[1])) if joined else ()
    return parts if len(parts) in (2, 4, 8) else ()


def in_order(names: Sequence[str]) -> tuple[str, ...]:
    """Return the plain names of a list of names; x1 (or x0, or the first x) is the lower one.

    >>> in_order(["x0", "y0", "x1", "y1"]), in_order(["x", "y", "w", "h"])
    (('xmin', 'ymin', 'xmax', 'ymax'), ('xmin', 'ymin', 'width', 'height'))
    """
    plain_names = [number_name(name) for name in names]
    from_zero = {"x0", "y0"} <= {*plain_names}
    lower, upper = ("0", "1") if from_zero else ("1", "2")
    result: list[str] = []
    for name in plain_names:
        axis, end = name[:1], name[1:]
        if axis in ("x", "y") and end in ("", lower, upper):
            is_upper = end == upper or (not end and f"{axis}min" in result)
            name = f"{axis}{'max' if is_upper else 'min'}"
        result.append(name)
    return tuple(result)


@lru_cache
def requested_order(representation: Representation) -> tuple[str, ...]:
    """Return the plain names of the numbers that a format asks for, in its order."""
    if representation.name == "unconstrained":
        return ("xmin", "ymin", "xmax", "ymax")
    return in_order(representation.fields)


_CORNERS = ("xmin", "ymin", "xmax", "ymax")
_SIZES = ("width", "height", "xmax", "ymax", "cx", "cy")


def numbers_by_name(
    fields: Mapping[str, object], representation: Representation
) -> list[object] | None:
    """Return the numbers of a box, in the format's order, where all of them are named; else None.

    >>> from ..representation import REPRESENTATIONS
    >>> numbers_by_name({"y1": 2, "x1": 1, "x2": 3, "y2": 4}, REPRESENTATIONS["xyxy"])
    [1, 2, 3, 4]
    """
    wanted = requested_order(representation)
    if len(fields) < min(len(wanted), len(_CORNERS)):
        return None
    names = [*fields]
    if {"l", "t"} <= fields.keys():
        names = [SIDES.get(name, name) for name in names]
    by_name = dict(zip(in_order(names), fields.values(), strict=True))
    if representation.match_rule is MatchRule.POINT_IN_OBJECT:
        if any(name in by_name for name in _SIZES):
            return None
    elif "cx" not in wanted and {"cx", "cy"} & {*by_name}:
        return None
    if len({*wanted}) < len(wanted) or representation.width > len(_CORNERS):
        wanted = _CORNERS
    if not all(name in by_name for name in wanted):
        return None
    numbers = [by_name[name] for name in wanted]
    if representation.width > len(_CORNERS):
        corners = _as_corners(numbers)
        return None if corners is None else [*representation.from_corners(corners)]
    return numbers


def _as_corners(numbers: Sequence[object]) -> Corners | None:
    try:
        x1, y1, x2, y2 = (float(number) for number in numbers)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return (x1, y1, x2, y2)
