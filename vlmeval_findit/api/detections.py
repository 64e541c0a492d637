"""``supervision.Detections`` in and out, where supervision is installed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..boxes.records import Truth
from .reading import Read
from .truths import truth


def to_supervision(answer: Read) -> Any:
    """An answer as ``supervision.Detections``.

    ``xyxy`` are its boxes in pixels; ``data`` has ``class_name`` where boxes have labels and
    ``frame`` where they have frames; ``class_id`` numbers the labels in alphabetical order.

    Raises:
        ModuleNotFoundError: supervision is not installed.
    """
    import supervision

    data: dict[str, Any] = {}
    ids = None
    if answer.labels:
        names, ids = np.unique(np.array(answer.labels), return_inverse=True)
        data["class_name"] = names[ids]
    if answer.frames:
        data["frame"] = np.array(answer.frames)
    boxes = np.array(answer.boxes, dtype=np.float32).reshape(-1, 4)
    return supervision.Detections(xyxy=boxes, class_id=ids, data=data)


def from_supervision(detections: Any) -> Truth:
    """What is right, from ``supervision.Detections`` as :func:`to_supervision` or a data set has
    them.

    Raises:
        ValueError: a box is none.
    """
    data = detections.data or {}
    labels = [str(name) for name in data.get("class_name", ())]
    return truth(detections.xyxy, labels, [int(frame) for frame in data.get("frame", ())])
