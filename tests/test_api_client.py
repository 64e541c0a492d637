from __future__ import annotations

import json
import logging
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from chat_server import (
    GARBAGE,
    NEVER,
    NO_CHOICES,
    Answer,
    Asked,
    ChatServer,
    completion,
    error,
    in_turn,
)

from vlmeval_findit.models.client import ChatClient, Endpoint, retry_after
from vlmeval_findit.models.completion import CallError, read_completion

KEY = "sk-or-v1-c0ffee-SECRET"
BODY = {"model": "m", "messages": []}


class Sleeps(list[float]):
    """Takes the place of ``time.sleep`` and remembers how long."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def client(server: ChatServer, sleeps: Sleeps | None = None, **more: float) -> ChatClient:
    attempts = int(more.pop("attempts", 4))
    return ChatClient(
        Endpoint(server.url, KEY, **more), attempts, Sleeps() if sleeps is None else sleeps
    )


def test_an_answer_is_read_with_all_that_comes_with_it() -> None:
    more = {
        "finish_reason": "length",
        "message": {"reasoning": "I see [1, 2, 3, 4]"},
        "usage": {
            "prompt_tokens": 900,
            "completion_tokens": 20,
            "cost": 0.25,
            "completion_tokens_details": {"reasoning_tokens": 7},
        },
    }
    with ChatServer(in_turn(completion("[5]", **more))) as server:
        got = client(server).complete(BODY)
        (asked,) = server.asked
    assert (got.text, got.thought, got.finish_reason) == ("[5]", "I see [1, 2, 3, 4]", "length")
    assert got.tokens == {"prompt": 900, "completion": 20, "reasoning": 7}
    assert got.cost == 0.25
    assert got.model == {"identifier": "openai/gpt-5.4-2026-03-05", "provider": "OpenAI"}
    assert got.id == "gen-1"
    assert asked.path == "/api/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == BODY


def test_429_waits_as_long_as_the_server_asks() -> None:
    sleeps = Sleeps()
    with ChatServer(
        in_turn(error(429, "slow down", Retry_After="7"), error(503, "busy"), completion("ok"))
    ) as server:
        assert client(server, sleeps).complete(BODY).text == "ok"
        assert len(server.asked) == 3
    assert 7.0 <= sleeps[0] < 8.0
    assert 1.0 <= sleeps[1] <= 2.0


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 529])
def test_statuses_that_are_tried_again(status: int) -> None:
    sleeps = Sleeps()
    with ChatServer(in_turn(error(status, "not now"))) as server:
        with pytest.raises(CallError, match=r"not now \(4 attempts\)"):
            client(server, sleeps).complete(BODY)
        assert len(server.asked) == 4
    assert len(sleeps) == 3
    assert all(0.5 * 2**n <= wait <= 2**n for n, wait in enumerate(sleeps)), "twice as long each"


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422])
def test_statuses_that_are_not_and_are_shown_once(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    with ChatServer(in_turn(error(status, "this will never do"))) as server:
        asking = client(server)
        for _ in range(3):
            with pytest.raises(CallError, match="this will never do"):
                asking.complete(BODY)
        # Without key, credit or model no other call is worth its way.
        assert len(server.asked) == (1 if status in (401, 402, 404) else 3)
    shown = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert len(shown) == 1
    assert f"HTTP {status}: this will never do" in shown[0]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (GARBAGE, "not JSON"),
        (NO_CHOICES, "no choices"),
        (completion(choices=None), "no choices"),
        (completion(choices=["?"]), "no choices"),
        (completion(choices=[{"finish_reason": "stop"}]), "no message"),
        (Answer(b"[]"), "not a JSON object"),
        (Answer(b"\xff\xfe"), "not JSON"),
        (Answer(b"[" * 100_000), "not JSON"),
        (Answer(b""), "not JSON"),
    ],
)
def test_what_is_no_answer_is_a_failure_and_not_paid_again(answer: Answer, why: str) -> None:
    with ChatServer(in_turn(answer)) as server:
        with pytest.raises(CallError, match=why):
            client(server).complete(BODY)
        assert len(server.asked) == 1


def test_an_empty_text_is_an_answer() -> None:
    for content in ("", None):
        with ChatServer(in_turn(completion(content, finish_reason="length"))) as server:
            got = client(server).complete(BODY)
        assert (got.text, got.finish_reason) == ("", "length")


def test_errors_in_replies_of_status_200() -> None:
    late = Answer(json.dumps({"error": {"code": 503, "message": "gone"}}).encode())
    choice = completion(
        choices=[{"error": {"code": 400, "message": "too large"}, "message": {"content": ""}}]
    )
    with ChatServer(in_turn(late, choice)) as server:
        with pytest.raises(CallError, match="too large"):
            client(server).complete(BODY)
        assert len(server.asked) == 2


def test_a_server_that_never_answers_is_not_waited_for() -> None:
    with ChatServer(in_turn(NEVER, completion("late but there"))) as server:
        began = time.monotonic()
        assert client(server, timeout=0.3).complete(BODY).text == "late but there"
        assert time.monotonic() - began >= 0.3
        assert len(server.asked) == 2


def test_a_server_that_drips_is_not_waited_for() -> None:
    """Every byte comes within the time-out of one read, the whole reply never."""
    listener = socket.create_server(("127.0.0.1", 0))
    done = threading.Event()

    def drip() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while not done.wait(0.05):
                try:
                    connection.sendall(b" ")
                except OSError:
                    return

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    endpoint = Endpoint(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", timeout=0.5)
    try:
        with pytest.raises(CallError, match="did not end in time"):
            ChatClient(endpoint, 1).complete(BODY)
    finally:
        done.set()
        thread.join(5)
        listener.close()


def test_nobody_there_and_connections_that_break() -> None:
    sleeps = Sleeps()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    endpoint = Endpoint(f"http://127.0.0.1:{port}/v1", KEY)
    with pytest.raises(CallError, match="ConnectionRefused"):
        ChatClient(endpoint, 3, sleeps).complete(BODY)
    assert len(sleeps) == 2


def test_a_redirect_does_not_get_the_key() -> None:
    with ChatServer(in_turn(completion("stolen"))) as thief:
        away = Answer(b"", 302, {"Location": f"{thief.url}/chat/completions"})
        with ChatServer(in_turn(away)) as server, pytest.raises(CallError, match="302"):
            client(server).complete(BODY)
        assert not thief.asked


def test_the_key_is_in_no_message(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    quoting = [error(status, f"the key {KEY} is no good") for status in (400, 401, 500)]
    quoting += [Answer(f"what, {KEY}?".encode()), Answer(f"oops {KEY}".encode(), 403)]
    said = []
    for answer in quoting:
        with ChatServer(in_turn(answer)) as server:
            asking = client(server)
            with pytest.raises(CallError) as caught:
                asking.complete(BODY)
            said += [str(caught.value), repr(caught.value), repr(asking), repr(vars(caught.value))]
            # Nor in what a traceback would print of earlier errors.
            assert caught.value.__suppress_context__
    text = "\n".join([*said, caplog.text])
    assert "***" in text
    assert "SECRET" not in text


@pytest.mark.parametrize("key", ["sk\n", "a b", "schlüssel", "sk\r\nX: y"])
def test_keys_that_a_library_would_quote_are_refused(key: str) -> None:
    with pytest.raises(ValueError, match="no key has") as caught:
        Endpoint("http://127.0.0.1/v1", key)
    assert key not in str(caught.value)


def test_urls_without_http_are_refused() -> None:
    with pytest.raises(ValueError, match="http://"):
        Endpoint("localhost:8000/v1")


def test_certificates_are_verified_though_the_host_switches_that_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import ssl

    monkeypatch.setattr(ssl, "_create_default_https_context", ssl._create_unverified_context)
    asking = ChatClient(Endpoint("https://127.0.0.1/v1"))
    (handler,) = [h for h in asking._opener.handlers if type(h).__name__ == "HTTPSHandler"]
    context = handler._context  # type: ignore[attr-defined]
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


def test_threads_share_a_client_and_get_their_own_answers() -> None:
    def script(asked: Asked, number: int) -> Answer:
        if number % 3 == 0:
            return error(429, "slow down", Retry_After="0")
        return completion(f"answer to {asked.body['model']}")

    with ChatServer(script) as server:
        asking = client(server, attempts=20)
        with ThreadPoolExecutor(8) as pool:
            texts = list(pool.map(lambda n: asking.complete({"model": n}).text, range(40)))
    assert texts == [f"answer to {n}" for n in range(40)]


def test_retry_after_is_seconds_or_a_date() -> None:
    now = datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC)
    assert retry_after("1.5", now) == 1.5
    assert retry_after("-3", now) == 0.0
    assert retry_after("Sat, 21 Nov 2026 10:00:30 GMT", now) == 30.0
    assert retry_after("Sat, 21 Nov 2026 09:00:30 GMT", now) == 0.0
    assert retry_after("soon", now) is None
    assert retry_after(None, now) is None


def test_a_wait_of_hours_is_for_the_next_run() -> None:
    sleeps = Sleeps()
    with ChatServer(in_turn(error(429, "tomorrow", Retry_After="86400"))) as server:
        with pytest.raises(CallError, match="tomorrow"):
            client(server, sleeps).complete(BODY)
        assert len(server.asked) == 1
    assert not sleeps


@pytest.mark.parametrize(
    ("reply", "thought", "text"),
    [
        ("<think>[1, 2, 3, 4]</think>\n[5, 6, 7, 8]", "[1, 2, 3, 4]", "[5, 6, 7, 8]"),
        ("[1, 2, 3, 4]</think>[5, 6, 7, 8]", "[1, 2, 3, 4]", "[5, 6, 7, 8]"),
        ("<think>[1, 2, 3, 4] and so on", "[1, 2, 3, 4] and so on", ""),
        ("\n<think></think>\n[]", "", "[]"),
        ("[1, 2, 3, 4]", "", "[1, 2, 3, 4]"),
    ],
)
def test_a_thought_is_never_read_for_boxes(reply: str, thought: str, text: str) -> None:
    got = read_completion(completion(reply).body)
    assert (got.thought, got.text) == (thought, text)


def test_content_in_parts_and_vllms_reasoning_field() -> None:
    parts = [{"type": "text", "text": "[1"}, {"type": "image"}, {"type": "text", "text": "]"}]
    got = read_completion(completion(parts, message={"reasoning_content": "hm"}).body)  # type: ignore[arg-type]
    assert (got.text, got.thought) == ("[1]", "hm")


def test_a_reply_that_ends_inside_its_thought_says_nothing() -> None:
    for reply in (
        completion("<think>[1, 2", finish_reason="length"),
        completion(None, finish_reason="length", message={"reasoning": "[1, 2"}),
    ):
        got = read_completion(reply.body)
        assert (got.text, got.thought, got.ends_in_thought) == ("", "[1, 2", True)
    # The chat template opened the thought: no mark is in the reply.
    opened = read_completion(completion("[1, 2", finish_reason="length").body).begun_in_thought()
    assert (opened.text, opened.thought, opened.ends_in_thought) == ("", "[1, 2", True)
    closed = read_completion(completion("hm</think>[1", finish_reason="length").body)
    assert closed.begun_in_thought() == closed
    assert (closed.text, closed.ends_in_thought) == ("[1", False)


def test_a_message_is_shown_once_however_many_attempts_it_took(
    caplog: pytest.LogCaptureFixture,
) -> None:
    no = error(400, "never")
    with ChatServer(in_turn(no, error(429, "slow down", Retry_After="0"), no)) as server:
        asking = client(server)
        for _ in range(2):
            with pytest.raises(CallError, match="never"):
                asking.complete(BODY)
    assert [r.getMessage() for r in caplog.records if "never" in r.getMessage()] == [
        f"{server.url}/chat/completions: HTTP 400: never"
    ]
