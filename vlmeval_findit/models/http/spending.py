"""What calls cost: what a run would send, counted without a network (calls, images and bytes are
exact, tokens are estimates), and a limit in US dollars that all who share it keep to.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from operator import add
from threading import Lock
from typing import TYPE_CHECKING, NoReturn

from ...boxes.spaces import Space, reference_size
from ...core.messages import Message, PartKind

if TYPE_CHECKING:
    from .images import Request, SentImage

CHARACTERS_A_TOKEN = 4  # a usual share for English
_PATCHES = {"claude_standard": 28, "claude_highres": 28}
_PATCH = 32
_quoted = json.encoder.encode_basestring_ascii


@dataclass(frozen=True, slots=True)
class Load:
    """What some calls send and may cost."""

    calls: int = 0
    images: int = 0
    size: int = 0  # in bytes
    tokens_in: int = 0
    tokens_out_at_most: int = 0
    tokens_beginning: int = 0  # up to the last image, which a cache can keep
    tokens_again: int = 0  # of these, those that an earlier call sent too
    usd_in: float = 0.0  # 0: no price is known
    usd_out_at_most: float = 0.0

    def __add__(self, other: Load) -> Load:
        return Load(*map(add, astuple(self), astuple(other)))

    def paid(self, share: float) -> Load:
        """The same load at a share of its price."""
        out = self.usd_out_at_most * share
        return replace(self, usd_in=self.usd_in * share, usd_out_at_most=out)


def words_of(message: Message) -> tuple[int, int, int]:
    """Count a message's characters: all, before the last image, and as JSON has them, unquoted."""
    count = beginning = as_json = 0
    for kind, value in message:
        if kind is PartKind.IMAGE:
            beginning = count
        else:
            count += len(value)
            as_json += len(_quoted(value)) - 2
    return count, beginning, as_json


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


class SpendingError(Exception):
    """A call that was not made for the sake of the limit."""


class Budget:
    """What may be spent, and what was, in US dollars; runs in several threads may share it.

    What an attempt costs is known only after it.  So one begins only if spent + (attempts in flight
    + 1) x dearest attempt <= limit; until the first cost is known, one goes alone.  The limit is
    passed only where an attempt is dearer than every one before it.
    """

    def __init__(self, limit: float = math.inf) -> None:
        self.limit = limit  # infinite: only count
        self.spent = 0.0
        self.committed = 0.0  # of it, by batches at most
        self.dearest = 0.0  # of one call so far
        self.refused = 0
        self._watchers: list[Callable[[], None]] = []
        self._in_flight = 0
        self._unknown = False  # what a call cost
        self._lock = Lock()

    @property
    def exhausted(self) -> bool:
        return self.refused > 0

    def begin(self) -> bool:
        """Count an attempt that begins now; False: it has to wait for what others cost.

        Raises:
            SpendingError: it would pass the limit.
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
        """Take back an attempt that did not begin after all."""
        with self._lock:
            self._in_flight -= 1

    def end(self, cost: float | None) -> None:
        """Count what an attempt turned out to cost (None: nobody says it)."""
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
        """Call back, in any thread, when an attempt has ended: another may begin."""
        self._watchers.append(watcher)
        try:
            yield
        finally:
            self._watchers.remove(watcher)

    def commit(self, at_most: float | None) -> None:
        """Spend what a whole batch costs at most (None: not known), or refuse it.

        Raises:
            SpendingError: it could pass the limit, and nothing of it may be sent.
        """
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
        # Costs are decimal fractions: a sum of them may be a hair too large.
        return self.spent + (self._in_flight + 1) * self.dearest <= self.limit * (1 + 1e-9)

    def _refuse(self, why: str) -> NoReturn:
        self.refused += 1
        raise SpendingError(why)
