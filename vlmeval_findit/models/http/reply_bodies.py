"""Reads the bodies of replies: what they take of the memory follows from what was asked for.

A body may be as long as a reply to its request can be.  It is unpacked in small pieces, as a few
kilobytes can become gigabytes, and long bodies share one room: who finds it full waits.
"""

from __future__ import annotations

import asyncio
import threading
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, Any

import aiohttp

from ..token_limits import LIMIT_FIELDS
from .lost_replies import BodyError, LastingBodyError

MOST_LISTED_BYTES = 4 << 20  # of lists of models and batches, and of a server's state
MOST_ERROR_BYTES = 256 << 10  # of an error; what comes behind is not read

ROOM_BYTES = 32 << 20  # of all long bodies that are read at a time

_PART = 1 << 16
_SHORT = 4 * _PART  # a body of which so much has come needs room for the rest

# A reply's envelope, and thoughts that the limit of its tokens does not count
_BESIDES_TOKENS = 1 << 20
# A token has four letters: JSON escapes some with 6 bytes each, and thoughts may be there twice.
_OF_TOKEN = 128
# An entry of log-probabilities: a token, its bytes as numbers, and a number
_OF_LOGPROB = 512


def most_reply_bytes(body: Mapping[str, Any]) -> int:
    """Return the most bytes that a reply to a chat request can have.

    >>> most_reply_bytes({"max_tokens": 1024}) >> 10
    1152
    """
    limits = (body.get(name) for name in LIMIT_FIELDS)
    tokens = next((limit for limit in limits if isinstance(limit, int)), 0)
    if not body.get("logprobs"):
        return most_bytes_of(tokens)
    others = body.get("top_logprobs")
    return most_bytes_of(tokens, 1 + others if isinstance(others, int) else 1)


def most_bytes_of(tokens: int, logprobs: int = 0) -> int:
    """Return the most bytes of a reply of so many tokens, each with so many log-probabilities."""
    return _BESIDES_TOKENS + tokens * (_OF_TOKEN + logprobs * _OF_LOGPROB)


class BodyRoom:
    """The memory that the long bodies in flight share.

    Who needs room asks once, for all that the body may need: so nobody waits for another who waits.
    Who asks may be of any thread.
    """

    def __init__(self, size: int = ROOM_BYTES) -> None:
        self._size = size
        self._free = size
        self._lock = threading.Lock()
        self._waiting: list[asyncio.Future[None]] = []

    @contextmanager
    def share(self) -> Iterator[RoomShare]:
        """Give a body its share, which is free again afterwards."""
        share = RoomShare(self)
        try:
            yield share
        finally:
            self._give_back(share.held)

    async def take(self, count: int) -> int:
        """Wait for so many bytes, or for all of the room; return how many were taken."""
        needed = min(count, self._size)
        while True:
            freed = asyncio.get_running_loop().create_future()
            with self._lock:
                if self._free >= needed:
                    self._free -= needed
                    return needed
                self._waiting.append(freed)
            try:
                await freed
            finally:
                with self._lock:
                    self._waiting.remove(freed)

    def _give_back(self, held: int) -> None:
        if not held:
            return
        with self._lock:
            self._free += held
            waiting = [*self._waiting]
        for freed in waiting:
            with suppress(RuntimeError):  # of a loop that was closed meanwhile
                freed.get_loop().call_soon_threadsafe(_wake, freed)


def _wake(freed: asyncio.Future[None]) -> None:
    if not freed.done():
        freed.set_result(None)


class RoomShare:
    """What one body holds of a room."""

    def __init__(self, room: BodyRoom) -> None:
        self.held = 0
        self._room = room

    async def take(self, count: int) -> None:
        if not self.held:
            self.held = await self._room.take(count)


ROOM = BodyRoom()  # of this process: models that are asked at once share it


async def read_body(reply: aiohttp.ClientResponse, most: int, share: RoomShare) -> bytes:
    """Read a body of at most so many bytes, unpacked, or raise BodyError."""
    body = bytearray()
    async for piece in _pieces(reply):
        body += piece
        if len(body) > most:
            raise _too_long(most)
        if len(body) > _SHORT:
            await share.take(most)
    return bytes(body)


async def read_error(reply: aiohttp.ClientResponse, share: RoomShare) -> bytes:
    """Read the beginning of the body of an error; raise BodyError if it cannot be unpacked."""
    body = bytearray()
    async for piece in _pieces(reply):
        body += piece
        if len(body) > _SHORT:
            await share.take(MOST_ERROR_BYTES)
        if len(body) >= MOST_ERROR_BYTES:
            break
    return bytes(body[:MOST_ERROR_BYTES])


async def save_body(reply: aiohttp.ClientResponse, most: int, file: IO[bytes]) -> None:
    """Write a body of at most so many bytes, unpacked, to a file, or raise BodyError."""
    size = 0
    async for piece in _pieces(reply):
        size += len(piece)
        if size > most:
            raise _too_long(most)
        file.write(piece)


def _too_long(most: int) -> BodyError:
    return LastingBodyError(f"is longer than {most / (1 << 20):.3g} MiB, more than was asked for")


async def _pieces(reply: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield a body in small pieces, unpacked; raise BodyError if it cannot be."""
    encoding = reply.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding in ("identity", ""):
        async for part in reply.content.iter_chunked(_PART):
            yield part
        return
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise LastingBodyError(f"is packed as {encoding!r}, though that was not asked for")
    # 47: zlib's or gzip's header, whichever is there
    unpacker = zlib.decompressobj(47)
    is_begun = False
    async for part in reply.content.iter_chunked(_PART):
        is_begun = True
        for piece in _unpacked(unpacker, part):
            yield piece
    if is_begun and not unpacker.eof:
        raise BodyError("ends before what is packed in it does")


def _unpacked(unpacker: zlib._Decompress, packed: bytes) -> Iterator[bytes]:
    while not unpacker.eof:
        try:
            piece = unpacker.decompress(packed, _PART)
        except zlib.error:
            raise BodyError("does not unpack") from None
        if piece:
            yield piece
        packed = unpacker.unconsumed_tail
        # A whole piece may leave output behind, though all input was taken.
        if not packed and len(piece) < _PART:
            return
