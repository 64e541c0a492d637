"""ScreenSpot-Pro: where one has to click in screenshots of professional software.

Published at huggingface.co/datasets/likaixin/ScreenSpot-Pro (arXiv 2504.07981).  Established from
its card and its list of files (``annotations/<application>_<system>.json``, ``images/``), and from
the authors' evaluation (github.com/likaixin2000/ScreenSpot-Pro-GUI-Grounding): the fields, ``bbox``
as [x1, y1, x2, y2] in pixels, ``ui_type`` text or icon, figures by group and application.  The
licence is that of copies of the card.  Not established: how many pictures there are.  The English
instructions are asked; there are Chinese ones.

The authors' score is the share of instructions whose point lies in ``bbox``, its edges included; an
answer without a point is a miss.  That is the pointing accuracy of ``point`` where a reply has one
point at most, and every call was answered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ...benchmarks.findit.datasets import Family
from ...boxes.records import Truth
from ...core.image_files import Size
from ..own.annotations import AnnotationError, json_of, number, state_size, text_of
from ..own.asked import AskedQuery, AskedSet
from .importer import Content, Part, expressions

FIELDS = ("img_filename", "img_size", "bbox", "instruction", "id")
TAGS = ("ui_type", "group", "application", "platform")
"""What slices a score by: text and icons, kinds of software, programs, systems."""


def read(folder: Path) -> Sequence[Part]:
    """The one part.

    Raises:
        AnnotationError: the folder has no annotations.
    """
    files = sorted((folder / "annotations").glob("*.json"))
    if not files:
        raise AnnotationError(f"{folder}: no annotations/*.json")
    return (Part("", partial(_read, folder, files)),)


def _read(folder: Path, files: Sequence[Path]) -> Content:
    queries: list[AskedQuery] = []
    sizes: dict[str, Size] = {}
    for where, row in _rows(files):
        queries.append(_query(row, where))
        at = f"{where}, img_size"
        state_size(sizes, queries[-1].images[0], _size(row["img_size"], at), at)
    asked = AskedSet(folder / "annotations", Family.REFEXP, tuple(queries), sizes=sizes)
    return expressions(asked, folder / "images")


def _rows(files: Sequence[Path]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every instruction of all files, with its file and its id for messages."""
    for path in files:
        rows = json_of(text_of(path), str(path), "a list of instructions")
        if not isinstance(rows, list):
            raise AnnotationError(f"{path}: is no list of instructions")
        for at, row in enumerate(rows):
            where = f"{path}, [{at}]"
            if not isinstance(row, dict):
                raise AnnotationError(f"{where}: {row!r:.40} is no object")
            for field in FIELDS:
                if field not in row:
                    raise AnnotationError(f"{where}: no key {field!r}")
            yield f"{where} ({row['id']})", row


def _query(row: Mapping[str, Any], where: str) -> AskedQuery:
    box = row["bbox"]
    if not isinstance(box, list) or len(box) != 4:
        raise AnnotationError(f"{where}, bbox: {box!r:.60} is not [x1, y1, x2, y2]")
    x1, y1, x2, y2 = (number(side, f"{where}, bbox") for side in box)
    return AskedQuery(
        (_text(row["img_filename"], f"{where}, img_filename"),),
        " ".join(_text(row["instruction"], f"{where}, instruction").split()),
        Truth(((x1, y1, x2, y2),), (0,)),
        where,
        tags={kind: _text(row[kind], f"{where}, {kind}") for kind in TAGS if row.get(kind)},
        places=(f"{where}, bbox",),
    )


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise AnnotationError(f"{where}: {value!r:.40} is no text")
    return value


def _size(value: Any, where: str) -> Size:
    if not isinstance(value, list) or len(value) != 2 or not all(type(n) is int for n in value):
        raise AnnotationError(f"{where}: {value!r:.40} is not [width, height]")
    return (value[0], value[1])
