"""The words of questions, options and hints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from training.vp_questions.fields import Fields
from training.vp_questions.plan import Form
from vlmeval_findit.benchmarks.vpbench.vp_query import QuestionKind
from vlmeval_findit.marks.style import STYLES, Shape, Style, words_of

ABSENT = "There is no such mark in the image."
"""The option that says so."""
NO = "No, there is no such mark in the image."
YES = "Yes"


class Name(NamedTuple):
    """What a mark is called; ``colour`` is None where several are meant, of any colours.

    >>> Name(Style(Shape.OVAL), "red").one, Name(Style(Shape.OVAL), None).one
    ('a red oval', 'an oval')
    >>> Name(Style(Shape.BOX, "none"), "red").several
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
    def one(self) -> str:
        return f"{'an' if self.bare[0] in 'aeiou' else 'a'} {self.bare}"

    @property
    def several(self) -> str:
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


def hint_of(form: Form, name: Name) -> str:
    """What the mark that a question names looks like, whether or not it is there.

    >>> hint_of(Form.ONLY, Name(Style(Shape.OVAL), "red")).split("; ")[-1]
    'they are no part of what it shows. A red oval is an ellipse around an object.'
    """
    if form is Form.WHICH:
        return _DRAWN
    words = STYLES[name.style.shape][name.style.variant].words
    looks = _LOOKS[name.style.shape].format(sign=words.split()[0])
    return f"{_DRAWN} {name.one.capitalize()} is {looks}."


def question_of(kind: QuestionKind, form: Form, name: Name, fields: Fields) -> str:
    """The question about a mark.

    >>> box = Name(Style(Shape.BOX, "none"), "red")
    >>> question_of(QuestionKind.COUNTING, Form.ONLY, box, Fields.NINE)
    'How many red boxes are drawn on the image?'
    >>> question_of(QuestionKind.REFERENCE, Form.ONLY, box, Fields.NINE)
    'What is marked by the red box?'
    """
    if kind is QuestionKind.EXISTENCE:
        return WHICH if form is Form.WHICH else f"Is there {name.one} in the image?"
    if kind is QuestionKind.COUNTING:
        return f"How many {name.several} are drawn on the image?"
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
