"""Fewer frames of a video, evenly spaced (protocol section 2)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...boxes.records import Truth
from .query import Query


def thin(count: int, frames: int) -> list[int]:
    """The indices that thinning ``count`` frames to ``frames`` keeps (protocol section 2)."""
    if frames >= count:
        return list(range(count))
    indices: list[int] = np.linspace(0, count - 1, frames, dtype=int).tolist()
    return indices


def thinned(query: Query, frames: int) -> Query:
    """A query with at most so many of its frames: paths, frame indices and boxes alike."""
    kept = thin(len(query.images), frames)
    if len(kept) == len(query.images):
        return query
    place = {old: new for new, old in enumerate(kept)}
    truth = query.truth
    boxes = [i for i, frame in enumerate(truth.frames) if frame in place]
    return replace(
        query,
        images=tuple(query.images[i] for i in kept),
        frame_indices=tuple(query.frame_indices[i] for i in kept) if query.frame_indices else (),
        truth=Truth(
            boxes=tuple(truth.boxes[i] for i in boxes),
            frames=tuple(place[truth.frames[i]] for i in boxes),
            labels=tuple(truth.labels[i] for i in boxes) if truth.labels else (),
            masks=tuple(truth.masks[i] for i in boxes) if truth.masks else (),
            ignored=tuple(
                one._replace(frame=place[one.frame]) for one in truth.ignored if one.frame in place
            ),
        ),
    )
