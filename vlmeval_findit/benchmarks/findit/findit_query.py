"""One row of an annotation table: the thinning of its frames, its label and another as reviewed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

import numpy as np

from ...boxes import Corners, Truth
from ...protocol import Answer
from .variant import FindItVariant

T = TypeVar("T")


class Sighting(NamedTuple):
    """An image that shows the object in its scene, and its box there (x1, y1, x2, y2 in pixels)."""

    image: str
    box: Corners


@dataclass(frozen=True, slots=True)
class FindItQuery:
    """One row of an annotation table, thinned to the dataset's frames."""

    index: int
    label: str  # A name, an expression or, for multi-label queries, names separated by commas
    width: int  # Pixels of the original image
    height: int
    images: tuple[str, ...]  # The scene, or its frames in order; relative to the image folder
    truth: Truth
    support: tuple[str, ...] = ()  # Reference shots, relative to the image folder
    caption: str = ""
    frame_indices: tuple[int, ...] = ()
    sightings: tuple[Sighting, ...] = ()  # Where the shots are from, perhaps the scene
    tags: Mapping[str, str] = field(default_factory=dict)  # Custom slices, by kind
    cluster: str = ""  # Queries of a cluster are not independent; default: image or video

    def __post_init__(self) -> None:
        if not self.cluster and self.images:
            first = self.images[0]
            cluster = video_of(first) if len(self.images) > 1 else first
            object.__setattr__(self, "cluster", cluster)


def asked_labels(query: FindItQuery, variant: FindItVariant) -> tuple[str, ...]:
    """Return the labels or the expression that a query asks for; none where it names nothing."""
    if variant.family.has_references:
        return ()  # Its prompt shows the object and names nothing
    if not variant.multilabel:
        return (query.label,) if query.label else ()
    return tuple(label.strip() for label in query.label.split(",") if label.strip())


def video_of(frame: str) -> str:
    """Return a frame's video: its path without the frame's number.

    >>> video_of("000005/rgb/00003.png"), video_of("qyrH8GUlgC4_f008606.jpg")
    ('000005/rgb', 'qyrH8GUlgC4')
    """
    return re.sub(r"[_/]f?\d+\.\w+$", "", frame)


def kept_frames(count: int, frames: int) -> list[int]:
    """List the indices that thinning ``count`` frames to ``frames`` keeps (protocol section 2)."""
    if frames >= count:
        return list(range(count))
    indices: list[int] = np.linspace(0, count - 1, frames, dtype=int).tolist()
    return indices


def thinned_query(query: FindItQuery, frames: int) -> FindItQuery:
    """Thin a query to at most ``frames`` frames."""
    if len(query.images) <= frames:
        return query
    selected = kept_frames(len(query.images), frames)
    new_frames = {old: new for new, old in enumerate(selected)}
    truth = query.truth
    boxes = [at for at, frame in enumerate(truth.frames) if frame in new_frames]
    ignored = [item for item in truth.ignored if item.frame in new_frames]
    return replace(
        query,
        images=_chosen(query.images, selected),
        frame_indices=_chosen(query.frame_indices, selected),
        truth=Truth(
            boxes=_chosen(truth.boxes, boxes),
            frames=tuple(new_frames[truth.frames[at]] for at in boxes),
            labels=_chosen(truth.labels, boxes),
            masks=_chosen(truth.masks, boxes),
            ignored=tuple(item._replace(frame=new_frames[item.frame]) for item in ignored),
        ),
    )


def _chosen(values: tuple[T, ...], indices: list[int]) -> tuple[T, ...]:
    """Return the values at some indices; none if there are no values at all."""
    return tuple(values[at] for at in indices) if values else ()


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
