"""Large archives without a copy on disk: read front to back, or by ranges where one must seek."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import requests

from .download import Client, DownloadError, PassingError, validator_of

_RANGE_BUFFER = 1 << 18
"""Bytes that are asked for at once where one seeks: about the size of a photograph."""


class RemoteStream(io.RawIOBase):
    """The bytes of an address, front to back; where the connection breaks it goes on from there.

    ``expect`` is told how many they are, where the server says so.

    Raises:
        DownloadError: on reading, when no attempt brings it further, or the file has changed.
    """

    def __init__(
        self, client: Client, url: str, expect: Callable[[int], None] = lambda total: None
    ) -> None:
        self._client = client
        self._url = url
        self._expect = expect
        self._at = 0
        self._validator = ""
        self._rest = b""
        self._open: ExitStack | None = None
        self._pieces: Iterator[bytes] = iter(())
        self._total: int | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if not self._rest:
            self._rest = self._client.persist(self._url, self._next)
            self._at += len(self._rest)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def close(self) -> None:
        self._disconnect()
        super().close()

    def _next(self) -> bytes:
        """The next piece; b"" at the end."""
        try:
            if self._open is None:
                self._connect()
            piece = next(self._pieces, b"")
        except requests.exceptions.RequestException as error:
            self._disconnect()
            raise PassingError(f"the connection broke ({type(error).__name__})") from None
        except BaseException:
            self._disconnect()
            raise
        if not piece and self._total is not None and self._at < self._total:
            self._disconnect()
            raise PassingError(f"{self._at} bytes came of {self._total}")
        return piece

    def _connect(self) -> None:
        stack = ExitStack()
        self._open = stack
        opened = self._client.get_from(self._url, self._at, self._validator)
        response = stack.enter_context(opened)
        validator = validator_of(response.headers)
        if self._at and validator != self._validator:
            raise DownloadError(f"{self._url}: changed on the server while it was read")
        self._validator = validator
        self._pieces = self._client.pieces(response)
        length = response.headers.get("Content-Length")
        if response.status_code == 200:
            self._total = int(length) if length else None
            if self._total and not self._at:
                self._expect(self._total)
            self._skip()
        elif response.status_code != 206:
            raise DownloadError(f"{self._url}: shorter than what came of it before")

    def _skip(self) -> None:
        """A server without ranges sends it all again."""
        left = self._at
        while left > 0:
            piece = next(self._pieces, b"")
            if not piece:
                raise PassingError("it ended before what came of it before")
            left -= len(piece)
            if left < 0:
                self._pieces = _after(piece[left:], self._pieces)

    def _disconnect(self) -> None:
        stack, self._open = self._open, None
        if stack is not None:
            stack.close()


def _after(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


class RemoteFile(io.RawIOBase):
    """Any bytes of an address, by range requests; on reading raises as a download would."""

    def __init__(self, client: Client, url: str, size: int, validator: str) -> None:
        self._client = client
        self._url = url
        self._size = size
        self._validator = validator
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        count = min(len(buffer), self._size - self._at)
        if count <= 0:
            return 0
        start = self._at
        data = self._client.persist(self._url, lambda: self._range(start, count))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def _range(self, start: int, count: int) -> bytes:
        last = str(start + count - 1)
        with self._client.get_from(self._url, start, self._validator, last) as response:
            if response.status_code != 206:
                raise DownloadError(f"{self._url}: changed on the server while it was read")
            data = b"".join(self._client.pieces(response))
        if len(data) != count:
            raise PassingError(f"{len(data)} bytes came of {count}")
        return data


def seekable(client: Client, url: str) -> io.BufferedReader | None:
    """A file that can be read anywhere, or None where the server does not serve ranges."""

    def probe() -> RemoteFile | None:
        with client.get_from(url, 0, last="0") as response:
            total = response.headers.get("Content-Range", "").rpartition("/")[2]
            if response.status_code != 206 or not total.isdigit():
                return None
            return RemoteFile(client, url, int(total), validator_of(response.headers))

    raw = client.persist(url, probe)
    return None if raw is None else io.BufferedReader(raw, _RANGE_BUFFER)
