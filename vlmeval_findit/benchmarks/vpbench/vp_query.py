"""Rows of the tables: of stage 1, with the kind of question by its wording, and of stage 2."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, ClassVar

from ...core import Checked, suggestion
from ...marks import COLOURS, CONTRAST, STYLES
from ...protocol import ParseFailure
from ...storage import NESTED_CONFIG, CellError, ImageSide, PlainQuery, read_table

LETTERS = "ABCD"  # of the options

# What a reply says in place of a letter
AMBIGUOUS = ParseFailure("ambiguous")  # several options
NO_CHOICE = ParseFailure("no_choice")  # none


def check_question(question: str, options: Sequence[tuple[str, str]], answer: str) -> None:
    """Raise a CellError unless there is a question with options, and the answer is an option."""
    if not question.strip():
        raise CellError("question", "is empty")
    if not options:
        raise CellError("options", "is empty")
    if answer and answer not in dict(options):
        raise CellError("answer", f"{answer!r} is not an option: {', '.join(dict(options))}")


class QuestionKind(Enum):
    """What a question is about."""

    EXISTENCE = "existence"
    COUNTING = "counting"
    LOCALISATION = "localisation"
    REFERENCE = "reference"
    UNKNOWN = "unknown"


class HintColumn(Enum):
    """The authors' column with the hint; their code only reads ``hint``."""

    HINT = "hint"
    CONTEXT = "context"


@dataclass(frozen=True, slots=True, kw_only=True)
class VPQuery(PlainQuery):
    """A question about marks in images."""

    # ``cluster``: the first image, unmarked where known.
    hint: str = ""
    hint_column: HintColumn = HintColumn.HINT
    question: str
    options: tuple[tuple[str, str], ...]  # letter, text; without blank ones
    answer: str = ""  # the right letter; "" (unknown): asked, not scored
    amount: str = ""  # number of marks
    shapes: tuple[str, ...] = ()  # by our names: box, oval, arrow, mask, contour, tag, …
    properties: tuple[str, ...] = ()  # colours, widths, styles, as the table words them
    kind: QuestionKind = QuestionKind.UNKNOWN
    absent: bool = False  # the mark is not there, and the right option says so
    source: str = ""  # the authors' task, or the original dataset


# --- what properties say, by their words ----------------------------------------------------------

_COLOUR = re.compile(rf"\b({'|'.join(COLOURS)}|{CONTRAST})\b", re.IGNORECASE)
_WIDTH = re.compile(
    r"\b(?:line[ _]?)?(?:width|thickness)\W*(\d+)|\b(\d+) ?(?:px|pixels?)\b", re.IGNORECASE
)
_STYLE_WORDS = sorted(
    {word for names in STYLES.values() for name in names for word in name.split()}
)
_STYLE = re.compile(rf"\b({'|'.join(_STYLE_WORDS)})\b", re.IGNORECASE)


def mark_colours(properties: Iterable[str]) -> list[str]:
    """List the colours that properties name.

    >>> mark_colours(["color: Red", "tired", "width 3"])
    ['red']
    """
    return [name.lower() for each in properties for name in _COLOUR.findall(each)]


def mark_widths(properties: Iterable[str]) -> list[str]:
    """List the widths of lines that properties name.

    >>> mark_widths(["width 3", "line width: 4", "6 px", "red"])
    ['3', '4', '6']
    """
    found = [match for each in properties for match in _WIDTH.finditer(each)]
    return [match[1] or match[2] for match in found]


def mark_styles(properties: Iterable[str]) -> list[str]:
    """List the words of styles that properties name.

    >>> mark_styles(["digit round", "style: Filled", "red"])
    ['digit', 'round', 'filled']
    """
    return [name.lower() for each in properties for name in _STYLE.findall(each)]


# --- kinds of questions, by their words -----------------------------------------------------------

