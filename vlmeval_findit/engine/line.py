"""Which call is asked next, and where: all calls over a picture together, one of them first.

A server that keeps what it saw of a picture (a prefix cache) works it out once, if the calls over
it come to that server, near each other in time, and not all at the same moment: what is asked while
the first is still read is worked out again.  So the first call over a picture at a place is asked
alone, and its siblings when it has come home, answered or not; meanwhile the picture before is
finished and the one after begun.  Few pictures are open at a time, since caches are bounded.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby
from typing import NamedTuple

from ..core.routing import Place, has_room, is_half_free, owner
from .backend import image_name
from .plan import WorkItem

_AHEAD = 8
"""Pictures a place to look at: among so many is as good as always one for every place."""

_OPEN = 2
"""Pictures a place that are begun at least: one at work, the first call of the next."""


class Siblings(Enum):
    """When the other calls over a picture may be asked."""

    AT_ONCE = "beside the first"
    AFTER_THE_FIRST = "when the first has come home"


@dataclass(slots=True, eq=False)
class Picture:
    """What is asked about the same images: ``name`` is of their content, empty where there is none.

    ``calls`` are those of the whole picture; ``asked`` are the places where a first call is on its
    way, ``known`` those where one came home; ``adopted_by`` is the place that answers in place of
    its owner (empty: none).
    """

    name: str
    units: deque[WorkItem]
    calls: int = 0
    adopted_by: str = ""
    asked: set[str] = field(default_factory=set)
    known: set[str] = field(default_factory=set)


class Taken(NamedTuple):
    """A unit that is asked now, and where it belongs."""

    unit: WorkItem
    place: str
    picture: Picture

    @property
    def has_siblings(self) -> bool:
        """Whether other calls are over the same images."""
        return self.picture.calls > 1


def pictures_of(units: Iterable[WorkItem]) -> Iterator[Picture]:
    """Units that follow each other over the same images, together."""
    for name, group in groupby(units, key=image_name):
        if name:
            together = deque(group)
            yield Picture(name, together, sum(len(unit.calls) for unit in together))
        else:
            yield from (Picture(name, deque([unit])) for unit in group)


class Line:
    """The units that wait; nothing here is for several threads at a time.

    Args:
        coming: the units, in the order of work.
        places: who answers now; each call takes another look.
        siblings: when the other calls over a picture may be asked.
    """

    def __init__(
        self,
        coming: Iterator[WorkItem],
        places: Callable[[], Sequence[Place]],
        siblings: Siblings = Siblings.AFTER_THE_FIRST,
    ) -> None:
        self._coming = pictures_of(coming)
        self._places = places
        self._siblings = siblings
        self._waiting: deque[Picture] = deque()
        self._open: list[Picture] = []
        self._busy: Counter[str] = Counter()

    def fill(self, units: int) -> None:
        """Look so many pictures ahead at least; whoever makes the plan must call it."""
        ahead = max(units, _AHEAD * len(self._places()))
        while len(self._waiting) < ahead and (picture := next(self._coming, None)):
            self._waiting.append(picture)

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits, of what was looked at."""
        return not self._waiting and not self._open

    def drop(self) -> None:
        """Ask nothing more of what waits."""
        self._waiting.clear()
        self._open.clear()

    def take(self) -> Taken | None:
        """What is asked now; None: nothing, before something comes home."""
        places = self._places()
        if not any(has_room(place, self._busy) for place in places):
            return None
        for picture in self._open:
            place = self._owner(picture, places)
            if has_room(place, self._busy) and self._may_ask(picture, place):
                return self._take(picture, place)
        for picture in self._waiting:
            place = self._owner(picture, places)
            if has_room(place, self._busy) and self._may_open(place, places):
                return self._begin(picture, place)
        return self._help(places)

    def _help(self, places: Sequence[Place]) -> Taken | None:
        """What a place does that has nothing of its own: it adopts a picture that nobody began,
        else it answers single calls over one that another place has begun.
        """
        own = {self._owner(one, places).name for one in (*self._open, *self._waiting)}
        for place in places:
            if place.up and place.name not in own and is_half_free(place, self._busy):
                if self._waiting:
                    picture = self._waiting[0]
                    picture.adopted_by = place.name
                    return self._begin(picture, place)
                for picture in self._open:
                    full = not has_room(self._owner(picture, places), self._busy)
                    if full and self._may_ask(picture, place):
                        return self._take(picture, place)
        return None

    def done(self, taken: Taken) -> None:
        """It came home, whatever came of it."""
        self._busy[taken.place] -= 1
        taken.picture.known.add(taken.place)

    def _may_ask(self, picture: Picture, place: Place) -> bool:
        if self._siblings is Siblings.AT_ONCE:
            return True
        return place.name in picture.known or place.name not in picture.asked

    def _may_open(self, place: Place, places: Sequence[Place]) -> bool:
        """Whether the pictures that are open there leave it, or will leave it, without work."""
        own = [one for one in self._open if self._owner(one, places).name == place.name]
        return len(own) < _OPEN or sum(len(one.units) for one in own) < place.limit

    def _owner(self, picture: Picture, places: Sequence[Place]) -> Place:
        adopted = (one for one in places if one.name == picture.adopted_by and one.up)
        return next(adopted, None) or owner(picture.name, places, self._busy)

    def _begin(self, picture: Picture, place: Place) -> Taken:
        self._waiting.remove(picture)
        self._open.append(picture)
        return self._take(picture, place)

    def _take(self, picture: Picture, place: Place) -> Taken:
        unit = picture.units.popleft()
        picture.asked.add(place.name)
        if not picture.units:
            self._open.remove(picture)
        self._busy[place.name] += 1
        return Taken(unit, place.name, picture)
