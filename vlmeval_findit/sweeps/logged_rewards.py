"""Rewards that a trainer logged, by step: TRL's GRPO keeps them in each checkpoint."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from ..core import read_json, validate
from .checkpoints import TRAINER_STATE

_MEAN = re.compile(r"rewards/(.+)/mean")


@dataclass(frozen=True, slots=True)
class LoggedRewards:
    """The mean rewards of the replies since the step that was logged before."""

    step: int
    means: Mapping[str, float]  # By the name of the reward function


def logged_rewards(checkpoint: Path) -> list[LoggedRewards]:
    """Return the rewards that were logged until a checkpoint; empty if none were.

    Raises:
        OSError: the trainer's file cannot be read.
        ValueError: it is not what transformers' trainer writes.
    """
    path = checkpoint / TRAINER_STATE
    if not path.is_file():
        return []
    state = validate(dict[str, Any], read_json(path))
    history = validate(list[dict[str, Any]], state.get("log_history", []))
    logged = []
    for line in history:
        means = _means_of(line)
        if means:
            logged.append(LoggedRewards(validate(int, line.get("step")), means))
    return logged


def _means_of(line: Mapping[str, Any]) -> dict[str, float]:
    means = {}
    for name, value in line.items():
        reward = _MEAN.fullmatch(name)
        # A reward that paid for no reply of a step has no mean.
        if reward is not None and isinstance(value, int | float) and isfinite(value):
            means[reward[1]] = float(value)
    return means
