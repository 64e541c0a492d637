"""Replies that are lost after a request was sent whole: each may have been billed."""

from __future__ import annotations

import gzip
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from unittest.mock import Mock

import pytest
from asking import QUICK, ask_call, ask_calls
from broken_server import LOST, ODD, REFUSED, BrokenServer
from chat_server import Answer, ChatServer, completion, in_turn
from few_fast import every_nth_fast
from provider_servers import KEY, PROTOCOLS, openai_reply

from vlmeval_findit.engine import HttpService
from vlmeval_findit.models import (
    FREE_STATUSES,
    Budget,
    CallError,
    Endpoint,
    Provider,
    chat_model,
    may_be_billed,
    prices_from,
    provider_endpoints,
    was_sent_whole,
)
from vlmeval_findit.models.http.providers import provider_table
from vlmeval_findit.protocol import StopReason, text

BILL = (900 * 10 + 20 * 50) / 1e6  # of one reply, by the prices below
ONCE = replace(QUICK, attempts=1, refusals=1)
STALLS = tuple(mode for mode in LOST if mode.startswith(("never", "stalls")))


def asked(url: str, provider: str = "", limit: float = 9.0, **options: object) -> HttpService:
    """Return a model at a server of a protocol ("": a plain server), with $10 and $50."""
    name = {each.provider: each.model for each in PROTOCOLS}.get(provider, "Qwen3-VL")
    model = replace(chat_model(name, provider or None), prices=prices_from("10,50"))
    endpoint = Endpoint(url, KEY, provider=provider)
    how = {"timeout": 5.0, "policy": ONCE, "budget": Budget(limit), **options}
    return HttpService(model, [endpoint], **how)


def replies() -> dict[str, bytes]:
    """Return a whole reply of each protocol, by the name of its provider."""
    whole = {each.provider: each.reply("[5]").body for each in PROTOCOLS}
    return {"": openai_reply("[5]").body, **whole}


@pytest.mark.parametrize("mode", every_nth_fast(sorted(LOST), 3))
def test_a_lost_reply_is_charged_what_it_may_cost(mode: str) -> None:
    for provider, body in replies().items():
        with BrokenServer(mode, body) as server:
            service = asked(server.url, provider, timeout=0.3 if mode in STALLS else 5.0)
            answer = ask_call(service)
            assert server.asked == 1
        assert answer.error is not None
        assert service.budget.spent >= BILL, provider
        for bytes_of_python in ("400", "b'", 'b"', "HttpVersion", "message="):
            said = answer.error.replace(server.url, "")  # its port may have any digits
            assert bytes_of_python not in said, answer.error


@pytest.mark.parametrize(
    ("mode", "words"),
    [(mode, "ends before") for mode in LOST if mode.startswith("gzip that is cut")]
    + [(mode, "empty body") for mode in LOST if mode.startswith(("an empty", "status 204"))]
    + [("gzip of nothing", "empty body")],
)
def test_cut_gzip_and_empty_bodies_are_asked_again(mode: str, words: str) -> None:
    with BrokenServer(mode, openai_reply().body) as server:
        service = asked(server.url, policy=replace(ONCE, attempts=3, backoff=(0.001, 0.002)))
        answer = ask_call(service)
        assert server.asked == 3
    assert words in (answer.error or "")
    assert service.budget.guesses == 3


LASTING: dict[str, Answer] = {
    "3 MB": Answer(b'{"choices": "' + b"x" * 3_000_000 + b'"}'),
    "3 MB of spaces": Answer(b" " * 3_000_000 + b"{}"),
    "gzip of 3 MB": Answer(gzip.compress(b"x" * 3_000_000), 200, {"Content-Encoding": "gzip"}),
    "br": Answer(b"{}", 200, {"Content-Encoding": "br"}),
    "zstd": Answer(b"{}", 201, {"Content-Encoding": "zstd"}),
    "gzip, gzip": Answer(b"{}", 200, {"Content-Encoding": "gzip, gzip"}),
}
PATIENT = replace(ONCE, attempts=6, backoff=(0.001, 0.002))


