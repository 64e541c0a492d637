"""Checkpoints of a training: which are complete, and how to evaluate a checkpoint.

A checkpoint is a folder whose name ends in its step, as ``checkpoint-300``.  Its runs have the
model name ``NAME-step-300``, by which :mod:`..leaderboard.learning_curve` orders them.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core import error_line, first_few
from ..models import READ_ERRORS, fault_of, is_one_of_many, refuse_missing, shards_of
from ..storage import check_model_name

_STEP = re.compile(r"(?:.*\D)?(\d+)")
_MODEL = re.compile(r"(.+)-step-(\d+)")
_CONFIGS = ("config.json", "adapter_config.json")
_TRAINER = "training_args.bin"
TRAINER_STATE = "trainer_state.json"
"""Files that transformers' trainer writes before and after the weights' neighbours."""


@dataclass(frozen=True, slots=True, order=True)
class Checkpoint:
    """A checkpoint of a training."""

    step: int
    path: Path

    def model(self, name: str) -> str:
        """Return the model name of its runs.

        >>> Checkpoint(300, Path("run/checkpoint-300")).model("my-ft")
        'my-ft-step-300'
        """
        return check_model_name(f"{name}-step-{self.step}")


def name_and_step(model: str) -> tuple[str, int] | None:
    """Return the training's name and the step of a model name; None if it is not a checkpoint's.

    >>> name_and_step("my-ft-step-300"), name_and_step("Qwen3-VL-8B")
    (('my-ft', 300), None)
    """
    match = _MODEL.fullmatch(model)
    return (match[1], int(match[2])) if match else None


def checkpoints_in(folder: Path) -> list[Checkpoint]:
    """Return the complete checkpoints in a folder by their step.

    Raises:
        ValueError: two folders have the same step.
    """
    by_step: dict[int, Path] = {}
    for checkpoint in _named_by_step(folder):
        if not is_complete(checkpoint.path):
            continue
        step = checkpoint.step
        path = checkpoint.path
        other = by_step.setdefault(step, path)
        if other != path:
            raise ValueError(f"{other} and {path} are both step {step}: move one of them away")
    return [Checkpoint(step, path) for step, path in sorted(by_step.items())]


def unfinished_in(folder: Path) -> list[Checkpoint]:
    """Return the checkpoints by their step that have a configuration and are not complete.

    They are being written, or what wrote them was ended.
    """
    begun = [each for each in _named_by_step(folder) if _has_configuration(each.path)]
    return sorted(each for each in begun if not is_complete(each.path))


def _named_by_step(folder: Path) -> list[Checkpoint]:
    checkpoints = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        match = _STEP.fullmatch(path.name)
        if match is not None:
            checkpoints.append(Checkpoint(int(match[1]), path))
    return checkpoints


def _has_configuration(folder: Path) -> bool:
    return any((folder / name).is_file() for name in _CONFIGS)


def is_complete(folder: Path) -> bool:
    """Return whether a checkpoint is written to its end."""
    return what_is_missing(folder) is None


def what_is_missing(folder: Path) -> str | None:
    """Return what a checkpoint still lacks; None if it is written to its end.

    Then its configuration is there, every file of weights is as long as its header says, shards
    have their index and no shard of it is missing, and transformers' trainer has written its last
    file.
    """
    try:
        if not _has_configuration(folder):
            return f"neither {' nor '.join(_CONFIGS)}"
        if (folder / _TRAINER).is_file() and not (folder / TRAINER_STATE).is_file():
            return f"{TRAINER_STATE} is missing"
        weights = {*folder.glob("*.safetensors"), *folder.glob("*.bin")} - {folder / _TRAINER}
        indexes = list(folder.glob("*.index.json"))
        for index in indexes:
            weights |= {*shards_of(index)}
        if not weights:
            return "no weights"
        missing = sorted(file.name for file in weights if not file.exists())
        if missing:
            return f"{first_few(missing)} missing"
        if not indexes and any(map(is_one_of_many, weights)):
            return "shards without their index"  # It is written after the last
        faults = {file.name: fault_of(file) for file in sorted(weights)}
        return next((f"{name}: {why}" for name, why in faults.items() if why is not None), None)
    except READ_ERRORS as error:
        # It is being written, was just deleted, or is something else
        return error_line(error)


def is_refused(checkpoint: Checkpoint) -> bool:
    """Return whether `run` refuses a checkpoint by its files: weights are not there."""
    try:
        refuse_missing(str(checkpoint.path))
    except ValueError:
        return True
    return False


def evaluate_checkpoint(checkpoint: Checkpoint, name: str, flags: Sequence[str]) -> int:
    """Run ``findit run`` on a checkpoint in another process; returns the exit status.

    Its end frees the memory of the model. ``flags`` are flags of ``run``, among them ``--data``.
    """
    model = f"{checkpoint.model(name)}={checkpoint.path}"
    command = [sys.executable, "-m", "vlmeval_findit", "run", "--model", model, *flags]
    # A terminal's Ctrl-C reaches this process only, and is passed on: two would end it at once.
    with subprocess.Popen(command, process_group=0) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                process.send_signal(signal.SIGINT)
            except BaseException:
                process.terminate()
                raise
