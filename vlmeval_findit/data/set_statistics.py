"""Statistics of the set of a table: images, objects, their sizes, and words."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..benchmarks.findit import Family, FindItQuery, FindItVariant
from ..protocol import AnyDataset

# Ref-L4's classes of size: an object is as large as the root of its box's area, in pixels
SMALL_BELOW, LARGE_ABOVE = 128, 256


@dataclass(frozen=True, slots=True)
class Spread:
    """A number of many things; there is at least one."""

    values: Sequence[float]

    @property
    def mean(self) -> float:
        return math.fsum(self.values) / len(self.values)

    def share(self, fits: Callable[[float], bool]) -> float:
        """Return the share of values that fit, from 0 to 1."""
        return sum(map(fits, self.values)) / len(self.values)


@dataclass(frozen=True, slots=True)
class SetStatistics:
    """What a set holds. An object counts once, however many queries are about it."""

    name: str  # Of the table
    queries: int
    images: int
    objects: int
    ignored: int  # Objects and regions in which no answer is wrong
    without_object: int  # Queries that no object answers
    classes: int  # Distinct labels; 0 where queries describe or show their object
    vocabulary: int  # Distinct words of queries, without case and punctuation
    words: Spread | None  # In a query; None: queries have no text
    objects_an_image: Spread | None
    sizes: Spread | None  # Of objects: root of the area, in pixels
    shares: Spread | None  # Of objects: the part of their image, from 0 to 1
    widths: Spread | None  # Of images
    heights: Spread | None

    def as_json(self) -> dict[str, Any]:
        """Return the numbers of ``data stats``, None where there are none."""
        sizes = self.sizes
        values: dict[str, Any] = {
            "queries": self.queries,
            "images": self.images,
            "objects": self.objects,
            "ignored": self.ignored,
            "queries without an object": self.without_object,
            "classes": self.classes,
            "vocabulary": self.vocabulary,
            "small objects": sizes and sizes.share(lambda size: size < SMALL_BELOW),
            "medium objects": sizes
            and sizes.share(lambda size: SMALL_BELOW <= size <= LARGE_ABOVE),
            "large objects": sizes and sizes.share(lambda size: size > LARGE_ABOVE),
        }
        for name, spread in self.spreads.items():
            values[name] = spread and {
                "mean": spread.mean,
                "least": min(spread.values),
                "most": max(spread.values),
            }
        return values

    @property
    def spreads(self) -> Mapping[str, Spread | None]:
        """Return what varies, by its name with its unit."""
        return {
            "words a query": self.words,
            "objects an image": self.objects_an_image,
            "object size (px)": self.sizes,
            "object / image area": self.shares,
            "image width (px)": self.widths,
            "image height (px)": self.heights,
        }


def statistics_of(dataset: AnyDataset) -> SetStatistics:
    """Return the statistics of a loaded set. Frames of videos are images."""
    variant = dataset.variant
    queries: list[Any] = list(dataset.queries.values())
    sizes: dict[str, tuple[int, int]] = {}
    objects: dict[tuple[object, ...], tuple[str, float]] = {}
    ignored: set[tuple[object, ...]] = set()
    words: list[list[str]] = []
    classes: set[str] = set()
    names_class = _names_class(variant)
    for query in queries:
        for image in query.images:
            sizes[image] = (query.width, query.height)
        words.append(_words(query.label))
        if isinstance(query, FindItQuery):
            labels = query.truth.labels or (query.label,) * len(query.truth.boxes)
            if names_class:
                classes.update(_asked_labels(query, variant))
            for box, frame, label in zip(
                query.truth.boxes, query.truth.frames, labels, strict=True
            ):
                image = query.images[frame]
                # Two expressions are about one object; two labels of one box are two objects.
                key = (image, box, label if names_class else "")
                objects[key] = image, (box[2] - box[0]) * (box[3] - box[1])
            ignored |= {(query.images[each.frame], each.box) for each in query.truth.ignored}
    counts = Counter(image for image, _ in objects.values())
    known = {image: size for image, size in sizes.items() if all(size)}
    areas = {image: width * height for image, (width, height) in known.items()}
    return SetStatistics(
        name=variant.table,
        queries=len(queries),
        images=len(sizes),
        objects=len(objects),
        ignored=len(ignored),
        without_object=sum(
            isinstance(query, FindItQuery) and not query.truth.boxes for query in queries
        ),
        classes=len(classes),
        vocabulary=len({word for each in words for word in each}),
        words=_spread(len(each) for each in words if each),
        objects_an_image=_spread(counts[image] for image in sizes) if objects else None,
        sizes=_spread(math.sqrt(max(area, 0.0)) for _, area in objects.values()),
        shares=_spread(area / areas[image] for image, area in objects.values() if image in areas),
        widths=_spread(width for width, _ in known.values()),
        heights=_spread(height for _, height in known.values()),
    )


def _names_class(variant: object) -> bool:
    families = (Family.OBJDET, Family.OBJDET_VIDEO)
    return isinstance(variant, FindItVariant) and variant.data.family in families


def _asked_labels(query: FindItQuery, variant: Any) -> Sequence[str]:
    if not variant.multilabel:
        return [query.label]
    return [label.strip() for label in query.label.split(",")]


def _words(text: str) -> list[str]:
    """Return the words of a text, in small letters and without punctuation around them.

    >>> _words("The man's red-ish hat, left.")
    ['the', "man's", 'red-ish', 'hat', 'left']
    """
    stripped = (re.sub(r"^\W+|\W+$", "", word) for word in text.lower().split())
    return [word for word in stripped if word]


def _spread(values: Iterable[float]) -> Spread | None:
    listed = list(values)
    return Spread(listed) if listed else None
