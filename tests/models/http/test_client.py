"""One request: its deadline, its size, certificates, proxies, headers.  The servers misbehave."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

import pytest
from chat_server import Answer, ChatServer, completion, in_turn

from vlmeval_findit.models.http.client import (
    LARGEST_REPLY,
    HttpClient,
    HttpRequest,
    retry_after,
)
from vlmeval_findit.models.http.completion import CallError
from vlmeval_findit.models.http.endpoint import Endpoint

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """As ``asyncio.run``, but it does not wait for the threads that look up names."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(coroutine)
    finally:
        loop.close()


def request_to(url: str, key: str = "", *pieces: bytes) -> HttpRequest:
    endpoint = Endpoint(url, key)
    where, headers = endpoint.at("chat/completions"), endpoint.request_headers()
    return HttpRequest("POST", where, headers, pieces or (b"{}",))


def post(timeout: float, url: str, key: str = "") -> bytes:
    """Return the body of the reply to one request of a new client."""

    async def sent() -> bytes:
        async with HttpClient(timeout) as session:
            return await session.send(request_to(url, key))

    return run(sent())


# --- what no HTTP library would let a server say -------------------------------------------------

Talk = Callable[[socket.socket, threading.Event], None]
"""What it does with a connection whose request was read; the event says that the test is over."""


@contextmanager
def raw_server(talk: Talk) -> Iterator[str]:
    """Yield the URL of a server that talks so on every connection."""
    listener = socket.create_server(("127.0.0.1", 0))
    done = threading.Event()

    def serve(connection: socket.socket) -> None:
        with connection:
            try:
                connection.recv(65536)
                talk(connection, done)
            except OSError:
                pass  # the caller hung up

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    finally:
        done.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def dripping(first: bytes, drop: bytes) -> Talk:
    """Says something, and then a little again and again."""

    def talk(connection: socket.socket, done: threading.Event) -> None:
        connection.sendall(first)
        while not done.wait(0.02):
            connection.sendall(drop)

    return talk


def saying(whole: bytes) -> Talk:
    """Says something and hangs up."""
    return lambda connection, done: connection.sendall(whole)


OK = b"HTTP/1.1 200 OK\r\n"
LATE: dict[str, Talk] = {
    "silence": dripping(b"", b""),
    "a status line in drips": dripping(b"HTTP/1.1 20", b""),
    "headers in drips": dripping(OK, b"X-A: b\r\n"),
    "100 Continue again and again": dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a body without an end": dripping(OK + b"\r\n", b" "),
}


@pytest.mark.parametrize("talk", LATE.values(), ids=LATE)
def test_one_deadline_holds_for_all_that_a_server_can_do(talk: Talk) -> None:
    with raw_server(talk) as url, pytest.raises(CallError, match=r"no reply within 0\.3 s") as got:
        post(0.3, url)
    assert got.value.transient


BROKEN: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "ServerDisconnected"),
    "no HTTP": (b"SSH-2.0-OpenSSH\r\n", "no reply"),
    "half a body": (OK + b"Content-Length: 10\r\n\r\n{}", "ContentLength"),
    "chunks that are none": (OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "no reply"),
}


@pytest.mark.parametrize(("whole", "why"), BROKEN.values(), ids=BROKEN)
def test_what_is_no_reply_is_a_broken_connection(whole: bytes, why: str) -> None:
    with raw_server(saying(whole)) as url, pytest.raises(CallError, match=why) as got:
        post(60, url)
    assert got.value.transient
    assert "\n" not in str(got.value)


def test_a_reply_that_is_too_large_is_not_read() -> None:
    large = dripping(OK + b"\r\n", b" " * 2**20)
    with raw_server(large) as url, pytest.raises(CallError, match="larger than") as got:
        post(60, url)
    assert not got.value.transient


def test_a_bomb_does_not_burst() -> None:
    bomb = gzip.compress(b" " * (LARGEST_REPLY + 1))
    script = in_turn(Answer(bomb, headers={"Content-Encoding": "gzip"}))
    with ChatServer(script) as server, pytest.raises(CallError) as got:
        post(60, server.url)
    assert "larger than" in str(got.value) or "no reply" in str(got.value)
    assert server.asked[0].headers["accept-encoding"] == "identity"


