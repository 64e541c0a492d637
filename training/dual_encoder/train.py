"""Train FindIt-Nano-SigLIP: ``python -m training.dual_encoder --out FOLDER``.

Every step's pairs follow from the recipe's seed and the step's number, so a training that was
stopped goes on as if it had not been, from its last save.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

from training import saving
from training.dual_encoder import architecture, lessons
from training.dual_encoder.batches import batch_of, batches, processor_of
from training.dual_encoder.losses import Batch, Heads, both_right, features, grade
from training.dual_encoder.recipe import RECIPE, Recipe, read_recipe
from training.optimizers import Muon, rate_at, turn
from vlmeval_findit.core.files import write_once
from vlmeval_findit.data.rendered.scene import SPLITS

CURVE, VALIDATION = "curve.jsonl", "validation.jsonl"


class Training:
    """The state of a training: model, heads, optimizers, and the step that comes next."""

    def __init__(self, recipe: Recipe, precision: Any = torch.float32) -> None:
        torch.manual_seed(recipe.seed)
        self.recipe = recipe
        self.processor = processor_of(recipe)
        self.model = architecture.build_model(self.processor.tokenizer, recipe.text, recipe.vision)
        self.heads = Heads(recipe.vision["hidden_size"])
        self.optimizers = _optimizers(recipe, self.model, self.heads)
        self.precision = precision
        self.step = 0

    # Importing vlmeval switches gradients off for the whole process.
    @torch.enable_grad()  # type: ignore[untyped-decorator]
    def advance(self, batch: Batch) -> dict[str, float]:
        """One step on a batch; the figures of its losses."""
        recipe = self.recipe
        aside = max(0.1, 1 - self.step / recipe.steps)
        with self.arithmetic():
            losses = grade(self.model, self.heads, batch, recipe.sharpness)
        total = losses.sigmoid + recipe.within * losses.within
        total = total + aside * (
            recipe.stage(self.step).cells * losses.cells + recipe.facts * losses.facts
        )
        total.backward()
        weights = [*self.model.parameters(), *self.heads.parameters()]
        norm = torch.nn.utils.clip_grad_norm_(weights, 1.0)
        turn(self.optimizers, rate_at(self.step, recipe.steps, recipe.rate, recipe.warmup))
        self.step += 1
        parts = losses._asdict() | {"right": torch.tensor(losses.right), "norm": norm}
        return {name: part.item() for name, part in parts.items()}

    def arithmetic(self) -> Any:
        """What the towers reckon in; weights and losses are float32 in any case."""
        if self.precision is torch.float32:
            return nullcontext()
        return torch.autocast("cpu", dtype=self.precision)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def validate(self) -> dict[str, float]:
        """Percent of validation pairs with both captions right, by attribute and overall."""
        first = SPLITS["validation"].start
        made = [lessons.plain_lesson(first + i) for i in range(self.recipe.validation)]
        right: list[bool] = []
        for at in range(0, len(made), 50):
            pictures, captions, _ = features(self.model, batch_of(self.recipe, made[at : at + 50]))
            right += both_right(pictures, captions).tolist()
        asked = Counter(lesson.pair.attribute for lesson in made)
        hits = Counter(
            lesson.pair.attribute for lesson, hit in zip(made, right, strict=True) if hit
        )
        shares = {name: 100 * hits[name] / asked[name] for name in sorted(asked)}
        return {"all": 100 * sum(right) / len(right), **shares}


def _optimizers(recipe: Recipe, model: Any, heads: Any) -> list[tuple[Any, float]]:
    """Muon for the matrices inside, AdamW for tables, heads and vectors; with their rates."""
    named = [*model.named_parameters()]
    inside = [w for name, w in named if w.ndim == 2 and "embedding" not in name]
    chosen = {id(w) for w in inside}
    rest = [w for _, w in named if id(w) not in chosen] + [*heads.parameters()]
    adam = torch.optim.AdamW(
        [
            {"params": [w for w in rest if w.ndim > 1], "weight_decay": recipe.decay},
            {"params": [w for w in rest if w.ndim <= 1], "weight_decay": 0.0},
        ],
        lr=recipe.rate,
        betas=(0.9, 0.98),
    )
    muon = Muon(inside, lr=recipe.rate * recipe.matrices, weight_decay=recipe.decay)
    return [(adam, 1.0), (muon, recipe.matrices)]


def train(recipe_file: Path, out: Path, precision: Any, report_every: int = 20) -> None:
    """Train to a recipe's end, from the last save of ``out`` where there is one.

    ``out`` gets the checkpoint, the curve, the validation's figures and the recipe.

    Raises:
        ValueError: the recipe cannot be read, or is not the one that ``out`` was begun with.
    """
    recipe = read_recipe(recipe_file)
    out.mkdir(parents=True, exist_ok=True)
    kept = out / RECIPE.name
    if kept.is_file() and read_recipe(kept) != recipe:
        raise ValueError(f"{out} was begun with another recipe ({kept}); name another --out")
    write_once(kept, recipe_file.read_bytes())
    training = Training(recipe, precision)
    if (out / saving.STATE).is_file():
        saving.resume(training, out)
    recent: list[dict[str, float]] = []
    began, first = time.monotonic(), training.step
    for batch in batches(recipe, first):
        recent.append(training.advance(batch))
        last = training.step == recipe.steps
        if training.step % report_every == 0 or last:
            mean = {k: sum(r[k] for r in recent) / len(recent) for k in recent[0]}
            seconds = time.monotonic() - began
            left = seconds / (training.step - first) * (recipe.steps - training.step)
            print(f"{left / 60:.0f} min left", end=" ")
            _report(out / CURVE, {"step": training.step, "seconds": seconds, **mean})
            recent = []
        if training.step % recipe.save_every == 0 or last:
            saving.save(training, out)
        if training.step % recipe.evaluate_every == 0 or last:
            _report(out / VALIDATION, {"step": training.step, **training.validate()})


def _report(path: Path, figures: Mapping[str, float]) -> None:
    """A line of figures, for who watches and for the card."""
    line = json.dumps({name: round(value, 3) for name, value in figures.items()})
    print(line, flush=True)
    with path.open("a", encoding="utf-8") as f:
        f.write(line + "\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Train by the command line."""
    parser = argparse.ArgumentParser(prog="python -m training.dual_encoder")
    parser.add_argument("--config", type=Path, default=RECIPE, help="the recipe (YAML)")
    parser.add_argument("--out", type=Path, required=True, help="folder of the checkpoint")
    parser.add_argument("--threads", type=int, default=2, help="of torch")
    parser.add_argument("--bfloat16", action="store_true", help="towers reckon in bfloat16")
    parser.add_argument("--report-every", type=int, default=20)
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(chosen.threads)
    precision = torch.bfloat16 if chosen.bfloat16 else torch.float32
    train(chosen.config, chosen.out, precision, chosen.report_every)
