"""A benchmark of letters in place of boxes: what shows that nothing shared knows boxes.

A picture shows an animal of some size; the answer is one letter.  ``Letters_<table>_<plain|json>``
asks for it in two formats.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scored_runs import World

from vlmeval_findit import benchmarks
from vlmeval_findit.core.benchmark import BatchScore, Benchmark, PromptSet, Published
from vlmeval_findit.core.drawing import Drawing, DrawnLine, DrawnPicture, Role
from vlmeval_findit.core.identity import Identity
from vlmeval_findit.core.messages import Message, image, text
from vlmeval_findit.core.metric import Metric
from vlmeval_findit.core.places import find_table
from vlmeval_findit.core.question import QuestionError, Task
from vlmeval_findit.core.replies import Reply
from vlmeval_findit.core.scored_row import ScoredRow
from vlmeval_findit.core.settings import Settings

PREFIX = "Letters_"
FORMATS = ("plain", "json")
ANIMALS = {"A": "cat", "B": "dog", "C": "cow"}


@dataclass(frozen=True, slots=True)
class Question:
    """A table, and how the letter is to be written."""

    table: str
    format: str

    images = "Letters"
    family_name = "letters"
    has_references = False
    frames = 1
    max_new_tokens = 16

    @property
    def name(self) -> str:
        return f"{PREFIX}{self.table}_{self.format}"

    @property
    def column(self) -> str:
        return self.table

    @property
    def format_place(self) -> tuple[int, ...]:
        return (FORMATS.index(self.format),)

    @property
    def format_cell(self) -> tuple[str, str]:
        return "letter", self.format


@dataclass(frozen=True, slots=True)
class Query:
    """One row; ``support`` is a picture of the animal itself where the table has one."""

    index: int
    label: str
    images: tuple[str, ...]
    support: tuple[str, ...]
    right: str
    size: str
    width: int = 0
    height: int = 0


class Letters(Benchmark):
    """Accuracy of one letter, its mean over animals, and one figure that few tables have."""

    name = "Letters"
    metrics = (
        Metric("Accuracy", {"right": 1}, {"answered": 1}, empty=None),
        Metric("Animal accuracy", {"right": 1}, {"answered": 1}, over="animal", empty=None),
        Metric("Readable", {"readable": 1}, {"answered": 1}, in_short_tables=False),
        Metric("Giants", {"right_giants": 1}, {"giants": 1}, empty=None, in_short_tables=False),
    )
    with_failures = Metric("Accuracy (failed calls as wrong)", {"right": 1}, {"asked": 1})
    ranking = (with_failures, metrics[1])

    def parse(self, name: str) -> Question:
        table, _, written = name.removeprefix(PREFIX).rpartition("_")
        if not table or written not in FORMATS:
            raise QuestionError(f"{name}: a name is {PREFIX}<table>_<{'|'.join(FORMATS)}>")
        return Question(table, written)

    def listed(self) -> Sequence[str]:
        return [f"{PREFIX}Zoo_plain"]

    def load(self, name: str) -> Task[Any, Any]:
        question = self.parse(name)
        table = find_table(question.table, "a test makes it")
        with table.open(encoding="utf-8", newline="") as f:
            rows = list(csv.DictReader(f, delimiter="\t"))
        queries = [
            Query(
                int(row["index"]),
                "which animal",
                (row["picture"],),
                tuple(filter(None, (row["support"],))),
                row["right"],
                row["size"],
            )
            for row in rows
        ]
        return Task(name, question, table, {query.index: query for query in queries})

    def prompts(self) -> Sequence[PromptSet]:
        return [PromptSet("letters-1", message)]

    def score(
        self,
        model: str,
        task: Any,
        replies: Sequence[Reply],
        settings: Settings,
        run: Identity | None,
    ) -> BatchScore:
        return BatchScore(tuple(scored(task.queries[reply.index], reply) for reply in replies))

    def draw(self, task: Any, row: ScoredRow) -> Drawing:
        query, chosen = task.queries[row.index], row.details["chosen"]
        lines = [DrawnLine(Role.TRUTH, f"{query.right}: {ANIMALS[query.right]}")]
        if chosen is not None:
            role = Role.HIT if chosen == query.right else Role.MISS
            lines.append(DrawnLine(role, f"{chosen}: {ANIMALS[chosen]}"))
        return Drawing((DrawnPicture(query.images[0], 0, 0),), query.support, tuple(lines))

    def published(self) -> Sequence[Published]:
        return (
            Published("Big-Model", "Zoo", {"Accuracy": 88.25}, "A paper, table 2"),
            Published(
                "Small_Model", "Zoo", {"Accuracy": 31.0, "Readable": 99.0}, "A paper, table 2"
            ),
            Published("Big-Model", "Elsewhere", {"Accuracy": 12.5}, "A paper, table 3"),
        )


LETTERS = Letters()


def message(query: Query, question: Question) -> Message:
    options = ", ".join(f"{letter}: {animal}" for letter, animal in ANIMALS.items())
    return (image(query.images[0]), text(f"Which animal? {options}. Answer as {question.format}."))


def scored(query: Query, reply: Reply) -> ScoredRow:
    found = None if reply.failed else re.fullmatch(r"\W*([A-C])\W*", reply.answer)
    chosen = found[1] if found else None
    right = int(chosen == query.right)
    giant = query.size == "giant"
    answered = int(not reply.failed)
    return ScoredRow(
        index=query.index,
        source=query.images[0],
        sums={
            "asked": 1,
            "answered": answered,
            "readable": int(chosen is not None),
            "right": right,
            **({"giants": answered, "right_giants": right} if giant else {}),
        },
        failed=reply.failed,
        reason="failed call" if reply.failed else None if chosen else "no letter",
        slices={"animal": ANIMALS[query.right], "size": query.size},
        details={"chosen": chosen},
    )


def register(patch: pytest.MonkeyPatch) -> None:
    """Make it one of the benchmarks of the house, for a test."""
    letters = ModuleType("letters")
    letters.__dict__.update(PREFIX=PREFIX, BENCHMARK=LETTERS)
    table = benchmarks.prefixes()
    patch.setattr(table, "ours", {**table.ours, PREFIX: letters})


def zoo(world: World, rows: int = 24, table: str = "Zoo", sizes: str = "small large") -> None:
    """A table: two questions a picture, every animal in turn; the first has a reference picture."""
    with (world.folder / f"{table}.tsv").open("w", encoding="utf-8", newline="") as f:
        out = csv.writer(f, delimiter="\t")
        out.writerow(("index", "picture", "support", "right", "size"))
        for index in range(rows):
            size = sizes.split()[index % 5 % len(sizes.split())]
            support = "1.jpg" if index == 0 else ""
            out.writerow((index, f"{index // 2 % 6}.jpg", support, "ABC"[index % 3], size))


def guessing(chance: float) -> Any:
    """A model that says the right letter with a chance, else the next one."""

    def answer(query: Query, generator: np.random.Generator) -> str:
        right = "ABC".index(query.right)
        return "ABC"[right if generator.random() < chance else (right + 1) % 3]

    return answer


@pytest.fixture
def letters(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A world with the benchmark of letters, its table and pictures."""
    register(monkeypatch)
    there = f"Pascal={world.folder / 'pictures'}"
    monkeypatch.setenv("FINDIT_IMAGES", f"{there},Letters={world.folder / 'pictures'}")
    zoo(world)
    return world


def table_file(world: World, table: str = "Zoo") -> Path:
    return world.folder / f"{table}.tsv"
