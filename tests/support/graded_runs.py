"""Answers of models whose hits have realistic IoUs: metrics of boxes, points and accuracies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from simulated import Coverage

from vlmeval_findit.benchmarks.findit import ADHERENCE, F1, MIOU, POINTS_INSIDE, PRECISION, RECALL
from vlmeval_findit.benchmarks.refl4 import ACC, ANSWERED_SUM, HIT_SUMS, IOU_THRESHOLDS, MACC
from vlmeval_findit.statistics import ClusteredSums, Estimate, estimate_metrics, metric_intervals

METRICS = (F1, MIOU, ADHERENCE, PRECISION, RECALL, ACC, MACC, POINTS_INSIDE)

_TRUTH_IMAGES = 100_000
_TRUTH_PARTS = 4


@dataclass(frozen=True)
class GradedModel:
    """A simulated model on a dataset: an image has one query."""

    rate: float
    """Of objects that are found."""
    mean: float = 0.92
    """IoU of hits: Beta-distributed between 0.5 and 1."""
    sd: float = 0.05
    objects: str = "one"
    """Of an image: "one"; "some": 1 + Poisson(3); "crowds": one, but 60 to 150 on 4 % of images."""
    unreadable: float = 0.0
    """Of replies: all objects of the image are missed."""
    alike: float = 0.0
    """Correlation of the hits, and of the IoUs of hits, of an image."""

    def sums(self, generator: np.random.Generator, images: int) -> dict[str, np.ndarray]:
        """Draw the sums of so many images."""
        counts = self._objects(generator, images)
        image = np.repeat(np.arange(images), counts)
        chance = np.full(images, self.rate)
        if self.alike:
            sure = 1 / self.alike - 1
            chance = generator.beta(self.rate * sure, (1 - self.rate) * sure, images)
        readable = generator.random(images) >= self.unreadable
        hit = (generator.random(len(image)) < chance[image]) & readable[image]
        elsewhere = ~hit & readable[image] & (generator.random(len(image)) < 2 / 3)
        far = np.where(
            generator.random(len(image)) < 0.4, generator.uniform(0.1, 0.5, len(image)), 0
        )
        ious = np.where(hit, self._ious(generator, image, images), far * elsewhere)

        def add_up(values: np.ndarray) -> np.ndarray:
            return np.bincount(image, values, images)

        points = 1 + generator.poisson(1.0, images)
        # Of a hit image nearly all points are inside; its first object decides.
        first = np.concatenate([[0], np.cumsum(counts)[:-1]])
        inside = generator.binomial(points, 0.93) * hit[first] / points
        sums = {
            "tp": add_up(hit),
            "n_pred": add_up(hit | elsewhere),
            "n_gt": counts.astype(float),
            "iou_sum": add_up(ious),
            "responses": np.ones(images),
            "adherent": readable.astype(float),
            ANSWERED_SUM: counts.astype(float),
            "inside": inside,
            "targets": np.ones(images),
        }
        passed = {
            name: add_up(ious > at) for name, at in zip(HIT_SUMS, IOU_THRESHOLDS, strict=True)
        }
        return sums | passed

    def _objects(self, generator: np.random.Generator, images: int) -> np.ndarray:
        if self.objects == "some":
            return 1 + generator.poisson(3.0, images)
        counts = np.ones(images, dtype=int)
        if self.objects == "crowds":
            crowd = generator.random(images) < 0.04
            counts[crowd] = generator.integers(60, 151, int(crowd.sum()))
        return counts

    def _ious(self, generator: np.random.Generator, image: np.ndarray, images: int) -> np.ndarray:
        """Draw the IoU of every object, were it a hit."""
        if not self.sd:
            return np.full(len(image), self.mean)
        middle = (self.mean - 0.5) / 0.5
        spread = (self.sd / 0.5) ** 2
        sure = middle * (1 - middle) / spread - 1

        def draw(count: int) -> np.ndarray:
            return 0.5 + 0.5 * generator.beta(middle * sure, (1 - middle) * sure, count)

        ious = draw(len(image))
        if self.alike:
            of_image = draw(images)[image]
            return np.where(generator.random(len(image)) < self.alike, of_image, ious)
        return ious

    def truth(self) -> dict[str, float]:
        """Return the metrics of very many images, in percent."""
        generator = np.random.default_rng(0)
        total: dict[str, float] = {}
        for _ in range(_TRUTH_PARTS):
            for name, values in self.sums(generator, _TRUTH_IMAGES).items():
                total[name] = total.get(name, 0.0) + float(values.sum())
        return {metric.name: metric.value(total) or 0.0 for metric in METRICS}

    def estimate(self, generator: np.random.Generator, images: int, name: str = "") -> Estimate:
        sums = self.sums(generator, images)
        names = tuple(f"{name}{at:06d}" for at in range(images))
        return estimate_metrics(METRICS, ClusteredSums(names, np.arange(images), sums, {}))

    def estimates(self, seed: int, times: int, images: int) -> Iterator[Estimate]:
        """Yield the estimates of a run, drawn a number of times."""
        generator = np.random.default_rng(seed)
        for _ in range(times):
            yield self.estimate(generator, images)


NAMES: Sequence[str] = tuple(metric.name for metric in METRICS)


def coverage_of(estimates: Iterable[Estimate], truth: Mapping[str, float]) -> dict[str, Coverage]:
    """Return the coverage of the intervals of each metric over many simulated runs.

    The needed width is that of intervals of the same shape, all shrunk or stretched alike, of which
    95 % hold the truth.
    """
    held: dict[str, list[bool]] = {name: [] for name in truth}
    widths: dict[str, list[float]] = {name: [] for name in truth}
    stretches: dict[str, list[float]] = {name: [] for name in truth}
    runs = 0
    for estimate in estimates:
        runs += 1
        for name, interval in metric_intervals(estimate).items():
            value = estimate.value(name)
            if interval is None or value is None:
                continue
            away = truth[name] - value
            reach = interval.high - value if away > 0 else value - interval.low
            held[name].append(abs(away) <= reach + 1e-9)
            widths[name].append(interval.high - interval.low)
            stretches[name].append(abs(away) / max(reach, 1e-9))
    measured = {}
    for name in truth:
        width = float(np.mean(widths[name]))
        measured[name] = Coverage(
            held=100 * float(np.mean(held[name])),
            width=width,
            printed=100 * len(held[name]) / runs,
            needed=width * float(np.quantile(stretches[name], 0.95)),
        )
    return measured
