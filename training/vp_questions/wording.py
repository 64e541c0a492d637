"""The words of questions, options and hints: fields of an image, names of marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from training.vp_questions.plan import Fields, Form, Rng
from vlmeval_findit.benchmarks.vpbench import QuestionKind
from vlmeval_findit.boxes import Corners
from vlmeval_findit.marks import COLOURS, STYLES, Shape, Style, default_style, words_of

# --- fields ---------------------------------------------------------------------------------------


class Field(NamedTuple):
    """A field: its place from the left and from the top, counted from 0."""

    across: int
    down: int


def _fields(across: int, names: Sequence[str]) -> Mapping[Field, str]:
    """Number the names of fields from the left and from the top."""
    return {Field(i % across, i // across): name for i, name in enumerate(names)}


FIELD_NAMES: Mapping[Fields, Mapping[Field, str]] = {
    Fields.FOUR: _fields(2, ("top left", "top right", "bottom left", "bottom right")),
    Fields.NINE: _fields(
        3,
        (
            "top left",
            "top centre",
            "top right",
            "centre left",
            "centre",
            "centre right",
            "bottom left",
            "bottom centre",
            "bottom right",
        ),
    ),
}

# Least distance of a centre from the borders of its field, as a share of the image's side
_MARGIN = 0.06

_LEAST_INSIDE = 0.6  # Least share of a box's area in the field of its centre


def field_of(box: Corners, width: int, height: int, fields: Fields) -> str | None:
    """Return the field of a box; None if it is doubtful.

    >>> field_of((10, 10, 30, 30), 100, 100, Fields.FOUR)
    'top left'
    >>> field_of((10, 35, 30, 55), 100, 100, Fields.FOUR) is None  # its centre is at 45 %
    True

    Args:
        box: (x1, y1, x2, y2) in pixels of the image.
        width: of the image, in pixels.
        height: of the image, in pixels.
        fields: the number of fields.
    """
    across = _place(box[0], box[2], width, fields)
    down = _place(box[1], box[3], height, fields)
    if across is None or down is None:
        return None
    inside = _inside(box[0], box[2], width, fields, across)
    inside *= _inside(box[1], box[3], height, fields, down)
    return FIELD_NAMES[fields][Field(across, down)] if inside >= _LEAST_INSIDE else None


def _place(first: float, last: float, side: int, fields: Fields) -> int | None:
    """Return the place of a centre along one side; None near a border between fields."""
    centre = (first + last) / 2 / side
    if not 0.0 <= centre < 1.0:
        return None
    borders = (number / fields.value for number in range(1, fields.value))
    near = any(abs(centre - border) < _MARGIN for border in borders)
    return None if near else int(centre * fields.value)


def _inside(first: float, last: float, side: int, fields: Fields, place: int) -> float:
    """Return the share of an interval that lies in a field."""
    begin = side * place / fields.value
    end = side * (place + 1) / fields.value
    return max(min(last, end) - max(first, begin), 0.0) / max(last - first, 1e-9)


# --- marks ----------------------------------------------------------------------------------------

ABSENT = "There is no such mark in the image."  # The option for an absent mark
NO = "No, there is no such mark in the image."
YES = "Yes"


class MarkName(NamedTuple):
    """The name of a mark; ``colour`` is None for marks of several colours.

    >>> MarkName(Style(Shape.OVAL), "red").singular, MarkName(Style(Shape.OVAL), None).singular
    ('a red oval', 'an oval')
    >>> MarkName(Style(Shape.BOX, "none"), "red").plural
    'red boxes'
    """

    style: Style
    colour: str | None

    @property
    def bare(self) -> str:
        if self.colour is None:
            return STYLES[self.style.shape][self.style.variant].words
        return words_of(self.style, self.colour)

    @property
    def singular(self) -> str:
        return f"{'an' if self.bare[0] in 'aeiou' else 'a'} {self.bare}"

    @property
    def plural(self) -> str:
        return f"{self.bare}{'es' if self.bare.endswith('x') else 's'}"


_LOOKS: Mapping[Shape, str] = {
    Shape.BOX: "a rectangle around an object",
    Shape.OVAL: "an ellipse around an object",
    Shape.ARROW: "an arrow whose tip touches an object",
    Shape.MASK: "a see-through tint over an object",
    Shape.CONTOUR: "a line along the outline of an object",
    Shape.TAG: "a {sign} on a plate in the middle of an object",
    Shape.POINT: "a small disc or square in the middle of an object",
    Shape.SCRIBBLE: "a stroke of a pen across an object",
}

_DRAWN = "Marks were drawn on the image; they are no part of what it shows."


def hint_of(form: Form, name: MarkName) -> str:
    """Describe the mark that a question names, whether or not it is there.

    >>> hint_of(Form.ONLY, MarkName(Style(Shape.OVAL), "red")).split("; ")[-1]
    'they are no part of what it shows. A red oval is an ellipse around an object.'
    """
    if form is Form.WHICH:
        return _DRAWN
    words = STYLES[name.style.shape][name.style.variant].words
    looks = _LOOKS[name.style.shape].format(sign=words.split()[0])
    return f"{_DRAWN} {name.singular.capitalize()} is {looks}."


def question_of(kind: QuestionKind, form: Form, name: MarkName, fields: Fields) -> str:
    """Return the question about a mark.

    >>> box = MarkName(Style(Shape.BOX, "none"), "red")
    >>> question_of(QuestionKind.COUNTING, Form.ONLY, box, Fields.NINE)
    'How many red boxes are drawn on the image?'
    >>> question_of(QuestionKind.REFERENCE, Form.ONLY, box, Fields.NINE)
    'What is marked by the red box?'
    """
    if kind is QuestionKind.EXISTENCE:
        return WHICH if form is Form.WHICH else f"Is there {name.singular} in the image?"
    if kind is QuestionKind.COUNTING:
        return f"How many {name.plural} are drawn on the image?"
    if kind is QuestionKind.LOCALISATION:
        return _WHERE[fields].format(name=name.bare)
    return f"What is marked by the {name.bare}?"


WHICH = "Which of these marks is present in the image?"

_WHERE = {
    Fields.FOUR: "In which quadrant of the image is the centre of what the {name} marks?",
    Fields.NINE: (
        "The image is divided into nine equal fields, three by three. "
        "Where is the centre of what the {name} marks?"
    ),
}


# --- marks that are not drawn ---------------------------------------------------------------------

# Pairs of shapes that may look the same: the contour of a square is a box.
_SAME_LOOK = (
    {Shape.CONTOUR, Shape.BOX},
    {Shape.CONTOUR, Shape.OVAL},
    {Shape.CONTOUR, Shape.MASK},
    {Shape.MASK, Shape.BOX},
    {Shape.MASK, Shape.OVAL},
)


def other_colour(colour: str, rng: Rng) -> str:
    """Return a random other colour."""
    others = [other for other in COLOURS if other != colour]
    return others[rng.randint(len(others))]


def other_marks(drawn: MarkName, rng: Rng) -> list[MarkName]:
    """Return three different marks: of another colour, of another shape, of both."""
    assert drawn.colour is not None
    shape, another = _other_styles(drawn.style, rng)[:2]
    colour = other_colour(drawn.colour, rng)
    return [
        MarkName(drawn.style, colour),
        MarkName(shape, drawn.colour),
        MarkName(another, other_colour(drawn.colour, rng)),
    ]


def undrawn_mark(drawn: MarkName, there: set[str], rng: Rng) -> MarkName:
    """Return a mark of another colour or shape than the marks in the image."""
    if drawn.colour is not None and rng.randint(2):
        colours = [c for c in COLOURS if MarkName(drawn.style, c).bare not in there]
        return MarkName(drawn.style, colours[rng.randint(len(colours))])
    return MarkName(_other_styles(drawn.style, rng)[0], drawn.colour)


def _other_styles(style: Style, rng: Rng) -> list[Style]:
    """Return the other shapes in random order, without those that may look the same."""
    others = [shape for shape in Shape if shape is not style.shape]
    shapes = [shape for shape in others if {shape, style.shape} not in _SAME_LOOK]
    return [default_style(shapes[i]) for i in rng.permutation(len(shapes))]
