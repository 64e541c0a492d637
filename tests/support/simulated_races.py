"""Races of simulated models, whose true values are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from simulated import SUMS, sums_of

from vlmeval_findit.benchmarks import benchmark_of, parse
from vlmeval_findit.core.influences import clustered_sums, estimate_metrics
from vlmeval_findit.core.intervals import ALPHA, difference
from vlmeval_findit.core.scored_row import ScoredRow
from vlmeval_findit.runs.race import ROUNDS, allowance, rank_round

RATES = {
    "equal": [0.7] * 8,
    "from 0.5 to 0.8": list(np.linspace(0.5, 0.8, 8)),
    "one better by 0.15": [0.6] * 7 + [0.75],
    "one better by 0.05": [0.6] * 7 + [0.65],
    "near 1": [0.97] * 6 + [0.99, 0.9],
}
"""How often each of eight formats finds a box."""

FORMATS = ("xyxy", "xywh", "yxyx", "yxhw", "cxcywh", "all", "all-labelled", "unconstrained")


class Races(NamedTuple):
    """Results of many races."""

    wrong: float  # Share whose winner is worse than the best format over all pictures
    asked: float  # Mean share of queries that was asked
    most_spent: float  # Largest sum of the chances of dropped formats


def races(rates: Sequence[float], times: int, pictures: int) -> Races:
    """Race formats with these rates, over one query a picture, a number of times."""
    wrong = 0
    asked, most = [], 0.0
    for time in range(times):
        rng = np.random.default_rng([time, pictures])
        hard = rng.random((pictures, 2))
        order = rng.permutation(len(rates))
        runs = {
            f"FindIt_Scenes_{name}_text": _rows(sums_of(rng, pictures, rates[at], hard))
            for name, at in zip(FORMATS, order, strict=True)
        }
        won, spent, share = _race(runs, pictures)
        benchmark = benchmark_of(won)
        metric = benchmark.ranking[:1]
        estimates = {
            name: estimate_metrics(metric, clustered_sums(rows, "S")) for name, rows in runs.items()
        }
        best = max(estimates, key=lambda name: float(estimates[name].values[0]))
        apart = difference(estimates[best], estimates[won], metric[0].name)
        wrong += apart.p_value is not None and apart.p_value < ALPHA
        asked.append(share)
        most = max(most, spent)
    return Races(wrong / times, float(np.mean(asked)), most)


def _race(runs: dict[str, list[ScoredRow]], pictures: int) -> tuple[str, float, float]:
    """Return the winner, the spent chance, and the share of asked queries."""
    going, spent = list(runs), 0.0
    asked = dict.fromkeys(runs, 0)
    for share in ROUNDS:
        count = round(share * pictures)
        asked |= dict.fromkeys(going, count)
        now = rank_round(
            benchmark_of(going[0]),
            {parse(name).format: {parse(name): runs[name][:count]} for name in going},
            count / pictures,
            allowance(0, 1, share, spent),
        )
        spent += sum(out.chance for out in now.out)
        going = [cell.question.name for cell in now.going]
        if len(going) == 1:
            break
    asked[going[0]] = pictures
    return going[0], spent, sum(asked.values()) / (len(runs) * pictures)


def _rows(sums: np.ndarray) -> list[ScoredRow]:
    """Return simulated sums as rows, one for each picture."""
    return [
        ScoredRow(at, f"{at:04d}", dict(zip(SUMS, map(float, row), strict=True)))
        for at, row in enumerate(sums)
    ]
