"""Ref-L4's protocol: hits in the authors' arithmetic, as sums, slices and metrics."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...protocol.metric import Metric, Sums, in_slice
from .classes import AUTHORS, CORRECTED, class_of, source_of
from .refl4_annotations import SIZES, Annotation, RefL4Split, size_of

Array = NDArray[np.float32]

THRESHOLDS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)  # a hit's IoU is above

# An IoU of "0.6" is float32(0.6), which is more than the 64-bit 0.6 and would pass it.
_LIMITS = np.array(THRESHOLDS, dtype=np.float32)
_LEAST_UNION = np.float32(1e-6)


def iou(truths: Array, predictions: Array) -> Array:
    """Compute the IoU of paired boxes, both (N, 4) corners x1, y1, x2, y2 in pixels.

    In 32 bits, like the authors' evaluator and unlike FindIt (:mod:`...boxes.matching`).  Sides are
    signed, without an added pixel: boxes without area, with swapped corners or with non-finite
    values give 0 or NaN.  A union is at least 1e-6, so tiny boxes (normalised coordinates) miss.
    """
    l1, t1, r1, b1 = truths.T
    l2, t2, r2, b2 = predictions.T
    zero = np.float32(0)
    with np.errstate(all="ignore"):
        width = np.maximum(np.minimum(r1, r2) - np.maximum(l1, l2), zero)
        height = np.maximum(np.minimum(b1, b2) - np.maximum(t1, t2), zero)
        both = width * height
        # The order of summation decides the last bit, and thereby some hits.
        union = ((r1 - l1) * (b1 - t1) + (r2 - l2) * (b2 - t2)) - both
        values: Array = both / np.maximum(union, _LEAST_UNION)
    return values


def judge(
    annotations: Sequence[Annotation], boxes: Sequence[Sequence[float] | None]
) -> tuple[list[float], list[int]]:
    """Compute each box's IoU (no box: 0) and the number of thresholds it exceeds (NaN: none)."""
    truths = [annotation.corners for annotation in annotations]
    # A box without area has IoU 0 with everything.
    answers = [(0.0, 0.0, 0.0, 0.0) if box is None else box for box in boxes]
    with np.errstate(over="ignore"):  # a model may answer 1e300
        values = iou(*(np.array(some, np.float32).reshape(-1, 4) for some in (truths, answers)))
    return values.tolist(), (values[:, None] > _LIMITS).sum(axis=1).tolist()


ASKED = "asked"  # the sum of answered expressions
HITS = tuple(f"hits_{threshold:g}" for threshold in THRESHOLDS)  # sums of hits, by threshold
HIT_MORE = f"lenient_{HITS[0]}"  # the sum of hits of boxes that only a lenient reader takes


def sums_of(passed: int, has_box: bool, failed: bool = False) -> dict[str, float]:
    """Return the sums of an answer whose box exceeds ``passed`` thresholds."""
    hits = {name: int(at < passed and not failed) for at, name in enumerate(HITS)}
    boxless = not has_box and not failed
    return {ASKED: int(not failed), "failed": int(failed), "boxless": int(boxless), **hits}


CLASS, CORRECTED_CLASS = "class", "corrected class"
_WORDS = ((10, "<=10"), (20, "11-20"), (40, "21-40"))


def slices_of(annotation: Annotation) -> dict[str, str]:
    """Return the slices of an expression that are known."""
    split = annotation.split
    category = annotation.ori_category_id
    rewritten = annotation.is_rewrite
    count = len(annotation.caption.split())
    result = {
        "split": "" if split is RefL4Split.ALL else split.value,
        "size": size_of(annotation),
        "source": source_of(category),
        "words": next((name for most, name in _WORDS if count <= most), ">40") if count else "",
        "wording": "" if rewritten is None else ("original", "rewritten")[rewritten],
        CLASS: class_of(category, AUTHORS),
        CORRECTED_CLASS: class_of(category, CORRECTED),
    }
    return {kind: value for kind, value in result.items() if value}


