"""``supervision.Detections`` in and out, where supervision is installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..boxes.records import Truth
from .inputs import truth
from .reply_boxes import ReplyBoxes


def to_supervision(answer: ReplyBoxes) -> Any:
    """Convert the boxes of a reply to ``supervision.Detections``.

    Returns:
        ``xyxy`` are (N, 4) 32-bit corners in pixels of the original image.  With labels,
        ``data["class_name"]`` has them and ``class_id`` numbers them in alphabetical order; with
        frames, ``data["frame"]`` has them.

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


def from_supervision(
    detections: Any, classes: Sequence[str] | Mapping[int, str] | None = None
) -> Truth:
    """Convert ``supervision.Detections``, of :func:`to_supervision` or a dataset, to a truth.

    Args:
        detections: ``xyxy`` in pixels of the original image; ``data["class_name"]`` are labels.
        classes: the names of ``class_id``, if the detections lack them (``dataset.classes``);
            ``()``: without labels.

    Raises:
        ValueError: a box is none, or a class has no name.
    """
    data = detections.data or {}
    labels = [str(name) for name in data.get("class_name", ())]
    ids = detections.class_id
    numbers: list[int] = [] if labels or ids is None else ids.tolist()
    if numbers and classes is None:
        raise ValueError(
            f"the detections have class_id ({numbers[0]} …) and no names: "
            "from_supervision(detections, classes=dataset.classes), or classes=() to leave them out"
        )
    if classes:
        names = dict(classes if isinstance(classes, Mapping) else enumerate(classes))
        unknown = sorted({*numbers} - {*names})
        if unknown:
            raise ValueError(f"class_id {unknown[0]} has no name among {len(names)} classes")
        labels = labels or [names[number] for number in numbers]
    return truth(detections.xyxy, labels, [int(frame) for frame in data.get("frame", ())])
