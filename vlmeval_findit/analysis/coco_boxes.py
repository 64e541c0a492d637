"""The boxes of a run: with their confidences, and as COCO has them.

COCO evaluates categories within images. Where queries name labels, a label is a category and an
image an image. Where they describe or show one object, each query counts as a separate image
and the only category is ``object``: two expressions about a photograph must not share boxes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..benchmarks.findit import Family, FindItQuery, FindItVariant, asked_labels
from ..boxes import CONFIDENCE_MEANINGS, BoxAnswer, Corners, MatchRule, finite_corners
from ..coords import NotBoxesError
from ..core import as_called
from ..data import AS_SCORED, CocoIds, KnownNames, number_and_text, object_key, read_ids
from ..protocol import AnyDataset, ScoredRow
from ..statistics import ConfidentBoxes


class ConfidenceError(ValueError):
    """Confidences that cannot be used, or not computed with."""


class NoConfidenceError(ConfidenceError):
    """A run without confidences; the message says how to get them."""

    def __init__(self, predictions: Path, definition: str = "") -> None:
        which = f"has a confidence {definition!r}" if definition else "has a confidence"
        message = (
            f"{predictions}: none of its boxes {which}: that needs the probabilities of the "
            "tokens of its replies. Ask again with --logprobs (run, search, sweep), of a "
            "model that runs here or of a server that gives logprobs"
        )
        if definition == "label":
            message += ", in a format that says labels"
        super().__init__(message)


def definitions_in(rows: Sequence[ScoredRow]) -> list[str]:
    """Return the definitions by which some box of these rows has a confidence."""
    names = {name for row in rows for name in BoxAnswer.of(row).confidences}
    return [name for name in CONFIDENCE_MEANINGS if name in names]


def boxes_of_rows(rows: Sequence[ScoredRow], definition: str) -> ConfidentBoxes:
    """Collect the boxes that count, with their confidences by one definition.

    Failed calls have none.
    """
    answered = [row for row in rows if not row.failed]
    place = {name: at for at, name in enumerate(sorted({row.source for row in answered}))}
    boxes: list[tuple[float, bool, int]] = []
    objects = np.zeros(len(place))
    for row in answered:
        answer = BoxAnswer.of(row)
        image = place[row.source]
        hits = {pair.box for pair in answer.pairs if pair.hit}
        for box, value in enumerate(answer.confidences_by(definition)):
            if box not in answer.ignored:
                boxes.append((np.nan if value is None else value, box in hits, image))
        objects[image] += len(answer.assigned)
    confidence, hit, at = zip(*boxes, strict=True) if boxes else ((), (), ())
    return ConfidentBoxes(
        np.array(confidence, float), np.array(hit, bool), np.array(at, np.intp), objects
    )


# --- as COCO has them -----------------------------------------------------------------------------


class ResultOrigin(NamedTuple):
    """Where a result comes from: its row, and the place of the box in it."""

    row: ScoredRow
    box: int

    def confidence(self, definition: str) -> float | None:
        return BoxAnswer.of(self.row).confidences_by(definition)[self.box]


class Ignore(Enum):
    """How COCO's evaluation ignores an object."""

    NOTHING = "not ignored"
    OBJECT = "ignored object"  # Matched like any object, by IoU, by one box
    CROWD = "crowd"  # Many objects: by the share of a box inside, by any number of boxes


# pycocotools computes "ignore" anew, from "iscrowd" and from whether the area is within the range
# evaluated. No range has negative areas.
_IGNORED_AREA = -1.0


def _refuse_mixed_ids(ids: CocoIds, table: Path) -> None:
    """Refuse ids that are numbers and texts: imports of findit 1.0 let them pass."""
    for numbers in (ids.images, ids.categories):
        if number_and_text(numbers.values()) is not None:
            raise NotBoxesError(
                f"{table}: the ids of its COCO file are numbers and texts, and pycocotools reads "
                "no such file. Write them in one way, and import the file again: "
                f"{as_called('python run_findit.py data import FILE --name NAME --replace')}"
            )


