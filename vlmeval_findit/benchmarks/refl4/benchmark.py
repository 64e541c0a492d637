"""Ref-L4 as a :class:`.Benchmark`: asked and read like FindIt, scored by its authors' protocol.

The first box read is the answer; an answer without a box is a miss; a failed call is no answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...boxes import BoxAnswer, FormatFailure, MatchResult, first_box_details
from ...protocol import (
    Answer,
    AnswerErrors,
    AnyDataset,
    BatchScore,
    Drawing,
    Identity,
    Metric,
    Published,
    Replies,
    Reply,
    Role,
    ScoredRow,
    Settings,
)
from ..findit import (
    AnnotationTable,
    FindIt,
    ScoredReply,
    draw_as,
    mask_sums,
    match_replies,
    with_answer,
)
from ..findit import scored_row as findit_row
from . import accuracy_metrics as accuracy
from .expression_tables import (
    Expression,
    LoadedRefL4,
    RefL4Variant,
    load_dataset,
    parse,
    table_name,
)
from .refl4_annotations import Annotation, RefL4Split, replies_of


class RefL4(FindIt):
    """One box for one long expression, with FindIt's prompts and coordinate spaces."""

    name = "Ref-L4"
    metrics = accuracy.METRICS
    ranking = accuracy.RANKING
    headline_counting_failures = accuracy.ACC_FAILED_MISSED
    lenient = accuracy.ACC_LENIENT
    class_metric = accuracy.CLASS_MACC
    counts = accuracy.COUNTS
    reasons = tuple(each.value for each in FormatFailure if each is not FormatFailure.FAILED_CALL)
    errors = AnswerErrors(headline_counting_failures, reasons)

    def for_variant(self, variant: Any) -> RefL4:
        return self

    @property
    def headlines(self) -> tuple[str, ...]:
        return (self.metrics[0].name,)

    def parse(self, name: str) -> RefL4Variant:
        return parse(name)

    def variant_names(self) -> Sequence[str]:
        return [parse(f"FindIt_{table_name(split)}_xyxy_json").name for split in RefL4Split]

    def tables(self) -> Mapping[str, AnnotationTable]:
        names = map(table_name, RefL4Split)
        return {name: AnnotationTable(name, variant_class=RefL4Variant) for name in names}

    def load(self, name: str) -> LoadedRefL4:
        return load_dataset(name)

    def convert(self, path: Path, dataset: AnyDataset) -> Sequence[Reply]:
        """Read a list of {"id", "pred_bbox", "format"} as replies."""
        queries: Mapping[int, Any] = dataset.queries
        return list(replies_of(path, [query.annotation for query in queries.values()]))

    def score_batch(
        self, model: str, dataset: Any, replies: Replies, settings: Settings, run: Identity | None
    ) -> BatchScore:
        scored, spaces = match_replies(model, dataset, replies, settings, run)
        truths = [dataset.queries[item.reply.index].annotation for item in scored]
        boxes = [_first_box(item.match) for item in scored]
        judged = accuracy.compare_boxes(truths, boxes)
        lenient = accuracy.compare_boxes(truths, [_lenient_box(item) for item in scored])
        rows = map(_scored_row, scored, truths, judged.ious, judged.passed, lenient.passed)
        return BatchScore(tuple(rows), tuple(space.as_dict() for space in spaces))

    def draw(self, dataset: Any, row: ScoredRow) -> Drawing:
        """Draw the truth and every box; only the first can be a hit, and only above 0.5."""
        answer = BoxAnswer.of(row)
        roles = [(Role.MISS, 0.0)] * len(answer.boxes)
        if roles and answer.ious is not None:
            role = Role.HIT if answer.hits[0] else Role.MISS
            roles[0] = (role, answer.ious[0])
        return draw_as(dataset.queries[row.index], answer, roles)

    def with_label(self, dataset: Any, query: Expression, answer: Answer) -> Expression:
        """Return the expression with another box: that of its annotation, which is scored, too."""
        if len(answer.boxes) != 1:
            why = f"its accepted answer has {len(answer.boxes)} boxes, Ref-L4 has one a row"
            raise ValueError(f"row {query.index}: {why}")
        if answer == self.label(dataset, query):
            return query
        x1, y1, x2, y2 = answer.boxes[0]
        annotation = replace(query.annotation, bbox=(x1, y1, x2 - x1, y2 - y1))
        return replace(with_answer(query, dataset.variant, answer), annotation=annotation)

    def object_of(self, query: Any) -> str:
        """Name an object by the authors' ``bbox_id``, else by its box."""
        known = query.annotation.bbox_id
        return super().object_of(query) if known is None else f"bbox {known}"

    @property
    def query_metrics(self) -> tuple[Metric, ...]:
        return (accuracy.MACC,)

    def curve(self, dataset: Any, rows: Sequence[ScoredRow]) -> None:
        """Return None: FindIt's curve has other thresholds than the metrics."""
        return None

    def host_class(self, variant: Any) -> str:
        return "RefL4Dataset"

    def published(self) -> Sequence[Published]:
        return tuple(published())


