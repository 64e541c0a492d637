"""Models on this machine as the engine asks them, and a sweep of FindIt-Nano.

``python nano_sweep.py FOLDER ROWS`` asks about so many rendered scenes in :data:`FORMATS`; journal
and results lie in ``FOLDER``, and the exit status is that of ``run_findit.py sweep``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from vlmeval_findit.cli import run_and_print
from vlmeval_findit.engine import deployment_of
from vlmeval_findit.models import (
    MODELS,
    NANO,
    LocalClient,
    ModelEntry,
    RunSettings,
    load_local,
)
from vlmeval_findit.sweeps import parse_sweep

FORMATS = ("xyxy_json_bbox_2d", "cxcywh_json_bbox_2d", "all_json_bbox_2d", "xywh_json_bbox_2d")

SWEEP = f"""
models: [{NANO}]
datasets: [Scenes_mini]
representations: [xyxy, cxcywh, all, xywh]
outputs: json
keys: bbox_2d
"""


def load_client(checkpoint: str, row: str, **settings: Any) -> LocalClient:
    """Load a checkpoint as the row of the model table says."""
    return LocalClient(load_local(checkpoint, MODELS[row], RunSettings(**settings)))


def main(folder: Path, rows: int) -> int:
    sweep = parse_sweep(f"{SWEEP}limit: {rows}\njournal: {folder / 'calls.jsonl'}", "sweep", folder)
    # Several batches, so that a run can be stopped between two
    entry = ModelEntry(NANO, resources={"batch_size": 8})
    return run_and_print(sweep, [deployment_of(entry)], folder / "best.yaml")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
