"""Several replies to each query: the samples of a run, and what they are worth together.

All samples have the same queries. Their values are averaged over samples, and an image with all its
samples is one cluster, so intervals are over images, as everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import comb
from pathlib import Path

import numpy as np

from ..boxes import AGREEMENT, HIT_IOU, BoxAnswer, BoxToWrite, finite_corners, iou, with_confidences
from ..protocol import SAMPLE_SETTING, Better, Metric, ScoredRow, identity_conflicts, sum_rows
from ..scoring import Run, load_runs
from ..statistics import Estimate, clustered_sums, estimate_metrics, mean_of_estimates
from ..storage import MORE_SAMPLES
from .box_fusion import group_of
from .comparable_pairs import check_comparable
from .run_statistics import estimate_run


class SamplesError(ValueError):
    """A run without several samples, or with samples that do not belong together."""


def sample_files(first: Path) -> list[Path]:
    """List the prediction files of a run's samples in order, given the first."""
    folders = first.parent.glob(f"{MORE_SAMPLES}/*")
    numbered = sorted((f for f in folders if f.name.isdigit()), key=lambda f: int(f.name))
    return [first, *filter(Path.is_file, (folder / first.name for folder in numbered))]


def load_samples(first: Path) -> list[Run]:
    """Load the scored samples of a run, given the predictions of the first.

    Raises:
        RunError: a sample is not scored.
        SamplesError: there is only one sample, or they are of different runs.
        StatisticsError: they have other queries, or were scored by something else.
    """
    files = sample_files(first)
    if len(files) < 2:
        raise SamplesError(
            f"{first}: one reply to each query. Ask for more: --samples 8 --temperature 0.7 "
            "(run, sweep)"
        )
    runs = [run for path in files for run in load_runs([path])]
    for other in runs[1:]:
        check_comparable(runs[0], other)
        recorded = runs[0].provenance.identity
        now = other.provenance.identity
        if recorded is None or now is None:
            raise SamplesError(f"{other.path}: has no record that it is a sample of {first}")
        for conflict in identity_conflicts(recorded, now):
            if conflict.what != f"setting {SAMPLE_SETTING}":
                raise SamplesError(
                    f"{other.path} is not a sample of {first}: {conflict.comparison}"
                )
    return runs


def by_query(runs: Sequence[Run]) -> Iterator[tuple[ScoredRow, ...]]:
    """Yield the rows of every query, a row per sample, in the order of the first sample."""
    by_index = [{row.index: row for row in run.rows} for run in runs]
    for index in by_index[0]:
        yield tuple(rows[index] for rows in by_index)


# --- values ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SamplesScore:
    """What the samples of a run are worth, in percent where metrics are shares."""

    runs: Sequence[Run]
    metrics: tuple[Metric, ...]  # The headline first
    mean: Estimate
    each: tuple[Estimate, ...]  # Of every sample
    best: Estimate  # Of the best sample of every query, by the truth
    passes: Estimate | None  # pass@k; None where the headline is no share

    @property
    def failed(self) -> int:
        return sum(run.failed for run in self.runs)


def score_samples(runs: Sequence[Run]) -> SamplesScore:
    """Compute the values of samples, at least two over the same queries."""
    benchmark = runs[0].benchmark
    headline = benchmark.metrics[0]
    headline_counting_failures = (
        benchmark.headline_counting_failures if any(run.failed for run in runs) else headline
    )
    short = (metric for metric in benchmark.metrics[1:] if metric.in_short_tables)
    metrics = (headline_counting_failures, *short)
    each = tuple(estimate_run(run, metrics) for run in runs)
    is_share = headline.share and headline.better is Better.HIGHER
    return SamplesScore(
        runs=runs,
        metrics=metrics,
        mean=mean_of_estimates(each),
        each=each,
        best=estimate_run(best_by_truth(runs), metrics),
        passes=pass_estimate(runs) if is_share else None,
    )


