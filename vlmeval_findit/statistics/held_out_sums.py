"""The value of a choice: what was chosen on one half of the images is scored on the other.

The best of many is optimistic on the images that it was chosen on. So each half of the images is
answered by what is best on the other half. No image takes part in a choice that it is scored by,
and every image counts once: values, intervals and paired tests are those of any run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..protocol import Array, Metric, SumKey, SumName, Texts, name_of
from .influences import ClusteredSums

Chosen = NDArray[np.bool_]  # Which rows, or images, are meant: a boolean each


@lru_cache(maxsize=64)
def second_half(images: tuple[str, ...]) -> Chosen:
    """Return which images are in the second half, by their names alone.

    So an image is in the same half for every model, format and dataset, whatever else is compared.
    The halves differ in size by chance.

    >>> second_half(("Pascal/a.jpg", "Pascal/b.jpg", "Pascal/c.jpg", "Pascal/d.jpg")).tolist()
    [True, False, True, True]
    """
    digests = (hashlib.sha256(f"half\n{name}".encode()).digest() for name in images)
    return np.array([digest[0] % 2 == 1 for digest in digests], dtype=bool)


def names_of_sums(metrics: Iterable[Metric]) -> tuple[set[str], set[str]]:
    """Return the names of the sums, and the kinds of slices, that metrics need."""
    names: set[str] = set()
    kinds: set[str] = set()
    for metric in metrics:
        keys = [*metric.part, *metric.whole]
        if metric.hits is not None:
            keys += [*metric.hits.part, *metric.hits.whole]
        names.update(map(name_of, keys))
        kinds.update(key.kind for key in keys if isinstance(key, SumKey))
        kinds |= {metric.over} - {""}
    return names, kinds


def totals_of(clustered: ClusteredSums, rows: Chosen) -> dict[SumName, float]:
    """Return the sums of some rows, and those of their slices."""
    totals: dict[SumName, float] = {}
    for name, values in clustered.sums.items():
        here = values[rows]
        totals[name] = float(here.sum())
        for kind, slicing in clustered.slices.items():
            totals |= _totals_of_slices(name, kind, slicing, here, rows)
    return totals


def _totals_of_slices(
    name: str, kind: str, slicing: Texts, values: Array, rows: Chosen
) -> dict[SumName, float]:
    place = slicing.place[rows]
    inside = place >= 0
    sums = np.bincount(place[inside], values[inside], len(slicing.values))
    return {
        SumKey(name, kind, value): float(total)
        for value, total in zip(slicing.values, sums, strict=True)
    }


def join_rows(
    parts: Sequence[tuple[ClusteredSums, Chosen]], images: tuple[str, ...]
) -> ClusteredSums:
    """Join some rows of each part to the rows of one run over ``images``, which hold them all."""
    place = {name: at for at, name in enumerate(images)}
    image = []
    for clustered, rows in parts:
        places = np.array([place.get(name, -1) for name in clustered.images], dtype=np.intp)
        image.append(places[clustered.image[rows]])
    names = dict.fromkeys(name for clustered, _ in parts for name in clustered.sums)
    kinds = dict.fromkeys(kind for clustered, _ in parts for kind in clustered.slices)
    return ClusteredSums(
        images=images,
        image=np.concatenate(image),
        sums={name: _joined_sums(parts, name) for name in names},
        slices={kind: _joined_slices(parts, kind) for kind in kinds},
    )


def _joined_sums(parts: Sequence[tuple[ClusteredSums, Chosen]], name: str) -> Array:
    columns = []
    for clustered, rows in parts:
        values = clustered.sums.get(name)
        columns.append(np.zeros(int(rows.sum())) if values is None else values[rows])
    return np.concatenate(columns)


def _joined_slices(parts: Sequence[tuple[ClusteredSums, Chosen]], kind: str) -> Texts:
    known = [clustered.slices.get(kind, Texts((), _no_place(rows))) for clustered, rows in parts]
    values = tuple(sorted({value for slicing in known for value in slicing.values}))
    place: Mapping[str, int] = {value: at for at, value in enumerate(values)}
    columns = []
    for slicing, (_, rows) in zip(known, parts, strict=True):
        # The last place is that of rows in no slice, which have the place -1.
        moved = np.array([*(place[value] for value in slicing.values), -1], dtype=np.intp)
        columns.append(moved[slicing.place[rows]])
    return Texts(values, np.concatenate(columns))


def _no_place(rows: Chosen) -> NDArray[np.intp]:
    return np.full(len(rows), -1, dtype=np.intp)
