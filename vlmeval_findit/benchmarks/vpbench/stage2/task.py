"""Stage 2 as tasks: as all models share it, and as one model is asked it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ....core.places import find_table, image_folder
from ....core.question import Task
from ....marks.style import Shape
from ..best_marks import BY_HAND, BestMarkError, Choice, GoodMarks, best_of, by_hand, good, path
from ..query import VPQuery
from . import marking
from .marking import Asked
from .pictures import draw_missing
from .question import Stage2Question, Way, parse
from .row import Stage2Row
from .table import HOW_TO_MAKE, read_table

Stage2Task = Task[Stage2Question, VPQuery]

MARK, GOOD_MARKS, SAID_BY, FROM_BOX = (
    "mark",
    "good marks",
    "source of the marks",
    "drawn from boxes",
)
"""What :attr:`.Task.chosen` says: the mark or the good ones, who says so, and how many marks follow
the box for want of an outline."""


def load(name: str) -> Stage2Task:
    """A way of asking stage 2 with the rows of its table.

    Which mark is a model's best is not known yet: those questions have ``<color> <vp>`` in them
    still, and show unmarked pictures.

    Raises:
        QuestionError: there is no such way.
        FileNotFoundError: there is no table.
        TableError: it cannot be read.
        BestMarkError: the file of good marks cannot be read.
    """
    question = parse(name)
    table = find_table(question.table, HOW_TO_MAKE)
    rows = read_table(table)
    if question.way is Way.GOOD_MARK:
        found, who = good()
        return _by_good_marks(Task(name, question, table, {}), rows, found, who)
    if question.way is Way.WORDS:
        queries = [marking.in_words(row, question.hint) for row in rows]
    else:
        queries = [marking.unsaid(row) for row in rows]
    return Task(name, question, table, {query.index: query for query in queries})


def for_model(task: Stage2Task, model: str, recorded: Mapping[str, str] | None) -> Stage2Task:
    """The task as one model is asked it; see :meth:`.Benchmark.for_model`.

    Raises:
        BestMarkError: nothing says which mark the model does best with, or a run did not record
            by which it was asked.
    """
    way = task.question.way
    if way is Way.WORDS or (way is Way.GOOD_MARK and recorded in (None, task.chosen)):
        return task
    rows = read_table(task.table)
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
    asked = [marking.with_mark(row, choice, task.question.hint) for row in rows]
    chosen = {MARK: choice.name, SAID_BY: who, **_from_boxes(rows, [choice.shape] * len(rows))}
    return replace(_shown(task, asked), chosen=chosen, before=task)


def _by_good_marks(
    task: Stage2Task, rows: Sequence[Stage2Row], marks: GoodMarks, who: str
) -> Stage2Task:
    choices = [marks.drawn_for(row.index) for row in rows]
    asked = [
        marking.with_mark(row, choice, task.question.hint)
        for row, choice in zip(rows, choices, strict=True)
    ]
    boxes = _from_boxes(rows, [choice.shape for choice in choices])
    return replace(_shown(task, asked), chosen={GOOD_MARKS: marks.name, SAID_BY: who, **boxes})


def _shown(task: Stage2Task, asked: Sequence[Asked]) -> Stage2Task:
    """A task with marked pictures, which are drawn if they are not there."""
    draw_missing(
        (one for each in asked for one in each.pictures), image_folder(task.question.images)
    )
    return replace(task, queries={each.query.index: each.query for each in asked})


def _from_boxes(rows: Sequence[Stage2Row], shapes: Sequence[Shape]) -> dict[str, str]:
    marks = sum(len(row.marks) for row in rows)
    found = sum(marking.without_outline(*each) for each in zip(rows, shapes, strict=True))
    return {FROM_BOX: f"{found} of {marks}"} if found else {}


def _recorded(task: Stage2Task, said: Any, what: str) -> Mapping[str, str]:
    if not {what, SAID_BY} <= set(said or ()):
        raise BestMarkError(f"the run did not record its {what}: {task.question.name}")
    known: Mapping[str, str] = said
    return known
