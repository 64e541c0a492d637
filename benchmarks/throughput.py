"""Ask servers for all formats of a table, and print time and memory.

``python throughput.py FOLDER LIMIT THREADS URL…``, over the table of ``scale_runs.import_table`` in
``FOLDER``, with ``THREADS`` calls at a time at each server.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from engine_fakes import Silent, demo_sweep, go, servers
from scale_runs import GRID, peak_mib

from vlmeval_findit.protocol import CallResult

SERVED = "models: [{name: Stub, served: stub, space: grid1000}]"


class Clock(Silent):
    """Counts answers, and the processor time from the first to the last."""

    count = failed = first = 0
    start = used = 0.0

    def answered(self, answers: Sequence[CallResult]) -> None:
        now = time.process_time()
        if not self.count:
            self.first, self.start = len(answers), now
        self.count += len(answers)
        self.failed += sum(answer.error is not None for answer in answers)
        self.used = now - self.start


def main(folder: Path, limit: int, threads: int, urls: Sequence[str]) -> Mapping[str, float]:
    """Run a sweep over the first rows of the table."""
    sweep = demo_sweep(folder / "run", GRID.replace("models: FullImage", SERVED), limit=limit)
    clock = Clock()
    go(sweep, servers(",".join(urls), threads=threads), watcher=clock)
    return {
        "calls": clock.count,
        "failed": clock.failed,
        "ms_a_call": 1000 * clock.used / (clock.count - clock.first),
        "peak_mib": peak_mib(),
    }


if __name__ == "__main__":
    place, rows, each, *urls = sys.argv[1:]
    print(json.dumps(main(Path(place), int(rows), int(each), urls)))