@dataclass(frozen=True, slots=True)
class AuthorsMetric(Metric):
    """A metric in the authors' order of operations, which decides the last bit.

    They round to two decimals: 49 hits of 160 are 30.625 %, which they print as 30.63, because
    their number is 30.625000000000004.

    >>> MACC.value({"asked": 16, "hits_0.5": 16, "hits_0.55": 16, "hits_0.6": 16, "hits_0.65": 1})
    30.625000000000004
    """

    percent_last: bool = False  # Thresholds are averaged as shares of 1

    def value(self, sums: Sums) -> float | None:
        by_threshold: dict[str, list[float]] = {}  # With an entry for each class
        for ratio in self.ratios(sums):
            (asked,) = ratio.whole
            if count := sums.get(asked):
                for at, hits in enumerate(ratio.part):
                    share = sums.get(hits, 0) / count
                    value = share if self.percent_last else share * 100
                    by_threshold.setdefault(HITS[at], []).append(value)
        if not by_threshold:
            return self.empty
        mean = statistics.mean([statistics.mean(values) for values in by_threshold.values()])
        return mean * 100 if self.percent_last else mean


_HALF = {HITS[0]: 1.0}
_ALL = dict.fromkeys(HITS, 1.0)
_ONCE, _TEN_TIMES = {ASKED: 1.0}, {ASKED: float(len(HITS))}


def _pair(name: str, over: str = "", size: str = "", more: str = "") -> Iterator[Metric]:
    """Make the metrics acc (at 0.5) and macc (all thresholds) of a size or over classes."""
    for way, hits, asked in (("acc", _HALF, _ONCE), ("macc", _ALL, _TEN_TIMES)):
        yield AuthorsMetric(
            f"{name}_{way} ({more})" if more else f"{name}_{way}",
            in_slice(hits, "size", size) if size else hits,
            in_slice(asked, "size", size) if size else asked,
            over=over,
            empty=None,
            in_short_tables=way == "acc" and over == CLASS,
            key=f"{name}_{way}_{more}" if more else f"{name}_{way}",
        )


def _hidden(name: str, hits: str) -> Metric:
    return AuthorsMetric(name, {hits: 1}, _ONCE, empty=None, in_short_tables=False)


def _ours(name: str, part: Mapping[str, float], key: str) -> Metric:
    return Metric(name, part, _ONCE, empty=None, in_short_tables=False, key=key)


MACC = AuthorsMetric("macc", _ALL, _TEN_TIMES, empty=None, percent_last=True)

TWELVE = (  # the published metrics, by their published names and in their order
    AuthorsMetric("acc_0.5", _HALF, _ONCE, empty=None),
    _hidden("acc_0.75", "hits_0.75"),
    _hidden("acc_0.9", "hits_0.9"),
    MACC,
    *(metric for size in SIZES for metric in _pair(size, size=size)),
    *_pair("class", over=CLASS),
)

# By the corrected table of classes
CORRECTED_METRICS = tuple(_pair("class", over=CORRECTED_CLASS, more="corrected"))
ADHERENCE = _ours("Adherence", {"adherent": 1}, "adherence")

# The headline where answers without a box get the first box that lenient parsing finds.
ACC_LENIENT = _ours("acc_0.5 (lenient)", {**_HALF, HIT_MORE: 1}, "acc_0.5_lenient")

METRICS = (*TWELVE, *CORRECTED_METRICS, ADHERENCE, ACC_LENIENT)

WITH_FAILURES = Metric(  # no other metric counts failed calls
    "acc_0.5 (failed calls as misses)",
    _HALF,
    {ASKED: 1, "failed": 1},
    empty=None,
    key="acc_0.5_failed_missed",
)

RANKING = (WITH_FAILURES, MACC, ADHERENCE)
COUNTS = {"hits at 0.5": HITS[0], "without a box": "boxless"}
