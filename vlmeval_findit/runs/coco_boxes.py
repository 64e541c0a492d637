"""The boxes of a run as COCO has them: truth and results, images and categories.

COCO evaluates categories within images.  Where queries name labels, a label is a category and an
image an image.  Where they describe or show one object, a query is an image of its own and there is
one category, ``object``: two expressions about one photograph must not share their boxes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ..benchmarks.findit.findit_datasets import Family
from ..benchmarks.findit.findit_query import Query
from ..benchmarks.findit.variant import Variant
from ..boxes.matching import plain_label
from ..boxes.representation import MatchRule
from ..coords.run_check import NotBoxesError
from ..core.question import AnyTask
from ..core.scored_row import ScoredRow
from ..data.custom.build import ids_path
from ..data.samples import AnnotationError
from .boxes_of_rows import confidences_of
from .score import RunScore

_OBJECT = "object"


@dataclass(frozen=True, slots=True)
class _Category:
    number: int
    name: str


class Answered(NamedTuple):
    """What was asked, and its scored answers."""

    task: AnyTask
    rows: Sequence[ScoredRow]


AnyRun = Answered | RunScore


class Origin(NamedTuple):
    """Where a result comes from: its row, and the place of the box in it."""

    row: ScoredRow
    box: int

    def confidence(self, definition: str) -> float | None:
        return confidences_of(self.row, definition)[self.box]


@dataclass(slots=True)
class CocoBoxes:
    """Truth and results as they grow.  ``categories`` are found by the label as it is compared.

    ``origins[i]`` is where ``results[i]`` comes from; ``sources`` are the pictures or videos of
    images, by the images' numbers; ``repeated`` counts queries that ask what another asks.
    """

    image_ids: Mapping[str, int]
    categories: Mapping[str, _Category]
    images: dict[str, dict[str, Any]] = field(default_factory=dict)
    truth: list[dict[str, Any]] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)
    sources: dict[int, str] = field(default_factory=dict)
    unknown_labels: int = 0
    not_numbers: int = 0
    repeated: int = 0

    def image(self, key: str, name: str, size: tuple[int, int]) -> int:
        """The number of an image: that of the COCO file it came from, else the next one."""
        if key not in self.images:
            number = self.image_ids.get(key, len(self.images) + 1)
            values = {"id": number, "file_name": name, "width": size[0], "height": size[1]}
            self.images[key] = values
        known: int = self.images[key]["id"]
        return known

    @property
    def named(self) -> list[dict[str, Any]]:
        """The categories as COCO has them."""
        return [{"id": one.number, "name": one.name} for one in self.categories.values()]

    def category(self, label: str) -> int | None:
        found = self.categories.get(plain_label(label))
        return None if found is None else found.number


def collect(run: AnyRun) -> CocoBoxes:
    """The boxes of a run as COCO has them, every one with the score 1.

    Raises:
        NotBoxesError: the answers are no boxes.
        AnnotationError: what an import left is damaged.
    """
    _variant(run)
    ids = _ids(run.task.table)
    out = CocoBoxes(ids["images"], _categories(run, ids["categories"]))
    asked: set[tuple[str, str]] = set()
    for one in run.rows:
        if one.failed:
            continue
        query = run.task.queries[one.index]
        question = (query.images[0], query.label)
        if _labels_are_categories(run) and question in asked:
            out.repeated += 1
            continue
        asked.add(question)
        _add(out, run, one)
    return out


def _variant(run: AnyRun) -> Variant:
    question = run.task.question
    if not isinstance(question, Variant) or question.match_rule is not MatchRule.BOX_OVERLAP:
        raise NotBoxesError(f"{question.name}: its answers are no boxes for COCO")
    return question


def _labels_are_categories(run: AnyRun) -> bool:
    return _variant(run).data.family is Family.OBJDET


def _ids(table: Path) -> dict[str, dict[str, int]]:
    """The numbers of images and categories in the COCO file that a table was imported from."""
    path = ids_path(table)
    if not path.is_file():
        return {"images": {}, "categories": {}}
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        ids = {section: dict(values[section]) for section in ("images", "categories")}
    except (ValueError, TypeError, KeyError, RecursionError):
        raise AnnotationError(
            f"{path}: is not what import wrote; delete it, or import the dataset again (--replace)"
        ) from None
    return ids


def _categories(run: AnyRun, known: Mapping[str, int]) -> dict[str, _Category]:
    if not known:
        labels = {label for one in run.rows for label in _true_labels(run, one)}
        labels |= {label for one in run.rows for label in _listed(run, one)}
        known = {label: number for number, label in enumerate(sorted(labels), 1)}
    return {plain_label(label): _Category(number, label) for label, number in known.items()}


def _listed(run: AnyRun, one: ScoredRow) -> list[str]:
    """The labels that a query asks for, some of which may have no box.

    Only labels of one's own are sure to have no comma.
    """
    variant = _variant(run)
    if not variant.multilabel or variant.data.folder is None:
        return []
    return [label.strip() for label in _query(run, one).label.split(",")]


def _true_labels(run: AnyRun, one: ScoredRow) -> tuple[str, ...]:
    """The label of every ground-truth box."""
    query = _query(run, one)
    truth = query.truth
    if _variant(run).multilabel:
        return truth.labels
    label = query.label if _named(run) else _OBJECT
    return (label,) * max(1, len(truth.boxes))


def _query(run: AnyRun, one: ScoredRow) -> Query:
    """The query of a row of one of FindIt's tables."""
    found: Query = run.task.queries[one.index]  # type: ignore[assignment]
    return found


