"""From cells to calls: equal calls once, and all variants of one image together.

Work is cut into items from the *whole* plan, not from what is left of it: a run that was killed
goes on with the very batches of one that was not.  Calls and their keys are made as they are asked
for; what a plan keeps grows with the rows of tables and with their images, not with the calls.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from .calls import Call, Cell, ImageHash, Keyed, Keying, unread


class WorkItem(NamedTuple):
    """Calls that go to a model together."""

    calls: tuple[Call, ...]
    shares_images: bool
    """Whether they are over the same images."""


class _Shown(NamedTuple):
    """Which rows show which images, the same for all formats of a table."""

    cells: list[int]
    """The places of the cells that have just these rows."""
    rows: dict[int, array[int]]
    """By the number of images, the places of the rows that show them."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The calls of cells."""

    cells: tuple[Cell, ...]
    shown: tuple[tuple[Path, ...], ...]
    """The files of images by their numbers, in the order of first use; most messages show one."""
    image_hash: ImageHash
    _rows: tuple[tuple[_Shown, ...], ...]
    _alike: dict[int, tuple[int, ...]]

    @property
    def calls(self) -> Iterator[Call]:
        """Every call once, in the order of work."""
        return self._calls_over(range(len(self.shown)))

    @property
    def unread(self) -> Iterator[Call]:
        """The calls over images that cannot be read."""
        return self._calls_over(
            number
            for number, images in enumerate(self.shown)
            if any(unread(self.image_hash(path)) is not None for path in images)
        )

    def _calls_over(self, numbers: Iterable[int]) -> Iterator[Call]:
        keying = [Keying(cell, self.image_hash) for cell in self.cells]
        for number in numbers:
            yield from self._over(number, keying)

    def _over(self, number: int, keying: Sequence[Callable[[int], Keyed]]) -> Iterator[Call]:
        """The calls over some images, in the order of cells and of their rows.

        Equal calls are over images of the same content, which may lie in several files; the first
        of them is made.
        """
        wanted = sorted(
            (at, place, one)
            for one in self._alike.get(number, (number,))
            for shown in self._rows[one]
            for at in shown.cells
            for place in shown.rows[one]
        )
        first: dict[str, tuple[Keyed, int, int, int]] = {}
        by: dict[str, list[int]] = {}
        for at, place, one in wanted:
            row = self.cells[at].rows[place]
            made = keying[at](row)
            if made.key not in first:
                first[made.key], by[made.key] = (made, at, row, one), [at]
            elif by[made.key][-1] != at:
                by[made.key].append(at)
        for key, (made, at, row, one) in first.items():
            if one == number:
                yield Call(made, self.cells[at], row, tuple(by[key]))


def make_plan(cells: Sequence[Cell], image_hash: ImageHash) -> Plan:
    """Order the calls of cells by their images, which come in the order of first use.

    Raises:
        OSError: an image cannot be read.
    """
    numbers: dict[tuple[Path, ...], int] = {}
    known: dict[bytes, _Shown] = {}
    for at, cell in enumerate(cells):
        images = map(cell.prompts.images, cell.rows)
        by_row = array("L", (numbers.setdefault(one, len(numbers)) for one in images))
        shown = known.get(by_row.tobytes())
        if shown is None:
            shown = known[by_row.tobytes()] = _Shown([], {})
            for place, number in enumerate(by_row):
                shown.rows.setdefault(number, array("L")).append(place)
        shown.cells.append(at)
    rows: list[list[_Shown]] = [[] for _ in numbers]
    for shown in known.values():
        for number in shown.rows:
            rows[number].append(shown)
    by_content: dict[tuple[str, ...], list[int]] = {}
    for files, number in numbers.items():
        by_content.setdefault(tuple(map(image_hash, files)), []).append(number)
    alike = [tuple(group) for group in by_content.values() if len(group) > 1]
    return Plan(
        cells=tuple(cells),
        shown=tuple(numbers),
        image_hash=image_hash,
        _rows=tuple(map(tuple, rows)),
        _alike={number: group for group in alike for number in group},
    )


@dataclass(frozen=True, slots=True)
class ItemSizes:
    """How many calls go to a model together."""

    variants: int = 32
    """The most over one image: formats of one query share all that is dear."""
    batch: int = 8
    """The most of one question."""
    shared_from: int = 2
    """The fewest over one image that go together; the few queries of one picture in a run of one
    format would leave a large batch in pieces."""


def work_items(calls: Iterable[Call], sizes: ItemSizes) -> Iterator[WorkItem]:
    """Cut calls into items: neighbours over the same images, else a batch of one question."""
    batch: list[Call] = []
    for _, group in groupby(calls, key=lambda call: (call.images, *call.scene)):
        together = tuple(group)
        if len(together) >= sizes.shared_from:
            if batch:
                yield WorkItem(tuple(batch), shares_images=False)
                batch = []
            for start in range(0, len(together), sizes.variants):
                yield WorkItem(together[start : start + sizes.variants], shares_images=True)
            continue
        for call in together:
            if batch and (len(batch) == sizes.batch or batch[-1].cell is not call.cell):
                yield WorkItem(tuple(batch), shares_images=False)
                batch = []
            batch.append(call)
    if batch:
        yield WorkItem(tuple(batch), shares_images=False)


def unfinished(whole: Iterable[WorkItem], is_left: Callable[[Call], bool]) -> Iterator[WorkItem]:
    """The items with those of their calls that are left; items without any are gone."""
    for item in whole:
        if calls := tuple(filter(is_left, item.calls)):
            yield WorkItem(calls, item.shares_images)
