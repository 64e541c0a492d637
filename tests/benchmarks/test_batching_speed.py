"""How much batching and shared prefixes save, on CPU with a tiny Qwen3-VL.

``python -m pytest tests/benchmarks/test_batching_speed.py --benchmark-enable -s`` prints the
figures; without the flag the same code runs once, and only the replies are compared.  Each figure
is a ratio of two times of one run, taken in turns, so that a busy machine slows down both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from vlmeval_findit.models.local import Answer, LocalRunner, RunSettings, load_local
from vlmeval_findit.models.table import MODELS
from vlmeval_findit.prompts import Message, image, text
from vlmeval_findit.variant import parse

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from tiny_checkpoints import build  # noqa: E402

pytestmark = pytest.mark.host

VARIANT = parse("FindIt_Pascal_xyxy_json")
OBJECTS = [
    "red circle",
    "blue square",
    "green triangle",
    "largest shape",
    "small yellow thing on the left",
    "every orange circle",
    "purple",
    "cat",
    "dog near the window",
    "person",
    "car",
    "text",
    "the second one",
    "tallest tree",
    "nothing at all",
    "bright lamp",
]


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(build("Qwen3-VL", tmp_path_factory.mktemp("tiny")))


def pictures(folder: Path, side: int, count: int) -> list[str]:
    """Square pictures of noise; one of 1,024 pixels has 1,024 visual tokens, of 512 it has 256."""
    paths = []
    for seed in range(count):
        noise = np.random.default_rng(seed).integers(0, 255, (side, side, 3), dtype=np.uint8)
        Image.fromarray(noise).save(folder / f"{seed}.png")
        paths.append(str(folder / f"{seed}.png"))
    return paths


def model(checkpoint: str, new_tokens: int) -> LocalRunner:
    return load_local(checkpoint, MODELS["Qwen3-VL"], RunSettings(max_new_tokens=new_tokens))


def compare(
    singly: Callable[[], list[Answer]], together: Callable[[], list[Answer]], rounds: int
) -> float:
    """How many times faster it is together; the replies must be equal."""
    best = [float("inf"), float("inf")]
    for _ in range(rounds):
        found = []
        for at, answer in enumerate((singly, together)):
            start = time.perf_counter()
            found.append(answer())
            best[at] = min(best[at], time.perf_counter() - start)
        assert found[0] == found[1]
    return best[0] / best[1]


def one_at_a_time(runner: LocalRunner, messages: Sequence[Message]) -> list[Answer]:
    return [runner.answer_batch([message], VARIANT)[0] for message in messages]


def test_sixteen_variants_of_an_image(
    checkpoint: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    measures = request.config.getoption("--benchmark-enable")
    runner = model(checkpoint, 16)
    (scene,) = pictures(tmp_path, 1024, 1)
    asked = [(image(scene), text(f'Find every instance of "{what}".')) for what in OBJECTS]
    runner.answer_batch(asked[:1], VARIANT)
    ratio = compare(
        lambda: one_at_a_time(runner, asked),
        lambda: runner.answer_variants(asked, VARIANT),
        5 if measures else 1,
    )
    print(f"\n16 variants of an image of 1,024 visual tokens, 16 new tokens: {ratio:.1f} times")
    assert not measures or ratio >= 10


@pytest.mark.parametrize(
    ("side", "new_tokens", "target"),
    [(1024, 16, 0.9), (1024, 256, 1.3), (512, 16, 1.5), (512, 64, 2.0), (512, 256, 2.0)],
)
def test_eight_images_as_one_batch(
    checkpoint: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    side: int,
    new_tokens: int,
    target: float,
) -> None:
    measures = request.config.getoption("--benchmark-enable")
    runner = model(checkpoint, new_tokens)
    asked = [
        (image(path), text('Find every instance of "cat".')) for path in pictures(tmp_path, side, 8)
    ]
    runner.answer_batch(asked[:1], VARIANT)
    ratio = compare(
        lambda: one_at_a_time(runner, asked),
        lambda: runner.answer_batch(asked, VARIANT),
        5 if measures else 1,
    )
    tokens = (side // 32) ** 2
    print(f"\n8 images of {tokens} visual tokens, {new_tokens} new tokens: {ratio:.1f} times")
    assert not measures or ratio >= target
