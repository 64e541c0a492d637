"""Ref-L4 as a :class:`.Benchmark`: asked and read like FindIt, scored by its authors' protocol.

The first box read is the answer; an answer without a box is a miss; a failed call is no answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...boxes.records import Matched, Reason
from ...core.anatomy import WrongAnswers
from ...core.benchmark import BatchScore, Published
from ...core.drawing import Drawing, Role
from ...core.identity import Identity
from ...core.question import AnyTask
from ...core.replies import Reply
from ...core.scored_row import ScoredRow
from ...core.settings import Settings
from ..findit.benchmark import FindIt
from ..findit.drawing import draw_as
from ..findit.grid import Table
from ..findit.scoring import MatchedReply, match_replies
from ..findit.scoring import scored_row as findit_row
from .annotations import Annotation, Split
from .converter import replies_of
from .protocol import (
    ACC_SALVAGED,
    COUNTS,
    FAILED_SUMS,
    HIT_MORE,
    METRICS,
    RANKING,
    WITH_FAILURES,
    judge,
    slices_of,
    sums_of,
)
from .published import published
from .table import RefL4Task, RefL4Variant, load_task, parse, table_name


class RefL4(FindIt):
    """One box for one long expression, with FindIt's prompts and coordinate spaces."""

    name = "Ref-L4"
    metrics = METRICS
    ranking = RANKING
    with_failures = WITH_FAILURES
    salvaged = ACC_SALVAGED
    counts = COUNTS
    reasons = tuple(one.value for one in Reason if one is not Reason.FAILED_CALL)
    anatomy = WrongAnswers(WITH_FAILURES, reasons)

    def of(self, question: Any) -> RefL4:
        return self

    @property
    def headlines(self) -> tuple[str, ...]:
        return (METRICS[0].name,)

    def parse(self, name: str) -> RefL4Variant:
        return parse(name)

    def listed(self) -> Sequence[str]:
        return [parse(f"FindIt_{table_name(split)}_xyxy_json").name for split in Split]

    def tables(self) -> Mapping[str, Table]:
        names = map(table_name, Split)
        return {name: Table(name, kind=RefL4Variant) for name in names}

    def load(self, name: str) -> RefL4Task:
        return load_task(name)

    def convert(self, path: Path, task: AnyTask) -> Sequence[Reply]:
        """Read a list of {"id", "pred_bbox", "format"} as replies."""
        queries: Mapping[int, Any] = task.queries
        return list(replies_of(path, [query.annotation for query in queries.values()]))

    def score_batch(
        self,
        model: str,
        task: Any,
        replies: Sequence[Reply],
        settings: Settings,
        run: Identity | None,
    ) -> BatchScore:
        found, spaces = match_replies(model, task, replies, settings, run)
        truths = [task.queries[one.reply.index].annotation for one in found]
        # The first box counts: only an answer without one has another for a tolerant reader.
        salvaged = [
            _first(one.salvaged.matched) if one.salvaged and not one.matched.boxes else None
            for one in found
        ]
        ious, passed = judge(truths, [_first(one.matched) for one in found])
        _, passed_more = judge(truths, salvaged)
        rows = map(_scored_row, found, truths, ious, passed, passed_more)
        return BatchScore(tuple(rows), tuple(space.as_dict() for space in spaces))

    def draw(self, task: Any, row: ScoredRow) -> Drawing:
        """Draw the truth and every box; only the first can be a hit, and only above 0.5."""
        found = [(Role.MISS, 0.0)] * len(row.details["boxes"])
        if found:
            role = Role.HIT if row.details["hits"][0] else Role.MISS
            found[0] = (role, row.details["ious"][0])
        return draw_as(task.queries[row.index], row, found)

    def goodness(self, row: ScoredRow) -> float:
        return RANKING[1].value(row.sums) or 0.0

    def curve(self, task: Any, rows: Sequence[ScoredRow]) -> None:
        """Return None: the metrics have the thresholds, and FindIt's curve has others."""
        return None

    def host_class(self, question: Any) -> str:
        """Return one class for all families: FindIt has one a family."""
        return "RefL4Dataset"

    def published(self) -> Sequence[Published]:
        """Return the authors' rows: all metrics of ``all``, and macc of ``val`` and ``test``."""
        return tuple(published())


def _first(said: Matched) -> Sequence[float] | None:
    return said.boxes[0] if said.boxes else None


def _scored_row(
    one: MatchedReply, truth: Annotation, iou: float, passed: int, passed_more: int
) -> ScoredRow:
    row = findit_row(one)
    details = {
        name: row.details[name]
        for name in ("label", "image", "adherent", "boxes", "labels")
        if name in row.details
    }
    if one.salvaged is not None and one.salvaged.matched.boxes and not one.matched.boxes:
        hit = passed_more > 0
        found = {"hits": [hit], "recoverable": [0] * hit}
        details["salvaged"] = {**row.details["salvaged"], **found}
    sums = FAILED_SUMS if row.failed else sums_of(passed, bool(one.matched.boxes))
    return replace(
        row,
        sums={
            **sums,
            "adherent": int(not row.failed and row.reason is None),
            **({HIT_MORE: 1} if passed_more else {}),
        },
        slices=slices_of(truth),
        details={
            **details,
            "id": truth.id,
            "ious": [round(iou, 6) if math.isfinite(iou) else 0.0],
            "hits": [passed > 0],
            "passed": passed,
        },
    )


BENCHMARK = RefL4()
