"""Run a sweep with models that answer at once, and print the memory that it took.

``python sweep_memory.py FOLDER MODELS``, over the table of ``scale_runs.import_table``; with
``URL``, one model is asked there, in one format, in 32 calls at a time or in ``THREADS``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from engine_fakes import FakeDeployment, FakeModel, Message, Silent, demo_sweep, go, servers
from scale_runs import GRID, peak_mib

from vlmeval_findit.protocol import CallResult


class AtOnce(FakeModel):
    """Answers at once."""

    def generate(self, message: Message, dataset: str) -> str:
        return "[10, 20, 300, 900]"


class Counting(Silent):
    """Counts answers."""

    count = 0

    def answered(self, answers: Sequence[CallResult]) -> None:
        self.count += len(answers)


ONE_FORMAT = """
models: [{name: Any, served: stub, space: grid1000}]
datasets: [Scale]
representations: xyxy
outputs: text
"""


def main(folder: Path, models: int, url: str = "", threads: int = 32) -> dict[str, float]:
    """Run all formats of the table, by a number of models; or one format at a server."""
    sweep, watcher = demo_sweep(folder, ONE_FORMAT if url else GRID), Counting()
    host = servers(url, threads=threads) if url else FakeDeployment(AtOnce())
    (entry,) = sweep.models
    sweep = replace(
        sweep, models=tuple(replace(entry, name=f"M{at}", space="grid1000") for at in range(models))
    )
    before, start = peak_mib(), time.process_time()
    results = go(sweep, host, watcher=watcher)
    took = time.process_time() - start
    return {
        "calls": watcher.count,
        "cells": len(results),
        # A large journal is compressed at the end, under another name.
        "journal_mib": sum(path.stat().st_size for path in folder.glob("calls.jsonl*")) / 2**20,
        "before_mib": before,
        "peak_mib": peak_mib(),
        "took": took,
    }


if __name__ == "__main__":
    of_runs, models, *asked = sys.argv[1:]
    print(json.dumps(main(Path(of_runs), int(models), *asked[:1], *map(int, asked[1:]))))