_MARK = (
    r"(?:marks?|markers?|box(?:es)?|rectangles?|ovals?|ellipses?|circles?|arrows?|masks?|contours?"
    r"|outlines?|tags?|labels?|points?|dots?|scribbles?|visual prompts?)"
)
_ADJECTIVES = (
    r"(?:(?:black|red|green|blue|dark|light|square|round|rounded|open|filled|plain|loose|tight"
    r"|digit|letter|number|bounding|drawn|visible|such) )*"
)
_KINDS = {  # the first that fits
    QuestionKind.COUNTING: r"\bhow many\b",
    QuestionKind.EXISTENCE: r"\b(?:is|are) there\b|\bwhich of\b.*\b(?:is|are) present\b",
    QuestionKind.LOCALISATION: r"\bwhere\b|\bwhich (?:part|corner|region|quadrant)\b",
    QuestionKind.REFERENCE: (
        rf"\b(?:{_MARK}|marked|boxed|circled|outlined|masked|tagged|labell?ed|pointed)\b"
    ),
}
_ASKS_FOR_MARK = rf"\b(?:is|are) there (?:an? |any )?{_ADJECTIVES}{_MARK}\b"
_DENIES = (
    rf"\bno {_ADJECTIVES}{_MARK}\b|\bno such\b|\babsent\b|\bnot present\b"
    rf"|\b{_MARK} (?:is|are|does|do)(?: not|n't) (?:there|exist|shown|drawn)\b"
)
_NO = r"no\b(?! \w)|none\b"


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def question_kind(question: str) -> QuestionKind:
    """Classify a question by its words.

    >>> question_kind("In which corner is the red box?")
    <QuestionKind.LOCALISATION: 'localisation'>
    >>> question_kind("What is inside the red box?")
    <QuestionKind.REFERENCE: 'reference'>
    """
    words = _plain(question)
    fitting = (kind for kind, pattern in _KINDS.items() if re.search(pattern, words))
    return next(fitting, QuestionKind.UNKNOWN)


def is_absent(question: str, right: str) -> bool:
    """Tell whether the right option says that the mark in question is not there.

    A plain "No" does if the question is whether there is a mark.

    >>> is_absent("What does the blue arrow point at?", "There is no blue arrow.")
    True
    >>> is_absent("Is there a red oval?", "No"), is_absent("Is there a dog in the box?", "No")
    (True, False)
    """
    words = _plain(question)
    answer = _plain(right)
    if re.search(_DENIES, answer):
        return True
    which = question_kind(question) is QuestionKind.EXISTENCE and re.search(r"\bwhich of\b", words)
    return bool((which or re.search(_ASKS_FOR_MARK, words)) and re.match(_NO, answer))


# --- stage 2 --------------------------------------------------------------------------------------

HOW_TO_MAKE_STAGE_2 = "python run_findit.py data get VPBench --from DIR"


class RegionRole(Enum):
    """The role of a region in a question; values are the release's keys."""

    DEFAULT = "default"
    SUBJECT = "subject"
    OBJECT = "object"


SOURCE_NAMES = {  # ``meta_source`` to its name in metrics, in the order of the paper's tables
    "MIA": "MIA",
    "SD-100": "3D",
    "emotic": "emotion",
    "mapillary_vistas": "street",
    "see_click": "GUI",
    "SGG": "SGG",
}


def check_source(value: str) -> str:
    """Return a valid source of stage 2; raise ValueError for others."""
    if value not in SOURCE_NAMES:
        raise ValueError(f"unknown source {value!r}{suggestion(value, SOURCE_NAMES)}")
    return value


@dataclass(frozen=True)
class MarkedRegion:
    """A region that a question is about."""

    image: int  # index of its image
    role: RegionRole
    box: tuple[float, float, float, float]  # x, y, w, h in pixels
    outlines: tuple[tuple[float, ...], ...] = ()  # polygons: x1, y1, x2, y2, …
    __pydantic_config__: ClassVar[Any] = NESTED_CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage2Row(PlainQuery):
    """A question about unmarked images, with ``<color> <vp>`` in its label for each mark."""

    sizes: tuple[tuple[ImageSide, ImageSide], ...]  # (width, height) of the images
    marks: tuple[MarkedRegion, ...]
    options: tuple[tuple[str, str], ...]  # letter, text
    answer: str = ""  # the right letter; "": unknown
    source: Annotated[str, Checked(check_source)]


def stage2_rows(path: Path) -> list[Stage2Row]:
    """Read the table of stage 2; see :func:`.table_files.read_table`."""
    return read_table(path, Stage2Row, HOW_TO_MAKE_STAGE_2, _checked)


def _checked(row: Stage2Row) -> Stage2Row:
    check_question(row.label, row.options, row.answer)
    return row
