"""Images of requests: encoded once for all their prompts, cached up to a size, sent in pieces."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import pytest
from PIL import Image

from vlmeval_findit.benchmarks.findit.dataset_names import parse
from vlmeval_findit.core.question import image, text
from vlmeval_findit.models.http.chat import chat_model
from vlmeval_findit.models.http.sent_images import EncodedImages, ImageToSend, SentImage, pieces

QUESTION = parse("FindIt_Demo_xyxy_json")


class Encoder:
    """Counts what it encodes."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def __call__(self, path: Path, limit: int | None = None) -> SentImage:
        self.seen[path.name] += 1
        if path.name == "broken":
            raise OSError("no image")
        return SentImage((1, 1), (1, 1), "image/png", b64encode(b"x" * 30))  # 40 bytes


async def encode(rule: Encoder, *names: str) -> None:
    images = EncodedImages(limit=100)
    for name in names:
        with pytest.raises(OSError, match="no image") if name == "broken" else nullcontext():
            await images.all([ImageToSend(rule, name, None)])
    images.close()


def test_the_cache_holds_the_last_used_up_to_a_size_and_no_failure() -> None:
    rule = Encoder()
    asyncio.run(encode(rule, "a", "b", "a", "c", "broken", "a", "b", "broken"))
    assert rule.seen == {"a": 1, "b": 2, "c": 1, "broken": 2}


def test_a_body_in_pieces_is_the_whole_body_and_copies_no_image(tmp_path: Path) -> None:
    scene = tmp_path / "scene.png"
    Image.effect_noise((64, 48), 90).convert("RGB").save(scene)
    shown = image(str(scene))
    message = (text('A "quoted" \u00e9 {1} image-0-'), shown, text("?"), shown)
    model = chat_model("Qwen3-VL")
    whole = model.request(message, QUESTION)
    marked = model.request(message, QUESTION, images=whole.images)
    parts = pieces(marked.body, marked.images)
    assert json.loads(b"".join(parts)) == whole.body
    assert parts[1] is marked.images[0].base64
    assert parts[3] is marked.images[1].base64
    assert sum(map(len, parts[::2])) < 2000, "the rest of the body is small"
