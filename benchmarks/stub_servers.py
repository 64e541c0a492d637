"""Chat servers in a process of their own, which answer after a while without a thought.

``python stub_servers.py '{"servers": 8, "delay": 1.0}'`` says its ports in a line; each line that
it is sent is answered with what the servers saw, and it ends with its standard input.
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

    ``delay`` seconds a call; ``cold`` instead where none over its picture has come home before.
    ``refused`` and ``failed`` are the shares of calls that get 429 and 500 at once.
    """

    servers: int = 1
    delay: float = 1.0
    cold: float | None = None
    refused: float = 0.0
    failed: float = 0.0


@dataclass(frozen=True)
class Seen:
    """What all servers saw together; ``span`` is from the first call to the last answer.

    ``readings`` counts calls over a picture of which their server knew nothing, ``most`` the calls
    at a time, ``said`` what was answered, by status.
    """

    calls: int
    connections: int
    readings: int
    most: int
    span: float
    said: dict[str, int]


class Stubs:
    """``with stubs(...) as servers``: ``urls`` are their addresses."""

    def __init__(self, process: subprocess.Popen[str], ports: list[int]) -> None:
        self._process = process
        self.urls = [f"http://127.0.0.1:{port}/v1" for port in ports]

    def seen(self) -> Seen:
        """What they saw since they were asked last."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return Seen(**json.loads(self._process.stdout.readline()))


@contextmanager
def stubs(**manner: Any) -> Iterator[Stubs]:
    """Servers that answer in this :class:`Manner` while the block runs."""
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
    500: ("Internal Server Error", {"error": {"message": "made to fail"}}),
}
_MODELS = {"object": "list", "data": [{"id": "stub", "object": "model"}]}


class Counts:
    """Of all servers since they were asked last."""

    def __init__(self) -> None:
        self.calls = self.connections = self.readings = self.now = self.most = 0
        self.first = self.last = 0.0
        self.said = Counter[str]()

    def seen(self) -> Seen:
        span = self.last - self.first
        return Seen(self.calls, self.connections, self.readings, self.most, span, dict(self.said))


class Server:
    """One address; ``known`` are the pictures over which a call came home."""

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
    """One connection, with one request at a time."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._came = bytearray()
        self._awaited = 0
        server.counts.connections += 1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._came += data
        if not self._awaited:
            head, end, _ = self._came.partition(b"\r\n\r\n")
            if not end:
                return
            length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
            self._awaited = len(head) + 4 + int(length or 0)
        if len(self._came) >= self._awaited:
            request, self._came = bytes(self._came[: self._awaited]), bytearray()
            self._awaited = 0
            self._asked(request)

    def _asked(self, request: bytes) -> None:
        if request.startswith(b"GET"):
            self._send(200, "OK", _MODELS)
            return
        counts, server, now = self._server.counts, self._server, time.time()
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
        asyncio.get_running_loop().call_later(seconds, self._answer, status, picture)

    def _answer(self, status: int, picture: int) -> None:
        counts = self._server.counts
        counts.now -= 1
        counts.last = time.time()
        counts.said[str(status)] += 1
        if status == 200:
            self._server.known.add(picture)
        self._send(status, *_ANSWERS[status])

    def _send(self, status: int, reason: str, body: Any) -> None:
        said = json.dumps(body).encode()
        more = "Retry-After: 1\r\n" if status == 429 else ""
        head = (
            f"HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\n{more}"
            f"Content-Length: {len(said)}\r\n\r\n"
        )
        self._transport.write(head.encode() + said)


async def serve(manner: Manner) -> None:
    loop, counts, listening = asyncio.get_running_loop(), Counts(), []
    for _ in range(manner.servers):
        one = Server(manner, counts)
        made = await loop.create_server(lambda one=one: Connection(one), "127.0.0.1", backlog=4096)
        listening.append((one, made))
    print(json.dumps([made.sockets[0].getsockname()[1] for _, made in listening]), flush=True)
    while await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(asdict(counts.seen())), flush=True)
        counts = Counts()
        for one, _ in listening:
            one.counts = counts
            one.known.clear()


if __name__ == "__main__":
    asyncio.run(serve(Manner(**json.loads(sys.argv[1]))))
