"""Train a shipped model: ``python -m training.train RECIPE --out FOLDER``.

A step's samples follow from the recipe's seed and the step's number. So a training that was stopped
continues from its last save as if it had not been stopped, and one spread over processes
(``torchrun --nproc_per_node 2 -m training.train ...``) sees the same batches.
"""

from __future__ import annotations

import argparse
import copy
import io
import json
import math
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
import torch.distributed as dist
import yaml
from torch.utils.data import DataLoader

from training import card
from training.recipe import Recipe
from vlmeval_findit.core import write_once

STATE = "training.pt"  # The state to continue from, in the folder of the training


class Learner(Protocol):
    """A model in training: its parts, its batches, its losses, its validation.

    ``tables`` are parts of names of weights that are tables, not matrices of a layer. ``heads`` are
    those of auxiliary losses; they are not part of the checkpoint.
    """

    processor: Any
    model: Any
    heads: Any
    tables: frozenset[str]

    @property
    def recipe(self) -> Recipe: ...

    def batch(self, step: int, rank: int = 0, ranks: int = 1) -> Any:
        """Return a process's part of the batch of a step."""

    def losses(self, batch: Any, step: int) -> tuple[Any, Mapping[str, float]]:
        """Return the loss (a scalar tensor) and its parts."""

    def validate(self, checkpoint: Path) -> Mapping[str, float]:
        """Return the metrics of a checkpoint on the validation split, in percent."""


def learner_of(path: Path, device: str = "cpu", checkpoint: Path | None = None) -> Learner:
    """Return the learner of a recipe file; ValueError if the recipe is invalid.

    ``checkpoint`` is of the same training. Its tokenizer is used: a tokenizer that is learnt again
    may number its tokens differently if a prompt was reworded in between.
    """
    from training.nano.learner import NanoLearner, read_nano_recipe
    from training.siglip.learner import SiglipLearner, read_siglip_recipe

    if "side" in (yaml.safe_load(path.read_text(encoding="utf-8")) or {}):
        return SiglipLearner(read_siglip_recipe(path), device, checkpoint)
    return NanoLearner(read_nano_recipe(path), device, checkpoint)


class Training:
    """The state of a training: a learner, its optimizers, and the next step."""

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        self.device = learner.model.device
        # bfloat16 takes half the time if the processor can multiply it.
        able = self.device.type != "cpu" or torch.cpu._is_avx512_bf16_supported()
        self.precision = torch.bfloat16 if able else torch.float32
        self.optimizers = _optimizers(learner, self.precision)
        self.step = 0

    # Importing vlmeval switches gradients off for the whole process.
    @torch.enable_grad()  # type: ignore[untyped-decorator]
    def advance(self, batch: Any, ranks: int = 1) -> dict[str, float]:
        """Make one step on a batch; return the parts of its loss and the gradient's norm."""
        learner = self.learner
        recipe = learner.recipe
        reduced = self.precision is not torch.float32
        with torch.autocast(self.device.type, self.precision, enabled=reduced):
            total, parts = learner.losses(batch, self.step)
        total.backward()
        weights = [*learner.model.parameters(), *learner.heads.parameters()]
        if ranks > 1:
            _average([w for w in weights if w.requires_grad], ranks)
        norm = torch.nn.utils.clip_grad_norm_(weights, 1.0)
        rate = rate_at(self.step, recipe.steps, recipe.rate, recipe.warmup)
        for optimizer, factor in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate * factor
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.step += 1
        return {**parts, "norm": norm.item()}

    def save(self, folder: Path) -> None:
        """Write the checkpoint in float16, and the state to continue from."""
        learner = self.learner
        checkpoint = folder / card.CHECKPOINT
        checkpoint.mkdir(parents=True, exist_ok=True)
        copy.deepcopy(learner.model).to("cpu", torch.float16).save_pretrained(checkpoint)
        learner.processor.save_pretrained(checkpoint)
        state = {
            "step": self.step,
            "model": learner.model.state_dict(),
            "heads": learner.heads.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer, _ in self.optimizers],
        }
        buffer = io.BytesIO()
        torch.save(state, buffer)
        write_once(folder / STATE, buffer.getvalue())

    def resume(self, folder: Path) -> None:
        """Continue from a save."""
        state = torch.load(folder / STATE, map_location=self.device, weights_only=True)
        self.step = state["step"]
        self.learner.model.load_state_dict(state["model"])
        self.learner.heads.load_state_dict(state["heads"])
        for (optimizer, _), values in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(values)