def _first_box(matched: MatchResult) -> Sequence[float] | None:
    return matched.boxes[0] if matched.boxes else None


def _lenient_box(scored: ScoredReply) -> Sequence[float] | None:
    """Return the first box that lenient parsing finds in an answer without a box."""
    if scored.lenient is None or scored.match.boxes:
        return None
    return _first_box(scored.lenient.match)


def _scored_row(
    reply: ScoredReply, truth: Annotation, iou: float, passed: int, passed_more: int
) -> ScoredRow:
    row = findit_row(reply)
    has_box = bool(reply.match.boxes)
    details = first_box_details(
        row,
        {"id": truth.index},
        iou if math.isfinite(iou) else 0.0,
        is_hit=passed > 0,
        is_hit_leniently=None if _lenient_box(reply) is None else passed_more > 0,
    )
    details["passed"] = passed
    sums = accuracy.sums_of(passed, has_box, row.failed)
    sums["adherent"] = int(not row.failed and row.reason is None)
    if passed_more:
        sums[accuracy.HIT_MORE] = 1
    sums |= mask_sums(reply.reply.recorded.masks, reply.masks)
    return replace(row, sums=sums, slices=accuracy.slices_of(truth), details=details)


# --- the authors' published results ---------------------------------------------------------------

SOURCE = (
    "arXiv 2406.16866, tables 4 and 5, figures 10 and 11 (class_macc); "
    "class_acc of CogVLM-Grounding from the benchmark's README"
)

# Columns of _ROWS, in percent; of val and test together but the two that name a split
_COLUMNS = (
    "acc_0.5",
    "acc_0.75",
    "acc_0.9",
    "macc",
    "macc_val",
    "macc_test",
    "small_acc",
    "small_macc",
    "medium_acc",
    "medium_macc",
    "large_acc",
    "large_macc",
    "class_macc",
)

