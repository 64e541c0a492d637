"""Random folders of scored runs: what a user's outputs may hold, all of it at once.

Two benchmarks, several tables, formats and checkpoints; failed calls, missing sets, runs of a part,
runs twice, costs that are known of some answers, reviews of listed and random rows, and published
figures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toy_benchmark
from costly_runs import with_records
from review_files import Reviewer
from review_files import write as write_reviews
from scored_runs import CallResult, World, query, speaking, two_labels

from vlmeval_findit.protocol import FAILED_ANSWER, Answer, Review, ReviewVerdict, RowChoice

TABLES = ("Pascal", "Pascal_multilabel")
FORMATS = ("xyxy_json", "xyxy_text", "yxyx_json")
MODELS = (
    "Alpha",
    "Beta",
    "tune-refcoco-lr1e5-long-name-of-a-training-step-1000",
    "tune-refcoco-lr1e5-long-name-of-a-training-step-2000",
    "tune-refcoco-lr2e5-long-name-of-a-training-step-1000",
    "Small_Model",  # The toy benchmark has a published figure of that name
)
_NOWHERE = (5.0, 65.0, 45.0, 95.0)  # Where no object is


@dataclass(frozen=True)
class RandomFolder:
    """Scored runs, and a file of reviews of their first table."""

    runs: Path
    reviews: Path


def make_folder(folder: Path, seed: int, patch: pytest.MonkeyPatch) -> RandomFolder:
    """Make tables, pictures, runs and reviews; the environment leads to them."""
    random = np.random.default_rng(seed)
    world = World(folder)
    world.at_hand(patch)
    toy_benchmark.register(patch)
    pictures = folder / "pictures"
    patch.setenv("FINDIT_IMAGES", f"Pascal={pictures},Letters={pictures}")
    images = int(random.integers(5, 16))
    for at in range(images):
        world.picture(f"{at}.jpg", at)
    world.table("Pascal", [query(at, picture=f"{at // 2}.jpg") for at in range(2 * images)])
    world.table("Pascal_multilabel", [two_labels(at, f"{at}.jpg") for at in range(images)])
    toy_benchmark.zoo(world)
    chosen = random.permutation(len(MODELS))[: int(random.integers(2, len(MODELS) + 1))]
    for at in sorted(chosen.tolist()):
        _answer(world, MODELS[at], random)
    return RandomFolder(world.runs, _review(folder, images, random))


def _answer(world: World, model: str, random: np.random.Generator) -> None:
    """Let a model answer some tables in some formats; a few runs are of a part, or there twice."""
    skill = float(random.uniform(0.2, 1.0))
    for table in TABLES:
        if random.random() < 0.15:
            continue
        formats = FORMATS[: int(random.integers(1, len(FORMATS) + 1))]
        for name in (f"FindIt_{table}_{each}" for each in formats):
            chance = float(np.clip(skill + random.uniform(-0.2, 0.2), 0, 1))
            asked = None if random.random() < 0.9 else 4
            answer = _failing_on(speaking(name, chance, 8.0), float(random.choice([0, 0, 0.2])))
            path = world.predict(model, name, answer, rows=asked)
            if random.random() < 0.5:
                with_records(path, *_costs(random))
            if random.random() < 0.1:
                world.predict(model, name, speaking(name, skill), folder="again")
    if random.random() < 0.7:
        name = f"Letters_Zoo_{toy_benchmark.FORMATS[int(random.integers(0, 3))]}"
        failed = float(random.choice([0, 0.3]))
        world.predict(model, name, _failing_on(toy_benchmark.guessing(skill), failed))


def _failing_on(answer: CallResult, share: float) -> CallResult:
    """Return a model whose calls fail on a share of the rows, equal rows for equal shares."""

    def answer_or_fail(asked: Any, generator: np.random.Generator) -> str:
        text = answer(asked, generator)
        return f"{FAILED_ANSWER} via API." if generator.random() < share else text

    return answer_or_fail


def _costs(
    random: np.random.Generator,
) -> tuple[Callable[[int], Mapping[str, Any]], Callable[[int], Mapping[str, Any]]]:
    """Return what is recorded of a reply and its time: of all rows, or of some."""
    known = float(random.choice([1.0, 0.5]))
    tokens = random.integers(5, 300, 200).tolist()
    is_known = (random.random(200) < known).tolist()

    def record(index: int) -> Mapping[str, Any]:
        if not is_known[index]:
            return {}
        counts = {"prompt": 100 + tokens[index], "completion": tokens[index]}
        return {"tokens": counts, "call": {"cost": tokens[index] / 1e6, "cost_from": "prices"}}

    def time(index: int) -> Mapping[str, Any]:
        return {"seconds": tokens[index] / 100, "at_once": 2.0} if is_known[index] else {}

    return record, time


def _review(folder: Path, images: int, random: np.random.Generator) -> Path:
    """Review two listed rows of Pascal and some random ones; a few of them are changed."""
    reviewer = Reviewer("FindIt_Pascal_xyxy_json")
    order = random.permutation(2 * images).tolist()
    listed, drawn = order[:2], order[2 : 2 + int(random.integers(3, 7))]
    reviews: list[Review] = []
    for row in (*listed, *drawn):
        choice = RowChoice.LISTED if row in listed else RowChoice.RANDOM
        if random.random() < 0.3:
            accepted = Answer((_NOWHERE,))
            reviews.append(reviewer.review(row, ReviewVerdict.EDITED, accepted, drawn=choice))
        else:
            reviews.append(reviewer.review(row, ReviewVerdict.LABEL, drawn=choice))
    return write_reviews(
        folder / "reviews.jsonl", *reviews, audits=[reviewer.audit(sorted(listed))]
    )
