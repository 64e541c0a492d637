"""Answers and ground truth as a FiftyOne dataset on disk; FiftyOne itself is not needed.

One sample is one picture (of a video, one frame).  ``ground_truth`` holds its objects, a field a
run the boxes that were answered, and ``<run>_answers`` one label a query: ``boxes``, ``no box``,
the reason why a reply could not be taken, or ``failed call``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as of_class
from itertools import count
from pathlib import Path
from typing import Any

from ..benchmarks.findit.variant import Variant
from ..boxes.confidences import DEFAULT
from ..boxes.representation import Judging
from ..core.drawing import DrawnBox, DrawnPicture, Role
from ..core.files import atomic_write
from ..core.image_files import header
from ..core.redaction import of_whole_characters
from ..core.scored_row import ScoredRow
from ..report.transcripts import Transcript, gather
from ..runs.boxes_of_rows import confidences_of
from ..runs.scored_run import Run
from .fiftyone_fields import (
    VERSION,
    Document,
    answers_field,
    default_fields,
    detections_field,
    object_id,
    random_of,
)

_WRITTEN_BY = "vlmeval_findit export-fiftyone"
_ANSWERED = (Role.HIT, Role.MISS, Role.WRONG_LABEL, Role.UNCOUNTED)


class FiftyOneError(ValueError):
    """Runs that cannot be exported, or a folder that must not be written to."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: ``fields`` by run.

    ``gone`` counts samples whose picture is not there, ``left_out`` boxes that are not finite, lie
    on a picture whose size nobody knows, or come after the 200th of an answer.
    """

    folder: Path
    samples: int
    gone: int
    fields: tuple[str, ...]
    boxes: int
    left_out: int


@dataclass(slots=True)
class _Samples:
    """The samples as they grow, by the path of their picture."""

    found: dict[Path, Document] = of_class(default_factory=dict)
    sizes: dict[Path, tuple[int, int] | None] = of_class(default_factory=dict)
    boxes: int = 0
    left_out: int = 0

    def of(self, path: Path, tag: str) -> Document:
        if path not in self.found:
            self.found[path] = {
                "_id": object_id(str(path)),
                "filepath": str(path),
                "tags": [],
                "_media_type": "image",
                "_rand": random_of(str(path)),
            }
        sample = self.found[path]
        if tag not in sample["tags"]:
            sample["tags"].append(tag)
        return sample

    def size(self, path: Path, said: DrawnPicture) -> tuple[int, int] | None:
        """Width and height of a picture: the annotation's, else the file's; None: neither."""
        if path not in self.sizes:
            known = (said.width, said.height)
            self.sizes[path] = known if all(known) else _size_of(path)
        return self.sizes[path]


def shows_boxes(run: Run) -> bool:
    """Whether the answers of a run are boxes: points have no extent."""
    question = run.question
    points = isinstance(question, Variant) and question.judged is not Judging.BY_OVERLAP
    return question.in_boxes and not points


def export(runs: Sequence[Run], out: Path) -> Exported:
    """Write runs as one FiftyOne dataset; the same runs are the same bytes.

    Args:
        runs: of whatever models and datasets, whose answers are boxes.
        out: the folder: a new one, an empty one, or one that this wrote.

    Raises:
        FiftyOneError: a run's answers are no boxes, its table is not at hand, or the folder is
            somebody else's; nothing is written.
    """
    _check_folder(out)
    for run in runs:
        if not shows_boxes(run):
            raise FiftyOneError(f"{run.path}: its answers are no boxes for FiftyOne")
    found, missing = gather(runs)
    if missing:
        raise FiftyOneError(f"{missing[0].run.path}: {missing[0].reason}")
    columns = list(dict.fromkeys(run.question.column for run in runs))
    truths = {
        c: _name("ground_truth" if len(columns) == 1 else f"ground_truth {c}") for c in columns
    }
    fields = _field_names(runs, len(columns) > 1)
    samples = _Samples()
    asked: set[tuple[str, int]] = set()
    for one, name in zip(found, fields, strict=True):
        column = one.run.question.column
        for row in one.run.rows:
            new = (column, row.index) not in asked
            asked.add((column, row.index))
            _add(samples, one, row, name, truths[column] if new else None)
    out.mkdir(parents=True, exist_ok=True)
    with atomic_write(out / "samples.json") as f:
        json.dump({"samples": list(samples.found.values())}, f, allow_nan=False)
    with atomic_write(out / "metadata.json") as f:
        json.dump(_metadata(runs, fields, list(truths.values())), f, allow_nan=False)
    gone = sum(not path.is_file() for path in samples.found)
    return Exported(out, len(samples.found), gone, tuple(fields), samples.boxes, samples.left_out)


def _check_folder(out: Path) -> None:
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    try:
        values = json.loads((out / "metadata.json").read_text(encoding="utf-8"))
        if values["info"]["written by"] == _WRITTEN_BY:
            return
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise FiftyOneError(f"{out} holds what export-fiftyone did not write: name a new folder")


# --- samples --------------------------------------------------------------------------------------


def _add(
    samples: _Samples, transcript: Transcript, row: ScoredRow, name: str, truth: str | None
) -> None:
    """Add one answer to the pictures of its query; ``truth`` is the field of its objects, None
    where another run has added them."""
    tags = [f"{kind}={value}" for kind, value in row.slices.items()]
    drawing = transcript.draw(row)
    confidences = _confidences(row)
    drawn = 0
    for place, picture in enumerate(drawing.pictures):
        path = (transcript.pictures / picture.path).absolute()
        sample = samples.of(path, transcript.run.question.column)
        answered = _boxes(sample, name, "detections", "Detections")
        if place == 0:
            _boxes(sample, f"{name}_answers", "classifications", "Classifications").append(
                _answer(transcript, row, name, tags)
            )
        size = samples.size(path, picture)
        if size is None:
            continue
        sample["metadata"] = {"_cls": "ImageMetadata", "width": size[0], "height": size[1]}
        for at, box in enumerate(picture.boxes):
            if box.role is Role.TRUTH and truth is not None:
                made = _detection(box, size, tags, row.index, truth, place, at)
                _boxes(sample, truth, "detections", "Detections").append(made)
            elif box.role in _ANSWERED:
                made = _detection(box, size, tags, row.index, name, place, at)
                made |= {"eval": box.role.value, "iou": box.value}
                own = confidences.get(picture.number, [])
                if own and (confidence := own.pop(0)) is not None:
                    made["confidence"] = confidence
                answered.append(made)
                drawn += 1
    samples.boxes += drawn
    samples.left_out += len(row.details["boxes"]) - drawn


def _boxes(sample: Document, name: str, items: str, kind: str) -> list[Document]:
    """The labels of a field of a sample; made where there are none yet."""
    if name not in sample:
        sample[name] = {"_cls": kind, items: []}
    held: list[Document] = sample[name][items]
    return held


def _detection(
    box: DrawnBox,
    size: tuple[int, int],
    tags: Sequence[str],
    query: int,
    name: str,
    place: int,
    at: int,
) -> Document:
    """A box as FiftyOne has it: x, y, width and height in fractions of the picture."""
    width, height = size
    x1, y1, x2, y2 = box.box
    return {
        "_id": object_id(name, query, place, at),
        "_cls": "Detection",
        "attributes": {},
        "tags": list(tags),
        "label": of_whole_characters(box.label) or "object",
        "bounding_box": [x1 / width, y1 / height, (x2 - x1) / width, (y2 - y1) / height],
        "query": query,
    }


def _answer(transcript: Transcript, row: ScoredRow, name: str, tags: Sequence[str]) -> Document:
    kind = row.reason or ("boxes" if row.details["boxes"] else "no box")
    return {
        "_id": object_id(name, row.index, "answer"),
        "_cls": "Classification",
        "tags": list(tags),
        "label": "failed call" if row.failed else kind,
        "query": row.index,
        "asked": of_whole_characters(transcript.task.queries[row.index].label),
        "goodness": transcript.run.benchmark.goodness(row),
    }


def _confidences(row: ScoredRow) -> dict[int, list[float | None]]:
    """The confidences of the boxes that are drawn, by frame, in their order."""
    if row.failed or "confidences" not in row.details:
        return {}
    boxes = row.details["boxes"]
    frames = row.details.get("frames") or [0] * len(boxes)
    found: dict[int, list[float | None]] = {}
    for box, frame, confidence in zip(boxes, frames, confidences_of(row, DEFAULT), strict=True):
        if None not in box:
            found.setdefault(frame, []).append(confidence)
    return found


def _size_of(path: Path) -> tuple[int, int] | None:
    try:
        width, height = header(path).size
    except OSError:
        return None
    return width, height


# --- the dataset ----------------------------------------------------------------------------------


def _metadata(runs: Sequence[Run], fields: Sequence[str], truths: Sequence[str]) -> Document:
    own = [
        one for name in fields for one in (detections_field(name), answers_field(f"{name}_answers"))
    ]
    return {
        "name": "findit",
        "version": VERSION,
        "media_type": "image",
        "tags": [],
        "info": {
            "written by": _WRITTEN_BY,
            "runs": dict(zip(fields, map(_about, runs), strict=True)),
        },
        "classes": {},
        "default_classes": [],
        "mask_targets": {},
        "default_mask_targets": {},
        "skeletons": {},
        "sample_fields": [*default_fields(), *map(detections_field, truths), *own],
        "frame_fields": [],
        "saved_views": [],
        "annotation_runs": {},
        "brain_methods": {},
        "evaluations": {},
        "runs": {},
    }


def _about(run: Run) -> dict[str, Any]:
    return {
        "model": of_whole_characters(run.model),
        "dataset": run.question.name,
        "digest": run.basis.digest,
        # By their keys: a field of a database must have no dot in its name.
        "figures": {
            re.sub(r"[.$]", "_", metric.key or metric.name): run.figures[metric.name]
            for metric in run.benchmark.metrics
        },
    }


def _field_names(runs: Sequence[Run], with_column: bool) -> list[str]:
    """A field a run: its model and format, and its dataset where there are several."""
    names: list[str] = []
    for run in runs:
        parts = [run.model, run.question.format, *([run.question.column] if with_column else [])]
        name = wanted = _name(" ".join(parts))
        for number in count(2):
            if name not in names:
                break
            name = f"{wanted}_{number}"
        names.append(name)
    return names


def _name(text: str) -> str:
    """A name that FiftyOne takes for a field: letters, digits and underscores, a letter first."""
    plain = re.sub(r"[^0-9A-Za-z]+", "_", text).strip("_")
    return plain if plain[:1].isalpha() else f"run_{plain}"
