"""Orders and units that a reply states: nothing is read past one that was not asked for.

A word, a key, a value or a list of columns may state them. A unit behind a number is that
number's; a label states neither.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from ...core import late_pattern
from ..representation import MatchRule, Representation
from ..spaces import ImageExtent
from .languages import pattern_of, words_for
from .number_names import NAME, SIDES, in_order, joined_names, requested_order
from .remembered import Remembered
from .unknown_words import names_unit, states_unknown_order, states_unknown_unit
from .words import ends_with_one_of, words_of

# --- orders ---------------------------------------------------------------------------------------

# "top-left", "(top left, …", "upper left corner": a corner, not the two sides top and left
_CORNER_WORD = late_pattern(
    r"(?:top|upper|bottom|lower)(?:[-_]?|\s)(?:left|right)"
    r"(?=\s*+(?:[^\s\w]|and\b|to\b|corner|point|x\b|\Z))"
    r"|(?:top|upper|bottom|lower)[-_](?:left|right)",
    re.IGNORECASE,
)
# Two corners, where a corner and a size were asked for
_TWO_CORNERS = late_pattern(
    r"(?:top|upper)[-_ ]?left(?: corner)?[-_ ,/|&]{1,3}(?:and |then |to )?(?:the )?"
    r"(?:bottom|lower)[-_ ]?right",
    re.IGNORECASE,
)
_LISTED = r"(?:[ \t]*+[,;/|&，、；][ \t\"'`*$\\{}_]*+|[ \t]++(?:and|then|by)?[ \t]*+)"
_ONE_NAME = rf"(?<![\w-])(?:{NAME})(?![\w-])"
_NAMES = late_pattern(
    rf"{_ONE_NAME}(?:[\"'`*$}}]{{0,2}}{_LISTED}[\"'`*$]{{0,2}}{_ONE_NAME})+", re.IGNORECASE
)
_NAME = late_pattern(_ONE_NAME, re.IGNORECASE)
# "order": "…": four words under such a key are an order, known or not
_ORDERS = ("format", "order", "convention", "mode", "layout", *words_for("order"))
_TEXT_UNDER_KEY = late_pattern(r'"([^"\n]{1,60})"\s?: "([^"\n]{1,60})"')
_FOUR_WORDS = late_pattern(r"\W*[^\W\d]++(?:[\s,;/|，、；-]++[^\W\d]++){3}\W*")
# Orders by the name of the set that has them
_ORDERS_OF_SETS = {
    "coco": ("xmin", "ymin", "width", "height"),
    "yolo": ("cx", "cy", "width", "height"),
}
_OF_SET = late_pattern(
    r"\b(coco|yolo)(?:[- _](?:format|style|order|convention)|(?<=: \"coco)\"|(?<=: \"yolo)\")",
    re.IGNORECASE,
)
# "centre and size", "origin, size"
_AND_SIZE = late_pattern(
    r"\b(?:(?P<centre>cent(?:er|re)|middle)|origin|(?:top|upper)[-_ ]left)[-_ ]?(?:corner|point)?"
    r"\s?(?:[-_,/&+]|\band\b|\bthen\b){1,2}\s?(?:the )?(?:sizes?|extents?|dimensions)\b",
    re.IGNORECASE,
)
# Two corners, or the four sides: nothing between them says which
_CORNERS_OR_SIDES = late_pattern(
    r"\b(?:top|upper)\s(?:left)\s(?:bottom|lower)\s(?:right)\b", re.IGNORECASE
)
_Y_FIRST = late_pattern(r"\by[- ](?:first\b|before x\b|and then x\b)", re.IGNORECASE)
_SIZE_OF_IMAGE = late_pattern(
    r"(?:image|picture|photo|canvas|screen|original)\b[^.\n]{0,25}\Z|\A[^.\n]{0,12}\bof the image"
    r"|\b(?:of|to|by)(?: the| its)? \Z",
    re.IGNORECASE,
)


def orders_in(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the orders that a text states, each as plain names.

    >>> list(orders_in("as (top, left, bottom, right)")), list(orders_in("The boxy white van"))
    ([('ymin', 'xmin', 'ymax', 'xmax')], [])
    """
    for word in words_of(text):
        parts = joined_names(word)
        if parts:
            # tlbr and tlwh are written of x first and of y first: no order that could be asked for
            is_clear = parts[:2] != ("t", "l")
            names = in_order([SIDES.get(part, part) for part in parts])
            yield names if is_clear else ("?",) * len(names)
    for match in _OF_SET.finditer(text):
        yield _ORDERS_OF_SETS[match[1].lower()]
    for match in _AND_SIZE.finditer(text):
        place = ("cx", "cy") if match["centre"] else ("xmin", "ymin")
        yield (*place, "width", "height")
    if _CORNERS_OR_SIDES.search(text):
        yield ("?",) * 4
    if _Y_FIRST.search(text):
        yield ("ymin", "xmin", "ymax", "xmax")
    for value in _texts_under(_names_order, text):
        is_known = _NAMES.search(value) or _CORNER_WORD.search(value)
        if _FOUR_WORDS.fullmatch(value) and not is_known:
            yield ("?",) * 4
    plain_text = _CORNER_WORD.sub(" corner ", text.replace("_{", "_"))
    if _NAMES.search(plain_text) is None:  # For speed: nearly all texts
        return
    for run in _NAMES.finditer(plain_text):
        names = in_order(_NAME.findall(run[0]))
        if names == ("width", "height") and _SIZE_OF_IMAGE.search(
            plain_text, max(0, run.start() - 45), run.start()
        ):
            continue
        yield names


