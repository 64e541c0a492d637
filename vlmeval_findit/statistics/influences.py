"""Rows of sums as arrays, and the influence of each image on a metric.

Queries of one image are not independent, so the image is the unit. An image's influence is what the
metric would lose without it; the variance is the sum of the squares (jackknife).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..protocol import (
    Array,
    Metric,
    RowTable,
    ScoredRow,
    SumKey,
    SumName,
    Texts,
    Weights,
    as_floats,
    divide,
    name_of,
    table_of,
    weighted,
)
from .share_intervals import SampledChanges

FEWEST_IMAGES = 4  # Images that an interval or a test needs; fewer would say next to nothing

_ROUNDING = 1e-6  # Sums so near to a whole number are counts

Indices = NDArray[np.intp]  # Array of indices of rows, images or classes

NumberT = TypeVar("NumberT", bound="np.generic[Any]")


# --- sums -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClusteredSums:
    """Rows as arrays: sums by name, an entry per row (per image, once added up). Parts are rows."""

    images: tuple[str, ...]  # ``<image folder's key>/<name>``, alphabetical
    image: Indices  # Index of each row's image
    sums: Mapping[str, Array]
    slices: Mapping[str, Texts]
    query: Indices | None = None  # Index of each row's query; None: not known

    def of_queries(self, queries: Indices) -> NDArray[np.bool_]:
        """Return which rows are of some queries."""
        assert self.query is not None, "sums of scored rows know their queries"
        mask: NDArray[np.bool_] = np.isin(self.query, queries)
        return mask


def clustered_sums(rows: Sequence[ScoredRow], images: str) -> ClusteredSums:
    """Convert rows to arrays; ``images`` is the key of their image folder."""
    if not isinstance(rows, RowTable) or rows.parts is not None:
        parts = [part for row in rows for part in row.part_rows()]
        rows = table_of([*(replace(row, parts={}) if row.parts else row for row in rows), *parts])
    return ClusteredSums(
        images=_image_names(rows.source.values, images),
        image=rows.source.place.astype(np.intp),
        sums={name: as_floats(column) for name, column in rows.sums.items()},
        slices={
            kind: Texts(column.values, column.place.astype(np.intp))
            for kind, column in rows.slices.items()
        },
        query=rows.indices.astype(np.intp),
    )


@lru_cache(maxsize=64)
def _image_names(names: tuple[str, ...], images: str) -> tuple[str, ...]:
    """Share one tuple between all runs over the same images."""
    return tuple(f"{images}/{name}" for name in names)


# --- values and influences ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hits:
    """The share of hits of each metric, and its variance."""

    share: Array  # 0 to 1; NaN: the metric's part counts hits
    variance: Array


@dataclass(frozen=True)
class Estimate:
    """Metrics of a dataset or their mean over several, and what each image does to them.

    An image's weight is its share of a metric's whole, so the weights of a metric add up to 1. They
    are 0, like the influences, where too few images count.
    """

    metrics: tuple[Metric, ...]
    values: Array  # Hundredths of the metrics (of a share: the ratio); NaN: none
    images: tuple[str, ...]
    influence: Array  # (images, metrics)
    weight: Array  # (images, metrics)
    part: Array  # (images, metrics): what each image, as it was scored, adds to the value
    queries: Array  # Effective number of queries of each metric
    datasets: tuple[Estimate, ...] = ()  # Those of a mean
    # Of values that random rows corrected (None: each row counts as it was scored)
    changes: SampledChanges | None = None
    hits: Hits | None = None  # None: no metric is graded

    # These are asked for in every comparison, and a run may be in hundreds.
    @cached_property
    def counted(self) -> Array:
        """The effective number of images of each metric; 0: too few."""
        return effective_number(self.weight)

    @cached_property
    def counted_images(self) -> Array:
        """The number of images that each metric counts; 0: too few."""
        number: Array = np.count_nonzero(self.weight, axis=0)
        return number

    @cached_property
    def variance(self) -> Array:
        """The variance of each metric."""
        variance: Array = (self.influence**2).sum(axis=0)
        return variance

    @property
    def all_hits(self) -> Hits:
        """The hits of every metric: its own value and variance where its part counts hits."""
        if self.hits is None:
            return Hits(self.values, self.variance)
        counts = np.isnan(self.hits.share)
        return Hits(
            np.where(counts, self.values, self.hits.share),
            np.where(counts, self.variance, self.hits.variance),
        )

    def place(self, metric: str) -> int:
        return [each.name for each in self.metrics].index(metric)

    def value(self, metric: str) -> float | None:
        value = 100 * float(self.values[self.place(metric)])
        return None if np.isnan(value) else value


def effective_number(weights: Array) -> Array:
    """Return Kish's effective sample size of weights along the first axis; 0 without any.

    >>> effective_number(np.array([[1.0, 148.0], [1.0, 1.0], [1.0, 1.0]])).round(2)
    array([3.  , 1.03])
    """
    return effective_number_of(weights.sum(axis=0), (weights**2).sum(axis=0))


def effective_number_of(total: Array, squares: Array) -> Array:
    """Return Kish's number of weights, given their sum and that of their squares."""
    # Rounded, as four equal images must not be fewer than four.
    return np.round(divide(total**2, squares), 9)