def _named(run: AnyRun) -> bool:
    return _variant(run).data.family in (Family.OBJDET, Family.OBJDET_VIDEO)


def _add(out: CocoBoxes, run: AnyRun, one: ScoredRow) -> None:
    query = _query(run, one)
    size = (query.width, query.height)

    def image(frame: int) -> int:
        name = query.images[frame]
        key = name if _labels_are_categories(run) else f"{query.index}/{frame}"
        number = out.image(key, name, size)
        out.sources[number] = one.source
        return number

    for frame in range(len(query.images)):
        image(frame)
    for box, frame, label in zip(
        query.truth.boxes, query.truth.frames, _true_labels(run, one), strict=False
    ):
        w, h = box[2] - box[0], box[3] - box[1]
        out.truth.append(
            {
                "id": len(out.truth) + 1,  # pycocotools takes 0 for "not matched"
                "image_id": image(frame),
                "category_id": out.category(label),
                "bbox": [box[0], box[1], w, h],
                "area": w * h,
                "iscrowd": 0,
            }
        )
    for other in query.truth.ignored:
        labelled = other.label or (query.label if _named(run) else _OBJECT)
        w, h = other.box[2] - other.box[0], other.box[3] - other.box[1]
        out.truth.append(
            {
                "id": len(out.truth) + 1,
                "image_id": image(other.frame),
                "category_id": out.category(labelled),
                "bbox": [other.box[0], other.box[1], w, h],
                "area": w * h,
                "iscrowd": 1,  # the only way in which COCO ignores an object
            }
        )
    for at, (said, frame, label) in enumerate(_said(run, one)):
        category = out.category(label)
        if None in said:
            out.not_numbers += 1
        elif category is None:
            out.unknown_labels += 1
        else:
            x1, y1, x2, y2 = said
            out.origins.append(Origin(one, at))
            out.results.append(
                {
                    "image_id": image(frame),
                    "category_id": category,
                    "bbox": [x1, y1, max(0.0, x2 - x1), max(0.0, y2 - y1)],
                    "score": 1.0,
                }
            )


def _said(run: AnyRun, one: ScoredRow) -> Iterator[tuple[list[float], int, str]]:
    """Every box of the reply, in pixels of the original image, with its frame and label."""
    boxes = one.details["boxes"]
    frames = one.details.get("frames") or [0] * len(boxes)
    one_label = _query(run, one).label if _named(run) else _OBJECT
    labels = one.details.get("labels") or [one_label] * len(boxes)
    yield from zip(boxes, frames, labels, strict=True)
