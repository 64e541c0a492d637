"""Train FindIt-Nano: ``python -m training.train --config recipe.yaml --out FOLDER``.

Every step's scenes follow from the recipe's seed and the step's number, so a training that was
stopped goes on as if it had not been (from the last save), and one that is spread over processes
(``torchrun --nproc_per_node 2 -m …``) sees the same batches.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
import yaml
from torch.utils.data import DataLoader

from training import architecture, card, lessons, saving
from training.batches import Batch, Room, Writer
from training.evaluate import evaluate, validation
from training.lessons import Lesson, Numbers, Shares
from training.losses import Grader, Heads
from training.mark_lessons import mark_lesson
from training.optimizers import Muon, rate_at, turn
from training.pair_lessons import pair_lesson
from training.wild_lessons import wild_clip_lesson, wild_lesson, wild_shot_lesson
from training.wild_pictures import WILD_SHOT_SIZES, WILD_SIZES
from vlmeval_findit.core.files import write_once
from vlmeval_findit.data.rendered.scene import SHOT_SIZE, SIZES, Stream, rng_of
from vlmeval_findit.models.model_table import SHIPPED

RECIPE = Path(__file__).with_name("recipe.yaml")


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the training, up to step ``until``, of ``rows`` scenes a step.

    ``objects`` are the fewest and most of a scene; ``kinds`` how many batches are of each of
    :data:`KINDS`, as weights; ``task`` are the shares of tasks, and ``formats`` those of other axes
    that are not the recipe's own.
    """

    until: int
    rows: int
    objects: tuple[int, int]
    kinds: Mapping[str, float]
    task: Mapping[str, float]
    formats: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def shares(self, of: Shares) -> Shares:
        """A recipe's shares as they are here."""
        changed: dict[str, Any] = {"task": self.task, **self.formats}
        return replace(of, **changed)


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that a training depends on.

    What comes of it is the package's ``model``, asked for validation as ``format``.  It begins with
    the weights of ``start``, one of the package's models, or from nothing with a tokenizer of
    ``vocabulary`` words (phrases and coordinates not counted), learnt from ``corpus`` lessons of
    each kind.  ``rate`` is the greatest learning rate, reached after
    ``warmup`` steps and falling to nothing along a half cosine; ``matrices`` is Muon's, as a
    multiple of it.  ``softness`` is the width of a coordinate's target at the beginning and at the
    end, in the coordinate's units; ``cells``, ``looks`` and ``meant`` weigh the auxiliary losses,
    which fade to a tenth.
    """

    model: str
    format: str
    seed: int
    start: str | None
    corpus: int
    vocabulary: int
    text: Mapping[str, int]
    vision: Mapping[str, int]
    rate: float
    matrices: float
    warmup: int
    decay: float
    softness: tuple[float, float]
    cells: float
    looks: float
    meant: float
    save_every: int
    evaluate_every: int
    shares: Shares
    stages: tuple[Stage, ...]

    @property
    def steps(self) -> int:
        return self.stages[-1].until

    def stage(self, step: int) -> Stage:
        return next(stage for stage in self.stages if step < stage.until)

    def softness_at(self, step: int) -> float:
        first, last = self.softness
        return first * float((last / first) ** (step / self.steps))


def read_recipe(path: Path) -> Recipe:
    """The recipe of a YAML file.

    Raises:
        ValueError: a key or a kind is missing or unknown; the message names the file.
    """
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    try:
        stages = tuple(
            Stage(**{**stage, "objects": tuple(stage["objects"])}) for stage in values["stages"]
        )
        shares = {**values["shares"], "numbers": Numbers(values["shares"]["numbers"])}
        changed = {"softness": tuple(values["softness"]), "shares": Shares(**shares)}
        recipe = Recipe(**{**values, **changed, "stages": stages})
        for stage in stages:
            stage.shares(recipe.shares)
    except (TypeError, KeyError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None
    for kind in (kind for stage in stages for kind in stage.kinds):
        if kind not in KINDS:
            raise ValueError(f"{path}: no kind {kind!r} of lessons; there are {', '.join(KINDS)}")
    return recipe


# --- what is taught at a step ---------------------------------------------------------------------


class Drawn(NamedTuple):
    """What a step draws once for all its lessons."""

    shares: Shares
    objects: tuple[int, int]
    size: tuple[int, int]
    frames: int
    shots: Sequence[tuple[int, int]]


class Kind(NamedTuple):
    """A kind of lesson.

    ``make(seed, drawn)`` makes one; ``rooms`` are what a row may hold, with weights: rows of many
    short questions and rows of few long ones.  A step has ``rows`` of the stage's rows.
    """

    make: Callable[[int, Drawn], Lesson]
    rooms: Sequence[tuple[float, Room]]
    rows: float = 1.0
    sizes: Sequence[tuple[int, int]] = SIZES


_PHOTOGRAPHS = ((192, 120), (192, 120), (168, 168), (168, 144), (144, 168))
"""Sizes that photographs have most often once they are shrunk to what the model takes."""

KINDS: Mapping[str, Kind] = {
    "scenes": Kind(
        lambda seed, d: lessons.scene_lesson(seed, 14, d.shares, d.objects, d.size),
        ((0.45, Room(8, 32)), (0.4, Room(5, 56)), (0.15, Room(2, 160))),
    ),
    "instances": Kind(
        lambda seed, d: lessons.instance_lesson(seed, 4, d.shares, d.objects, d.size),
        ((1.0, Room(4, 64)),),
    ),
    "clips": Kind(
        lambda seed, d: lessons.clip_lesson(
            seed, 3, d.shares, d.frames, (min(2, d.objects[0]), min(4, d.objects[1])), d.size
        ),
        ((1.0, Room(2, 256)),),
        rows=0.34,
    ),
    "marks": Kind(
        lambda seed, d: mark_lesson(seed, 6, d.objects, d.size), ((1.0, Room(6, 128)),), rows=0.75
    ),
    "pairs": Kind(lambda seed, d: pair_lesson(seed, 1, d.size), ((1.0, Room(1, 128)),), rows=1.5),
    "wild": Kind(
        lambda seed, d: wild_lesson(seed, 5, d.shares, d.size),
        ((1.0, Room(4, 96)),),
        rows=0.5,
        sizes=(*_PHOTOGRAPHS, *WILD_SIZES),
    ),
    "wild_clips": Kind(
        lambda seed, d: wild_clip_lesson(seed, 2, d.shares, d.frames, d.size),
        ((1.0, Room(2, 96)),),
        rows=0.17,
        sizes=(*_PHOTOGRAPHS, *WILD_SIZES),
    ),
    "wild_shots": Kind(
        lambda seed, d: wild_shot_lesson(seed, 2, d.shares, d.size, d.shots),
        ((1.0, Room(2, 64)),),
        rows=0.34,
        sizes=(*_PHOTOGRAPHS, *WILD_SIZES),
    ),
}
"""By the names that stages use."""

_SPELT = ("scenes", "instances", "clips", "marks", "pairs")
"""Kinds whose words are the tokenizer's; those of the wild ones are to stay unknown."""

