"""Batches of the sweeps of a folder, which runs with other journals must not pay again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ..core import read_text, write_text_once
from ..storage import SWEEP_JOURNAL
from .batch_backend import BatchLedger
from .calls import Cell
from .journal.view import JournalView

# In a folder: the journals of its sweeps in batches that lie elsewhere, a path from it a line
_ELSEWHERE = ".batch_journals"


def note_batch_journal(folder: Path, journal: Path) -> None:
    """Note where a sweep in batches has its journal, if it is not in its folder of results."""
    named = os.path.relpath(journal, folder)
    noted = _noted(folder)
    if named not in (SWEEP_JOURNAL, *noted):
        folder.mkdir(parents=True, exist_ok=True)
        write_text_once(folder / _ELSEWHERE, "".join(f"{path}\n" for path in (*noted, named)))


def _noted(folder: Path) -> list[str]:
    path = folder / _ELSEWHERE
    return read_text(path).splitlines() if path.is_file() else []


def _journals_of(folder: Path) -> Iterator[Path]:
    yield folder / SWEEP_JOURNAL
    for named in _noted(folder):
        yield Path(os.path.normpath(folder / named))


@dataclass(frozen=True, slots=True)
class PendingBatches:
    """The batches that sweeps of a folder have outstanding, by their journals."""

    ledgers: Mapping[Path, BatchLedger]

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Read the journals of a folder's sweeps."""
        ledgers = {}
        for path in _journals_of(folder):
            if path.is_file():
                with JournalView(path) as journal:
                    ledgers[path] = BatchLedger(journal)
        return cls({path: ledger for path, ledger in ledgers.items() if ledger.open})

    def refuse(self, cell: Cell, own: Path) -> None:
        """Refuse a cell with calls on their way, but those that its own journal has answers to.

        Raises ValueError: they would be paid twice.
        """
        if not self.ledgers:
            return
        keys = set(cell.call_keys())
        if own.is_file():
            with JournalView(own) as journal:
                keys = {key for key in keys if key not in journal}
        for path, ledger in self.ledgers.items():
            for batch in ledger.batches.values():
                calls = len(batch.open & keys)
                if calls:
                    raise ValueError(
                        f"{cell.model} on {cell.dataset.name}: {calls} of these calls are on their "
                        f"way in {batch}, by a sweep or search of this folder ({path}): type its "
                        f"command again, with --batch {batch.options['kind']}, to collect them "
                        "first; or use another --work-dir to ask, and pay, them again"
                    )