def _optimizers(learner: Learner, precision: torch.dtype) -> list[tuple[Any, float]]:
    """Return Muon for matrices of layers and AdamW for the rest, with their rates."""
    recipe = learner.recipe
    named = [(name, w) for name, w in learner.model.named_parameters() if w.requires_grad]
    inner = [w for name, w in named if w.ndim > 1 and not learner.tables & {*name.split(".")}]
    chosen = {id(w) for w in inner}
    rest = [w for _, w in named if id(w) not in chosen] + [*learner.heads.parameters()]
    adam = torch.optim.AdamW(
        [
            {"params": [w for w in rest if w.ndim > 1], "weight_decay": recipe.decay},
            {"params": [w for w in rest if w.ndim <= 1], "weight_decay": 0.0},
        ],
        lr=recipe.rate,
        betas=(0.9, 0.98),
    )
    if recipe.matrices == 0:
        adam.add_param_group({"params": inner, "weight_decay": recipe.decay})
        return [(adam, 1.0)]
    rate = recipe.rate * recipe.matrices
    muon = Muon(inner, lr=rate, weight_decay=recipe.decay, precision=precision)
    return [(adam, 1.0), (muon, recipe.matrices)]


def _average(weights: Sequence[Any], ranks: int) -> None:
    """Set every process's gradients to their mean over processes."""
    for w in weights:
        if w.grad is None:
            w.grad = torch.zeros_like(w)
    flat = torch.cat([w.grad.flatten() for w in weights])
    dist.all_reduce(flat)
    flat /= ranks
    for w, part in zip(weights, flat.split([w.numel() for w in weights]), strict=True):
        w.grad.copy_(part.view_as(w))


# --- optimizers -----------------------------------------------------------------------------------

# The quintic of Newton and Schulz as Muon's authors tuned it (Jordan et al. 2024)
_A = 3.4445
_B = -4.775
_C = 2.0315


class Muon(torch.optim.Optimizer):  # type: ignore[misc]
    """Orthogonalise the updates of momentum: every direction of a matrix learns as fast.

    torch has a Muon too, but it orthogonalises in bfloat16, which some processors cannot multiply.
    ``params`` are matrices (more dimensions are flattened into the second). The root mean square of
    an update's entries is about 0.2 of ``lr``, as AdamW's is; momentum is Nesterov's.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
        precision: torch.dtype = torch.float32,
    ) -> None:
        self._precision = precision
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step(self, closure: Any = None) -> None:
        """Update every matrix that has a gradient."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                if not state:
                    state["momentum"] = torch.zeros_like(weight)
                average = state["momentum"].lerp_(weight.grad, 1 - group["momentum"])
                ahead = weight.grad.lerp(average, group["momentum"]).flatten(1)
                update = orthogonal(ahead, self._precision).view_as(weight)
                size = 0.2 * max(ahead.shape) ** 0.5
                weight.mul_(1 - group["lr"] * group["weight_decay"])
                weight.add_(update, alpha=-group["lr"] * size)


def orthogonal(matrix: Any, precision: torch.dtype = torch.float32, steps: int = 5) -> Any:
    """Approximate the nearest matrix whose singular values are all 1."""
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    x = (wide / (wide.norm() + 1e-7)).to(precision)
    for _ in range(steps):
        square = x @ x.T
        x = _A * x + (_B * square + _C * square @ square) @ x
    x = x.to(matrix.dtype)
    return x if matrix.shape[0] <= matrix.shape[1] else x.T


def rate_at(step: int, steps: int, rate: float, warmup: int) -> float:
    """Return a step's learning rate: up to ``rate`` over ``warmup`` steps, down half a cosine.

    >>> rate_at(0, 100, 1.0, 10), rate_at(50, 100, 1.0, 10)
    (0.1, 0.5)
    """
    return rate * min(1.0, (step + 1) / warmup) * 0.5 * (1 + math.cos(math.pi * step / steps))


