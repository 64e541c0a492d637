"""Files on a server that are read without a copy on disk, by ranges."""

from __future__ import annotations

import io
from collections.abc import Generator

from .download import Client, DownloadError, PassingError, validator_of

_WINDOW = 1 << 18
"""Bytes that are asked for at once where one seeks: about the size of a photograph."""


class RemoteFile(io.RawIOBase):
    """The bytes of an address; where the connection breaks it goes on from there.

    Front to back they come with one request, which ``whole`` is for; else window by window, so that
    a connection is used again after a seek.

    Raises:
        DownloadError: on reading, when no attempt brings it further, or the file has changed.
    """

    def __init__(self, client: Client, url: str, size: int, validator: str, whole: bool) -> None:
        self.size = size
        self._client = client
        self._url = url
        self._validator = validator
        self._whole = whole
        self._at = 0
        self._rest = b""  # what came from there on
        self._pieces: Generator[bytes] | None = None  # what comes after it

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        if at != self._at:
            self._disconnect()
            self._at = at
        return at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if not self._rest and self._at < self.size:
            self._rest = self._client.persist(self._url, self._next)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        self._at += count
        return count

    def close(self) -> None:
        self._disconnect()
        super().close()

    def _disconnect(self) -> None:
        if self._pieces is not None:
            self._pieces.close()
        self._pieces, self._rest = None, b""

    def _next(self) -> bytes:
        self._pieces = self._pieces or self._from(self._at)
        try:
            return next(self._pieces)
        except BaseException:
            self._pieces = None
            raise

    def _from(self, at: int) -> Generator[bytes]:
        while at < self.size:
            begin = at
            last = min(at + (self.size if self._whole else _WINDOW), self.size) - 1
            with self._client.get_from(self._url, at, self._validator, str(last)) as response:
                if response.status_code != 206:
                    raise DownloadError(f"{self._url}: changed on the server while it was read")
                pieces = self._client.pieces(response)
                for piece in filter(None, pieces if self._whole else [b"".join(pieces)]):
                    at += len(piece)
                    yield piece
            if at == begin:
                raise PassingError(f"{at} bytes came of {self.size}")


def remote_file(client: Client, url: str, whole: bool = False) -> RemoteFile | None:
    """Return a file that can be read anywhere, or None where the server does not serve ranges."""

    def probe() -> RemoteFile | None:
        with client.get_from(url, 0, last="0") as response:
            total = response.headers.get("Content-Range", "").rpartition("/")[2]
            if response.status_code != 206 or not total.isdigit():
                return None
            return RemoteFile(client, url, int(total), validator_of(response.headers), whole)

    return client.persist(url, probe)
