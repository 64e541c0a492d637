"""VP-Bench as a benchmark of the house: one letter, read in two ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ...core.benchmark import BatchScore, Benchmark, PromptSet, Published
from ...core.drawing import Drawing
from ...core.identity import Identity
from ...core.places import find_table
from ...core.question import Task
from ...core.replies import Reply
from ...core.scored_row import ScoredRow
from ...core.settings import Settings
from .baselines import BASELINES
from .choice import Reason
from .metrics import COUNTS, METRICS, RANKING, WITH_FAILURES
from .prompts import PROMPTS
from .published import published
from .query import VPQuery
from .question import VPQuestion, parse
from .scoring import draw, scored_row
from .stage2 import published as stage2_published
from .stage2 import question as stage2_question
from .stage2 import task as stage2_task
from .stage2.question import Stage2Question
from .table import read_table
from .tables import STAGE_1, TABLES, ensure, how_to_make, own_tables


class VPBench(Benchmark):
    """One letter to a question about marks.  The reading of its authors stands beside ours."""

    name = "VP-Bench"
    metrics = METRICS
    ranking = RANKING
    with_failures = WITH_FAILURES
    counts = COUNTS
    reasons = tuple(one.value for one in Reason if one is not Reason.FAILED)
    baselines = BASELINES

    def parse(self, name: str) -> VPQuestion | Stage2Question:
        return stage2_question.parse(name) if stage2_question.is_meant(name) else parse(name)

    def listed(self) -> Sequence[str]:
        return [*TABLES, next(iter(stage2_question.QUESTIONS)), *own_tables()]

    def load(self, name: str) -> Task[Any, VPQuery]:
        question = self.parse(name)
        if isinstance(question, Stage2Question):
            return stage2_task.load(name)
        if question.table in TABLES:
            ensure(TABLES[question.table])
        table = find_table(question.table, how_to_make(question.table))
        return Task(name, question, table, {query.index: query for query in read_table(table)})

    def for_model(
        self, task: Any, model: str, recorded: Mapping[str, str] | None = None
    ) -> Task[Any, VPQuery]:
        """Stage 2 may be asked by the mark that a model does best with."""
        if isinstance(task.question, Stage2Question):
            return stage2_task.for_model(task, model, recorded)
        return cast("Task[Any, VPQuery]", task)

    def rows(self, question: Any) -> tuple[object, ...]:
        """The ways of stage 2 share a table, and show other pictures of it."""
        return (question.column,)

    def prompts(self) -> Sequence[PromptSet]:
        return [PROMPTS]

    def score(
        self,
        model: str,
        task: Any,
        replies: Sequence[Reply],
        settings: Settings,
        run: Identity | None,
    ) -> BatchScore:
        return BatchScore(tuple(scored_row(task.queries[one.index], one) for one in replies))

    def draw(self, task: Any, row: ScoredRow) -> Drawing:
        return draw(task.queries[row.index], row)

    def interval_note(self, question: Any) -> str:
        """Stage 1 does not say which questions are about one photograph."""
        return _UNKNOWN_PHOTOGRAPHS if question.table == STAGE_1 else ""

    def published(self) -> Sequence[Published]:
        return (*published(), *stage2_published.published())


_UNKNOWN_PHOTOGRAPHS = (
    "questions about one photograph with other marks count as independent, because the files of "
    "stage 1 do not say which photograph a picture shows: intervals are narrower, and p-values "
    "smaller, than they should be"
)

BENCHMARK = VPBench()
