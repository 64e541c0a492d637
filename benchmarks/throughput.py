"""Asks servers for all formats of a table of one's own, and says what that took.

``python throughput.py FOLDER LIMIT THREADS URL…``, where ``scale_runs.import_table`` made the table
in ``FOLDER``: so many calls at a time at each server.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from engine_fakes import Silent, demo_sweep, go
from measured import peak_mib
from scale_runs import GRID

from vlmeval_findit.core.answers import Answer
from vlmeval_findit.engine.backend import CallOptions
from vlmeval_findit.engine.server_backends import ServerBackends

SERVED = "models: [{name: Stub, served: stub, space: grid1000}]"


class Clock(Silent):
    """Counts answers, and the processor from the first to the last: neither start-up nor what
    follows is in it.
    """

    count = failed = first = 0
    began = used = 0.0

    def answered(self, answers: Sequence[Answer]) -> None:
        now = time.process_time()
        if not self.count:
            self.first, self.began = len(answers), now
        self.count += len(answers)
        self.failed += sum(answer.error is not None for answer in answers)
        self.used = now - self.began


def main(folder: Path, limit: int, threads: int, urls: Sequence[str]) -> Mapping[str, float]:
    """A sweep over the first rows of the table."""
    sweep = demo_sweep(folder / "run", GRID.replace("models: FullImage", SERVED), limit=limit)
    clock = Clock()
    go(sweep, ServerBackends(urls, CallOptions(threads=threads)), watcher=clock)
    return {
        "calls": clock.count,
        "failed": clock.failed,
        "ms_a_call": 1000 * clock.used / (clock.count - clock.first),
        "peak_mib": peak_mib(),
    }


if __name__ == "__main__":
    place, rows, each, *servers = sys.argv[1:]
    print(json.dumps(main(Path(place), int(rows), int(each), servers)))
