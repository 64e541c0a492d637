"""What a run over an API would send, counted without a network.

Calls, images and bytes are exact; tokens are estimates (:func:`image_tokens`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce

from ..prompts import Part, PartKind
from ..spaces import Space, reference_size
from ..variant import Variant
from .payload import Manner, SentImage, request

CHARACTERS_A_TOKEN = 4
"""A usual share for English."""

_PATCHES = {"claude_standard": 28, "claude_highres": 28}
_PATCH = 32


@dataclass(frozen=True, slots=True)
class Load:
    """What some calls send (``size`` in bytes) and may cost in tokens."""

    calls: int = 0
    images: int = 0
    size: int = 0
    tokens_in: int = 0
    tokens_out_at_most: int = 0

    def __add__(self, other: Load) -> Load:
        return Load(
            self.calls + other.calls,
            self.images + other.images,
            self.size + other.size,
            self.tokens_in + other.tokens_in,
            self.tokens_out_at_most + other.tokens_out_at_most,
        )


def load(
    messages: Iterable[Sequence[Part]], variant: Variant, space: Space, manner: Manner
) -> Load:
    """What asking these messages sends; their image parts are paths of files.

    Raises:
        OSError: an image cannot be read.
    """

    def one(parts: Sequence[Part]) -> Load:
        asked = request(parts, variant, space, manner)
        characters = sum(len(part.value) for part in parts if part.kind is PartKind.TEXT)
        return Load(
            calls=1,
            images=len(asked.images),
            size=len(json.dumps(asked.body)),
            tokens_in=characters // CHARACTERS_A_TOKEN
            + sum(image_tokens(image, space) for image in asked.images),
            tokens_out_at_most=manner.max_tokens or variant.max_new_tokens,
        )

    # Encoding, which takes the time, runs outside Python's lock.
    with ThreadPoolExecutor(4) as pool:
        return reduce(Load.__add__, pool.map(one, messages), Load())


def image_tokens(image: SentImage, space: Space) -> int:
    """Tokens of an image: patches after the resize that the space says, else as sent.

    28 x 28 pixels a patch for Claude, 32 x 32 for all others: right for OpenAI's documented sizing,
    a guess for others.
    """
    width, height = image.sent
    if space.kind in ("openai_high", *_PATCHES):
        width, height = map(int, reference_size(Space(space.kind), width, height))
    patch = _PATCHES.get(space.kind, _PATCH)
    return math.ceil(width / patch) * math.ceil(height / patch)
