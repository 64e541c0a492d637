"""Samples: what every reader gives, one record a query, not yet checked against the images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from ..benchmarks.findit.findit_datasets import Family
from ..boxes.records import Ignored, Mask, Truth
from ..boxes.representation import Corners
from ..core.image_files import Size

if TYPE_CHECKING:
    from .published.shards import Packed


class AnnotationError(ValueError):
    """Annotations that cannot be used; the message names the file and the place in it."""


class Units(Enum):
    """What the numbers of boxes count."""

    PIXELS = "pixels"
    FRACTIONS = "fractions"


CROWD = "crowd regions"
DIFFICULT = "objects marked as difficult"


@dataclass(frozen=True, slots=True)
class Box:
    """One annotated object."""

    corners: Corners  # (x1, y1, x2, y2), in the units of the samples
    where: str = field(compare=False)  # The file and the place in it, for messages
    label: str = ""  # Only read where several labels are asked for
    frame: int = 0  # From 0; an image: 0
    ignored: str = ""  # Why it counts neither way, CROWD or DIFFICULT; empty: it counts
    mask: Mask | None = None  # Its pixels, where they are annotated


@dataclass(frozen=True, slots=True)
class Sample:
    """One query.  Without a box that counts there is nothing to find: it is a negative."""

    images: tuple[str, ...]  # The image, or the frames in order, relative to the image folder
    label: str | tuple[str, ...]  # What to find: a name or an expression; or several names
    boxes: tuple[Box, ...]  # In the order of frames
    where: str = field(compare=False)  # The file and the place in it, for messages
    support: tuple[str, ...] = ()  # Reference images
    caption: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)  # Slices: value by kind

    @property
    def labels(self) -> tuple[str, ...]:
        """What to find, one or several."""
        return (self.label,) if isinstance(self.label, str) else self.label

    @property
    def counted(self) -> tuple[Box, ...]:
        """The boxes that are not ignored."""
        return tuple(box for box in self.boxes if not box.ignored)

    @property
    def truth(self) -> Truth:
        """The boxes as a query has them."""
        several = not isinstance(self.label, str)
        masks = tuple(box.mask for box in self.counted)
        return Truth(
            tuple(box.corners for box in self.counted),
            tuple(box.frame for box in self.counted),
            tuple(box.label for box in self.counted) if several else (),
            masks if any(masks) else (),
            tuple(
                Ignored(
                    box.corners,
                    box.frame,
                    box.label if several else "",
                    box.ignored == CROWD,
                    box.mask,
                )
                for box in self.boxes
                if box.ignored
            ),
        )

    def by_label(self) -> list[Sample]:
        """Return one sample a label; those without boxes are negatives."""
        return [
            replace(self, label=label, boxes=tuple(b for b in self.boxes if b.label == label))
            for label in self.labels
        ]


@dataclass(frozen=True, slots=True)
class Counts:
    """What was counted of a set; None: not counted, or not known."""

    images: int | None = None
    boxes: int | None = None  # Annotated objects that are not ignored, each once
    queries: int | None = None  # Those with one label
    classes: int | None = None
    negatives: int | None = None  # Queries with nothing to find
    ignored: int | None = None

    def __str__(self) -> str:
        """Those that are known.

        >>> str(Counts(images=5000, ignored=446))
        '5,000 images, 446 ignored'
        """
        known = {what: count for what, count in asdict(self).items() if count is not None}
        return ", ".join(f"{count:,} {what}" for what, count in known.items())

    def unlike(self, published: Counts) -> list[str]:
        """Say with both numbers where this is not what was published.

        >>> Counts(images=4, boxes=9).unlike(Counts(images=5, queries=7))
        ['4 images, published are 5']
        """
        both = zip(asdict(self).items(), asdict(published).values(), strict=True)
        return [
            f"{found:,} {what}, published are {should:,}"
            for (what, found), should in both
            if None not in (found, should) and found != should
        ]


@dataclass(frozen=True, slots=True)
class Samples:
    """The samples of one family; those with several labels become the multi-label table."""

    source: Path  # What was read
    images: Path | Packed  # The folder of the images, or where they are packed
    family: Family
    queries: tuple[Sample, ...]
    units: Units = Units.PIXELS
    sizes: Mapping[str, Size | None] = field(default_factory=dict)  # As stated; None: not stated
    counts: Counts = Counts()
    left_out: Counter[str] = field(default_factory=Counter)  # On purpose, by the reason
    frames: int | None = None  # Every query is thinned to so many; None: all have one number
    # The numbers of a COCO file, by file name and by class, so that an export uses them again
    image_ids: Mapping[str, int] = field(default_factory=dict)
    category_ids: Mapping[str, int] = field(default_factory=dict)

    @property
    def missing(self) -> Sequence[str]:
        """What of the published files is not there."""
        return () if isinstance(self.images, Path) else self.images.shards.missing


def expressions(
    source: Path,
    images: Path | Packed,
    family: Family,
    queries: Sequence[Sample],
    sizes: Mapping[str, Size],
) -> Samples:
    """Return samples of a published set with their counts; a box of several of them is one."""
    counts = Counts(
        images=len({name for query in queries for name in query.images}),
        boxes=len({box.where for query in queries for box in query.counted}),
        queries=len(queries),
        negatives=sum(not query.counted for query in queries),
    )
    return Samples(source, images, family, tuple(queries), sizes=sizes, counts=counts)


def detection(
    source: Path,
    images: Path,
    sizes: Mapping[str, Size | None],
    objects: Sequence[tuple[str, Box]],
    *,
    backgrounds: Sequence[str] = (),
    left_out: Mapping[str, int] | None = None,
    units: Units = Units.PIXELS,
    image_ids: Mapping[str, int] | None = None,
    category_ids: Mapping[str, int] | None = None,
) -> Samples:
    """Return annotated objects as object detection: a query an image and label, and one an image.

    Args:
        source: what was read.
        images: the folder of the images.
        sizes: every annotated image, with its size where that is stated.
        objects: each with the image that it is in.
        backgrounds: the images of which it is said that nothing is in them: negatives.
        left_out: what the reader left out, counted by the reason.
        units: what boxes count.
        image_ids: numbers of a COCO file.
        category_ids: numbers of a COCO file.

    Raises:
        AnnotationError: there are no boxes.
    """
    by_label: dict[tuple[str, str], list[Box]] = {}
    by_image: dict[str, list[Box]] = {}
    for image, box in objects:
        if not box.ignored:
            by_label.setdefault((image, box.label), []).append(box)
            by_image.setdefault(image, []).append(box)
    if not by_label:
        but = " but those to ignore" if objects else ""
        raise AnnotationError(f"{source}: no boxes{but}")
    skipped = Counter(left_out or {})
    ignored: dict[str, list[Box]] = {}
    for image, box in objects:
        # Where nothing else of its label is to be found, nobody is asked for it.
        if box.ignored and (image, box.label) in by_label:
            ignored.setdefault(image, []).append(box)
        elif box.ignored:
            skipped[f"{box.ignored} in images with nothing else of their label"] += 1
    single = [
        _sample(image, label, boxes, (box for box in ignored.get(image, ()) if box.label == label))
        for (image, label), boxes in by_label.items()
    ]
    multi = [
        _sample(image, tuple(sorted({box.label for box in boxes})), boxes, ignored.get(image, ()))
        for image, boxes in by_image.items()
    ]
    labels = sorted({label for _, label in by_label})
    # Of one label each, in turn: so there is one such query in a hundred where one such image is.
    nothing = [
        Sample((image,), labels[at % len(labels)], (), f"{source}, {image}")
        for at, image in enumerate(backgrounds)
    ]
    counted = sum(map(len, by_label.values()))
    return Samples(
        source,
        images,
        Family.OBJDET,
        (*single, *nothing, *multi, *(replace(one, label=one.labels) for one in nothing)),
        units,
        sizes,
        Counts(
            images=len(sizes),
            boxes=counted,
            queries=len(by_label),
            classes=len(category_ids or {}),
            ignored=len(objects) - counted,
        ),
        skipped,
        image_ids=image_ids or {},
        category_ids=category_ids or {},
    )


def _sample(
    image: str, label: str | tuple[str, ...], boxes: Sequence[Box], ignored: Iterable[Box]
) -> Sample:
    return Sample((image,), label, (*boxes, *ignored), boxes[0].where)