def _texts_under(is_meant: Callable[[str], bool], text: str) -> Iterator[str]:
    """Yield the texts that stand behind some keys: ``"unit": "cm"``."""
    for key, value in _TEXT_UNDER_KEY.findall(text) if ': "' in text else ():
        if is_meant(key):
            yield value


@Remembered
def _names_order(key: str) -> bool:
    return ends_with_one_of(key, _ORDERS)


def _has_known_order(text: str) -> bool:
    return _CORNER_WORD.search(text) is not None or any(True for _ in orders_in(text))


def names_a_box(text: str, of_points: bool = False) -> bool:
    """Return whether a text lists the numbers of a box, or of a point, by their names.

    >>> names_a_box("(x_min, y_min, x_max, y_max)"), names_a_box("top left and bottom right corner")
    (True, True)
    """
    if len(_CORNER_WORD.findall(text)) >= 2:
        return True
    return any(len(names) >= (2 if of_points else 4) for names in orders_in(text))


def states_another_order(
    text: str, representation: Representation, asked: Sequence[str] = ()
) -> bool:
    """Return whether a text states another order of numbers than was asked for.

    ``asked`` are the labels asked for: a list of them is no order.

    >>> from ..representation import REPRESENTATIONS
    >>> xyxy = REPRESENTATIONS["xyxy"]
    >>> states_another_order("(top, left, bottom, right)", xyxy)
    True
    >>> states_another_order("(top-left, bottom-right)", xyxy)
    False
    """
    if "width" in requested_order(representation) and _TWO_CORNERS.search(text):
        return True
    wanted = requested_order(representation)
    of_points = representation.match_rule is MatchRule.POINT_IN_OBJECT
    for names in orders_in(text):
        if len(names) == len(wanted):
            if names != wanted:
                return True
        elif len(names) >= 4:
            return not of_points or names[:2] != wanted
        elif set(names) == {"width", "height"} and "width" not in wanted:
            return True
    return states_unknown_order(text, _has_known_order, asked)


@Remembered
def key_states_another_order(key: str, representation: Representation) -> bool:
    """Return whether a key states another order of numbers than was asked for.

    >>> from ..representation import REPRESENTATIONS
    >>> key_states_another_order("boxYxyx", REPRESENTATIONS["xyxy"])
    True
    """
    return states_another_order(_spaced(key), representation)


def _spaced(key: str) -> str:
    """Return a key, and its words apart if it is written as one."""
    return key if " " in key else f"{key} {' '.join(words_of(key))}"


# --- units ----------------------------------------------------------------------------------------

