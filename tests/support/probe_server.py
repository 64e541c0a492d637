"""A script for :class:`chat_server.ChatServer` that sees: it finds the shape in what it is sent.

It answers about the picture that reaches it, so that whatever the sender does to pictures is seen.
"""

from __future__ import annotations

import base64
import io
import json
from functools import cache

import numpy as np
from chat_server import Answer, Asked, Script, completion
from PIL import Image
from probe_deployments import numbers
from simulated_deployments import Fault

from vlmeval_findit.coords.conventions import Convention

Box = tuple[float, ...]
Size = tuple[int, int]


def sent(asked: Asked) -> str:
    """Return the picture in a request, as a data URL."""
    parts = asked.body["messages"][0]["content"]
    (url,) = (part["image_url"]["url"] for part in parts if part["type"] == "image_url")
    return str(url)


@cache
def seen(url: str) -> tuple[Size, Box]:
    """Return the size of a picture and the box of what is not background, in its pixels."""
    with Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) as picture:
        pixels = np.asarray(picture.convert("RGB")).astype(np.int16)
    mask = (np.abs(pixels - pixels[0, 0]) > 60).any(-1)
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    box = (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1)
    return (pixels.shape[1], pixels.shape[0]), tuple(map(float, box))


def answering(actual: Convention, noise: float = 0.03, fault: Fault | None = None) -> Script:
    """Answer every request with the box of its shape, in a convention."""

    def script(asked: Asked, number: int) -> Answer:
        size, box = seen(sent(asked))
        # The same answer to the same picture, in whatever order calls come.
        rng = np.random.default_rng([int(value) for value in (*size, *box)])
        answer = numbers(box, size, actual, rng, noise, fault)
        return completion(json.dumps([{"bbox": answer}]))

    return script
