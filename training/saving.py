"""What a training leaves on disk: the checkpoint to ship, and all that going on needs."""

from __future__ import annotations

import copy
import io
from pathlib import Path
from typing import Any, Protocol

import torch

from vlmeval_findit.core.files import write_once

CHECKPOINT = "checkpoint"
"""The folder of the checkpoint, in that of the training."""

STATE = "training.pt"
"""What going on needs, in the folder of the training."""


class Trainer(Protocol):
    """A model with its processor, heads that are thrown away, optimizers and a step."""

    model: Any
    processor: Any
    heads: Any
    optimizers: list[tuple[torch.optim.Optimizer, float]]
    step: int


def save(trainer: Trainer, folder: Path) -> None:
    """The checkpoint, in float16 as Hugging Face writes it, and what going on needs."""
    checkpoint = folder / CHECKPOINT
    checkpoint.mkdir(parents=True, exist_ok=True)
    copy.deepcopy(trainer.model).to("cpu", torch.float16).save_pretrained(checkpoint)
    trainer.processor.save_pretrained(checkpoint)
    state = {
        "step": trainer.step,
        "model": trainer.model.state_dict(),
        "heads": trainer.heads.state_dict(),
        "optimizers": [optimizer.state_dict() for optimizer, _ in trainer.optimizers],
    }
    buffer = io.BytesIO()
    torch.save(state, buffer)
    write_once(folder / STATE, buffer.getvalue())


def resume(trainer: Trainer, folder: Path, device: torch.device | str = "cpu") -> None:
    """Go on from a save."""
    state = torch.load(folder / STATE, map_location=device, weights_only=True)
    trainer.step = state["step"]
    trainer.model.load_state_dict(state["model"])
    trainer.heads.load_state_dict(state["heads"])
    for (optimizer, _), values in zip(trainer.optimizers, state["optimizers"], strict=True):
        optimizer.load_state_dict(values)
