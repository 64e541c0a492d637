"""The calls that a run wants of a batch service, small: there may be a million of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, KeysView
from pathlib import Path
from typing import NamedTuple

from .calls import Call, Cell, Keying
from .plan import WorkItem


class _Alike(NamedTuple):
    """What many calls have in common."""

    cell: Cell
    wanted_by: tuple[int, ...]
    shares_images: bool


class Wanted:
    """Calls without an answer, by their keys, in the order of the plan.

    Of each are kept its key and its row; it is made again when it is asked for.

    Args:
        units: the calls, one each; the content of their pictures does not change any more.
    """

    def __init__(self, units: Iterable[WorkItem]) -> None:
        self._calls: dict[str, tuple[_Alike, int]] = {}
        self._hashes: dict[Path, str] = {}
        self._keying: dict[Cell, Keying] = {}
        known: dict[_Alike, _Alike] = {}
        for (call,), shares_images in units:
            self._hashes.update(zip(call.images, call.asked.image_sha256, strict=True))
            alike = _Alike(call.cell, call.wanted_by, shares_images)
            self._calls[call.key] = known.setdefault(alike, alike), call.row

    def __len__(self) -> int:
        return len(self._calls)

    def __iter__(self) -> Iterator[str]:
        return iter(self._calls)

    def __getitem__(self, key: str) -> WorkItem:
        (cell, wanted_by, shares_images), row = self._calls[key]
        if cell not in self._keying:
            self._keying[cell] = Keying(cell, self._hashes.__getitem__)
        call = Call(self._keying[cell](row), cell, row, wanted_by)
        return WorkItem((call,), shares_images)

    def __delitem__(self, key: str) -> None:
        del self._calls[key]

    def keys(self) -> KeysView[str]:
        return self._calls.keys()

    @property
    def first(self) -> WorkItem:
        """The first of them; there is one."""
        return self[next(iter(self))]