_SHOTS = (*[(SHOT_SIZE,)] * 4, *((size,) for size in WILD_SHOT_SIZES), ((96, 48), (168, 48)))
"""Sizes of the reference shots of a wild step."""

_FRAMES = {"2": 1, "3": 1, "4": 4, "5": 1, "6": 1, "7": 1, "8": 4}
"""How often a clip has so many frames, as weights: the benchmark asks by 4 and 8."""


def lessons_of(
    recipe: Recipe, step: int, rank: int = 0, ranks: int = 1
) -> tuple[list[Lesson], Room]:
    """The lessons of a step, all of one kind, their pictures of one size; one process's part."""
    stage = recipe.stage(step)
    rng = rng_of(Stream.BATCH, recipe.seed, step)
    kind = KINDS[lessons.draw(rng, stage.kinds)]
    drawn = Drawn(
        shares=stage.shares(recipe.shares),
        objects=stage.objects,
        size=kind.sizes[rng.randint(len(kind.sizes))],
        frames=int(lessons.draw(rng, _FRAMES)),
        shots=_SHOTS[rng.randint(len(_SHOTS))],
    )
    at = int(lessons.draw(rng, {str(i): weight for i, (weight, _) in enumerate(kind.rooms)}))
    rows = max(ranks, round(stage.rows * kind.rows))
    seeds = [lessons.train_seed(recipe.seed, step, row) for row in range(rank, rows, ranks)]
    return [kind.make(seed, drawn) for seed in seeds], kind.rooms[at][1]


def corpus(recipe: Recipe) -> Iterator[str]:
    """The text of lessons of every kind, to train a tokenizer on.

    All tasks come alike, or what is seldom taught would be spelt letter by letter; formats come by
    their shares, so one that is never taught is.
    """
    tasks = dict.fromkeys(lessons.TASKS, 1.0)
    for i in range(recipe.corpus):
        for place, name in enumerate(_SPELT):
            kind = KINDS[name]
            drawn = Drawn(
                shares=replace(recipe.shares, task=tasks),
                objects=recipe.stages[-1].objects,
                size=kind.sizes[i % len(kind.sizes)],
                frames=2 + i % 7,
                shots=_SHOTS[0],
            )
            seed = lessons.train_seed(recipe.seed, i, place)
            yield from lessons.corpus([kind.make(seed, drawn)])


