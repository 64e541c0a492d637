"""Replies against boxes: metrics, queries, intervals; the numbers of ``run_findit.py score``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ..benchmarks.findit.benchmark import BENCHMARK, FindIt
from ..benchmarks.findit.findit_query import FindItQuery
from ..benchmarks.findit.variant import Variant
from ..boxes.records import Truth
from ..core.metric import Metric, metric_values
from ..core.scored_row import ScoredRow
from ..runs.open_predictions import check_replies
from ..runs.score import check_coordinates, score_rows
from .given import Boxes, Sizes, check_count, sizes_of, truths_of
from .questions import ReplyLike, SpaceLike, replies_of, settings_of, task_of, variant_of

if TYPE_CHECKING:
    from ..core.statistics import Interval


@dataclass(frozen=True)
class Score:
    """The score of replies."""

    queries: tuple[ScoredRow, ...]  # In the order of the replies: sums, reason, boxes, IoUs, hits
    sums: Mapping[str, float]
    coordinate_check: str | None  # A line where the boxes fit another coordinate space
    benchmark: FindIt = BENCHMARK  # Has the metrics: of boxes, or of points

    def __repr__(self) -> str:
        """The figures: the queries may be thousands."""
        known = [f"{k} {v:.1f}" for k, v in self.metric_values.items() if v is not None]
        return f"Score({len(self.queries)} replies, {self.failed} failed: {', '.join(known)})"

    @property
    def _metrics(self) -> tuple[Metric, ...]:
        return (*self.benchmark.metrics, self.benchmark.with_failures)

    @property
    def metric_values(self) -> Mapping[str, float | None]:
        """The figures in percent, by the names of metrics; failed calls are in none of them."""
        return metric_values(self._metrics, self.sums)

    @cached_property
    def intervals(self) -> Mapping[str, Interval | None]:
        """The 95 % interval of every figure; None where it rests on too few pictures."""
        # scipy: not where only figures are wanted.
        from ..core.estimate import clustered_sums, estimate_metrics
        from ..core.statistics import metric_intervals

        if not self.queries:
            return {}
        given = clustered_sums(self.queries, "own")
        return metric_intervals(estimate_metrics(self._metrics, given))

    @property
    def failed(self) -> int:
        """How many calls failed."""
        return sum(row.failed for row in self.queries)

    @property
    def reasons(self) -> Counter[str]:
        """How often each reason stands against a reply."""
        return Counter(row.reason for row in self.queries if row.reason is not None)


def score(
    replies: Sequence[ReplyLike],
    truths: Sequence[Truth | Boxes],
    format: str,
    *,
    sizes: Sizes,
    space: SpaceLike | None = None,
    frames: int = 1,
    multilabel: bool = False,
    pictures: Sequence[str] | None = None,
) -> Score:
    """Score replies against boxes, as ``run_findit.py score`` does.

    >>> replies = ["[[0, 0, 500, 500]]", "[]", "no idea", None]
    >>> found = score(replies, [[[0, 0, 320, 240]]] * 4, "xyxy_text", sizes=(640, 480),
    ...               space="grid1000")
    >>> found.metric_values["F1@0.5"], found.metric_values["Adherence"], found.failed
    (50.0, 66.66666666666667, 1)
    >>> found.queries[0].details["ious"], found.reasons["no box"]
    ([1.0], 1)

    Args:
        replies: what was said; None where the call failed.
        truths: one a reply: (x1, y1, x2, y2) each in pixels of the original picture, or
            :func:`.truth` where boxes have labels or frames; none: there is nothing to find.
        format: as in a FindIt name.
        sizes: (width, height) in pixels of the original picture: of all, or one a reply.
        space: in which coordinates the model answers (None: as the replies recorded).
        frames: how many frames every query has.
        multilabel: whether boxes have labels of their own.
        pictures: one a reply; intervals are over pictures (None: every reply has its own).

    Raises:
        ValueError: there is not one truth, size or picture a reply, or a box is none.
        VariantError, SpaceError, IdentityError: as of :func:`.read`.
    """
    variant = variant_of(format, frames, multilabel)
    said = replies_of(replies)
    queries = _queries(len(said), truths, sizes, pictures, variant)
    task = task_of(variant, queries)
    made = check_coordinates(score_rows(check_replies("", task, said, settings_of(space, said))))
    return Score(made.rows, made.sums, made.coords_doubt, BENCHMARK.of(variant))


def _queries(
    count: int,
    truths: Sequence[Truth | Boxes],
    sizes: Sizes,
    pictures: Sequence[str] | None,
    variant: Variant,
) -> list[FindItQuery]:
    names = [str(at) for at in range(count)] if pictures is None else pictures
    check_count(names, count, "pictures")
    check_count(truths, count, "truths")
    return [
        FindItQuery(at, "", *size, (name,) * variant.frames, true)
        for at, (size, name, true) in enumerate(
            zip(sizes_of(sizes, count), names, truths_of(truths, variant), strict=True)
        )
    ]
