"""What is said at once of a server that refuses calls or is not there, and what is not."""

from __future__ import annotations

import logging
import socket
from collections.abc import Sequence
from dataclasses import replace

import pytest
from asking import QUICK, ask_calls, service
from chat_server import Answer, Asked, ChatServer, Script, completion, error, in_turn

from vlmeval_findit.engine import HttpService
from vlmeval_findit.models import CallError

OK = completion("[]")
SIX = replace(QUICK, attempts=6, refusals=6)


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "asking again" in record.msg]


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (
            error(429, "You exceeded your current quota"),
            "HTTP 429: You exceeded your current quota",
        ),
        (error(503, "Loading model"), "HTTP 503: Loading model"),
        (error(502, "bad gateway"), "HTTP 502: bad gateway"),
        (error(529, "Overloaded"), "HTTP 529: Overloaded"),
        (error(408, "slow"), "HTTP 408: slow"),
    ],
)
def test_the_first_refusal_is_reported_at_once(
    first: Answer, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Sequence[str]] = []

    def script(asked: Asked, number: int) -> Answer:
        heard.append(said(caplog))
        return first if number < 3 else OK

    with ChatServer(script) as server:
        (answer,) = ask_calls(service(server.url, policy=SIX))
    assert answer.error is None
    assert [len(each) for each in heard] == [0, 1, 1, 1], "once, and before the second attempt"
    (line,) = said(caplog)
    assert line.startswith(f"{server.url}: {words}: asking again for up to ")
    assert line.endswith("; Ctrl-C stops")


@pytest.mark.parametrize(("status", "long"), [(429, "10 minutes"), (502, "a minute")])
def test_how_long_it_waits_is_said(
    status: int, long: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that never took a call may have another address."""
    with ChatServer(in_turn(error(status, "no"), OK)) as server:
        ask_calls(service(server.url))
    (line,) = said(caplog)
    assert f"asking again for up to {long};" in line


def test_where_nothing_listens_that_is_said_at_the_first_attempt(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/no/test/has/it/v1"
    ask_calls(service(url, policy=replace(QUICK, attempts=2)), 3)
    (line,) = said(caplog)
    assert "no reply (ConnectionRefusedError" in line
    assert "asking again for up to 5 seconds (if it is still starting, wait" in line


@pytest.mark.parametrize("reply", [OK, error(503, "loading"), error(400, "no such field")])
def test_an_address_that_replied_to_another_model_is_waited_for(
    reply: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    with ChatServer(in_turn(reply)) as server:
        ask_calls(service(server.url, policy=replace(QUICK, attempts=1, refusals=1)), 1)
        url = server.url
    ask_calls(service(url, policy=replace(QUICK, attempts=2)), 1)
    line = said(caplog)[-1]
    assert "no reply (ConnectionRefusedError" in line
    assert "asking again for up to a minute; Ctrl-C stops" in line


def test_each_status_of_each_server_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    script: Script = in_turn(error(503, "loading"), error(429, "busy"), error(503, "again"), OK)
    with ChatServer(script) as one, ChatServer(script) as other:
        asked = service([one.url, other.url], policy=SIX)
        ask_calls(asked, 2, images=["a", "b"])
        ask_calls(asked, 12, images=[f"image {number}" for number in range(12)])
    lines = said(caplog)
    assert len(lines) == len(set(lines))
    for url in (one.url, other.url):
        assert sorted(line.split("HTTP ")[1][:3] for line in lines if url in line) == ["429", "503"]


def test_starting_servers_are_waited_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked: HttpService = service("http://127.0.0.1:1/v1")
    asked.say_waiting("here", CallError("no reply"), float("inf"))
    assert said(caplog) == ["here: no reply: asking again until it answers; Ctrl-C stops"]


@pytest.mark.parametrize(
    "answer", [error(400, "no"), error(401, "no key"), error(429, "no", Retry_After="7200")]
)
def test_what_is_not_asked_again_is_not_announced(
    answer: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    with ChatServer(in_turn(answer)) as server:
        ask_calls(service(server.url))
    assert said(caplog) == []
