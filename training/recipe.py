"""What every recipe of a shipped model has, and how a recipe file is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml

RECIPES = Path(__file__).with_name("recipes")  # One file for each model that ships


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Everything that a training depends on."""

    model: str  # Name of the model that it makes
    seed: int
    rate: float  # Highest learning rate; it falls to zero along half a cosine
    matrices: float  # Muon's learning rate, as a multiple; 0: AdamW for all weights
    warmup: int  # Steps until the highest learning rate
    decay: float  # Weight decay
    save_every: int  # Steps
    evaluate_every: int  # Steps
    stages: tuple[Any, ...]  # Each has ``until``, its last step

    @property
    def steps(self) -> int:
        last: int = self.stages[-1].until
        return last

    def stage(self, step: int) -> Any:
        return next(stage for stage in self.stages if step < stage.until)

    def auxiliary(self, step: int) -> float:
        """Return the weight of auxiliary losses, which fades to a tenth."""
        return max(0.1, 1 - step / self.steps)


AnyRecipe = TypeVar("AnyRecipe", bound=Recipe)


def parse_recipe(path: Path, build: Callable[[Mapping[str, Any]], AnyRecipe]) -> AnyRecipe:
    """Return the recipe that ``build`` makes of a file's values.

    Raises:
        ValueError: a key is missing or unknown; the message names the file.
    """
    try:
        return build(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (TypeError, KeyError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None
