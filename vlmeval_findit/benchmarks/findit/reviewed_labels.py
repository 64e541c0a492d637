"""Labels as reviewers judge them, and queries whose label is another accepted answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from ...boxes import Truth
from ...protocol import Answer
from .findit_query import FindItQuery
from .variant import FindItVariant

QueryT = TypeVar("QueryT", bound=FindItQuery)


def label_of(query: FindItQuery) -> Answer | None:
    """Return a query's label; None of a video, whose boxes lie in many images."""
    if len(query.images) > 1:
        return None
    return Answer(query.truth.boxes, query.truth.labels)


def with_answer(query: QueryT, variant: FindItVariant, answer: Answer) -> QueryT:
    """Return a query whose label is an accepted answer; objects that do not count stay.

    A ValueError says why it cannot be its label.
    """
    before = label_of(query)
    if before is None:
        raise ValueError(f"row {query.index}: labels of videos cannot be reviewed")
    if answer == before:
        return query
    if variant.multilabel and answer.boxes and not answer.labels:
        why = "its accepted answer names no classes, which the query asks for"
        raise ValueError(f"row {query.index}: {why}")
    if answer.labels and not variant.multilabel:
        why = "its accepted answer names classes, which the query does not ask for"
        raise ValueError(f"row {query.index}: {why}")
    # Only a box that was there before has a known outline.
    masks = dict(zip(query.truth.boxes, query.truth.masks, strict=False))
    truth = Truth(
        boxes=answer.boxes,
        frames=(0,) * len(answer.boxes),
        labels=answer.labels,
        masks=tuple(masks.get(box) for box in answer.boxes) if masks else (),
        ignored=query.truth.ignored,
    )
    return replace(query, truth=truth)
