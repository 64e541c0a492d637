"""The boxes of a run as COCO results, for pycocotools or faster-coco-eval.

Where a run recorded the probabilities of its tokens, a box's score is its confidence
(:mod:`..boxes.confidences`).  Else every box has the score 1: average precision then is that of an
unranked list, and cannot be compared with a detector's.  The files say which.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..boxes.confidences import DEFAULT, DEFINITIONS
from ..core.files import atomic_write
from ..core.run_files import RunFiles
from .boxes_of_rows import ConfidenceError, defined
from .coco_boxes import CocoBoxes, collect
from .score import RunScore

NO_CONFIDENCES = (
    "Every box has the score 1: the run recorded no confidences. Average precision over "
    "these results is that of an unranked list; do not compare it with a detector's."
)


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written, and what could not be.

    ``unknown_labels`` counts boxes with a label that is no category, ``not_numbers`` boxes that are
    not finite, ``failed`` calls without an answer, ``repeated`` queries that ask the same again.
    ``note`` says what the scores are; ``unsure`` counts boxes without a confidence in a run that
    has them.
    """

    results: Path
    truth: Path
    boxes: int
    images: int
    unknown_labels: int
    not_numbers: int
    failed: int
    repeated: int
    unsure: int
    note: str


def export(run: RunScore, predictions: Path, definition: str | None = None) -> Exported:
    """Write ``<stem>_coco_results.json`` and ``<stem>_coco_truth.json`` beside the predictions.

    ``definition`` is the confidence that is the score; None: the default one, where there is any.

    Raises:
        NotBoxesError: the answers are no boxes.
        ConfidenceError: the run has no such confidences.
    """
    out = collect(run)
    there = defined(run.rows)
    chosen = definition or (DEFAULT if DEFAULT in there else None)
    if definition is not None and definition not in there:
        raise ConfidenceError.of_run(predictions, definition)
    unsure = 0
    for result, origin in zip(out.results, out.origins, strict=True):
        confidence = 1.0 if chosen is None else origin.confidence(chosen)
        unsure += confidence is None
        result["score"] = confidence or 0.0
    note = NO_CONFIDENCES if chosen is None else _said_of(chosen, unsure)
    failed = sum(one.failed for one in run.rows)
    results = RunFiles(predictions).coco_results
    truth = RunFiles(predictions).coco_truth
    with atomic_write(results) as f:
        json.dump(out.results, f)
    with atomic_write(truth) as f:
        json.dump(_truth_file(out, run, failed, note), f)
    return Exported(
        results,
        truth,
        boxes=len(out.results),
        images=len(out.images),
        unknown_labels=out.unknown_labels,
        not_numbers=out.not_numbers,
        failed=failed,
        repeated=out.repeated,
        unsure=unsure,
        note=note,
    )


def _said_of(definition: str, unsure: int) -> str:
    without = f" {unsure} boxes without one have the score 0." if unsure else ""
    means = DEFINITIONS[definition].means
    return f"Scores are the model's own confidences ({definition}: {means}).{without}"


def _truth_file(out: CocoBoxes, run: RunScore, failed: int, note: str) -> dict[str, Any]:
    return {
        "info": {
            "description": f"Ground truth of {run.task.name} for the answers of {run.model}",
            "note": note,
            "queries answered": len(run.rows) - failed,
            "failed calls, not in here": failed,
        },
        "images": list(out.images.values()),
        "annotations": out.truth,
        "categories": out.named,
    }
