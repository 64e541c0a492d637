"""Plans calls over a thousand pictures and walks through them as a sweep does, and says what that
took: ``python plan_memory.py CELLS``.  Nobody answers, and nothing is written.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from measured import peak_mib

from vlmeval_findit.benchmarks.findit.box_prompts import message
from vlmeval_findit.benchmarks.findit.dataset_names import parse
from vlmeval_findit.core.benchmark_protocol import PromptSet
from vlmeval_findit.core.folders import Folder
from vlmeval_findit.engine.calls import Cell, CellBuilder, Prompts
from vlmeval_findit.engine.journal.writer import Journal
from vlmeval_findit.engine.plan import Plan, calls_left, unanswered

ROWS = 1000
"""Rows of each cell, each about a picture of its own."""


def cells(folder: Path, count: int) -> list[Cell]:
    """Cells over the same rows, as the formats of a table are."""
    task = CellBuilder(None).task(parse("FindIt_Demo_xyxy_json"))
    query = task.queries[0]
    for at in range(ROWS):
        (folder / f"{at}.png").write_text(str(at))
    queries = {at: replace(query, index=at, images=(f"{at}.png",)) for at in range(ROWS)}
    asked = replace(task, queries=queries)
    prompts = Prompts(asked, Folder("Demo", folder, "test"), PromptSet("standard", message))
    rows = tuple(queries)
    return [Cell("Model", prompts, rows, (), {"seed": at}) for at in range(count)]


def main(count: int) -> dict[str, float]:
    """Counts what is left, cuts all of it into units, and makes the keys of every cell."""
    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "calls.jsonl") as journal:
        asked, start = cells(Path(folder), count), time.process_time()
        plan = Plan(asked, unanswered(journal, False))
        left = calls_left(plan, journal)
        waits, done = list(left.waits), 0
        for unit in plan:
            for at in (at for call in unit.calls for at in call.needed_by):
                waits[at] -= 1
                if not waits[at]:
                    done += sum(1 for _ in plan.cells[at].call_keys())
        return {"calls": left.left, "done": done, "took": time.process_time() - start}


if __name__ == "__main__":
    print(json.dumps({**main(int(sys.argv[1])), "peak_mib": peak_mib()}))
