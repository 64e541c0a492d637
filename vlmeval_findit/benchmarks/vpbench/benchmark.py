"""VP-Bench as a benchmark of the house: one letter, read in two ways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.benchmark import BatchScore, Benchmark, PromptSet, Published
from ...core.drawing import Drawing
from ...core.identity import Identity
from ...core.places import find_table
from ...core.question import Task
from ...core.replies import Reply
from ...core.scored_row import ScoredRow
from ...core.settings import Settings
from .baselines import BASELINES
from .metrics import COUNTS, METRICS, RANKING, WITH_FAILURES
from .prompts import PROMPTS
from .published import published
from .query import VPQuery
from .question import VPQuestion, parse
from .scoring import draw, scored_row
from .table import read_table
from .tables import TABLES, ensure, how_to_make, own_tables


class VPBench(Benchmark):
    """One letter to a question about marks.  The reading of its authors stands beside ours."""

    name = "VP-Bench"
    metrics = METRICS
    ranking = RANKING
    with_failures = WITH_FAILURES
    counts = COUNTS
    baselines = BASELINES

    def parse(self, name: str) -> VPQuestion:
        return parse(name)

    def listed(self) -> Sequence[str]:
        return [*TABLES, *own_tables()]

    def load(self, name: str) -> Task[VPQuestion, VPQuery]:
        question = self.parse(name)
        if question.table in TABLES:
            ensure(TABLES[question.table])
        table = find_table(question.table, how_to_make(question.table))
        return Task(name, question, table, {query.index: query for query in read_table(table)})

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

    def published(self) -> Sequence[Published]:
        return tuple(published())


BENCHMARK = VPBench()
