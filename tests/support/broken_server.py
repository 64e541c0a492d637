"""A server on 127.0.0.1 that reads a request whole, does the work, and then breaks the reply.

A mode writes bytes on the connection itself, so that a reply can be broken in any layer: the
connection, the head, the chunks, the packing.
"""

from __future__ import annotations

import gzip
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Self

Write = Callable[[socket.socket, bytes], None]
"""Writes the reply to a request, of which the body is given."""


class RawServer:
    """Writes replies on connections itself; ``asked`` counts the requests that came whole."""

    def __init__(self, path: str = "/v1") -> None:
        self.asked = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}{path}"
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def answer(self, connection: socket.socket, request: bytes) -> None:
        """Write the reply to the body of a request."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        # shutdown() wakes the thread that waits in accept().
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)
        for connection in self._open:
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError):
            request = _read_request(connection)
            if request is not None:
                self.asked += 1
                self.answer(connection, request)
            connection.close()


class BrokenServer(RawServer):
    """Answers all requests by one mode.

    Args:
        mode: a name of :data:`MODES`.
        body: the whole reply, which some modes break.
        path: of the base URL.
    """

    def __init__(self, mode: str, body: bytes, path: str = "/v1") -> None:
        super().__init__(path)
        self._write = MODES[mode]
        self._body = body

    def answer(self, connection: socket.socket, request: bytes) -> None:
        self._write(connection, self._body)


def _read_request(connection: socket.socket) -> bytes | None:
    """Read a request and return its body; None for one of an address that is looked at (GET)."""
    head = b""
    while b"\r\n\r\n" not in head:
        part = connection.recv(65536)
        if not part:
            return None
        head += part
    head, _, body = head.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
    left = int(length[1]) - len(body) if length else 0
    while left > 0:
        part = connection.recv(65536)
        if not part:
            return None
        left -= len(part)
        body += part
    return body if head.startswith(b"POST") else None


# --- modes ----------------------------------------------------------------------------------------


def _http(body: bytes, *more: str, status: str = "200 OK", length: int | None = None) -> bytes:
    lines = [
        f"HTTP/1.1 {status}",
        "Content-Type: application/json",
        f"Content-Length: {len(body) if length is None else length}",
        # Without it, a second request could come on this connection while it is being closed.
        "Connection: close",
        *more,
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _says(make: Callable[[bytes], bytes]) -> Write:
    return lambda connection, body: connection.sendall(make(body))


def _reset(connection: socket.socket) -> None:
    """End a connection with RST."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def _resets_after(make: Callable[[bytes], bytes]) -> Write:
    def write(connection: socket.socket, body: bytes) -> None:
        said = make(body)
        if said:
            connection.sendall(said)
            time.sleep(0.05)  # it is read before the end
        _reset(connection)

    return write


def _stalls_after(make: Callable[[bytes], bytes]) -> Write:
    def write(connection: socket.socket, body: bytes) -> None:
        connection.sendall(make(body))
        connection.recv(1)  # until the caller gives up

    return write


def _chunked(*chunks: bytes) -> bytes:
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    return head + b"".join(chunks)


def _gzipped(body: bytes) -> bytes:
    return _http(body, "Content-Encoding: gzip")


def _status(status: str) -> Write:
    said = json.dumps({"error": {"message": "fails on purpose"}}).encode()
    return _says(lambda body: _http(said, status=status))


_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

