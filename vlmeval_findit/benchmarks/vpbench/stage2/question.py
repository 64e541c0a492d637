"""The six ways of asking stage 2."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import product

from ....core.question import QuestionError
from ....core.spelling import nearest
from .. import PREFIX
from ..question import MAX_NEW_TOKENS
from ..tables import STAGE_2

IMAGES = "VPBench"
"""The key of the image folder."""


class Way(Enum):
    """How a question says which region it is about."""

    BEST_MARK = "bvp"
    """By a mark of the shape and the colour that the model did best with in stage 1."""
    GOOD_MARK = "rbvp"
    """By a mark that is drawn by lot, question by question, from those all models do well with."""
    WORDS = "text"
    """By its place, in words; the picture is not marked."""


class Hint(Enum):
    """Whether a line above the question explains the mark, or the words; by the end of a name."""

    NONE = ""
    DESCRIBED = "_described"


@dataclass(frozen=True, slots=True)
class Stage2Question:
    """One way of asking stage 2."""

    way: Way
    hint: Hint
    max_new_tokens: int = MAX_NEW_TOKENS
    has_references: bool = False
    frames: int = 1
    format: str = ""
    format_place: tuple[int, ...] = ()
    format_cell: tuple[str, str] = ("", "")
    in_boxes: bool = False

    @property
    def name(self) -> str:
        return f"{STAGE_2}_{self.way.value}{self.hint.value}"

    @property
    def column(self) -> str:
        return self.name.removeprefix(PREFIX)

    @property
    def table(self) -> str:
        return STAGE_2

    @property
    def images(self) -> str:
        return IMAGES

    @property
    def family_name(self) -> str:
        return "marks"


QUESTIONS = {one.name: one for one in (Stage2Question(*both) for both in product(Way, Hint))}
"""By their names."""


def is_meant(name: str) -> bool:
    """Whether a name is of stage 2, or meant to be."""
    return name == STAGE_2 or name.startswith(f"{STAGE_2}_")


def parse(name: str) -> Stage2Question:
    """The way of asking that a name stands for.

    >>> parse("VPBench_Stage2_text_described").hint
    <Hint.DESCRIBED: '_described'>

    Raises:
        QuestionError: it stands for none.
    """
    if name not in QUESTIONS:
        raise QuestionError(
            f"{name}: stage 2 is asked as {', '.join(QUESTIONS)}{nearest(name, QUESTIONS)}"
        )
    return QUESTIONS[name]
