"""Annotations and answers in, hits out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .annotations import Annotation
from .overlap import hits, iou
from .predictions import Corners, MissReason, PredictedBox

_NOWHERE: Corners = (0.0, 0.0, 0.0, 0.0)
"""Stands for a box that is not there: without area it has IoU 0 with everything."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One expression and how its answer did."""

    annotation: Annotation
    iou: float
    """In 32 bits; NaN where the box has none, 0 where there is no box."""
    hits: tuple[bool, ...]
    """For each of the ten thresholds whether it was passed."""
    reason: MissReason | None
    """Why there is no box; None where there is one, right or wrong."""


def corners(annotation: Annotation) -> Corners:
    """The truth as x1, y1, x2, y2 in pixels, in 64-bit floats."""
    x, y, width, height = annotation.bbox
    return x, y, x + width, y + height


def judge(annotations: Sequence[Annotation], answers: Sequence[PredictedBox]) -> list[Judged]:
    """How the answers did, in the order of the annotations.

    Raises:
        ValueError: there are not as many answers as annotations.
    """
    if len(annotations) != len(answers):
        raise ValueError(f"{len(answers)} answers to {len(annotations)} annotations")
    truths = _boxes([corners(one) for one in annotations])
    said = _boxes([answer.box or _NOWHERE for answer in answers])
    values = iou(truths, said)
    return [
        Judged(annotation, value, tuple(passed), answer.reason)
        for annotation, answer, value, passed in zip(
            annotations, answers, values.tolist(), hits(values).tolist(), strict=True
        )
    ]


def _boxes(boxes: Sequence[Corners]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    with np.errstate(over="ignore"):  # 1e300 is a number that a model can say
        return np.array(boxes, dtype=np.float32).reshape(-1, 4)
