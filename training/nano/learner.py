"""FindIt-Nano and FindIt-Nano-px in training: recipe, samples of a step, losses, validation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from training import samples
from training.mark_samples import mark_sample
from training.nano import architecture
from training.nano.batches import Batch, RowLimit, Writer
from training.nano.losses import Grader, Heads
from training.negative_images import NEGATIVE_SHOT_SIZES, NEGATIVE_SIZES
from training.negative_samples import negative_clip_sample, negative_sample, negative_shot_sample
from training.pairs import pair_sample
from training.recipe import Recipe, parse_recipe
from training.samples import Sample, Shares, Units
from vlmeval_findit.data import SCENE_SIZES, SHOT_SIZE, Stream, load_dataset, rng_of
from vlmeval_findit.engine import prompts_of
from vlmeval_findit.models import MODELS, NANO, SHIPPED, RunSettings, load_local
from vlmeval_findit.protocol import Reply, Settings
from vlmeval_findit.scoring import RunScore, check_replies, score_rows


@dataclass(frozen=True, slots=True)
class NanoStage:
    """A part of the training, up to a step."""

    until: int
    rows: int  # Scenes per step
    objects: tuple[int, int]  # Fewest and most of a scene
    kinds: Mapping[str, float]  # Weights of KINDS
    task: Mapping[str, float]  # Shares of tasks
    formats: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # If not the recipe's

    def shares(self, base: Shares) -> Shares:
        changed: dict[str, Any] = {"task": self.task, **self.formats}
        return replace(base, **changed)


@dataclass(frozen=True, slots=True, kw_only=True)
class NanoRecipe(Recipe):
    """The recipe of a vision-language model."""

    format: str  # Of validation
    start: str | None  # Name of a shipped model, or a checkpoint's folder; None: from nothing
    corpus: int  # Samples of each kind to learn a tokenizer from
    vocabulary: int  # Its words, without phrases and coordinates
    text: Mapping[str, int]  # Width, depth, heads
    vision: Mapping[str, int]  # The same
    softness: tuple[float, float]  # Width of a coordinate's target at begin and end, in its units
    cells: float  # Weights of auxiliary losses; see nano.losses
    pointers: float
    phrases: float
    shares: Shares

    def softness_at(self, step: int) -> float:
        first, last = self.softness
        return first * float((last / first) ** (step / self.steps))


def read_nano_recipe(path: Path) -> NanoRecipe:
    """Read a recipe file; ValueError if a key or a kind is missing or unknown."""
    return parse_recipe(path, _recipe)


def _recipe(values: Mapping[str, Any]) -> NanoRecipe:
    stages = tuple(
        NanoStage(**{**stage, "objects": tuple(stage["objects"])}) for stage in values["stages"]
    )
    shares = Shares(**{**values["shares"], "units": Units(values["shares"]["units"])})
    converted = {"softness": tuple(values["softness"]), "shares": shares, "stages": stages}
    for stage in stages:
        stage.shares(shares)
        for kind in stage.kinds.keys() - KINDS.keys():
            raise ValueError(f"unknown kind {kind!r} of samples; there are {', '.join(KINDS)}")
    return NanoRecipe(**{**values, **converted})


# --- samples of a step ----------------------------------------------------------------------------


class StepDraw(NamedTuple):
    """What a step draws once for all its samples."""

    shares: Shares
    objects: tuple[int, int]
    size: tuple[int, int]
    frames: int
    shots: Sequence[tuple[int, int]]


class SampleKind(NamedTuple):
    """A kind of sample.

    ``limits`` are what a row may hold, with weights: rows of many short questions and rows of few
    long ones. A step has ``rows`` of the stage's rows.
    """

    make: Callable[[int, StepDraw], Sample]  # From a seed
    limits: Sequence[tuple[float, RowLimit]]
    rows: float = 1.0
    sizes: Sequence[tuple[int, int]] = SCENE_SIZES


# The most frequent sizes of photographs after they are shrunk to what the model takes
_PHOTOGRAPHS = ((192, 120), (192, 120), (168, 168), (168, 144), (144, 168))

_OF_NEGATIVES = (*_PHOTOGRAPHS, *NEGATIVE_SIZES)


def _clip(seed: int, step: StepDraw) -> Sample:
    count = (min(2, step.objects[0]), min(4, step.objects[1]))
    return samples.clip_sample(seed, 3, step.shares, step.frames, count, step.size)


# By the names that stages use
KINDS: Mapping[str, SampleKind] = {
    "scenes": SampleKind(
        lambda seed, d: samples.scene_sample(seed, 14, d.shares, d.objects, d.size),
        ((0.45, RowLimit(8, 32)), (0.4, RowLimit(5, 56)), (0.15, RowLimit(2, 160))),
    ),
    "instances": SampleKind(
        lambda seed, d: samples.instance_sample(seed, 4, d.shares, d.objects, d.size),
        ((1.0, RowLimit(4, 64)),),
    ),
    "clips": SampleKind(_clip, ((1.0, RowLimit(2, 256)),), rows=0.34),
    "marks": SampleKind(
        lambda seed, d: mark_sample(seed, 6, d.objects, d.size),
        ((1.0, RowLimit(6, 128)),),
        rows=0.75,
    ),
    "pairs": SampleKind(
        lambda seed, d: pair_sample(seed, d.size), ((1.0, RowLimit(1, 128)),), rows=1.5
    ),
    "negatives": SampleKind(
        lambda seed, d: negative_sample(seed, 5, d.shares, d.size),
        ((1.0, RowLimit(4, 96)),),
        rows=0.5,
        sizes=_OF_NEGATIVES,
    ),
    "negative_clips": SampleKind(
        lambda seed, d: negative_clip_sample(seed, 2, d.shares, d.frames, d.size),
        ((1.0, RowLimit(2, 96)),),
        rows=0.17,
        sizes=_OF_NEGATIVES,
    ),
    "negative_shots": SampleKind(
        lambda seed, d: negative_shot_sample(seed, 2, d.shares, d.size, d.shots),
        ((1.0, RowLimit(2, 64)),),
        rows=0.34,
        sizes=_OF_NEGATIVES,
    ),
}

# Kinds whose words the tokenizer learns; words of negatives stay unknown.
_SPELLED = ("scenes", "instances", "clips", "marks", "pairs")

# Sizes of the reference shots of a step of negatives
_SHOTS: Sequence[Sequence[tuple[int, int]]] = (
    *[(SHOT_SIZE,)] * 4,
    *[(size,) for size in NEGATIVE_SHOT_SIZES],
    ((96, 48), (168, 48)),
)

# Weights of a clip's number of frames: the benchmark asks by 4 and 8.
_FRAMES = {"2": 1, "3": 1, "4": 4, "5": 1, "6": 1, "7": 1, "8": 4}


def samples_of(
    recipe: NanoRecipe, step: int, rank: int = 0, ranks: int = 1
) -> tuple[list[Sample], RowLimit]:
    """Return a process's samples of a step, all of one kind, with images of one size."""
    stage = recipe.stage(step)
    rng = rng_of(Stream.BATCH, recipe.seed, step)
    kind = KINDS[samples.draw(rng, stage.kinds)]
    step_draw = StepDraw(
        shares=stage.shares(recipe.shares),
        objects=stage.objects,
        size=kind.sizes[rng.randint(len(kind.sizes))],
        frames=int(samples.draw(rng, _FRAMES)),
        shots=_SHOTS[rng.randint(len(_SHOTS))],
    )
    weights = {str(place): weight for place, (weight, limit) in enumerate(kind.limits)}
    chosen = int(samples.draw(rng, weights))
    row_limit = kind.limits[chosen][1]
    rows = max(ranks, round(stage.rows * kind.rows))
    seeds = [samples.train_seed(recipe.seed, step, row) for row in range(rank, rows, ranks)]
    return [kind.make(seed, step_draw) for seed in seeds], row_limit