# --- the whole training ---------------------------------------------------------------------------


def train(
    recipe_file: Path, out: Path, device: str = "cpu", report_every: int = 50, workers: int = 0
) -> None:
    """Train to a recipe's end, from the last save in ``out`` if there is one.

    ``out`` gets the checkpoint with its card, the curve (a line after ``report_every`` steps), the
    validation's metrics and the recipe. ``workers`` make batches while the model learns; without
    any they are made in between, which is as fast if all cores are busy.

    Raises:
        ValueError: the recipe is invalid, or ``out`` was begun with another recipe.
    """
    rank = int(os.environ.get("RANK", "0"))
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    if ranks > 1:
        dist.init_process_group("gloo")
    resumes = (out / STATE).is_file()
    training = Training(learner_of(recipe_file, device, out / card.CHECKPOINT if resumes else None))
    recipe = training.learner.recipe
    if rank == 0:
        _store_recipe(recipe_file, out)
    if resumes:
        training.resume(out)
    if rank == 0:
        for name in (card.CURVE, card.VALIDATION):
            _drop_lines_after(training.step, out / name)
    recent: list[dict[str, float]] = []
    began = time.monotonic()
    first = training.step
    for batch in DataLoader(
        range(training.step, recipe.steps),
        batch_size=1,
        num_workers=workers,
        collate_fn=lambda steps: training.learner.batch(steps[0], rank, ranks),
    ):
        recent.append(training.advance(batch, ranks))
        if rank:
            continue
        last = training.step == recipe.steps
        if training.step % report_every == 0 or last:
            mean = {name: sum(parts[name] for parts in recent) / len(recent) for name in recent[0]}
            seconds = time.monotonic() - began
            left = seconds / (training.step - first) * (recipe.steps - training.step)
            print(f"{left / 60:.0f} min left", end="  ")
            _report(out / card.CURVE, {"step": training.step, "seconds": seconds, **mean})
            recent = []
        evaluates = training.step % recipe.evaluate_every == 0 or last
        if training.step % recipe.save_every == 0 or evaluates:
            training.save(out)
        if evaluates:
            metrics = training.learner.validate(out / card.CHECKPOINT)
            _report(out / card.VALIDATION, {"step": training.step, **metrics})
            card.write_card(out)


def _store_recipe(recipe_file: Path, out: Path) -> None:
    """Store the recipe with the training; refuse to continue with another recipe."""
    out.mkdir(parents=True, exist_ok=True)
    stored = out / card.RECIPE
    text = recipe_file.read_text(encoding="utf-8")
    if not stored.is_file():
        write_once(stored, text.encode())
    # As JSON: samples depend on the order of the shares too, which equality ignores.
    elif json.dumps(yaml.safe_load(stored.read_text())) != json.dumps(yaml.safe_load(text)):
        raise ValueError(f"{out} was begun with another recipe ({stored}); name another --out")


def _drop_lines_after(step: int, path: Path) -> None:
    """Drop the lines of steps after the last save: these steps are repeated."""
    lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    text = "".join(f"{line}\n" for line in lines if json.loads(line)["step"] <= step)
    if lines:
        write_once(path, text.encode())


def _report(path: Path, values: Mapping[str, float]) -> None:
    line = json.dumps({name: round(value, 4) for name, value in values.items()})
    print(line, flush=True)
    with path.open("a", encoding="utf-8") as f:
        f.write(line + "\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Train by the command line."""
    parser = argparse.ArgumentParser(prog="python -m training.train")
    parser.add_argument("recipe", type=Path, help="a file of training/recipes")
    parser.add_argument("--out", type=Path, required=True, help="folder of the training")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1, help="of torch, per process")
    parser.add_argument("--workers", type=int, default=0, help="processes that make batches")
    parser.add_argument("--report-every", type=int, default=50, metavar="STEPS")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    train(options.recipe, options.out, options.device, options.report_every, options.workers)


if __name__ == "__main__":
    main()
