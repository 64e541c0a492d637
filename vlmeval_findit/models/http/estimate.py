"""What a run over an API would send, counted without a network.

Calls, images and bytes are exact; tokens are estimates (:func:`image_tokens`).
"""

from __future__ import annotations

import json
import math
from dataclasses import astuple, dataclass, replace
from operator import add

from ...boxes.spaces import Space, reference_size
from ...core.messages import Message, PartKind
from ..prices import Prices
from .images import SentImage
from .payload import Request

CHARACTERS_A_TOKEN = 4
"""A usual share for English."""

_PATCHES = {"claude_standard": 28, "claude_highres": 28}
_PATCH = 32


@dataclass(frozen=True, slots=True)
class Load:
    """What some calls send and may cost, in tokens and in US dollars (0: no price is known)."""

    calls: int = 0
    images: int = 0
    size: int = 0
    """Bytes."""
    tokens_in: int = 0
    tokens_out_at_most: int = 0
    tokens_beginning: int = 0
    """Tokens up to the last image, which a cache can keep."""
    tokens_again: int = 0
    """Of these, those that an earlier call sent too."""
    usd_in: float = 0.0
    usd_out_at_most: float = 0.0

    def __add__(self, other: Load) -> Load:
        return Load(*map(add, astuple(self), astuple(other)))

    def paid(self, share: float) -> Load:
        """The same load at a share of its price."""
        out = self.usd_out_at_most * share
        return replace(self, usd_in=self.usd_in * share, usd_out_at_most=out)

    def priced(self, prices: Prices | None, *, shared: bool) -> Load:
        """One call's load with its price as the first over its images; ``shared``: others are over
        them too (of one alone nothing is kept).
        """
        if prices is None:
            return self
        return replace(
            self,
            usd_in=prices.first(self.tokens_in, self.tokens_beginning if shared else 0),
            usd_out_at_most=self.tokens_out_at_most * prices.answered / 1e6,
        )


def words_of(message: Message) -> tuple[int, int, int]:
    """Count characters of a message's texts: all, those before the last image, and as JSON has
    them, without quotes.
    """
    count = beginning = as_json = 0
    for kind, value in message:
        if kind is PartKind.IMAGE:
            beginning = count
        else:
            count += len(value)
            as_json += len(_quoted(value)) - 2
    return count, beginning, as_json


_quoted = json.encoder.encode_basestring_ascii


def load_of(asked: Request, message: Message, space: Space, limit: int) -> Load:
    """What one request sends, without its size; ``limit`` is that of the reply's tokens."""
    words, beginning, _ = words_of(message)
    images = sum(image_tokens(image, space) for image in asked.images)
    return Load(
        calls=1,
        images=len(asked.images),
        tokens_in=words // CHARACTERS_A_TOKEN + images,
        tokens_out_at_most=limit,
        tokens_beginning=beginning // CHARACTERS_A_TOKEN + images,
    )


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
