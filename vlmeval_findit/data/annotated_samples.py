"""Samples: what every reader returns, one record a query, not yet compared with the images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from itertools import chain
from pathlib import Path
from typing import Protocol

from msgspec import Struct, structs

from ..benchmarks.findit import Family
from ..boxes import Corners, Ignored, Mask, Truth
from ..storage import Size
from .ledger import Ledger


class AnnotationError(ValueError):
    """Annotations that cannot be used; the message names the file and the place in it."""


class PackedImages(Protocol):
    """Images inside other files."""

    @property
    def missing(self) -> Sequence[str]:
        """Messages about files that are not there."""

    def unpack(self, folder: Path) -> None:
        """Write every image as a file, or raise an AnnotationError for an unsuitable name."""


class Units(Enum):
    """The units of boxes: pixels, or parts of the image's width and height."""

    PIXELS = "pixels"
    FRACTIONS = "fractions"
    PERCENT = "percent"
    THOUSANDTHS = "thousandths"

    @property
    def scale(self) -> float:
        """The number that the image's right or lower edge has; of pixels it is its size."""
        return {"fractions": 1, "percent": 100, "thousandths": 1000}[self.value]


class BoxForm(Enum):
    """What the four numbers of a box are."""

    CORNERS = "corners"  # [x1, y1, x2, y2]
    SIDES = "sides"  # [x, y, width, height]

    def corners(self, numbers: Corners) -> Corners:
        """Return four numbers of this form as (x1, y1, x2, y2).

        >>> BoxForm.SIDES.corners((10, 20, 30, 40))
        (10, 20, 40, 60)
        """
        x, y, a, b = numbers
        return numbers if self is BoxForm.CORNERS else (x, y, x + a, y + b)

    def numbers(self, corners: Corners) -> Corners:
        """Return (x1, y1, x2, y2) as four numbers of this form."""
        x1, y1, x2, y2 = corners
        return corners if self is BoxForm.CORNERS else (x1, y1, x2 - x1, y2 - y1)


# Why an object is ignored
CROWD = "crowd regions"
# Why an object is ignored: VOC's ``difficult`` and its like
DIFFICULT = "objects marked as difficult"
IGNORED = "objects marked as ignored"  # Why an object is ignored: its annotation says so itself
REGION = "regions where nothing counts"  # Of a class that is no object: KITTI's DontCare

# An answer lies in these by the share of the answer's area; it need not fill them
_COMPARED_BY_SHARE = (CROWD, REGION)


# Records of boxes and queries are msgspec's: a set has very many, and a dataclass takes many times
# as long to make.


class AnnotatedBox(Struct, frozen=True, gc=False):
    """One annotated object."""

    corners: Corners  # (x1, y1, x2, y2), in the units of the samples
    where: str  # The file and the place in it, for messages
    label: str = ""  # Only used where a query has several labels
    frame: int = 0  # Counted from 0; 0 for an image
    ignored: str = ""  # CROWD, DIFFICULT, IGNORED or REGION; empty: it counts
    mask: Mask | None = None


@dataclass(frozen=True, slots=True)
class BoxlessObject:
    """An annotated object that is there, and has no box that can be used."""

    image: str
    label: str
    why: str  # In a message: "is a point, which has no box"
    where: str  # The file and the place in it, for messages


