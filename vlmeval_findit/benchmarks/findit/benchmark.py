"""FindIt as a benchmark of the house."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...boxes.records import Reason
from ...boxes.representation import Judging
from ...core.anatomy import Anatomy
from ...core.benchmark import BatchScore, Benchmark, PromptSet
from ...core.contradictions import Contradiction
from ...core.drawing import Curve, Drawing
from ...core.identity import Described, Identity
from ...core.metric import Metric
from ...core.replies import Reply
from ...core.scored_row import ScoredRow
from ...core.settings import Settings
from . import prompts as own_prompts
from .anatomy import F1Anatomy
from .baselines import BASELINES
from .datasets import DATASETS, Family
from .drawing import curve, draw
from .grid import Table, all_tables
from .metrics import (
    COUNTS,
    F1_FAILED_MISSED,
    F1_SALVAGED,
    METRICS,
    POINTING,
    POINTING_COUNTS,
    POINTING_FAILED_MISSED,
    POINTING_RANKING,
    POINTING_SALVAGED,
    RANKING,
)
from .names import parse
from .point_anatomy import PointAnatomy
from .rejection import Outcome
from .release_prompts import prompt_set
from .run_space import contradicting_spaces, space_of_new_run
from .scoring import events_of, match_replies, scored_row
from .task import FindItTask, load_task
from .variant import Variant


class FindIt(Benchmark):
    """Boxes of what is named, described or shown, in every format of the grid.

    ``judged`` is how the answers are judged that it has figures of.
    """

    name = "FindIt"
    judged = Judging.BY_OVERLAP
    metrics: tuple[Metric, ...] = METRICS
    ranking: tuple[Metric, ...] = RANKING
    with_failures = F1_FAILED_MISSED
    salvaged = F1_SALVAGED
    anatomy: Anatomy = F1Anatomy()
    counts = COUNTS
    format_axes = ("representation", "output format")
    prompts_help = "FINDIT_PROMPTS names a clone of the release, which has its own."
    baselines = BASELINES

    def __init__(self, others: Sequence[FindIt] = ()) -> None:
        self.others: Sequence[FindIt] = others

    def judging(self, question: Any) -> FindIt:
        return next((one for one in self.others if one.judged is question.judged), self)

    def parse(self, name: str) -> Variant:
        return parse(name)

    def listed(self) -> Sequence[str]:
        return [
            parse(f"FindIt_{row.table_name(multilabel)}_xyxy_json").name
            for row in DATASETS.values()
            for multilabel in (False, True)[: 1 + row.has_multilabel]
        ]

    def tables(self) -> Mapping[str, Table]:
        """The tables that are asked in the formats of the grid, by their names."""
        return all_tables()

    def load(self, name: str) -> FindItTask:
        return load_task(name)

    def rows(self, question: Variant) -> tuple[object, ...]:
        return *super().rows(question), question.mark

    def prompts(self) -> Sequence[PromptSet]:
        in_force = PromptSet(*prompt_set())
        return [in_force, PromptSet(own_prompts.NAME, own_prompts.message)]

    def space(
        self, model: str, question: Any, settings: Settings, found: Described
    ) -> Mapping[str, Any]:
        return space_of_new_run(model, question, settings, found)

    def contradictions(
        self, task: Any, replies: Sequence[Reply], settings: Settings, run: Identity | None
    ) -> Sequence[Contradiction]:
        return contradicting_spaces(replies, settings, run)

    def score(
        self,
        model: str,
        task: Any,
        replies: Sequence[Reply],
        settings: Settings,
        run: Identity | None,
    ) -> BatchScore:
        found, spaces = match_replies(model, task, replies, settings, run)
        is_video = task.question.data.family.is_video
        return BatchScore(
            tuple(
                scored_row(one, is_video, events)
                for one, events in zip(found, events_of(found), strict=True)
            ),
            tuple(space.as_dict() for space in spaces),
        )

    def draw(self, task: Any, row: ScoredRow) -> Drawing:
        return draw(task.queries[row.index], row)

    def goodness(self, row: ScoredRow) -> float:
        """F1@0.5 of this query alone; 100 where nothing is to be found and the answer says so."""
        return 100.0 if Outcome.REJECTED.sum in row.sums else super().goodness(row)

    def curve(self, task: Any, rows: Sequence[ScoredRow]) -> Curve | None:
        return curve(rows)

    def host_class(self, question: Variant) -> str:
        return HOST_CLASSES[question.data.family]


HOST_CLASSES: Mapping[Family, str] = {
    Family.OBJDET: "FindItObjectDetection",
    Family.REFEXP: "FindItReferringExpression",
    Family.REFEXP_ALL: "FindItReferringExpression",
    Family.INSDET: "FindItInstanceDetection",
    Family.OBJDET_VIDEO: "FindItVideoDetection",
    Family.INSDET_VIDEO: "FindItVideoDetection",
}
"""By the family of a dataset the class that VLMEvalKit's ``--config`` files name."""


class FindItPoints(FindIt):
    """Points on what is named, described or shown: the same questions, judged by lying inside."""

    name = "FindIt-points"
    judged = Judging.BY_LYING_INSIDE
    metrics = POINTING
    ranking = POINTING_RANKING
    with_failures = POINTING_FAILED_MISSED
    salvaged = POINTING_SALVAGED
    anatomy: Anatomy = PointAnatomy(
        POINTING_FAILED_MISSED,
        tuple(one.value for one in Reason if one is not Reason.FAILED_CALL),
    )
    counts = POINTING_COUNTS

    def curve(self, task: Any, rows: Sequence[ScoredRow]) -> None:
        """None: a point lies in an object or does not."""
        return None


BENCHMARK = FindIt(others=(FindItPoints(),))
