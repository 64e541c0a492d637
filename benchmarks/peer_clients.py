"""Other projects' clients ask servers for the calls of a run, and say what that took.

``python peer_clients.py PEER FOLDER AT_ONCE URL``, by an interpreter that has the peer: every
picture in ``FOLDER`` in 40 prompts, so many calls at once.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

PROMPTS = [f"Find every instance of thing {at}. " + "Answer with JSON. " * 20 for at in range(40)]

Ask = Callable[[], Any]


def vlmevalkit(pictures: Sequence[str], at_once: int, url: str) -> Ask:
    """Its ``OpenAIWrapper``, in the threads in which its runner asks models behind an API."""
    from vlmeval.api import OpenAIWrapper
    from vlmeval.utils import track_progress_rich

    model = OpenAIWrapper("stub", key="none", api_base=f"{url}/chat/completions", temperature=0)
    messages = [
        [{"type": "image", "value": path}, {"type": "text", "value": text}]
        for path in pictures
        for text in PROMPTS
    ]
    tasks = [{"message": one} for one in messages]
    return lambda: track_progress_rich(model.generate, tasks, nproc=at_once)


def inspect_ai(pictures: Sequence[str], at_once: int, url: str) -> Ask:
    from inspect_ai.model import (
        ChatMessageUser,
        ContentImage,
        ContentText,
        GenerateConfig,
        get_model,
    )

    config = GenerateConfig(max_connections=at_once, max_tokens=768, temperature=0)
    model = get_model(
        "openai/stub", config=config, base_url=url, api_key="none", responses_api=False
    )

    async def ask() -> None:
        # It takes no paths; encoded once for all prompts, which its tasks do for each sample.
        shown = [base64.b64encode(Path(path).read_bytes()).decode() for path in pictures]
        images = [ContentImage(image=f"data:image/png;base64,{one}") for one in shown]
        asks = [
            model.generate([ChatMessageUser(content=[image, ContentText(text=text)])])
            for image in images
            for text in PROMPTS
        ]
        for answer in await asyncio.gather(*asks):
            assert answer.completion

    return lambda: asyncio.run(ask())


def lmms_eval(pictures: Sequence[str], at_once: int, url: str) -> Ask:
    from lmms_eval.api.instance import Instance
    from lmms_eval.models.chat.openai import OpenAICompatible
    from PIL import Image

    model = OpenAICompatible(
        model="stub", base_url=url, api_key="none", num_concurrent=at_once, timeout=60
    )
    asks = [(path, text) for path in pictures for text in PROMPTS]
    model.task_dict = {"t": {"test": asks}}

    def messages(asked: tuple[str, str]) -> list[dict[str, Any]]:
        shown = {"type": "image", "url": Image.open(asked[0])}
        return [{"role": "user", "content": [shown, {"type": "text", "text": asked[1]}]}]

    made = [
        Instance(
            "generate_until",
            (text, messages, {"max_new_tokens": 768}, at, "t", "test"),
            at,
            {"task": "t", "doc_id": at, "repeats": 1},
        )
        for at, (_, text) in enumerate(asks)
    ]
    return lambda: model.generate_until(made)


PEERS = {"vlmevalkit": vlmevalkit, "inspect_ai": inspect_ai, "lmms_eval": lmms_eval}


def main(name: str, folder: str, at_once: str, url: str) -> None:
    pictures = sorted(map(str, Path(folder).iterdir()))
    ask = PEERS[name](pictures, int(at_once), url)
    sys.stdout.flush()
    # What they print themselves is none of ours.
    said = os.dup(1)
    os.dup2(2, 1)
    start = time.process_time()
    ask()
    used = time.process_time() - start
    calls = len(pictures) * len(PROMPTS)
    os.write(said, json.dumps({"calls": calls, "ms_a_call": 1000 * used / calls}).encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