class Sample(Struct, frozen=True, gc=False):
    """One query.  Without a box that counts it is a negative: there is nothing to find."""

    images: tuple[str, ...]  # The image, or the frames in order, relative to the image folder
    label: str | tuple[str, ...]  # What to find: a name or an expression; or several names
    boxes: tuple[AnnotatedBox, ...]  # In the order of frames
    where: str  # The file and the place in it, for messages
    support: tuple[str, ...] = ()  # Reference images
    caption: str = ""
    tags: Mapping[str, str] = {}  # Slices: value by kind

    @property
    def labels(self) -> tuple[str, ...]:
        """What to find, as a tuple."""
        return (self.label,) if isinstance(self.label, str) else self.label

    @property
    def counted(self) -> tuple[AnnotatedBox, ...]:
        """The boxes that are not ignored."""
        return tuple([box for box in self.boxes if not box.ignored])

    @property
    def truth(self) -> Truth:
        """The boxes as the truth of a query."""
        has_labels = not isinstance(self.label, str)
        counted = self.counted
        if not counted:
            return Truth((), (), ignored=self._ignored(has_labels))
        # Columns: AnnotatedBox has its fields in this order.
        corners, _, labels, frames, _, masks = zip(*map(structs.astuple, counted), strict=True)
        return Truth(
            corners,
            frames,
            labels if has_labels else (),
            masks if any(masks) else (),
            self._ignored(has_labels) if len(counted) < len(self.boxes) else (),
        )

    def _ignored(self, has_labels: bool) -> tuple[Ignored, ...]:
        return tuple(
            Ignored(
                box=box.corners,
                frame=box.frame,
                label=box.label if has_labels else "",
                crowd=box.ignored in _COMPARED_BY_SHARE,
                mask=box.mask,
            )
            for box in self.boxes
            if box.ignored
        )

    def by_label(self) -> list[Sample]:
        """Return a sample for each label; a sample without boxes is a negative."""
        boxes: dict[str, list[AnnotatedBox]] = {label: [] for label in self.labels}
        for box in self.boxes:
            if box.label in boxes:
                boxes[box.label].append(box)
        return [
            structs.replace(self, label=label, boxes=tuple(of_label))
            for label, of_label in boxes.items()
        ]


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of a set; None: not counted, or not known."""

    images: int | None = None
    boxes: int | None = None  # Annotated objects that are not ignored, each once
    queries: int | None = None  # With one label
    classes: int | None = None
    negatives: int | None = None  # Queries with nothing to find
    ignored: int | None = None  # Annotated objects

    def __str__(self) -> str:
        """List the known counts.

        >>> str(Counts(images=5000, ignored=446))
        '5,000 images, 446 ignored'
        """
        known = {what: count for what, count in asdict(self).items() if count is not None}
        return ", ".join(f"{count:,} {what}" for what, count in known.items())

    def differences(self, published: Counts) -> list[str]:
        """Say where both counts are known and differ.

        >>> Counts(images=4, boxes=9).differences(Counts(images=5, queries=7))
        ['4 images, published are 5']
        """
        both = zip(asdict(self).items(), asdict(published).values(), strict=True)
        return [
            f"{here:,} {what}, published are {there:,}"
            for (what, here), there in both
            if None not in (here, there) and here != there
        ]


@dataclass(frozen=True, slots=True)
class RenamedClass:
    """A class of a COCO file that is called otherwise in the set, or is joined with another."""

    name: str  # In the file
    id: int | str
    label: str  # In the set


@dataclass(frozen=True, slots=True)
class Samples:
    """The samples of a family; samples with several labels become the multi-label table."""

    source: Path  # What was read
    images: Path | PackedImages  # The folder of the images, or where they are packed
    family: Family
    queries: tuple[Sample, ...]
    units: Units = Units.PIXELS
    units_stated: bool = False  # By the user: they are not questioned
    form: BoxForm | None = None  # Of numbers without names; None: it is certain
    sizes: Mapping[str, Size | None] = field(default_factory=dict)  # As stated; None: not stated
    counts: Counts = Counts()
    ledger: Ledger = field(default_factory=Ledger)  # What became of all that was given
    frames: int | None = None  # Queries are thinned to so many; None: all have the same number
    # Ids of a COCO file, by file name and by class, for an export
    image_ids: Mapping[str, int | str] = field(default_factory=dict)
    category_ids: Mapping[str, int | str] = field(default_factory=dict)
    renamed_classes: tuple[RenamedClass, ...] = ()
    # Areas that a COCO file states, by image, label and corners, where they are not the box's
    areas: Mapping[tuple[str, str, Corners], float] = field(default_factory=dict)
    # How often objects stand in the file that stand there several times; queries have them once
    repeats: Mapping[tuple[str, str, Corners], int] = field(default_factory=dict)
    boxless: tuple[BoxlessObject, ...] = ()  # Objects that queries may be about, without a box
    all_classes: bool = False  # Whether every image is to be asked about every class

    @property
    def missing(self) -> Sequence[str]:
        """Messages about published files that are not there."""
        return () if isinstance(self.images, Path) else self.images.missing


def expression_samples(
    source: Path,
    images: Path | PackedImages,
    family: Family,
    queries: Sequence[Sample],
    sizes: Mapping[str, Size],
) -> Samples:
    """Return samples of expressions with their counts; a box of several queries counts once."""
    boxes = chain.from_iterable(query.counted for query in queries)
    counts = Counts(
        images=len(set(chain.from_iterable(query.images for query in queries))),
        boxes=len({box.where for box in boxes}),
        queries=len(queries),
        negatives=sum(not query.counted for query in queries),
    )
    return Samples(source, images, family, tuple(queries), sizes=sizes, counts=counts)