# --- the training ---------------------------------------------------------------------------------


class Training:
    """The state of a training: model, heads, optimizers, and the step that comes next.

    Args:
        recipe: what it depends on.
        device: ``cpu``, ``cuda``.
        begun: the checkpoint of an earlier save of it, where it goes on: a tokenizer that is made
            anew may number its tokens otherwise, when a prompt was reworded in between.
    """

    def __init__(self, recipe: Recipe, device: str, begun: Path | None = None) -> None:
        torch.manual_seed(recipe.seed)
        self.recipe = recipe
        if begun or recipe.start:
            self.processor, self.model = architecture.loaded(begun or SHIPPED[str(recipe.start)])
        else:
            tokenizer = architecture.build_tokenizer(corpus(recipe), recipe.vocabulary)
            self.processor = architecture.build_processor(tokenizer)
            self.model = architecture.build_model(tokenizer, recipe.text, recipe.vision)
        self.model = self.model.to(device)
        self.heads = Heads(recipe.text["width"], layers=2).to(device)
        self.writer = Writer(self.processor, self.model)
        pixels = recipe.shares.numbers is Numbers.PIXELS
        numbers = architecture.PIXELS if pixels else architecture.THOUSANDTHS
        self.grader = Grader(self.model, self.heads, self.processor.tokenizer, numbers)
        self.device = device
        self.precision = _precision(device)
        self.optimizers = _optimizers(recipe, self.model, self.heads, self.precision)
        self.step = 0

    def batch(self, rank: int = 0, ranks: int = 1) -> Batch:
        """The batch of the step that comes next."""
        return self.batch_of(self.step, rank, ranks)

    def batch_of(self, step: int, rank: int = 0, ranks: int = 1) -> Batch:
        """The batch of a step; one process's part."""
        return self.writer.batch(*lessons_of(self.recipe, step, rank, ranks))

    # Importing vlmeval switches gradients off for the whole process.
    @torch.enable_grad()  # type: ignore[untyped-decorator]
    def advance(self, batch: Batch, ranks: int = 1) -> dict[str, float]:
        """One step on a batch; the figures of its losses."""
        recipe = self.recipe
        aside = max(0.1, 1 - self.step / recipe.steps)
        softness = recipe.softness_at(self.step)
        reduced = self.precision is not torch.float32
        with torch.autocast(self.model.device.type, self.precision, enabled=reduced):
            losses = self.grader.grade(batch.to(self.device), softness)
        beside = recipe.cells * losses.cells + recipe.looks * losses.looks
        total = losses.reply + aside * (beside + recipe.meant * losses.meant)
        total.backward()
        weights = [*self.model.parameters(), *self.heads.parameters()]
        if ranks > 1:
            _average([w for w in weights if w.requires_grad], ranks)
        norm = torch.nn.utils.clip_grad_norm_(weights, 1.0)
        turn(
            self.optimizers,
            rate_at(self.step, recipe.steps, recipe.rate, recipe.warmup),
        )
        self.step += 1
        names = ("reply", "cells", "looks", "meant")
        figures = {name: getattr(losses, name).item() for name in names}
        return figures | {"right": losses.right, "off": losses.off, "norm": norm.item()}


def _precision(device: str) -> Any:
    """bfloat16 where the processor multiplies it: a tenth of a second in place of half a one."""
    able = device != "cpu" or torch.cpu._is_avx512_bf16_supported()
    return torch.bfloat16 if able else torch.float32


def _optimizers(
    recipe: Recipe, model: Any, heads: Any, precision: torch.dtype
) -> list[tuple[Any, float]]:
    """Muon for the matrices inside, AdamW for tables, heads and vectors; with their rates."""
    tables = {"embed_tokens", "lm_head", "pos_embed"}
    named = [(name, w) for name, w in model.named_parameters() if w.requires_grad]
    inside = [w for name, w in named if w.ndim > 1 and not tables & {*name.split(".")}]
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
    if recipe.matrices == 0:
        adam.add_param_group({"params": inside, "weight_decay": recipe.decay})
        return [(adam, 1.0)]
    rate = recipe.rate * recipe.matrices
    muon = Muon(inside, lr=rate, weight_decay=recipe.decay, precision=precision)
    return [(adam, 1.0), (muon, recipe.matrices)]


def _average(weights: Sequence[Any], ranks: int) -> None:
    """The mean of the processes' gradients, in every process."""
    for w in weights:
        if w.grad is None:
            w.grad = torch.zeros_like(w)
    flat = torch.cat([w.grad.flatten() for w in weights])
    dist.all_reduce(flat)
    flat /= ranks
    for w, part in zip(weights, flat.split([w.numel() for w in weights]), strict=True):
        w.grad.copy_(part.view_as(w))


