"""Rows of sums as arrays, and the influence of each image on a metric.

Queries of one image are not independent, so the image is the unit. A metric is a ratio of sums over
images; linearised, its variance is the sum of squared influences, as for clusters in surveys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .metric import Array, Metric, unsliced, weighted
from .scored_row import RowTable, ScoredRow, Texts, as_floats, table_of

FEWEST = 4  # Images that an interval or a test needs; fewer would say next to nothing

Places = NDArray[np.intp]


# --- sums -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClusteredSums:
    """Rows as arrays: sums by name, an entry per row (per image, once added up). Parts are rows."""

    images: tuple[str, ...]  # ``<image folder's key>/<name>``, alphabetical
    image: Places  # Index of each row's image
    sums: Mapping[str, Array]
    slices: Mapping[str, Texts]


def clustered_sums(rows: Sequence[ScoredRow], images: str) -> ClusteredSums:
    """Convert rows to arrays; ``images`` is the key of their image folder."""
    if not isinstance(rows, RowTable) or rows.parts is not None:
        parts = [part for row in rows for part in row.part_rows()]
        rows = table_of([*(replace(row, parts={}) if row.parts else row for row in rows), *parts])
    return ClusteredSums(
        images=_image_names(rows.source.values, images),
        image=rows.source.of.astype(np.intp),
        sums={name: as_floats(column) for name, column in rows.sums.items()},
        slices={
            kind: Texts(column.values, column.of.astype(np.intp))
            for kind, column in rows.slices.items()
        },
    )


@lru_cache(maxsize=64)
def _image_names(names: tuple[str, ...], images: str) -> tuple[str, ...]:
    """Share one tuple between all runs over the same images."""
    return tuple(f"{images}/{name}" for name in names)


def slice_of(clustered: ClusteredSums, kind: str, value: str) -> ClusteredSums:
    """Return the rows of one slice, which has no slices of its own."""
    slicing = clustered.slices[kind]
    inside = slicing.of == slicing.values.index(value)
    sums = {name: values[inside] for name, values in clustered.sums.items()}
    return ClusteredSums(clustered.images, clustered.image[inside], sums, {})


# --- values and influences ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Estimate:
    """Metrics, and the influence of each image on them."""

    metrics: tuple[Metric, ...]
    values: Array  # Hundredths of the metrics (of a share: the ratio); NaN: none
    images: tuple[str, ...]
    influence: Array  # (images, metrics)
    counted: Array  # Images that each metric rests on; 0 below :data:`FEWEST`

    def place(self, metric: str) -> int:
        return [each.name for each in self.metrics].index(metric)

    def value(self, metric: str) -> float | None:
        value = 100 * float(self.values[self.place(metric)])
        return None if np.isnan(value) else value


def estimate_metrics(metrics: Sequence[Metric], clustered: ClusteredSums) -> Estimate:
    """Return the values of metrics over rows, with each image's influence."""
    rows = [_estimate_metric(metric, clustered) for metric in metrics]
    values, influences, counted = zip(*rows, strict=True)
    influence = np.stack(influences, axis=-1)
    return Estimate(
        tuple(metrics),
        np.array(values),
        clustered.images,
        influence,
        np.array(counted, dtype=float),
    )


def _estimate_metric(metric: Metric, clustered: ClusteredSums) -> tuple[float, Array, float]:
    """Return a hundredth of a value, its influences, and how many images count for it."""
    rows = len(clustered.image)
    slicing = Texts(("",), np.zeros(rows, dtype=np.intp))
    if metric.over:
        slicing = clustered.slices.get(metric.over, Texts((), np.full(rows, -1)))
    nothing = np.zeros(len(clustered.images))
    part, whole = (
        np.broadcast_to(np.asarray(weighted(_sums(clustered, weights), weights), dtype=float), rows)
        for weights in (metric.part, metric.whole)
    )
    cells = _cells(metric.scale * part, whole, slicing, clustered.image)
    if not len(cells.whole):
        return np.nan if metric.empty is None else metric.empty / 100, nothing, 0.0
    # Divided last, so that the value is that of the score to the last digit.
    value = float(cells.ratios().mean()) / 100
    images = cells.alike() if metric.over else float((cells.whole > 0).sum())
    if images < FEWEST:
        return value, nothing, 0.0
    influence = add_up_at(cells.image, cells.influence() / 100, len(clustered.images))
    return value, influence, images


