"""What a run over an API would send, counted without a network.

Calls, images and bytes are exact; tokens are estimates (:func:`image_tokens`).
"""

from __future__ import annotations

import json
import math
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from ...boxes.spaces import Space, reference_size
from ...core.messages import Message, PartKind
from ...core.question import Question
from .payload import ImageRule, Manner, SentImage, request

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
        light = Manner(
            manner.model,
            lambda path, limit: self._weighed(manner.images, path, limit),
            manner.fields,
            manner.max_tokens,
            manner.image_detail,
        )
        asked = request(message, question, space, light)
        characters = sum(len(part.value) for part in message if part.kind is PartKind.TEXT)
        lengths = (image.length for image in asked.images if isinstance(image, _Weighed))
        return Load(
            calls=1,
            images=len(asked.images),
            size=len(json.dumps(asked.body)) + sum(lengths),
            tokens_in=characters // CHARACTERS_A_TOKEN
            + sum(image_tokens(image, space) for image in asked.images),
            tokens_out_at_most=manner.max_tokens or question.max_new_tokens,
        )

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
