"""A sweep as a ``--config`` file of VLMEvalKit's own runner."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..benchmarks import benchmark_of
from ..core.files import atomic_write
from ..core.settings import CONFIDENCES_VARIABLE
from ..sweeps.config import Sweep, all_questions


class ExportError(ValueError):
    """A sweep that VLMEvalKit's file cannot say; the message says why."""


def host_config(sweep: Sweep) -> dict[str, Any]:
    """The content of the file: every model runs on every dataset of it.

    Raises:
        ExportError: models have different formats or spaces, or a stage waits for results.
    """
    if len(sweep.stages) > 1:
        raise ExportError("a stage that waits for the best format of another cannot be exported")
    if sweep.race is not None:
        raise ExportError("a race cannot be exported: VLMEvalKit's runner asks everything")
    wanted = {entry.name: tuple(all_questions(sweep, entry.name)) for entry in sweep.models}
    if len(set(wanted.values())) > 1:
        raise ExportError(
            "the models have formats of their own, but VLMEvalKit runs every model on every "
            "dataset of a file: export one model at a time"
        )
    said = {(repr(entry.space), repr(entry.reads_like)) for entry in sweep.models}
    if len(said) > 1:
        raise ExportError("the models differ in space or reads_like: export one model at a time")
    if asked := [entry.name for entry in sweep.models if entry.provider]:
        raise ExportError(f"{asked[0]} names a provider: write a FindItProvider entry by hand")
    first = sweep.models[0]
    scoring: dict[str, Any] = {"space": first.space, "reads_like": first.reads_like}
    more = {name: value for name, value in scoring.items() if value is not None}
    if sweep.skip_missing:
        more["skip_missing"] = True
    return {
        # Without a class VLMEvalKit takes its own entry of this name.
        "model": {entry.name: {**entry.settings, **entry.resources} for entry in sweep.models},
        "data": {
            asked.name: {
                "class": benchmark_of(asked.name).host_class(asked),
                "dataset": asked.name,
                **more,
            }
            for asked in wanted[first.name]
        },
    }


def export(sweep: Sweep, path: Path) -> int:
    """Write the file, and say how VLMEvalKit's runner is started with it."""
    config = host_config(sweep)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as f:
        json.dump(config, f, indent=2)
        f.write("\n")
    print(f"{len(config['model'])} models x {len(config['data'])} datasets in {path}")
    limit = f" --limit {sweep.limit}" if sweep.limit else ""
    more = f"{CONFIDENCES_VARIABLE}=1 " if sweep.confidences else ""
    flags = f"--config {path} --work-dir {sweep.work_dir}{limit}"
    print(f"{more}PRED_FORMAT=json python -m vlmeval {flags}")
    return 0
