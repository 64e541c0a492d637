"""FindIt as a :class:`.Benchmark`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from ...boxes import BoxToWrite, FormatFailure, MatchRule, write
from ...protocol import (
    Answer,
    Baseline,
    BatchScore,
    Benchmark,
    ClassCounts,
    Curve,
    Described,
    Drawing,
    ErrorAnalysis,
    Identity,
    IdentityConflict,
    Message,
    Metric,
    PartKind,
    PromptSet,
    Reference,
    Replies,
    ReplyRecord,
    ScoredRow,
    Settings,
)
from ...storage import read_image_header
from . import box_prompts
from .annotation_tables import LoadedFindIt, load_findit
from .box_metrics import (
    BOX_METRICS,
    MASK_SUMS,
    POINT_METRICS,
    REJECTION_ACCURACY,
    NegativeOutcome,
)
from .box_outcomes import count_classes, count_sizes, draw, threshold_curve
from .dataset_names import parse
from .f1_errors import F1Errors, PointErrors
from .findit_datasets import Family
from .findit_query import label_of, with_answer
from .grid import AnnotationTable, all_tables
from .release_prompts import FAMILY_PROMPTS, prompt_set
from .reply_scoring import events_of, match_replies, scored_row
from .run_space import contradicting_spaces, space_of_new_run
from .variant import FindItVariant

# The baseline's coordinate space, as a run records it
SPACE = {"kind": "grid1000"}


def full_image(message: Message, variant: FindItVariant) -> tuple[str, ReplyRecord]:
    """Answer a box over the whole image, in every frame, as a lower bound."""
    shown = [part for part in message if part.kind is PartKind.IMAGE]
    frames = sum(not isinstance(part, Reference) for part in shown)
    boxes = [BoxToWrite((0.0, 0.0, 1000.0, 1000.0), "object", frame) for frame in range(frames)]
    images = tuple(_recorded_size(part.value) for part in shown)
    record = ReplyRecord(space=SPACE, finish_reason="stop", images=images)
    return write(boxes, variant.reply), record


@lru_cache(maxsize=4096)
def _recorded_size(path: str) -> dict[str, Any]:
    """Return an image's recorded size; baselines do not resize."""
    size = list(read_image_header(path).size)
    return {"original": size, "sent": size}


# By model name
BASELINES = {"FullImage": Baseline(full_image, SPACE)}


