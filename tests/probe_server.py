"""A script for :class:`chat_server.ChatServer` that sees: it finds the one shape in what it is sent.

It answers about the picture that reaches it, so that whatever the sender does to pictures is seen.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable

import numpy as np
from chat_server import Answer, Asked, completion
from PIL import Image

Size = tuple[int, int]
Box = tuple[float, float, float, float]
Says = Callable[[Box, Size], list[float]]
"""From a box in pixels of the picture that was sent, and its (width, height), to numbers."""


def seen(picture: Image.Image) -> Box:
    """The box of what is not background, (x1, y1, x2, y2) in pixels."""
    pixels = np.asarray(picture.convert("RGB")).astype(int)
    mask = np.abs(pixels - pixels[0, 0]).max(-1) > 60
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    x1, y1, x2, y2 = columns[0], rows[0], columns[-1] + 1, rows[-1] + 1
    return float(x1), float(y1), float(x2), float(y2)


def picture_of(asked: Asked) -> Image.Image:
    """The picture in a request."""
    parts = asked.body["messages"][0]["content"]
    (url,) = (part["image_url"]["url"] for part in parts if part["type"] == "image_url")
    return Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))


def looking(says: Says, noise: float = 0.05, digits: int = 0) -> Callable[[Asked, int], Answer]:
    """Answers every request with the box of its shape; errors in shares of the shape's side."""
    rng = np.random.default_rng(0)

    def script(asked: Asked, number: int) -> Answer:
        picture = picture_of(asked)
        x1, y1, x2, y2 = seen(picture)
        off = rng.normal(0, noise, 4) * (x2 - x1, y2 - y1, x2 - x1, y2 - y1)
        box = tuple((np.array([x1, y1, x2, y2]) + off).tolist())
        numbers = [round(value, digits) for value in says(box, picture.size)]  # type: ignore[arg-type]
        return completion(json.dumps([{"boundingbox": numbers}]))

    return script


def scaled(width: float, height: float) -> Says:
    """Numbers that refer to one size, whatever the picture's."""
    return lambda box, size: [n * s / e for n, s, e in zip(box, (width, height) * 2, size * 2)]
