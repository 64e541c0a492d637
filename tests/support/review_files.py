"""Reviews for tests: of rows of a table at hand, by one reviewer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from vlmeval_findit.benchmarks import benchmark_of
from vlmeval_findit.data import load_dataset
from vlmeval_findit.protocol import (
    Answer,
    AuditRecord,
    Review,
    Reviews,
    ReviewVerdict,
    RowChoice,
    as_ranges,
)
from vlmeval_findit.storage import table_hash, write_reviews

Boxes = Sequence[tuple[float, float, float, float]]


@dataclass(frozen=True)
class Reviewer:
    """Reviews rows of a dataset, at hand."""

    name: str  # Of the dataset
    voters: tuple[str, ...] = ()

    @cached_property
    def _dataset(self) -> Any:
        return load_dataset(self.name)

    @cached_property
    def _hashes(self) -> dict[int, str]:
        return benchmark_of(self._dataset.variant).row_hashes(self._dataset)

    @cached_property
    def table(self) -> str:
        return table_hash(self._dataset.table)

    def label(self, index: int) -> Answer:
        dataset = self._dataset
        label = benchmark_of(dataset.variant).label(dataset, dataset.queries[index])
        assert label is not None
        return label

    def review(
        self,
        index: int,
        verdict: ReviewVerdict,
        *accept: Answer,
        drawn: RowChoice = RowChoice.LISTED,
        reviewer: str = "ab",
    ) -> Review:
        """Review a row; the label is accepted where the verdict is that it is right."""
        if verdict is ReviewVerdict.LABEL and not accept:
            accept = (self.label(index),)
        return Review(
            table=self.table,
            index=index,
            row=self._hashes[index],
            verdict=verdict,
            accept=accept,
            kind="",
            reviewer=reviewer,
            date="2026-01-31",
            drawn=drawn,
            voters=self.voters,
        )

    def audit(self, listed: Sequence[int], models: Sequence[str] = ()) -> AuditRecord:
        """Return the record of an audit of the whole table."""
        rows = len(self._dataset.queries)
        return AuditRecord(
            table=self.table,
            rows=rows,
            listed=tuple(listed),
            unlisted=rows - len(listed),
            seed=7,
            voters=self.voters,
            models=tuple(models),
            judged=as_ranges(self._dataset.queries),
        )


def write(path: Path, *reviews: Review, audits: Sequence[AuditRecord] = ()) -> Path:
    """Write reviews to a new file."""
    write_reviews(path, Reviews(reviews, tuple(audits)))
    return path
