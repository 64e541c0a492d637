"""Estimate the points of each error type, with the influence of each image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..protocol import Array, ErrorAnalysis, Metric, SumKey, SumName, add_up, weighted
from .influences import FEWEST_IMAGES, ClusteredSums, Estimate, add_up_at
from .reviewed_estimates import RandomRows
from .share_intervals import SampledChanges


def estimate_errors(analysis: ErrorAnalysis, clustered: ClusteredSums) -> Estimate:
    """Estimate the points of each error type as shares of 1, with each image's influence.

    Points are no ratio of sums, so an image's influence is the change without it (jackknife).
    The metrics' names are the error types' keys.
    """
    images = len(clustered.images)
    by_image = _by_image(clustered, analysis.score.over)
    totals = {key: values.sum() for key, values in by_image.items()}
    totals_without = {key: totals[key] - values for key, values in by_image.items()}
    points = analysis.points(totals)
    points_without = analysis.points(totals_without)
    types = [error_type.key for error_type in analysis.error_types]
    values = np.array([points[key] for key in types], dtype=float) / 100
    columns = [np.broadcast_to(points_without[key], images) for key in types]
    values_without = np.stack(columns, axis=-1) / 100
    whole = np.asarray(weighted(by_image, analysis.score.whole), dtype=float)
    counted = int((whole > 0).sum())
    scale = 0.0
    weight = np.zeros(images)
    queries = 0.0
    if counted >= FEWEST_IMAGES:
        scale = np.sqrt((counted - 1) / counted)
        weight = whole / whole.sum()
        queries = float(counted)
    weights = np.tile(weight[:, None], len(types))
    # Around the value itself, so that an image without weight has no influence.
    losses = values - values_without
    return Estimate(
        metrics=tuple(Metric(key, {key: 1}, analysis.score.whole) for key in types),
        values=values,
        images=clustered.images,
        influence=scale * losses,
        weight=weights,
        # Were points a ratio of sums, these would be what the images add to it.
        part=weights * values + (1 - weights) * losses,
        queries=np.full(len(types), queries),
    )


def estimate_all_errors(
    as_reviewed: Estimate,
    analysis: ErrorAnalysis,
    sums: Mapping[SumName, float],
    random: RandomRows,
) -> Estimate:
    """Correct the points of error types by what random rows changed, and carry their sampling.

    As :func:`.estimate_all_rows` does with metrics, whose ratios have a derivative at hand.

    Args:
        as_reviewed: of :func:`estimate_errors`, random rows once.
        analysis: as for it.
        sums: those of :func:`.sums_of_all_rows`, with events.
        random: the random rows, their events among the changes.
    """
    types = [metric.name for metric in as_reviewed.metrics]

    def points_after(changed: Mapping[SumName, float], share: float) -> Array:
        moved = add_up([sums, {key: share * change for key, change in changed.items()}])
        points = analysis.points(moved)
        return np.array([points[key] for key in types], dtype=float) / 100

    change = np.zeros((len(random.changes), len(types)))
    for at, changed in enumerate(random.changes):
        if any(changed.values()):
            both = points_after(changed, _STEP), points_after(changed, -_STEP)
            change[at] = (both[0] - both[1]) / (2 * _STEP)
    return replace(
        as_reviewed,
        values=points_after({}, 0.0),
        changes=SampledChanges(random.unlisted * change, random.unlisted, random.rows),
    )


_STEP = 1e-4  # Of a row: a derivative is the difference over so small a part of it


def _by_image(clustered: ClusteredSums, kind: str) -> dict[SumName, Array]:
    """Add up the sums of each image, and those of its slices of a kind."""
    images = len(clustered.images)
    sums: dict[SumName, Array] = {}
    for name, values in clustered.sums.items():
        sums[name] = add_up_at(clustered.image, values, images)
    if kind in clustered.slices:
        slicing = clustered.slices[kind]
        for at, value in enumerate(slicing.values):
            inside = slicing.place == at
            for name, values in clustered.sums.items():
                added = add_up_at(clustered.image[inside], values[inside], images)
                sums[SumKey(name, kind, value)] = added
    return sums
