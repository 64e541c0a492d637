"""One request: its deadline, its size, certificates, proxies, headers.  The servers misbehave."""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
from datetime import UTC, datetime

import pytest
from chat_server import NEVER, Answer, ChatServer, completion, in_turn
from raw_server import Talk, dripping, raw_server, saying

from vlmeval_findit.models.http import transport
from vlmeval_findit.models.http.completion import CallError
from vlmeval_findit.models.http.endpoint import Endpoint
from vlmeval_findit.models.http.transport import LARGEST_REPLY, Transport, retry_after, tls_context

OK = b"HTTP/1.1 200 OK\r\n"
LATE: dict[str, Talk] = {
    "silence": dripping(b"", b""),
    "a status line in drips": dripping(b"HTTP/1.1 20", b""),
    "headers in drips": dripping(OK, b"X-A: b\r\n"),
    "one header in drips": dripping(OK + b"X-A: ", b"b"),
    "100 Continue again and again": dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "102 Processing again and again": dripping(b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
    "a body in drips": dripping(OK + b"Content-Length: 100000\r\n\r\n", b" "),
    "chunks in drips": dripping(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "a body without an end": dripping(OK + b"\r\n", b" "),
}


@pytest.mark.parametrize("talk", LATE.values(), ids=LATE)
def test_one_deadline_holds_for_all_that_a_server_can_do(talk: Talk) -> None:
    with raw_server(talk) as url, pytest.raises(CallError, match=r"no reply within 0\.3 s") as got:
        Transport(0.3).post(Endpoint(url), b"{}")
    assert got.value.transient


def test_the_deadline_holds_for_names_too(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: over.wait(60) and [])
    try:
        with pytest.raises(CallError, match="no reply within"):
            Transport(0.3).post(Endpoint("http://findit.invalid/v1"), b"{}")
    finally:
        over.set()


def test_the_deadline_holds_for_tls_too() -> None:
    with raw_server(dripping(b"", b"")) as url, pytest.raises(CallError, match="no reply within"):
        Transport(0.3).post(Endpoint(url.replace("http:", "https:")), b"{}")


def test_a_connection_that_nobody_accepts_is_given_up() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        waiting = []
        for _ in range(3):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
            waiting.append(one)
        with pytest.raises(CallError, match="no reply within"):
            Transport(0.3).post(Endpoint(f"http://127.0.0.1:{port}/v1"), b"{}")
        for one in waiting:
            one.close()


BROKEN: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "ServerDisconnected"),
    "no HTTP": (b"SSH-2.0-OpenSSH\r\n", "no reply"),
    "half a body": (OK + b"Content-Length: 10\r\n\r\n{}", "ContentLength"),
    "a length that is none": (OK + b"Content-Length: x\r\n\r\n{}", "no reply"),
    "two lengths": (OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "no reply"),
    "a header without an end": (OK + b"X-A: " + b"b" * 100_000, "no reply"),
    "compression that is none": (
        OK + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
        "no reply",
    ),
    "chunks that are none": (OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "no reply"),
}


@pytest.mark.parametrize(("whole", "why"), BROKEN.values(), ids=BROKEN)
def test_what_is_no_reply_is_a_broken_connection(whole: bytes, why: str) -> None:
    with raw_server(saying(whole)) as url, pytest.raises(CallError, match=why) as got:
        Transport(5).post(Endpoint(url), b"{}")
    assert got.value.transient
    assert "\n" not in str(got.value)


def test_a_reply_that_is_too_large_is_not_read() -> None:
    large = dripping(OK + b"\r\n", b" " * 2**20)
    with raw_server(large) as url, pytest.raises(CallError, match="larger than") as got:
        Transport(60).post(Endpoint(url), b"{}")
    assert not got.value.transient


def test_a_bomb_does_not_burst() -> None:
    bomb = gzip.compress(b" " * (LARGEST_REPLY + 1))
    script = in_turn(Answer(bomb, headers={"Content-Encoding": "gzip"}))
    with ChatServer(script) as server, pytest.raises(CallError) as got:
        Transport(60).post(Endpoint(server.url), b"{}")
    assert "larger than" in str(got.value) or "no reply" in str(got.value)
    assert server.asked[0].headers["accept-encoding"] == "identity"


def test_a_redirect_does_not_get_the_key() -> None:
    with ChatServer(in_turn(completion("stolen"))) as thief:
        away = Answer(b"", 307, {"Location": f"{thief.url}/chat/completions"})
        with ChatServer(in_turn(away)) as server, pytest.raises(CallError, match="HTTP 307"):
            Transport(5).post(Endpoint(server.url, "a-key-of-mine"), b"{}")
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
            Transport(5).post(Endpoint(f"{web.url}v1"), b"{}")
        # It is the certificate that was wrong: known, the server is asked (and takes no POST).
        trusting = ssl.create_default_context()
        authority.configure_trust(trusting)
        monkeypatch.setattr(transport, "tls_context", lambda: trusting)
        with pytest.raises(CallError, match="HTTP 501"):
            Transport(5).post(Endpoint(f"{web.url}v1"), b"{}")
    assert tls_context().verify_mode is ssl.CERT_REQUIRED
    assert tls_context().check_hostname


def test_the_proxies_of_the_environment_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with ChatServer(in_turn(completion("by the proxy"))) as proxy:
        address = proxy.url.removesuffix("/api/v1").removeprefix("http://")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.setenv("NO_PROXY", "other.invalid")
        monkeypatch.setenv("http_proxy", f"http://me:pr0xy-password@{address}")
        body = Transport(5).post(Endpoint("http://findit.invalid/v1"), b"{}")
        assert b"by the proxy" in body
        (asked,) = proxy.asked
        assert asked.path == "http://findit.invalid/v1/chat/completions"
        assert asked.headers["proxy-authorization"].startswith("Basic ")
        monkeypatch.setenv("NO_PROXY", "findit.invalid")
        monkeypatch.setenv("http_proxy", f"http://{address}")
        with pytest.raises(CallError, match="no reply"):
            Transport(5).post(Endpoint("http://findit.invalid/v1"), b"{}")
        assert len(proxy.asked) == 1


def test_what_is_cancelled_ends_and_nothing_begins() -> None:
    with ChatServer(in_turn(NEVER)) as server:
        sending = Transport(600)
        errors: list[str] = []

        def post() -> None:
            try:
                sending.post(Endpoint(server.url), b"{}")
            except CallError as error:
                errors.append(str(error))

        thread = threading.Thread(target=post)
        thread.start()
        while not server.asked:
            thread.join(0.005)
        sending.cancel()
        thread.join(60)
        post()
        assert errors == ["cancelled"] * 2
        assert len(server.asked) == 1


def test_retry_after_is_seconds_or_a_date() -> None:
    now = datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC)
    assert retry_after("1.5", now) == 1.5
    assert retry_after("Sat, 21 Nov 2026 10:00:30 GMT", now) == 30.0
    assert retry_after("Sat, 21 Nov 2026 10:00:30 -0000", now) == 30.0
    assert retry_after("Sat, 21 Nov 2026 09:00:30 GMT", now) == 0.0
    for none in ("-3", "nan", "soon", "", None):
        assert retry_after(none, now) is None
