"""Ref-L4 as a benchmark of the house: asked like FindIt, scored by its authors' protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...boxes.records import Reason
from ...core.anatomy import WrongAnswers
from ...core.benchmark import BatchScore, Published
from ...core.drawing import Drawing
from ...core.identity import Identity
from ...core.replies import Reply
from ...core.scored_row import ScoredRow
from ...core.settings import Settings
from ..findit.benchmark import FindIt
from ..findit.grid import Table
from .annotations import Split
from .metrics import ACC_SALVAGED, COUNTS, METRICS, RANKING, WITH_FAILURES
from .published import PUBLISHED, OutputKind
from .replies import draw, judge_replies, scored_row
from .table import RefL4Task, load_task
from .variant import RefL4Variant, parse, table_name


class RefL4(FindIt):
    """One box for one long expression.  Prompts and coordinate spaces are FindIt's."""

    name = "Ref-L4"
    metrics = METRICS
    ranking = RANKING
    with_failures = WITH_FAILURES
    salvaged = ACC_SALVAGED
    counts = COUNTS
    reasons = tuple(one.value for one in Reason if one is not Reason.FAILED_CALL)
    anatomy = WrongAnswers(WITH_FAILURES, reasons)

    def parse(self, name: str) -> RefL4Variant:
        return parse(name)

    def listed(self) -> Sequence[str]:
        return [parse(f"FindIt_{table_name(split)}_xyxy_json").name for split in Split]

    def tables(self) -> Mapping[str, Table]:
        names = map(table_name, Split)
        return {name: Table(name, kind=RefL4Variant) for name in names}

    def load(self, name: str) -> RefL4Task:
        return load_task(name)

    def score(
        self,
        model: str,
        task: Any,
        replies: Sequence[Reply],
        settings: Settings,
        run: Identity | None,
    ) -> BatchScore:
        found, spaces = judge_replies(model, task, replies, settings, run)
        rows = tuple(map(scored_row, found))
        return BatchScore(rows, tuple(space.as_dict() for space in spaces))

    def draw(self, task: Any, row: ScoredRow) -> Drawing:
        return draw(task.queries[row.index], row)

    def goodness(self, row: ScoredRow) -> float:
        """How many of the ten thresholds the first box passes."""
        return RANKING[1].value(row.sums) or 0.0

    def curve(self, task: Any, rows: Sequence[ScoredRow]) -> None:
        """None: the thresholds are in the figures, and FindIt's curve has others."""
        return None

    def host_class(self, question: Any) -> str:
        """One class: FindIt has one a family, and this is another benchmark."""
        return "RefL4Dataset"

    def published(self) -> Sequence[Published]:
        """The authors' rows: all figures of ``all``, and macc of ``val`` and ``test``."""
        return tuple(_published())


def _published() -> Iterator[Published]:
    for row in PUBLISHED:
        model = row.model if row.output is OutputKind.BOX else f"{row.model} (tight boxes of masks)"
        figures = {name: value for name, value in row.named.items() if value is not None}
        for split, values in (
            (Split.ALL, figures),
            (Split.VAL, {"macc": row.macc_val}),
            (Split.TEST, {"macc": row.macc_test}),
        ):
            yield Published(model, table_name(split), values, row.source)


BENCHMARK = RefL4()
