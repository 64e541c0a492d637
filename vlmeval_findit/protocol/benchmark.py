"""The protocol that each folder below ``benchmarks/`` implements.

The prefix of a dataset name (``FindIt_RefCOCO_xyxy_json``) finds the benchmark. Methods with a body
are optional. ``docs/how-to/benchmarks.md`` has an example.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ..core import Text, suggestion
from .dataset_variant import (
    AnyDataset,
    DatasetNameError,
    DatasetVariant,
    Message,
    Query,
    prompt_hash,
)
from .error_analysis import AnswerErrors, ErrorAnalysis
from .identity import Described, Identity, IdentityConflict
from .metric import Array, Metric, name_of
from .replies import ParseFailure, Replies, Reply, ReplyRecord, read_reply
from .reviews import Answer, row_hash
from .scored_row import RowTable, ScoredRow, as_floats, sum_rows
from .settings import Settings

# --- what a report shows of an answer -------------------------------------------------------------


class Role(Enum):
    """What a drawn box or a line of text is."""

    TRUTH = "truth"
    HIT = "hit"
    MISS = "miss"
    WRONG_LABEL = "wrong label"
    LENIENT = "lenient"  # Only lenient parsing finds it: in no score
    IGNORED = "ignored"  # An object that does not count
    UNCOUNTED = "not counted"  # A box that finds an ignored object
    OPTION = "option"  # A possible answer


class DrawnBox(NamedTuple):
    """A box (x1, y1, x2, y2) in pixels of the original image, or a point (no extent)."""

    role: Role
    box: tuple[float, ...]
    label: str = ""
    value: float | None = 0.0  # Overlap, 0 to 1; None: not compared


class DrawnLine(NamedTuple):
    """A line of text: what was right, or what was answered."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class DrawnImage:
    """An image of the scene with its boxes."""

    path: str  # Below the image folder
    width: int  # Pixels; 0: not known
    height: int
    number: int = 0  # Place among the query's frames, from 0
    boxes: tuple[DrawnBox, ...] = ()
    name: str = ""  # Images with a name belong side by side


@dataclass(frozen=True, slots=True)
class Drawing:
    """One answer: images with boxes, reference images (``support``), lines of text."""

    images: tuple[DrawnImage, ...]
    support: tuple[str, ...] = ()
    lines: tuple[DrawnLine, ...] = ()


class Curve(NamedTuple):
    """Precision, recall and F1 in percent, per threshold."""

    thresholds: tuple[float, ...]
    precision: tuple[float, ...]
    recall: tuple[float, ...]
    f1: tuple[float, ...]


class ClassCounts(NamedTuple):
    """What the answers of a run did with each class of objects; failed calls found none."""

    objects: Mapping[str, int]  # By class
    found: Mapping[str, int]  # Objects that were hit
    answers: Mapping[str, int]  # By the class that was answered
    # Answers that lie on an object and name another class, by the object's and by theirs
    confused: Mapping[tuple[str, str], int]

    def f1(self, name: str) -> float | None:
        """Return F1 of a class in percent; None without an object or answer of it."""
        whole = self.objects.get(name, 0) + self.answers.get(name, 0)
        return 200.0 * self.found.get(name, 0) / whole if whole else None


# --- prompts, baselines, scores -------------------------------------------------------------------

_STANDARD = ("asked", "answered", "readable", "failed")  # Sums that every benchmark may have


class PromptSet(NamedTuple):
    """One version of all prompts."""

    name: str  # Changes whenever a word does
    message: Callable[[Any, Any], Message]  # (query, variant) -> see :meth:`Benchmark.message`

    def hash(self, dataset: AnyDataset) -> str:
        """Hash all messages of the dataset that models share."""
        queries = dataset.shared_dataset.queries.values()
        return prompt_hash(self.message(query, dataset.variant) for query in queries)


@dataclass(frozen=True, slots=True)
class Baseline:
    """A model without weights, to compare scores with."""

    # (message with image files, variant) -> reply and its record
    answer: Callable[[Message, Any], tuple[str, ReplyRecord]]
    space: Mapping[str, Any] | None = None  # Coordinate space of its answers
    annotation_tables: frozenset[str] | None = None  # That it can answer (None: all)


