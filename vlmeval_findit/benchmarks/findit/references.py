"""Which picture shows the object of a query in its surroundings, to be marked there.

One reference a query, never of the scene or video that is asked about:

1. the first of the pictures that its shots were taken from, where the table knows them;
2. else a picture of the next query after it (from the table's end on, from its beginning) that is
   about the same object elsewhere, with the first box there;
3. else its own first shot, which is all object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from ...boxes.representation import Corners
from .query import Query, Sighting
from .sources import source_of

REFERENCE = "reference"
"""The kind of slices that says where marked references come from."""


class Origin(Enum):
    """Where a marked reference comes from, as slices of a score name it."""

    SHOT = "where the shot is from"
    OTHER_SCENE = "another scene"
    WHOLE_SHOT = "the shot as a whole"


class Reference(NamedTuple):
    """A picture to be marked; ``box`` is in its pixels (None: all of it is the object)."""

    picture: str
    box: Corners | None
    origin: Origin


@dataclass(frozen=True, slots=True)
class MarkedQuery(Query):
    """A query whose ``support`` is a marked picture; None where it has no reference at all."""

    origin: Origin | None = None

    @property
    def slices(self) -> Mapping[str, str]:
        return self.tags if self.origin is None else {**self.tags, REFERENCE: self.origin.value}


def references(queries: Sequence[Query], is_video: bool) -> list[Reference | None]:
    """The reference of every query of a table; None where nothing shows its object.

    Args:
        queries: all of the table, with all of their frames.
        is_video: whether images are frames, of which those of one video show one scene.
    """
    places: dict[str, list[int]] = {}
    for at, query in enumerate(queries):
        places.setdefault(query.label, []).append(at)
    made = []
    for at, query in enumerate(queries):
        same = places[query.label]
        after = same.index(at) + 1
        others = (queries[other] for other in (*same[after:], *same[: after - 1]))
        made.append(_reference(query, others, is_video))
    return made


def _reference(query: Query, others: Iterable[Query], is_video: bool) -> Reference | None:
    def is_asked(picture: str) -> bool:
        return (source_of(picture) if is_video else picture) in asked

    asked = {source_of(frame) if is_video else frame for frame in query.images}
    for seen in query.sightings:
        if not is_asked(seen.image):
            return Reference(*seen, Origin.SHOT)
    for other in others:
        for seen in _seen(other):
            if not is_asked(seen.image):
                return Reference(*seen, Origin.OTHER_SCENE)
    return Reference(query.support[0], None, Origin.WHOLE_SHOT) if query.support else None


def _seen(query: Query) -> Iterable[Sighting]:
    """The objects of a query, those of which something lies inside their picture."""
    truth = query.truth
    for (x1, y1, x2, y2), frame in zip(truth.boxes, truth.frames, strict=True):
        if min(x2, query.width) > max(x1, 0.0) and min(y2, query.height) > max(y1, 0.0):
            yield Sighting(query.images[frame], (x1, y1, x2, y2))
