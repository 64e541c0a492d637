"""Plates as a benchmark: names, rows, messages and the score."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vlmeval_findit.core import suggestion
from vlmeval_findit.protocol import (
    AnswerScore,
    Benchmark,
    DatasetNameError,
    Drawing,
    DrawnImage,
    DrawnLine,
    LoadedDataset,
    Message,
    Metric,
    ParseFailure,
    PlainVariant,
    Role,
    ScoredRow,
    image,
    text,
)
from vlmeval_findit.storage import PlainQuery, find_table, read_table

from . import PREFIX

TABLES = ("Few",)
HOW_TO_MAKE = "python -m findit_plates DIR"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(PlainQuery):
    """One row: a picture, and what its plate says."""

    plate: str


class Plates(Benchmark):
    """How many plates are read."""

    name = "Plates"
    metrics = (Metric("Accuracy", {"right": 1}, {"answered": 1}),)
    headline_counting_failures = Metric(
        "Accuracy (failed calls as misses)", {"right": 1}, {"asked": 1}
    )
    ranking = (headline_counting_failures,)

    def parse(self, name: str) -> PlainVariant:
        table = name.removeprefix(PREFIX)
        if table not in TABLES:
            raise DatasetNameError(f"{name}: no table {table!r}{suggestion(table, TABLES)}")
        return PlainVariant(name, f"Plates_{table}", images="Plates", family_name="Plates")

    def variant_names(self) -> Sequence[str]:
        return [f"{PREFIX}{table}" for table in TABLES]

    def load(self, name: str) -> LoadedDataset[PlainVariant, Query]:
        variant = self.parse(name)
        table = find_table(variant.table, HOW_TO_MAKE)
        queries: list[Query] = read_table(table, Query, HOW_TO_MAKE)
        return LoadedDataset(name, variant, table, {query.index: query for query in queries})

    def message(self, query: Query, variant: PlainVariant) -> Message:
        """The picture, then the question."""
        return (image(query.images[0]), text("What does the number plate say? Three letters."))

    def read(self, text: str, query: Query) -> str | ParseFailure:
        found = re.search(r"\b[A-Z]{3}\b", text)
        return found[0] if found else ParseFailure("no plate")

    def score(self, query: Query, answer: str | ParseFailure) -> AnswerScore:
        said = None if isinstance(answer, ParseFailure) else answer
        return AnswerScore({"right": int(said == query.plate)}, details={"said": said})

    def example(self, query: Query, variant: PlainVariant) -> str:
        return query.plate

    def draw(self, dataset: Any, row: ScoredRow) -> Drawing:
        query = dataset.queries[row.index]
        said = row.details.get("said")
        lines = [DrawnLine(Role.TRUTH, query.plate)]
        if said is not None:
            lines.append(DrawnLine(Role.HIT if said == query.plate else Role.MISS, said))
        return Drawing((DrawnImage(query.images[0], 0, 0),), lines=tuple(lines))


BENCHMARK = Plates()
