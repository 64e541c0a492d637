"""ScreenSpot-Pro: where one has to click in screenshots of professional software.

Published at huggingface.co/datasets/likaixin/ScreenSpot-Pro (arXiv 2504.07981).  Established from
its card and its list of files (``annotations/<application>_<system>.json``, ``images/``), and from
the authors' evaluation (github.com/likaixin2000/ScreenSpot-Pro-GUI-Grounding): the fields, ``bbox``
as [x1, y1, x2, y2] in pixels, ``ui_type`` text or icon, figures by group and application.  The
licence is that of copies of the card.  Not established: how many images there are.  The English
instructions are asked; there are Chinese ones.

The authors' score is the share of instructions whose point lies in ``bbox``, its edges included; an
answer without a point is a miss.  That is the pointing accuracy of ``point`` where a reply has one
point at most, and every call was answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ...benchmarks.findit.findit_datasets import Family
from ...core.image_files import Size
from ..custom.text import CORNERS, line_of, numbers, rows_of, state_size
from ..samples import AnnotationError, Box, Sample, Samples, expressions
from ..sources import PublishedPart

FIELDS = ("img_filename", "img_size", "bbox", "instruction", "id")
TAGS = ("ui_type", "group", "application", "platform")
"""What slices a score by: text and icons, kinds of software, programs, systems."""


def read(folder: Path) -> Sequence[PublishedPart]:
    """Return the one part, or raise an AnnotationError."""
    files = sorted((folder / "annotations").glob("*.json"))
    if not files:
        raise AnnotationError(f"{folder}: no annotations/*.json")
    return (PublishedPart("", partial(_read, folder, files)),)


def _read(folder: Path, files: Sequence[Path]) -> Samples:
    queries: list[Sample] = []
    sizes: dict[str, Size] = {}
    for path in files:
        for where, row in rows_of(path, "instructions", FIELDS):
            queries.append(_query(row, where))
            at = f"{where}, img_size"
            state_size(sizes, queries[-1].images[0], _size(row["img_size"], at), at)
    source, images = folder / "annotations", folder / "images"
    return expressions(source, images, Family.REFEXP, queries, sizes)


def _query(row: Mapping[str, Any], where: str) -> Sample:
    at = f"{where}, bbox"
    return Sample(
        (line_of(row["img_filename"], f"{where}, img_filename"),),
        line_of(row["instruction"], f"{where}, instruction"),
        (Box(numbers(row["bbox"], at, CORNERS), at),),
        where,
        tags={kind: line_of(row[kind], f"{where}, {kind}") for kind in TAGS if row.get(kind)},
    )


def _size(value: Any, where: str) -> Size:
    if not isinstance(value, list) or len(value) != 2 or not all(type(n) is int for n in value):
        raise AnnotationError(f"{where}: {value!r:.40} is not [width, height]")
    return (value[0], value[1])
