"""The score of a run: its rows are scored, and their coordinates checked."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from .. import benchmarks
from ..boxes import SpaceError
from ..coords import AnsweredQuery, score_check
from ..models import EncoderError, UnknownModelError
from ..protocol import (
    COST_KEY,
    GIVEN_SOURCE,
    Answering,
    AnyDataset,
    Benchmark,
    DatasetVariant,
    Identity,
    Metric,
    Predictions,
    QueryCost,
    Reply,
    ScoredRow,
    Scorer,
    SumName,
    ThoughtMarks,
    add_up,
    cost_in,
    cost_values,
    metric_values,
    none_answered,
    sum_rows,
    unnamed_marks,
)
from ..statistics import value_of_all_rows
from ..storage import OTHER_SPACE, REVIEWED, SHOWN_COLUMN
from .answered_by import ModelRecord, answered_note, as_values, count_models, models_in
from .prompt_tokens import PromptTokens, count_unseen, prompt_tokens
from .recorded_reviews import ScoreReviews
from .reply_note import count_replies, reply_note
from .stated_values import note_on_stated

# Why a run has no values and is in no comparison, and what to do
UNANSWERED = "no call was answered; its predictions say why, and the same run command asks again"


@dataclass(frozen=True, slots=True)
class RunScore:
    """The score of one run and all that it rests on."""

    model: str
    dataset: AnyDataset
    rows: tuple[ScoredRow, ...]
    # Of all rows, and of their slices; where random rows stand for others, weighted as they are
    sums: Mapping[SumName, float]
    spaces: tuple[Mapping[str, Any], ...]  # Coordinate spaces in force, each with a ``source``
    identity: Identity | None
    answered_by: Mapping[ModelRecord, int] = field(default_factory=dict)  # Answers by their model
    counted: Mapping[str, float] = field(default_factory=dict)  # Of :func:`.count_replies`
    costs: tuple[QueryCost, ...] = ()  # Of the answers
    prompt_tokens: tuple[PromptTokens, ...] = ()  # As far as servers counted them
    forced: tuple[str, ...] = ()  # Conflicts that ``--force`` went over
    scorer: Scorer | None = None  # What decided besides the benchmark's code
    thought_marks: ThoughtMarks | None = None  # That the user named
    reads_like: str | None = None  # That the user named, not the run's record
    sample: tuple[AnsweredQuery, ...] = ()  # Answers for the coordinate check
    coords_doubt: str | None = None  # What it says of them; no metric depends on it
    # Replies by the marks at their start that nobody named: perhaps their thoughts are read
    unnamed_marks: Mapping[str, float] = field(default_factory=dict)
    reviews: ScoreReviews | None = None  # Of labels, that it was scored with

    @property
    def variant(self) -> DatasetVariant:
        return self.dataset.variant

    @property
    def answering(self) -> Answering | None:
        return self.identity.answering if self.identity is not None else None

    @property
    def benchmark(self) -> Benchmark:
        return benchmarks.benchmark_of(self.variant)

    def values(self, metrics: Iterable[Metric]) -> Mapping[str, float | None]:
        """Return metrics by name, in percent; none has a value if no call was answered."""
        if self.is_unanswered:
            return {metric.name: None for metric in metrics}
        if self.reviews is None or not self.reviews.is_weighted:
            return metric_values(metrics, self.sums)
        return {metric.name: value_of_all_rows(metric, self.sums) for metric in metrics}

    @property
    def metric_values(self) -> Mapping[str, float | None]:
        """The metrics in percent, by name."""
        return self.values(self.benchmark.metrics)

    @property
    def mark(self) -> str:
        """The mark in its files' names, of another space than the recorded one and of reviews."""
        reviewed = f"{REVIEWED}{self.reviews.digest}" if self.reviews else ""
        return f"{self._space_mark}{reviewed}"

    @property
    def _space_mark(self) -> str:
        for space in self.spaces:
            if space["source"].startswith(GIVEN_SOURCE):
                more = [f"{k}={v}" for k, v in space.items() if k not in ("kind", "source")]
                return "-".join([f"{OTHER_SPACE}{space['kind']}", *more])
        return ""

    @property
    def failed(self) -> int:
        return sum(row.failed for row in self.rows)

    @property
    def is_unanswered(self) -> bool:
        """Whether no call was answered, so that it measures nothing."""
        return none_answered(self.failed, len(self.rows))

    @property
    def stated_note(self) -> str | None:
        """Say what was stated of the model in place of what is known."""
        marks = self.thought_marks
        pair = (marks.opens, marks.closes) if marks is not None else None
        return note_on_stated(self.model, self.identity, self.spaces, pair, self.reads_like)

    @property
    def answered_note(self) -> str | None:
        """Say that several models answered, or another than was asked."""
        return answered_note(models_in(as_values(self.answered_by)), self.identity)

    @property
    def reply_counts(self) -> Counter[str]:
        """Its replies, and those in which something is odd."""
        return Counter(self.counted) + count_unseen(self.prompt_tokens)

    @property
    def reply_note(self) -> str | None:
        """What is odd in its replies; None if nothing is."""
        return reply_note(self.reply_counts)

    @property
    def reasons(self) -> Counter[str]:
        return Counter(row.reason for row in self.rows if row.reason is not None)