@pytest.mark.parametrize("kind", LASTING)
@pytest.mark.parametrize("servers", [1, 2])
def test_a_reply_that_would_come_again_is_paid_twice(kind: str, servers: int) -> None:
    with ChatServer(in_turn(LASTING[kind])) as one, ChatServer(in_turn(LASTING[kind])) as other:
        service = asked(one.url, policy=PATIENT)
        endpoints = [Endpoint(server.url, KEY) for server in (one, other)]
        service.endpoints = endpoints[:servers]
        answers = ask_calls(service, 3, images=["one"] * 3)
        assert len(one.asked) + len(other.asked) == 2 * 3
    assert all("(2 attempts)" in (answer.error or "") for answer in answers)
    assert service.budget.guesses == 2 * 3


@pytest.mark.parametrize("kind", LASTING)
def test_such_replies_to_five_images_end_the_run(kind: str) -> None:
    with ChatServer(in_turn(LASTING[kind])) as server:
        images = [f"image {number}" for number in range(20)]
        ask_calls(asked(server.url, policy=PATIENT), 20, images=images)
        assert len(server.asked) <= 2 * 5 + 1


@pytest.mark.parametrize("kind", LASTING)
def test_such_a_reply_that_passes_is_answered(kind: str) -> None:
    with ChatServer(in_turn(LASTING[kind], completion("[5]"))) as server:
        answer = ask_call(asked(server.url, policy=PATIENT))
        assert len(server.asked) == 2
    assert (answer.error, answer.text) == (None, "[5]")


# --- what to type ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "key", "words"),
    [
        (401, "", "(no key was sent: type --key KEY, or set FINDIT_SERVER_KEY)"),
        (403, "", "(no key was sent: type --key KEY, or set FINDIT_SERVER_KEY)"),
        (401, KEY, "(it refuses what was sent as key or header: type --key KEY, or set"),
        (407, KEY, "(the proxy asks for a password: set HTTPS_PROXY"),
        (402, "", "fails on purpose"),
    ],
)
def test_a_refusal_says_what_to_type(status: int, key: str, words: str) -> None:
    said = json.dumps({"error": {"message": "fails on purpose"}}).encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(said)}\r\n\r\n".encode()
    with BrokenServer("verbatim", head + said) as server:
        service = replace(asked(server.url), endpoints=[Endpoint(server.url, key)])
        error = ask_call(service).error or ""
    assert words in error
    assert "key" in words or "--key" not in error


def test_a_web_page_says_which_address_to_check() -> None:
    with BrokenServer("a page", b"", path="/") as server:
        error = ask_call(asked(server.url)).error or ""
    assert "the reply is a web page" in error
    assert f"is it --base-url {server.url}v1?" in error
    with BrokenServer("a page", b"") as server:
        error = ask_call(asked(server.url)).error or ""
    assert "check --base-url, and whether a login or a proxy stands before" in error


@pytest.mark.parametrize("mode", sorted(REFUSED))
def test_a_refused_request_is_free(mode: str) -> None:
    for provider, body in replies().items():
        with BrokenServer(mode, body) as server:
            service = asked(server.url, provider)
            assert ask_call(service).error is not None
        assert service.budget.spent == 0.0, provider


@pytest.mark.parametrize("mode", sorted(ODD))
def test_a_whole_reply_is_read_and_charged(mode: str) -> None:
    for provider, body in replies().items():
        with BrokenServer(mode, body) as server:
            service = asked(server.url, provider)
            answer = ask_call(service)
        assert (answer.error, answer.text) == (None, "[5]")
        assert service.budget.spent >= BILL * (1 - 1e-9), provider
        assert service.budget.spent < 2 * BILL


@pytest.mark.parametrize("mode", sorted(LOST))
def test_a_limit_holds_though_every_reply_is_lost(mode: str) -> None:
    """Each attempt may cost $0.0384: a second one could pass the limit."""
    with BrokenServer(mode, openai_reply().body) as server:
        timeout = 0.2 if mode in STALLS else 5.0
        service = asked(server.url, limit=0.05, timeout=timeout, policy=QUICK)
        answers = ask_calls(service, 9, images=["one"] * 9)
        assert server.asked == 1
    assert answers[-1].stop is StopReason.SPENT


