"""Answers and ground truth as a FiftyOne dataset on disk; FiftyOne itself is not needed.

One sample is one picture (of a video, one frame).  ``ground_truth_<dataset>`` holds its objects, a
field a run the boxes that were answered, and ``<run>_answers`` one label a query: ``boxes``, ``no
box``, the reason why a reply could not be taken, or ``failed call``.  FiftyOne makes up the schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..boxes.confidences import DEFAULT
from ..boxes.representation import MatchRule
from ..core.drawing import Role
from ..core.files import atomic_write
from ..core.formatting import counted
from ..core.redaction import of_whole_characters
from ..core.scored_row import ScoredRow
from ..report.transcripts import Transcript, gather
from ..runs.box_confidences import confidences_of
from ..runs.scored_run import Run, RunError
from .export_folder import rewrite_folder
from .targets import NotExportableError, say_left_out

_ANSWERED = (Role.HIT, Role.MISS, Role.WRONG_LABEL, Role.UNCOUNTED)

Document = dict[str, Any]


def to_fiftyone(runs: Sequence[Run], out: Path) -> Iterator[str]:
    """Write one FiftyOne dataset; runs whose answers are no boxes are left out."""
    shown = [run for run in runs if _shows_boxes(run)]
    if not shown:
        raise NotExportableError("no run's answers are boxes for FiftyOne: name one with boxes")
    found, missing = gather(shown)
    if missing:
        raise RunError(f"{missing[0].run.path}: {missing[0].reason}")
    samples: dict[Path, Document] = {}
    truths: set[tuple[str, int]] = set()
    names = _field_names(shown)
    for one, name in zip(found, names, strict=True):
        dataset = one.run.question.board_dataset
        truth = _name(f"ground_truth {dataset}")
        for row in one.run.rows:
            is_first = (dataset, row.index) not in truths
            _add(samples, one, row, name, truth if is_first else None)
            truths.add((dataset, row.index))
    with rewrite_folder(out, "fiftyone") as folder, atomic_write(folder / "samples.json") as f:
        json.dump({"samples": list(samples.values())}, f, allow_nan=False)
    fields = [sample[name] for sample in samples.values() for name in names if name in sample]
    boxes = sum(len(field["detections"]) for field in fields)
    left = sum(len(row.details["boxes"]) for run in shown for row in run.rows) - boxes
    images = counted(len(samples), "image")
    yield f"{out}/: {images}, {boxes:,} boxes of {counted(len(shown), 'run')}"
    yield from say_left_out([run for run in runs if not _shows_boxes(run)])
    if gone := sum(not path.is_file() for path in samples):
        yield f"{counted(gone, 'image')} not there: FiftyOne will not show them"
    if left:
        yield f"{left:,} boxes cannot be shown: left out (not finite, or after 200 of an answer)"
    yield "open it in Python with:"
    yield "  import fiftyone as fo"
    how = "dataset_type=fo.types.FiftyOneDataset"
    yield "  dataset = fo.Dataset.from_dir("
    yield f"      {str(out.absolute())!r}, {how}"
    yield "  )"
    yield "  dataset.add_dynamic_sample_fields()"
    yield "  fo.launch_app(dataset)"


def _shows_boxes(run: Run) -> bool:
    rule = getattr(run.question, "match_rule", None)
    return run.question.in_boxes and rule in (None, MatchRule.BOX_OVERLAP)


def _add(
    samples: dict[Path, Document], one: Transcript, row: ScoredRow, name: str, truth: str | None
) -> None:
    """Add one answer to the samples of its pictures.

    ``truth`` is the field of the query's objects (None: another run has added them).
    """
    about = {"tags": [f"{kind}={value}" for kind, value in row.slices.items()], "query": row.index}
    confidences = _confidences(row)
    for place, picture in enumerate(one.draw(row).images):
        path = (one.pictures / picture.path).absolute()
        width, height = picture.width, picture.height
        size = {"_cls": "ImageMetadata", "width": width, "height": height}
        sample = samples.setdefault(path, {"filepath": str(path), "tags": [], "metadata": size})
        if one.run.question.board_dataset not in sample["tags"]:
            sample["tags"].append(one.run.question.board_dataset)
        answered = _labels(sample, name, "Detections")
        if place == 0:
            kind = row.reason or ("boxes" if row.details["boxes"] else "no box")
            said = {
                "_cls": "Classification",
                "label": "failed call" if row.failed else kind,
                "asked": of_whole_characters(one.task.queries[row.index].label),
                "score": one.run.benchmark.query_score(row),
                **about,
            }
            _labels(sample, f"{name}_answers", "Classifications").append(said)
        for box in picture.boxes:
            x1, y1, x2, y2 = box.box
            made = {
                "_cls": "Detection",
                **about,
                "label": of_whole_characters(box.label) or "object",
                "bounding_box": [x1 / width, y1 / height, (x2 - x1) / width, (y2 - y1) / height],
            }
            if box.role is Role.TRUTH and truth is not None:
                _labels(sample, truth, "Detections").append(made)
            elif box.role in _ANSWERED:
                made |= {"eval": box.role.value, "iou": box.value}
                own = confidences.get(picture.number, [])
                if own and (confidence := own.pop(0)) is not None:
                    made["confidence"] = confidence
                answered.append(made)


def _labels(sample: Document, name: str, kind: str) -> list[Document]:
    held: list[Document] = sample.setdefault(name, {"_cls": kind, kind.lower(): []})[kind.lower()]
    return held


def _confidences(row: ScoredRow) -> dict[int, list[float | None]]:
    found: dict[int, list[float | None]] = {}
    if not row.failed and "confidences" in row.details:
        boxes = row.details["boxes"]
        frames = row.details.get("frames") or [0] * len(boxes)
        for box, frame, confidence in zip(boxes, frames, confidences_of(row, DEFAULT), strict=True):
            if None not in box:
                found.setdefault(frame, []).append(confidence)
    return found


def _field_names(runs: Sequence[Run]) -> list[str]:
    """Name a field a run by its model, dataset and format."""
    names: list[str] = []
    for run in runs:
        name = _name(f"{run.model} {run.question.board_dataset} {run.question.format}")
        names.append(name if name not in names else f"{name}_{len(names) + 1}")
    return names


def _name(text: str) -> str:
    plain = re.sub(r"[^0-9A-Za-z]+", "_", text).strip("_")
    return plain if plain[:1].isalpha() else f"run_{plain}"
