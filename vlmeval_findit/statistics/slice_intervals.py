"""Intervals of metrics in all slices of a kind at once: a table may have hundreds of slices.

They are what :func:`.intervals.metric_intervals` gives for the rows of a slice alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, replace

import numpy as np

from ..protocol.metric import Metric, divide
from .influences import (
    FEWEST,
    ClusteredSums,
    effective_number_of,
    images_of_slices,
    sums_by_slice,
)
from .intervals import Interval, check_share, in_percent
from .share_intervals import Sampled, mean_ends
from .student import quantile, total_freedom


def slice_intervals(
    metrics: Sequence[Metric], clustered: ClusteredSums, kind: str
) -> dict[tuple[str, str], Interval]:
    """Return 95 % intervals by the value of a slice and the name of a metric.

    Where too few images count in a slice there is none.

    Args:
        metrics: ratios of sums; none is a mean over slices.
        clustered: rows that have slices of the kind.
        kind: of the slices.

    Raises:
        ValueError: a share is not 0 to 100 %.
    """
    sampled = _sample(metrics, clustered, kind)
    at_metric, at_slice = np.nonzero(sampled.images >= FEWEST)
    # As if each metric of each slice were a metric of one dataset
    counted = Sampled(*(field[at_metric, at_slice][np.newaxis] for field in astuple(sampled)))
    one = np.ones(len(at_metric))
    shares = replace(counted, value=np.clip(counted.value, 0.0, 1.0))
    low, high = mean_ends(shares, one, one)
    freedom = total_freedom(counted.variance, counted.effective, one)
    reach = quantile(freedom) * np.sqrt(counted.variance[0])
    values = clustered.slices[kind].values
    intervals = {}
    for at, value in enumerate(counted.value[0].tolist()):
        metric = metrics[at_metric[at]]
        ends = value - reach[at], value + reach[at]
        if metric.share:
            check_share(metric, value)
            ends = low[at], high[at]
        intervals[values[at_slice[at]], metric.name] = in_percent(*ends)
    return intervals


def _sample(metrics: Sequence[Metric], clustered: ClusteredSums, kind: str) -> Sampled:
    """Return what is known of metrics in slices: (metrics, slices) arrays, 0 without a whole."""
    entries = images_of_slices(kind, clustered)
    slices = len(clustered.slices[kind].values)
    sampled = Sampled(*np.zeros((6, len(metrics), slices)))
    for row, metric in enumerate(metrics):
        sums = sums_by_slice(metric, clustered, entries)
        shares = sums.shares()
        squares = sums.of_slices(shares**2)
        there = row, sums.number
        sampled.value[there] = sums.ratios() / 100
        sampled.variance[there] = sums.of_slices((sums.losses() / 100) ** 2)
        sampled.images[there] = sums.of_slices(sums.counts())
        sampled.effective[there] = effective_number_of(sums.of_slices(shares), squares)
        sampled.skewness[there] = divide(sums.of_slices(shares**3), squares**2, 1.0)
    # Only means over datasets count queries: alone, an image is a trial where nothing varies.
    return replace(sampled, queries=sampled.effective)
