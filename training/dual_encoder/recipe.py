"""All that a training of FindIt-Nano-SigLIP depends on; ``recipe.yaml`` makes one like it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

RECIPE = Path(__file__).with_name("recipe.yaml")


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the training, up to step ``until``.

    ``cells`` weighs the loss of what lies under patches; ``shares`` say how often pairs differ in
    each attribute, as weights.
    """

    until: int
    cells: float
    shares: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that a training depends on.

    The tokenizer has at most ``vocabulary`` tokens, learnt from the captions of ``corpus`` pairs.
    ``pairs`` are those of a step, of which the share ``plain`` keeps its own captions.  ``rate`` is
    the greatest learning rate, reached after ``warmup`` steps and falling to nothing along a half
    cosine; ``matrices`` is Muon's, as a multiple of it.  ``within`` and ``facts`` weigh the losses
    beside SigLIP's own; the last and that of a stage's cells fade to a tenth.  ``validation`` is a
    number of pairs.
    """

    seed: int
    corpus: int
    vocabulary: int
    side: int
    text: Mapping[str, int]
    vision: Mapping[str, int]
    pairs: int
    plain: float
    rate: float
    matrices: float
    warmup: int
    decay: float
    sharpness: float
    within: float
    facts: float
    save_every: int
    evaluate_every: int
    validation: int
    stages: tuple[Stage, ...]

    @property
    def steps(self) -> int:
        return self.stages[-1].until

    def stage(self, step: int) -> Stage:
        return next(stage for stage in self.stages if step < stage.until)


def read_recipe(path: Path) -> Recipe:
    """The recipe of a YAML file.

    Raises:
        ValueError: a key is missing or unknown; the message names the file.
    """
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    try:
        return Recipe(**{**values, "stages": tuple(Stage(**stage) for stage in values["stages"])})
    except (TypeError, KeyError) as error:
        raise ValueError(f"{path}: {error}") from None
