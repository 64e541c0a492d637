"""Questions of one's own, as every source of them is read into: one record a query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...benchmarks.findit.datasets import Family
from ...boxes.records import Ignored, Truth
from ...core.image_files import Size
from .annotations import CROWD, AnnotationError, Annotations, Box, Units


@dataclass(frozen=True, slots=True)
class AskedQuery:
    """One query, not yet checked against its images.

    ``images`` are the picture, or the frames in their order, and ``support`` the reference shots,
    relative to the image folder.  ``label`` is what to find: a name or an expression; several
    labels are a tuple, and then every box of the truth has its own.  A truth without boxes is a
    negative: there is nothing to find.  ``tags`` are the slices that it belongs to, value by kind.
    ``where`` is for messages: the file and the place in it; ``places`` are those of the boxes,
    where they are not ``where, boxes[i]`` (of a video ``where, boxes[frame][i]``), followed by
    those of the ignored ones.
    """

    images: tuple[str, ...]
    label: str | tuple[str, ...]
    truth: Truth
    where: str
    support: tuple[str, ...] = ()
    caption: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    places: tuple[str, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """What to find, one or several."""
        return (self.label,) if isinstance(self.label, str) else self.label

    def place(self, box: int) -> str:
        """Where a box is, for messages."""
        if self.places:
            return self.places[box]
        if len(self.images) == 1:
            return f"{self.where}, boxes[{box}]"
        frame = self.truth.frames[box]
        return f"{self.where}, boxes[{frame}][{box - self.truth.frames.index(frame)}]"


@dataclass(frozen=True, slots=True)
class AskedSet:
    """The queries of one family; those with several labels become the multi-label table.

    ``units`` say whether boxes are in pixels or in fractions of their image; ``left_out`` counts
    what was left out on purpose, by the reason.  ``frames`` is the number that every query is
    thinned to (None: they all have one number).  ``sizes`` has the images whose size is stated.
    ``image_ids`` and ``category_ids`` are the numbers of a COCO file, so that an export can use
    them again.
    """

    source: Path
    family: Family
    queries: tuple[AskedQuery, ...]
    units: Units = Units.PIXELS
    left_out: Counter[str] = field(default_factory=Counter)
    frames: int | None = None
    sizes: Mapping[str, Size] = field(default_factory=dict)
    image_ids: Mapping[str, int] = field(default_factory=dict)
    category_ids: Mapping[str, int] = field(default_factory=dict)


def asked_of(annotations: Annotations) -> AskedSet:
    """Annotated objects as object detection: a query an image and label, and a query an image.

    Pictures of which it is said that nothing is in them ask for one label, and are negatives.

    Raises:
        AnnotationError: there are no boxes.
    """
    if not annotations.boxes:
        raise AnnotationError(f"{annotations.source}: no boxes")
    by_label: dict[tuple[str, str], list[Box]] = {}
    by_image: dict[str, list[Box]] = {}
    for box in annotations.boxes:
        if not box.ignored:
            by_label.setdefault((box.image, box.label), []).append(box)
            by_image.setdefault(box.image, []).append(box)
    if not by_label:
        but = " but those to ignore" if annotations.boxes else ""
        raise AnnotationError(f"{annotations.source}: no boxes{but}")
    left_out = Counter(annotations.left_out)
    ignored: dict[str, list[Box]] = {}
    for box in annotations.boxes:
        # Where nothing else of its label is to be found, nobody is asked for it.
        if box.ignored and (box.image, box.label) in by_label:
            ignored.setdefault(box.image, []).append(box)
        elif box.ignored:
            left_out[f"{box.ignored} in pictures with nothing else of their label"] += 1
    single = (
        _query(boxes, label, [box for box in ignored.get(image, ()) if box.label == label])
        for (image, label), boxes in by_label.items()
    )
    multi = (
        _query(boxes, tuple(sorted({b.label for b in boxes})), ignored.get(image, ()))
        for image, boxes in by_image.items()
    )
    nothing = _backgrounds(annotations, sorted({label for _, label in by_label}))
    return AskedSet(
        annotations.source,
        Family.OBJDET,
        (*single, *nothing, *multi, *(replace(one, label=one.labels) for one in nothing)),
        annotations.units,
        left_out,
        sizes={name: size for name, size in annotations.images.items() if size is not None},
        image_ids=annotations.image_ids,
        category_ids=annotations.category_ids,
    )


def _backgrounds(annotations: Annotations, labels: Sequence[str]) -> list[AskedQuery]:
    """A query with nothing to find for each picture without objects, of one label each, in turn.

    One and not all of them: so there is one such query in a hundred where one such picture is.
    """
    return [
        AskedQuery(
            (image,), labels[at % len(labels)], Truth((), ()), f"{annotations.source}, {image}"
        )
        for at, image in enumerate(annotations.backgrounds)
    ]


def _query(
    boxes: Sequence[Box], label: str | tuple[str, ...], ignored: Sequence[Box]
) -> AskedQuery:
    several = not isinstance(label, str)
    masks = tuple(box.mask for box in boxes)
    truth = Truth(
        tuple(box.corners for box in boxes),
        (0,) * len(boxes),
        tuple(box.label for box in boxes) if several else (),
        masks if any(masks) else (),
        tuple(
            Ignored(box.corners, 0, box.label if several else "", box.ignored == CROWD, box.mask)
            for box in ignored
        ),
    )
    places = tuple(box.where for box in (*boxes, *ignored))
    return AskedQuery((boxes[0].image,), label, truth, places[0], places=places)


def by_label(query: AskedQuery) -> list[AskedQuery]:
    """A query of several labels as one query a label; those without boxes are negatives."""
    return [_of_label(query, label) for label in query.labels]


def _of_label(query: AskedQuery, label: str) -> AskedQuery:
    truth = query.truth
    kept = [i for i, other in enumerate(truth.labels) if other == label]
    others = [i for i, other in enumerate(truth.ignored) if other.label == label]
    return replace(
        query,
        label=label,
        truth=Truth(
            tuple(truth.boxes[i] for i in kept),
            tuple(truth.frames[i] for i in kept),
            masks=tuple(truth.masks[i] for i in kept) if truth.masks else (),
            ignored=tuple(truth.ignored[i]._replace(label="") for i in others),
        ),
        places=tuple(map(query.place, (*kept, *(len(truth.boxes) + i for i in others)))),
    )