@contextmanager
def say_how_to_score(path: Path, dataset: str | None) -> Iterator[None]:
    """Add to the error of rows that cannot be scored what to type; the predictions are safe."""
    try:
        yield
    except (SpaceError, EncoderError) as error:
        words = ["score", *_what_helps(error)]
        if dataset is not None:
            words += ["--data", dataset]
        command = f"python run_findit.py {shlex.join([*words, str(path)])}"
        raise type(error)(
            f"{error}\nThe predictions are safe in {path}; score them without running the model "
            f"again:\n  {command}"
        ) from None


def _what_helps(error: SpaceError | EncoderError) -> tuple[str, str]:
    """Return the flag of ``score`` that an error asks for, and its value."""
    if isinstance(error, UnknownModelError):
        return "--reads-like", "MODEL"
    if isinstance(error, SpaceError):
        return "--space", "SPACE"
    return "--encoder", "ENCODER"


def score_rows(opened: Predictions) -> RunScore:
    """Score the replies of a run, a batch at a time; ValueError if no space is known."""
    return join_scores(map(_score_batch, _batches(opened)))


def _batches(opened: Predictions) -> Iterator[Predictions]:
    """Yield the replies in batches that the benchmark can hold, at least one."""
    count = max(1, len(opened.replies))
    size = opened.benchmark.batch_size or count
    for start in range(0, count, size):
        yield replace(opened, replies=opened.replies[start : start + size])


def _score_batch(opened: Predictions) -> RunScore:
    model = opened.model
    dataset = opened.dataset
    replies = opened.replies
    benchmark = opened.benchmark
    batch = benchmark.score_batch(model, dataset, replies, opened.settings, opened.identity)
    benchmark.check_sums(batch.rows)
    rows = tuple(map(_with_record, batch.rows, replies))
    return RunScore(
        model=model,
        dataset=dataset,
        rows=rows,
        sums=sum_rows(rows),
        spaces=batch.spaces,
        identity=opened.identity,
        answered_by=count_models(replies),
        counted=count_replies(replies),
        costs=tuple(cost_in(row.details) for row in rows if not row.failed),
        prompt_tokens=tuple(prompt_tokens(opened)),
        forced=opened.forced,
        scorer=batch.scorer,
        thought_marks=opened.settings.thought_marks,
        reads_like=_stated_like(opened),
        sample=score_check.sample(dataset, rows),
        unnamed_marks=Counter(filter(None, (unnamed_marks(reply.answer) for reply in replies))),
    )


def _stated_like(opened: Predictions) -> str | None:
    """Return the ``reads_like`` of the settings, where the run did not record the same."""
    recorded = opened.identity.reads_like if opened.identity is not None else None
    like = opened.settings.reads_like
    return None if like == recorded else like


def _with_record(row: ScoredRow, reply: Reply) -> ScoredRow:
    recorded = reply.recorded
    more: dict[str, Any] = {}
    if recorded.finish_reason:
        more["finish_reason"] = recorded.finish_reason
    if recorded.tokens:
        more["tokens"] = dict(recorded.tokens)
    if recorded.images:
        more["images"] = list(recorded.images)
    if cost := cost_values(recorded.call, reply.time):
        more[COST_KEY] = cost
    if reply.shown:
        more[SHOWN_COLUMN] = dict(reply.shown)
    return replace(row, details={**row.details, **more}) if more else row


