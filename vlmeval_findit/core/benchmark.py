"""A benchmark: the one protocol that a folder below ``benchmarks/`` implements.

A name (``FindIt_RefCOCO_xyxy_json``) finds its benchmark by the prefix.  The benchmark parses the
name into a question, loads the question's table, makes the message of every query, scores replies
into rows of sums, names the metrics that are ratios of those sums, and says what the report draws.
Everything else is shared: calls, journal, identity, files, intervals, leaderboard, report.

To write one, subclass :class:`Benchmark` in ``benchmarks/<name>/benchmark.py``, name the instance
``BENCHMARK``, and put ``PREFIX`` into ``benchmarks/<name>/__init__.py``.  What has a body here need
not be written.  ``docs/architecture.md`` does it step by step.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from .anatomy import Anatomy, WrongAnswers
from .contradictions import Contradiction
from .drawing import Curve, Drawing
from .identity import Described, Identity
from .messages import Message, prompt_hash
from .metric import Metric
from .question import AnyTask, Question
from .replies import Recorded, Reply
from .scored_row import ScoredRow
from .settings import Settings


class PromptSet(NamedTuple):
    """The words of all prompts.

    ``name`` changes when a word does; ``message`` gives the parts of a query's message, images
    relative to the image folder.
    """

    name: str
    message: Callable[[Any, Any], Message]

    def hash(self, task: AnyTask) -> str:
        """A hash of all messages of a task, as all models share it."""
        queries = task.of_all.queries.values()
        return prompt_hash(self.message(query, task.question) for query in queries)


@dataclass(frozen=True, slots=True)
class Baseline:
    """A model without weights: what a score means is seen beside it.

    ``answer`` makes of a message, its images paths of files, and its question a reply and what the
    run records with it.  ``space`` is the coordinate space of its answers, where they have one,
    ``tables`` are those that it can answer (None: all of its benchmark).
    """

    answer: Callable[[Message, Any], tuple[str, Recorded]]
    space: Mapping[str, Any] | None = None
    tables: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """A figure that somebody published: shown beside ours, never ranked with them.

    ``values`` are in percent, by the names of metrics.
    """

    model: str
    column: str
    values: Mapping[str, float]
    where: str


@dataclass(frozen=True, slots=True)
class Scorer:
    """What beside the benchmark's own code decided what is right, such as an encoder.

    Runs are compared only where the ``settings`` of both are the same.  ``name`` is for people,
    ``source`` says who chose it, ``versions`` what else was recorded of it.
    """

    name: str
    settings: Mapping[str, str]
    source: str
    versions: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        said = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        return f"{self.name} ({said})"


@dataclass(frozen=True, slots=True)
class BatchScore:
    """The scores of a batch of replies, in their order.

    ``spaces`` are the coordinate spaces in which they were read, as settings with a ``source``.
    ``scorer`` is what decided beside the benchmark's own code (None: nothing).
    """

    rows: tuple[ScoredRow, ...]
    spaces: tuple[Mapping[str, Any], ...] = ()
    scorer: Scorer | None = None


class Benchmark(Protocol):
    """What a benchmark does.

    ``name`` names it for people and files.  ``metrics`` are its figures, the headline first;
    ``ranking`` those by which formats are compared, the weightiest first.  ``with_failures`` is the
    headline when failed calls count as wrong: they are in no other figure.  ``salvaged`` is the
    headline as a tolerant reader would have it, one of ``metrics``.  ``counts`` are sums that a
    score's table shows, by what they are called there.  ``format_axes`` are what rows and columns
    of a heat map of formats are.  ``at_a_time`` is how many replies :meth:`score` is given at most
    (None: all of a run).  ``prompts_help`` says how other prompt sets are brought to hand.
    ``baselines`` are models without weights that answer its questions, by their names.
    ``reasons`` are those of its rows that its anatomy tells apart.  ``others`` are the same
    questions with other figures: those whose answers are judged otherwise, never compared with the
    rest.
    """

    name: str
    metrics: tuple[Metric, ...]
    ranking: tuple[Metric, ...]
    with_failures: Metric
    salvaged: Metric | None = None
    counts: Mapping[str, str] = MappingProxyType({})
    format_axes: tuple[str, str] = ("", "")
    at_a_time: int | None = 256
    prompts_help: str = ""
    baselines: Mapping[str, Baseline] = MappingProxyType({})
    reasons: tuple[str, ...] = ()
    others: Sequence[Benchmark] = ()

    def judging(self, question: Any) -> Benchmark:
        """The benchmark with the figures of one question: itself, or one of ``others``."""
        return self

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
        """The question that a name stands for.

        Raises:
            QuestionError: it is none; the message names the part and the nearest valid one.
        """

    @abstractmethod
    def listed(self) -> Sequence[str]:
        """One name a table: what lists of datasets show."""

    @abstractmethod
    def load(self, name: str) -> AnyTask:
        """A question with the rows of its table.

        Raises:
            QuestionError: the name is none.
            FileNotFoundError: the table is nowhere; the message says how to make it.
            ValueError: it cannot be read; the message names file, row and column.
        """

    def rows(self, question: Any) -> tuple[object, ...]:
        """What decides the queries of a question: questions for which it is equal share them."""
        return question.table, question.frames

    def for_model(
        self, task: AnyTask, model: str, recorded: Mapping[str, str] | None = None
    ) -> AnyTask:
        """The task as one model is asked it: the same, unless what is asked depends on who is.

        It keeps the rows, their labels and what is right of them, and says in ``chosen`` what was
        settled for the model and in ``before`` what it was made of.

        Args:
            task: what :meth:`load` gave.
            model: who is asked.
            recorded: the ``chosen`` of a run that was made; None for a run of now.

        Raises:
            ValueError: nothing says how this model is asked; the message says what does.
        """
        return task

    @abstractmethod
    def prompts(self) -> Sequence[PromptSet]:
        """The prompt set in force, then others by which a run may have been asked."""

    def check(self, question: Question, settings: Settings) -> None:
        """Refuse settings with which replies could not be scored, before a model is asked.

        Raises:
            ValueError: they could not.
        """
        return None

    @abstractmethod
    def score(
        self,
        model: str,
        task: AnyTask,
        replies: Sequence[Reply],
        settings: Settings,
        run: Identity | None,
    ) -> BatchScore:
        """The scores of replies.

        Args:
            model: who answered.
            task: what was asked.
            replies: what came of it; every index is one of the task's.  What is to be read is a
                reply's ``answer``: its ``text`` may hold a thought.
            settings: what the user says of scoring; nothing in it contradicts the run.
            run: what the run recorded (None: nothing).
        """

    @abstractmethod
    def draw(self, task: AnyTask, row: ScoredRow) -> Drawing:
        """What the report shows of an answer: pictures with boxes, lines of text."""

    def space(
        self, model: str, question: Question, settings: Settings, found: Described
    ) -> Mapping[str, Any] | None:
        """The coordinate space in which a run's answers are; None where they have none.

        Raises:
            ValueError: nothing says it, or what the user says cannot be.
        """
        return None

    def contradictions(
        self, task: AnyTask, replies: Sequence[Reply], settings: Settings, run: Identity | None
    ) -> Sequence[Contradiction]:
        """What in replies or settings contradicts the run, beside table and rows."""
        return ()

    def goodness(self, row: ScoredRow) -> float:
        """How good one answer is, in percent, where answers are put in an order."""
        return self.metrics[0].value(row.sums) or 0.0

    def curve(self, task: AnyTask, rows: Sequence[ScoredRow]) -> Curve | None:
        """A run's figures by a threshold that can be turned; None where there is none."""
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