class FindIt(Benchmark):
    """Boxes of named, described or shown objects, in every format of the grid."""

    name = "FindIt"
    metrics = BOX_METRICS.metrics
    ranking = BOX_METRICS.ranking
    headline_counting_failures = BOX_METRICS.headline_counting_failures
    lenient = BOX_METRICS.lenient
    counts = BOX_METRICS.counts
    extra_sums = (NegativeOutcome.FAILED.sum, *MASK_SUMS)
    errors: ErrorAnalysis = F1Errors()
    format_axes = ("representation", "output format")
    format_axes_meaning = (
        "A row is what the numbers of a box are: two corners (xyxy), a corner and the size (xywh), "
        "the centre and the size (cxcywh), y before x (yxyx, yxhw), four corners (all, "
        "all-labelled), or whatever the model likes (unconstrained). A column is how they are "
        "written: as text, or as JSON with the box under that key. findit formats shows a box in "
        "each."
    )
    template_names = box_prompts.TEMPLATE_NAMES
    prompts_help = (
        "FINDIT_PROMPTS names a family's prompt, or a clone of the release, whose prompts are used."
    )
    baselines = BASELINES

    def for_variant(self, variant: Any) -> FindIt:
        return self if variant.match_rule is MatchRule.BOX_OVERLAP else _POINTS

    @property
    def headlines(self) -> tuple[str, ...]:
        return BOX_METRICS.metrics[0].name, POINT_METRICS.metrics[0].name

    def parse(self, name: str) -> FindItVariant:
        return parse(name)

    def variant_names(self) -> Sequence[str]:
        return [parse(f"FindIt_{table}_xyxy_json").name for table in all_tables()]

    def tables(self) -> Mapping[str, AnnotationTable]:
        return all_tables()

    def in_format(self, variant: Any, name: str) -> FindItVariant:
        """Return the same table in a format by name, without a mark if it has no references."""
        if not variant.has_references:
            name = re.sub("_vp-[a-z]+", "", name)
        return self.parse(f"{variant.name.removesuffix(variant.format)}{name}")

    def load(self, name: str) -> LoadedFindIt:
        return load_findit(name)

    def query_set_key(self, variant: FindItVariant) -> tuple[object, ...]:
        return (*super().query_set_key(variant), variant.mark)

    def prompts(self) -> Sequence[PromptSet]:
        families = [PromptSet(row.name, row.message) for row in FAMILY_PROMPTS.values()]
        ours = PromptSet(box_prompts.PROMPTS_NAME, box_prompts.message)
        return [PromptSet(*prompt_set()), ours, *families]

    def template_values(self, query: Any, variant: Any) -> Mapping[str, Any]:
        return box_prompts.template_values(query, variant)

    def example(self, query: Any, variant: FindItVariant) -> str:
        truth = query.truth
        labels = truth.labels or [query.label] * len(truth.boxes)
        boxes = [
            BoxToWrite(box, label, frame)
            for box, label, frame in zip(truth.boxes, labels, truth.frames, strict=True)
        ]
        return write(boxes, variant.reply, digits=3)

    def space(
        self, model: str, variant: Any, settings: Settings, described: Described
    ) -> Mapping[str, Any]:
        return space_of_new_run(model, variant, settings, described)

    def identity_conflicts(
        self, dataset: Any, replies: Replies, settings: Settings, run: Identity | None
    ) -> Sequence[IdentityConflict]:
        return contradicting_spaces(replies, settings, run)

    def score_batch(
        self, model: str, dataset: Any, replies: Replies, settings: Settings, run: Identity | None
    ) -> BatchScore:
        scored, spaces = match_replies(model, dataset, replies, settings, run)
        rows = tuple(map(scored_row, scored, events_of(scored)))
        return BatchScore(rows, tuple(space.as_dict() for space in spaces))

    def draw(self, dataset: Any, row: ScoredRow) -> Drawing:
        return draw(dataset.queries[row.index], row)

    def label(self, dataset: Any, query: Any) -> Answer | None:
        return label_of(query)

    def with_label(self, dataset: Any, query: Any, answer: Answer) -> Any:
        return with_answer(query, dataset.variant, answer)

    @property
    def query_metrics(self) -> tuple[Metric, ...]:
        """Return the query's F1@0.5; where there is nothing to find, whether it was rejected."""
        return (REJECTION_ACCURACY, *super().query_metrics)

    def curve(self, dataset: Any, rows: Sequence[ScoredRow]) -> Curve | None:
        return threshold_curve(rows)

    def names_objects(self, variant: FindItVariant) -> bool:
        return variant.data.family in (Family.REFEXP, Family.REFEXP_ALL)

    def object_of(self, query: Any) -> str:
        """Name an object by its tag ``object``, else by its box: copies of RefCOCO have no ids."""
        if not query.truth.boxes:
            return ""
        return f"{query.images[0]} {query.tags.get('object') or query.truth.boxes}"

    def class_counts(self, dataset: Any, rows: Sequence[ScoredRow]) -> ClassCounts | None:
        """Return the counts of detection; a referring expression is no class."""
        if dataset.variant.data.family not in (Family.OBJDET, Family.OBJDET_VIDEO):
            return None
        return count_classes(dataset.queries, rows)

    def found_by_size(
        self, dataset: Any, rows: Sequence[ScoredRow]
    ) -> Mapping[str, tuple[int, int]]:
        return count_sizes(dataset.queries, rows)

    def host_class(self, variant: FindItVariant) -> str:
        return HOST_CLASSES[variant.data.family]


# The classes that VLMEvalKit's ``--config`` files name
HOST_CLASSES = {
    Family.OBJDET: "FindItObjectDetection",
    Family.REFEXP: "FindItReferringExpression",
    Family.REFEXP_ALL: "FindItReferringExpression",
    Family.INSDET: "FindItInstanceDetection",
    Family.OBJDET_VIDEO: "FindItVideoDetection",
    Family.INSDET_VIDEO: "FindItVideoDetection",
}


class FindItPoints(FindIt):
    """Points on the objects of the same queries; a hit lies inside the object."""

    name = "FindIt-points"
    metrics = POINT_METRICS.metrics
    ranking = POINT_METRICS.ranking
    headline_counting_failures = POINT_METRICS.headline_counting_failures
    lenient = POINT_METRICS.lenient
    counts = POINT_METRICS.counts
    errors: ErrorAnalysis = PointErrors(
        POINT_METRICS.headline_counting_failures,
        tuple(each.value for each in FormatFailure if each is not FormatFailure.FAILED_CALL),
    )

    def curve(self, dataset: Any, rows: Sequence[ScoredRow]) -> None:
        """Return None: a point has no IoU."""
        return None

    def class_counts(self, dataset: Any, rows: Sequence[ScoredRow]) -> None:
        """Return None: F1 is of boxes."""
        return None


_POINTS = FindItPoints()
BENCHMARK = FindIt()  # The one FindIt benchmark, for boxes and points
