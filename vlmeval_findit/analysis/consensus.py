"""The consensus of a run's samples: boxes that most of them agree on, as one reply to each query.

Boxes of one label and frame are merged (:mod:`.box_fusion`), each sample with the same weight. A
merged box stays where more than half of the answers contribute to it. A failed call is no answer; a
reply without boxes and a reply that cannot be read are answers. Where most answers cannot be read,
the consensus is the first of those; where all answers are one text, it is that text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ..benchmarks.findit import FindItQuery, FindItVariant, pixel_map, reply_format, spaces_of
from ..boxes import BoxToWrite, MatchRule, write
from ..coords import NotBoxesError
from ..protocol import (
    SAMPLE_SETTING,
    Predictions,
    Reply,
    ReplyRecord,
    ScoredRow,
    settings_from,
    text_of_failure,
)
from ..scoring import Run, load_run, open_predictions, score_file, write_score
from ..storage import (
    RunFiles,
    read_predictions,
    record_text,
    sample_path,
    shown_column,
    write_identity,
    write_rows,
)
from .box_fusion import fuse_boxes
from .sample_scores import boxes_of, by_query

CONSENSUS = "consensus"

_DIGITS = 6  # Of written numbers: in fractions of an image they are small


def write_consensus(runs: Sequence[Run]) -> Run:
    """Write the consensus of samples, score it like any reply, and return its run.

    Raises:
        NotBoxesError: the answers are no boxes.
    """
    first = runs[0]
    variant = runs[0].variant
    if not isinstance(variant, FindItVariant) or variant.match_rule is not MatchRule.BOX_OVERLAP:
        raise NotBoxesError(f"{variant.name}: its answers are not boxes, so they cannot be merged")
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
    settings = {**identity.answering.settings, SAMPLE_SETTING: f"{CONSENSUS} of {len(runs)}"}
    answering = replace(identity.answering, settings=settings)
    write_identity(RunFiles(path).identity, replace(identity, answering=answering))
    return load_run(write_score(score_file(path), path).provenance)


def _row(
    opened: Predictions, rows: Sequence[ScoredRow], replies: Sequence[Reply]
) -> dict[str, Any]:
    """Return the row of a query in the prediction file, given its samples."""
    entry = {"index": rows[0].index, **shown_column(replies[0].shown)}
    answers = [pair for pair in zip(rows, replies, strict=True) if not pair[0].failed]
    if not answers:
        why = "the calls of all samples failed"
        failed = record_text(replies[0].recorded.with_error(why))
        return {**entry, "prediction": text_of_failure(why), "extra_records": failed}
    _, first = answers[0]
    texts = {reply.text for _, reply in answers}
    unreadable = [reply for row, reply in answers if row.reason and not boxes_of(row)]
    if len(texts) == 1:
        text, record = _as_it_is(first)
    elif 2 * len(unreadable) > len(answers):
        text, record = _as_it_is(unreadable[0])
    else:
        samples = [list(filter(None, boxes_of(row))) for row, _ in answers]
        text = _text(opened, first, fuse_boxes(samples))
        known = first.recorded
        record = ReplyRecord(known.space, "stop", known.images, model=known.model)
    return {**entry, "prediction": text, "extra_records": record_text(record)}


def _as_it_is(reply: Reply) -> tuple[str, ReplyRecord]:
    return reply.text, replace(reply.recorded, token_logprobs=None)


def _text(opened: Predictions, reply: Reply, boxes: Iterable[BoxToWrite]) -> str:
    variant = opened.dataset.variant
    query = opened.dataset.queries[reply.index]
    assert isinstance(variant, FindItVariant)
    assert isinstance(query, FindItQuery)
    model = opened.model
    settings = opened.settings
    identity = opened.identity
    (in_force,) = spaces_of([reply], model, variant, settings, identity)
    scale_x, scale_y, left, top = pixel_map(in_force, query, reply)
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

    how = reply_format(model, variant, settings, row)
    return write([*map(placed, boxes)], how, _DIGITS)
