"""The items that wait for one server, by image: what goes next is found without a search."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


@dataclass(slots=True, eq=False)
class Item:
    """What goes to a server at a time.

    ``image`` names the content of its images (empty: none); ``attempts`` are those that count as
    its own, ``refusals`` the others; ``reason`` is why the last one failed, ``failed_at`` where.
    """

    image: str
    value: Any
    attempts: int = 0
    refusals: int = 0
    reason: str = ""
    failed_at: set[str] = field(default_factory=set)

    @property
    def was_tried(self) -> bool:
        return bool(self.attempts or self.refusals)


class Reading(Enum):
    """What a server knows of an image."""

    NOT_BEGUN = "nothing"
    FIRST = "it reads it: the first call is in flight, and its siblings wait"
    DONE = "it has read it"


@dataclass(slots=True, eq=False)
class Group:
    """Items over one image that wait for one server."""

    image: str
    items: deque[Item]
    reading: Reading = Reading.NOT_BEGUN


@dataclass(slots=True, eq=False)
class Backlog:
    """The items that wait for one server.

    ``again`` are further attempts, which go first; ``new`` are groups of which nothing was asked,
    ``ready`` those of which the next item may go, oldest first; the numbers count their items.
    """

    again: deque[Item] = field(default_factory=deque)
    new: deque[Group] = field(default_factory=deque)
    ready: deque[Group] = field(default_factory=deque)
    new_items: int = 0
    ready_items: int = 0
    _reading: dict[Group, None] = field(default_factory=dict)
    _reading_items: int = 0

    def __len__(self) -> int:
        return len(self.again) + self.new_items + self.begun_items

    @property
    def begun_items(self) -> int:
        """Items that wait over images that are begun."""
        return self.ready_items + self._reading_items

    @property
    def open_images(self) -> int:
        """Images that are begun, and of which items wait."""
        return len(self.ready) + len(self._reading)

    def add(self, group: Group) -> None:
        """Take a group of which nothing was asked here."""
        self.new.append(group)
        self.new_items += len(group.items)

    def begin(self, *, hold_siblings: bool) -> tuple[Item, Group | None]:
        """The first item of the next new group, and the group, where it waits for this item."""
        group = self.new.popleft()
        self.new_items -= len(group.items)
        return self._first(group, hold_siblings=hold_siblings)

    def next_ready(self, *, hold_siblings: bool) -> tuple[Item, Group | None]:
        """The next item over an image that is begun; a group too, where it is a first one again."""
        group = self.ready.popleft()
        self.ready_items -= len(group.items)
        if group.reading is Reading.NOT_BEGUN:
            return self._first(group, hold_siblings=hold_siblings)
        item = group.items.popleft()
        if group.items:
            self.ready.appendleft(group)
            self.ready_items += len(group.items)
        return item, None

    def _first(self, group: Group, *, hold_siblings: bool) -> tuple[Item, Group | None]:
        item = group.items.popleft()
        if not group.items:
            return item, None
        if hold_siblings:
            group.reading = Reading.FIRST
            self._reading[group] = None
            self._reading_items += len(group.items)
            return item, group
        group.reading = Reading.DONE
        self.ready.appendleft(group)
        self.ready_items += len(group.items)
        return item, None

    def first_is_home(self, group: Group, *, answered: bool) -> None:
        """Let the siblings go; where the first got no answer, the next one is the first."""
        if group not in self._reading:
            return
        del self._reading[group]
        self._reading_items -= len(group.items)
        group.reading = Reading.DONE if answered else Reading.NOT_BEGUN
        self.ready.append(group)
        self.ready_items += len(group.items)

    def give_new(self) -> Group | None:
        """Hand over the last group of which nothing was asked."""
        if not self.new:
            return None
        group = self.new.pop()
        self.new_items -= len(group.items)
        return group

    def give_begun(self, most: int) -> Group | None:
        """Hand over so many items, at most, of the group that was begun last."""
        group = next(reversed(self._reading), None) or (self.ready[-1] if self.ready else None)
        if group is None or most < 1:
            return None
        given = deque(group.items.pop() for _ in range(min(most, len(group.items))))
        given.reverse()
        if group in self._reading:
            self._reading_items -= len(given)
            if not group.items:
                del self._reading[group]
        else:
            self.ready_items -= len(given)
            if not group.items:
                self.ready.pop()
        return Group(group.image, given)

    def give_all(self) -> tuple[list[Item], list[Group]]:
        """Hand over everything: further attempts, and groups that begin anew elsewhere."""
        again, groups = list(self.again), [*self._reading, *self.ready, *self.new]
        for queue in (self.again, self._reading, self.ready, self.new):
            queue.clear()
        self.new_items = self.ready_items = self._reading_items = 0
        return again, [Group(group.image, group.items) for group in groups]
