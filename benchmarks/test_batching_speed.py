"""How much batching and shared prefixes save, on CPU with a tiny Qwen3-VL.

``python -m pytest benchmarks/test_batching_speed.py --benchmark-enable -s`` prints the
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

from vlmeval_findit.benchmarks.findit.dataset_names import parse
from vlmeval_findit.core.question import Message, image, text
from vlmeval_findit.models.local.run_settings import RunSettings
from vlmeval_findit.models.local.runner import LocalReply, LocalRunner, load_local
from vlmeval_findit.models.model_table import MODELS

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from tiny_checkpoints import build  # noqa: E402

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("one_thread")]

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


def questions(folder: Path, side: int) -> list[Message]:
    """Eight different pictures and texts: of other lengths, as the rows of a dataset are."""
    return [
        (image(path), text(f'Find every instance of "{what}".'))
        for path, what in zip(pictures(folder, side, 8), OBJECTS, strict=False)
    ]


def model(checkpoint: str, new_tokens: int) -> LocalRunner:
    return load_local(checkpoint, MODELS["Qwen3-VL"], RunSettings(max_new_tokens=new_tokens))


def compare(
    singly: Callable[[], list[LocalReply]], together: Callable[[], list[LocalReply]], rounds: int
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


def one_at_a_time(runner: LocalRunner, messages: Sequence[Message]) -> list[LocalReply]:
    return [runner.answer_batch([message], VARIANT)[0] for message in messages]


def test_sixteen_variants_of_an_image(checkpoint: str, tmp_path: Path, measures: bool) -> None:
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
    [(1024, 16, 1.0), (1024, 256, 1.3), (512, 16, 1.5), (512, 64, 2.0), (512, 256, 2.0)],
)
def test_eight_images_as_one_batch(
    checkpoint: str,
    tmp_path: Path,
    measures: bool,
    side: int,
    new_tokens: int,
    target: float,
) -> None:
    runner = model(checkpoint, new_tokens)
    asked = questions(tmp_path, side)
    runner.answer_batch(asked[:1], VARIANT)
    ratio = compare(
        lambda: one_at_a_time(runner, asked),
        lambda: runner.answer_batch(asked, VARIANT),
        5 if measures else 1,
    )
    tokens = (side // 32) ** 2
    print(f"\n8 images of {tokens} visual tokens, {new_tokens} new tokens: {ratio:.1f} times")
    assert not measures or ratio >= target


def test_where_the_time_of_eight_images_goes(
    checkpoint: str,
    tmp_path: Path,
    measures: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 1,024 visual tokens and 16 new ones: the shares, and the bound that follows from them.

    A batch makes the arithmetic of encoding, vision and prefill no less.  If decoding and all that
    is left over took no time at all, it would be faster by one through the share of those three.
    """
    runner = model(checkpoint, 16)
    spent: dict[str, float] = {}
    whole = runner._loaded.model.model
    encoder = runner._loaded.encoder
    monkeypatch.setattr(encoder, "encode", _timed(encoder.encode, spent, lambda *_, **__: "images"))
    monkeypatch.setattr(
        whole.visual, "forward", _timed(whole.visual.forward, spent, lambda *_, **__: "vision")
    )
    monkeypatch.setattr(
        whole.language_model,
        "forward",
        _timed(whole.language_model.forward, spent, _prefill_or_decoding),
    )
    asked = questions(tmp_path, 1024)
    runner.answer_batch(asked[:1], VARIANT)
    found = {
        name: _shares(answer, spent, 5 if measures else 1)
        for name, answer in {
            "one at a time": lambda: one_at_a_time(runner, asked),
            "as one batch": lambda: runner.answer_batch(asked, VARIANT),
        }.items()
    }
    for name, seconds in found.items():
        parts = ", ".join(f"{part} {value:.2f}" for part, value in seconds.items())
        print(f"\n8 images of 1,024 visual tokens, 16 new tokens, {name}, seconds: {parts}")
    single = found["one at a time"]
    fixed = single["images"] + single["vision"] + single["prefill"]
    print(f"a batch can be {single['all'] / fixed:.2f} times faster at most")
    assert all(seconds["all"] > 0 for seconds in found.values())
    if measures:  # else a batch could save more: say so in the docs
        assert single["decoding"] < single["vision"]


def _timed(call: Any, spent: dict[str, float], part: Callable[..., str]) -> Any:
    def timed(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        result = call(*args, **kwargs)
        name = part(*args, **kwargs)
        spent[name] = spent.get(name, 0.0) + time.perf_counter() - start
        return result

    return timed


def _prefill_or_decoding(*args: Any, **kwargs: Any) -> str:
    return "decoding" if kwargs["inputs_embeds"].shape[1] == 1 else "prefill"


def _shares(answer: Callable[[], object], spent: dict[str, float], rounds: int) -> dict[str, float]:
    """Seconds by part of the fastest of some rounds, and of all together."""
    best: dict[str, float] = {"all": float("inf")}
    for _ in range(rounds):
        spent.clear()
        start = time.perf_counter()
        answer()
        total = time.perf_counter() - start
        if total < best["all"]:
            best = {**spent, "all": total}
    return best
