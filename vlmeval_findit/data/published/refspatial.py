"""RefSpatial-Bench: one object, or one free place, that is told by where it is.

Published at huggingface.co/datasets/BAAI/RefSpatial-Bench (arXiv 2506.04308).  Established from its
card (100, 100 and 77 samples, the licence) and its list of files: a folder each for Location,
Placement and Unseen, with ``question.json``, ``image/`` and ``mask/``; from programs of others that
read them: the fields ``id``, ``object``, ``prompt``, ``suffix``, ``rgb_path``, ``mask_path``,
``category``, ``step``; from the authors' evaluation (github.com/Zhoues/RoboRefer): what is not 0 in
the first channel of a mask is inside.  The card says of Unseen that models which were not trained
with RefSpatial are not to be compared by it.

What is asked for is ``object``, the words that the authors give to Gemini and Qwen; ``prompt`` says
the same as an order, with a format in ``suffix`` that is not ours.  The truth is the mask, and for
boxes the box around it.

The authors' score is the mean over questions of the share of a reply's points that lie in the mask,
0 without a point: the figure ``Points inside``.  With one point at most it is the pointing accuracy
too.  They cut coordinates to whole pixels towards 0, so that -0.5 is a pixel of the image; here
it is outside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...benchmarks.findit.findit_datasets import Family
from ...marks.region import packed_mask
from ..custom.masks import pixels_of
from ..custom.text import line_of, rows_of
from ..samples import AnnotationError, Box, Sample, Samples, expressions
from ..sources import PublishedPart

PARTS = ("Location", "Placement", "Unseen")
FIELDS = ("id", "object", "rgb_path", "mask_path")
TAGS = ("category", "step")


def read(folder: Path) -> Sequence[PublishedPart]:
    """Return the parts that are there, or raise an AnnotationError."""
    there = [name for name in PARTS if (folder / name / "question.json").is_file()]
    if not there:
        raise AnnotationError(f"{folder}: no {', '.join(PARTS)} with a question.json")
    return tuple(PublishedPart(name, partial(_read, folder / name)) for name in there)


def _read(folder: Path) -> Samples:
    path = folder / "question.json"
    queries = [_query(folder, row, where) for where, row in rows_of(path, "questions", FIELDS)]
    return expressions(path, folder, Family.REFEXP, queries, {})


def _query(folder: Path, row: Mapping[str, Any], where: str) -> Sample:
    return Sample(
        (line_of(row["rgb_path"], f"{where}, rgb_path"),),
        line_of(row["object"], f"{where}, object"),
        (_box(folder, line_of(row["mask_path"], f"{where}, mask_path"), f"{where}, mask_path"),),
        where,
        tags={kind: str(row[kind]) for kind in TAGS if row.get(kind) not in (None, "")},
    )


def _box(folder: Path, name: str, where: str) -> Box:
    """The mask of a file and the box around it."""
    inside = pixels_of(folder, name, where)
    columns, rows = np.flatnonzero(inside.any(axis=0)), np.flatnonzero(inside.any(axis=1))
    x1, y1, x2, y2 = map(float, (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1))
    return Box((x1, y1, x2, y2), where, mask=packed_mask(inside))
