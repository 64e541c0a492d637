"""95 % intervals of a score: the bootstrap over queries, in clusters of one picture.

The figures are ratios of sums, so a resample needs no queries, only how often every cluster was
drawn: counts times sums is one matrix product.  Queries of one picture are drawn together, because
a model that sees one of them well is likely to see the others well.  Draws are seeded: the same
replies give the same intervals.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .metrics import Totals, totals
from .results import FIGURES
from .scoring import RunScore

RESAMPLES = 10_000
SEED = 0
LEVEL = 0.95

_SUMS = tuple(field.name for field in fields(Totals))

Array = NDArray[np.float64]
Interval = tuple[float, float]
"""(low, high) in percent."""


def cluster_sums(run: RunScore) -> Array:
    """The sums of a run by picture.

    Returns:
        (clusters, 8) in the order of the fields of :class:`.metrics.Totals`; clusters by name.
    """
    names = sorted({one.query.images[0] for one in run.scored})
    place = {name: at for at, name in enumerate(names)}
    sums = np.zeros((len(names), len(_SUMS)))
    for one in run.scored:
        t = totals(one.reading, one.matched)
        sums[place[one.query.images[0]]] += [getattr(t, name) for name in _SUMS]
    return sums


def metric_values(sums: Array) -> Array:
    """Figures from sums, in percent; an empty denominator gives 0.

    Args:
        sums: (..., 8), in the order of the fields of :class:`.metrics.Totals`.

    Returns:
        (..., 5) in the order of :data:`.results.FIGURES`.
    """
    of = {name: sums[..., at] for at, name in enumerate(_SUMS)}
    parts = (2 * of["tp"], of["iou_sum"], of["adherent"], of["tp"], of["tp"])
    wholes = (of["n_pred"] + of["n_gt"], of["n_gt"], of["responses"], of["n_pred"], of["n_gt"])
    part, whole = np.stack(parts, axis=-1), np.stack(wholes, axis=-1)
    values: Array = 100.0 * np.divide(part, whole, out=np.zeros_like(part), where=whole != 0)
    return values


def intervals(sums: Array, resamples: int = RESAMPLES, seed: int = SEED) -> dict[str, Any]:
    """The interval of every figure, by its name; None where one picture leaves nothing to resample.

    Args:
        sums: (clusters, 8), as :func:`cluster_sums` gives them.
        resamples: how many.
        seed: of the draws.
    """
    clusters = len(sums)
    if clusters < 2:
        return dict.fromkeys(FIGURES)
    generator = np.random.default_rng(seed)
    drawn = generator.integers(clusters, size=(resamples, clusters))
    # Counting all rows at once: row r counts in its own range of numbers.
    drawn += np.arange(resamples)[:, None] * clusters
    counts = np.bincount(drawn.ravel(), minlength=resamples * clusters)
    values = metric_values(counts.reshape(resamples, clusters) @ sums)
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(values, (tail, 100 - tail), axis=0)
    return {name: (float(low[at]), float(high[at])) for at, name in enumerate(FIGURES)}
