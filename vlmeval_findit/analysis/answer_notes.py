"""What a run's answers say at once: hardly any is as asked, or hardly any names an object.

Whoever shows a run says so, in these words.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ..benchmarks.findit import NegativeOutcome, rejections
from ..boxes import BoxError
from ..core import agreeing, as_called
from ..models import PROVIDERS
from ..protocol import (
    CHAT_KIND,
    PROVIDER_KIND,
    Answering,
    Benchmark,
    DatasetVariant,
    ScoredRow,
    Sums,
    failed_calls,
    lost_key,
    model_words,
    reasons,
    rows_with_sum,
)

_FEWEST = 5  # Answers of which a share is told
_HARDLY_ANY = 0.1


class AnsweredRun(Protocol):
    """What is known of a run that was scored just now, or is stored."""

    @property
    def model(self) -> str: ...

    @property
    def benchmark(self) -> Benchmark: ...

    @property
    def rows(self) -> Sequence[ScoredRow]: ...

    @property
    def sums(self) -> Sums: ...

    @property
    def variant(self) -> DatasetVariant: ...

    @property
    def answering(self) -> Answering | None: ...


def adherence_note(run: AnsweredRun) -> str | None:
    """Say that hardly any reply is in the format that was asked for; None where some are."""
    is_answered = ~np.array(failed_calls(run.rows), dtype=bool)
    replies = int(is_answered.sum())
    is_read = np.array([reason is None for reason in reasons(run.rows)], dtype=bool)
    adherent = int((is_read & is_answered).sum())
    if replies < _FEWEST or adherent > _HARDLY_ANY * replies:
        return None
    are = agreeing(adherent, "is", "are")
    note = f"{adherent:,} of {replies:,} replies {are} in the format that was asked for"
    strict = run.benchmark.metrics[0]
    lenient = run.benchmark.lenient
    if lenient is not None:
        values = [f"{metric.value(run.sums) or 0:.1f}" for metric in (strict, lenient)]
        if values[0] != values[1]:
            note += f"; read leniently, {strict.name} would be {values[1]}, not {values[0]}"
    search = shlex.join(["search", *_asked_again(run), "--data", run.variant.table])
    return as_called(
        f"{note}. What is asked: run_findit.py {_shown(run)}; a format that it follows: "
        f"run_findit.py {search}"
    )


def _asked_again(run: AnsweredRun) -> list[str]:
    """Return the words by which the model of a run is asked again, where it was asked."""
    who = run.answering
    if who is None or who.checkpoint is None:
        return ["--model", run.model]
    named = model_words(run.model, who)
    kind = who.kind or ""
    if kind.startswith(PROVIDER_KIND):
        return ["--model", run.model, "--provider", kind.removeprefix(PROVIDER_KIND)]
    # A model of the table finds the provider that relays it by itself.
    addresses = [provider.address for provider in PROVIDERS.values()]
    if kind == CHAT_KIND and who.endpoint is not None and who.endpoint not in addresses:
        return [*named, "--base-url", who.endpoint.replace(", ", ",")]
    is_here = who.runs_here or who.server is not None
    words = named if is_here and who.row != run.model else ["--model", run.model]
    serve = ["--serve", who.server.split()[0]] if who.server is not None else []
    return [*words, *serve]


def _shown(run: AnsweredRun) -> str:
    return f"data show {run.variant.name} --index {run.rows[0].index}"


def nothing_found_note(run: AnsweredRun) -> str | None:
    """Say that nearly each answer is that there is no object, where there is one; else None."""
    nothing = lost_key(BoxError.NOTHING_FOUND.value)
    saying_so = int(rows_with_sum(run.rows, nothing).sum())
    without_object = rejections(run.sums)
    without_object.pop(NegativeOutcome.FAILED, None)
    answered = len(run.rows) - sum(failed_calls(run.rows)) - sum(without_object.values())
    if saying_so < max(_FEWEST, (1 - _HARDLY_ANY) * answered):
        return None
    return as_called(
        f"{saying_so:,} of {answered:,} answers say that there is no object, though there is one: "
        "the model may not know the words or this kind of image, or not see the image. "
        f"What is asked: run_findit.py {_shown(run)}"
    )
