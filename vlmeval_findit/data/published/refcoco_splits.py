"""A published split of RefCOCO, RefCOCO+ or RefCOCOg, as a copy of it is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...benchmarks.findit import Family
from ...benchmarks.vpbench import named_image
from ...boxes import Corners
from ...storage import Size
from ..annotated_samples import (
    AnnotatedBox,
    AnnotationError,
    PackedImages,
    Sample,
    Samples,
    Units,
    expression_samples,
)
from ..ledger import Ledger


@dataclass(frozen=True, slots=True)
class Split:
    """A split that figures are published of."""

    stem: str  # refcoco, refcoco+ or refcocog: the set, as files are called
    name: str  # val, testA, testB or test

    @property
    def provider(self) -> str:
        """Whose split of the set it is."""
        return "umd" if self.stem == "refcocog" else "unc"


SPLITS = {
    "refcoco": ("val", "testA", "testB"),
    "refcoco+": ("val", "testA", "testB"),
    "refcocog": ("val", "test"),
}
SET_NAMES = {
    "refcoco": "RefCOCOFull",
    "refcoco+": "RefCOCOplusFull",
    "refcocog": "RefCOCOgFull",
}


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression with its object, as a copy has them."""

    image: str  # Name of its file
    words: str
    corners: Corners
    where: str  # The file and the place in it


@dataclass(slots=True)
class CopiedSplit:
    """Collects a split of one copy."""

    source: Path
    images: Path | PackedImages
    units: Units = Units.PIXELS
    expressions: list[Expression] = field(default_factory=list)
    sizes: dict[str, Size] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=Ledger)

    def add(self, image: str, texts: Sequence[str], corners: Corners, where: str) -> None:
        """Add the expressions of an object; one without words is left out."""
        for text in texts:
            words = " ".join(text.split())
            if words:
                self.expressions.append(Expression(image, words, corners, where))
            else:
                self.ledger.leave_out("expressions without words", where)

    def samples(self) -> Samples:
        """Return a query an expression; expressions of an object share its box."""
        places: dict[tuple[str, Corners], str] = {}
        queries = []
        for each in self.expressions:
            place = places.setdefault((each.image, each.corners), f"{each.where}, bbox")
            box = AnnotatedBox(each.corners, place)
            queries.append(Sample((each.image,), each.words, (box,), each.where))
        samples = expression_samples(self.source, self.images, Family.REFEXP, queries, self.sizes)
        self.ledger.read("expressions", len(queries))
        self.ledger.read("objects", len(places))
        return replace(samples, units=self.units, units_stated=True, ledger=self.ledger)


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of the three sets, as people have it."""

    name: str  # In messages
    differs: str  # From the authors' annotations
    files: Callable[[Path, Split], Sequence[Path]]  # That it has of a split; empty: it has none
    read: Callable[[Path, Split, Sequence[Path]], CopiedSplit]
    has_images: bool = False


def corners_of(sides: Corners) -> Corners:
    """Return the corners of a box [x, y, width, height]."""
    x, y, width, height = sides
    return (x, y, x + width, y + height)


# --- images ---------------------------------------------------------------------------------------

# Where the images of COCO train2014 lie, below a folder of annotations
_TRAIN2014 = ("train2014", "images/train2014", "coco/train2014", "images/mscoco/images/train2014")


def train2014(folder: Path) -> Path | None:
    """Return the folder of COCO's images below one of annotations; None if it is not there."""
    places = (folder / place for place in _TRAIN2014)
    return next((place for place in places if place.is_dir()), None)


def needed_train2014(folder: Path) -> Path:
    """Return the folder of COCO's images, or raise an AnnotationError that says where to put it."""
    images = train2014(folder)
    if images is None:
        raise AnnotationError(
            f"{folder / 'train2014'} is missing: the images of COCO train2014, which this copy has "
            f"not. Where they lie elsewhere: ln -s /path/to/train2014 {folder / 'train2014'}"
        )
    return images


def coco_name(text: str, where: str) -> str:
    """Return the name of the image of COCO train2014 that a path or the name of an object has.

    >>> coco_name("data/coco/train2014/COCO_train2014_000000581857.jpg", "a.jsonl, line 1")
    'COCO_train2014_000000581857.jpg'
    >>> coco_name("COCO_train2014_000000581857_16.jpg", "a.parquet, row 0")
    'COCO_train2014_000000581857.jpg'
    """
    match = re.search(r"COCO_train2014_\d{12}", text)
    if match is None:
        raise AnnotationError(f"{where}: {text!r} names no image of COCO train2014")
    return f"{match[0]}.jpg"


def image_of(cell: str | bytes, where: str) -> tuple[str, bytes]:
    """Return the name of an image without one, made of its content, and its bytes."""
    try:
        return named_image(cell)
    except ValueError as error:
        raise AnnotationError(f"{where}, image: {error}") from None
