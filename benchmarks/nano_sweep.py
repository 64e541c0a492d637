"""Models on this machine without VLMEvalKit, and a sweep of FindIt-Nano with one.

``python nano_sweep.py FOLDER ROWS`` asks about so many rendered scenes in :data:`FORMATS`; journal
and results lie in ``FOLDER``, and the exit status is that of ``run_findit.py sweep``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from vlmeval_findit.benchmarks import parse
from vlmeval_findit.cli import run_and_print
from vlmeval_findit.engine import Backend, Local, LocalBackend
from vlmeval_findit.models import (
    MODELS,
    NANO,
    SHIPPED,
    GenerateClient,
    HostMessage,
    LocalCompletion,
    LocalRunner,
    ModelEntry,
    RunSettings,
    from_host_message,
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


class HostedRunner:
    """A runner as :class:`vlmeval_findit.host.local.FindItLocalModel` has it."""

    takes_system = True

    def __init__(self, runner: LocalRunner) -> None:
        self._runner = runner
        self.cancelled_by = runner.cancelled_by

    def generate(self, message: HostMessage, dataset: str) -> Mapping[str, str]:
        return self.generate_batch([message], dataset)[0]

    def generate_batch(
        self, messages: Sequence[HostMessage], dataset: str, **how: Any
    ) -> list[Mapping[str, str]]:
        return self._replies(self._runner.answer_batch, messages, dataset, how)

    def generate_variants(
        self, messages: Sequence[HostMessage], dataset: str, **how: Any
    ) -> list[Mapping[str, str]]:
        return self._replies(self._runner.answer_variants, messages, dataset, how)

    def _replies(
        self,
        ask: Callable[..., Sequence[LocalCompletion]],
        messages: Sequence[HostMessage],
        dataset: str,
        how: Mapping[str, Any],
    ) -> list[Mapping[str, str]]:
        answers = ask([*map(from_host_message, messages)], parse(dataset), **how)
        return [
            {"prediction": answer.text, "extra_records": answer.recorded.as_json()}
            for answer in answers
        ]


def load_client(checkpoint: str, row: str, **settings: Any) -> GenerateClient:
    """Load a checkpoint as the row of the model table says."""
    runner = load_local(checkpoint, MODELS[row], RunSettings(**settings))
    return GenerateClient(HostedRunner(runner))


class HostlessModel(Local):
    """A model of FindIt's on this machine, made without VLMEvalKit."""

    def backend(self) -> Backend:
        return LocalBackend(partial(load_client, SHIPPED[self.name], self.name))


def main(folder: Path, rows: int) -> int:
    sweep = parse_sweep(f"{SWEEP}limit: {rows}\njournal: {folder / 'calls.jsonl'}", "sweep", folder)
    return run_and_print(sweep, [HostlessModel(ModelEntry(NANO))], folder / "best.yaml")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
