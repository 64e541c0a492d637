"""ScreenSpot-Pro and RefSpatial-Bench: lists of questions in JSON files, and folders of images.

**ScreenSpot-Pro** (huggingface.co/datasets/likaixin/ScreenSpot-Pro, arXiv 2504.07981): established
from its card, its list of files, and the authors' evaluation (``bbox`` is [x1, y1, x2, y2] in
pixels).  The English instructions are asked.  The authors' score is the share of instructions whose
point lies in ``bbox``: the pointing accuracy of ``point``, where a reply has at most one point.

**RefSpatial-Bench** (huggingface.co/datasets/BAAI/RefSpatial-Bench, arXiv 2506.04308): established
from its card, its list of files, programs of others that read them, and the authors' evaluation
(github.com/Zhoues/RoboRefer: what is not 0 in the first channel of a mask is inside).  Asked is
``object``; ``prompt`` says the same as an order, with a format that is not ours.  The truth is the
mask, and for boxes the box around it.  The authors' score is the metric ``Points inside``, except
that they cut coordinates to whole pixels, so that -0.5 is inside the image.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...benchmarks.findit.findit_datasets import Family
from ...core.image_files import Size
from ...marks.region import packed_mask
from ..custom.masks import mask_pixels
from ..custom.text import CORNERS, json_of, line_of, numbers, state_size, text_of
from ..samples import AnnotatedBox, AnnotationError, Sample, Samples, expression_samples
from ..sources import PublishedPart


def _rows(path: Path, keys: Sequence[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the objects of a file with a list of them, each after its place for messages."""
    rows = json_of(text_of(path), str(path), "a list of questions")
    if not isinstance(rows, list):
        raise AnnotationError(f"{path}: is no list of questions")
    for at, row in enumerate(rows):
        where = f"{path}, [{at}]"
        if not isinstance(row, dict):
            raise AnnotationError(f"{where}: {reprlib.repr(row)} is no object")
        for key in keys:
            if key not in row:
                raise AnnotationError(f"{where}: no key {key!r}")
        yield f"{where} ({row['id']})", row


def _tags(row: Mapping[str, Any], kinds: Sequence[str], where: str) -> dict[str, str]:
    known = {kind: str(row[kind]) for kind in kinds if row.get(kind) not in (None, "")}
    return {kind: line_of(value, f"{where}, {kind}") for kind, value in known.items()}


# --- ScreenSpot-Pro -------------------------------------------------------------------------------


def find_screenspot_pro(folder: Path) -> Sequence[PublishedPart]:
    """Return the one part of ScreenSpot-Pro, or raise an AnnotationError."""
    files = sorted((folder / "annotations").glob("*.json"))
    if not files:
        raise AnnotationError(f"{folder}: no annotations/*.json")
    return (PublishedPart("", partial(_read_screenspot_pro, folder, files)),)


def _read_screenspot_pro(folder: Path, files: Sequence[Path]) -> Samples:
    queries: list[Sample] = []
    sizes: dict[str, Size] = {}
    for path in files:
        for where, row in _rows(path, ("img_filename", "img_size", "bbox", "instruction", "id")):
            image = line_of(row["img_filename"], f"{where}, img_filename")
            state_size(sizes, image, _size(row["img_size"], where), f"{where}, img_size")
            box = AnnotatedBox(numbers(row["bbox"], f"{where}, bbox", CORNERS), f"{where}, bbox")
            instruction = line_of(row["instruction"], f"{where}, instruction")
            tags = _tags(row, ("ui_type", "group", "application", "platform"), where)
            queries.append(Sample((image,), instruction, (box,), where, tags=tags))
    source, images = folder / "annotations", folder / "images"
    return expression_samples(source, images, Family.REFEXP, queries, sizes)


def _size(value: Any, where: str) -> Size:
    if not isinstance(value, list) or len(value) != 2 or not all(type(n) is int for n in value):
        raise AnnotationError(f"{where}, img_size: {value!r:.40} is not [width, height]")
    return (value[0], value[1])


# --- RefSpatial-Bench -----------------------------------------------------------------------------

REFSPATIAL_PARTS = ("Location", "Placement", "Unseen")


def find_refspatial(folder: Path) -> Sequence[PublishedPart]:
    """Return the parts of RefSpatial-Bench that are there, or raise an AnnotationError."""
    there = [name for name in REFSPATIAL_PARTS if (folder / name / "question.json").is_file()]
    if not there:
        raise AnnotationError(f"{folder}: no {', '.join(REFSPATIAL_PARTS)} with a question.json")
    return tuple(PublishedPart(name, partial(_read_refspatial, folder / name)) for name in there)


def _read_refspatial(folder: Path) -> Samples:
    path = folder / "question.json"
    queries = []
    for where, row in _rows(path, ("id", "object", "rgb_path", "mask_path")):
        image = line_of(row["rgb_path"], f"{where}, rgb_path")
        box = _box_around_mask(folder, row["mask_path"], f"{where}, mask_path")
        tags = _tags(row, ("category", "step"), where)
        label = line_of(row["object"], f"{where}, object")
        queries.append(Sample((image,), label, (box,), where, tags=tags))
    return expression_samples(path, folder, Family.REFEXP, queries, {})


def _box_around_mask(folder: Path, name: object, where: str) -> AnnotatedBox:
    inside = mask_pixels(folder, line_of(name, where), where)
    columns, rows = np.flatnonzero(inside.any(axis=0)), np.flatnonzero(inside.any(axis=1))
    x1, y1, x2, y2 = map(float, (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1))
    return AnnotatedBox((x1, y1, x2, y2), where, mask=packed_mask(inside))
