"""A stage 2 question before its region is named, and its table ``VPBench_Stage2.tsv``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar

from ....core.table_files import NESTED, CellError, PlainQuery, Side, read_table

HOW_TO_MAKE = "python run_findit.py prepare --vp-bench DIR"


class Role(Enum):
    """What a region is to the question; the values are the release's keys."""

    DEFAULT = "default"
    SUBJECT = "subject"
    OBJECT = "object"


class Source(Enum):
    """The source of a question: the release's ``meta_source``."""

    MIA = "MIA"
    SD_100 = "SD-100"
    EMOTIC = "emotic"
    MAPILLARY = "mapillary_vistas"
    SEE_CLICK = "see_click"
    SGG = "SGG"


TASKS = {  # names of sources in metrics, in the order of published tables
    Source.MIA: "MIA",
    Source.SD_100: "3D",
    Source.EMOTIC: "emotion",
    Source.MAPILLARY: "street",
    Source.SEE_CLICK: "GUI",
    Source.SGG: "SGG",
}


@dataclass(frozen=True)
class Marked:
    """A region that a question is about."""

    picture: int  # the number of its picture, from 0
    role: Role
    box: tuple[float, float, float, float]  # x, y, w, h in pixels
    outlines: tuple[tuple[float, ...], ...] = ()  # x, y of one vertex after the other
    __pydantic_config__: ClassVar[Any] = NESTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage2Row(PlainQuery):
    """A question, with ``<color> <vp>`` in its label for a mark, and unmarked images."""

    sizes: tuple[tuple[Side, Side], ...]  # of the images
    marks: tuple[Marked, ...]
    options: tuple[tuple[str, str], ...]  # letter, text
    answer: str = ""  # the right letter; "" where the release states none
    source: Source


def rows_in(path: Path) -> list[Stage2Row]:
    """Read the table; see :func:`.table_files.read_table`."""
    return read_table(path, Stage2Row, HOW_TO_MAKE, _whole)


def _whole(row: Stage2Row) -> Stage2Row:
    if len(row.sizes) != len(row.images):
        raise CellError("sizes", f"{len(row.sizes)} sizes of {len(row.images)} pictures")
    for mark in row.marks:
        if not 0 <= mark.picture < len(row.images):
            raise CellError("marks", f"there is no picture {mark.picture}")
    if row.answer and row.answer not in dict(row.options):
        raise CellError("answer", f"{row.answer!r} is no option: {', '.join(dict(row.options))}")
    return row
