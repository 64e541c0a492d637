"""Replies of our runs, judged by Ref-L4's protocol.

The replies are read as FindIt reads them, in the coordinate space of their run.  The first box that
was read is the answer; an answer without a box is a miss; a failed call is no answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...boxes.records import Matched
from ...boxes.representation import Judging
from ...core.drawing import Drawing, Role
from ...core.identity import Identity
from ...core.question import AnyTask
from ...core.replies import Reply
from ...core.scored_row import ScoredRow
from ...core.settings import Settings
from ..findit.datasets import Family
from ..findit.drawing import draw_as
from ..findit.query import Query
from ..findit.run_space import SpaceInForce
from ..findit.scoring import MatchedReply, match_replies
from ..findit.scoring import scored_row as findit_row
from ..findit.variant import Variant
from .annotations import Annotation
from .judging import Judged, judge
from .metrics import FAILED_SUMS, HIT_MORE, row_slices, row_sums
from .predictions import MissReason, PredictedBox
from .refusals import Code, RefusedError
from .table import Expression


@dataclass(frozen=True, slots=True)
class JudgedReply:
    """A reply, what was read from it, and how its first box did.

    ``judged`` of a failed call is that of a miss; whoever counts asks ``matched.reply.failed``.
    ``salvaged`` is how the first box did that a tolerant reader takes (None: there is no other).
    """

    matched: MatchedReply
    judged: Judged
    salvaged: Judged | None = None


def refuse_unless_one_box(task: AnyTask) -> None:
    """Refuse datasets whose answers are not one box each.

    Raises:
        RefusedError: this is one.
    """
    question = task.question
    if (
        not isinstance(question, Variant)
        or question.judged is not Judging.BY_OVERLAP
        or question.family is not Family.REFEXP
        or question.multilabel
    ):
        why = "its answers are not one box each, and Ref-L4's figures are of one"
        raise RefusedError(Code.BAD_ANNOTATION, question.name, why)
    queries: Mapping[int, Any] = task.queries
    for index, query in queries.items():
        if len(query.truth.boxes) != 1:
            why = f"has {len(query.truth.boxes)} boxes, and Ref-L4's figures are of one"
            raise RefusedError(Code.BAD_ANNOTATION, f"{task.table}, row {index}", why)


def annotation_of(query: Query) -> Annotation:
    """The annotation of a query; of another dataset than Ref-L4 it has no class and no split."""
    if isinstance(query, Expression):
        return query.annotation
    ((x1, y1, x2, y2),) = query.truth.boxes
    if x2 < x1 or y2 < y1:
        why = f"the box {[x1, y1, x2, y2]} has a negative side"
        raise RefusedError(Code.NEGATIVE_TRUTH, f"row {query.index}, boxes", why)
    return Annotation(
        id=query.index,
        bbox=(x1, y1, x2 - x1, y2 - y1),
        ori_category_id=None,
        split=None,
        caption=query.label,
        file_name=query.images[0],
        width=query.width,
        height=query.height,
    )


def judge_replies(
    model: str,
    task: Any,
    replies: Sequence[Reply],
    settings: Settings,
    run: Identity | None,
) -> tuple[list[JudgedReply], list[SpaceInForce]]:
    """Read and judge replies; the second are the spaces in force, each once.

    Raises:
        SpaceError: the coordinate space is not known.
        RefusedError: a truth is no box.
    """
    found, spaces = match_replies(model, task, replies, settings, run)
    truths = [annotation_of(one.query) for one in found]
    judged = judge(truths, [_answer(one.matched) for one in found])
    made = list(map(JudgedReply, found, judged))
    # The first box counts: only an answer without one has another for a tolerant reader.
    more = {
        place: one.salvaged.matched
        for place, one in enumerate(found)
        if one.salvaged is not None and not one.matched.boxes and one.salvaged.matched.boxes
    }
    salvaged = judge([truths[place] for place in more], list(map(_answer, more.values())))
    for place, one in zip(more, salvaged, strict=True):
        made[place] = replace(made[place], salvaged=one)
    return made, spaces


def _answer(said: Matched) -> PredictedBox:
    if not said.boxes:
        return PredictedBox(None, MissReason.NO_BOX)
    x1, y1, x2, y2 = said.boxes[0]
    return PredictedBox((x1, y1, x2, y2))


def answered(found: Iterable[JudgedReply]) -> list[Judged]:
    """Those of answers: failed calls are in none of the figures."""
    return [one.judged for one in found if not one.matched.reply.failed]


def scored_row(one: JudgedReply) -> ScoredRow:
    """One expression as a row of sums, with all that is known of it."""
    row = findit_row(one.matched, is_video=False)
    adherent = float(not row.failed and row.reason is None)
    sums = FAILED_SUMS if row.failed else row_sums(one.judged)
    more = {HIT_MORE: 1} if one.salvaged is not None and one.salvaged.hits[0] else {}
    return replace(
        row,
        sums={**sums, "adherent": adherent, **more},
        slices=row_slices(one.judged),
        details=_details(one, row),
    )


def _details(one: JudgedReply, row: ScoredRow) -> dict[str, Any]:
    """FindIt's details, with the IoU and the hit of the first box by this protocol."""
    kept = ("label", "image", "adherent", "boxes", "labels")
    said = {name: row.details[name] for name in kept if name in row.details}
    if one.salvaged is not None:
        hit = one.salvaged.hits[0]
        found = {"hits": [hit], "recoverable": [0] * hit}
        said["salvaged"] = {**row.details["salvaged"], **found}
    iou = one.judged.iou
    return {
        **said,
        "id": one.judged.annotation.id,
        "ious": [round(iou, 6) if math.isfinite(iou) else 0.0],
        "hits": [one.judged.hits[0]],
        "passed": sum(one.judged.hits),
    }


def draw(query: Query, row: ScoredRow) -> Drawing:
    """The truth and every box; only the first can be a hit, and only above 0.5."""
    found = [(Role.MISS, 0.0)] * len(row.details["boxes"])
    if found:
        role = Role.HIT if row.details["hits"][0] else Role.MISS
        found[0] = (role, row.details["ious"][0])
    return draw_as(query, row, found)
