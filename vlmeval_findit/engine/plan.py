"""From cells to calls: equal calls once, and all variants of one image together.

A model that keeps the images of its last message (or a server with a prefix cache) works out one
image once; so does the page cache of the disk.  Work is cut into units from the *whole* plan, not
from what is left of it: a run that was killed goes on with the very batches of one that was not.

A plan is a description: calls and their keys are made as they are asked for, those over one image
at a time.  What it keeps grows with the rows of tables and with their images, not with the calls.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from .calls import Call, Cell, ImageHash, Keyed, Keying, unread


class WorkItem(NamedTuple):
    """Calls that go to a model together; ``shares_images``: over the same images."""

    calls: tuple[Call, ...]
    shares_images: bool


@dataclass(frozen=True, slots=True)
class _Shown:
    """Which rows show which images, the same for all formats of a table.

    ``cells`` are the places of the cells that have just these rows; ``rows`` by the number of
    images the places of the rows that show them.
    """

    cells: list[int]
    rows: dict[int, array[int]]


@dataclass(frozen=True, slots=True)
class Plan:
    """The calls of cells.

    ``shown[i]`` are the files of the images with the number i, which count in the order of first
    use; most messages show one.  ``image_hash`` names their content.
    """

    cells: tuple[Cell, ...]
    shown: tuple[tuple[Path, ...], ...]
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

    @property
    def queries(self) -> int:
        """Rows of all cells: as many as there would be calls without equal ones."""
        return sum(len(cell.rows) for cell in self.cells)

    @property
    def images(self) -> int:
        """Distinct image files."""
        return len({path for images in self.shown for path in images})

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
    """How many calls go to a model together: over one image, and of one question.

    Calls over one image go together where there are ``shared_from`` of them; fewer are part of a
    batch.  Formats of one query share all that is dear; the few queries of one picture in a run of
    one format would leave a large batch in pieces.
    """

    variants: int = 32
    batch: int = 8
    shared_from: int = 2


def work_items(calls: Iterable[Call], sizes: ItemSizes) -> Iterator[WorkItem]:
    """Cut calls into units: those that share their images, else a batch of one question.

    Neighbours with the same images and scene belong together.  Where an image has one
    call only, as in a run of one format, neighbours of one question do.
    """
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
            if batch and not _joins(batch, call, sizes):
                yield WorkItem(tuple(batch), shares_images=False)
                batch = []
            batch.append(call)
    if batch:
        yield WorkItem(tuple(batch), shares_images=False)


def _joins(batch: Sequence[Call], call: Call, sizes: ItemSizes) -> bool:
    return len(batch) < sizes.batch and batch[-1].cell is call.cell


def unfinished(whole: Iterable[WorkItem], left: Container[str]) -> Iterator[WorkItem]:
    """The units with those of their calls that are left; units without any are gone."""
    for unit in whole:
        calls = tuple(call for call in unit.calls if call.key in left)
        if calls:
            yield WorkItem(calls, unit.shares_images)
