"""The processes of torchrun: every one asks its share of the rows, the first writes the files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Ranks:
    """This process among the ``world`` processes of a run."""

    rank: int = 0
    world: int = 1

    @classmethod
    def of_this_process(cls) -> Ranks:
        return cls(int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1)))

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def share(self, items: Sequence[Item]) -> Sequence[Item]:
        """Every ``world``-th item, beginning with this process's own."""
        return items[self.rank :: self.world]

    def journal(self, journal: Path) -> Path:
        """The journal of this process: the run's own for the first, one beside it for others."""
        if self.is_first:
            return journal
        return journal.with_name(f"{journal.stem}.rank{self.rank}{journal.suffix}")

    @staticmethod
    def others(journal: Path) -> list[Path]:
        """The journals that other processes left beside the run's own."""
        return sorted(journal.parent.glob(f"{journal.stem}.rank*{journal.suffix}"))

    def wait(self) -> None:
        """Wait for the other processes."""
        if self.world > 1:
            import torch.distributed as dist

            dist.barrier()