def _sums(clustered: ClusteredSums, names: Iterable[str]) -> dict[str, Array]:
    sums: dict[str, Array] = {}
    for name in names:
        of, kind, value = unsliced(name)
        if of not in clustered.sums:
            continue
        if not kind:
            sums[name] = clustered.sums[of]
        elif kind in clustered.slices and value in clustered.slices[kind].values:
            slicing = clustered.slices[kind]
            sums[name] = np.where(
                slicing.of == slicing.values.index(value), clustered.sums[of], 0.0
            )
    return sums


@dataclass(frozen=True, slots=True)
class _Cells:
    slice: Places  # Numbered without those that have no whole
    image: Places
    part: Array
    whole: Array

    def ratios(self) -> Array:
        """Return the ratio of each slice."""
        return add_up_at(self.slice, self.part) / add_up_at(self.slice, self.whole)

    def influence(self) -> Array:
        """Return by how much each cell moves the mean of the slices' ratios."""
        wholes, ratio = add_up_at(self.slice, self.whole), self.ratios()
        counted = add_up_at(self.slice, (self.whole > 0).astype(float))
        # n / (n - 1), as influences are around the value of the same images.
        scale = np.sqrt(_ratio(counted, np.maximum(counted - 1, 1)))
        moved = self.part - ratio[self.slice] * self.whole
        within = scale[self.slice] * moved / wholes[self.slice]
        # Without its only image a slice drops out of the mean.
        alone = (ratio - ratio.mean()) / max(1, len(ratio) - 1)
        lonely = (counted[self.slice] == 1) & (self.whole > 0)
        moves: Array = np.where(lonely, alone[self.slice], within / len(ratio))
        return moves

    def alike(self) -> float:
        """Return Kish's effective sample size: images of rare classes weigh more."""
        wholes = add_up_at(self.slice, self.whole)
        weights = add_up_at(self.image, self.whole / wholes[self.slice])
        return float(weights.sum() ** 2 / (weights**2).sum())


def _cells(part: Array, whole: Array, slicing: Texts, image: Places) -> _Cells:
    inside = slicing.of >= 0
    images = int(image.max(initial=0)) + 1
    keys, at = np.unique(slicing.of[inside] * images + image[inside], return_inverse=True)
    parts = add_up_at(at, part[inside], len(keys))
    wholes = add_up_at(at, whole[inside], len(keys))
    of = keys // images
    counts = add_up_at(of, wholes)[of] > 0
    slices = np.unique(of[counts], return_inverse=True)[1]
    return _Cells(slices, keys[counts] % images, parts[counts], wholes[counts])


def add_up_at(places: Places, values: Array, length: int = 0) -> Array:
    """Return the sum of the values at each place."""
    sums: Array = np.bincount(places, values, length).astype(float)
    return sums


def _ratio(part: Array, whole: Array) -> Array:
    ratios: Array = np.divide(
        part, whole, out=np.zeros(np.shape(part), dtype=float), where=whole != 0
    )
    return ratios


def mean(parts: Sequence[Estimate]) -> Estimate:
    """Average over datasets; images that they share count once, with their influence on each.

    The image count is the datasets' harmonic mean, as small ones vary most, or 0 if a dataset has
    too few. There is no mean where a dataset has no value.
    """
    images, influences = aligned(parts)
    counts = np.stack([part.counted for part in parts])
    enough = (counts > 0).all(axis=0)
    inverse = _ratio(np.ones_like(counts), counts).mean(axis=0)
    return Estimate(
        metrics=parts[0].metrics,
        values=np.mean([part.values for part in parts], axis=0),
        images=images,
        influence=influences[0] if len(parts) == 1 else np.mean(influences, axis=0),
        counted=np.where(enough, _ratio(np.ones_like(inverse), inverse), 0.0),
    )


def aligned(parts: Sequence[Estimate]) -> tuple[tuple[str, ...], list[Array]]:
    """Return the images of all parts, and each part's influences by them (0: lacking)."""
    first = parts[0]
    if all(part.images == first.images for part in parts):
        return first.images, [part.influence for part in parts]
    images = tuple(sorted({name for part in parts for name in part.images}))
    place = {name: at for at, name in enumerate(images)}
    influences = []
    for part in parts:
        influence = np.zeros((len(images), len(part.metrics)))
        influence[[place[name] for name in part.images]] = part.influence
        influences.append(influence)
    return images, influences
