"""What calls cost: estimates without a network, and a shared limit in US dollars.

Calls and images are exact, tokens are estimates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from operator import add
from threading import Lock
from typing import TYPE_CHECKING, NoReturn

from ...boxes.spaces import Space, reference_size
from ...protocol.dataset_variant import Message, PartKind

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


class SpendingError(Exception):
    """A call was not made because of the limit."""


class Budget:
    """What may be spent, and what was, in US dollars; safe to share between threads.

    The cost of an attempt is known only afterwards. So one starts only if spent + (attempts in
    flight + 1) x dearest attempt <= limit; the first goes alone. The limit is exceeded only by an
    attempt that costs more than all before it.
    """

    def __init__(self, limit: float = math.inf) -> None:
        self.limit = limit  # infinite: only count
        self.spent = 0.0
        self.committed = 0.0  # by batches, at most
        self.dearest = 0.0  # cost of one call so far
        self.refused = 0
        self._watchers: list[Callable[[], None]] = []
        self._in_flight = 0
        self._unknown = False  # a call's cost was not stated
        self._lock = Lock()

    @property
    def exhausted(self) -> bool:
        return self.refused > 0

    def begin(self) -> bool:
        """Count an attempt; False: wait for others' costs; SpendingError: it could exceed the
        limit.
        """
        with self._lock:
            fits = self._fits()
            if not fits and self._in_flight == 0:
                if self._unknown:
                    self._refuse(
                        "the service does not say what calls cost, so no limit can be kept"
                    )
                spent = f"${self.spent:.4f} spent"
                self._refuse(f"the next call could pass the limit of ${self.limit:g} ({spent})")
            self._in_flight += fits
            return fits

    def take_back(self) -> None:
        with self._lock:
            self._in_flight -= 1

    def end(self, cost: float | None) -> None:
        """Count the cost of an attempt (None: not stated)."""
        with self._lock:
            self._in_flight -= 1
            self._unknown = self._unknown or cost is None
            if cost:
                self.spent += cost
                self.dearest = max(self.dearest, cost)
        if not math.isinf(self.limit):
            for watcher in list(self._watchers):
                watcher()

    @contextmanager
    def watched_by(self, watcher: Callable[[], None]) -> Iterator[None]:
        """Call back, in any thread, when an attempt has ended."""
        self._watchers.append(watcher)
        try:
            yield
        finally:
            self._watchers.remove(watcher)

    def commit(self, at_most: float | None) -> None:
        """Reserve a batch's greatest cost (None: unknown), or raise SpendingError."""
        with self._lock:
            if math.isinf(self.limit):
                return
            if at_most is None:
                self._refuse("what a batch costs is not known beforehand: no limit")
            elif self.committed + at_most > self.limit * (1 + 1e-9):
                self._refuse(
                    f"a batch that costs up to ${at_most:.4f} could pass the limit of "
                    f"${self.limit:g} (${self.committed:.4f} may be spent by others)"
                )
            self.committed += at_most

    def _fits(self) -> bool:
        if math.isinf(self.limit):
            return True
        if self._unknown:
            return False
        if not self.dearest:
            return self._in_flight == 0 and self.limit > 0
        # Sums of decimal fractions may be slightly too large.
        return self.spent + (self._in_flight + 1) * self.dearest <= self.limit * (1 + 1e-9)

    def _refuse(self, why: str) -> NoReturn:
        self.refused += 1
        raise SpendingError(why)
