"""Models of tiny checkpoints on this machine, and what they are asked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
from PIL import Image

from vlmeval_findit.benchmarks.findit import parse
from vlmeval_findit.models import (
    MODELS,
    SHIPPED,
    LocalRunner,
    RunSettings,
    load_local,
)
from vlmeval_findit.protocol import CallResult, Message, image, text

VARIANT = parse("FindIt_Pascal_xyxy_json")
FOLDER = Path(mkdtemp(prefix="findit-tiny-"))


@cache
def picture(width: int, height: int, seed: int = 0) -> str:
    path = FOLDER / f"{width}x{height}-{seed}.png"
    noise = np.random.default_rng(seed).integers(0, 255, (height, width, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path)
    return str(path)


@cache
def checkpoint(row: str) -> str:
    from tiny_checkpoints import build

    return SHIPPED.get(row) or str(build(row, FOLDER / row.replace(" ", "")))


def runner(row: str, **settings: Any) -> LocalRunner:
    return load_local(
        checkpoint(row), MODELS[row], RunSettings(max_new_tokens=12, dtype="float32", **settings)
    )


@cache
def ready(row: str) -> LocalRunner:
    return runner(row)


def messages_of_one_image() -> list[Message]:
    """Different images, numbers of images and lengths of text."""
    a = picture(320, 200)
    b = picture(200, 260, 1)
    c = picture(640, 480, 2)
    return [
        (image(a), text("Find the cat.")),
        (image(b), text("Find every instance of the dog and of the bicycle, please. " * 3)),
        (text("Reference image 1:"), image(a), text("Scene:"), image(c), text("Find it.")),
        (image(c), text("x")),
    ]


def messages_of_several_images() -> list[Message]:
    """Return one image, texts of several lengths, two of them the same."""
    scene = picture(640, 480, 2)
    asked = ["the cat.", "the dog: [x1, y1, x2, y2]", "the bicycle and every lamp", "it", "it"]
    return [(image(scene), text(f"Find {what}")) for what in asked]


def one_at_a_time(model: LocalRunner, messages: Sequence[Message]) -> list[CallResult]:
    return [model.answer_batch([message], VARIANT)[0] for message in messages]
