"""The processes of torchrun: each asks its share of the rows, the first writes the files.

They meet at barriers before and after. If one fails, the host's loop continues with the next
dataset and would meet the others at the wrong barrier: a share would be missing, and a process
could wait for an hour. So a process that fails ends all of them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from ..core.answers import error_line
from ..core.command import NO_MORE, SOME_FAILED
from ..core.files import is_disk_full

log = logging.getLogger(__name__)

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
        """Return every ``world``-th item from this process's first."""
        return items[self.rank :: self.world]

    @contextmanager
    def ending_together(self) -> Iterator[None]:
        """End this process with a status if it fails and is not alone; torchrun ends the others.

        Finished calls are in the journals.
        """
        try:
            yield
        except Exception as error:
            if self.world == 1:
                raise
            log.error("rank %d failed, so all processes end: %s", self.rank, error_line(error))
            raise SystemExit(NO_MORE if is_disk_full(error) else SOME_FAILED) from error

    def wait(self) -> None:
        """Wait for the other processes."""
        if self.world > 1:
            import torch.distributed as dist

            dist.barrier()
