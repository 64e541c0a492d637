"""Read and encode the queries that come next while the model generates."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from ...protocol import Message, image_paths
from .encoding import Encoded, MessageEncoder
from .layout import Bounds
from .model_images import ImageSet


class EncodingThread:
    """Encodes all queries of a model, one batch ahead.

    It is one thread, as a tokenizer is not made for two. Each query is encoded as if alone: what
    was begun ahead changes none.
    """

    def __init__(self, encoder: MessageEncoder) -> None:
        self._encoder = encoder
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="findit-encoding")
        self._begun: dict[tuple[Message, Bounds], Future[Encoded]] = {}

    def begin(self, messages: Sequence[Message], bounds: Bounds) -> None:
        """Begin to encode the messages that are taken next, in place of others that wait."""
        self.drop()
        self._begun = self._submitted(messages, bounds)

    def drop(self) -> None:
        """Encode nothing more of what waits."""
        for future in self._begun.values():
            future.cancel()
        self._begun = {}

    def take(self, messages: Sequence[Message], bounds: Bounds) -> list[Encoded | OSError]:
        """Return messages as a model takes them, or why an image cannot be read."""
        missing = [message for message in messages if (message, bounds) not in self._begun]
        known = self._begun | self._submitted(missing, bounds)
        taken: list[Encoded | OSError] = []
        for message in messages:
            try:
                taken.append(known[message, bounds].result())
            except OSError as error:
                taken.append(error)
        for message in messages:
            self._begun.pop((message, bounds), None)
        return taken

    def _submitted(
        self, messages: Sequence[Message], bounds: Bounds
    ) -> dict[tuple[Message, Bounds], Future[Encoded]]:
        images = ImageSet(bounds)
        first: dict[object, Encoded] = {}
        submitted = {}
        for message in dict.fromkeys(messages):
            future = self._thread.submit(self._encoded, message, images, first)
            submitted[message, bounds] = future
        return submitted

    def _encoded(self, message: Message, images: ImageSet, first: dict[object, Encoded]) -> Encoded:
        """Encode a message; those over the same images have the features of the first in common."""
        shown = image_paths(message)
        if shown in first:
            query = self._encoder.encode_like(first[shown], message)
            if query is not None:
                return query
        query = self._encoder.encode(message, images)
        if shown:
            first.setdefault(shown, query)
        return query
