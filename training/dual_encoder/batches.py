"""Lessons as tensors, made by a process beside the training."""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import torch

from training.dual_encoder import architecture, lessons
from training.dual_encoder.lessons import Lesson
from training.dual_encoder.losses import Batch
from training.dual_encoder.recipe import Recipe


@cache
def _processor(seed: int, tens: int, plain: float, vocabulary: int, side: int) -> Any:
    captions = lessons.corpus(seed, tens, plain)
    return architecture.build_processor(architecture.build_tokenizer(captions, vocabulary), side)


def processor_of(recipe: Recipe) -> Any:
    """The processor, its tokenizer learnt from captions of pairs."""
    tens = recipe.corpus // 10
    return _processor(recipe.seed, tens, recipe.plain, recipe.vocabulary, recipe.side)


def batch_of(recipe: Recipe, made: Sequence[Lesson]) -> Batch:
    """The tensors of lessons."""
    processor = processor_of(recipe)
    scenes = [scene for lesson in made for scene in (lesson.pair.left, lesson.pair.right)]
    captions = [caption for lesson in made for caption in lesson.captions]
    full = [
        caption in (lesson.pair.left_caption, lesson.pair.right_caption)
        for lesson in made
        for caption in lesson.captions
    ]
    said = processor.tokenizer(captions, padding="max_length", truncation=True, return_tensors="pt")
    shown = processor.image_processor([scene.pixels for scene in scenes], return_tensors="pt")
    grid = recipe.side // recipe.vision["patch_size"]
    return Batch(
        shown.pixel_values,
        said.input_ids,
        torch.from_numpy(np.stack([lessons.cells_of(scene, grid) for scene in scenes])),
        torch.from_numpy(np.stack([lessons.facts_of(scene) for scene in scenes])),
        torch.tensor(full),
    )


def _begin_maker() -> None:
    """One thread, and after the training where both would run: that waits for all its threads."""
    torch.set_num_threads(1)
    os.nice(5)


def _numpy_batch(recipe: Recipe, step: int) -> list[Any]:
    shares = recipe.stage(step).shares
    made = lessons.lessons_of(recipe.seed, step, recipe.pairs, recipe.plain, shares)
    return [tensor.numpy() for tensor in batch_of(recipe, made)]


_AHEAD = 6


def batches(recipe: Recipe, first: int) -> Iterator[Batch]:
    """The batches of the steps from ``first`` on, made by a process beside this one."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn, initializer=_begin_maker) as maker:
        steps = range(first, recipe.steps)
        waiting = deque(maker.submit(_numpy_batch, recipe, step) for step in steps[:_AHEAD])
        for step in steps:
            yield Batch(*map(torch.from_numpy, waiting.popleft().result()))
            if step + _AHEAD in steps:
                waiting.append(maker.submit(_numpy_batch, recipe, step + _AHEAD))
