"""Intervals of metrics in all slices of a kind at once: a table may have hundreds of slices.

They are what :func:`.intervals.metric_intervals` gives for the rows of a slice alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..protocol import Metric, divide
from .influences import (
    FEWEST_IMAGES,
    ClusteredSums,
    SliceSums,
    effective_number_of,
    hits_by_slice,
    images_of_slices,
    sums_by_slice,
)
from .intervals import Interval, check_share, in_percent
from .share_intervals import Sampled, mean_ends, quantile, total_freedom


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
    entries = images_of_slices(kind, clustered)
    values = clustered.slices[kind].values
    places: list[tuple[str, Metric]] = []
    samples = []
    for metric in metrics:
        sums = sums_by_slice(metric, clustered, entries)
        places += [(values[number], metric) for number in sums.number]
        samples.append(_sample(sums, hits_by_slice(metric, clustered, entries, sums)))
    if not places:
        return {}
    # As if each metric of each slice were a metric of one dataset
    sampled = _join(samples)
    value = sampled.value[0]
    one = np.ones_like(value)
    clipped = replace(
        sampled, value=np.clip(sampled.value, 0.0, 1.0), hits=np.clip(sampled.hits, 0.0, 1.0)
    )
    low, high = mean_ends(clipped, one, one)
    freedom = total_freedom(sampled.variance, sampled.effective, one)
    reach = quantile(freedom) * np.sqrt(sampled.variance[0])
    intervals = {}
    for at, (value_of_slice, metric) in enumerate(places):
        if sampled.images[0, at] < FEWEST_IMAGES:
            continue
        ends = value[at] - reach[at], value[at] + reach[at]
        if metric.share:
            check_share(metric, value[at])
            ends = low[at], high[at]
        intervals[value_of_slice, metric.name] = in_percent(*ends)
    return intervals


def _sample(sums: SliceSums, hits: SliceSums) -> Sampled:
    """Return what is known of a metric, and of its hits, in its slices: (slices,) arrays."""
    shares = sums.shares()
    squares = sums.of_slices(shares**2)
    effective = effective_number_of(sums.of_slices(shares), squares)
    return Sampled(
        value=sums.ratios() / 100,
        variance=sums.of_slices((sums.losses() / 100) ** 2),
        hits=hits.ratios() / 100,
        hit_variance=hits.of_slices((hits.losses() / 100) ** 2),
        images=sums.of_slices(sums.counts()),
        effective=effective,
        skewness=divide(sums.of_slices(shares**3), squares**2, 1.0),
        # Only means over datasets count queries: alone, an image is a trial where nothing varies.
        queries=effective,
    )


def _join(samples: Sequence[Sampled]) -> Sampled:
    """Join the slices of all metrics: arrays (1, slices of all metrics)."""
    return Sampled(
        value=np.concatenate([each.value for each in samples])[np.newaxis],
        variance=np.concatenate([each.variance for each in samples])[np.newaxis],
        hits=np.concatenate([each.hits for each in samples])[np.newaxis],
        hit_variance=np.concatenate([each.hit_variance for each in samples])[np.newaxis],
        images=np.concatenate([each.images for each in samples])[np.newaxis],
        effective=np.concatenate([each.effective for each in samples])[np.newaxis],
        skewness=np.concatenate([each.skewness for each in samples])[np.newaxis],
        queries=np.concatenate([each.queries for each in samples])[np.newaxis],
    )
