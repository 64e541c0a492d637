"""One row of an annotation table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ...boxes.records import Truth
from ...boxes.representation import Corners


class Sighting(NamedTuple):
    """A picture that shows an object in its surroundings, and the object's box in its pixels."""

    image: str
    box: Corners


@dataclass(frozen=True, slots=True)
class Query:
    """One row of an annotation table, thinned to the dataset's frames.

    ``images`` are the scene (one path) or the frames, in order; ``support`` the reference shots of
    the object; both relative to the dataset's image folder.  ``width`` and ``height`` are pixels
    of the original image.  ``label`` is what to find: a name, an expression, or, for multi-label
    queries, names separated by commas.  ``sightings`` are the pictures that the shots were taken
    from, where a table knows them; they may be the scene itself.  ``tags`` are what its author says
    of it, value by kind.
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
    sightings: tuple[Sighting, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def slices(self) -> Mapping[str, str]:
        """The parts of its table that it belongs to, value by kind."""
        return self.tags
