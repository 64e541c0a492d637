"""The boxes of an answer, as a row's details have them: how they are written, and how read.

Nobody else knows the keys of details that boxes have; the benchmarks whose answers are boxes write
them here, and who draws, compares or exports boxes asks :meth:`BoxAnswer.of`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, NamedTuple

from ..protocol import ScoredRow
from .box_records import NO_BOX, MatchResult, ParsedReply
from .confidences import Confidences
from .lenient.lenient_parsing import LenientReply
from .matching import as_decimal
from .representation import Corners, MatchRule

LENIENT = "lenient"
_CONFIDENCES = "confidences"

StoredBox = Sequence[float | None]  # (x1, y1, x2, y2) in pixels; None: not finite


class BoxPair(NamedTuple):
    """Indices of a box and its object; ``iou`` is None for points."""

    box: int
    target: int
    iou: float | None
    labels_agree: bool
    hit: bool


@dataclass(frozen=True, slots=True)
class LenientBoxes:
    """What a lenient reading would take of a reply; the boxes of the strict one come first."""

    repairs: Sequence[str]
    boxes: Sequence[StoredBox]
    labels: Sequence[str]  # One a box; none: nothing is stated
    frames: Sequence[int]  # One a box
    recoverable: Sequence[int]  # Objects that only it hits


class BoxAnswer(NamedTuple):
    """The boxes of an answer, in the order of the reply, and what they were matched with.

    Without boxes it is that of a failed call, of a reply without a box, or of no box answer at all.
    """

    boxes: Sequence[StoredBox]
    labels: Sequence[str]  # One a box; none: the reply states none
    frames: Sequence[int]  # One a box; 0 for images
    ignored: frozenset[int]  # Boxes on objects that do not count
    confidences: Confidences  # One a box, by definition
    # One an object: the box that it was matched with, whether that hits it, its IoU (None: points)
    assigned: Sequence[int | None]
    hits: Sequence[bool]
    ious: Sequence[float] | None
    labels_agree: Sequence[bool]
    lenient: LenientBoxes | None  # None: it would take nothing else

    @classmethod
    def of(cls, row: ScoredRow) -> BoxAnswer:
        """Read the boxes of a row's details; of rows without any there are none."""
        details = row.details
        boxes = details.get("boxes", ())
        assigned = details.get("assigned", ())
        return cls(
            boxes=boxes,
            labels=details.get("labels") or (),
            frames=details.get("frames") or (0,) * len(boxes),
            ignored=frozenset(details.get("ignored", ())),
            confidences=details.get(_CONFIDENCES, {}),
            assigned=assigned,
            hits=details.get("hits", ()),
            ious=details.get("ious"),
            labels_agree=details.get("labels_agree") or (True,) * len(assigned),
            lenient=_lenient_in(details.get(LENIENT)),
        )

    def labels_or(self, usual: str) -> Sequence[str]:
        """Return the label of each box; ``usual`` where the reply states none."""
        return self.labels or (usual,) * len(self.boxes)

    def confidences_by(self, definition: str) -> Sequence[float | None]:
        """Return the confidence of each box by a definition; None where it has none."""
        known = self.confidences.get(definition)
        return (None,) * len(self.boxes) if known is None else known

    @property
    def pairs(self) -> list[BoxPair]:
        """The assigned boxes and objects."""
        result = []
        for target, box in enumerate(self.assigned):
            if box is not None:
                iou = self.ious[target] if self.ious is not None else None
                agree = self.labels_agree[target]
                result.append(BoxPair(box, target, iou, agree, self.hits[target]))
        return result


def _lenient_in(stored: Mapping[str, Any] | None) -> LenientBoxes | None:
    if not stored:
        return None
    boxes = stored["boxes"]
    return LenientBoxes(
        repairs=stored["repairs"],
        boxes=boxes,
        labels=stored.get("labels") or (),
        frames=stored.get("frames") or (0,) * len(boxes),
        recoverable=stored["recoverable"],
    )


def finite_corners(box: StoredBox) -> Corners | None:
    """Return the corners of a box; None unless all its numbers are finite."""
    x1, y1, x2, y2 = box
    if x1 is None or y1 is None or x2 is None or y2 is None:
        return None
    return x1, y1, x2, y2


