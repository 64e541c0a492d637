"""Plates as a benchmark: names, rows, messages and the score."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vlmeval_findit.core.benchmark import BatchScore, Benchmark, PromptSet
from vlmeval_findit.core.drawing import Drawing, DrawnLine, DrawnPicture, Role
from vlmeval_findit.core.identity import Identity
from vlmeval_findit.core.messages import Message, image, text
from vlmeval_findit.core.metric import Metric
from vlmeval_findit.core.places import find_table
from vlmeval_findit.core.question import PlainQuestion, QuestionError, Task
from vlmeval_findit.core.replies import Reply
from vlmeval_findit.core.scored_row import ScoredRow
from vlmeval_findit.core.settings import Settings
from vlmeval_findit.core.spelling import nearest

from . import PREFIX

TABLES = ("Few",)


@dataclass(frozen=True, slots=True)
class Query:
    """One row: a picture, and what its plate says."""

    index: int
    label: str
    images: tuple[str, ...]
    plate: str
    support: tuple[str, ...] = ()
    width: int = 0
    height: int = 0


def message(query: Query, question: PlainQuestion) -> Message:
    """The picture, then the question."""
    return (image(query.images[0]), text("What does the number plate say? Three letters."))


class Plates(Benchmark):
    """How many plates are read."""

    name = "Plates"
    metrics = (Metric("Accuracy", {"right": 1}, {"answered": 1}),)
    with_failures = Metric("Accuracy (failed calls as misses)", {"right": 1}, {"asked": 1})
    ranking = (with_failures,)

    def parse(self, name: str) -> PlainQuestion:
        table = name.removeprefix(PREFIX)
        if table not in TABLES:
            raise QuestionError(f"{name}: no table {table!r}{nearest(table, TABLES)}")
        return PlainQuestion(name, f"Plates_{table}", images="Plates", family_name="plates")

    def listed(self) -> Sequence[str]:
        return [f"{PREFIX}{table}" for table in TABLES]

    def load(self, name: str) -> Task[PlainQuestion, Query]:
        question = self.parse(name)
        table = find_table(question.table, "python -m findit_plates DIR")
        with table.open(encoding="utf-8", newline="") as f:
            rows = list(csv.DictReader(f, delimiter="\t"))
        queries = (
            Query(int(row["index"]), "plate", (row["picture"],), row["plate"]) for row in rows
        )
        return Task(name, question, table, {query.index: query for query in queries})

    def prompts(self) -> Sequence[PromptSet]:
        return [PromptSet("plates-1", message)]

    def score(
        self,
        model: str,
        task: Any,
        replies: Sequence[Reply],
        settings: Settings,
        run: Identity | None,
    ) -> BatchScore:
        return BatchScore(tuple(self._row(task.queries[r.index], r) for r in replies))

    def _row(self, query: Query, reply: Reply) -> ScoredRow:
        found = None if reply.failed else re.search(r"\b[A-Z]{3}\b", reply.answer)
        said = found[0] if found else None
        return ScoredRow(
            index=query.index,
            source=query.images[0],
            sums={
                "asked": 1,
                "answered": int(not reply.failed),
                "right": int(said == query.plate),
            },
            failed=reply.failed,
            reason="failed call" if reply.failed else None if said else "no plate",
            details={"label": query.label, "said": said},
        )

    def draw(self, task: Any, row: ScoredRow) -> Drawing:
        query, said = task.queries[row.index], row.details["said"]
        lines = [DrawnLine(Role.TRUTH, query.plate)]
        if said is not None:
            lines.append(DrawnLine(Role.HIT if said == query.plate else Role.MISS, said))
        return Drawing((DrawnPicture(query.images[0], 0, 0),), lines=tuple(lines))


BENCHMARK = Plates()
