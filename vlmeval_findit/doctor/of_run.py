"""A run's replies for the coordinate check: numbers before any space, with the truth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..benchmarks.findit.metrics import METRICS, sums
from ..benchmarks.findit.run_space import reply_format
from ..benchmarks.findit.scoring import MatchedReply, match_replies
from ..benchmarks.findit.variant import Variant
from ..boxes.matching import match
from ..boxes.representation import NO_RECTANGLE, Judging
from ..boxes.spaces import space_from
from ..core.identity import Identity
from ..core.replies import Reply
from ..core.scored_row import add_up
from ..core.settings import Settings
from .conventions import ORDERS, Convention, row_of
from .evidence import Query
from .frames import Floats
from .reading import located


class NotBoxesError(ValueError):
    """A run without boxes, or with replies in several spaces."""


@dataclass(frozen=True)
class RunReplies:
    """The replies of a run and the convention that its score reads them in."""

    declared: Convention
    matched: Sequence[MatchedReply]

    @property
    def queries(self) -> list[Query]:
        """Return a query per image, or per frame of a video."""
        return [one for reply in self.matched for one in _queries(reply, self.declared)]


def replies_of_run(
    model: str,
    task: Any,
    replies: Sequence[Reply],
    settings: Settings,
    run: Identity | None,
) -> RunReplies:
    """Read a run's replies as its score does.

    Raises:
        NotBoxesError: the answers are no boxes, or in several spaces.
        SpaceError: the coordinate space is unknown.
    """
    question = task.question
    if not isinstance(question, Variant) or question.judged is not Judging.BY_OVERLAP:
        raise NotBoxesError(f"{question.name}: its answers are no boxes")
    matched, spaces = match_replies(model, task, replies, settings, run)
    if len(spaces) > 1:
        raise NotBoxesError(f"{question.name}: its replies are in {len(spaces)} coordinate spaces")
    space = spaces[0].space if spaces else space_from("grid1000")
    row = run.answering.row or "" if run is not None else ""
    name = reply_format(model, question, settings, row).numbers.name
    # Other formats, such as eight numbers, were read into corners.
    order = ORDERS.get(name, ORDERS["xyxy"])
    return RunReplies(Convention(row_of(space), order), matched)


def _queries(one: MatchedReply, declared: Convention) -> Iterator[Query]:
    query, reading = one.query, one.reading
    truth = query.truth
    where = reading.frames or [0] * len(reading.boxes)
    if reading.boxes:
        corners = np.array(reading.boxes, float).T
        numbers = (declared.order.numbers @ corners).T.tolist()
    for frame in sorted({0, *truth.frames, *where}):
        true = [i for i, at in enumerate(truth.frames) if at == frame]
        said = [
            i
            for i, at in enumerate(where)
            if at == frame and tuple(reading.boxes[i]) != NO_RECTANGLE
        ]
        yield Query(
            query.width,
            query.height,
            query.images[0],
            [truth.boxes[i] for i in true],
            [numbers[i] for i in said],
            [truth.labels[i] for i in true] if truth.labels and reading.labels else (),
            [reading.labels[i] for i in said] if truth.labels and reading.labels else (),
        )


def figures_read_in(run: RunReplies, convention: Convention) -> dict[str, float | None]:
    """Compute F1@0.5 and mIoU in percent with the replies read in a convention."""
    readings = [one.reading for one in run.matched]
    pixels = iter(_in_pixels(run, convention).T.tolist())
    read = [
        reading._replace(boxes=tuple(tuple(next(pixels)) for _ in reading.boxes))
        for reading in readings
    ]
    matched = match(read, [one.query.truth for one in run.matched])
    total = add_up(map(sums, read, matched))
    return {metric.name: metric.value(total) for metric in METRICS[:2]}


def _in_pixels(run: RunReplies, convention: Convention) -> Floats:
    """Return (4, n) corners of all boxes in pixels, in the order of the replies."""
    boxes = [box for one in run.matched for box in one.reading.boxes]
    corners = np.array(boxes, float).reshape(-1, 4)
    sizes = np.array([(m.query.width, m.query.height) for m in run.matched], float).T
    owner = np.repeat(np.arange(len(run.matched)), [len(m.reading.boxes) for m in run.matched])
    frame = convention.space.frame(sizes.reshape(2, -1)).of(owner)
    numbers = run.declared.order.numbers @ corners.T
    pixels: Floats = located(numbers, frame, convention.order.corners).corners
    pixels = pixels * np.tile(sizes[:, owner], (2, 1))
    return pixels
