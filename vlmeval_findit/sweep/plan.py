"""From cells to calls: equal calls once, and all variants of one image together.

A model that keeps the images of its last message (or a server with a prefix cache) works out one
image once; so does the page cache of the disk.  Work is cut into units from the *whole* plan, not
from what is left of it: a run that was killed goes on with the very batches of one that was not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from .calls import Call, Cell, ImageHash, keyed


class Unit(NamedTuple):
    """Calls that go to a model together; ``shares_images``: over the same images."""

    calls: tuple[Call, ...]
    shares_images: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """The calls of cells.

    ``calls`` holds every call once, in the order of work; ``keys[i]`` are the keys of the rows of
    ``cells[i]``, in the order of its rows; ``images`` counts distinct image files.
    """

    cells: tuple[Cell, ...]
    calls: tuple[Call, ...]
    keys: tuple[tuple[str, ...], ...]
    images: int

    @property
    def queries(self) -> int:
        """Rows of all cells: as many as there would be calls without equal ones."""
        return sum(len(keys) for keys in self.keys)


def make_plan(cells: Sequence[Cell], image_hash: ImageHash) -> Plan:
    """Order the calls of cells by their images, which come in the order of first use.

    Raises:
        OSError: an image cannot be read.
    """
    by_images: dict[tuple[Path, ...], list[Call]] = defaultdict(list)
    seen: set[str] = set()
    keys = []
    for cell in cells:
        of_cell = []
        for index in cell.rows:
            made = keyed(cell, index, image_hash)
            of_cell.append(made.key)
            if made.key not in seen:
                seen.add(made.key)
                by_images[made.images].append(Call(made, cell, index))
        keys.append(tuple(of_cell))
    return Plan(
        cells=tuple(cells),
        calls=tuple(call for calls in by_images.values() for call in calls),
        keys=tuple(keys),
        images=len({path for images in by_images for path in images}),
    )


@dataclass(frozen=True, slots=True)
class UnitSizes:
    """How many calls go to a model together: over one image, and of one question.

    Calls over one image go together where there are ``shared_from`` of them; fewer are part of a
    batch.  Formats of one query share all that is dear; the few queries of one picture in a run of
    one format would leave a large batch in pieces.
    """

    variants: int = 32
    batch: int = 8
    shared_from: int = 2


def units(calls: Iterable[Call], sizes: UnitSizes) -> Iterator[Unit]:
    """Cut calls into units: those that share their images, else a batch of one question.

    Neighbours with the same images and scene belong together.  Where an image has one
    call only, as in a run of one format, neighbours of one question do.
    """
    batch: list[Call] = []
    for _, group in groupby(calls, key=lambda call: (call.images, *call.scene)):
        together = tuple(group)
        if len(together) >= sizes.shared_from:
            if batch:
                yield Unit(tuple(batch), shares_images=False)
                batch = []
            for start in range(0, len(together), sizes.variants):
                yield Unit(together[start : start + sizes.variants], shares_images=True)
            continue
        for call in together:
            if batch and not _joins(batch, call, sizes):
                yield Unit(tuple(batch), shares_images=False)
                batch = []
            batch.append(call)
    if batch:
        yield Unit(tuple(batch), shares_images=False)


def _joins(batch: Sequence[Call], call: Call, sizes: UnitSizes) -> bool:
    return len(batch) < sizes.batch and batch[-1].cell is call.cell


def unfinished(whole: Iterable[Unit], left: Container[str]) -> Iterator[Unit]:
    """The units with those of their calls that are left; units without any are gone."""
    for unit in whole:
        calls = tuple(call for call in unit.calls if call.key in left)
        if calls:
            yield Unit(calls, unit.shares_images)