def best_by_truth(runs: Sequence[Run]) -> Run:
    """Return a run of the best sample of every query: by its query score, then by the metrics that
    rank formats, of equals the first.

    A failed call is chosen only where all calls failed.
    """
    benchmark = runs[0].benchmark
    metrics = (benchmark.metrics[0], *benchmark.ranking[1:])

    def rank(row: ScoredRow) -> tuple[float, ...]:
        if row.failed:
            return (0.0,)
        sums = sum_rows([row]) if row.parts else row.sums
        values = [benchmark.query_score(row), *(metric.value(sums) for metric in metrics[1:])]
        known = zip(metrics, values, strict=True)
        return 1.0, *(-metric.better.order(value or 0.0) for metric, value in known)

    return replace(runs[0], rows=tuple(max(rows, key=rank) for rows in by_query(runs)))


def pass_at(samples: int, solved: int, drawn: int) -> float:
    """Estimate the chance that some of so many drawn samples is solved, without bias.

    >>> [pass_at(4, 1, drawn) for drawn in (1, 2, 4)]
    [0.25, 0.5, 1.0]
    """
    return 1.0 - comb(samples - solved, drawn) / comb(samples, drawn)


def pass_estimate(runs: Sequence[Run]) -> Estimate:
    """Estimate pass@k for k = 1, 2, 4 … and all samples; a failed call does not solve a query.

    A query is solved by a query score of 100 %: for boxes, every object is hit at an IoU of 0.5 and
    no box is too many.
    """
    count = len(runs)
    benchmark = runs[0].benchmark
    drawn = sorted({count, *(2**power for power in range(count.bit_length()))})
    rows = []
    for samples in by_query(runs):
        answers = [row for row in samples if not row.failed]
        solved = sum(round(benchmark.query_score(row), 9) >= 100 for row in answers)
        sums = {f"pass@{k}": pass_at(count, solved, k) for k in drawn}
        rows.append(ScoredRow(samples[0].index, samples[0].source, {"queries": 1, **sums}))
    metrics = [Metric(f"pass@{k}", {f"pass@{k}": 1}, {"queries": 1}) for k in drawn]
    return estimate_metrics(metrics, clustered_sums(rows, runs[0].variant.images))


# --- boxes that samples agree on ------------------------------------------------------------------


def boxes_of(row: ScoredRow) -> list[BoxToWrite | None]:
    """Return the boxes of a reply in pixels, None for each that is not finite."""
    answer = BoxAnswer.of(row)
    boxes: list[BoxToWrite | None] = []
    for box, label, frame in zip(answer.boxes, answer.labels_or(""), answer.frames, strict=True):
        corners = finite_corners(box)
        boxes.append(None if corners is None else BoxToWrite(corners, label, frame))
    return boxes


def add_agreement(
    rows: Sequence[ScoredRow], others: Sequence[Sequence[ScoredRow]]
) -> tuple[ScoredRow, ...]:
    """Add to the rows of a sample how many of the others agree with each box, as a confidence.

    A sample agrees that has a box of the same label and frame with an IoU of at least 0.5. Those
    whose calls failed do not count; without any other there is no confidence.
    """
    answers: dict[int, list[Callable[[BoxToWrite], bool]]] = {}
    for row in (row for other in others for row in other):
        if not row.failed:
            answers.setdefault(row.index, []).append(_agrees(row))
    return tuple(
        row if row.failed else _with_agreement(row, answers.get(row.index, ())) for row in rows
    )


def _with_agreement(row: ScoredRow, others: Sequence[Callable[[BoxToWrite], bool]]) -> ScoredRow:
    boxes = boxes_of(row)
    if not others or not boxes:
        return row
    shares: list[float | None] = [
        0.0 if box is None else sum(agrees(box) for agrees in others) / len(others) for box in boxes
    ]
    return with_confidences(row, AGREEMENT, shares)


def _agrees(row: ScoredRow) -> Callable[[BoxToWrite], bool]:
    groups: dict[tuple[int, str], list[tuple[float, ...]]] = {}
    for box in filter(None, boxes_of(row)):
        groups.setdefault(group_of(box), []).append(box.box)
    arrays = {group: np.array(boxes) for group, boxes in groups.items()}

    def agrees(box: BoxToWrite) -> bool:
        boxes = arrays.get(group_of(box))
        return boxes is not None and bool((iou(np.array([box.box]), boxes) >= HIT_IOU).any())

    return agrees
