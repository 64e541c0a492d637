"""The protocol that each folder below ``benchmarks/`` implements; all else is shared.

The prefix of a dataset name (``FindIt_RefCOCO_xyxy_json``) finds the benchmark. What has a body
here need not be written. ``docs/architecture.md`` shows how to write one, step by step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from .anatomy import Anatomy, WrongAnswers
from .drawing import Curve, Drawing
from .identity import Contradiction, Described, Identity
from .messages import Message, prompt_hash
from .metric import Metric, unsliced
from .question import AnyTask, Query, Question, QuestionError
from .replies import ParseFailure, Recorded, Reply, read_reply
from .scored_row import ScoredRow, totals
from .settings import Settings
from .spelling import nearest

_STANDARD = ("asked", "answered", "readable", "failed")  # Sums that every benchmark may have


class PromptSet(NamedTuple):
    """The words of all prompts."""

    name: str  # Changes whenever a word does
    # The parts of a query's message, images relative to the image folder
    message: Callable[[Any, Any], Message]

    def hash(self, task: AnyTask) -> str:
        """Hash all messages of a task, as all models share it."""
        queries = task.of_all.queries.values()
        return prompt_hash(self.message(query, task.question) for query in queries)


@dataclass(frozen=True, slots=True)
class Baseline:
    """A model without weights, to compare scores with."""

    # (message with image files, question) -> reply and its record
    answer: Callable[[Message, Any], tuple[str, Recorded]]
    space: Mapping[str, Any] | None = None  # Coordinate space of its answers, where they have one
    tables: frozenset[str] | None = None  # Tables that it can answer (None: all)


@dataclass(frozen=True, slots=True)
class Published:
    """A published result: shown beside ours, never ranked with them."""

    model: str
    column: str
    values: Mapping[str, float]  # In percent, by metric
    where: str


@dataclass(frozen=True, slots=True)
class Scorer:
    """What beside the benchmark's own code decided what is right, such as an encoder."""

    name: str  # For people
    settings: Mapping[str, str]  # Runs are compared only where these are the same
    source: str  # Who chose it
    versions: Mapping[str, str] = field(default_factory=dict)  # Recorded, not compared

    def __str__(self) -> str:
        said = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        return f"{self.name} ({said})"


class Score(NamedTuple):
    """What one answer is worth; see :class:`.ScoredRow`."""

    sums: Mapping[str, float]
    slices: Mapping[str, str] = {}
    details: Mapping[str, Any] = {}
    parts: Mapping[tuple[str, str], Mapping[str, float]] = {}


@dataclass(frozen=True, slots=True)
class BatchScore:
    """The scores of a batch of replies, in their order."""

    rows: tuple[ScoredRow, ...]
    # Coordinate spaces of the replies, with a ``source``
    spaces: tuple[Mapping[str, Any], ...] = ()
    scorer: Scorer | None = None  # What decided beside the benchmark's code


