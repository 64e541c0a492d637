"""Servers that are slow, or never end: each call ends within its timeout, and is tried again."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

import pytest
from asking import QUICK, ask_call, service
from broken_server import RawServer
from web import web_server

from vlmeval_findit.models import BodyRoom
from vlmeval_findit.protocol import CallResult, text

TWICE = replace(QUICK, attempts=2, refusals=2)
TIMEOUT = 0.4
LONG_ENOUGH = 1.5
"""Seconds in which each of many calls at once reaches its server."""

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
LONG = HEAD + b"Content-Length: 1000\r\n\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
PACKED = HEAD + b"Content-Encoding: gzip\r\nContent-Length: 100000\r\n\r\n"
ERROR = b"HTTP/1.1 500 Oh\r\nContent-Length: 1000\r\n\r\n"
TOO_MANY = b"HTTP/1.1 429 No\r\nRetry-After: 0\r\nContent-Length: 1000\r\n\r\n"
ELSEWHERE = b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 1000\r\n\r\n"
WHOLE = b'{"choices":[{"finish_reason":"stop","message":{"content":"[]"}}]}'

# What comes at once, and what comes again and again
Mode = tuple[bytes, bytes]
MODES: dict[str, Mode] = {
    "silence": (b"", b""),
    "a status, byte by byte": (b"", b"H"),
    "half a status": (b"HTTP/1.1 20", b""),
    "no end of a status": (b"HTTP/1.1 200 ", b"O"),
    "headers without end": (HEAD, b"X-More: 1\r\n"),
    "a header without end": (HEAD + b"X-Long: ", b"x"),
    "a header, folded": (HEAD + b"X-Long: a", b"\r\n b"),
    "no end of the head": (HEAD, b""),
    "go on, without end": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "wait, without end": (b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
    "a hint, without end": (b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
    "no body": (LONG, b""),
    "a body, byte by byte": (LONG, b" "),
    "half a body": (LONG + WHOLE[:20], b""),
    "a whole body that does not end": (LONG + WHOLE, b""),
    "no length, and no end": (HEAD + b"\r\n" + WHOLE, b""),
    "white space without end": (CHUNKED, b"1\r\n \r\n"),
    "events without end": (CHUNKED, b"8\r\n: ping\n\n\r\n"),
    "half a chunk": (CHUNKED + b"ff\r\nabc", b""),
    "a chunk's size, byte by byte": (CHUNKED, b"0"),
    "a chunk's extensions": (CHUNKED + b"1;", b"a=b;"),
    "no last chunk": (CHUNKED + b"41\r\n" + WHOLE + b"\r\n", b""),
    "trailers without end": (CHUNKED + b"41\r\n" + WHOLE + b"\r\n0\r\n", b"X-More: 1\r\n"),
    # Blocks of nothing
    "gzip without end": (PACKED + gzip.compress(WHOLE)[:10], b"\0\0\0\xff\xff"),
    "half of gzip": (PACKED + gzip.compress(WHOLE)[:20], b""),
    "an error without end": (ERROR, b"x"),
    "half an error": (ERROR + b"oh", b""),
    "a refusal without end": (TOO_MANY, b"x"),
    "another address, without end": (ELSEWHERE, b"x"),
}


class SlowServer(RawServer):
    """Writes a beginning, and then a piece every few milliseconds, until the test ends."""

    def __init__(self, mode: Mode) -> None:
        super().__init__()
        self._mode = mode
        self._is_over = threading.Event()

    def answer(self, connection: socket.socket, request: bytes) -> None:
        begin, piece = self._mode
        connection.sendall(begin)
        while not self._is_over.wait(0.02):
            if piece:
                connection.sendall(piece)

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        super().__exit__(*error)


def test_calls_end_in_their_time_and_are_tried_again() -> None:
    """All are asked at once: one after another, the test would wait for half a minute."""
    with ThreadPoolExecutor(len(MODES)) as threads:
        seen = dict(zip(MODES, threads.map(ask_slow_server, MODES.values()), strict=True))
    for mode, (asked, answer) in seen.items():
        said = answer.error or ""
        assert asked == 2, mode
        assert answer.text == "", mode
        assert f"within {LONG_ENOUGH:g} s" in said or "is not HTTP" in said, f"{mode}: {said}"


def ask_slow_server(mode: Mode) -> tuple[int, CallResult]:
    """Return how often a server was asked, and the answer to the call."""
    with SlowServer(mode) as server:
        answer = ask_call(service(server.url, policy=TWICE, timeout=LONG_ENOUGH))
        return server.asked, answer


CUT: dict[str, bytes] = {
    "at once": b"",
    "in the head": HEAD,
    "in the body": LONG + WHOLE[:20],
    "in a chunk": CHUNKED + b"ff\r\nabc",
    "in gzip": PACKED + gzip.compress(WHOLE)[:20],
    "in an error": ERROR + b"oh",
}


class HalfClosed(RawServer):
    """Writes a beginning, ends its half of the connection, and reads on."""

    def __init__(self, begin: bytes) -> None:
        super().__init__()
        self._begin = begin

    def answer(self, connection: socket.socket, request: bytes) -> None:
        connection.sendall(self._begin)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 16):
            pass


@pytest.mark.parametrize("cut", CUT)
def test_half_closed_connections_are_tried_again(cut: str) -> None:
    with HalfClosed(CUT[cut]) as server:
        answer = ask_call(service(server.url, policy=TWICE, timeout=30))
        assert server.asked == 2
    said = answer.error or ""
    assert answer.text == ""
    assert "broke off" in said or "ended the connection" in said or "HTTP 500" in said, said


class NeverReads(RawServer):
    """Accepts connections, and reads nothing of what is sent."""

    def _serve(self, connection: socket.socket) -> None:
        self.asked += 1


def test_a_request_that_nobody_reads_ends_in_its_time() -> None:
    with NeverReads() as server:
        asked = service(server.url, policy=TWICE, timeout=TIMEOUT)
        answer = ask_call(asked, message=(text("where? " * 2_000_000),))
    assert f"no reply within {TIMEOUT:g} s" in (answer.error or "")


# --- http at a server of https --------------------------------------------------------------------


class EndsUnread(RawServer):
    """Ends a connection before it has read what came, as a server of TLS does."""

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError):
            connection.recv(1)
            connection.close()


class Alerts(RawServer):
    """Answers as a server of TLS does that tells the client: with an alert."""

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError):
            connection.recv(1 << 16)
            connection.sendall(b"\x15\x03\x01\x00\x02\x02\x46")
            connection.close()


ADVICE = "Should its address (--base-url) begin with https://?"


@pytest.mark.parametrize("server", [EndsUnread, Alerts])
def test_http_at_a_server_of_https_says_what_to_type(server: Callable[[], RawServer]) -> None:
    with server() as running:
        said = ask_call(service(running.url, policy=TWICE)).error or ""
    assert ADVICE in said


def test_http_at_a_real_https_server_says_what_to_type() -> None:
    trustme = pytest.importorskip("trustme")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(tls)
    with web_server(tls) as web:
        url = web.url.replace("https:", "http:")
        said = ask_call(service(f"{url}v1", policy=TWICE)).error or ""
    assert ADVICE in said


class DiesAfterOne(RawServer):
    """Refuses one request in HTTP, and ends all later connections."""

    def answer(self, connection: socket.socket, request: bytes) -> None:
        if self.asked == 1:
            connection.sendall(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")


def test_a_server_that_spoke_http_gets_no_such_advice() -> None:
    with DiesAfterOne() as server:
        said = ask_call(service(server.url, policy=replace(TWICE, attempts=3))).error or ""
        assert server.asked > 1
    assert "ended the connection" in said
    assert ADVICE not in said


# --- one room -------------------------------------------------------------------------------------


def test_clients_of_all_threads_share_one_room() -> None:
    room = BodyRoom(90)
    held: list[int] = []
    most: list[int] = []
    lock = threading.Lock()

    async def body() -> None:
        with room.share() as share:
            await share.take(30)
            with lock:
                held.append(1)
                most.append(len(held))
            await asyncio.sleep(0)
            with lock:
                held.pop()

    async def client() -> None:
        await asyncio.gather(*(body() for _ in range(20)))

    threads = [threading.Thread(target=lambda: asyncio.run(client())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(most) == 120
    assert max(most) == 3
