"""Who answers calls over a picture: the same server every time, whoever asks.

Rendezvous hashing (Thaler and Ravishankar, "Using name-based mappings to increase hit rates",
1998): every server has a number for every picture, and the highest goes first.  Runners and
machines that know the same names agree without a word, and a server that goes takes only its own
pictures along.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import inf
from typing import NamedTuple


class Place(NamedTuple):
    """A server or a replica: its name, the calls it takes at a time, whether it answers now."""

    name: str
    limit: float = inf
    up: bool = True


Busy = Mapping[str, int]
"""Calls on their way, by place."""


@lru_cache(maxsize=1024)
def ranked(picture: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Names in the order in which they are asked about a picture.

    >>> ranked("a picture's hash", ("http://a", "http://b", "http://c"))
    ('http://c', 'http://a', 'http://b')
    >>> ranked("a picture's hash", ("http://c", "http://a"))
    ('http://c', 'http://a')
    """

    def weight(name: str) -> bytes:
        return hashlib.sha256(f"{name}\0{picture}".encode()).digest()

    return tuple(sorted(names, key=weight, reverse=True))


def owner(picture: str, places: Sequence[Place], busy: Busy) -> Place:
    """Where calls over a picture belong, whether there is room or not.

    Without a picture (an empty name) it is the place with the smallest share of its calls.
    """
    there = _up(places)
    if not picture:
        return min(there, key=lambda place: busy.get(place.name, 0) / place.limit)
    names = tuple(place.name for place in there)
    return there[names.index(ranked(picture, names)[0])]


def home(picture: str, places: Sequence[Place], busy: Busy) -> Place | None:
    """The owner of a picture; None where it has no room now."""
    place = owner(picture, places, busy)
    return place if has_room(place, busy) else None


def has_room(place: Place, busy: Busy) -> bool:
    """Whether a place takes another call."""
    return busy.get(place.name, 0) < place.limit


def is_half_free(place: Place, busy: Busy) -> bool:
    """Whether a place has so little to do that it can help others."""
    return busy.get(place.name, 0) <= place.limit / 2


def spill(picture: str, places: Sequence[Place], busy: Busy) -> Place | None:
    """Who helps out where the home of a picture is full; None: wait for it.

    Only a place that is not half as full helps: it has to work the picture out once more, which is
    worth it where it would stand idle, and not for the one call that comes a moment too early.
    """
    there = {place.name: place for place in _up(places)}
    for name in ranked(picture, tuple(there))[1:] if picture else ():
        if is_half_free(there[name], busy):
            return there[name]
    return None


def _up(places: Sequence[Place]) -> Sequence[Place]:
    """Those that answer now; where none does, all."""
    return [place for place in places if place.up] or places
