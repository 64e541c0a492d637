"""What a run over an API would send, counted without a network.

Calls, images and bytes are exact; tokens are estimates (:func:`image_tokens`).
"""

from __future__ import annotations

import json
import math
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

from ...boxes.spaces import Space, reference_size
from ...core.messages import Message, PartKind
from ...core.question import Question
from ..prices import Prices
from .payload import ImageRule, Manner, Request, SentImage, request

CHARACTERS_A_TOKEN = 4
"""A usual share for English."""

_PATCHES = {"claude_standard": 28, "claude_highres": 28}
_PATCH = 32


@dataclass(frozen=True, slots=True)
class Load:
    """What some calls send (``size`` in bytes) and may cost, in tokens and in US dollars.

    ``tokens_beginning`` are those up to the last image, which a cache can keep; ``tokens_again``
    are those of beginnings that an earlier call sent too.  Dollars are 0 where no price is known.
    """

    calls: int = 0
    images: int = 0
    size: int = 0
    tokens_in: int = 0
    tokens_out_at_most: int = 0
    tokens_beginning: int = 0
    tokens_again: int = 0
    usd_in: float = 0.0
    usd_out_at_most: float = 0.0

    def __add__(self, other: Load) -> Load:
        return Load(
            self.calls + other.calls,
            self.images + other.images,
            self.size + other.size,
            self.tokens_in + other.tokens_in,
            self.tokens_out_at_most + other.tokens_out_at_most,
            self.tokens_beginning + other.tokens_beginning,
            self.tokens_again + other.tokens_again,
            self.usd_in + other.usd_in,
            self.usd_out_at_most + other.usd_out_at_most,
        )

    def paid(self, share: float) -> Load:
        """The same load at a share of its price."""
        usd = self.usd_in * share, self.usd_out_at_most * share
        return replace(self, usd_in=usd[0], usd_out_at_most=usd[1])

    def priced(self, place: int, calls: int, prices: Prices | None) -> Load:
        """One call's load, and its price: of so many calls over the same images that with a place.

        Args:
            place: from 0; the provider keeps the beginning of the first and reads it for others.
            calls: over the same images; of one alone nothing is kept.
            prices: None: not known.
        """
        again = self.tokens_beginning if place else 0
        if prices is None:
            return replace(self, tokens_again=again)
        price = prices.another if place else prices.first
        return replace(
            self,
            tokens_again=again,
            usd_in=price(self.tokens_in, self.tokens_beginning if calls > 1 else 0),
            usd_out_at_most=self.tokens_out_at_most * prices.answered / 1e6,
        )


@dataclass(frozen=True, slots=True)
class _Weighed(SentImage):
    """An image that is not kept: ``length`` is that of its bytes in base64."""

    length: int = 0


class Scale:
    """Weighs calls: each image is encoded once, whoever is asked about it, and none is kept.

    Any number of threads may share it: encoding, which takes the time, runs outside Python's lock.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[ImageRule, Path, int | None], Future[_Weighed]] = {}
        self._lock = Lock()

    def load(self, message: Message, question: Question, space: Space, manner: Manner) -> Load:
        """What asking one message sends; its image parts are paths of files.

        Raises:
            OSError: an image cannot be read.
        """
        light = replace(
            manner, images=lambda path, limit: self._weighed(manner.images, path, limit)
        )
        asked = request(message, question, space, light)
        lengths = (image.length for image in asked.images if isinstance(image, _Weighed))
        size = len(json.dumps(asked.body)) + sum(lengths)
        limit = manner.max_tokens or question.max_new_tokens
        return replace(load_of(asked, message, space, limit), size=size)

    def _weighed(self, rule: ImageRule, path: Path, limit: int | None) -> _Weighed:
        at = (rule, path, limit)
        with self._lock:
            mine = at not in self._known
            weighed = self._known.setdefault(at, Future())
        if mine:
            try:
                image = rule(path, limit)
                length = 4 * math.ceil(len(image.data) / 3)
                weighed.set_result(_Weighed(image.original, image.sent, image.mime, b"", length))
            except BaseException as error:
                weighed.set_exception(error)
        return weighed.result()


def load_of(asked: Request, message: Message, space: Space, limit: int) -> Load:
    """What one request sends, without its size; ``limit`` is that of the reply's tokens."""
    texts = [0 if part.kind is PartKind.IMAGE else len(part.value) for part in message]
    images = sum(image_tokens(image, space) for image in asked.images)
    places = [at for at, part in enumerate(message) if part.kind is PartKind.IMAGE]
    before = texts[: places[-1]] if places else []
    return Load(
        calls=1,
        images=len(asked.images),
        tokens_in=sum(texts) // CHARACTERS_A_TOKEN + images,
        tokens_out_at_most=limit,
        tokens_beginning=sum(before) // CHARACTERS_A_TOKEN + images,
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
