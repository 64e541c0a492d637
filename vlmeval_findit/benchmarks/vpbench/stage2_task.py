"""The six formats of stage 2, as tasks shared by all models or for one model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import product
from typing import Any

from ...core.places import find_table, image_folder
from ...core.question import QuestionError, Task
from ...core.spelling import nearest
from ...marks.style import Shape
from . import stage2_asking as asking
from .best_marks import BY_HAND, BestMarkError, Choice, GoodMarks, best_of, by_hand, good, path
from .query import HOW_TO_MAKE_STAGE_2, Stage2Row, VPQuery, stage2_rows
from .stage2_asking import Asked, draw_missing
from .tables import MAX_NEW_TOKENS, STAGE_2, VPQuestion

IMAGES = "VPBench"  # key of the image folder


class Way(Enum):
    """How a question names its region."""

    BEST_MARK = "bvp"  # the mark that the model sees best in stage 1
    GOOD_MARK = "rbvp"  # a random one, for each question, of those that all models see well
    WORDS = "text"  # its place in words; images are not marked


_DESCRIBED = "_described"  # suffix where a hint explains the mark or the words


@dataclass(frozen=True, slots=True)
class Stage2Question(VPQuestion):
    """One format of stage 2."""

    way: Way = Way.BEST_MARK
    described: bool = False


def _question(way: Way, described: bool) -> Stage2Question:
    return Stage2Question(
        name=f"{STAGE_2}_{way.value}{_DESCRIBED * described}",
        table=STAGE_2,
        images=IMAGES,
        family_name="marks",
        max_new_tokens=MAX_NEW_TOKENS,
        way=way,
        described=described,
    )


QUESTIONS = {one.name: one for one in (_question(*both) for both in product(Way, (False, True)))}


def is_meant(name: str) -> bool:
    """Tell whether a name, perhaps mistyped, is of stage 2."""
    return name == STAGE_2 or name.startswith(f"{STAGE_2}_")


def parse(name: str) -> Stage2Question:
    """Parse a name.

    >>> parse("VPBench_Stage2_text_described").described
    True

    Raises:
        QuestionError: invalid name.
    """
    if name not in QUESTIONS:
        raise QuestionError(
            f"{name}: stage 2 is asked as {', '.join(QUESTIONS)}{nearest(name, QUESTIONS)}"
        )
    return QUESTIONS[name]


Stage2Task = Task[Stage2Question, VPQuery]

# Keys of :attr:`.Task.chosen`; the last says how many marks had to use a box for an outline.
MARK, GOOD_MARKS, SAID_BY, FROM_BOX = (
    "mark",
    "good marks",
    "source of the marks",
    "drawn from boxes",
)


def load(name: str) -> Stage2Task:
    """Load a format of stage 2.

    With ``Way.BEST_MARK`` questions still have ``<color> <vp>`` and images are unmarked.

    Raises:
        QuestionError: there is no such format.
        FileNotFoundError: there is no table.
        TableError: the table cannot be read.
        BestMarkError: the file of good marks cannot be read.
    """
    question = parse(name)
    table = find_table(question.table, HOW_TO_MAKE_STAGE_2)
    rows = stage2_rows(table)
    if question.way is Way.GOOD_MARK:
        found, who = good()
        return _by_good_marks(Task(name, question, table, {}), rows, found, who)
    if question.way is Way.WORDS:
        queries = [asking.in_words(row, question.described) for row in rows]
    else:
        queries = [asking.unsaid(row) for row in rows]
    return Task(name, question, table, {query.index: query for query in queries})


def for_model(task: Stage2Task, model: str, recorded: Mapping[str, str] | None) -> Stage2Task:
    """Return the task for one model; see :meth:`.Benchmark.for_model`.

    Raises:
        BestMarkError: the model's best mark is unknown, or the run did not record its mark.
    """
    way = task.question.way
    if way is Way.WORDS or (way is Way.GOOD_MARK and recorded in (None, task.chosen)):
        return task
    rows = stage2_rows(task.table)
    if way is Way.GOOD_MARK:
        known = _recorded(task, recorded, GOOD_MARKS)
        return _by_good_marks(task, rows, GoodMarks.named(known[GOOD_MARKS]), known[SAID_BY])
    if recorded is None:
        named = by_hand()
        choice = named or best_of(model, task.question.name)
        who = BY_HAND if named else path().name
    else:
        known = _recorded(task, recorded, MARK)
        choice, who = Choice.named(known[MARK]), known[SAID_BY]
    asked = [asking.with_mark(row, choice, task.question.described) for row in rows]
    chosen = {MARK: choice.name, SAID_BY: who, **_from_boxes(rows, [choice.shape] * len(rows))}
    return replace(_shown(task, asked), chosen=chosen, before=task)


def _by_good_marks(
    task: Stage2Task, rows: Sequence[Stage2Row], marks: GoodMarks, who: str
) -> Stage2Task:
    choices = [marks.drawn_for(row.index) for row in rows]
    asked = [
        asking.with_mark(row, choice, task.question.described)
        for row, choice in zip(rows, choices, strict=True)
    ]
    boxes = _from_boxes(rows, [choice.shape for choice in choices])
    return replace(_shown(task, asked), chosen={GOOD_MARKS: marks.name, SAID_BY: who, **boxes})


def _shown(task: Stage2Task, asked: Sequence[Asked]) -> Stage2Task:
    draw_missing(
        (one for each in asked for one in each.pictures), image_folder(task.question.images)
    )
    return replace(task, queries={each.query.index: each.query for each in asked})


def _from_boxes(rows: Sequence[Stage2Row], shapes: Sequence[Shape]) -> dict[str, str]:
    marks = sum(len(row.marks) for row in rows)
    found = sum(asking.without_outline(*each) for each in zip(rows, shapes, strict=True))
    return {FROM_BOX: f"{found} of {marks}"} if found else {}


def _recorded(task: Stage2Task, said: Any, what: str) -> Mapping[str, str]:
    if not {what, SAID_BY} <= set(said or ()):
        raise BestMarkError(f"the run did not record its {what}: {task.question.name}")
    known: Mapping[str, str] = said
    return known