_PERCENT = words_for("percent")
_PIXELS = words_for("pixels")
_NO_NUMBER_BEFORE = r"(?<![\d.])(?<!\d\s)(?<!\d-)"
_UNIT_WORDS = {
    "percent": late_pattern(
        rf"{_NO_NUMBER_BEFORE}(?:%(?!\w)|\b(?:pct|per ?cent(?:age)?s?)\b"
        rf"|\b(?:proc|pros|prots|pers)ent[^\W\d_]{{0,8}}\b|{pattern_of(_PERCENT)})",
        re.IGNORECASE,
    ),
    "pixels": late_pattern(
        rf"{_NO_NUMBER_BEFORE}(?:\b(?:pixels|px|pixel(?=[ _-](?:coord|value|space|position|unit)))"
        r"(?:\b|_)|(?<=_)(?:px|pixels?)\b|(?<=\()pixel(?=\))"
        rf"|\bpi(?:ks|cs)e?l[^\W\d_]{{0,8}}\b|{pattern_of(_PIXELS)})"
        r"|\babsolute[ _](?:coord|pixel|value|position)|[\"'_]abs(?:olute)?[\"'_]?(?![a-z])",
        re.IGNORECASE,
    ),
    "fractions": late_pattern(
        r"\bnormali[sz]ed?\b|(?<=_)normali[sz]ed?|\bnorm(?:alis)?iert|\bnormalis[ée]|\bnormalizad|\bnorm\b|归一化|正規化|정규화"
        r"|нормализ"
        r"|\brel(?:ative)?[ _](?=bbox|box)|\bfractions?\b"
        r"|\b(?:ratio|share|proportion)s?\b"
        r"(?= (?:of|to) (?:the |its )?(?:image|picture|width|height))"
        r"|\brelative\b(?=[\"']|[ _](?:coord|value|position|unit"
        r"|to (?:the |its )?(?:image|picture|width|height|size|dimension)))",
        re.IGNORECASE,
    ),
    "thousandths": late_pattern(
        r"\bthousandths?\b|\bper mille\b|‰|千分|(?<![\d/])1/1000\b|\bscaled to 1000\b",
        re.IGNORECASE,
    ),
    "lengths": late_pattern(
        rf"{_NO_NUMBER_BEFORE}\b(?:centimet|millimet|inches|(?:in|of) [cm]m\b|(?<=\()[cm]m(?=\)))",
        re.IGNORECASE,
    ),
}
_OF_CONFIDENCE = late_pattern(r"(?:confidence|score|prob)\w*[^\n|,;]{0,6}\Z", re.IGNORECASE)
# "0-1000", "0 to 1", "[0, 999]"; four numbers are no range
_RANGE = late_pattern(
    r"(?<![\d.])(?<!\d, )(?<!\d,)0(?:\.0)?\s?(?P<joint>-|–|to|and|\.\.\.?|…|,)\s?"
    r"(?P<top>1000|999|1024|100|1(?:\.0)?)(?![\d.]\d|\d|\s?,\s?\d)"
)
_CLEAR_TOPS = ("1000", "999", "1024")  # A range up to one of them is of coordinates
_RANGES = {"1000": "thousandths", "999": "thousandths", "100": "percent", "1": "fractions",
    "1.0": "fractions", "1024": "1024ths"}  # fmt: skip
_OF_RANGE = late_pattern(r"normali[sz]|scale|range|grid|between|coordinate", re.IGNORECASE)
_SIZE = late_pattern(r"(?<![\w.])(\d{2,5})\s?[x×]\s?(\d{2,5})(?!\w|\.\d)")
_OF_SIZE = late_pattern(
    r"measured|version|resized|scaled|grid|based on|relative|coordinate", re.IGNORECASE
)
_PICTURE = r"(?:image|picture|photo|screenshot)"
_SIZE_OF_IMAGE_IN_WORDS = late_pattern(
    rf"(?<![\w.])(\d{{3,5}})\s?(?:[x×]|by)\s?(\d{{3,5}})(?:[ -]pixels?)?[ -]{_PICTURE}\b"
    rf"|\b{_PICTURE}(?: size)?(?: is| of|:|,)? (?:size |about )?"
    r"\(?(\d{3,5})\s?(?:[x×]|by)\s?(\d{3,5})(?!\w|\.\d)",
    re.IGNORECASE,
)
_SIZE_OF_PICTURE = late_pattern(r"<size of the picture: (\d{1,6}) (\d{1,6})>")
_AROUND = 60  # Characters around a size or range that say what it is


Unit = str | tuple[int, int] | tuple[str, int, int]


def units_in(text: str) -> Iterator[Unit]:
    """Yield the units that a text states: a name, or the size of the picture that was measured.

    >>> list(units_in("in percent")), list(units_in("a 50 mm lens, 92% sure"))
    (['percent'], [])
    """
    lower = text.lower()
    has_stem = any(stem in lower for stem in _STEMS)
    if has_stem or (not lower.isascii() and _STEM_IN_SIGNS.search(lower)):
        yield from _units_in_words(text)
    for value in _texts_under(names_unit, text):
        yield _unit_named(value)
    if _MAY_BE_JOINED.search(lower) and any(map(_is_joined_of_fractions, words_of(text))):
        yield "fractions"


# "unit": "mm": whatever is under such a key is a unit, known or not
def _unit_named(value: str) -> Unit:
    return next(_units_in_words(f"({value})"), value)


