"""The boxes of runs as COCO results, for pycocotools or faster-coco-eval.

If a run recorded the probabilities of its tokens, a box's score is its confidence
(:mod:`..boxes.confidences`). Else every box has the score 1: average precision then is that of an
unranked list, and cannot be compared with a detector's. A note in the files says which.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..analysis import CocoBoxes, NoConfidenceError, definitions_in, load_scored_dataset
from ..boxes import CONFIDENCE_DEFINITIONS, DEFAULT_CONFIDENCE
from ..coords import NotBoxesError
from ..core import agreeing, atomic_write, counted, printable
from ..data import SOURCES
from ..protocol import AnyDataset
from ..scoring import Run
from ..storage import image_folder
from .croissant import (
    BOX,
    NUMBER,
    TEXT,
    WHOLE,
    DescribedField,
    DescribedRecords,
    write_croissant,
)
from .export_folder import rewrite_folder, unique_names
from .image_copies import IMAGES, ImageCopies, is_turned
from .targets import NotExportableError, left_out_lines

NO_CONFIDENCES = (
    "Every box has the score 1: the run recorded no confidences. Average precision over "
    "these results is that of an unranked list; do not compare it with a detector's."
)

_MISSED_BY_AP = "objects of failed calls, in no file, which ap counts as missed: its mAP is lower"

IGNORED_OBJECTS = (
    'Have "ignore": 1. Crowd regions have "iscrowd": 1; the others an area of -1, because '
    "pycocotools ignores an object that is no crowd only by its area."
)


def to_coco(runs: Sequence[Run], out: Path, confidence: str | None = None) -> Iterator[str]:
    """Write ``<run>_coco_results.json`` and ``<run>_coco_truth.json`` of every run.

    Args:
        runs: runs whose answers are no boxes are left out.
        out: the folder.
        confidence: definition of the score of a box (None: the default, if a run has confidences).

    Raises:
        ConfidenceError: a run has no confidences by this definition.
    """
    counts: Counter[str] = Counter()
    copies = ImageCopies(out)
    notes: dict[str, None] = {}
    without_boxes: list[Run] = []
    shown: list[Run] = []
    described: list[DescribedRecords] = []
    with rewrite_folder(out, "coco") as folder:
        for run, name in zip(runs, unique_names(runs), strict=True):
            try:
                dataset = load_scored_dataset(run)
                boxes = CocoBoxes(dataset, run.rows)
            except NotBoxesError:
                without_boxes.append(run)
                continue
            _name_copies(run, boxes, copies)
            note = _set_scores(run, boxes, confidence)
            notes[note] = None
            failed = sum(row.failed for row in run.rows)
            counts += Counter(
                {
                    "boxes": len(boxes.results),
                    "images": len(boxes.images),
                    "failed calls, in no file": failed,
                    _MISSED_BY_AP: _objects_of_failed_calls(run, dataset),
                    "boxes left out, of a label that is no category": boxes.unknown_labels,
                    "boxes left out, not finite": boxes.not_numbers,
                    "queries left out, which repeat another": boxes.repeated,
                }
            )
            _write(folder / f"{name}_coco_results.json", boxes.results)
            _write(folder / f"{name}_coco_truth.json", _truth(run, boxes, failed, note))
            shown.append(run)
            described += _described(name, boxes)
        if len(without_boxes) == len(runs):
            raise NotExportableError("no run has boxes for COCO: name a run with boxes")
        copies.write(folder)
        write_croissant(folder, _title(shown), _HOLDS, described, _licences(shown))
    written = f"{counts.pop('boxes', 0):,} boxes in {counts.pop('images', 0):,} images"
    yield f"{out}/: {counted(len(runs) - len(without_boxes), 'run')}, {written}"
    yield "of each run: …_coco_results.json and …_coco_truth.json"
    if copies:
        yield (
            f"{counted(len(copies), 'image')} copied to {IMAGES}/ without EXIF, by which some "
            "programs turn images; …_coco_truth.json names the copies, and the originals in copy_of"
        )
    if not counts["failed calls, in no file"]:
        del counts[_MISSED_BY_AP]
    for what, count in counts.items():
        yield f"{what}: {count:,}"
    yield from left_out_lines(without_boxes)
    yield from notes


def _objects_of_failed_calls(run: Run, dataset: AnyDataset) -> int:
    """Count the objects that count of queries whose calls failed."""
    queries: Mapping[int, Any] = dataset.queries
    return sum(len(queries[row.index].truth.boxes) for row in run.rows if row.failed)


def _name_copies(run: Run, boxes: CocoBoxes, copies: ImageCopies) -> None:
    """Name a copy of each image in which programs would see two pictures.

    Where the table came from a COCO file, names and coordinates are those of that file.
    """
    if boxes.has_ids:
        return
    folder = image_folder(run.variant.images).path.absolute()
    for image in boxes.images.values():
        path = folder / image["file_name"]
        if is_turned(path):
            # Whose results name the image itself finds it by this.
            image["copy_of"] = image["file_name"]
            image["file_name"] = copies.add(path, (image["width"], image["height"]))


def _set_scores(run: Run, boxes: CocoBoxes, definition: str | None) -> str:
    """Set the score of every box; return a note about the scores."""
    recorded = definitions_in(run.rows)
    if definition is not None and definition not in recorded:
        raise NoConfidenceError(run.path, definition)
    definition = definition or (DEFAULT_CONFIDENCE if DEFAULT_CONFIDENCE in recorded else None)
    if definition is None:
        return NO_CONFIDENCES
    unsure = 0
    for result, origin in zip(boxes.results, boxes.origins, strict=True):
        value = origin.confidence(definition)
        unsure += value is None
        result["score"] = value or 0.0
    have = agreeing(unsure, "has", "have")
    note = f" {counted(unsure, 'box')} without a confidence {have} the score 0." if unsure else ""
    means = CONFIDENCE_DEFINITIONS[definition].means
    return f"Scores are confidences of the model ({definition}: {means}).{note}"


def _truth(run: Run, boxes: CocoBoxes, failed: int, note: str) -> dict[str, Any]:
    return {
        "info": {
            "description": f"Ground truth of {run.variant.name} for the answers of {run.model}",
            "note": note,
            "ignored objects": IGNORED_OBJECTS,
            "queries answered": len(run.rows) - failed,
            "failed calls, not in here": failed,
        },
        "images": list(boxes.images.values()),
        "annotations": boxes.truth,
        "categories": boxes.categories,
    }


# --- Croissant ------------------------------------------------------------------------------------

_HOLDS = (
    "Ground truth and answers of models as COCO annotations and COCO results. Images are not in "
    "here, but for copies without EXIF."
)
_IMAGES = (
    DescribedField("id", WHOLE),
    DescribedField("file_name", TEXT),
    DescribedField("width", WHOLE, "in pixels"),
    DescribedField("height", WHOLE, "in pixels"),
)
_OF_BOXES = (
    DescribedField("image_id", WHOLE),
    DescribedField("category_id", WHOLE),
    DescribedField("bbox", BOX, "[x, y, width, height] in pixels, from the upper left corner"),
)
_CATEGORIES = (DescribedField("id", WHOLE), DescribedField("name", TEXT))


def _described(name: str, boxes: CocoBoxes) -> Iterator[DescribedRecords]:
    """Yield the records of a run's files; a list without any has no fields to read."""
    truth = f"{name}_coco_truth.json"
    results = f"{name}_coco_results.json"
    scored = (*_OF_BOXES, DescribedField("score", NUMBER))
    lists = (
        ("images", boxes.images.values(), "images", truth, _IMAGES, "$.images[*]"),
        ("categories", boxes.categories, "categories", truth, _CATEGORIES, "$.categories[*]"),
        ("truth", boxes.truth, "true boxes", truth, _OF_BOXES, "$.annotations[*]"),
        ("results", boxes.results, "boxes of the model", results, scored, "$[*]"),
    )
    for short, rows, what, file, fields, path in lists:
        if rows:
            in_all = [field for field in fields if all(field.name in row for row in rows)]
            yield DescribedRecords(f"{name}/{short}", what, file, in_all, path)


def _title(runs: Sequence[Run]) -> str:
    models = dict.fromkeys(run.model for run in runs)
    return printable(f"COCO results of {', '.join(models)}")


def _licences(runs: Sequence[Run]) -> Iterator[str]:
    """Yield what the registry of data says of the sets; of your own data it knows nothing."""
    for run in runs:
        source = SOURCES.get(run.variant.images)
        if source is not None:
            yield source.licence


def _write(path: Path, values: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    with atomic_write(path) as f:
        json.dump(values, f)
