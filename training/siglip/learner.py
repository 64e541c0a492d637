"""FindIt-Nano-SigLIP in training: recipe, batches, losses, validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers as hf

from training.recipe import Recipe, parse_recipe
from training.scenes import Scene
from training.siglip import samples
from training.siglip.evaluate import evaluate
from training.siglip.model import Batch, Heads, build_model, build_processor, build_tokenizer, grade


@dataclass(frozen=True, slots=True)
class SiglipStage:
    """A part of the training, up to a step."""

    until: int
    cells: float  # Weight of the loss of objects under patches
    shares: Mapping[str, float]  # Weights of the attributes in which pairs differ


@dataclass(frozen=True, slots=True, kw_only=True)
class SiglipRecipe(Recipe):
    """The recipe of a dual encoder."""

    corpus: int  # Pairs whose captions the tokenizer is learnt from
    vocabulary: int  # Most tokens
    side: int  # Of an image, in pixels
    text: Mapping[str, int]  # Entries of SigLIP's configurations
    vision: Mapping[str, int]
    pairs: int  # Per step
    plain: float  # Share of pairs that keep their full captions
    sharpness: float  # Scale of cosines within a pair
    within: float  # Weights of the losses in addition to SigLIP's
    facts: float
    validation: int  # Pairs


def read_siglip_recipe(path: Path) -> SiglipRecipe:
    """Read a recipe file; ValueError if a key is missing or unknown."""
    return parse_recipe(path, _recipe)


def _recipe(values: Mapping[str, Any]) -> SiglipRecipe:
    stages = tuple(SiglipStage(**stage) for stage in values["stages"])
    return SiglipRecipe(**{**values, "stages": stages})


class SiglipLearner:
    """See :class:`training.train.Learner`."""

    tables = frozenset({"token_embedding", "position_embedding", "patch_embedding", "probe"})

    def __init__(
        self, recipe: SiglipRecipe, device: str = "cpu", checkpoint: Path | None = None
    ) -> None:
        torch.manual_seed(recipe.seed)
        self.recipe = recipe
        if checkpoint is not None:
            self.processor = hf.AutoProcessor.from_pretrained(checkpoint)
        else:
            captions = samples.corpus(recipe.seed, recipe.corpus // 10, recipe.plain)
            tokenizer = build_tokenizer(captions, recipe.vocabulary)
            self.processor = build_processor(tokenizer, recipe.side)
        self.model = build_model(self.processor.tokenizer, recipe.text, recipe.vision).to(device)
        self.heads = Heads(recipe.vision["hidden_size"]).to(device)

    def batch(self, step: int, rank: int = 0, ranks: int = 1) -> Batch:
        recipe = self.recipe
        shares = self.recipe.stage(step).shares
        whole = samples.samples_of(recipe.seed, step, recipe.pairs, recipe.plain, shares)
        drawn = whole[rank::ranks]
        scenes: list[Scene] = []
        captions: list[str] = []
        full: list[bool] = []
        for sample in drawn:
            scenes += (sample.pair.left, sample.pair.right)
            captions += sample.captions
            whole_scene = (sample.pair.left_caption, sample.pair.right_caption)
            full += [caption in whole_scene for caption in sample.captions]
        ids = self.processor.tokenizer(
            captions, padding="max_length", truncation=True, return_tensors="pt"
        ).input_ids
        pixels = self.processor.image_processor([s.pixels for s in scenes], return_tensors="pt")
        grid = recipe.side // recipe.vision["patch_size"]
        return Batch(
            pixels.pixel_values,
            ids,
            torch.from_numpy(np.stack([samples.cells_of(scene, grid) for scene in scenes])),
            torch.from_numpy(np.stack([samples.facts_of(scene) for scene in scenes])),
            torch.tensor(full),
        )

    def losses(self, batch: Batch, step: int) -> tuple[Any, Mapping[str, float]]:
        recipe = self.recipe
        batch = Batch(*(tensor.to(self.model.device) for tensor in batch))
        losses = grade(self.model, self.heads, batch, recipe.sharpness)
        auxiliary = recipe.stage(step).cells * losses.cells + recipe.facts * losses.facts
        total = losses.sigmoid + recipe.within * losses.within
        return total + recipe.auxiliary(step) * auxiliary, losses.as_numbers()

    def validate(self, checkpoint: Path) -> Mapping[str, float]:
        return evaluate(str(checkpoint), "validation", self.recipe.validation).percents()