class _MetricEstimate(NamedTuple):
    """One metric's part of an :class:`Estimate`."""

    value: float
    influence: Array
    weight: Array
    part: Array
    queries: float
    hits: float = np.nan  # Their share; NaN: the part counts hits
    hit_variance: float = np.nan


def estimate_metrics(metrics: Sequence[Metric], clustered: ClusteredSums) -> Estimate:
    """Return the values of metrics over rows, with each image's influence."""
    # Slices are grouped once, not once a metric: most metrics are over all rows.
    kinds = {metric.over for metric in metrics}
    entries_of = {kind: images_of_slices(kind, clustered) for kind in kinds}
    each = [_estimate_metric(metric, clustered, entries_of[metric.over]) for metric in metrics]
    return Estimate(
        metrics=tuple(metrics),
        values=np.array([metric.value for metric in each]),
        images=clustered.images,
        influence=np.stack([metric.influence for metric in each], axis=-1),
        weight=np.stack([metric.weight for metric in each], axis=-1),
        part=np.stack([metric.part for metric in each], axis=-1),
        queries=np.array([metric.queries for metric in each]),
        hits=_hits_of(each),
    )


def _estimate_metric(
    metric: Metric, clustered: ClusteredSums, entries: ImagesOfSlices
) -> _MetricEstimate:
    sums = sums_by_slice(metric, clustered, entries)
    no_image = np.zeros(len(clustered.images))
    if not len(sums.wholes):
        value = np.nan if metric.empty is None else metric.empty / 100
        return _MetricEstimate(value, no_image, no_image, no_image, 0.0)
    # Divided last, so that the value is that of the score to the last digit.
    value = float(sums.ratios().mean()) / 100
    weight = add_up_at(sums.image, sums.weights(), len(no_image))
    # Of a mean over classes, those of rare classes alone may decide.
    images = effective_number(weight) if metric.over else (weight > 0).sum()
    if images < FEWEST_IMAGES:
        return _MetricEstimate(value, no_image, no_image, no_image, 0.0)
    influence = add_up_at(sums.image, sums.influences() / 100, len(no_image))
    part = add_up_at(sums.image, sums.contributions() / 100, len(no_image))
    queries = float(effective_number(_weigh_rows(metric.whole, clustered)))
    hits = hits_by_slice(metric, clustered, entries, sums)
    if hits is sums:
        return _MetricEstimate(value, influence, weight, part, queries)
    share = float(hits.ratios().mean()) / 100
    influence_of_hits = add_up_at(hits.image, hits.influences() / 100, len(no_image))
    variance = float((influence_of_hits**2).sum())
    return _MetricEstimate(value, influence, weight, part, queries, share, variance)


