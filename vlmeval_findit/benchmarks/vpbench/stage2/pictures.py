"""Pictures of stage 2: the release's, kept as they are, and the marked ones made of them.

Both lie below the image folder, under names that say what is in them: ``stage2/<hash>`` of a
picture's bytes, ``stage2/marked/<hash>`` of what is drawn (picture, regions, style, colours,
recipe).  So what is asked can be told where no picture is at hand, and nothing is drawn twice.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ....core.files import replacing, sha256_of
from ....core.image_files import ImageFileError, Size, decode, header, problem
from ....core.places import Folder, keep_below
from ....core.stored_png import png
from ....marks.region import Region
from ....marks.style import Shape, default_style
from ..cells import suffix
from .row import Marked

log = logging.getLogger(__name__)

RECIPE = 1
"""Counts the changes of what is drawn."""


class Stored(NamedTuple):
    """A picture below the image folder."""

    name: str
    size: Size


def keep(data: bytes, folder: Path) -> Stored:
    """Keep a picture's bytes below an image folder.

    Raises:
        ValueError: they are no picture that can be shown.
    """
    name = f"stage2/{sha256_of(data)[:24]}{suffix(data)}"
    path = folder / name
    if not path.is_file() or path.stat().st_size != len(data):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_bytes(data)
            why = problem(temporary, None)
            if why is not None:
                raise ValueError(f"the picture {why}")
    return Stored(name, header(path).size)


@dataclass(frozen=True, slots=True)
class MarkedPicture:
    """A picture with marks of one shape: ``colours`` has a name a mark."""

    picture: str
    marks: tuple[Marked, ...]
    shape: Shape
    colours: tuple[str, ...]

    @property
    def name(self) -> str:
        """Where it lies, relative to the image folder."""
        regions = [[mark.box, mark.outlines] for mark in self.marks]
        drawn = [RECIPE, self.picture, regions, self.shape.value, self.colours]
        return f"stage2/marked/{sha256_of(json.dumps(drawn).encode())[:24]}.png"


def draw_missing(wanted: Iterable[MarkedPicture], folder: Folder) -> None:
    """Draw the pictures that are not there yet, where what they are made of is.

    Raises:
        PlaceError: the folder cannot be written to.
    """
    unread: list[ImageFileError] = []
    for one in wanted:
        if (folder.path / one.name).is_file():
            continue
        try:
            keep_below(folder, one.name, drawn(one, folder.path))
        except ImageFileError as error:
            unread.append(error)
    if unread:
        log.warning("%d pictures cannot be marked; the first: %s", len(unread), unread[0])


def drawn(one: MarkedPicture, folder: Path) -> bytes:
    """A marked picture as PNG.

    Raises:
        ImageFileError: the picture cannot be read.
    """
    import numpy as np

    from ....marks.render import draw_marks

    pixels = np.asarray(decode(folder / one.picture))
    regions = [Region(mark.box, mark.outlines) for mark in one.marks]
    return png(draw_marks(pixels, regions, default_style(one.shape), one.colours).pixels)