# A dagger marks models that answer with masks, scored by their tight boxes.
_ROWS = """
GPT-4V             9.91  1.19  0.12  2.88  2.96  2.85  2.13  0.49 10.29  2.78 14.93  4.83  1.42
KOSMOS-2          48.53 38.34 17.54 34.72 34.89 34.64 24.19 11.63 46.95 32.91 69.32 54.98 19.37
OFA-Tiny          55.21 43.22 27.70 41.44 41.53 41.40 17.91 11.49 65.13 49.00 64.46 49.61 15.37
OFA-Large         72.53 62.31 45.02 59.17 59.42 59.07 40.13 27.07 81.03 66.49 80.78 69.36 32.88
Ferret-7b         57.54 42.44 21.01 40.29 40.31 40.28 30.93 14.57 62.40 43.72 68.18 52.92 20.27
Ferret-13b        64.44 49.04 27.46 46.88 47.31 46.71 36.46 17.88 70.50 51.86 73.92 59.09 23.33
GroundingGPT      60.84 40.48 12.00 38.19 38.42 38.09 24.43 10.28 67.67 41.04 75.09 53.47 14.60
Shikra-7b         65.06 39.62 10.45 38.60 38.91 38.47 43.91 18.50 75.98 46.27 60.60 39.34 21.22
Lenna             65.90 58.55 45.58 55.69 55.88 55.60 31.02 23.48 72.90 61.53 78.72 68.66 34.30
MiniGPTv2         66.93 50.50 25.30 47.15 47.43 47.03 32.99 14.85 73.67 51.16 79.52 63.53 21.13
Qwen-VL-Chat      73.80 58.05 37.16 55.94 56.18 55.83 47.66 26.26 79.80 61.06 82.01 68.37 31.41
ONE-PEACE         70.82 60.09 36.12 55.07 55.49 54.89 22.18 13.98 83.26 63.39 83.81 70.04 24.11
SPHINX-MoE        66.23 44.90 15.32 42.38 42.80 42.21 39.48 16.39 72.97 46.38 73.55 54.17 18.77
SPHINX-MoE-1k     74.45 62.70 38.85 58.07 58.35 57.95 58.96 37.61 77.80 61.53 79.70 66.77 36.84
SPHINX            74.78 53.65 21.15 50.09 50.33 49.99 48.82 22.08 80.56 54.10 83.27 63.34 26.95
SPHINX-1k         78.52 62.17 32.95 57.57 57.91 57.42 59.48 33.21 82.95 61.82 84.40 67.68 36.01
SPHINX-v2-1k      81.31 70.49 46.59 65.39 65.67 65.27 65.23 43.43 84.00 68.45 88.21 75.91 46.40
CogVLM-Grounding  81.70 70.77 48.35 66.09 66.25 66.02 75.06 52.85 86.43 71.31 77.91 66.25 52.56
PixelLM-7B†       41.83 27.57 13.32 27.10 27.09 27.11  8.25  4.05 43.90 27.33 62.72 43.64  8.74
PixelLM-13B†      49.89 35.37 18.42 34.10 34.52 33.92 17.05  8.54 53.40 35.48 67.59 50.34 13.19
LISA-Explanatory† 65.12 52.35 38.26 50.77 50.89 50.72 39.11 27.16 70.03 54.61 75.25 61.09 29.87
LISA†             66.23 54.02 39.73 52.18 52.44 52.07 39.24 27.49 71.17 56.05 77.01 63.22 31.22
PSALM†            67.26 58.22 44.11 55.46 55.68 55.37 37.35 28.43 75.06 61.79 74.97 63.74 27.62
GlaMM†            71.90 60.27 45.15 57.89 58.16 57.78 47.07 34.36 77.17 62.28 80.50 67.14 36.25
"""

# Published for this model only
_CLASS_ACC = {"CogVLM-Grounding": 72.42}


def published() -> Iterator[Published]:
    """Yield all metrics of ``all``, and macc of ``val`` and ``test``, in the authors' order."""
    for line in _ROWS.strip().splitlines():
        name, *numbers = line.split()
        model = name.replace("†", " (tight boxes of masks)")
        values = dict(zip(_COLUMNS, map(float, numbers), strict=True))
        macc_of_val = values.pop("macc_val")
        macc_of_test = values.pop("macc_test")
        if name in _CLASS_ACC:
            values["class_acc"] = _CLASS_ACC[name]
        yield Published(model, table_name(RefL4Split.ALL), values, SOURCE)
        yield Published(model, table_name(RefL4Split.VAL), {"macc": macc_of_val}, SOURCE)
        yield Published(model, table_name(RefL4Split.TEST), {"macc": macc_of_test}, SOURCE)


BENCHMARK = RefL4()  # The one Ref-L4 benchmark with the authors' twelve metrics