class Benchmark(ABC):
    """What a benchmark does."""

    name: str  # For people and files
    metrics: tuple[Metric, ...]  # The headline first
    ranking: tuple[Metric, ...]  # What formats are compared by, the weightiest first
    with_failures: Metric  # The headline with failed calls as wrong; no other metric counts them
    salvaged: Metric | None = None  # The headline under lenient parsing, one of ``metrics``
    # Titles in a score's table -> the sums that stand there
    counts: Mapping[str, str] = MappingProxyType({})
    format_axes: tuple[str, str] = ("", "")  # Rows and columns of a heat map of formats
    at_a_time: int | None = 256  # Most replies per :meth:`score_batch` (None: all of a run)
    prompts_version: int = 1  # Counts the changes of what is asked
    prompts_help: str = ""  # How to get other prompt sets
    baselines: Mapping[str, Baseline] = MappingProxyType({})  # Models without weights, by name
    reasons: tuple[str, ...] = ()  # Reasons that its anatomy tells apart

    def of(self, question: Any) -> Benchmark:
        """Return the benchmark with a question's metrics: itself, unless judged otherwise."""
        return self

    @property
    def headlines(self) -> tuple[str, ...]:
        """Name the headlines that its questions have."""
        return (self.metrics[0].name,)

    @property
    def all_metrics(self) -> tuple[Metric, ...]:
        """The headline with failed calls as misses, which ranks models; then its metrics."""
        return (self.with_failures, *self.metrics)

    @property
    def anatomy(self) -> Anatomy:
        """How what its score lost is divided among causes."""
        return WrongAnswers(self.with_failures, self.reasons)

    @abstractmethod
    def parse(self, name: str) -> Question:
        """Parse a dataset name.

        Raises:
            QuestionError: it is none; the message names the part and the nearest valid one.
        """

    @abstractmethod
    def listed(self) -> Sequence[str]:
        """One name a table: what lists of datasets show."""

    @abstractmethod
    def load(self, name: str) -> AnyTask:
        """Load a question with the rows of its table.

        Raises:
            QuestionError: the name is none.
            FileNotFoundError: the table is nowhere; the message says how to make it.
            ValueError: it cannot be read; the message names file, row and column.
        """

    def formats(self, question: Any) -> Sequence[Question]:
        """Return the same table in each of its formats, in their order: what a search compares."""
        return (question,)

    def in_format(self, question: Any, name: str) -> Question:
        """Return the same table in the format of a name.

        Raises:
            QuestionError: it has none of this name; the message says which is nearest.
        """
        known = {one.format: one for one in self.formats(question)}
        if name not in known:
            raise QuestionError(f"{question.name} has no format {name!r}{nearest(name, known)}")
        return known[name]

    def rows(self, question: Any) -> tuple[object, ...]:
        """Return a key that is equal for questions with the same queries."""
        return question.table, question.frames

    def for_model(
        self, task: AnyTask, model: str, recorded: Mapping[str, str] | None = None
    ) -> AnyTask:
        """Return the task as one model is asked it: the same, unless that depends on the model.

        It keeps rows, labels and truth; ``chosen`` says what was settled, ``before`` is the shared
        task. ``recorded`` is the ``chosen`` of an earlier run (None: of now).

        Raises:
            ValueError: nothing says how this model is asked; the message says what does.
        """
        return task

    def message(self, query: Any, question: Any) -> Message:
        """What a model is asked, images relative to the image folder."""
        raise NotImplementedError(f"{self.name} has neither a message nor prompts")

    def prompts(self) -> Sequence[PromptSet]:
        """The prompt set in force, then others by which a run may have been asked."""
        return [PromptSet(f"{self.name.lower()}-{self.prompts_version}", self.message)]

    def example(self, query: Any, question: Any) -> str:
        """Return a right reply, in pixels of the image, for ``findit check``; "" without one."""
        return ""

    def check(self, question: Question, settings: Settings) -> None:
        """Refuse settings with which replies could not be scored, before a model is asked.

        Raises:
            ValueError: they could not.
        """
        return None

    def read(self, text: str, query: Any) -> Any:
        """The answer in a text, or a :class:`.ParseFailure` that says why there is none."""
        raise NotImplementedError(f"{self.name} neither reads texts nor scores batches")

    def score(self, query: Any, answer: Any) -> Score:
        """Score an answer or a :class:`.ParseFailure`; failed calls never come here."""
        # The caller adds the sums ``asked``, ``answered`` (no failed call) and ``readable``.
        raise NotImplementedError(f"{self.name} scores neither answers nor batches")

    def score_batch(
        self,
        model: str,
        task: AnyTask,
        replies: Sequence[Reply],
        settings: Settings,
        run: Identity | None,
    ) -> BatchScore:
        """Score replies, each by :meth:`read` and :meth:`score` unless a benchmark needs the batch.

        ``settings`` never contradict ``run``, which is what was recorded (None: nothing).
        """
        return BatchScore(tuple(self._row(task.queries[one.index], one) for one in replies))

    def _row(self, query: Query, reply: Reply) -> ScoredRow:
        answer = read_reply(reply, lambda text: self.read(text, query))
        why = answer.reason if isinstance(answer, ParseFailure) else None
        made = Score({}) if reply.failed else self.score(query, answer)
        standard = {"asked": 1, "answered": int(not reply.failed), "readable": int(why is None)}
        return ScoredRow(
            index=query.index,
            source=query.cluster,
            sums={**standard, **made.sums},
            failed=reply.failed,
            reason=why,
            slices=made.slices,
            details={"label": query.label, **made.details},
            parts=made.parts,
        )

    def check_sums(self, rows: Sequence[ScoredRow]) -> None:
        """Refuse rows whose sums are not those that the metrics say.

        Raises:
            ValueError: a sum of a row or of its parts is known to no metric, count or cause; or an
                answered row lacks one; the message names row and key.
        """
        needed: set[str] = set()
        known = {*_STANDARD, *self.counts.values(), *(one.key for one in self.anatomy.causes)}
        for metric in self.all_metrics:
            own = {unsliced(name)[0] for name in (*metric.part, *metric.whole)}
            known |= own
            # A metric that may have no value is of rows, or of replies, that need not be there.
            if metric.empty is not None and metric is not self.salvaged:
                needed |= own
        for row in rows:
            said = {*row.sums}.union(*row.parts.values())
            wrong = min(said - known, default=None)
            # Failed calls are in few sums, and a row that cannot be judged is in none of these.
            judged = not (row.failed or row.parts or needed.isdisjoint(said))
            lacks = min(needed - said, default=None) if judged else None
            if wrong is not None:
                raise ValueError(
                    f"row {row.index}: no metric of {self.name} has a sum {wrong!r}"
                    f"{nearest(wrong, sorted(known))}"
                )
            if lacks is not None:
                raise ValueError(
                    f"row {row.index}: lacks the sum {lacks!r}, which a metric of {self.name} "
                    f"needs{nearest(lacks, sorted(said))}"
                )

    def convert(self, path: Path, task: AnyTask) -> Sequence[Reply]:
        """Read the replies of another program's file, in a layout that the benchmark knows.

        Raises:
            ValueError: it knows none, or the file is not in it; the message names file and row.
        """
        raise ValueError(f"{path}: {self.name} knows no other layout than prediction files")

    @abstractmethod
    def draw(self, task: AnyTask, row: ScoredRow) -> Drawing:
        """What the report shows of an answer: pictures with boxes, lines of text."""

    def space(
        self, model: str, question: Question, settings: Settings, found: Described
    ) -> Mapping[str, Any] | None:
        """Return the coordinate space of a run's answers; None where they have none.

        Raises:
            ValueError: nothing says it, or what the user says cannot be.
        """
        return None

    def contradictions(
        self, task: AnyTask, replies: Sequence[Reply], settings: Settings, run: Identity | None
    ) -> Sequence[Contradiction]:
        """List what in replies or settings contradicts the run, beside table and rows."""
        return ()

    def goodness(self, row: ScoredRow) -> float:
        """Return one answer's query score in percent, by which answers are sorted."""
        return self.metrics[0].value(totals([row]) if row.parts else row.sums) or 0.0

    def curve(self, task: AnyTask, rows: Sequence[ScoredRow]) -> Curve | None:
        """Return a run's metrics by threshold; None where there is none."""
        return None

    def host_class(self, question: Any) -> str:
        """The class of its dataset under VLMEvalKit, as ``--config`` files name it."""
        return "".join(filter(str.isalnum, self.name)) + "Dataset"

    def interval_note(self, question: Any) -> str:
        """What the intervals of its runs do not allow for; "" where they allow for everything."""
        return ""

    def published(self) -> Sequence[Published]:
        """What others published about their models."""
        return ()
