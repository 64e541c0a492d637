"""Formats whose true values are known, and how often a table calls one falsely worse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from vlmeval_findit.benchmarks.findit import F1
from vlmeval_findit.statistics import BestOf, ClusteredSums, Difference, Estimate, estimate_metrics


@dataclass(frozen=True)
class Claims:
    """What a table says of formats against the best of them."""

    false: int
    """Formats that are as good or better, but are called worse."""
    right: int
    worse: int
    """Formats that are worse."""
    loss: float
    """Of the worst against the best, in points."""
    holds_all: bool
    """Whether the interval of every difference to the best holds the true one."""

    @property
    def any_false(self) -> bool:
        return self.false > 0


@dataclass(frozen=True)
class Formats:
    """A simulated model that finds one object an image at a true rate in each format."""

    rates: Sequence[float]
    images: int
    alike: float = 0.8
    """Latent correlation of the hits in two formats."""

    def estimates(self, random: np.random.Generator) -> list[Estimate]:
        hard = random.normal(size=(self.images, 1))
        own = random.normal(size=(self.images, len(self.rates)))
        latent = self.alike**0.5 * hard + (1 - self.alike) ** 0.5 * own
        hits = (latent < ndtri(np.array(self.rates))).astype(float)
        names = tuple(f"{at:05d}" for at in range(self.images))
        one = np.ones(self.images)
        return [
            estimate_metrics(
                (F1,),
                ClusteredSums(
                    names, np.arange(self.images), {"tp": hit, "n_pred": one, "n_gt": one}, {}
                ),
            )
            for hit in hits.T
        ]

    def claims(self, random: np.random.Generator) -> Claims:
        """Draw answers, and test all formats against the best of them."""
        estimates = self.estimates(random)
        values = [estimate.value(F1.name) or 0.0 for estimate in estimates]
        best = int(np.argmax(values))
        choice = BestOf(len(estimates))
        tests = {
            at: choice.difference(estimate, estimates[best], F1.name)
            for at, estimate in enumerate(estimates)
            if at != best
        }
        return self.judged(best, tests)

    def judged(self, best: int, tests: dict[int, Difference]) -> Claims:
        """Count the right and the false claims of tests against the best."""
        truth = {at: 100 * (self.rates[at] - self.rates[best]) for at in tests}
        claimed = [at for at, test in tests.items() if test.significant]
        holds = [
            test.interval is not None and test.interval.low <= truth[at] <= test.interval.high
            for at, test in tests.items()
        ]
        return Claims(
            false=sum(truth[at] >= 0 for at in claimed),
            right=sum(truth[at] < 0 for at in claimed),
            worse=sum(value < 0 for value in truth.values()),
            loss=-min(test.value for test in tests.values()),
            holds_all=all(holds),
        )
