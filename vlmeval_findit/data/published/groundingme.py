"""GroundingME: long expressions for one object, and for one that is not there.

Published at huggingface.co/datasets/lirang04/GroundingME (arXiv 2512.17495).  Established from its
card (columns, the split ``test`` of 1,005 rows, the licence), from the authors' README (``bbox`` is
[x1, y1, x2, y2]) and from their evaluation (what ``subtask_l1`` calls Rejection has no object,
whatever ``bbox`` says).  Of 201 rejections, 804 boxes, boxes in pixels of the image and null
boxes of rejections we have a stranger's word who read the files: no import is held to it.  Not
established: how many of the images are the same (every row has its own), and the values of
``subtask_l2``.

The authors ask for one box or null.  Here it is asked as what describes any number of objects is,
since the family of exactly one object has no answer for nothing: every object that the expression
describes, or an empty list.  Their accuracy counts a rejection as a hit; here hits and rejections
are apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ...benchmarks.findit.findit_datasets import Family
from ...core.image_files import Size
from ...core.spelling import nearest
from ..custom.text import CORNERS, numbers
from ..samples import AnnotationError, Box, Sample, Samples, expressions
from ..sources import PublishedPart
from .shards import Packed, Row, Shards, shards_of

COLUMNS = ("id", "description", "image", "bbox", "subtask_l1", "subtask_l2", "width", "height")

REJECTION = "Rejection"
SUBTASKS = ("Discriminative", "Spatial", "Limited", REJECTION)
"""What ``subtask_l1`` may be."""


def read(folder: Path) -> Sequence[PublishedPart]:
    """Return the one part, or raise an AnnotationError."""
    return (PublishedPart("", partial(_read, shards_of(folder, "test"))),)


def _read(shards: Shards) -> Samples:
    queries: list[Sample] = []
    sizes: dict[str, Size] = {}
    for row in shards.rows(COLUMNS):
        number = row.whole("id")
        name = f"{number}{row.suffix('image')}"
        if name in sizes:
            raise AnnotationError(f"{row.where}, column id: {number} stands twice")
        sizes[name] = (row.whole("width"), row.whole("height"))
        queries.append(_query(row, name))
    images = Packed(shards, "image", tuple(sizes))
    return expressions(shards.files[0], images, Family.REFEXP_ALL, queries, sizes)


def _query(row: Row, image: str) -> Sample:
    subtask = row.line("subtask_l1")
    if subtask not in SUBTASKS:
        why = f"no subtask {subtask!r}{nearest(subtask, SUBTASKS)}"
        raise AnnotationError(f"{row.where}, column subtask_l1: {why}")
    where = f"{row.where}, column bbox"
    boxes: tuple[Box, ...] = ()
    if subtask != REJECTION:
        boxes = (Box(numbers(row.cells["bbox"], where, CORNERS), where),)
    tags = {"subtask": subtask}
    if row.cells["subtask_l2"]:
        tags["aspect"] = row.line("subtask_l2")
    return Sample((image,), row.line("description"), boxes, row.where, tags=tags)