# --- what is written ------------------------------------------------------------------------------

_OF_OVERLAPS = ("ious", "tp", "n_pred", "n_gt")  # Points have no extent that could overlap


def match_details(matched: MatchResult, rule: MatchRule) -> dict[str, Any]:
    """Return details of boxes and objects: boxes in pixels of the original image."""
    details: dict[str, Any] = {
        "boxes": _finite(matched.boxes),
        "ious": list(map(as_decimal, matched.ious)),
        "hits": list(matched.hits),
        "assigned": [None if box == NO_BOX else box for box in matched.assigned],
        "tp": matched.tp,
        "n_pred": matched.counted,
        "n_gt": len(matched.ious),
    }
    if rule is MatchRule.POINT_IN_OBJECT:
        details = {name: value for name, value in details.items() if name not in _OF_OVERLAPS}
    if matched.ignored:
        details["ignored"] = list(matched.ignored)
    if matched.labels_agree:
        details["labels_agree"] = list(matched.labels_agree)
    return details


def stated_details(reading: ParsedReply) -> dict[str, Any]:
    """Return the labels and frames of boxes, where a reply states any."""
    stated = {"labels": list(reading.labels), "frames": list(reading.frames)}
    return {name: values for name, values in stated.items() if values}


def recovered_objects(strict: MatchResult, lenient: MatchResult) -> tuple[int, ...]:
    """List the indices of the objects that only a lenient reading finds."""
    hits = zip(lenient.hits, strict.hits, strict=True)
    return tuple(at for at, (lenient_hit, hit) in enumerate(hits) if lenient_hit and not hit)


def lenient_details(
    strict: MatchResult, lenient: LenientReply, matched: MatchResult
) -> dict[str, Any]:
    """Return details of a lenient reading: boxes in pixels, those of the strict reading first."""
    values = {
        "repairs": [repair.value for repair in lenient.repairs],
        "boxes": _finite(matched.boxes),
        "hits": list(matched.hits),
        "recoverable": list(recovered_objects(strict, matched)),
    }
    return {LENIENT: values | stated_details(lenient.reading)}


def mask_details(empty: int, matched: MatchResult) -> dict[str, Any]:
    """Return details of the masks of a reply: boxes around them in pixels, and how many are empty.

    They are for readers of the file: no command draws or counts them.
    """
    values = {"boxes": _finite(matched.boxes), "hits": list(matched.hits), "empty": empty}
    return {"masks": values}


def confidence_details(confidences: Confidences | None) -> dict[str, Any]:
    """Return the confidences of boxes by definition, where there are any."""
    return {_CONFIDENCES: confidences} if confidences else {}


def with_confidences(row: ScoredRow, definition: str, values: list[float | None]) -> ScoredRow:
    """Return a row with a confidence of each of its boxes by one more definition."""
    known = BoxAnswer.of(row).confidences
    return replace(
        row, details={**row.details, **confidence_details({**known, definition: values})}
    )


def first_box_details(
    row: ScoredRow, more: Mapping[str, Any], iou: float, is_hit: bool, is_hit_leniently: bool | None
) -> dict[str, Any]:
    """Return the details of an answer whose first box alone counts, for one object.

    Args:
        row: the answer, matched as FindIt matches boxes.
        more: details of the benchmark, which follow what a query and its boxes are.
        iou: of the first box; 0 without a box.
        is_hit: whether it hits the object.
        is_hit_leniently: whether the first box of a lenient reading does; None: it does not count.
    """
    shared = ("label", "image", "adherent", "boxes", "labels")
    details = {name: value for name, value in row.details.items() if name in shared}
    if is_hit_leniently is not None:
        recoverable = [0] if is_hit_leniently else []
        judged = {"hits": [is_hit_leniently], "recoverable": recoverable}
        details[LENIENT] = {**row.details[LENIENT], **judged}
    return {**details, **more, "ious": [as_decimal(iou)], "hits": [is_hit]}


def _finite(boxes: Sequence[Corners]) -> list[list[float | None]]:
    """Return boxes as in JSON, with null for a number that is not finite."""
    return [[n if isfinite(n) else None for n in box] for box in boxes]
