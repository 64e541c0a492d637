"""Right answers as a model writes them: in its format and space, with numbers as coarse as its own.

A model that was taught multiples of 5 has never written another number: answers in other numbers
would teach it to write, and it would lose what it finds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..benchmarks.findit import (
    FORMAT_FAILURES,
    FindItQuery,
    reply_format,
    space_of_whole_images,
)
from ..boxes import (
    BoxAnswer,
    BoxToWrite,
    Corners,
    ReplyFormat,
    Space,
    reader,
    reply_extent,
    space_from,
    write,
)
from ..protocol import AnyDataset, Replies, Reply, ReplyRecord, Settings, read_reply
from ..scoring import Run

STEPS = (1.0, 0.1, 0.01, 0.001)  # Numbers of answers are multiples of one of these

COARSER = (10, 5)  # Or of this many steps, if the model's own numbers are

CLOSE = 0.8

_FEWEST = 20  # Different numbers that show what a model's are multiples of
_SHARE = 0.99  # Of all numbers, that must be multiples


class RightAnswer(NamedTuple):
    """A reply that scores 100, and the space of its numbers."""

    text: str
    space: Space


class RightAnswers(NamedTuple):
    """The right answers of a run's queries by index."""

    by_index: Mapping[int, RightAnswer]
    coarse_step: float | None  # What numbers are multiples of, if more than whole numbers


def right_answers(
    run: Run, dataset: AnyDataset, indices: Sequence[int], replies: Replies
) -> RightAnswers:
    """Return the right answers of queries; a query whose answer scores less has none.

    Numbers are whole, or thousandths of the image: coarser if the model's own are; finer where that
    scores less, or moves a box to an IoU below :data:`CLOSE`.

    Args:
        run: a run with an identity, which says its space.
        dataset: its queries, in the format of the answers.
        indices: of the queries.
        replies: of the run.
    """
    by_index = {reply.index: reply for reply in replies}
    asked = [_AnsweredQuery(run, by_index[index], dataset.queries[index]) for index in indices]
    if not asked:
        return RightAnswers({}, None)
    usual = asked[0].usual_step
    coarse = _coarse_step(_numbers_of(run, replies), usual)
    steps = [*([] if coarse is None else [coarse]), *STEPS[STEPS.index(usual) :]]
    answers: dict[int, RightAnswer] = {}
    close = set[int]()
    for step in steps:
        rest = [each for each in asked if each.query.index not in close]
        if not rest:
            break
        written = [each.reply(dataset.variant, step) for each in rest]
        scored = run.benchmark.score_batch(run.model, dataset, written, Settings(), None)
        for each, reply, row in zip(rest, written, scored.rows, strict=True):
            adheres = row.reason is None or not each.query.truth.boxes
            if adheres and run.benchmark.query_score(row) == 100.0:
                answers[row.index] = RightAnswer(reply.text, each.space)
                if min(BoxAnswer.of(row).ious or (), default=1.0) >= CLOSE:
                    close.add(row.index)
    return RightAnswers(answers, coarse)


def _numbers_of(run: Run, replies: Replies) -> list[float]:
    """Return the numbers of a run's replies, in its representation and space."""
    variant: Any = run.variant  # Of FindIt
    numbers: list[float] = []
    for reply in replies:
        fmt = reply_format(run.model, variant, Settings(), _row_of(run, reply))
        parsed = read_reply(reply, reader(fmt), FORMAT_FAILURES)
        for box in parsed.boxes:
            numbers += fmt.numbers.from_corners(box)
    return numbers


def _coarse_step(numbers: Sequence[float], usual: float) -> float | None:
    """Return the coarser step of which numbers are multiples; None if they are not, or too few.

    >>> _coarse_step([5.0 * each for each in range(40)], 1.0)
    5.0
    >>> _coarse_step([3.0 * each for each in range(40)], 1.0) is None
    True
    """
    if len({*numbers}) < _FEWEST:
        return None
    for factor in COARSER:
        step = usual * factor
        multiples = sum(abs(n / step - round(n / step)) < 1e-6 for n in numbers)
        if multiples >= _SHARE * len(numbers):
            return step
    return None


def _row_of(run: Run, reply: Reply) -> str:
    """Return the row of the model table by which a reply is read; "" if there is none."""
    identity = run.provenance.identity
    row = identity.answering.row if identity else None
    return reply.recorded.model.get("row") or row or ""


class _AnsweredQuery:
    """A query with how the model replied to it."""

    def __init__(self, run: Run, reply: Reply, query: Any) -> None:
        self.model = run.model
        self.query = query
        identity = run.provenance.identity
        recorded = identity.space if identity else None
        space = space_from(recorded or reply.recorded.space or {})
        runs_here = identity is not None and identity.answering.runs_here
        self.space = space_of_whole_images(space) if runs_here else space
        self.row = _row_of(run, reply)

    @property
    def usual_step(self) -> float:
        """Return the step of whole numbers, or of fractions of the image."""
        extent = reply_extent(self.space, self.query.width, self.query.height)
        return 1.0 if max(extent.width, extent.height) > 2 else STEPS[-1]

    def reply(self, variant: Any, step: float) -> Reply:
        """Write the right answer in multiples of a step."""
        fmt = reply_format(self.model, variant, Settings(), self.row)
        text = _answer(self.query, fmt, self.space, step)
        recorded = ReplyRecord(space=self.space.as_dict(), model={"row": self.row})
        return Reply(self.query.index, text, recorded)


def _answer(query: FindItQuery, fmt: ReplyFormat, space: Space, step: float) -> str:
    """Write the boxes of a query by frame, by label in the order of the prompt, from the left."""
    truth = query.truth
    width, height, left, top = reply_extent(space, query.width, query.height)
    across = width / query.width
    down = height / query.height

    def rounded(box: Corners) -> Corners:
        """Turn pixels of the original image into numbers of a reply."""
        x1, y1, x2, y2 = box
        placed = x1 * across + left, y1 * down + top, x2 * across + left, y2 * down + top
        numbers = fmt.numbers.from_corners(placed)
        return fmt.numbers.to_corners([step * round(n / step) for n in numbers])

    labels = truth.labels or ("",) * len(truth.boxes)
    objects = sorted(
        zip(truth.frames, labels, truth.boxes, strict=True),
        key=lambda each: (each[0], query.label.find(each[1]), each[2]),
    )
    boxes = [BoxToWrite(rounded(box), label, frame) for frame, label, box in objects]
    digits = max(0, len(f"{step:g}") - len("0.")) if step < 1 else 0
    return write(boxes, fmt, digits)
