"""Answers and ground truth as a FiftyOne dataset on disk; FiftyOne itself is not needed.

A sample is an image (of a video, a frame). ``ground_truth_<dataset>`` has its objects, a field for
each run the answered boxes, and ``<run>_answers`` a label for each query: ``boxes``, ``no box``,
the reason why a reply is not readable, or ``failed call``. FiftyOne infers the schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..boxes import DEFAULT_CONFIDENCE, BoxAnswer, MatchRule, finite_corners
from ..core import atomic_write, counted, replace_surrogates
from ..protocol import Role, ScoredRow
from ..report import Transcript, gather_transcripts
from ..scoring import Run, RunError
from ..storage import read_image_header
from .export_folder import rewrite_folder
from .image_copies import IMAGES, ImageCopies, is_turned
from .targets import NotExportableError, left_out_lines

_ANSWERED = (Role.HIT, Role.MISS, Role.WRONG_LABEL, Role.UNCOUNTED)
Document = dict[str, Any]


def to_fiftyone(runs: Sequence[Run], out: Path) -> Iterator[str]:
    """Write a FiftyOne dataset; runs whose answers are no boxes are left out."""
    shown = [run for run in runs if _shows_boxes(run)]
    if not shown:
        raise NotExportableError("no run has boxes for FiftyOne: name a run with boxes")
    transcripts, missing = gather_transcripts(shown)
    if missing:
        raise RunError(f"{missing[0].run.path}: {missing[0].reason}")
    samples: dict[Path, Document] = {}
    copies = ImageCopies(out)
    truths: set[tuple[str, int]] = set()
    names = _field_names(shown)
    for transcript, name in zip(transcripts, names, strict=True):
        dataset = transcript.run.variant.board_dataset
        truth = _name(f"ground_truth {dataset}")
        for row in transcript.run.rows:
            is_first = (dataset, row.index) not in truths
            _add(samples, transcript, row, name, truth if is_first else None)
            truths.add((dataset, row.index))
    for path, sample in samples.items():
        sample["filepath"] = _shown_file(path, copies)
    with rewrite_folder(out, "fiftyone") as folder, atomic_write(folder / "samples.json") as f:
        copies.write(folder)
        json.dump({"samples": list(samples.values())}, f, allow_nan=False)
    fields = [sample[name] for sample in samples.values() for name in names if name in sample]
    boxes = sum(len(field["detections"]) for field in fields)
    left = sum(len(BoxAnswer.of(row).boxes) for run in shown for row in run.rows) - boxes
    images = counted(len(samples), "image")
    count = counted(len(shown), "run")
    yield f"{out}/: {images}, {counted(boxes, 'box')} of {count}"
    yield from left_out_lines([run for run in runs if not _shows_boxes(run)])
    if absent := sum(not path.is_file() for path in samples):
        yield f"{counted(absent, 'image')} not there: FiftyOne will not show them"
    if copies:
        yield (
            f"{counted(len(copies), 'image')} copied to {IMAGES}/ without EXIF, by which viewers "
            "turn images and not boxes"
        )
    if left:
        left_out = counted(left, "box")
        yield f"{left_out} cannot be shown: left out (not finite, or after 200 of an answer)"
    yield "open it in Python with:"
    yield "  import fiftyone as fo"
    yield "  dataset = fo.Dataset.from_dir("
    yield f"      {str(out.absolute())!r}, dataset_type=fo.types.FiftyOneDataset"
    yield "  )"
    yield "  dataset.add_dynamic_sample_fields()"
    yield "  fo.launch_app(dataset)"


def _shown_file(path: Path, copies: ImageCopies) -> str:
    """Return the file that FiftyOne shows for an image: a copy of one that it would turn."""
    return copies.add(path, read_image_header(path).size) if is_turned(path) else str(path)


def _shows_boxes(run: Run) -> bool:
    rule = getattr(run.variant, "match_rule", None)
    return run.variant.in_boxes and rule in (None, MatchRule.BOX_OVERLAP)


def _add(
    samples: dict[Path, Document],
    transcript: Transcript,
    row: ScoredRow,
    name: str,
    truth: str | None,
) -> None:
    """Add an answer to the samples of its images.

    ``truth`` is the field of the query's objects (None: another run has added them).
    """
    about = {"tags": [f"{kind}={value}" for kind, value in row.slices.items()], "query": row.index}
    confidences = _confidences(row)
    dataset = transcript.run.variant.board_dataset
    for place, picture in enumerate(transcript.draw(row).images):
        path = (transcript.images / picture.path).absolute()
        size = {"_cls": "ImageMetadata", "width": picture.width, "height": picture.height}
        sample = samples.setdefault(path, {"filepath": str(path), "tags": [], "metadata": size})
        if dataset not in sample["tags"]:
            sample["tags"].append(dataset)
        answered = _labels(sample, name, "Detections")
        if place == 0:
            kind = row.reason or ("boxes" if BoxAnswer.of(row).boxes else "no box")
            label = {
                "_cls": "Classification",
                "label": "failed call" if row.failed else kind,
                "asked": replace_surrogates(transcript.dataset.queries[row.index].label),
                "score": transcript.run.benchmark.query_score(row),
                **about,
            }
            _labels(sample, f"{name}_answers", "Classifications").append(label)
        for box in picture.boxes:
            x1, y1, x2, y2 = box.box
            width = picture.width
            height = picture.height
            detection = {
                "_cls": "Detection",
                **about,
                "label": replace_surrogates(box.label) or "object",
                "bounding_box": [x1 / width, y1 / height, (x2 - x1) / width, (y2 - y1) / height],
            }
            if box.role is Role.TRUTH and truth is not None:
                _labels(sample, truth, "Detections").append(detection)
            elif box.role in _ANSWERED:
                detection |= {"eval": box.role.value, "iou": box.value}
                values = confidences.get(picture.number, [])
                if values and (confidence := values.pop(0)) is not None:
                    detection["confidence"] = confidence
                answered.append(detection)


def _labels(sample: Document, name: str, kind: str) -> list[Document]:
    field: dict[str, list[Document]] = sample.setdefault(name, {"_cls": kind, kind.lower(): []})
    return field[kind.lower()]


def _confidences(row: ScoredRow) -> dict[int, list[float | None]]:
    by_frame: dict[int, list[float | None]] = {}
    answer = BoxAnswer.of(row)
    if not row.failed and answer.confidences:
        confidences = answer.confidences_by(DEFAULT_CONFIDENCE)
        for box, frame, confidence in zip(answer.boxes, answer.frames, confidences, strict=True):
            if finite_corners(box) is not None:
                by_frame.setdefault(frame, []).append(confidence)
    return by_frame


def _field_names(runs: Sequence[Run]) -> list[str]:
    names: list[str] = []
    for run in runs:
        name = _name(f"{run.model} {run.variant.board_dataset} {run.variant.format}")
        names.append(name if name not in names else f"{name}_{len(names) + 1}")
    return names


def _name(text: str) -> str:
    plain = re.sub(r"[^0-9A-Za-z]+", "_", text).strip("_")
    return plain if plain[:1].isalpha() else f"run_{plain}"
