"""Self-retrieval as a benchmark of the house."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.benchmark import BatchScore, Benchmark, PromptSet
from ...core.drawing import Drawing
from ...core.identity import Identity
from ...core.places import image_folder
from ...core.question import PlainQuestion
from ...core.replies import Reply
from ...core.scored_row import ScoredRow
from ...core.settings import Settings
from . import prompts
from .baselines import BASELINES
from .captions import Why
from .encoders import encoder_in_force, refuse_unknown
from .judging import judge
from .metrics import COUNTS, METRICS, RANKING, WITH_FAILURES
from .pairs import SETS, PairTask, load_task, parse
from .scoring import draw, read_reply, scored_row


class SelfRetrieval(Benchmark):
    """Captions that tell two like pictures apart, scored by a dual encoder."""

    name = "Self-Retrieval"
    metrics = METRICS
    ranking = RANKING
    with_failures = WITH_FAILURES
    counts = COUNTS
    reasons = tuple(one.value for one in Why if one is not Why.FAILED)
    baselines = BASELINES

    def parse(self, name: str) -> PlainQuestion:
        return parse(name)

    def listed(self) -> Sequence[str]:
        return list(SETS)

    def load(self, name: str) -> PairTask:
        return load_task(name)

    def prompts(self) -> Sequence[PromptSet]:
        return [PromptSet(prompts.NAME, prompts.message)]

    def check(self, question: Any, settings: Settings) -> None:
        refuse_unknown(question.table, settings)

    def score(
        self,
        model: str,
        task: Any,
        replies: Sequence[Reply],
        settings: Settings,
        run: Identity | None,
    ) -> BatchScore:
        question: PlainQuestion = task.question
        chosen = encoder_in_force(question.table, settings)
        pairs = [task.queries[reply.index] for reply in replies]
        folder = image_folder(question.images).path
        judged = judge(pairs, list(map(read_reply, replies)), folder, chosen.encoder)
        return BatchScore(tuple(map(scored_row, pairs, judged)), scorer=chosen.scorer)

    def draw(self, task: Any, row: ScoredRow) -> Drawing:
        return draw(task.queries[row.index], row)

    def host_class(self, question: Any) -> str:
        return "SelfRetrievalDataset"


BENCHMARK = SelfRetrieval()