def join_scores(parts: Iterable[RunScore]) -> RunScore:
    """Join the score of a run from its parts, in the order of the rows; at least one part."""
    runs = list(parts)
    spaces = {repr(sorted(space.items())): space for run in runs for space in run.spaces}
    return replace(
        runs[0],
        rows=tuple(chain.from_iterable(run.rows for run in runs)),
        sums=add_up(run.sums for run in runs),
        spaces=tuple(spaces.values()),
        answered_by=_add_up(run.answered_by for run in runs),
        counted=add_up(run.counted for run in runs),
        costs=tuple(chain.from_iterable(run.costs for run in runs)),
        prompt_tokens=tuple(chain.from_iterable(run.prompt_tokens for run in runs)),
        forced=tuple(dict.fromkeys(chain.from_iterable(run.forced for run in runs))),
        sample=score_check.join_samples([run.sample for run in runs]),
        unnamed_marks=add_up(run.unnamed_marks for run in runs),
    )


def _add_up(counts: Iterable[Mapping[ModelRecord, int]]) -> Counter[ModelRecord]:
    total: Counter[ModelRecord] = Counter()
    for each in counts:
        total.update(each)
    return total


def check_coordinates(run: RunScore) -> RunScore:
    """Add what the coordinate check says of a run; its sample is dropped."""
    doubt = score_check.warning(run.dataset, run.sample, run.spaces)
    return replace(run, coords_doubt=doubt, sample=())


def without_details(run: RunScore) -> RunScore:
    """Return the values of a run's summary, without boxes and texts."""
    return replace(run, rows=tuple(replace(row, details={}) for row in run.rows))


# --- results of the cells of a sweep --------------------------------------------------------------


class SearchError(ValueError):
    """Results that name no winner; the message says why."""


@dataclass(frozen=True, slots=True)
class DroppedFormat:
    """Why a race stopped asking in a format."""

    round: int  # From 1
    queries: int  # That the format had been asked by then
    all_queries: int  # Of all tables
    leader: str  # The leading format
    points: float  # Difference of the headline metrics over these queries
    chance: float  # That all queries would have shown this format to be better


@dataclass(frozen=True, slots=True, eq=False)
class CellResult:
    """The score of one cell; ``path`` is its prediction file.

    ``rows`` of the ``table_rows`` rows of its table were asked, those that ``failed`` too.
    ``compared``: its format is one of the axes', not that of a variant which the sweep names.
    ``stated_note`` says what was stated of its model in place of what is known,
    ``coords_doubt`` why it is in doubt, ``answered_note`` that several models answered, or another
    than was asked, ``reply_note`` what is odd in its replies.
    ``dropped``: a race stopped asking in its format, so it is never compared with results over more
    queries.
    """

    model: str
    variant: DatasetVariant
    sums: Mapping[SumName, float]
    rows: int
    failed: int
    path: Path
    table_rows: int
    compared: bool = True
    coords_doubt: str | None = None
    answered_note: str | None = None
    reply_note: str | None = None
    stated_note: str | None = None
    dropped: DroppedFormat | None = None
    sample: int = 1

    @property
    def is_unanswered(self) -> bool:
        """Whether no call was answered, so that it measures nothing."""
        return none_answered(self.failed, self.rows)

    @property
    def metric_values(self) -> Mapping[str, float | None]:
        """The metrics in percent, by name; none has a value if no call was answered."""
        metrics = benchmarks.benchmark_of(self.variant).metrics
        if self.is_unanswered:
            return {metric.name: None for metric in metrics}
        return metric_values(metrics, self.sums)


def result_of(run: RunScore, path: Path) -> CellResult:
    """Return the result of a cell, given its score."""
    return CellResult(
        run.model,
        run.dataset.variant,
        run.sums,
        len(run.rows),
        run.failed,
        path,
        len(run.dataset.queries),
        coords_doubt=run.coords_doubt,
        answered_note=run.answered_note,
        reply_note=run.reply_note,
        stated_note=run.stated_note,
    )


def refuse_unanswered(results: Iterable[CellResult]) -> None:
    """Raise SearchError if no call of a cell was answered."""
    for result in results:
        if result.is_unanswered:
            raise SearchError(
                f"every call of {result.model} on {result.variant.name} failed: no format can be "
                f"chosen. {result.path} says why; run again to ask again."
            )
