"""One request: its deadline, broken connections, redirects, proxies, when to come back."""

from __future__ import annotations

import asyncio
import ssl
import threading
from datetime import UTC, datetime
from socketserver import BaseRequestHandler, ThreadingTCPServer

import pytest
from chat_server import NEVER, Answer, ChatServer, completion, in_turn

from vlmeval_findit.models.http.client import HttpClient, HttpRequest, retry_after
from vlmeval_findit.models.http.completion import CallError
from vlmeval_findit.models.http.endpoint import Endpoint


def post(timeout: float, url: str, key: str = "") -> bytes:
    """Return the body of the reply to one request of a new client."""
    endpoint = Endpoint(url, key)
    where, headers = endpoint.at("chat/completions"), endpoint.request_headers()

    async def sent() -> bytes:
        async with HttpClient(timeout) as session:
            return await session.send(HttpRequest("POST", where, headers, [b"{}"]))

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
    certificate = r"CERTIFICATE_VERIFY_FAILED|[Cc]ertificate"
    with web_server(tls) as web, pytest.raises(CallError, match=certificate):
        post(60, f"{web.url}v1")
