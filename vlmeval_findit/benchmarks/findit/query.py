"""One row of an annotation table."""

from __future__ import annotations

from dataclasses import dataclass

from ...boxes.records import Truth


@dataclass(frozen=True, slots=True)
class Query:
    """One row of an annotation table, thinned to the dataset's frames.

    ``images`` are the scene (one path) or the frames, in order; ``support`` the reference shots of
    the object; both relative to the dataset's image folder.  ``width`` and ``height`` are pixels
    of the original image.  ``label`` is what to find: a name, an expression, or, for multi-label
    queries, names separated by commas.
    """

    index: int
    label: str
    width: int
    height: int
    images: tuple[str, ...]
    truth: Truth
    support: tuple[str, ...] = ()
    caption: str = ""
    frame_indices: tuple[int, ...] = ()