@dataclass(frozen=True, slots=True)
class Published:
    """A published result, shown with the runs but never ranked among them."""

    model: str
    dataset: str
    values: Mapping[str, float]  # In percent, by metric
    where: str
    format: str = ""  # As its source tells it; "": it does not


@dataclass(frozen=True, slots=True)
class Scorer:
    """A model that judges answers, for example an encoder."""

    name: Text  # For people
    settings: Mapping[str, Text]  # Only runs with equal settings are compared
    source: Text  # Who chose it
    versions: Mapping[str, Text] = field(
        default_factory=dict
    )  # For the record: they are not compared

    def __str__(self) -> str:
        settings = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        return f"{self.name} ({settings})"


class AnswerScore(NamedTuple):
    """The score of one answer; see :class:`.ScoredRow`."""

    sums: Mapping[str, float]
    slices: Mapping[str, str] = {}
    details: Mapping[str, Any] = {}
    parts: Mapping[tuple[str, str], Mapping[str, float]] = {}


@dataclass(frozen=True, slots=True)
class BatchScore:
    """The scores of a batch of replies, in their order."""

    rows: tuple[ScoredRow, ...]
    spaces: tuple[Mapping[str, Any], ...] = ()  # Of the replies, each with a ``source``
    scorer: Scorer | None = None