def corpus(recipe: NanoRecipe) -> Iterator[str]:
    """Yield the text of samples of every kind, to learn a tokenizer from.

    All tasks are equally frequent, or rare words would be spelled letter by letter; formats have
    their shares.
    """
    tasks = dict.fromkeys(samples.TASKS, 1.0)
    for i in range(recipe.corpus):
        for place, name in enumerate(_SPELLED):
            kind = KINDS[name]
            step_draw = StepDraw(
                shares=replace(recipe.shares, task=tasks),
                objects=recipe.stages[-1].objects,
                size=kind.sizes[i % len(kind.sizes)],
                frames=2 + i % 7,
                shots=_SHOTS[0],
            )
            seed = samples.train_seed(recipe.seed, i, place)
            yield from samples.texts([kind.make(seed, step_draw)])


# --- the learner ----------------------------------------------------------------------------------

_LONGEST = 256  # New tokens of a reply in validation: an untrained model never ends one

_VALIDATION_TASKS = ("", "_multilabel", "_refexp", "_insdet", "_described", "_video_f4")


class NanoLearner:
    """See :class:`training.train.Learner`."""

    tables = frozenset({"embed_tokens", "lm_head", "pos_embed"})

    def __init__(
        self, recipe: NanoRecipe, device: str = "cpu", checkpoint: Path | None = None
    ) -> None:
        torch.manual_seed(recipe.seed)
        self.recipe = recipe
        start = checkpoint or (recipe.start and SHIPPED.get(recipe.start, recipe.start))
        if start:
            self.processor, self.model = architecture.load(start)
        else:
            tokenizer = architecture.build_tokenizer(corpus(recipe), recipe.vocabulary)
            self.processor = architecture.build_processor(tokenizer)
            self.model = architecture.build_model(tokenizer, recipe.text, recipe.vision)
        self.model = self.model.to(device)
        self.heads = Heads(recipe.text["width"], layers=2).to(device)
        self.writer = Writer(self.processor, self.model)
        pixels = recipe.shares.units is Units.PIXELS
        numbers = architecture.PIXELS if pixels else architecture.THOUSANDTHS
        self._grader = Grader(self.model, self.heads, self.processor.tokenizer, numbers)

    def batch(self, step: int, rank: int = 0, ranks: int = 1) -> Batch:
        return self.writer.batch(*samples_of(self.recipe, step, rank, ranks))

    def losses(self, batch: Batch, step: int) -> tuple[Any, Mapping[str, float]]:
        recipe = self.recipe
        losses = self._grader.grade(batch.to(self.model.device), recipe.softness_at(step))
        auxiliary = recipe.cells * losses.cells + recipe.pointers * losses.pointers
        auxiliary = auxiliary + recipe.phrases * losses.phrases
        return losses.reply + recipe.auxiliary(step) * auxiliary, losses.as_numbers()

    def validate(self, checkpoint: Path) -> Mapping[str, float]:
        names = [f"FindIt_Scenes_mini{task}_{self.recipe.format}" for task in _VALIDATION_TASKS]
        device = self.model.device.type
        runs = evaluate(checkpoint, names, device, longest=_LONGEST, model=self.recipe.model)
        return {run.dataset.variant.table: run.metric_values["F1@0.5"] or 0.0 for run in runs}


def evaluate(
    checkpoint: Path,
    names: Sequence[str],
    device: str = "cpu",
    longest: int | None = None,
    model: str = NANO,
) -> list[RunScore]:
    """Return the scores of a checkpoint's folder on datasets.

    Replies come from the package's runner and are scored by its scorer, without VLMEvalKit: that is
    fast enough during a training. ``longest`` are the most new tokens of a reply (default: the
    protocol's), ``model`` is the row of the model table that says how it answers.
    """
    settings = RunSettings(device=device, max_new_tokens=longest)
    runner = load_local(str(checkpoint), MODELS[model], settings)
    scores = []
    for name in names:
        dataset = load_dataset(name)
        prompts = prompts_of(dataset)
        messages = [prompts.message(index) for index in dataset.queries]
        completions = runner.answer_batch(messages, dataset.variant)
        replies = [
            Reply(index, completion.text, completion.record)
            for index, completion in zip(dataset.queries, completions, strict=True)
        ]
        scores.append(score_rows(check_replies(model, dataset, replies, Settings())))
    return scores
