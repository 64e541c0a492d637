"""Images of requests: encoded once for all their prompts, cached up to a size, sent in pieces."""

from __future__ import annotations

import asyncio
import json
import threading
from base64 import b64encode
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from vlmeval_findit.benchmarks.findit.dataset_names import parse
from vlmeval_findit.core.question import image, text
from vlmeval_findit.models.http.chat import chat_model
from vlmeval_findit.models.http.sent_images import EncodedImages, ImageToSend, SentImage, pieces

QUESTION = parse("FindIt_Demo_xyxy_json")


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    path = tmp_path / "scene.png"
    Image.effect_noise((64, 48), 90).convert("RGB").save(path)
    return path


class Encoder:
    """Counts what it encodes; ``holds`` it up until it is let go."""

    def __init__(self, size: int = 8) -> None:
        self.seen: Counter[Path] = Counter()
        self.let_go = threading.Event()
        self._data = b"x" * size

    def __call__(self, path: Path, limit: int | None = None) -> SentImage:
        self.seen[path] += 1
        assert self.let_go.wait(60)
        if path.name == "broken":
            raise OSError("no image")
        return SentImage((1, 1), (1, 1), "image/png", b64encode(self._data))


def images_of(rule: Any, *names: str) -> list[ImageToSend]:
    return [ImageToSend(rule, name, None) for name in names]


def test_the_cache_holds_the_last_used_up_to_a_size() -> None:
    rule = Encoder(size=30)  # 40 bytes in base64
    rule.let_go.set()

    async def run() -> None:
        images = EncodedImages(limit=100)
        for name in ("a", "b", "a", "c", "a", "b"):
            await images.all(images_of(rule, name))
        images.close()

    asyncio.run(run())
    assert rule.seen == {Path("a"): 1, Path("b"): 2, Path("c"): 1}


def test_a_broken_image_fails_its_prompts_and_is_read_again() -> None:
    rule = Encoder()
    rule.let_go.set()

    async def run() -> None:
        images = EncodedImages()
        for _ in range(2):
            with pytest.raises(OSError, match="no image"):
                await images.all(images_of(rule, "broken"))
        images.close()

    asyncio.run(run())
    assert rule.seen == {Path("broken"): 2}


def test_a_body_in_pieces_is_the_whole_body_and_copies_no_image(scene: Path) -> None:
    message = (
        text('A "quoted" \u00e9 {1} image-0-'),
        image(str(scene)),
        text("?"),
        image(str(scene)),
    )
    model = chat_model("Qwen3-VL")
    whole = model.request(message, QUESTION)
    marked = model.request(message, QUESTION, images=whole.images)
    parts = pieces(marked.body, marked.images)
    assert json.loads(b"".join(parts)) == whole.body
    assert parts[1] is marked.images[0].base64
    assert parts[3] is marked.images[1].base64
    assert sum(map(len, parts[::2])) < 2000, "the rest of the body is small"