def test_a_request_that_does_not_leave_is_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        refusing = listener.getsockname()[1]
    for url in (f"http://127.0.0.1:{refusing}/v1", "http://no-such-host.invalid/v1"):
        service = asked(url)
        error = ask_call(service).error or ""
        assert "no reply (" in error
        assert "is the server running, and is its address (--base-url) right?" in error
        assert service.budget.spent == 0.0


def test_an_untrusted_certificate_is_free() -> None:
    trustme = pytest.importorskip("trustme")
    from web import web_server

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(tls)
    with web_server(tls) as web:
        service = asked(f"{web.url}v1")
        assert "no trusted certificate" in (ask_call(service).error or "")
    assert service.budget.spent == 0.0


@contextmanager
def closing_early() -> Iterator[str]:
    """Serve one request whose body is not read: the connection ends after a part of it."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            connection, _ = listener.accept()
            connection.recv(1000)
            connection.close()  # unread bytes make it a reset

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    listener.close()
    thread.join(10)


def test_a_request_that_left_in_part_is_free() -> None:
    with closing_early() as url:
        service = asked(url)
        answer = ask_call(service, message=(text("word " * 5_000_000),))
    assert "no reply (" in (answer.error or "")
    assert "is the server running" not in (answer.error or "")
    assert service.budget.spent == 0.0


def test_what_a_header_states_counts_though_the_body_is_lost() -> None:
    head = b"HTTP/1.1 200 OK\r\nX-LiteLLM-Response-Cost: 1.5\r\nContent-Length: 99\r\n\r\n"
    for said in (head, head.replace(b"99", b"2") + b"[]", head.replace(b"200 OK", b"400 Bad")):
        with BrokenServer("verbatim", said) as server:
            service = asked(server.url)
            assert ask_call(service).error is not None
        assert service.budget.spent == 1.5


@pytest.mark.parametrize(
    ("error", "is_charged"),
    [
        (OSError("reset"), True),
        (CallError("acme: no reply", transient=True), True),
        (CallError("acme: bad gateway", 502), True),
        (CallError("acme: no", 400), False),
        (CallError("acme: later", 429), False),
        (CallError("acme: key", hopeless=True), False),
        (ConnectionRefusedError("acme"), False),
    ],
)
def test_failures_of_plugins_are_charged_by_the_rule(
    error: Exception, is_charged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = Provider("mine", Mock(side_effect=error), "http://localhost/v9")
    monkeypatch.setattr(provider_table, "PROVIDERS", {**provider_table.PROVIDERS, "mine": row})
    model = chat_model("Qwen3-VL", "mine", "q3", space="grid1000")
    priced = replace(model, prices=prices_from("10,50"))
    service = HttpService(priced, provider_endpoints("mine"), 5.0, Budget(9.0), ONCE)
    assert ask_call(service).error is not None
    assert bool(service.budget.spent) is is_charged


@pytest.mark.parametrize("status", every_nth_fast([0, *range(200, 600)], 4))
def test_only_refusals_of_the_request_are_free(status: int) -> None:
    is_refusal = 300 <= status < 500 and status not in (408, 424, 460, 499)
    is_free = is_refusal or status in (501, 503, 529)
    assert may_be_billed(status=status) is not is_free
    assert (status in FREE_STATUSES) is is_free
    assert not may_be_billed(is_whole=False, status=status)
    assert not may_be_billed(is_refused=True, status=status)


@pytest.mark.parametrize(
    ("error", "is_whole"),
    [
        (ConnectionRefusedError(), False),
        (socket.gaierror(), False),
        (ssl.SSLCertVerificationError(), False),
        (OSError("who knows"), True),
        (TimeoutError(), True),
        (json.JSONDecodeError("x", "", 0), True),
    ],
)
def test_errors_of_plugins_tell_whether_they_asked(error: Exception, is_whole: bool) -> None:
    assert was_sent_whole(error) is is_whole
    wrapped = RuntimeError("acme")
    wrapped.__context__ = error
    assert was_sent_whole(wrapped) is is_whole
