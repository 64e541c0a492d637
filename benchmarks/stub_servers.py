"""Chat servers in another process, which answer after a while.

``python stub_servers.py '{"servers": 8, "delay": 1.0}'`` prints its ports in a line. It
answers each line of its standard input with the calls that the servers saw.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Manner:
    """How servers answer.

    ``delay`` seconds a call, give or take the share ``spread`` of it; ``cold`` instead for the
    first call over a picture.
    ``refused`` and ``failed`` are the shares of calls that get 429 and 500 at once.
    """

    servers: int = 1
    delay: float = 1.0
    spread: float = 0.0
    cold: float | None = None
    refused: float = 0.0
    failed: float = 0.0


@dataclass(frozen=True)
class Seen:
    """Calls that all servers saw together; ``span`` is from the first call to the last answer.

    ``readings`` counts calls over a picture that their server did not know, ``most`` the calls at
    a time, ``statuses`` the answers by status.
    """

    calls: int
    connections: int
    readings: int
    most: int
    span: float
    statuses: dict[str, int]


class Stubs:
    """``with stubs(...) as servers``: ``urls`` are their addresses."""

    def __init__(self, process: subprocess.Popen[str], ports: list[int]) -> None:
        self._process = process
        self.urls = [f"http://127.0.0.1:{port}/v1" for port in ports]

    def seen(self) -> Seen:
        """Return the calls since the last question."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return Seen(**json.loads(self._process.stdout.readline()))


@contextmanager
def stubs(**manner: Any) -> Iterator[Stubs]:
    """Start servers that answer in this :class:`Manner` while the block runs."""
    command = [sys.executable, __file__, json.dumps(asdict(Manner(**manner)))]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout
        yield Stubs(process, json.loads(process.stdout.readline()))


# --- the process ----------------------------------------------------------------------------------

_CREATED = {"id": "x", "object": "chat.completion", "created": 0, "model": "stub"}
_CHOICE = {
    "index": 0,
    "message": {"role": "assistant", "content": '[{"bbox_2d": [100, 100, 500, 500]}]'},
    "finish_reason": "stop",
}
_USAGE = {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020}
_ANSWERS = {
    200: ("OK", {**_CREATED, "choices": [_CHOICE], "usage": _USAGE}),
    429: ("Too Many Requests", {"error": {"message": "too many"}}),
    500: ("Internal Server Error", {"error": {"message": "fails on purpose"}}),
}
_MODELS = {"object": "list", "data": [{"id": "stub", "object": "model"}]}


class Counts:
    """Counts of all servers since the last question."""

    def __init__(self) -> None:
        self.calls = self.connections = self.readings = self.now = self.most = 0
        self.first = self.last = 0.0
        self.statuses = Counter[str]()

    def seen(self) -> Seen:
        span = self.last - self.first
        return Seen(
            self.calls, self.connections, self.readings, self.most, span, dict(self.statuses)
        )


class Server:
    """A server at an address; ``known`` are the pictures of answered calls."""

    def __init__(self, manner: Manner, counts: Counts) -> None:
        self.manner = manner
        self.counts = counts
        self.known: set[int] = set()
        self.random = random.Random(7)

    def status(self) -> int:
        draw = self.random.random()
        if draw < self.manner.refused:
            return 429
        return 500 if draw < self.manner.refused + self.manner.failed else 200


class Connection(asyncio.Protocol):
    """A connection, with one request at a time."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._received = bytearray()
        self._awaited = 0
        server.counts.connections += 1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._awaited:
            head, end, _ = self._received.partition(b"\r\n\r\n")
            if not end:
                return
            length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
            self._awaited = len(head) + 4 + int(length or 0)
        if len(self._received) >= self._awaited:
            request, self._received = bytes(self._received[: self._awaited]), bytearray()
            self._awaited = 0
            self._asked(request)

    def _asked(self, request: bytes) -> None:
        if request.startswith(b"GET"):
            self._send(200, "OK", _MODELS)
            return
        counts = self._server.counts
        server = self._server
        now = time.time()
        counts.first = counts.first or now
        counts.calls += 1
        counts.now += 1
        counts.most = max(counts.most, counts.now)
        start = request.find(b";base64,")
        picture = hash(request[start : request.find(b'"', start)])
        status, manner = server.status(), server.manner
        seconds = manner.delay
        if status != 200:
            seconds = 0.01
        elif picture not in server.known:
            counts.readings += 1
            seconds = manner.delay if manner.cold is None else manner.cold
        seconds *= 1 + server.random.uniform(-manner.spread, manner.spread)
        asyncio.get_running_loop().call_later(seconds, self._answer, status, picture)

    def _answer(self, status: int, picture: int) -> None:
        counts = self._server.counts
        counts.now -= 1
        counts.last = time.time()
        counts.statuses[str(status)] += 1
        if status == 200:
            self._server.known.add(picture)
        self._send(status, *_ANSWERS[status])

    def _send(self, status: int, reason: str, body: Any) -> None:
        content = json.dumps(body).encode()
        more = "Retry-After: 1\r\n" if status == 429 else ""
        head = (
            f"HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\n{more}"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        self._transport.write(head.encode() + content)


async def serve(manner: Manner) -> None:
    loop = asyncio.get_running_loop()
    counts = Counts()
    listening = []
    for _ in range(manner.servers):
        server = Server(manner, counts)
        socket = await loop.create_server(
            lambda server=server: Connection(server), "127.0.0.1", backlog=4096
        )
        listening.append((server, socket))
    print(json.dumps([socket.sockets[0].getsockname()[1] for _, socket in listening]), flush=True)
    while await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(asdict(counts.seen())), flush=True)
        counts = Counts()
        for server, _ in listening:
            server.counts = counts
            server.known.clear()


if __name__ == "__main__":
    asyncio.run(serve(Manner(**json.loads(sys.argv[1]))))
