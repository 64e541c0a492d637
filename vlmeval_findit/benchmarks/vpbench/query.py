"""One row of a VP-Bench table."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

LETTERS = "ABCD"
"""Of the options, in their order."""


class Kind(Enum):
    """What a question asks; by its wording, or by whoever made it."""

    EXISTENCE = "existence"
    COUNTING = "counting"
    LOCALISATION = "localisation"
    REFERENCE = "reference"
    UNKNOWN = "unknown"


class HintColumn(Enum):
    """The column of the authors' file that a hint came from.

    Their code reads ``hint`` alone: a hint that stands in ``context`` never reached a model.
    """

    HINT = "hint"
    CONTEXT = "context"


@dataclass(frozen=True, slots=True)
class VPQuery:
    """One question about marks in pictures.

    ``images`` are paths relative to the image folder, marks drawn in.  ``options`` are (letter,
    text), in order, without blank ones; ``answer`` is the right letter, "" where none is known:
    such a row is asked and not scored.  ``amount`` is how many marks there are, ``shapes`` what
    they are (by our names: box, oval, arrow, mask, contour, tag, point, scribble), ``properties``
    what else is known of them (colours); all as far as it is known.  ``absent``: it asks about a
    mark that is not there, and the right option says so.  ``source`` says where the row is from:
    a task of the authors, or the dataset that it was made of.  ``photograph`` is the first picture
    before marks were drawn into it: questions about it are not independent.  It is "" in stage 1,
    which does not say it.
    """

    index: int
    label: str
    images: tuple[str, ...]
    hint: str
    question: str
    options: tuple[tuple[str, str], ...]
    answer: str
    amount: str
    shapes: tuple[str, ...]
    properties: tuple[str, ...]
    kind: Kind
    absent: bool
    source: str
    support: tuple[str, ...] = ()
    width: int = 0
    height: int = 0
    hint_column: HintColumn = HintColumn.HINT
    photograph: str = ""
