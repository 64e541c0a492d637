"""One row of stage 2, before it is said how it is asked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ....core.image_files import Size


class Role(Enum):
    """What the region of a mark is to the question; the values are the release's keys."""

    DEFAULT = "default"
    SUBJECT = "subject"
    OBJECT = "object"


class Source(Enum):
    """Where a question is from: the release's ``meta_source``."""

    MIA = "MIA"
    SD_100 = "SD-100"
    EMOTIC = "emotic"
    MAPILLARY = "mapillary_vistas"
    SEE_CLICK = "see_click"
    SGG = "SGG"


TASKS = {
    Source.MIA: "MIA",
    Source.SD_100: "3D",
    Source.EMOTIC: "emotion",
    Source.MAPILLARY: "street",
    Source.SEE_CLICK: "GUI",
    Source.SGG: "SGG",
}
"""What figures call the questions of a source, in the order of published tables."""


@dataclass(frozen=True, slots=True)
class Marked:
    """A region that a question is about.

    ``picture`` is the number of its picture, from 0.  ``box`` is (x, y, w, h) in pixels of it,
    ``outlines`` are polygons, x, y of one vertex after the other; () where only the box is known.
    """

    picture: int
    role: Role
    box: tuple[float, float, float, float]
    outlines: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Stage2Row:
    """A question as the release has it.

    ``label`` is the question, with ``<color> <vp>`` where a mark is named.  ``sizes`` are those of
    ``images``, which are relative to the image folder and unmarked.  ``options`` are (letter,
    text), without blank ones; ``answer`` is the right letter, "" where the release states none.
    """

    index: int
    label: str
    images: tuple[str, ...]
    sizes: tuple[Size, ...]
    marks: tuple[Marked, ...]
    options: tuple[tuple[str, str], ...]
    answer: str
    source: Source
    support: tuple[str, ...] = ()
    width: int = 0
    height: int = 0
