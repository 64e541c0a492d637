"""Runs a sweep over a table of one's own with a model that answers at once, and says what memory
that took: ``python sweep_memory.py FOLDER MODELS``, where ``scale_runs.import_table`` made one.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from engine_fakes import FakeBackends, FakeModel, Message, Silent, demo_sweep, go
from measured import peak_mib
from scale_runs import GRID

from vlmeval_findit.core.answers import Answer


class AtOnce(FakeModel):
    """Answers without a thought."""

    def generate(self, message: Message, dataset: str) -> str:
        return "[10, 20, 300, 900]"


class Counting(Silent):
    """Keeps no answers."""

    count = 0

    def answered(self, answers: Sequence[Answer]) -> None:
        self.count += len(answers)


def main(folder: Path, models: int) -> dict[str, float]:
    """All formats of the table, by so many models."""
    sweep, watcher = demo_sweep(folder, GRID), Counting()
    (entry,) = sweep.models
    sweep = replace(
        sweep, models=tuple(replace(entry, name=f"M{at}", space="grid1000") for at in range(models))
    )
    before, start = peak_mib(), time.process_time()
    results = go(sweep, FakeBackends(AtOnce()), watcher=watcher)
    took = time.process_time() - start
    return {
        "calls": watcher.count,
        "cells": len(results),
        # A large one is compressed in the end, under another name.
        "journal_mib": sum(one.stat().st_size for one in folder.glob("calls.jsonl*")) / 2**20,
        "before_mib": before,
        "peak_mib": peak_mib(),
        "took": took,
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]))))
