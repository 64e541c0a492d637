"""VP-Bench as a :class:`.Benchmark`: one letter, read in two ways."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, cast

from ...core import sha256_of
from ...protocol import (
    UNREAD,
    Baseline,
    BatchScore,
    Benchmark,
    Drawing,
    DrawnImage,
    DrawnLine,
    Identity,
    LoadedDataset,
    Message,
    ParseFailure,
    PartKind,
    Published,
    Replies,
    Reply,
    ReplyRecord,
    Role,
    ScoredRow,
    Settings,
    read_reply,
)
from . import question_tables as tables
from . import stage2_dataset
from .letter_metrics import COUNTS, METRICS, RANKING, UNSCORED, WITH_FAILURES, published, row_slices
from .stage2_dataset import Stage2Variant
from .vp_query import AMBIGUOUS, NO_CHOICE, VPQuery


def scored_row(query: VPQuery, reply: Reply) -> ScoredRow:
    """Score a reply; a question without a known answer is only counted."""
    # Imported only then: its patterns take a tenth of the start of every command.
    from .letter_reading import published_letter, read_letter

    choice = read_reply(reply, lambda text: read_letter(text, dict(query.options)))
    letter = None if isinstance(choice, ParseFailure) else choice
    why = choice.reason if isinstance(choice, ParseFailure) else None
    # The authors read the stored text, with thoughts and the message of a failed call.
    published = published_letter(reply.text)
    sums = {
        "asked": 1,
        "answered": int(not reply.failed),
        "readable": int(letter is not None),
        "right": int(letter == query.answer),
        "right_as_published": int(published == query.answer),
        "absent": int(query.absent and not reply.failed),
        "hallucinated": int(query.absent and letter not in (None, query.answer)),
    }
    return ScoredRow(
        index=query.index,
        source=query.cluster,
        sums=sums if query.answer else UNSCORED,
        failed=reply.failed,
        reason=why if query.answer or reply.failed else None,
        slices=row_slices(query),
        details={"label": query.label, "chosen": letter, "as_published": published},
    )


def draw(query: VPQuery, row: ScoredRow) -> Drawing:
    """Draw the images with all options, the right one marked, and the choice by both readings."""
    shown = {letter: f"{letter}. {text}" for letter, text in query.options}

    def chosen(letter: str | None, text: str) -> DrawnLine:
        if not query.answer:  # neither right nor wrong
            return DrawnLine(Role.OPTION, text)
        return DrawnLine(Role.HIT if letter == query.answer else Role.MISS, text)

    lines = []
    for letter, text in shown.items():
        role = Role.TRUTH if letter == query.answer else Role.OPTION
        lines.append(DrawnLine(role, text))
    letter = row.details["chosen"]
    published = row.details["as_published"]
    if letter is not None:
        lines.append(chosen(letter, shown[letter]))
    if published != letter:
        text = shown.get(published, f"{published}. is no option") if published else "no letter"
        lines.append(chosen(published, f"as published: {text}"))
    images = tuple(
        DrawnImage(path, query.width, query.height, number)
        for number, path in enumerate(query.images)
    )
    return Drawing(images, query.support, tuple(lines))


def letters_offered(value: str) -> list[str]:
    r"""List the letters of the non-empty options above the last line of a text.

    >>> letters_offered("A. is no option here\nWhich?\nA. cat\nB. dog\nC. \nAnswer.")
    ['A', 'B']
    """
    options = list(takewhile(re.compile(r"[A-D]\.").match, value.splitlines()[-2::-1]))
    return [option[0] for option in reversed(options) if option[2:].strip()]


def first_option(message: Message, variant: tables.VPBenchVariant) -> tuple[str, ReplyRecord]:
    """Answer the first option."""
    return _letters(message)[0], ReplyRecord(finish_reason="stop")


def random_option(message: Message, variant: tables.VPBenchVariant) -> tuple[str, ReplyRecord]:
    """Answer a random option, the same for the same texts and image names."""
    seen = []
    for part in message:
        is_image = part.kind is PartKind.IMAGE
        seen.append(Path(part.value).name if is_image else part.value)
    seed = sha256_of(*(f"{value}\n".encode() for value in seen))
    letters = _letters(message)
    return letters[int(seed, 16) % len(letters)], ReplyRecord(finish_reason="stop")


def _letters(message: Message) -> list[str]:
    value = "\n".join(part.value for part in message if part.kind is PartKind.TEXT)
    return letters_offered(value) or ["A"]


BASELINES = {"FirstOption": Baseline(first_option), "RandomOption": Baseline(random_option)}


class VPBench(Benchmark):
    """One letter to a question about marks, read in our way and the authors'."""

    name = "VP-Bench"
    metrics = METRICS
    ranking = RANKING
    headline_counting_failures = WITH_FAILURES
    counts = COUNTS
    reasons = (*UNREAD, AMBIGUOUS.reason, NO_CHOICE.reason)
    baselines = BASELINES

    def parse(self, name: str) -> tables.VPBenchVariant | Stage2Variant:
        return (
            stage2_dataset.parse(name) if stage2_dataset.is_of_stage2(name) else tables.parse(name)
        )

    def variant_names(self) -> Sequence[str]:
        return [*tables.TABLES, next(iter(stage2_dataset.VARIANTS)), *tables.custom_tables()]

    def load(self, name: str) -> LoadedDataset[Any, VPQuery]:
        variant = self.parse(name)
        if isinstance(variant, Stage2Variant):
            return stage2_dataset.load_stage2(name)
        table = tables.table_path(variant.table)
        queries = {query.index: query for query in tables.read_table(table)}
        return LoadedDataset(name, variant, table, queries)

    def for_model(
        self, dataset: Any, model: str, recorded: Mapping[str, str] | None = None
    ) -> LoadedDataset[Any, VPQuery]:
        """Choose the model's best mark, where stage 2 asks by it."""
        if isinstance(dataset.variant, Stage2Variant):
            return stage2_dataset.for_model(dataset, model, recorded)
        return cast("LoadedDataset[Any, VPQuery]", dataset)

    def query_set_key(self, variant: Any) -> tuple[object, ...]:
        # The formats of stage 2 share a table, but not the images.
        return (variant.board_dataset,)

    def message(self, query: Any, variant: Any) -> Message:
        return tables.message(query, variant)

    def example(self, query: Any, variant: Any) -> str:
        return str(query.answer)

    def score_batch(
        self, model: str, dataset: Any, replies: Replies, settings: Settings, run: Identity | None
    ) -> BatchScore:
        return BatchScore(
            tuple(scored_row(dataset.queries[reply.index], reply) for reply in replies)
        )

    def draw(self, dataset: Any, row: ScoredRow) -> Drawing:
        return draw(dataset.queries[row.index], row)

    def interval_note(self, variant: Any) -> str:
        return _UNKNOWN_PHOTOGRAPHS if variant.table == tables.STAGE_1 else ""

    def published(self) -> Sequence[Published]:
        return tuple(published())


_UNKNOWN_PHOTOGRAPHS = (
    "questions about one photograph with other marks count as independent, because the files of "
    "stage 1 do not say which photograph an image shows: intervals are narrower, and p-values "
    "smaller, than they should be"
)

BENCHMARK = VPBench()  # The one VP-Bench benchmark, with both stages
