"""Races of formats whose true rates are known, to measure what a race drops and what it saves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from scipy.special import ndtri

from vlmeval_findit.analysis import RACE_ROUNDS, rank_formats, rank_round
from vlmeval_findit.benchmarks import parse
from vlmeval_findit.benchmarks.findit import BENCHMARK
from vlmeval_findit.protocol import DatasetVariant, ScoredRow, sum_rows
from vlmeval_findit.statistics import drop_allowance

_WORDS = ("xyxy", "xywh", "yxyx", "yxhw", "cxcywh", "all", "all-labelled", "unconstrained")
QUESTIONS = tuple(
    parse(f"FindIt_Scenes_{words}_{out}") for out in ("text", "json") for words in _WORDS
)
_SHARED = 0.5  # Of the variance of how hard a box is: the same for all formats

Rows = dict[DatasetVariant, list[ScoredRow]]


@dataclass(frozen=True)
class Race:
    """A race: which format won it, which one a search over all queries chooses, what was asked."""

    won: DatasetVariant
    chosen: DatasetVariant  # By the search over all queries
    dropped: frozenset[DatasetVariant]
    asked: float  # Share of all queries
    asked_of: Mapping[DatasetVariant, int]  # Number of queries


def rows_of(rng: np.random.Generator, rates: Sequence[float], images: int) -> Rows:
    """Return rows of formats that find a box at these rates: 1 to 3 boxes, a query an image."""
    boxes = rng.integers(1, 4, images)
    hard = rng.normal(0, _SHARED**0.5, (images, 3))
    there = np.arange(3) < boxes[:, None]
    rows: Rows = {}
    for variant, rate in zip(QUESTIONS, rates, strict=False):
        skill = hard + rng.normal(0, (1 - _SHARED) ** 0.5, hard.shape)
        found = ((skill < ndtri(rate)) & there).sum(axis=1)
        answered = found + rng.binomial(boxes - found, 0.8)
        near = rng.uniform(0.7, 0.9, images)
        rows[variant] = [
            ScoredRow(at, f"{at:04d}", _sums(*numbers))
            for at, numbers in enumerate(zip(found, answered, boxes, found * near, strict=True))
        ]
    return rows


def _sums(found: int, answered: int, boxes: int, overlap: float) -> dict[str, float]:
    counts = {"tp": int(found), "n_pred": int(answered), "n_gt": int(boxes), "n_gt_failed": 0}
    return {"responses": 1, "adherent": 1, "failed": 0, "iou_sum": float(overlap), **counts}


def raced(rows: Rows) -> Race:
    """Race formats given the rows of all queries; a search asks all of them."""
    count = len(next(iter(rows.values())))
    going, spent, asked = list(rows), 0.0, dict.fromkeys(rows, 0)
    for share in RACE_ROUNDS:
        seen = ceil(round(share * count, 6))
        asked |= dict.fromkeys(going, seen)
        now = rank_round(
            BENCHMARK,
            {each.format: {each: rows[each][:seen]} for each in going},
            seen / count,
            drop_allowance(0, 1, seen / count, spent),
        )
        spent += sum(out.chance for out in now.out)
        going = [average.variant for average in now.going]
        if len(going) == 1:
            break
    asked[going[0]] = count
    order = rank_formats(BENCHMARK, ((variant, sum_rows(of)) for variant, of in rows.items()))
    return Race(
        going[0],
        order[0].variant,
        frozenset(rows) - frozenset(going),
        sum(asked.values()) / (len(rows) * count),
        asked,
    )