# Replies that are lost: each may have been billed.
LOST: Mapping[str, Write] = {
    "ends at once": _says(lambda body: b""),
    "resets at once": _resets_after(lambda body: b""),
    "resets within the status line": _resets_after(lambda body: b"HTTP/1.1 2"),
    "resets after the head": _resets_after(lambda body: _http(b"", length=len(body))),
    "resets within the body": _resets_after(lambda body: _http(body[:-9], length=len(body))),
    "ends within the status line": _says(lambda body: b"HTTP/1.1 2"),
    "ends within the head": _says(lambda body: _HEAD[:-6]),
    "ends after the head": _says(lambda body: _http(b"", length=len(body))),
    "ends within the body": _says(lambda body: _http(body[:-9], length=len(body))),
    "never answers": _stalls_after(lambda body: b""),
    "stalls within the head": _stalls_after(lambda body: _HEAD[:-6]),
    "stalls within the body": _stalls_after(lambda body: _http(body[:-9], length=len(body))),
    "no status line": _says(lambda body: body),
    "no version": _says(lambda body: b"200 OK\r\n\r\n" + body),
    "no space in the status line": _says(lambda body: b"HTTP/1.1 200OK\r\n\r\n" + body),
    "a status of letters": _says(lambda body: _http(body, status="abc OK")),
    "a status of four digits": _says(lambda body: _http(body, status="2000 OK")),
    "an unknown version": _says(lambda body: b"HTTP/9.9" + _http(body)[8:]),
    "a name of a header with spaces": _says(lambda body: _http(body, "Bad Header Name: x")),
    "a header without a colon": _says(lambda body: _http(body, "nothing")),
    "a header with a NUL": _says(lambda body: _http(body, "X-Odd: a\0b")),
    "a negative length": _says(lambda body: _http(body, length=-1)),
    "a length of letters": _says(lambda body: _HEAD + b"Content-Length: ten\r\n\r\n" + body),
    "two lengths": _says(lambda body: _http(body, "Content-Length: 5")),
    "a length and chunks": _says(
        lambda body: _http(b"2\r\n{}\r\n0\r\n\r\n", "Transfer-Encoding: chunked")
    ),
    "a header of a megabyte": _says(lambda body: _http(body, "X-Long: " + "a" * (1 << 20))),
    "too many headers": _says(lambda body: _http(body, *(f"X-{n}: y" for n in range(9000)))),
    "a size of a chunk in letters": _says(lambda body: _chunked(b"zz\r\n", body)),
    "a negative size of a chunk": _says(lambda body: _chunked(b"-5\r\n", body)),
    "a chunk that is longer than it says": _says(lambda body: _chunked(b"2\r\n", body, b"\r\n")),
    "chunks without an end": _says(lambda body: _chunked(b"%x\r\n" % len(body), body, b"\r\n")),
    "gzip that is none": _says(lambda body: _gzipped(body)),
    "gzip that is cut": _says(lambda body: _gzipped(gzip.compress(body)[:-20])),
    "gzip with a wrong sum": _says(lambda body: _gzipped(gzip.compress(body)[:-8] + b"\0" * 8)),
    "an unknown packing": _says(lambda body: _http(body, "Content-Encoding: br")),
    "gzip that is cut near its end": _says(lambda body: _gzipped(gzip.compress(body)[:-3])),
    "gzip of nothing": _says(lambda body: _gzipped(gzip.compress(b""))),
    "an empty body": _says(lambda body: _http(b"")),
    "an empty body that should be gzip": _says(lambda body: _gzipped(b"")),
    "status 204": _says(lambda body: b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"),
    "half of the JSON": _says(lambda body: _http(body[: len(body) // 2])),
    "a page": _says(lambda body: _http(b"<html>upstream fell over</html>")),
    **{
        f"status {status}": _status(f"{status} X")
        for status in (408, 424, 460, 499, 500, 502, 504, 520, 522, 524, 598, 599)
    },
}  # fmt: skip

# Refusals of the request: nothing was worked on.
REFUSED: Mapping[str, Write] = {
    f"status {status}": _status(f"{status} X")
    for status in (307, 400, 401, 402, 403, 404, 409, 413, 415, 422, 429, 451, 501, 503, 529)
}

# Whole replies in a form that is unusual
ODD: Mapping[str, Write] = {
    "whole": _says(lambda body: _http(body)),
    "a header of 9,000 bytes": _says(lambda body: _http(body, "X-Long: " + "a" * 9000)),
    "a header of 300,000 bytes": _says(lambda body: _http(body, "X-Long: " + "a" * 300_000)),
    "a reason of 20,000 bytes": _says(lambda body: _http(body, status="200 " + "a" * 20_000)),
    "100 headers": _says(lambda body: _http(body, *(f"X-{n}: y" for n in range(100)))),
    "chunks": _says(lambda body: _chunked(b"%x\r\n" % len(body), body, b"\r\n0\r\n\r\n")),
    "gzip": _says(lambda body: _gzipped(gzip.compress(body))),
    "until the connection ends": _says(lambda body: _HEAD + b"\r\n" + body),
    "a status of 201": _says(lambda body: _http(body, status="201 Created")),
}

# The reply is all that is said, its head too.
VERBATIM: Mapping[str, Write] = {"verbatim": _says(lambda body: body)}

MODES: Mapping[str, Write] = {**LOST, **REFUSED, **ODD, **VERBATIM}
