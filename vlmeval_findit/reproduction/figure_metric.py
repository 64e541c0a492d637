"""The metric of a published figure, measured on replies, and on other readings of the same replies.

What a figure counts as a miss is one here: replies that cannot be read or are empty, answers
without a box, and failed calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..analysis import UnrankedValues, mean_unranked, measure_unranked
from ..benchmarks.findit import (
    BOX_METRICS,
    POINT_METRICS,
    ScoredReply,
    match_replies,
    scored_row,
)
from ..boxes import AnswerKind, iou
from ..coords import Convention, matched_in, replies_of_run
from ..core import suggestion
from ..data import PublishedFigure
from ..protocol import Metric, Predictions, ScoredRow, Sums, weighted
from ..statistics import Estimate, clustered_sums, estimate_metrics, mean_of_estimates
from .precision_metric import estimate_precision
from .reproduction_records import Attempt, Setup

Floats = NDArray[np.float64]

# From scored replies, and whether a hit has more than the threshold, to the sums of each
SumsOf = Callable[[Sequence[ScoredReply], bool], list[Sums]]


class FigureMetricError(ValueError):
    """A figure has a metric that cannot be measured here; the message says which can be."""


@dataclass(frozen=True, slots=True)
class FigureMetric:
    """How the metric of a figure is measured.

    mAP is no mean over rows: where rows are needed, what ``by_rows`` names stands for it.
    """

    metric: Metric
    sums_of: SumsOf
    by_rows: str = ""


_ALL_THRESHOLDS = tuple(percent / 100 for percent in range(50, 100, 5))

# --- boxes: the first one counts ------------------------------------------------------------------


def first_ious(scored: Sequence[ScoredReply]) -> Floats:
    """Return (n,) IoUs of the first box of each reply with its object; 0 where there is no box.

    Of several objects the nearest counts. Where there is none, a well-formed answer that says so
    has 1, and everything else 0.
    """
    counts = [len(each.query.truth.boxes) if each.match.boxes else 0 for each in scored]
    asked = [each for each, count in zip(scored, counts, strict=True) if count]
    truths = chain.from_iterable(each.query.truth.boxes for each in asked)
    boxes = np.array([each.match.boxes[0] for each in asked], float).reshape(-1, 4)
    place = np.repeat(np.arange(len(scored)), counts)
    first = np.repeat(boxes, [count for count in counts if count], axis=0)
    overlaps = iou(first, np.array(list(truths), float).reshape(-1, 4))
    says_none = [not each.query.truth.boxes and each.kind is AnswerKind.NO_BOX for each in scored]
    best = np.array(says_none, float)
    np.maximum.at(best, place, overlaps)
    return best


def _accuracy(name: str, *thresholds: float) -> FigureMetric:
    """Make the share of replies whose first box passes a threshold, or the mean over several."""

    def sums_of(scored: Sequence[ScoredReply], above: bool) -> list[Sums]:
        ious = first_ious(scored)[:, None]
        passed = ious > thresholds if above else ious >= thresholds
        return [{"hits": share, "asked": 1} for share in passed.mean(axis=1).tolist()]

    return FigureMetric(Metric(name, {"hits": 1}, {"asked": 1}), sums_of)


def _f1_sums(scored: Sequence[ScoredReply], above: bool) -> list[Sums]:
    return [BOX_METRICS.sums(each.reading, each.match, each.query.truth) for each in scored]


def _mean_f1_sums(scored: Sequence[ScoredReply], above: bool) -> list[Sums]:
    """Return the sums of F1, its hits the mean over IoU 0.50 to 0.95."""
    sums: list[Sums] = []
    for each, usual in zip(scored, _f1_sums(scored, above), strict=True):
        hits = np.array(each.match.hits, bool)
        passed = np.array(each.match.ious, float)[hits, None] >= _ALL_THRESHOLDS
        sums.append({**usual, "tp": float(passed.sum()) / len(_ALL_THRESHOLDS)})
    return sums


_F1 = BOX_METRICS.headline_counting_failures
_PRECISION = FigureMetric(
    Metric("mAP", _F1.part, _F1.whole), _mean_f1_sums, by_rows="F1, mean over IoU 0.50 to 0.95"
)

# --- points ---------------------------------------------------------------------------------------


def _point_sums(scored: Sequence[ScoredReply], above: bool) -> list[Sums]:
    return [
        {**POINT_METRICS.sums(each.reading, each.match, each.query.truth), "asked": 1}
        for each in scored
    ]


# By the name that :class:`.FigureSet` has
FIGURE_METRICS: Mapping[str, FigureMetric] = {
    "acc@0.5": _accuracy("acc@0.5", 0.5),
    "acc@0.75": _accuracy("acc@0.75", 0.75),
    "acc@0.9": _accuracy("acc@0.9", 0.9),
    "mean of acc@0.5 to acc@0.95": _accuracy("mean of acc@0.5 to acc@0.95", *_ALL_THRESHOLDS),
    "mAP": _PRECISION,
    "F1@0.5": FigureMetric(_F1, _f1_sums),
    "point in box": FigureMetric(POINT_METRICS.headline_counting_failures, _point_sums),
    "points in mask": FigureMetric(
        Metric("points in mask", {"inside": 1}, {"asked": 1}), _point_sums
    ),
}


def figure_metric(figure: PublishedFigure) -> FigureMetric:
    """Return how a figure is measured, or raise a FigureMetricError.

    >>> from vlmeval_findit.data.published_figures import published_figures
    >>> figure_metric(published_figures()[0]).metric.name
    'acc@0.5'
    """
    name = figure.set.metric
    if name not in FIGURE_METRICS:
        raise FigureMetricError(
            f"{figure.model}, {figure.set_name}: {name} is not measured here"
            f"{suggestion(name, FIGURE_METRICS)}"
        )
    return FIGURE_METRICS[name]


# --- replies of a setup ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadReplies:
    """The replies to one dataset of a figure, read and matched."""

    predictions: Predictions
    scored: Sequence[ScoredReply]

    @property
    def dataset(self) -> str:
        return str(self.predictions.dataset.variant.board_dataset)


def read_predictions(predictions: Predictions) -> ReadReplies:
    """Read and match replies as their score does, or raise a SpaceError."""
    dataset: Any = predictions.dataset
    scored, _ = match_replies(
        predictions.model,
        dataset,
        predictions.replies,
        predictions.settings,
        predictions.identity,
    )
    return ReadReplies(predictions, scored)


def read_in(predictions: Predictions, convention: Convention) -> ReadReplies:
    """Read and match the same replies as if they were in another convention.

    Raises:
        NotBoxesError: the answers are no boxes, or in several spaces.
        SpaceError: the coordinate space is unknown.
    """
    run = replies_of_run(
        predictions.model,
        predictions.dataset,
        predictions.replies,
        predictions.settings,
        predictions.identity,
    )
    matches = matched_in(run, convention)
    scored = [
        replace(each, match=result) for each, result in zip(run.matched, matches, strict=True)
    ]
    return ReadReplies(predictions, scored)


def estimate_figure(
    figure: PublishedFigure, replies: Sequence[ReadReplies], only_value: bool = False
) -> Estimate:
    """Estimate the metric of a figure from replies to its datasets: their mean, if several.

    With ``only_value`` influences need not be right, which takes less time.
    """
    how = figure_metric(figure)
    above = figure.conditions.iou == ">"
    estimates = []
    for each in replies:
        rows = [
            ScoredRow(scored.query.index, scored.query.cluster, sums, scored.reply.failed)
            for scored, sums in zip(each.scored, how.sums_of(each.scored, above), strict=True)
        ]
        sums_by_picture = clustered_sums(rows, each.predictions.dataset.variant.images)
        estimate = estimate_metrics([how.metric], sums_by_picture)
        if how.by_rows:
            with_boxes = [scored_row(scored) for scored in each.scored]
            dataset: Any = each.predictions.dataset
            estimate = estimate_precision(dataset, with_boxes, estimate, only_value)
        estimates.append(estimate)
    return mean_of_estimates(estimates)


class RowShare(NamedTuple):
    """The metric of one row, 0 to 1, and its weight among the rows of its dataset."""

    share: float
    weight: float


def row_shares(figure: PublishedFigure, replies: ReadReplies) -> dict[int, RowShare]:
    """Return the metric of each row by its index, or what stands for it there.

    Their weighted mean is that of the dataset.
    """
    how = figure_metric(figure)
    sums_of_rows = how.sums_of(replies.scored, figure.conditions.iou == ">")
    rows = {}
    for scored, sums in zip(replies.scored, sums_of_rows, strict=True):
        weight = weighted(sums, how.metric.whole)
        share = weighted(sums, how.metric.part) / weight if weight else 0.0
        rows[scored.query.index] = RowShare(float(share), float(weight))
    return rows


def figure_value(figure: PublishedFigure, replies: Sequence[ReadReplies]) -> float | None:
    """Return the metric of a figure in percent; None without replies to one of its datasets."""
    estimate = estimate_figure(figure, replies, only_value=True)
    return estimate.value(figure_metric(figure).metric.name)


def values_over_orders(
    figure: PublishedFigure, replies: Sequence[ReadReplies]
) -> UnrankedValues | None:
    """Return what a figure's mAP is over all orders of equal boxes; None for other metrics."""
    if not figure_metric(figure).by_rows:
        return None
    values = []
    for each in replies:
        rows = [scored_row(scored) for scored in each.scored]
        dataset: Any = each.predictions.dataset
        values.append(measure_unranked(dataset, rows).values)
    return mean_unranked(values)


def measure_figure(setup: Setup, predictions: Sequence[Predictions]) -> Attempt:
    """Measure the metric of a setup's figure.

    Args:
        setup: what was asked for.
        predictions: the replies to each of its variants, in their order.

    Raises:
        FigureMetricError: the metric of the figure cannot be measured.
        SpaceError: the coordinate space of the replies is unknown.
    """
    figure = setup.figure
    replies = [read_predictions(each) for each in predictions]
    estimate = estimate_figure(figure, replies)
    hits = {}
    weights = {}
    for each in replies:
        rows = row_shares(figure, each)
        hits[each.dataset] = {index: row.share for index, row in rows.items()}
        if any(row.weight != 1 for row in rows.values()):
            weights[each.dataset] = {index: row.weight for index, row in rows.items()}
    return Attempt(
        setup=setup,
        predictions=tuple(predictions),
        estimate=estimate,
        hits=hits,
        failed=sum(scored.reply.failed for each in replies for scored in each.scored),
        pictures=len(estimate.images),
        weights=weights,
        over_orders=values_over_orders(figure, replies),
    )
