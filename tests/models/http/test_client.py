"""One request: its deadline, broken connections, redirects, proxies, when to come back."""

from __future__ import annotations

import asyncio
import gzip
import re
import ssl
import threading
import tracemalloc
import zlib
from datetime import UTC, datetime
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any

import pytest
from chat_server import NEVER, Answer, ChatServer, completion, in_turn

from vlmeval_findit.models import (
    CallError,
    Endpoint,
    HttpClient,
    HttpRequest,
    retry_after,
)


def post(timeout: float, url: str, key: str = "", most: int = 4 << 20) -> bytes:
    """Return the body of the reply to one request of a new client."""
    endpoint = Endpoint(url, key)
    where = endpoint.at("chat/completions")
    headers = endpoint.request_headers()

    async def sent() -> bytes:
        async with HttpClient(timeout) as session:
            return await session.send(HttpRequest("POST", where, headers, [b"{}"], most=most))

    return asyncio.run(sent())


def test_a_server_that_never_answers_is_left_in_time() -> None:
    with ChatServer(in_turn(NEVER)) as server, pytest.raises(CallError) as got:
        post(0.3, server.url)
    assert str(got.value) == "no reply within 0.3 s"
    assert got.value.transient
    assert got.value.worked_on


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"", "ServerDisconnected"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}", "ContentLength"),
    ],
)
def test_what_is_no_reply_is_a_broken_connection(said: bytes, why: str) -> None:
    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            self.request.sendall(said)

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        with pytest.raises(CallError, match=why) as got:
            post(60, f"http://127.0.0.1:{server.server_address[1]}/v1")
        server.shutdown()
    assert got.value.transient
    assert got.value.worked_on, "it may be charged"


def test_a_redirect_does_not_get_the_key() -> None:
    with ChatServer(in_turn(completion("stolen"))) as thief:
        away = Answer(b"", 307, {"Location": f"{thief.url}/chat/completions"})
        with ChatServer(in_turn(away)) as server, pytest.raises(CallError, match="HTTP 307"):
            post(60, server.url, "a-key-of-mine")
        assert not thief.asked


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


def test_errors_name_the_proxy_that_they_came_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with ChatServer(in_turn(Answer(b"no such host", 502))) as proxy:
        address = proxy.url.removesuffix("/api/v1").removeprefix("http://")
        monkeypatch.setenv("http_proxy", f"http://me:pr0xy-password@{address}")
        shown = re.escape(f"HTTP 502: no such host (through the proxy http://{address})")
        with pytest.raises(CallError, match=shown):
            post(60, "http://findit.invalid/v1")
    with pytest.raises(CallError, match=re.escape(f"(through the proxy http://{address})")) as got:
        post(60, "http://findit.invalid/v1")
    assert "pr0xy" not in str(got.value)
    monkeypatch.setenv("http_proxy", "socks5://127.0.0.1:9")
    with pytest.raises(CallError, match="kind socks5 are not supported") as got:
        post(60, "http://findit.invalid/v1")
    assert got.value.hopeless


BOMB = b"0" * (5 << 20)


@pytest.mark.parametrize(
    ("body", "headers", "why"),
    [
        (BOMB, {}, "the reply is longer than 4 MiB"),
        (gzip.compress(BOMB), {"Content-Encoding": "gzip"}, "the reply is longer than 4 MiB"),
        (zlib.compress(BOMB), {"Content-Encoding": "Deflate"}, "the reply is longer than 4 MiB"),
        (b"{}", {"Content-Encoding": "br"}, "the reply is packed as 'br'"),
        (b"{}", {"Content-Encoding": "gzip"}, "the reply does not unpack"),
    ],
)
def test_a_reply_cannot_take_all_memory(
    monkeypatch: pytest.MonkeyPatch, body: bytes, headers: dict[str, str], why: str
) -> None:
    with ChatServer(in_turn(Answer(body, 200, headers))) as server:
        tracemalloc.start()
        with pytest.raises(CallError, match=why) as got:
            post(60, server.url)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert got.value.worked_on, "it may be charged"
    assert got.value.lasting is ("longer" in why or "packed as" in why)
    assert got.value.transient is not got.value.lasting
    assert peak < 40 << 20


@pytest.mark.parametrize(
    ("pack", "encoding"), [(gzip.compress, "gzip"), (zlib.compress, "deflate")]
)
def test_a_packed_reply_is_read(pack: Any, encoding: str) -> None:
    """Some proxies pack although nobody asked for it."""
    packed = Answer(pack(completion("[1, 2, 3, 4]").body), 200, {"Content-Encoding": encoding})
    with ChatServer(in_turn(packed)) as server:
        assert b"[1, 2, 3, 4]" in post(60, server.url)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("1.5", 1.5),
        ("0", 0.0),
        ("Sat, 21 Nov 2026 10:00:30 GMT", 30.0),
        ("Sat, 21 Nov 2026 09:00:30 GMT", 0.0),
        *((none, None) for none in ("-3", "nan", "soon", "", None)),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    assert retry_after(value, datetime(2026, 11, 21, 10, tzinfo=UTC)) == seconds


def test_certificates_are_verified_though_the_host_switches_that_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trustme = pytest.importorskip("trustme")
    from web import web_server

    monkeypatch.setattr(ssl, "_create_default_https_context", ssl._create_unverified_context)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(tls)
    with web_server(tls) as web, pytest.raises(CallError, match="no trusted certificate") as got:
        post(60, f"{web.url}v1")
    assert "name its file in SSL_CERT_FILE" in str(got.value)
    assert (got.value.hopeless, got.value.transient) == (True, False)
