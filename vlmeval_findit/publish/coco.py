"""The boxes of runs as COCO results, for pycocotools or faster-coco-eval.

Where a run recorded the probabilities of its tokens, a box's score is its confidence
(:mod:`..boxes.confidences`).  Else every box has the score 1: average precision then is that of an
unranked list, and cannot be compared with a detector's.  The files say which.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .. import benchmarks
from ..boxes.confidences import DEFAULT, DEFINITIONS
from ..coords.run_check import NotBoxesError
from ..core.files import atomic_write, file_sha256
from ..core.spelling import counted
from ..runs.boxes_of_rows import ConfidenceError, defined
from ..runs.coco_boxes import Answered, CocoBoxes, collect
from ..runs.prediction_names import score_command
from ..runs.scored_run import Run, RunError
from .export_folder import rewritten
from .run_copies import names_of
from .targets import NotExportableError, left_out

NO_CONFIDENCES = (
    "Every box has the score 1: the run recorded no confidences. Average precision over "
    "these results is that of an unranked list; do not compare it with a detector's."
)


def to_coco(runs: Sequence[Run], out: Path, confidence: str | None = None) -> Iterator[str]:
    """Write ``<run>_coco_results.json`` and ``<run>_coco_truth.json`` of every run.

    Runs whose answers are no boxes are left out.  ``confidence`` says which confidence the score of
    a box is (None: the default one, where a run has any); a ConfidenceError says that a run has
    none such.
    """
    counts: Counter[str] = Counter()
    notes: dict[str, None] = {}
    others: list[Run] = []
    with rewritten(out, "coco") as folder:
        for run, name in zip(runs, names_of(runs), strict=True):
            answered = _answered(run)
            try:
                boxes = collect(answered)
            except NotBoxesError:
                others.append(run)
                continue
            note = _score(run, boxes, confidence)
            notes[note] = None
            failed = sum(one.failed for one in run.rows)
            counts += Counter(
                {
                    "boxes": len(boxes.results),
                    "images": len(boxes.images),
                    "failed calls are in no file": failed,
                    "boxes have a label that is no category: left out": boxes.unknown_labels,
                    "boxes are not finite: left out": boxes.not_numbers,
                    "queries ask what another asks: left out": boxes.repeated,
                }
            )
            _write(folder / f"{name}_coco_results.json", boxes.results)
            _write(folder / f"{name}_coco_truth.json", _truth(run, boxes, failed, note))
        if len(others) == len(runs):
            raise NotExportableError("no run's answers are boxes for COCO: name one with boxes")
    there = f"{counts.pop('boxes', 0):,} boxes in {counts.pop('images', 0):,} images"
    yield f"{out}/: {counted(len(runs) - len(others), 'run')}, {there}"
    yield "of each run: …_coco_results.json and …_coco_truth.json"
    yield from (f"{count:,} {what}" for what, count in counts.items())
    yield from left_out(others)
    yield from notes


def _answered(run: Run) -> Answered:
    task = benchmarks.load(run.question.name)
    if file_sha256(task.table) != run.provenance.table_sha256:
        raise RunError(
            f"{task.table} is not the table that {run.path} was scored over; score it again: "
            f"{score_command(run.path, run.question.name)}"
        )
    return Answered(task, run.rows)


def _score(run: Run, boxes: CocoBoxes, wanted: str | None) -> str:
    """Give every box its score; return what the scores are."""
    there = defined(run.rows)
    if wanted is not None and wanted not in there:
        raise ConfidenceError.of_run(run.path, wanted)
    chosen = wanted or (DEFAULT if DEFAULT in there else None)
    if chosen is None:
        return NO_CONFIDENCES
    unsure = 0
    for result, origin in zip(boxes.results, boxes.origins, strict=True):
        confidence = origin.confidence(chosen)
        unsure += confidence is None
        result["score"] = confidence or 0.0
    without = f" {unsure} boxes without one have the score 0." if unsure else ""
    means = DEFINITIONS[chosen].means
    return f"Scores are the model's own confidences ({chosen}: {means}).{without}"


def _truth(run: Run, boxes: CocoBoxes, failed: int, note: str) -> dict[str, Any]:
    return {
        "info": {
            "description": f"Ground truth of {run.question.name} for the answers of {run.model}",
            "note": note,
            "queries answered": len(run.rows) - failed,
            "failed calls, not in here": failed,
        },
        "images": list(boxes.images.values()),
        "annotations": boxes.truth,
        "categories": boxes.named,
    }


def _write(path: Path, values: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    with atomic_write(path) as f:
        json.dump(values, f)
