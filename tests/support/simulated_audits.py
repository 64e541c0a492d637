"""Audits whose true values are known: two voters and a held-out model, all equally good."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vlmeval_findit.protocol import Metric, ScoredRow, sum_rows
from vlmeval_findit.statistics import (
    Estimate,
    RandomRows,
    clustered_sums,
    estimate_all_rows,
    estimate_metrics,
    sums_of_all_rows,
)

F1 = Metric("F1", {"tp": 2}, {"predicted": 1, "expected": 1})
FOUND = 0.85  # Chance that a model finds the object
ROWS = 400
RANDOM = 80


@dataclass(frozen=True)
class Simulated:
    """A model in a simulated audit: two voters and a held-out model, all equally good."""

    true: float  # Its F1 if every label were right, in percent
    as_reviewed: Estimate
    all_rows: Estimate
    unlisted: float  # Its F1 as labelled, were listed rows dropped: what nothing here does


def simulate(seed: int, wrong: float = 0.14, correlation: float = 0.3) -> list[Simulated]:
    """Simulate the study's setting: a list of rows, a perfect reviewer, random rows.

    A row is listed if both voters answer the same, and not the label. A wrong label is the object
    that models mistake for the right one, too.
    """
    random = np.random.default_rng(seed)
    is_wrong = random.random(ROWS) < wrong
    alike = random.random((3, ROWS)) < correlation
    luck = np.where(alike, random.random(ROWS), random.random((3, ROWS)))
    mistake = np.where(random.random((3, ROWS)) < 0.35, 0, random.integers(1, 4, (3, ROWS)))
    mistake = np.where(alike, random.integers(0, 3, ROWS), mistake)
    found = luck < FOUND
    answer = np.where(found, -1, mistake)
    label = np.where(is_wrong, 0, -1)
    listed = (answer[0] == answer[1]) & (answer[0] != label)
    unlisted = np.flatnonzero(~listed)
    drawn = random.choice(unlisted, RANDOM, replace=False)
    reviewed = listed.copy()
    reviewed[drawn] = True
    images = random.integers(0, ROWS * 2 // 3, ROWS)
    models = []
    for model in range(3):
        before = answer[model] == label
        after = found[model]
        as_reviewed = hits_as_rows(np.where(reviewed, after, before), images)
        changes = [{"tp": int(after[row]) - int(before[row])} for row in drawn]
        models.append(
            Simulated(
                true=100 * float(after.mean()),
                as_reviewed=estimate_metrics([F1], clustered_sums(as_reviewed, "images")),
                all_rows=estimated(as_reviewed, changes, len(unlisted)),
                unlisted=100 * float(before[unlisted].mean()),
            )
        )
    return models


def hits_as_rows(hits: NDArray[np.bool_], images: NDArray[np.int64]) -> list[ScoredRow]:
    return [
        ScoredRow(at, f"{image:04d}", {"tp": int(hit), "predicted": 1, "expected": 1})
        for at, (hit, image) in enumerate(zip(hits, images, strict=True))
    ]


def estimated(
    rows: list[ScoredRow],
    changes: list[dict[str, int]],
    unlisted: int,
    metric: Metric = F1,
) -> Estimate:
    random = RandomRows(tuple(changes), unlisted, len(rows))
    sums = sums_of_all_rows(sum_rows(rows), random)
    as_reviewed = estimate_metrics([metric], clustered_sums(rows, "images"))
    return estimate_all_rows(as_reviewed, sums, random)