def _hits_of(metrics: Sequence[_MetricEstimate]) -> Hits | None:
    share = np.array([metric.hits for metric in metrics])
    if np.isnan(share).all():
        return None
    return Hits(share, np.array([metric.hit_variance for metric in metrics]))


class ImagesOfSlices(NamedTuple):
    """An entry for each image of each slice."""

    slice: Indices
    image: Indices
    inside: NDArray[np.bool_] | None  # Of each row: whether it is in a slice; None: all are
    of_row: Indices  # The entry of each row inside


def images_of_slices(kind: str, clustered: ClusteredSums) -> ImagesOfSlices:
    """Return the images of the slices of a kind; "": of one slice that has all rows."""
    slicing = _slicing(kind, clustered)
    in_a_slice = slicing.place >= 0
    inside = None if in_a_slice.all() else in_a_slice
    images = int(clustered.image.max(initial=0)) + 1
    # One number for a slice and an image.
    pair_of_row = _inside(slicing.place, inside) * images + _inside(clustered.image, inside)
    pairs, entry_of_row = np.unique(pair_of_row, return_inverse=True)
    return ImagesOfSlices(pairs // images, pairs % images, inside, entry_of_row)


def _inside(rows: NDArray[NumberT], inside: NDArray[np.bool_] | None) -> NDArray[NumberT]:
    """Return the entries of the rows in a slice, without copying where all are."""
    return rows if inside is None else rows[inside]


def _slicing(kind: str, clustered: ClusteredSums) -> Texts:
    rows = len(clustered.image)
    if not kind:
        return Texts(("",), np.zeros(rows, dtype=np.intp))
    in_no_slice = Texts((), np.full(rows, -1))
    return clustered.slices.get(kind, in_no_slice)


def _weigh_rows(weights: Weights, clustered: ClusteredSums) -> Array:
    """Return the weighted sum of each row."""
    total = weighted(_sums(clustered, weights), weights)
    if isinstance(total, np.ndarray):
        return total.astype(float, copy=False)
    # Missing sums are the number 0.
    return np.full(len(clustered.image), float(total))


def _sums(clustered: ClusteredSums, keys: Iterable[SumName]) -> dict[SumName, Array]:
    """Return the sums of keys by row; those of a slice are 0 in other rows."""
    sums: dict[SumName, Array] = {}
    for key in keys:
        values = clustered.sums.get(name_of(key))
        if values is None:
            continue
        if isinstance(key, SumKey):
            slicing = clustered.slices.get(key.kind)
            if slicing is None or key.value not in slicing.values:
                continue
            inside = slicing.place == slicing.values.index(key.value)
            values = np.where(inside, values, 0.0)
        sums[key] = values
    return sums


@dataclass(frozen=True, slots=True)
class SliceSums:
    """The part and the whole of a metric by slice, and an entry for each image of each slice."""

    number: Indices  # Of each slice that has a whole: its place in all values of its kind
    parts: Array  # Of each of these slices
    wholes: Array
    slice: Indices  # Of each entry: the place of its slice in the three above
    image: Indices
    part: Array
    whole: Array

    def ratios(self) -> Array:
        """Return the ratio of each slice; their mean is the metric."""
        return self.parts / self.wholes

    def shares(self) -> Array:
        """Return the share of each entry in its slice's whole."""
        share: Array = self.whole / self._by_entry(self.wholes)
        return share

    def weights(self) -> Array:
        """Return the weight of each entry in the mean over slices; slices weigh the same."""
        return self.shares() / len(self.wholes)

    def contributions(self) -> Array:
        """Return what each entry adds to the mean of the slices' ratios."""
        contribution: Array = self.part / self._by_entry(self.wholes) / len(self.wholes)
        return contribution

    def counts(self) -> Array:
        """Return 1 for entries that add to the whole of their slice, 0 for others."""
        return (self.whole > 0).astype(float)

    def of_slices(self, values: Array) -> Array:
        """Return the sum of the entries' values in each slice."""
        return add_up_at(self.slice, values)

    def losses(self) -> Array:
        """Return what the ratio of its slice would lose without each entry."""
        return self._losses(self.ratios(), self._images())

    def _losses(self, ratios: Array, images: Array) -> Array:
        other_parts = self._by_entry(self.parts) - self.part
        other_wholes = self._by_entry(self.wholes) - self.whole
        loss = self._by_entry(ratios) - divide(other_parts, other_wholes)
        # The jackknife's factor, as the others' ratio is around the value of the same images.
        loss *= self._by_entry(np.sqrt(1 - 1 / images))
        return loss

    def influences(self) -> Array:
        """Return what the mean of the slices' ratios would lose without each entry."""
        ratios = self.ratios()
        images = self._images()
        loss = self._losses(ratios, images) / len(ratios)
        # Without its only image a slice drops out of the mean.
        is_only_image = (self.whole > 0) & self._by_entry(images == 1)
        if not is_only_image.any():
            return loss
        loss_of_slice = (ratios - ratios.mean()) / max(1, len(ratios) - 1)
        influence: Array = np.where(is_only_image, self._by_entry(loss_of_slice), loss)
        return influence

    def _images(self) -> Array:
        """Return the number of images that each slice counts."""
        return self.of_slices(self.counts())

    def _by_entry(self, of_slices: NDArray[NumberT]) -> NDArray[NumberT]:
        """Return each entry's value of its slice; of a single slice, which all have, one value."""
        return of_slices if len(of_slices) == 1 else of_slices[self.slice]


def join_slices(of_metrics: Sequence[SliceSums]) -> SliceSums:
    """Return the slices of several metrics as if they were of one: each step is taken once."""
    begins = np.cumsum([0, *(len(sums.wholes) for sums in of_metrics)])
    slices = [sums.slice + begin for sums, begin in zip(of_metrics, begins, strict=False)]
    return SliceSums(
        number=np.concatenate([sums.number for sums in of_metrics]),
        parts=np.concatenate([sums.parts for sums in of_metrics]),
        wholes=np.concatenate([sums.wholes for sums in of_metrics]),
        slice=np.concatenate(slices),
        image=np.concatenate([sums.image for sums in of_metrics]),
        part=np.concatenate([sums.part for sums in of_metrics]),
        whole=np.concatenate([sums.whole for sums in of_metrics]),
    )


def sums_by_slice(metric: Metric, clustered: ClusteredSums, entries: ImagesOfSlices) -> SliceSums:
    """Add up rows by slice and image; rows in no slice, and slices without a whole, are left out.

    ``entries`` are the images of the slices, of :func:`images_of_slices`.
    """
    part = metric.scale * _weigh_rows(metric.part, clustered)
    return _add_up(part, _weigh_rows(metric.whole, clustered), entries)


def hits_by_slice(
    metric: Metric, clustered: ClusteredSums, entries: ImagesOfSlices, sums: SliceSums
) -> SliceSums:
    """Return the hits of a metric by slice and image: its own sums where its part counts hits.

    A graded part is one with fractions in a slice. If the metric does not say what its hits are, a
    row without any part is a miss. ``sums`` are those of the metric.
    """
    if not metric.share:
        return sums
    if metric.hits is not None:
        return sums_by_slice(metric.of_hits(metric.hits), clustered, entries)
    parts = sums.part / metric.scale
    has_fraction = np.abs(parts - np.round(parts)) > _ROUNDING
    if not has_fraction.any():
        return sums
    whole = _weigh_rows(metric.whole, clustered)
    has_part = _weigh_rows(metric.part, clustered) > 0
    hits_of_rows = _add_up(metric.scale * np.where(has_part, whole, 0.0), whole, entries)
    is_graded = sums.of_slices(has_fraction.astype(float)) > 0
    return replace(
        sums,
        parts=np.where(is_graded, hits_of_rows.parts, sums.parts),
        part=np.where(is_graded[sums.slice], hits_of_rows.part, sums.part),
    )


def _add_up(part: Array, whole: Array, entries: ImagesOfSlices) -> SliceSums:
    """Add up the part and the whole of each row by slice and image."""
    parts = add_up_at(entries.of_row, _inside(part, entries.inside), len(entries.slice))
    wholes = add_up_at(entries.of_row, _inside(whole, entries.inside), len(entries.slice))
    parts_of_all = add_up_at(entries.slice, parts)
    wholes_of_all = add_up_at(entries.slice, wholes)
    has_whole = wholes_of_all > 0
    if has_whole.all():  # Of most metrics: nothing is copied
        number = np.arange(len(has_whole), dtype=np.intp)
        return SliceSums(
            number, parts_of_all, wholes_of_all, entries.slice, entries.image, parts, wholes
        )
    with_whole = has_whole[entries.slice]
    return SliceSums(
        number=np.flatnonzero(has_whole),
        parts=parts_of_all[has_whole],
        wholes=wholes_of_all[has_whole],
        slice=(np.cumsum(has_whole) - 1)[entries.slice[with_whole]],
        image=entries.image[with_whole],
        part=parts[with_whole],
        whole=wholes[with_whole],
    )


def add_up_at(places: Indices, values: Array, length: int = 0) -> Array:
    """Return the sum of the values at each place."""
    sums: Array = np.bincount(places, values, length).astype(float)
    return sums


def mean_of_estimates(parts: Sequence[Estimate]) -> Estimate:
    """Average over datasets; images that they share count once, with their influence on each.

    Where a dataset has no value there is no mean, and where one has too few images the mean has.
    """
    images, influences = aligned(parts)
    _, weights = aligned(parts, lambda part: part.weight)
    _, contributions = aligned(parts, lambda part: part.part)
    enough = np.all([part.counted > 0 for part in parts], axis=0)
    return Estimate(
        metrics=parts[0].metrics,
        values=np.mean([part.values for part in parts], axis=0),
        images=images,
        influence=influences[0] if len(parts) == 1 else np.mean(influences, axis=0),
        weight=np.mean(weights, axis=0) * enough,
        part=np.mean(contributions, axis=0),
        queries=np.sum([part.queries for part in parts], axis=0) * enough,
        datasets=tuple(parts) if len(parts) > 1 else (),
        hits=parts[0].hits if len(parts) == 1 else None,  # Else those of the datasets
    )


def aligned(
    parts: Sequence[Estimate], numbers: Callable[[Estimate], Array] = lambda part: part.influence
) -> tuple[tuple[str, ...], list[Array]]:
    """Return the images of all parts, and each part's influences by them (0: lacking).

    ``numbers`` may choose other numbers by image, as weights.
    """
    first = parts[0]
    if all(part.images == first.images for part in parts):
        return first.images, [numbers(part) for part in parts]
    images, places = _all_images(tuple(part.images for part in parts))
    by_image = []
    for part, places_of_part in zip(parts, places, strict=True):
        known = numbers(part)
        filled = np.zeros((len(images), *known.shape[1:]))
        filled[places_of_part] = known
        by_image.append(filled)
    return images, by_image


# All models of a board are over the same datasets.
@lru_cache(maxsize=16)
def _all_images(
    names_by_part: tuple[tuple[str, ...], ...],
) -> tuple[tuple[str, ...], list[Indices]]:
    """Return all images in order, and where those of each part are among them."""
    images = tuple(sorted({name for names in names_by_part for name in names}))
    place = {name: at for at, name in enumerate(images)}
    places = [np.array([place[name] for name in names], dtype=np.intp) for names in names_by_part]
    return images, places
