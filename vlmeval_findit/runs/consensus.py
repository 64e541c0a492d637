"""The consensus of a run's samples: boxes that most of them agree on, as one reply to each query.

Boxes of one label and frame are merged by weighted box fusion, each sample with the same weight. A
merged box stays where more than half of the answers contribute to it. A failed call is no answer; a
reply without boxes and a reply that cannot be read are answers. Where most answers cannot be read,
the consensus is the first of those.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from ..benchmarks.findit.run_space import reply_format, spaces_of
from ..benchmarks.findit.variant import Variant
from ..boxes.matching import HIT
from ..boxes.representation import MatchRule
from ..boxes.spaces import to_pixels
from ..boxes.writing import BoxToWrite, write
from ..coords.run_check import NotBoxesError
from ..core.command import install
from ..core.identity import SAMPLE, write_identity
from ..core.predictions import read_predictions, write_rows
from ..core.replies import FAILED, Recorded, Reply, with_error
from ..core.run_files import RunFiles, sample_path
from ..core.scored_row import ScoredRow
from ..core.settings import settings_from
from .open_predictions import Predictions, open_predictions
from .run_score import score_file
from .sample_scores import SamplesError, boxes_of, by_query, group_of
from .score_files import write_score
from .scored_run import Run, load_run

CONSENSUS = "consensus"

_DIGITS = 6  # Of written numbers: in fractions of an image they are small


def write_consensus(runs: Sequence[Run]) -> Run:
    """Write the consensus of samples, score it like any reply, and return its run.

    Raises:
        NotBoxesError: the answers are no boxes.
        SamplesError: ensemble-boxes is not installed.
    """
    first, question = runs[0], runs[0].question
    if not isinstance(question, Variant) or question.match_rule is not MatchRule.BOX_OVERLAP:
        raise NotBoxesError(f"{question.name}: its answers are no boxes that could be merged")
    fusion()  # Refused before any file is read
    opened = open_predictions(first.path, settings_from({}))
    replies = [{each.index: each for each in read_predictions(run.path)} for run in runs]
    rows = [
        _row(opened, rows, [by_index[rows[0].index] for by_index in replies])
        for rows in by_query(runs)
    ]
    path = sample_path(first.path, CONSENSUS).with_suffix(".json")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_rows(path, lambda: rows)
    identity = opened.identity
    assert identity is not None  # Samples have one
    settings = {**identity.answering.settings, SAMPLE: f"{CONSENSUS} of {len(runs)}"}
    answering = replace(identity.answering, settings=settings)
    write_identity(RunFiles(path).identity, replace(identity, answering=answering))
    return load_run(write_score(score_file(path), path).provenance)


def _row(
    opened: Predictions, rows: Sequence[ScoredRow], replies: Sequence[Reply]
) -> dict[str, Any]:
    answers = [pair for pair in zip(rows, replies, strict=True) if not pair[0].failed]
    row: dict[str, Any] = {"index": rows[0].index}
    if not answers:
        why = "the calls of all samples failed"
        text, extra = f"{FAILED} via API. {why}", replies[0].recorded.as_json()
        return {**row, "prediction": text, "extra_records": with_error(extra, why)}
    unreadable = [reply for row_, reply in answers if row_.reason and not row_.details["boxes"]]
    if 2 * len(unreadable) > len(answers):
        text, record = unreadable[0].text, replace(unreadable[0].recorded, token_logprobs=None)
    else:
        reply = answers[0][1]
        samples = [list(filter(None, boxes_of(row_))) for row_, _ in answers]
        text, known = _text(opened, reply, fuse(samples)), reply.recorded
        record = Recorded(known.space, "stop", known.images, model=known.model)
    return {**row, "prediction": text, "extra_records": record.as_json()}


def _text(opened: Predictions, reply: Reply, boxes: Iterable[BoxToWrite]) -> str:
    question, query = opened.task.question, opened.task.queries[reply.index]
    assert isinstance(question, Variant)
    model, settings, identity = opened.model, opened.settings, opened.identity
    (in_force,) = spaces_of([reply], model, question, settings, identity)
    scale_x, scale_y, left, top = to_pixels(in_force.space, query.width, query.height)
    row = reply.recorded.model.get("row", (identity and identity.answering.row) or "")

    def placed(box: BoxToWrite) -> BoxToWrite:
        x1, y1, x2, y2 = box.box
        corners = (
            (x1 - left) / scale_x,
            (y1 - top) / scale_y,
            (x2 - left) / scale_x,
            (y2 - top) / scale_y,
        )
        return BoxToWrite(corners, box.label or query.label, box.frame)

    how = reply_format(model, question, settings, row)
    return write([*map(placed, boxes)], how, _DIGITS)


# --- fusion ---------------------------------------------------------------------------------------


def fusion() -> Any:
    """Return the function of ensemble-boxes.

    Raises:
        SamplesError: it is not installed.
    """
    try:
        return import_module("ensemble_boxes").weighted_boxes_fusion
    except ImportError:
        raise SamplesError(f"a consensus needs ensemble-boxes: {install('calibration')}") from None


def fuse(samples: Sequence[Sequence[BoxToWrite]]) -> list[BoxToWrite]:
    """Merge the boxes of samples; of merged boxes those of more than half of the samples stay.

    They are in the order of their share, then from left to right. Boxes without an area stay out.
    """
    usable = [
        [each for each in sample if each.box[0] < each.box[2] and each.box[1] < each.box[3]]
        for sample in samples
    ]
    every = [each for sample in usable for each in sample]
    if not every:
        return []
    groups = list(dict.fromkeys(map(group_of, every)))
    labels = {group_of(each): each.label for each in reversed(every)}  # As it is written first
    corners = np.array([each.box for each in every], dtype=float).reshape(-1, 2, 2)
    low, span = corners.min(axis=(0, 1)), np.ptp(corners, axis=(0, 1))
    boxes = []
    for sample in usable:
        # An IoU does not change with the unit of an axis, and fusion takes 0 to 1 only.
        inside = (np.array([each.box for each in sample]).reshape(-1, 2, 2) - low) / span
        boxes.append(inside.reshape(-1, 4).tolist())
    numbers = [[groups.index(group_of(each)) for each in sample] for sample in usable]
    scores = [[1.0] * len(sample) for sample in usable]
    # Of scores that are all 1 this type of confidence is the share of distinct samples.
    merged = fusion()(boxes, scores, numbers, iou_thr=HIT, conf_type="box_and_model_avg")
    ranked = []
    for box, share, number in zip(*merged, strict=True):
        votes = round(float(share) * len(samples))
        if 2 * votes > len(samples):
            frame, label = groups[int(number)]
            x1, y1, x2, y2 = (np.array(box, dtype=float).reshape(2, 2) * span + low).ravel()
            fused = BoxToWrite((float(x1), float(y1), float(x2), float(y2)), labels[frame, label])
            ranked.append((-votes, fused._replace(frame=frame)))
    return [fused for _, fused in sorted(ranked)]
