"""Answers and ground truth as a FiftyOne dataset on disk; FiftyOne itself is not needed.

One sample is one picture (of a video, one frame).  ``ground_truth`` holds its objects, a field a
run the boxes that were answered, and ``<run>_answers`` one label a query: ``boxes``, ``no box``,
the reason why a reply could not be taken, or ``failed call``.  FiftyOne makes up the schema itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..benchmarks.findit.variant import Variant
from ..boxes.confidences import DEFAULT
from ..boxes.representation import Judging
from ..core.drawing import DrawnPicture, Role
from ..core.files import atomic_write
from ..core.image_files import header
from ..core.redaction import of_whole_characters
from ..core.scored_row import ScoredRow
from ..core.spelling import counted
from ..report.transcripts import Transcript, gather
from ..runs.boxes_of_rows import confidences_of
from ..runs.scored_run import Run, RunError
from .folder import made_anew
from .targets import NotExportableError, left_out

_ANSWERED = (Role.HIT, Role.MISS, Role.WRONG_LABEL, Role.UNCOUNTED)

Document = dict[str, Any]


def to_fiftyone(runs: Sequence[Run], out: Path) -> Iterator[str]:
    """Write runs as one FiftyOne dataset; the same runs are the same bytes.

    Args:
        runs: of whatever models and datasets; those whose answers are no boxes are left out.
        out: the folder: a new one, an empty one, or one that this wrote.

    Raises:
        RunError: a run's table or pictures are not at hand; nothing is written.
        NotExportableError: no run has boxes, or the folder is somebody else's.
    """
    shown = [run for run in runs if _shows_boxes(run)]
    if not shown:
        raise NotExportableError("no run's answers are boxes for FiftyOne: name one with boxes")
    found, missing = gather(shown)
    if missing:
        raise RunError(f"{missing[0].run.path}: {missing[0].reason}")
    columns = list(dict.fromkeys(run.question.column for run in shown))
    fields = _field_names(shown, len(columns) > 1)
    samples = _Samples()
    asked: set[tuple[str, int]] = set()
    for one, name in zip(found, fields, strict=True):
        column = one.run.question.column
        truth = "ground_truth" if len(columns) == 1 else _name(f"ground_truth {column}")
        for row in one.run.rows:
            samples.add(one, row, name, truth if (column, row.index) not in asked else None)
            asked.add((column, row.index))
    with made_anew(out, "fiftyone") as folder, atomic_write(folder / "samples.json") as f:
        json.dump({"samples": list(samples.found.values())}, f, allow_nan=False)
    pictures = counted(len(samples.found), "picture")
    yield f"{out}/: {pictures}, {samples.boxes:,} boxes of {counted(len(shown), 'run')}"
    others = [run.path.stem for run in runs if not _shows_boxes(run)]
    yield from left_out(others, "their answers are no boxes")
    if gone := sum(not path.is_file() for path in samples.found):
        yield f"{counted(gone, 'picture')} not there: FiftyOne will not show them"
    if samples.left_out:
        yield f"{samples.left_out:,} boxes cannot be shown: left out"
    yield "open it in Python with:"
    yield "  import fiftyone as fo"
    how = "dataset_type=fo.types.FiftyOneDataset"
    yield f"  dataset = fo.Dataset.from_dir({str(out.absolute())!r}, {how})"
    yield "  dataset.add_dynamic_sample_fields()"
    yield "  fo.launch_app(dataset)"


def _shows_boxes(run: Run) -> bool:
    """Whether the answers of a run are boxes: points have no extent."""
    question = run.question
    points = isinstance(question, Variant) and question.judged is not Judging.BY_OVERLAP
    return question.in_boxes and not points


@dataclass(slots=True)
class _Samples:
    """The samples as they grow, by the path of their picture.

    ``left_out`` counts boxes that are not finite, lie on a picture whose size nobody knows, or come
    after the 200th of an answer.
    """

    found: dict[Path, Document] = field(default_factory=dict)
    boxes: int = 0
    left_out: int = 0

    def add(self, one: Transcript, row: ScoredRow, name: str, truth: str | None) -> None:
        """Add one answer to the pictures of its query; ``truth`` is the field of its objects, None
        where another run has added them."""
        tags = [f"{kind}={value}" for kind, value in row.slices.items()]
        confidences = _confidences(row)
        drawn = 0
        for place, picture in enumerate(one.draw(row).pictures):
            sample = self._sample((one.pictures / picture.path).absolute(), picture)
            if one.run.question.column not in sample["tags"]:
                sample["tags"].append(one.run.question.column)
            answered = _labels(sample, name, "Detections")
            if place == 0:
                kind = row.reason or ("boxes" if row.details["boxes"] else "no box")
                said = {
                    "_cls": "Classification",
                    "label": "failed call" if row.failed else kind,
                    "asked": of_whole_characters(one.task.queries[row.index].label),
                    "goodness": one.run.benchmark.goodness(row),
                    "tags": tags,
                    "query": row.index,
                }
                _labels(sample, f"{name}_answers", "Classifications").append(said)
            if "metadata" not in sample:
                continue
            width, height = sample["metadata"]["width"], sample["metadata"]["height"]
            for box in picture.boxes:
                x1, y1, x2, y2 = box.box
                made = {
                    "_cls": "Detection",
                    "tags": tags,
                    "label": of_whole_characters(box.label) or "object",
                    "bounding_box": [
                        x1 / width,
                        y1 / height,
                        (x2 - x1) / width,
                        (y2 - y1) / height,
                    ],
                    "query": row.index,
                }
                if box.role is Role.TRUTH and truth is not None:
                    _labels(sample, truth, "Detections").append(made)
                elif box.role in _ANSWERED:
                    made |= {"eval": box.role.value, "iou": box.value}
                    own = confidences.get(picture.number, [])
                    if own and (confidence := own.pop(0)) is not None:
                        made["confidence"] = confidence
                    answered.append(made)
                    drawn += 1
        self.boxes += drawn
        self.left_out += len(row.details["boxes"]) - drawn

    def _sample(self, path: Path, said: DrawnPicture) -> Document:
        """The sample of a picture, with its size: the annotation's, else the file's."""
        if path not in self.found:
            self.found[path] = {"filepath": str(path), "tags": []}
            size = (said.width, said.height)
            try:
                width, height = size if all(size) else header(path).size
            except OSError:
                return self.found[path]
            known = {"_cls": "ImageMetadata", "width": width, "height": height}
            self.found[path]["metadata"] = known
        return self.found[path]


def _labels(sample: Document, name: str, kind: str) -> list[Document]:
    """The labels of a field of a sample; made where there are none yet."""
    held: list[Document] = sample.setdefault(name, {"_cls": kind, kind.lower(): []})[kind.lower()]
    return held


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


def _field_names(runs: Sequence[Run], with_column: bool) -> list[str]:
    """A field a run: its model and format, and its dataset where there are several."""
    names: list[str] = []
    for run in runs:
        parts = [run.model, run.question.format, *([run.question.column] if with_column else [])]
        name = _name(" ".join(parts))
        names.append(name if name not in names else f"{name}_{len(names) + 1}")
    return names


def _name(text: str) -> str:
    """A name that FiftyOne takes for a field: letters, digits and underscores, a letter first."""
    plain = re.sub(r"[^0-9A-Za-z]+", "_", text).strip("_")
    return plain if plain[:1].isalpha() else f"run_{plain}"