def train(
    recipe_file: Path, out: Path, device: str, report_every: int = 50, workers: int = 0
) -> None:
    """Train to a recipe's end, from the last save of ``out`` where there is one.

    ``out`` gets the checkpoint with its card, the curve, the validation's scores and the recipe.

    Args:
        recipe_file: the recipe.
        out: the folder.
        device: ``cpu``, ``cuda``.
        report_every: steps a line of the curve.
        workers: processes that draw scenes while the model learns; 0 draws them in between, which
            is as fast where the cores are all taken.

    Raises:
        ValueError: the recipe cannot be read, or is not the one that ``out`` was begun with.
    """
    recipe = read_recipe(recipe_file)
    rank, ranks = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if ranks > 1:
        dist.init_process_group("gloo")
    if rank == 0:
        _keep_recipe(recipe_file, out)
    goes_on = (out / saving.STATE).is_file()
    training = Training(recipe, device, out / saving.CHECKPOINT if goes_on else None)
    if goes_on:
        saving.resume(training, out, training.device)
    if rank == 0:
        for name in (card.CURVE, card.VALIDATION):
            _forget_after(training.step, out / name)
    recent: list[dict[str, float]] = []
    began, first = time.monotonic(), training.step
    steps = range(training.step, recipe.steps)
    for batch in DataLoader(
        [*steps],
        batch_size=1,
        num_workers=workers,
        collate_fn=lambda drawn: training.batch_of(drawn[0], rank, ranks),
    ):
        figures = training.advance(batch, ranks)
        if rank:
            continue
        recent.append(figures)
        last = training.step == recipe.steps
        if training.step % report_every == 0 or last:
            mean = {k: sum(r[k] for r in recent) / len(recent) for k in recent[0]}
            seconds = time.monotonic() - began
            left = seconds / (training.step - first) * (recipe.steps - training.step)
            _report(out, training.step, mean, seconds, left)
            recent = []
        evaluates = training.step % recipe.evaluate_every == 0 or last
        if training.step % recipe.save_every == 0 or evaluates:
            saving.save(training, out)
        if evaluates:
            _validate(recipe, out, training.step, device)
            card.write_card(out)


def _keep_recipe(recipe_file: Path, out: Path) -> None:
    """Leave the recipe beside what it makes; another one would not go on but begin anew."""
    out.mkdir(parents=True, exist_ok=True)
    kept, wanted = out / card.RECIPE, recipe_file.read_text(encoding="utf-8")
    if not kept.is_file():
        write_once(kept, wanted.encode())
    # As text: what is drawn depends on the order of the shares too, which equality does not see.
    elif repr(read_recipe(kept)) != repr(read_recipe(recipe_file)):
        raise ValueError(f"{out} was begun with another recipe ({kept}); name another --out")


def _forget_after(step: int, lines: Path) -> None:
    """Drop the lines of steps that are done again, because they came after the last save."""
    if lines.is_file():
        kept = [
            line
            for line in lines.read_text("utf-8").splitlines()
            if json.loads(line)["step"] <= step
        ]
        write_once(lines, "".join(f"{line}\n" for line in kept).encode())


_LONGEST = 256
"""New tokens of a reply in validation: an untrained model never ends by itself."""


def _validate(recipe: Recipe, out: Path, step: int, device: str) -> None:
    names = validation(recipe.format)
    runs = evaluate(out / saving.CHECKPOINT, names, device, longest=_LONGEST, model=recipe.model)
    line = {"step": step} | {
        run.task.question.table: round(run.metric_values["F1@0.5"] or 0.0, 1) for run in runs
    }
    print(line, flush=True)
    with (out / card.VALIDATION).open("a", encoding="utf-8") as f:
        f.write(json.dumps(line) + "\n")


def _report(out: Path, step: int, mean: Mapping[str, float], seconds: float, left: float) -> None:
    figures = " ".join(f"{name} {value:.3f}" for name, value in mean.items())
    print(f"step {step}  {figures}  {seconds:.0f} s, {left / 60:.0f} min left", flush=True)
    with (out / card.CURVE).open("a", encoding="utf-8") as f:
        f.write(json.dumps({"step": step, "seconds": round(seconds, 1), **mean}) + "\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Train by the command line."""
    parser = argparse.ArgumentParser(prog="python -m training.train")
    parser.add_argument("--config", type=Path, default=RECIPE, help="the recipe (YAML)")
    parser.add_argument("--out", type=Path, required=True, help="folder of the checkpoint")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1, help="of torch, a process")
    parser.add_argument("--workers", type=int, default=0, help="processes that draw scenes")
    parser.add_argument("--report-every", type=int, default=50)
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(chosen.threads)
    train(chosen.config, chosen.out, chosen.device, chosen.report_every, chosen.workers)


if __name__ == "__main__":
    main()
