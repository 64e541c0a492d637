"""What is known of a published set, and what its reader gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType

from ..own.annotations import Annotations
from ..own.asked import AskedSet, asked_of
from .shards import Embedded


@dataclass(frozen=True, slots=True)
class Counts:
    """What was counted of a set; None: not counted, or not known.

    ``boxes`` are annotated objects, without the ``left_out`` and the ``ignored`` (crowd regions);
    an object that several queries ask for is one.  ``queries`` are those with one label,
    ``negatives`` those of them with nothing to find.
    """

    images: int | None = None
    boxes: int | None = None
    queries: int | None = None
    classes: int | None = None
    negatives: int | None = None
    left_out: int | None = None
    ignored: int | None = None

    def __str__(self) -> str:
        """Those that are known.

        >>> str(Counts(images=5000, ignored=446))
        '5,000 images, 446 ignored'
        """
        known = {what: count for what, count in asdict(self).items() if count is not None}
        return ", ".join(f"{count:,} {what.replace('_', ' ')}" for what, count in known.items())


def unlike(found: Counts, published: Counts) -> list[str]:
    """Where what was found is not what was published, with both numbers.

    >>> unlike(Counts(images=4, boxes=9), Counts(images=5, queries=7))
    ['4 images, published are 5']
    """
    both = zip(asdict(found).items(), asdict(published).values(), strict=True)
    return [
        f"{is_:,} {what.replace('_', ' ')}, published are {should:,}"
        for (what, is_), should in both
        if None not in (is_, should) and is_ != should
    ]


@dataclass(frozen=True, slots=True)
class Content:
    """What one dataset of a set asks, not yet checked against its pictures.

    ``images`` is the folder that picture names are relative to, or says where pictures are packed.
    ``missing`` says what of the published files is not there.
    """

    asked: AskedSet
    images: Path | Embedded
    found: Counts
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """One dataset of a set: its name within it (empty where it is the only one), and its reader.

    ``read`` raises ``AnnotationError``, naming the file and the place in it.
    """

    name: str
    read: Callable[[], Content]


@dataclass(frozen=True, slots=True)
class Importer:
    """One row of the table.

    ``read`` finds the parts in a folder and reads none of them; it raises ``AnnotationError`` where
    there is none.  ``holds`` says what the folder must hold.  ``counts`` are of the whole,
    ``parts`` of its parts; ``datasets`` is how many it has.  What is not established is not there.
    """

    name: str
    title: str
    licence: str
    source: str
    holds: str
    read: Callable[[Path], Sequence[Part]]
    counts: Counts = Counts()
    parts: Mapping[str, Counts] = field(default_factory=lambda: MappingProxyType({}))
    datasets: int = 1

    def dataset(self, part: str, name: str | None = None) -> str:
        """What a part's dataset is called, where the set is called ``name`` (None: as the row)."""
        return "_".join(filter(None, (name or self.name, part)))

    def counts_of(self, part: str) -> Counts:
        """What is known of a part."""
        return self.parts.get(part, Counts()) if part else self.counts


# --- what readers give ----------------------------------------------------------------------------


def detection(annotations: Annotations, images: Path) -> Content:
    """Annotated objects, and the counts of all annotated pictures, those without objects too."""
    counted = [box for box in annotations.boxes if not box.ignored]
    found = Counts(
        images=len(annotations.images),
        boxes=len(counted),
        queries=len({(box.image, box.label) for box in counted}),
        classes=len(annotations.category_ids),
        left_out=annotations.left_out.total(),
        ignored=len(annotations.boxes) - len(counted),
    )
    return Content(asked_of(annotations), images, found)


def expressions(asked: AskedSet, images: Path | Embedded) -> Content:
    """Queries with their counts; a box that several of them ask for is one, by its place."""
    queries = asked.queries
    found = Counts(
        images=len({name for query in queries for name in query.images}),
        boxes=len({query.place(i) for query in queries for i in range(len(query.truth.boxes))}),
        queries=len(queries),
        negatives=sum(not query.truth.boxes for query in queries),
    )
    missing = images.shards.missing if isinstance(images, Embedded) else ()
    return Content(asked, images, found, missing)
