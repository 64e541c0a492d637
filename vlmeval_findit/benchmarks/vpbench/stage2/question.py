"""The six ways of asking stage 2."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import product

from ....core.question import PlainQuestion, QuestionError
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
class Stage2Question(PlainQuestion):
    """One way of asking stage 2."""

    way: Way = Way.BEST_MARK
    hint: Hint = Hint.NONE

    @property
    def column(self) -> str:
        return self.name.removeprefix(PREFIX)


def _question(way: Way, hint: Hint) -> Stage2Question:
    return Stage2Question(
        name=f"{STAGE_2}_{way.value}{hint.value}",
        table=STAGE_2,
        images=IMAGES,
        family_name="marks",
        max_new_tokens=MAX_NEW_TOKENS,
        way=way,
        hint=hint,
    )


QUESTIONS = {one.name: one for one in (_question(*both) for both in product(Way, Hint))}
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
