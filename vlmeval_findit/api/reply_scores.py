"""Replies without a run: their boxes in pixels, and their scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..benchmarks.findit import BENCHMARK, FindIt, FindItQuery, FindItVariant, match_replies
from ..boxes import (
    AnswerKind,
    Corners,
    FormatFailure,
    MatchRule,
    SpaceError,
    Truth,
    spaces_help,
    stated_space,
)
from ..protocol import (
    LoadedDataset,
    Metric,
    Predictions,
    Reply,
    ScoredRow,
    Settings,
    SumName,
    metric_values,
)
from ..scoring import check_coordinates, check_replies, score_rows
from .custom_variants import (
    NOTHING_TO_FIND,
    MarksLike,
    ReplyLike,
    ReplyMarks,
    SpaceLike,
    replies_of,
    variant_of,
)
from .inputs import BoxesLike, Size, Sizes, check_count, sizes_of, truths_of

if TYPE_CHECKING:
    from ..statistics import Interval


# --- boxes ----------------------------------------------------------------------------------------


class ReplyKind(Enum):
    """The kind of a reply."""

    BOXES = "boxes"
    NO_BOX = "no box"  # It says, in the requested format, that there is none
    NOT_READABLE = "not readable"
    FAILED = "failed call"


_KINDS = {
    AnswerKind.BOXES: ReplyKind.BOXES,
    AnswerKind.NO_BOX: ReplyKind.NO_BOX,
    AnswerKind.FAILED: ReplyKind.FAILED,
}
"""Others are not readable."""


@dataclass(frozen=True, slots=True)
class ReplyBoxes:
    """The boxes of a reply, and its kind."""

    boxes: tuple[Corners, ...]
    """(N, 4) corners (x1, y1, x2, y2) in pixels of the original image; a point has no extent."""
    labels: tuple[str, ...]
    """(N,) labels; empty if the query has a single label."""
    frames: tuple[int, ...]
    """(N,) frames counted from 0; empty if the query has a single frame."""
    reason: FormatFailure | None
    """Why the reply is not in its format (None: it is); it may have boxes nevertheless."""
    kind: ReplyKind
    match_rule: MatchRule = MatchRule.BOX_OVERLAP


def read(
    text: ReplyLike,
    format: str,
    *,
    size: Size,
    space: SpaceLike | None = None,
    frames: int = 1,
    multilabel: bool = False,
    thought_marks: MarksLike | None = None,
    thought_opened: bool = False,
    answer_marks: MarksLike | None = None,
) -> ReplyBoxes:
    """Read a reply as its prompt prescribed.

    >>> answer = read('[{"bbox": [100, 200, 500, 800]}]', "xyxy_json", size=(640, 480),
    ...               space="grid1000")
    >>> answer.boxes, answer.kind
    (((64.0, 96.0, 320.0, 384.0),), <ReplyKind.BOXES: 'boxes'>)

    No box, not readable and a failed call are three different things:

    >>> for text in ("[]", "I see no dog.", None):
    ...     print(read(text, "xyxy_json", size=(640, 480), space="grid1000").kind.value)
    no box
    not readable
    failed call

    Args:
        text: the reply of a model; None: the call failed.
        format: the end of a FindIt name: ``xyxy_json``, ``cxcywh_text``, ``xyxy_json_bbox_2d`` …
        size: (width, height) of the original image in pixels.
        space: the coordinate space of the model's answers; None: from the reply's record. It
            is never guessed.
        frames: number of frames that the model was shown.
        multilabel: whether every box has a label.
        thought_marks: marks around this model's thoughts, if they are not among the usual ones.
        thought_opened: whether the prompt ended in the mark that opens a thought, so that the text
            begins within it. A thought that is never closed has no answer.
        answer_marks: marks that the prompt asked for around the answer, as ``"<answer> </answer>"``
            or ``r"\boxed{ }"``: what the last ones enclose is read, and a text without them as it
            is. Without this argument such marks are a fault of the format.

    Returns:
        Boxes in pixels of the original image, in the order of the reply.

    Raises:
        VariantError: the format does not exist.
        ValueError: the size is not in whole pixels.
        SpaceError: the coordinate space is unknown.
        IdentityError: the reply recorded another space.
    """
    variant = variant_of(format, frames, multilabel)
    marks = ReplyMarks(thought_marks, thought_opened, answer_marks)
    query = FindItQuery(0, "", *sizes_of([size], 1)[0], ("",) * frames, NOTHING_TO_FIND)
    checked = _checked(variant, [query], replies_of([text], marks), space)
    dataset: Any = checked.dataset  # Of FindIt
    (matched,), _ = match_replies("", dataset, checked.replies, checked.settings, None)
    parsed = matched.reading
    return ReplyBoxes(
        matched.match.boxes,
        parsed.labels,
        parsed.frames,
        parsed.reason,
        _KINDS.get(matched.kind, ReplyKind.NOT_READABLE),
        matched.match_rule,
    )


def _checked(
    variant: FindItVariant,
    queries: Sequence[FindItQuery],
    known: Sequence[Reply],
    space: SpaceLike | None,
) -> Predictions:
    """Return replies to queries without a table, in a space.

    Raises:
        SpaceError: neither the argument nor the replies have the space; it is never guessed.
        IdentityError: a reply recorded another space.
    """
    if space is None:
        if not all(reply.failed or reply.recorded.space for reply in known):
            raise SpaceError(
                f"the coordinate space of the replies is not known, and it is not guessed. "
                f"Pass space=…:\n{spaces_help()}"
            )
        space = next((r.recorded.space for r in known if r.recorded.space), "grid1000")
    else:
        space = stated_space(space).as_dict()
    settings = Settings(space=space)
    dataset = LoadedDataset("custom", variant, Path(), {query.index: query for query in queries})
    return check_replies("", dataset, known, settings)


# --- scores ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Score:
    """The score of replies."""

    queries: tuple[ScoredRow, ...]
    """In the order of the replies: sums, reason, and details: boxes, IoUs, hits and so on."""
    sums: Mapping[SumName, float]
    coords_doubt: str | None
    """A sentence, if the boxes fit another coordinate space."""
    benchmark: FindIt = BENCHMARK
    """Has the metrics: of boxes, or of points."""

    def __repr__(self) -> str:
        """Return the metrics: the queries may be thousands."""
        known = [f"{k} {v:.1f}" for k, v in self.metric_values.items() if v is not None]
        return f"Score({len(self.queries)} replies, {self.failed} failed: {', '.join(known)})"

    @property
    def _metrics(self) -> tuple[Metric, ...]:
        return (*self.benchmark.metrics, self.benchmark.headline_counting_failures)

    @property
    def metric_values(self) -> Mapping[str, float | None]:
        """Values by the names of metrics, in percent.

        Only the metric "… (failed calls as misses)" counts failed calls.
        """
        return metric_values(self._metrics, self.sums)

    @cached_property
    def intervals(self) -> Mapping[str, Interval | None]:
        """95 % intervals by the names of metrics, in percent; None: too few images."""
        # scipy is imported only for intervals.
        from ..statistics import clustered_sums, estimate_metrics, metric_intervals

        if not self.queries:
            return {}
        sums = clustered_sums(self.queries, "custom")
        return metric_intervals(estimate_metrics(self._metrics, sums))

    @property
    def failed(self) -> int:
        """The number of failed calls."""
        return sum(row.failed for row in self.queries)

    @property
    def reasons(self) -> Counter[str]:
        """Why replies are not in their format: counts by reason."""
        return Counter(row.reason for row in self.queries if row.reason is not None)


def score(
    replies: Sequence[ReplyLike],
    truths: Sequence[Truth | BoxesLike],
    format: str,
    *,
    sizes: Sizes,
    space: SpaceLike | None = None,
    frames: int = 1,
    multilabel: bool = False,
    images: Sequence[str] | None = None,
    thought_marks: MarksLike | None = None,
    thought_opened: bool = False,
    answer_marks: MarksLike | None = None,
) -> Score:
    """Score replies against their ground truth, as ``run_findit.py score`` does.

    >>> replies = ["[[0, 0, 500, 500]]", "[]", "no idea", None]
    >>> scored = score(replies, [[[0, 0, 320, 240]]] * 4, "xyxy_text", sizes=(640, 480),
    ...                space="grid1000")
    >>> scored.metric_values["F1@0.5"], scored.metric_values["Adherence"], scored.failed
    (50.0, 66.66666666666667, 1)
    >>> scored.queries[0].details["ious"], scored.reasons["no box"]
    ([1.0], 1)

    Args:
        replies: (N,) texts, replies with their record, or chats; None: the call failed.
        truths: (N,) truths: each (M, 4) corners (x1, y1, x2, y2) in pixels of the original image,
            empty if there is nothing to find, or results of :func:`.truth`.
        format: the end of a FindIt name.
        sizes: (width, height) in pixels of the original image: for all, or (N,) sizes.
        space: the coordinate space of the answers; None: from the replies' records.
        frames: number of frames of every query.
        multilabel: whether every box has a label.
        images: (N,) names of the images, if some are shared: intervals are over images.
        thought_marks, thought_opened, answer_marks: as for :func:`.read`.

    Returns:
        Metrics in percent, their intervals, and a row for each reply.

    Raises:
        ValueError: the number of truths, sizes or images is not N, or a box is invalid or not in
            its image.
        VariantError: the format does not exist.
        SpaceError: the coordinate space is unknown.
        IdentityError: a reply recorded another space.
    """
    variant = variant_of(format, frames, multilabel)
    count = len(replies)
    names = [str(at) for at in range(count)] if images is None else images
    check_count(names, count, "images")
    check_count(truths, count, "truths")
    shapes = sizes_of(sizes, count)
    of_queries = zip(shapes, names, truths_of(truths, variant, shapes), strict=True)
    queries = [
        FindItQuery(at, "", *size, (name,) * variant.frames, true)
        for at, (size, name, true) in enumerate(of_queries)
    ]
    known = replies_of(replies, ReplyMarks(thought_marks, thought_opened, answer_marks))
    scored = check_coordinates(score_rows(_checked(variant, queries, known, space)))
    return Score(scored.rows, scored.sums, scored.coords_doubt, BENCHMARK.for_variant(variant))
