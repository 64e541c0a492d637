"""A benchmark of letters in place of boxes: shared code must not assume boxes.

A picture shows an animal of some size; the answer is one letter.
``Letters_<table>_<plain|json|quoted>`` asks for it in three formats.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scored_runs import World

from vlmeval_findit import benchmarks
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
    Published,
    Role,
    ScoredRow,
    image,
    text,
)
from vlmeval_findit.storage import PlainQuery, find_table, meta_path, read_table, write_table

PREFIX = "Letters_"
FORMATS = ("plain", "json", "quoted")
ANIMALS = {"A": "cat", "B": "dog", "C": "cow"}


@dataclass(frozen=True, slots=True)
class DatasetVariant:
    """A table, and how the letter is to be written."""

    table: str
    format: str

    images = "Letters"
    family_name = "Letters"
    has_references = False
    frames = 1
    max_new_tokens = 16
    in_boxes = False
    reply_schema = None

    @property
    def name(self) -> str:
        return f"{PREFIX}{self.table}_{self.format}"

    @property
    def board_dataset(self) -> str:
        return self.table

    @property
    def axes(self) -> dict[str, str | int]:
        return {"format": self.format}

    @property
    def format_place(self) -> tuple[int, ...]:
        return (FORMATS.index(self.format),)

    @property
    def format_cell(self) -> tuple[str, str]:
        return "letter", self.format


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(PlainQuery):
    """A row; ``support`` is a picture of the animal, if the table has one."""

    right: str
    size: str


class Letters(Benchmark):
    """Accuracy of the letter, its mean over animals, and a metric that few tables have."""

    name = "Letters"
    metrics = (
        Metric("Accuracy", {"right": 1}, {"answered": 1}, empty=None),
        Metric("Animal accuracy", {"right": 1}, {"answered": 1}, over="animal", empty=None),
        Metric("Readable", {"readable": 1}, {"answered": 1}, in_short_tables=False),
        Metric("Giants", {"right_giants": 1}, {"giants": 1}, empty=None, in_short_tables=False),
    )
    headline_counting_failures = Metric(
        "Accuracy (failed calls as wrong)", {"right": 1}, {"asked": 1}
    )
    ranking = (headline_counting_failures, metrics[1])

    def parse(self, name: str) -> DatasetVariant:
        table, _, written = name.removeprefix(PREFIX).rpartition("_")
        if not table or written not in FORMATS:
            raise DatasetNameError(f"{name}: a name is {PREFIX}<table>_<{'|'.join(FORMATS)}>")
        return DatasetVariant(table, written)

    def formats(self, variant: DatasetVariant) -> Sequence[DatasetVariant]:
        return [replace(variant, format=written) for written in FORMATS]

    def variant_names(self) -> Sequence[str]:
        return [f"{PREFIX}Zoo_plain"]

    def load(self, name: str) -> LoadedDataset[Any, Any]:
        variant = self.parse(name)
        table = find_table(variant.table, "a test makes it")
        queries: list[Query] = read_table(table, Query, "a test makes it")
        return LoadedDataset(name, variant, table, {query.index: query for query in queries})

    def message(self, query: Query, variant: DatasetVariant) -> Message:
        options = ", ".join(f"{letter}: {animal}" for letter, animal in ANIMALS.items())
        asked = f"Which animal? {options}. Answer as {variant.format}."
        return (image(query.images[0]), text(asked))

    def read(self, text: str, query: Query) -> str | ParseFailure:
        match = re.fullmatch(r"\W*([A-C])\W*", text)
        return match[1] if match else ParseFailure("no letter")

    def score(self, query: Query, answer: str | ParseFailure) -> AnswerScore:
        right = int(answer == query.right)
        giant = {"giants": 1, "right_giants": right} if query.size == "giant" else {}
        return AnswerScore(
            sums={"right": right, **giant},
            slices={"animal": ANIMALS[query.right], "size": query.size},
            details={"chosen": answer if isinstance(answer, str) else None},
        )

    def draw(self, dataset: Any, row: ScoredRow) -> Drawing:
        query = dataset.queries[row.index]
        chosen = row.details.get("chosen")
        lines = [DrawnLine(Role.TRUTH, f"{query.right}: {ANIMALS[query.right]}")]
        if chosen is not None:
            role = Role.HIT if chosen == query.right else Role.MISS
            lines.append(DrawnLine(role, f"{chosen}: {ANIMALS[chosen]}"))
        return Drawing((DrawnImage(query.images[0], 0, 0),), query.support, tuple(lines))

    def published(self) -> Sequence[Published]:
        return (
            Published("Big-Model", "Zoo", {"Accuracy": 88.25}, "A paper, table 2"),
            Published(
                "Small_Model", "Zoo", {"Accuracy": 31.0, "Readable": 99.0}, "A paper, table 2"
            ),
            Published("Big-Model", "Elsewhere", {"Accuracy": 12.5}, "A paper, table 3"),
        )


LETTERS = Letters()


def register(patch: pytest.MonkeyPatch) -> None:
    """Register it as a built-in benchmark for a test."""
    letters = ModuleType("letters")
    letters.__dict__.update(PREFIX=PREFIX, BENCHMARK=LETTERS)
    table = benchmarks.prefixes()
    patch.setattr(table, "builtin", {**table.builtin, PREFIX: letters})


def zoo(world: World, rows: int = 24, table: str = "Zoo", sizes: str = "small large") -> None:
    """A table: two questions a picture, every animal in turn; the first has a reference picture."""
    queries = [
        Query(
            index=index,
            label="which animal",
            images=(f"{index // 2 % 6}.jpg",),
            cluster=f"{index // 2 % 6}.jpg",
            support=("1.jpg",) if index == 0 else (),
            right="ABC"[index % 3],
            size=sizes.split()[index % 5 % len(sizes.split())],
        )
        for index in range(rows)
    ]
    write_table(table_file(world, table), Query, queries, {})
    meta_path(table_file(world, table)).unlink()  # tests edit the table


def guessing(chance: float) -> Any:
    """Return a model that answers the right letter with a chance, else the next."""

    def answer(query: Query, generator: np.random.Generator) -> str:
        right = "ABC".index(query.right)
        return "ABC"[right if generator.random() < chance else (right + 1) % 3]

    return answer


@pytest.fixture
def letters(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Return a world with the benchmark of letters, its table and pictures."""
    register(monkeypatch)
    there = f"Pascal={world.folder / 'pictures'}"
    monkeypatch.setenv("FINDIT_IMAGES", f"{there},Letters={world.folder / 'pictures'}")
    zoo(world)
    return world


def table_file(world: World, table: str = "Zoo") -> Path:
    return world.folder / f"{table}.tsv"