class CocoBoxes:
    """Truth and results of a run in COCO's layout, every result with the score 1.

    Args:
        dataset: what was asked.
        rows: of the run.
        failed_are_misses: whether failed calls are answers without a box; else they do not count.

    Raises:
        NotBoxesError: the answers are no boxes.
    """

    def __init__(
        self, dataset: AnyDataset, rows: Sequence[ScoredRow], failed_are_misses: bool = False
    ) -> None:
        variant = dataset.variant
        if (
            not isinstance(variant, FindItVariant)
            or variant.match_rule is not MatchRule.BOX_OVERLAP
        ):
            raise NotBoxesError(f"{variant.name}: its answers are not boxes, as COCO needs them")
        self._variant = variant
        # Labels are categories and images are images.
        self._by_label = variant.data.family is Family.OBJDET
        # Ids and coordinates of the COCO file that the table came from.
        self._ids = read_ids(dataset.table)
        self._areas = self._ids.areas_by_object()
        self._times = self._ids.times_by_object()
        _refuse_mixed_ids(self._ids, dataset.table)
        queries: list[Any] = [dataset.queries[row.index] for row in rows]
        numbers = self._ids.categories or self._numbered_labels(queries)
        self.categories = [{"id": number, "name": label} for label, number in numbers.items()]
        self._category = dict(numbers)
        # The metric leaves out letter case and punctuation; classes of a file may differ by them.
        self._labels_of_set = KnownNames(((label, label) for label in numbers), AS_SCORED)
        self.images: dict[str, dict[str, Any]] = {}
        self.truth: list[dict[str, Any]] = []
        self.results: list[dict[str, Any]] = []
        self.origins: list[ResultOrigin] = []  # One a result
        self.sources: dict[int | str, str] = {}  # Image or video of rows, by COCO image
        self.unknown_labels = 0  # Boxes whose label is no category
        self.not_numbers = 0  # Boxes that are not finite
        self.repeated = 0  # Queries that ask what another asks
        asked: set[tuple[str, str]] = set()
        for row, query in zip(rows, queries, strict=True):
            key = (query.images[0], query.label)
            if row.failed and not failed_are_misses:
                continue
            if self._by_label and key in asked:
                self.repeated += 1
            else:
                asked.add(key)
                self._add(row, query)

    def count_unasked(self, queries: Iterable[Any]) -> int:
        """Count the classes of images about which none of a set's queries asks.

        It is 0 where labels are no classes.
        """
        if not self._by_label:
            return 0
        asked: set[tuple[str, str]] = set()
        for query in queries:
            for label in asked_labels(query, self._variant):
                asked.add((query.images[0], label))
        images = {image for image, _ in asked}
        classes = self._ids.categories or {label for _, label in asked}
        return len(images) * len(classes) - len(asked)

    @property
    def has_ids(self) -> bool:
        """Tell whether ids, names and coordinates are those of a COCO file."""
        return bool(self._ids.images)

    def _label(self, query: FindItQuery) -> str:
        """Return the category of a query without labels for each box."""
        named = self._variant.data.family in (Family.OBJDET, Family.OBJDET_VIDEO)
        return query.label if named else "object"

    def _labels(self, query: FindItQuery) -> tuple[str, ...]:
        """Return the label of every ground-truth box, at least one."""
        if self._variant.multilabel:
            return query.truth.labels
        return (self._label(query),) * max(1, len(query.truth.boxes))

    def _numbered_labels(self, queries: Sequence[FindItQuery]) -> Mapping[str, int | str]:
        labels = {label for query in queries for label in self._labels(query)}
        for query in queries:
            labels.update(each.label for each in query.truth.ignored if each.label)
        if self._variant.multilabel and self._variant.data.folder is not None:
            # A label that is asked for may have no box; only custom labels have no comma.
            labels |= {label.strip() for query in queries for label in query.label.split(",")}
        return {label: number for number, label in enumerate(sorted(labels), 1)}

    def _image(self, row: ScoredRow, query: FindItQuery, frame: int) -> int | str:
        """Return the number of an image: that of the COCO file it came from, else the next."""
        name = query.images[frame]
        key = name if self._by_label else f"{query.index}/{frame}"
        if key not in self.images:
            number = self._ids.images.get(key, len(self.images) + 1)
            width, height = self._ids.size(name, (query.width, query.height))
            self.images[key] = {
                "id": number,
                "file_name": name,
                "width": width,
                "height": height,
            }
        known: int | str = self.images[key]["id"]
        self.sources[known] = row.source
        return known

    def _add(self, row: ScoredRow, query: FindItQuery) -> None:
        numbers = [self._image(row, query, frame) for frame in range(len(query.images))]
        truth = query.truth
        label = self._label(query)
        labels = self._labels(query)
        for box, frame, name in zip(truth.boxes, truth.frames, labels, strict=False):
            corners = self._in_file(query, frame, box)
            self._add_object(corners, numbers[frame], query.images[frame], name)
        for other in truth.ignored:
            ignore = Ignore.CROWD if other.crowd else Ignore.OBJECT
            corners = self._in_file(query, other.frame, other.box)
            name = other.label or label
            image = query.images[other.frame]
            self._add_object(corners, numbers[other.frame], image, name, ignore)
        self._add_results(row, query, numbers)

    def _in_file(self, query: FindItQuery, frame: int, box: Corners) -> Corners:
        """Convert a box to the coordinates of the COCO file that the table came from."""
        return self._ids.corners(query.images[frame], box, (query.width, query.height))

    def _category_of(self, label: str, asked: Collection[str] = ()) -> int | str | None:
        """Return the category of a label; of several that it may be, the one that was asked for."""
        found = self._labels_of_set.find(label)
        if len(found) > 1:
            found = [each for each in found if each in asked]
        return self._category[found[0]] if len(found) == 1 else None

    def _add_object(
        self,
        corners: Corners,
        number: int | str,
        image: str,
        label: str,
        ignore: Ignore = Ignore.NOTHING,
    ) -> None:
        x1, y1, x2, y2 = corners
        key = object_key(image, label, corners)
        area_of_box = abs((x2 - x1) * (y2 - y1))
        area = self._areas.get(key, area_of_box)
        if ignore is Ignore.OBJECT:
            area = _IGNORED_AREA
        # A query has an object once that the file has twice; pycocotools counts it twice.
        times = self._times.get(key, 1) if ignore is Ignore.NOTHING else 1
        for _ in range(times):
            self.truth.append(
                {
                    "id": len(self.truth) + 1,  # pycocotools takes 0 for "not matched"
                    "image_id": number,
                    "category_id": self._category_of(label),
                    "bbox": [x1, y1, x2 - x1, y2 - y1],
                    "area": area,
                    "iscrowd": int(ignore is Ignore.CROWD),
                    "ignore": int(ignore is not Ignore.NOTHING),
                }
            )

    def _add_results(
        self, row: ScoredRow, query: FindItQuery, numbers: Sequence[int | str]
    ) -> None:
        answer = BoxAnswer.of(row)
        labels = answer.labels_or(self._label(query))
        asked = asked_labels(query, self._variant)
        placed = zip(answer.boxes, answer.frames, labels, strict=True)
        for at, (box, frame, name) in enumerate(placed):
            category = self._category_of(name, asked)
            corners = finite_corners(box)
            if corners is None:
                self.not_numbers += 1
            elif category is None:
                self.unknown_labels += 1
            else:
                x1, y1, x2, y2 = self._in_file(query, frame, corners)
                sides = [max(0.0, x2 - x1), max(0.0, y2 - y1)]
                place = {"image_id": numbers[frame], "category_id": category}
                self.results.append({**place, "bbox": [x1, y1, *sides], "score": 1.0})
                self.origins.append(ResultOrigin(row, at))