# y that counts upwards, or from the middle
_OTHER_ORIGIN = late_pattern(
    r"(?<![^\W_])origin\b[\"'`*]{0,3}\s?(?:[:=(]|is\b|at\b|in\b)?\s?[\"']?"
    r"(?:at |in )?(?:the )?[\"']?"
    r"(?:(?:bottom|lower)[-_ ]?left|cent(?:er|re)|middle)"
    r"|\by(?:[- ]axis)? (?:points|goes|counts|grows|increases|is) up(?:wards?)?\b",
    re.IGNORECASE,
)


# For speed: without one of these, no pattern above or below finds a unit
_ENGLISH_STEMS = (
    "%", "pct", "cent", "sent", "persen", "px", "pixel", "pixl", "piks", "picse", "abs", "norm",
    "rel", "fraction", "thousandth", "mille", "met", "inches", " cm", " mm", "scale", "range",
    "grid", "between", "coordinate", "measured", "version", "resized", "based on", "image",
    "picture", "photo", "screenshot", "1000", "999", "1024", "ratio", "share", "proportion", "unit",
    "(cm)", "(mm)", "origin", " up",
)  # fmt: skip
_FOREIGN = [word for word in _PERCENT + _PIXELS if not any(stem in word for stem in _ENGLISH_STEMS)]
_STEMS = (*_ENGLISH_STEMS, *filter(str.isascii, _FOREIGN))
_STEMS_IN_SIGNS = (
    "‰", "千分", "归一化", "正規化", "정규화", "нормализ",
    *(word for word in _FOREIGN if not word.isascii()),
)  # fmt: skip
# So many are looked for faster by a pattern, and few texts have their first signs
_STEM_IN_SIGNS = late_pattern("|".join(map(re.escape, _STEMS_IN_SIGNS)))
_MAY_BE_JOINED = late_pattern(r"[xywhltrb0-4]n(?![^\W_])")


def _units_in_words(text: str) -> Iterator[Unit]:
    ranges = [_RANGES[match["top"]] for match in _RANGE.finditer(text) if _is_range(match)]
    yield from ranges
    for unit, pattern in _UNIT_WORDS.items():
        for match in pattern.finditer(text):
            if unit == "fractions" and (ranges or "1000" in words_of(text[match.end() :][:8])):
                continue  # The range says what is one
            if _OF_CONFIDENCE.search(text, max(0, match.start() - 24), match.start()):
                continue
            yield unit
            break
    if _NORM_1000.search(text):
        yield "thousandths"
    if _OTHER_ORIGIN.search(text):
        yield "another origin"
    for match in _SIZE.finditer(text):
        if _OF_SIZE.search(text, max(0, match.start() - _AROUND), match.end() + _AROUND):
            yield int(match[1]), int(match[2])
    for match in _SIZE_OF_IMAGE_IN_WORDS.finditer(text):
        width, height = filter(None, match.groups())
        yield "picture", int(width), int(height)
    for match in _SIZE_OF_PICTURE.finditer(text):
        yield "picture", int(match[1]), int(match[2])


def _is_range(match: re.Match[str]) -> bool:
    """Return whether two numbers say in which range coordinates lie."""
    if match["top"] in _CLEAR_TOPS and match["joint"] != ",":
        return True
    start = max(0, match.start() - _AROUND)
    return _OF_RANGE.search(match.string, start, match.end() + _AROUND) is not None


_NORM_1000 = late_pattern(r"norm(?:ali[sz]ed)?[_ ]?1000", re.IGNORECASE)


def _is_joined_of_fractions(word: str) -> bool:
    """Return whether a word is an order with an "n" behind it, as "xyxyn"."""
    return word.endswith("n") and len(joined_names(word)) == 4


# Size of the image in a unit that is the same for every image
_FULL = {"percent": 100.0, "fractions": 1.0, "thousandths": 1000.0, "1024ths": 1024.0}


def size_of_picture(width: int, height: int) -> str:
    """Return words that state the size of the picture beside boxes."""
    return f"<size of the picture: {width} {height}>"


class RunNumbers(NamedTuple):
    """What the numbers of a run's replies count."""

    extent: ImageExtent | None = None  # Where the image lies in them; None: not known
    unit: str = ""  # As a space says (``SpaceKind.unit``); "": not known

    @property
    def count_pixels(self) -> bool:
        if self.unit or self.extent is None:
            return self.unit == "pixels"
        return self.extent[:2] not in ((100, 100), (1, 1), (1000, 1000))