class Benchmark(ABC):
    """A benchmark: its metrics, and how it asks, reads and scores."""

    name: str  # For people and files
    metrics: tuple[Metric, ...]  # The headline first
    ranking: tuple[Metric, ...]  # Compare formats, most important first
    # The headline with failed calls as wrong; no other metric counts them
    headline_counting_failures: Metric
    class_metric: Metric | None = None  # A mean over classes, whose values the report draws
    lenient: Metric | None = None  # The headline under lenient parsing, one of ``metrics``
    counts: Mapping[str, str] = MappingProxyType({})  # Title in a score's table -> its sum
    extra_sums: tuple[str, ...] = ()  # Of rows, besides those of metrics, counts and error types
    format_axes: tuple[str, str] = ("", "")  # Rows and columns of a heat map of formats
    format_axes_meaning: str = ""  # What they are, in sentences below the map
    batch_size: int | None = 256  # Most replies per :meth:`score_batch` (None: all of a run)
    prompts_version: int = 1  # Raise it when what is asked changes
    template_names: tuple[str, ...] = ()  # Variables of a user's prompt template; empty: none
    uses_encoder: bool = False  # Its answers are captions that ``settings.encoder`` scores
    prompts_help: str = ""  # How to get other prompt sets
    baselines: Mapping[str, Baseline] = MappingProxyType({})
    reasons: tuple[str, ...] = ()  # Reasons that its errors tell apart

    def for_variant(self, variant: Any) -> Benchmark:
        """Return the benchmark with the metrics of a variant."""
        return self

    @property
    def headlines(self) -> tuple[str, ...]:
        """Return the names of the headlines of its variants."""
        return (self.metrics[0].name,)

    @property
    def all_metrics(self) -> tuple[Metric, ...]:
        """Return the headline with failed calls as misses, which ranks models; then all others."""
        return (self.headline_counting_failures, *self.metrics)

    @property
    def errors(self) -> ErrorAnalysis:
        """Return how the loss of its score is divided among error types."""
        return AnswerErrors(self.headline_counting_failures, self.reasons)

    @abstractmethod
    def parse(self, name: str) -> DatasetVariant:
        """Parse a dataset name; an error names the wrong part and the nearest valid name.

        Raises:
            DatasetNameError: the name is not valid.
        """

    @abstractmethod
    def variant_names(self) -> Sequence[str]:
        """Return a name per table, for lists of datasets."""

    @abstractmethod
    def load(self, name: str) -> AnyDataset:
        """Load a variant with the rows of its table.

        Raises:
            DatasetNameError: the name cannot be parsed.
            FileNotFoundError: the table is nowhere; the message says how to make it.
            ValueError: it cannot be read; the message names file, row and column.
        """

    def formats(self, variant: Any) -> Sequence[DatasetVariant]:
        """Return the same table in each of its formats, in order, for a search to compare."""
        return (variant,)

    def in_format(self, variant: Any, name: str) -> DatasetVariant:
        """Return the same table in a format by name; a DatasetNameError names the nearest."""
        known = {each.format: each for each in self.formats(variant)}
        if name not in known:
            raise DatasetNameError(
                f"{variant.name} has no format {name!r}{suggestion(name, known)}"
            )
        return known[name]

    def query_set_key(self, variant: Any) -> tuple[object, ...]:
        """Return a key that is equal for variants with the same queries."""
        return variant.table, variant.frames

    def for_model(
        self, dataset: AnyDataset, model: str, recorded: Mapping[str, str] | None = None
    ) -> AnyDataset:
        """Return the dataset for one model; by default that which models share.

        Rows, labels and truth stay. ``recorded`` is the ``resolved_options`` of an earlier run. A
        ValueError says what is missing to ask this model.
        """
        return dataset

    def message(self, query: Any, variant: Any) -> Message:
        """Return what a model is asked; images are relative to the image folder."""
        raise NotImplementedError(f"{self.name} has neither a message nor prompts")

    def prompts(self) -> Sequence[PromptSet]:
        """Return the prompt set in force, then others that runs may have used."""
        return [PromptSet(f"{self.name.lower()}-{self.prompts_version}", self.message)]

    def template_values(self, query: Any, variant: Any) -> Mapping[str, Any]:
        """Return the values of :attr:`template_names` for a query."""
        return {}

    def example(self, query: Any, variant: Any) -> str:
        """Return a correct reply, in pixels, for ``findit check``; "" if there is none."""
        return ""

    def check(self, variant: DatasetVariant, settings: Settings) -> None:
        """Refuse unusable settings with a ValueError, before a model is asked."""
        return None

    def read(self, text: str, query: Any) -> Any:
        """Read the answer in a text, or return a :class:`.ParseFailure`."""
        raise NotImplementedError(f"{self.name} neither reads texts nor scores batches")

    def score(self, query: Any, answer: Any) -> AnswerScore:
        """Score an answer or a :class:`.ParseFailure`; failed calls never come here."""
        # The caller adds the sums ``asked``, ``answered`` (no failed call) and ``readable``.
        raise NotImplementedError(f"{self.name} scores neither answers nor batches")

    def score_batch(
        self,
        model: str,
        dataset: AnyDataset,
        replies: Replies,
        settings: Settings,
        run: Identity | None,
    ) -> BatchScore:
        """Score replies, by default each by :meth:`read` and :meth:`score`.

        ``settings`` never contradict ``run``, the recorded identity (None: nothing recorded).
        """
        return BatchScore(
            tuple(self._row(dataset.queries[reply.index], reply) for reply in replies)
        )

    def _row(self, query: Query, reply: Reply) -> ScoredRow:
        answer = read_reply(reply, lambda text: self.read(text, query))
        reason = answer.reason if isinstance(answer, ParseFailure) else None
        score = AnswerScore({}) if reply.failed else self.score(query, answer)
        standard = {"asked": 1, "answered": int(not reply.failed), "readable": int(reason is None)}
        return ScoredRow(
            query.index,
            query.cluster,
            {**standard, **score.sums},
            reply.failed,
            reason,
            slices=score.slices,
            details={"label": query.label, **score.details},
            parts=score.parts,
        )

    def check_sums(self, rows: Sequence[ScoredRow]) -> None:
        """Refuse sums that no metric knows or an answered row lacks; a ValueError names the row."""
        needed: set[str] = set()
        known = {*_STANDARD, *self.counts.values(), *self.extra_sums, *self.errors.keys}
        for metric in self.all_metrics:
            names = {name_of(key) for key in (*metric.part, *metric.whole)}
            known |= names
            # Metrics that may have no value rest on rows or replies that need not exist.
            if metric.empty is not None and metric is not self.lenient:
                needed |= names
        for row in rows:
            stated = {*row.sums}.union(*row.parts.values())
            unknown = stated - known
            if unknown:
                wrong = min(unknown)
                raise ValueError(
                    f"row {row.index}: no metric of {self.name} has a sum {wrong!r}"
                    f"{suggestion(wrong, sorted(known))}"
                )
            # Failed calls have few sums; rows that cannot be judged have none of these.
            judged = not (row.failed or row.parts or needed.isdisjoint(stated))
            lacking = needed - stated
            if judged and lacking:
                missing = min(lacking)
                raise ValueError(
                    f"row {row.index}: the sum {missing!r} is missing; a metric of {self.name} "
                    f"needs it{suggestion(missing, sorted(stated))}"
                )

    def convert(self, path: Path, dataset: AnyDataset) -> Sequence[Reply]:
        """Read replies from another program's file; a ValueError names file and row."""
        raise ValueError(
            f"{path}: in no layout that is read (python run_findit.py score --help has a list). "
            'Write the answers as {"index": 0, "prediction": "…"}, a line each, to '
            f"<model>_{dataset.name}.jsonl and type python run_findit.py score FILE; where they "
            "are boxes in pixels of the image files, with --space file_pixels"
        )

    @abstractmethod
    def draw(self, dataset: AnyDataset, row: ScoredRow) -> Drawing:
        """Return what the report shows of an answer."""

    def space(
        self, model: str, variant: DatasetVariant, settings: Settings, result: Described
    ) -> Mapping[str, Any] | None:
        """Return the coordinate space of a run's answers (None: they have none), or ValueError."""
        return None

    def identity_conflicts(
        self, dataset: AnyDataset, replies: Replies, settings: Settings, run: Identity | None
    ) -> Sequence[IdentityConflict]:
        """List conflicts of replies or settings with the run, except those of table and rows."""
        return ()

    def label(self, dataset: AnyDataset, query: Any) -> Answer | None:
        """Return a query's label, for a reviewer to judge; None: it cannot be reviewed."""
        return None

    def with_label(self, dataset: AnyDataset, query: Any, answer: Answer) -> Any:
        """Return a query with an accepted answer as its label; its index, images and text stay.

        A ValueError names the row and says why it cannot be its label.
        """
        raise ValueError(f"row {query.index}: labels of {self.name} cannot be reviewed")

    def row_hashes(self, dataset: AnyDataset) -> dict[int, str]:
        """Return by index what reviews know a row by, of every row that can be reviewed."""
        hashes: dict[int, str] = {}
        for index, query in dataset.queries.items():
            label = self.label(dataset, query)
            if label is not None:
                hashes[index] = row_hash(query, label)
        return hashes

    @property
    def query_metrics(self) -> tuple[Metric, ...]:
        """Return the metrics of query scores: the first that has a value for an answer counts."""
        return self.metrics[:1]

    def query_score(self, row: ScoredRow) -> float:
        """Return an answer's query score in percent, which sorts answers, by its sums."""
        sums = sum_rows([row]) if row.parts else row.sums
        for metric in self.query_metrics:
            value = metric.value(sums)
            if value is not None:
                return value
        return 0.0

    def query_scores(self, rows: Sequence[ScoredRow]) -> Array:
        """Return the query scores of answers, in their order."""
        if not isinstance(rows, RowTable) or rows.parts is not None or not rows.sums:
            return np.array([self.query_score(row) for row in rows], dtype=float)
        # A row at a time, those of a thousand runs take longer than to read them.
        sums = {name: as_floats(numbers) for name, numbers in rows.sums.items()}
        scores = np.zeros(len(rows))
        for metric in reversed(self.query_metrics):
            values = metric.values(sums)
            scores = np.where(np.isnan(values), scores, values)
        return scores

    def curve(self, dataset: AnyDataset, rows: Sequence[ScoredRow]) -> Curve | None:
        """Return a run's metrics by threshold; None without thresholds."""
        return None

    def names_objects(self, variant: Any) -> bool:
        """Return whether queries are expressions, several of which may name one object."""
        return False

    def object_of(self, query: Any) -> str:
        """Name the object of an expression, alike for all of its expressions; "": not known."""
        return ""

    def class_counts(self, dataset: AnyDataset, rows: Sequence[ScoredRow]) -> ClassCounts | None:
        """Return what a run did with each class of objects; None where objects have none."""
        return None

    def found_by_size(
        self, dataset: AnyDataset, rows: Sequence[ScoredRow]
    ) -> Mapping[str, tuple[int, int]]:
        """Return the number of objects of each size, and of those that a run found, if any.

        Sizes are in their order.
        """
        return {}

    def host_class(self, variant: Any) -> str:
        """Return its dataset class under VLMEvalKit, as ``--config`` files name it."""
        return "".join(filter(str.isalnum, self.name)) + "Dataset"

    def interval_note(self, variant: Any) -> str:
        """Say what the intervals of its runs do not allow for; "" if nothing."""
        return ""

    def published(self) -> Sequence[Published]:
        """Return results that others published."""
        return ()
