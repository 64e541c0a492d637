"""What calls send and may cost, estimated without a network.

Calls and images are exact, tokens are estimates.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, replace
from operator import add
from typing import TYPE_CHECKING

from ...boxes import Space, reference_size
from ...protocol import Message, PartKind

if TYPE_CHECKING:
    from .sent_images import ChatRequest, SentImage

CHARACTERS_A_TOKEN = 4  # usual for English
_PATCHES = {"claude_standard": 28, "claude_highres": 28}
_PATCH = 32


@dataclass(frozen=True, slots=True)
class Load:
    """What some calls send and may cost."""

    calls: int = 0
    images: int = 0
    tokens_in: int = 0
    tokens_out_at_most: int = 0
    tokens_beginning: int = 0  # up to the last image: cacheable
    tokens_again: int = 0  # of these, already sent by an earlier call
    usd_in: float = 0.0  # 0: no price is known
    usd_out_at_most: float = 0.0

    def __add__(self, other: Load) -> Load:
        return Load(*map(add, astuple(self), astuple(other)))

    def paid(self, share: float) -> Load:
        out = self.usd_out_at_most * share
        return replace(self, usd_in=self.usd_in * share, usd_out_at_most=out)


def words_of(message: Message) -> tuple[int, int]:
    """Count a message's characters: all, and those before the last image."""
    count = beginning = 0
    for kind, value in message:
        if kind is PartKind.IMAGE:
            beginning = count
        else:
            count += len(value)
    return count, beginning


def load_of(asked: ChatRequest, message: Message, space: Space, limit: int) -> Load:
    """Return what one request sends; ``limit`` is of the reply's tokens."""
    words, beginning = words_of(message)
    images = sum(image_tokens(image, space) for image in asked.images)
    return Load(
        calls=1,
        images=len(asked.images),
        tokens_in=words // CHARACTERS_A_TOKEN + images,
        tokens_out_at_most=limit,
        tokens_beginning=beginning // CHARACTERS_A_TOKEN + images,
    )


def image_tokens(image: SentImage, space: Space) -> int:
    """Return the tokens of an image: patches after the space's resize, else as sent.

    28 x 28 pixels per patch for Claude, 32 x 32 for others: correct for OpenAI's documented sizing,
    else a guess.
    """
    width, height = image.sent
    if space.kind in ("openai_high", *_PATCHES):
        width, height = map(int, reference_size(Space(space.kind), width, height))
    patch = _PATCHES.get(space.kind, _PATCH)
    return math.ceil(width / patch) * math.ceil(height / patch)
