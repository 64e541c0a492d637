"""The items that wait for one server, by image: what goes next is found without a search."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, eq=False)
class Item:
    """What goes to a server at a time."""

    image: str
    """Names the content of its images; empty: none."""

    value: Any
    attempts: int = 0
    """Those that count as its own."""

    refusals: int = 0
    """The other ones."""

    reason: str = ""
    """Why the last one failed."""

    failed_at: set[str] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class Group:
    """Items over one image that wait for one server."""

    image: str
    items: deque[Item]


class Groups(OrderedDict[Group, None]):
    """Groups in order, and how many items they have."""

    items_left: int = 0

    def add(self, group: Group, *, first: bool = False) -> None:
        """Put a group at the end, or before all others; one without items is dropped."""
        if group.items:
            self[group] = None
            self.move_to_end(group, last=not first)
            self.items_left += len(group.items)

    def take(self, group: Group) -> Group:
        """Remove a group."""
        del self[group]
        self.items_left -= len(group.items)
        return group

    def take_first(self) -> Group:
        """Remove the first group."""
        return self.take(next(iter(self)))

    def take_last(self, most: int | None = None) -> Group:
        """Remove the last group, or so many of its items."""
        group = self.take(next(reversed(self)))
        if most is None:
            return group
        given = deque(group.items.pop() for _ in range(min(most, len(group.items))))
        given.reverse()
        self.add(group)
        return Group(group.image, given)


@dataclass(slots=True, eq=False)
class Backlog:
    """The items that wait for one server."""

    again: deque[Item] = field(default_factory=deque)
    """Further attempts, which go first."""

    new: Groups = field(default_factory=Groups)
    """Images of which nothing was asked."""

    reading: Groups = field(default_factory=Groups)
    """Images whose first call is in flight; their siblings wait for it."""

    ready: Groups = field(default_factory=Groups)
    """Images whose next item may go, oldest first."""

    def __len__(self) -> int:
        return len(self.again) + self.new.items_left + self.begun_items

    @property
    def begun_items(self) -> int:
        """Items that wait over images that are begun."""
        return self.ready.items_left + self.reading.items_left

    @property
    def open_images(self) -> int:
        """Images that are begun, and of which items wait."""
        return len(self.ready) + len(self.reading)

    def begin(self, *, hold_siblings: bool) -> tuple[Item, Group | None]:
        """Take the first item of the next new group, and the group where it waits for this item."""
        group = self.new.take_first()
        item = group.items.popleft()
        if hold_siblings:
            self.reading.add(group)
        else:
            self.ready.add(group, first=True)
        return item, group if hold_siblings and group.items else None

    def next_ready(self) -> Item:
        """Take the next item over an image that is begun."""
        group = self.ready.take_first()
        item = group.items.popleft()
        self.ready.add(group, first=True)
        return item

    def first_is_home(self, group: Group, *, answered: bool) -> None:
        """Let the siblings go; where the first got no answer, the next one is the first."""
        if group in self.reading:
            self.reading.take(group)
            if answered:
                self.ready.add(group)
            else:
                self.new.add(group, first=True)

    def give_all(self) -> tuple[list[Item], list[Group]]:
        """Hand over everything: further attempts, and groups that begin anew elsewhere."""
        again, groups = list(self.again), [*self.reading, *self.ready, *self.new]
        self.again.clear()
        for queue in (self.reading, self.ready, self.new):
            while queue:
                queue.take_first()
        # A first call that comes home later finds its group no more, wherever that went.
        return again, [Group(group.image, group.items) for group in groups]
