"""How much of the time that reading and encoding take is hidden while a model generates.

The model sleeps instead of generating, as long as encoding takes, so that no GPU is needed: then
the aim is half of the time of doing one after the other.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from vlmeval_findit.benchmarks.findit import parse
from vlmeval_findit.engine import local_backend
from vlmeval_findit.models import MODELS, LocalClient, RunSettings, load_local
from vlmeval_findit.protocol import Batch, image, text

VARIANT = parse("FindIt_Pascal_xyxy_json")


@pytest.mark.parametrize("size", [(640, 480), (1280, 960)])
def test_encoding_while_a_model_generates(
    size: tuple[int, int],
    measures: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tiny_checkpoints import build

    batch, turns = (16, 5) if measures else (2, 1)
    checkpoint = str(build("Qwen3-VL", tmp_path / "tiny"))
    settings = RunSettings(max_new_tokens=1, dtype="float32", batch_size=batch)
    client = LocalClient(load_local(checkpoint, MODELS["Qwen3-VL"], settings))
    window = photographs(tmp_path, size, 4 * batch)
    loaded = client.runner._loaded
    real = type(loaded).generate
    one_reply: list[Any] = []

    def sleep(self: Any, queries: Sequence[Any], decoding: Any) -> list[Any]:
        if not one_reply:
            one_reply.extend(real(self, queries[:1], decoding))
        time.sleep(naps[0])
        return one_reply * len(queries)

    naps = [0.0]
    monkeypatch.setattr(type(loaded), "generate", sleep)
    one_after_the_other(client, window)
    encoding = min(timed(one_after_the_other, client, window) for _ in range(turns))
    naps[0] = encoding / 4
    pairs = [
        (timed(one_after_the_other, client, window), timed(ahead, client, window))
        for _ in range(turns)
    ]
    share = statistics.median(together / apart for apart, together in pairs)
    with capsys.disabled():
        print(
            f"\n{size[0]}x{size[1]}, {len(window.messages)} queries in batches of {batch}: "
            f"encoding {1000 * encoding / len(window.messages):.1f} ms each; ahead takes "
            f"{share:.2f} of the time of one after the other "
            f"({[f'{together / apart:.2f}' for apart, together in pairs]})"
        )
    if measures:
        assert share < 0.8


def photographs(folder: Path, size: tuple[int, int], count: int) -> Batch:
    """Return questions about JPEGs, one each."""
    random = np.random.default_rng(5)
    messages = []
    for at in range(count):
        path = folder / f"{at}.jpg"
        coarse = random.integers(0, 256, (12, 16, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC).save(path, quality=90)
        messages.append((image(str(path)), text("Find the cat.")))
    return Batch(tuple(messages), (VARIANT,) * count)


def one_after_the_other(client: LocalClient, window: Batch) -> None:
    for places in client.parts(window):
        answers = client.ask(window.only(places))
        assert all(answer.error is None for answer in answers)


def ahead(client: LocalClient, window: Batch) -> None:
    parts = local_backend.answers_in_turn(client, window, lambda: False)
    for part in parts:
        assert all(answer.error is None for answer in part.answers)


def timed(do: Any, *given: Any) -> float:
    began = time.perf_counter()
    do(*given)
    return time.perf_counter() - began
