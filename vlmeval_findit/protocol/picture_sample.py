"""A sample of a dataset: whole pictures, drawn by their names.

Queries of a picture come together: a picture is one piece of evidence, and costs most when it is
sent twice. The order of pictures depends on their names and a seed only, so it is the same for
every model, for every format and on every machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .dataset_variant import Query

Pictures = tuple[str, ...]  # The images of one query


def picture_places(
    queries: Mapping[int, Query], rows: Iterable[int], seed: int = 0
) -> Mapping[Pictures, int]:
    """Return the place of each picture of some rows in the order of a seed, from 0."""
    pictures = {queries[row].images for row in rows}
    order = sorted(pictures, key=lambda names: (_drawn(names, seed), names))
    return {names: place for place, names in enumerate(order)}


def _drawn(names: Pictures, seed: int) -> str:
    return hashlib.sha256("\n".join((str(seed), *names)).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class PictureSample:
    """The first pictures of a seed's order that have so many queries; the last one is whole."""

    queries: int  # At least, where the dataset has so many
    seed: int = 0
    pictures: int | None = None  # At most

    def draw(self, queries: Mapping[int, Query], rows: Sequence[int]) -> tuple[int, ...]:
        """Return those of some rows that are in the sample, in the same order.

        A smaller sample of the same seed is part of a larger one.
        """
        places = picture_places(queries, rows, self.seed)
        of_picture = dict.fromkeys(places.values(), 0)
        for row in rows:
            of_picture[places[queries[row].images]] += 1
        count = 0
        drawn = 0
        while drawn < len(of_picture) and count < self.queries and drawn != self.pictures:
            count += of_picture[drawn]
            drawn += 1
        return tuple(row for row in rows if places[queries[row].images] < drawn)