def is_unit_of_run(unit: Unit, run: RunNumbers) -> bool:
    """Return whether numbers in a unit are those of the run.

    A picture of 1000 x 1000 pixels has the same numbers in pixels and in thousandths.

    >>> is_unit_of_run("percent", RunNumbers(ImageExtent(1000, 1000)))
    False
    >>> square = RunNumbers(ImageExtent(1000, 1000), "pixels")
    >>> is_unit_of_run("pixels", square), is_unit_of_run("thousandths", square)
    (True, True)
    """
    if run.extent is None:
        return False
    size = run.extent[:2]
    in_pixels = run.count_pixels
    if isinstance(unit, tuple) and unit[0] == "picture":
        return size == unit[1:] or not in_pixels
    if isinstance(unit, tuple):
        return size == unit
    if unit == "pixels":
        return in_pixels
    full = _FULL.get(unit)
    return full is not None and size == (full, full)


def states_another_unit(text: str, run: RunNumbers, asked: Sequence[str] = ()) -> bool:
    """Return whether a text states another unit than that of the run, known or not.

    ``asked`` are the labels asked for: one in the place of a unit is none.
    """
    if any(not is_unit_of_run(unit, run) for unit in units_in(text)):
        return True
    return states_unknown_unit(text, partial(_is_of_run, run=run), asked)


def _is_of_run(words: str, run: RunNumbers) -> bool:
    """Return whether words in the place of a unit name the run's, an order or a number of it."""
    units = list(units_in(f"in {words} ({words})"))
    if units:
        return all(is_unit_of_run(unit, run) for unit in units)
    return _has_known_order(words) or _NAME.fullmatch(words) is not None


def key_states_another_unit(key: str, run: RunNumbers) -> bool:
    """Return whether a key states another unit than that of the run.

    >>> key_states_another_unit("bbox_percent", RunNumbers(ImageExtent(640, 480)))
    True
    """
    if any(not is_unit_of_run(unit, run) for unit in _units_of_key(key)):
        return True
    return "(" in key and states_unknown_unit(key, partial(_is_of_run, run=run))


# Words of a key that say its unit
_WORDS_OF_UNITS = {
    "pixels": frozenset("px pixel pixels abs absolute".split()),
    "percent": frozenset("percent pct percentage percentages".split()),
    "thousandths": frozenset("1000 999 thousandths permille".split()),
    "fractions": frozenset(
        "norm normed normalized normalised rel relative fraction fractions ratio ratios".split()
    ),
    "lengths": frozenset("cm mm inch inches pt em deg degrees".split()),
}
_ALL_WORDS_OF_UNITS: frozenset[str] = frozenset().union(*_WORDS_OF_UNITS.values())


@Remembered
def key_without_unit(key: str) -> str:
    """Return a key without the words of a unit; the key itself if it has none.

    >>> key_without_unit("x_min_px"), key_without_unit("x0Pct"), key_without_unit("x_min")
    ('x min', 'x0', 'x_min')
    """
    words = words_of(key)
    others = [word for word in words if word not in _ALL_WORDS_OF_UNITS]
    return key if len(others) == len(words) else " ".join(others)


@Remembered
def _units_of_key(key: str) -> tuple[Unit, ...]:
    words = words_of(key)
    named = [unit for unit, known in _WORDS_OF_UNITS.items() if not known.isdisjoint(words)]
    if "thousandths" in named:  # bbox_norm_1000
        named = ["thousandths"]
    return tuple(named) or tuple(units_in(_spaced(key)))


# --- what stands at the numbers -------------------------------------------------------------------

_BEHIND_NUMBERS = {
    "pixels": late_pattern(r"(?<=\d)[ ]?(?:px|pixels?|像素)(?![^\W_])", re.IGNORECASE),
    "percent": late_pattern(r"(?<=\d)[ ]?(?:%|percent\b)", re.IGNORECASE),
}
# With a bracket or comma before it, which stays beside the number
_ABOUT_SIGNS = "~≈≃"
_ABOUT = late_pattern(rf"([(\[,]?) ?[{_ABOUT_SIGNS}](?=\s?[\d.])")


def without_own_units(text: str, run: RunNumbers) -> str:
    """Replace the run's own unit behind numbers, and "about" before them, by blanks.

    >>> without_own_units("(~157 px, 150 px)", RunNumbers(ImageExtent(640, 480)))
    ' (157   , 150   )'
    """
    if any(sign in text for sign in _ABOUT_SIGNS):
        text = _ABOUT.sub(lambda sign: sign[1].rjust(len(sign[0])), text)
    if "‰" in text and is_unit_of_run("thousandths", run):
        text = text.replace("‰", " ")
    for unit, pattern in _BEHIND_NUMBERS.items():
        if pattern.search(text) and is_unit_of_run(unit, run):
            text = pattern.sub(lambda match: " " * len(match[0]), text)
    return text