def test_a_redirect_does_not_get_the_key() -> None:
    with ChatServer(in_turn(completion("stolen"))) as thief:
        away = Answer(b"", 307, {"Location": f"{thief.url}/chat/completions"})
        with ChatServer(in_turn(away)) as server, pytest.raises(CallError, match="HTTP 307"):
            post(60, server.url, "a-key-of-mine")
        assert not thief.asked


def test_certificates_are_verified_though_the_host_switches_that_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trustme = pytest.importorskip("trustme")
    from web import web_server

    monkeypatch.setattr(ssl, "_create_default_https_context", ssl._create_unverified_context)
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    with web_server(tls) as web:
        with pytest.raises(CallError, match=r"CERTIFICATE_VERIFY_FAILED|[Cc]ertificate"):
            post(60, f"{web.url}v1")
        # It is the certificate that was wrong: known, the server is asked (and takes no POST).
        trusting = ssl.create_default_context()
        authority.configure_trust(trusting)
        monkeypatch.setattr("aiohttp.connector._SSL_CONTEXT_VERIFIED", trusting)
        with pytest.raises(CallError, match="HTTP 501"):
            post(60, f"{web.url}v1")


def test_the_proxies_of_the_environment_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with ChatServer(in_turn(completion("by the proxy"))) as proxy:
        address = proxy.url.removesuffix("/api/v1").removeprefix("http://")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.setenv("NO_PROXY", "other.invalid")
        monkeypatch.setenv("http_proxy", f"http://me:pr0xy-password@{address}")
        body = post(60, "http://findit.invalid/v1")
        assert b"by the proxy" in body
        (asked,) = proxy.asked
        assert asked.path == "http://findit.invalid/v1/chat/completions"
        assert asked.headers["proxy-authorization"].startswith("Basic ")
        monkeypatch.setenv("NO_PROXY", "findit.invalid")
        monkeypatch.setenv("http_proxy", f"http://{address}")
        with pytest.raises(CallError, match="no reply"):
            post(60, "http://findit.invalid/v1")
        assert len(proxy.asked) == 1


def test_connections_stay_open_and_bodies_come_whole() -> None:
    seen = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                seen.append((writer, await reader.readexactly(length)))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        except (asyncio.IncompleteReadError, ConnectionResetError):
            writer.close()

    async def talk() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        large = b"x" * 200_000
        async with HttpClient(60) as session, server:
            for _ in range(5):
                asked = [session.send(request_to(url, "", b"[", large, b"]")) for _ in range(4)]
                assert await asyncio.gather(*asked) == [b"{}"] * 4
        assert {body for _, body in seen} == {b"[" + large + b"]"}

    run(talk())
    assert len(seen) == 20
    assert len({writer for writer, _ in seen}) == 4


def test_an_open_connection_that_the_server_closed_is_no_failure() -> None:
    """A request on it is sent once more, silently; on a new connection it is a failure."""
    asked = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        await reader.readuntil(b"\r\n\r\n{}")
        asked += 1
        if asked < 4:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            await reader.read(1)  # takes the next request and hangs up
        writer.close()

    async def talk() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        async with HttpClient(60) as session, server:
            for _ in range(3):
                assert await session.send(request_to(url)) == b"{}"
            with pytest.raises(CallError, match="ServerDisconnected"):
                await session.send(request_to(url))
            assert asked == 4
            with pytest.raises(CallError, match="ServerDisconnected"):
                await session.send(request_to(url))

    run(talk())
    assert asked == 5


def test_retry_after_is_seconds_or_a_date() -> None:
    now = datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC)
    assert retry_after("1.5", now) == 1.5
    assert retry_after("Sat, 21 Nov 2026 10:00:30 GMT", now) == 30.0
    assert retry_after("Sat, 21 Nov 2026 10:00:30 -0000", now) == 30.0
    assert retry_after("Sat, 21 Nov 2026 09:00:30 GMT", now) == 0.0
    assert retry_after("0", now) == 0.0
    for none in ("-3", "nan", "soon", "Sat, 99 Xyz 2026", "", None):
        assert retry_after(none, now) is None
    for no_time in (
        "Fri, 31 Dec 99999 23:59:59 GMT",
        "Fri, 31 Dec 2026 23:59:59 +9999999999",
        "Mon, 01 Jan 0001 00:00:00 +1400",
    ):
        assert not retry_after(no_time, now), "it is not waited for"
