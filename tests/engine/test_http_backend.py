"""Calls over HTTP: what is tried again, what is recorded, and that any reply becomes an answer."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from asking import KEY, QUESTION, WORDS, ask_call, ask_calls, call_of, service
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
from PIL import Image

from vlmeval_findit.engine import CancelToken, HttpBackend, HttpService
from vlmeval_findit.models import Budget, Endpoint, chat_model, token_limit
from vlmeval_findit.protocol import ReplyRecord, StopReason, call_failed, image, text
from vlmeval_findit.storage import parse_record, stored_record

# --- one server -----------------------------------------------------------------------------------


def test_an_answer_records_its_call() -> None:
    with ChatServer(in_turn(completion("[5]", message={"reasoning": "hm"}))) as server:
        answer = ask_call(service(server.url))
        (asked,) = server.asked
    assert (answer.text, answer.error, answer.stop) == ("[5]", None, None)
    assert answer.seconds > 0
    who = {"identifier": "openai/gpt-5.4-2026-03-05", "provider": "OpenAI", "row": "Qwen3-VL"}
    call = {"id": "gen-1", "cost": 0.01, "status": 200, "attempts": 1, "server": server.url}
    assert answer.record == ReplyRecord(
        space={"kind": "grid1000"},
        finish_reason="stop",
        thought="hm",
        tokens={"prompt": 900, "completion": 20},
        model=who,
        call=call,
    )
    assert asked.path == "/api/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body["max_tokens"] == 768


def test_shared_images_are_marked_for_the_cache(tmp_path: Path) -> None:
    """Marking what no other call reads costs more; OpenAI and Google need no mark."""
    path = tmp_path / "a.png"
    Image.new("RGB", (20, 20)).save(path)
    message = (text("one"), image(str(path)), image(str(path)), text("two"))
    usage = {"prompt_tokens": 3000, "completion_tokens": 9, "cache_creation_input_tokens": 500}
    usage |= {"prompt_tokens_details": {"cached_tokens": 2000}}
    reply = completion(usage=usage, cache_discount=-0.0015)
    no = [False] * 4
    yes = [False, False, True, False]
    for name, marks in (("Claude-Opus-5.5", [yes, yes, no]), ("GPT-5.4", [no, no, no])):
        with ChatServer(in_turn(reply)) as server:
            asked = HttpService(chat_model(name, "openrouter"), [Endpoint(server.url)])
            answer, *_ = ask_calls(asked, 3, message, images=["x", "x", "y"])
            contents = [call.body["messages"][0]["content"] for call in server.asked]
        assert [["cache_control" in part for part in content] for content in contents] == marks
    tokens = {"prompt": 3000, "cached": 2000, "cache_write": 500, "completion": 9}
    assert answer.record.tokens == tokens
    assert call_of(answer)["cache_discount"] == -0.0015


@pytest.mark.parametrize("status", [408, 429, 500])
def test_statuses_that_are_tried_again(status: int) -> None:
    with ChatServer(in_turn(error(status, "not now"))) as server:
        answer = ask_call(service(server.url))
        assert len(server.asked) == call_of(answer)["attempts"] == 4
    assert answer.error == f"HTTP {status}: not now (4 attempts)"


@pytest.mark.parametrize(("status", "asked"), [(400, 5), (401, 3), (402, 1), (413, 6)])
def test_statuses_that_are_final_are_shown_once(
    status: int, asked: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Without credit no other call is worth its way; without key or model, three in a row say;
    what five first calls are refused with in the same words, others would be."""
    with ChatServer(in_turn(error(status, "this will never do"))) as server:
        answers = ask_calls(service(server.url), 6)
        assert len(server.asked) == len(answers) == asked
    assert all(f"HTTP {status}: this will never do" in (answer.error or "") for answer in answers)
    last = StopReason.HOPELESS if asked < 6 else None
    assert [answer.stop for answer in answers] == [*[None] * (asked - 1), last]
    shown = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert shown[0].startswith(f"{server.url}: HTTP {status}: this will never do")
    why = "; all first calls were refused in these words"
    assert shown[1:] == ([f"{shown[0]}{why}"] if asked == 5 else [])


def test_a_moderated_input_ends_no_run() -> None:
    for problem in (
        {"message": "Your request was flagged by our moderation"},
        {"message": "no", "code": "content_policy_violation"},
        {"message": "no", "metadata": {"reasons": ["too nice"]}},
    ):
        with ChatServer(in_turn(Answer(json.dumps({"error": problem}).encode(), 403))) as server:
            answers = ask_calls(service(server.url), 5)
        expected = (None, f"HTTP 403: {problem['message']}")
        assert [(answer.stop, answer.error) for answer in answers] == [expected] * 5


def test_a_long_retry_after_is_not_waited_for() -> None:
    for seconds, when in (("601", "10 minutes"), ("86400", "24 hours")):
        late = error(429, "slow", Retry_After=seconds)
        with ChatServer(in_turn(late, completion("ok"))) as server:
            assert f"asks to come back in {when}" in (ask_call(service(server.url)).error or "")
            assert len(server.asked) == 1


def test_errors_in_replies_of_status_200() -> None:
    late = Answer(json.dumps({"error": {"code": "503", "message": "gone"}}).encode())
    problem = {"error": {"code": 400, "message": "too large"}, "message": {"content": ""}}
    with ChatServer(in_turn(late, completion(choices=[problem]))) as server:
        answer = ask_call(service(server.url))
        assert len(server.asked) == 2
    said = "an error in a reply with status 200: code 400, too large (2 attempts)"
    assert answer.error == said
    assert call_of(answer)["status"] == 400


def test_costs_of_failed_attempts_add_up() -> None:
    broken = {"error": {"code": 502, "message": "upstream"}, "usage": {"cost": 0.25}}
    dear = Answer(json.dumps(broken).encode())
    budget = Budget(10.0)
    with ChatServer(in_turn(dear, dear, completion("ok"))) as server:
        assert call_of(ask_call(service(server.url, budget=budget)))["cost"] == pytest.approx(0.51)
    assert budget.spent == pytest.approx(0.51)
    with ChatServer(in_turn(dear, error(400, "no"))) as server:
        failed = call_of(ask_call(service(server.url, budget=budget)))
    why = {"error": "HTTP 400: no (2 attempts)", "server": server.url}
    assert failed == {"cost": 0.25, "status": 400, "attempts": 2, **why}
    assert budget.spent == pytest.approx(0.76)


def test_the_key_is_in_no_message(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    # Long messages are cut; the key must be gone before.
    shown = []
    for answer in (
        error(400, f"the key {KEY} is no good"),
        Answer(f"what, {KEY}?".encode()),
        error(400, "x" * 485 + KEY),
    ):
        with ChatServer(in_turn(answer)) as server:
            asked = service(server.url)
            backend = HttpBackend(lambda asked=asked: asked)  # type: ignore[misc]
            shown += map(repr, (ask_call(backend), backend, vars(backend), asked))
    text = "\n".join([*shown, caplog.text])
    assert "***" in text
    assert KEY[:4] not in text


@pytest.mark.parametrize("where", ["reply", "thought"])
def test_a_reply_that_quotes_a_key_is_a_failed_call(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    quoting = f'{{"key": "{KEY}", "bbox": [1, 2, 3, 4]}}'
    thinking = completion("[]", message={"reasoning": quoting})
    budget = Budget()
    with ChatServer(in_turn(completion(quoting) if where == "reply" else thinking)) as server:
        answer = HttpBackend(lambda: service(server.url, budget=budget)).ask(WORDS, QUESTION)
        assert len(server.asked) == 1, "the next reply would quote it too"
    assert answer.text == ""
    assert answer.error == "the reply quotes a credential (a key of this run): it is not stored"
    assert call_of(answer)["error"] == answer.error
    assert not answer.record.thought
    assert budget.spent == 0.01, "it was paid for"
    assert KEY not in repr(answer) + caplog.text
    if where == "reply":
        assert '{"key": "***", "bbox": [1, 2, 3, 4]}' in caplog.text


# --- whatever a server replies --------------------------------------------------------------------


UGLY: list[tuple[Answer, str | None]] = [
    (GARBAGE, "not JSON"),
    (NO_CHOICES, "no choices"),
    (completion(choices=[{"finish_reason": "stop"}]), "no message"),
    (Answer(b"[]"), "not a JSON object"),
    (Answer(b'{"error": {"message": "no", "code": true}}'), "reports: no"),
    (Answer(b"\xff\xff", 400), "HTTP 400"),
    (Answer(b'{"error": {"message": null}}', 400), 'HTTP 400: {"message": null}'),
    (completion("half \ud800 a pair"), None),
    (completion("x", finish_reason=["a"], id=[1], model={"a": 1}, provider=5), None),
    (completion("x", usage={"cost": -1, "prompt_tokens": None}), None),
]


@pytest.mark.parametrize(("answer", "why"), UGLY, ids=range(len(UGLY)))
def test_any_reply_can_be_stored(answer: Answer, why: str | None) -> None:
    with ChatServer(in_turn(answer)) as server:
        got = ask_call(service(server.url))
        assert len(server.asked) == 1, "it is not paid again"
    stored = stored_record(got)
    whole = json.dumps([got.text, stored, got.error], ensure_ascii=False, allow_nan=False)
    assert whole.encode("utf-8")
    record = got.record
    assert parse_record(stored) == record
    assert call_failed(got.text, record) is (why is not None)
    assert json.dumps(json.loads(stored), allow_nan=False)
    assert record.call.get("error") == got.error
    if why is None:
        assert got.error is None
    else:
        assert why in (got.error or "")
        assert "\n" not in (got.error or "")


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), -5, "one"])
def test_a_cost_that_is_no_cost_keeps_no_limit(cost: float | str) -> None:
    budget = Budget(1.0)
    with ChatServer(in_turn(completion("x", usage={"cost": cost}))) as server:
        first, second = ask_calls(service(server.url, budget=budget), 2)
    assert first.text == "x"
    assert second.stop is StopReason.SPENT, "no cost is known: no limit can be enforced"
    assert budget.spent == 0.0


# --- the end of a run -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stop", "reply", "answers"),
    [
        (CancelToken.request, completion("late"), ["late"] * 3),  # calls in flight are awaited
        (CancelToken.interrupt, NEVER, []),  # they are abandoned, and have not failed
    ],
    ids=["stopped", "interrupted"],
)
def test_nothing_begins_after_a_stop(
    stop: Callable[[CancelToken], None], reply: Answer, answers: list[str]
) -> None:
    cancel, in_flight = CancelToken(), threading.Barrier(3)

    def script(asked: Asked, number: int) -> Answer:
        in_flight.wait(60)
        with suppress(KeyboardInterrupt):
            stop(cancel)
        return reply

    with ChatServer(script) as server:
        actual = ask_calls(service(server.url), 20, at_once=3, cancel=cancel)
        assert len(server.asked) == 3
    assert [answer.text for answer in actual] == answers


def test_a_spending_limit_ends_the_run() -> None:
    budget = Budget(0.02)
    with ChatServer(in_turn(completion())) as server:
        first = ask_calls(service(server.url, budget=budget))
        last = ask_calls(service(server.url, budget=budget), 5)
        assert len(server.asked) == 2, "two models, one budget"
    assert [answer.stop for answer in (*first, *last[:2])] == [None, None, StopReason.SPENT]
    assert {answer.stop for answer in last[1:]} == {StopReason.SPENT}
    assert "limit of $0.02" in (last[1].error or "")
    assert not last[1].is_recorded, "a call that did not begin is not recorded"


# --- limits of tokens -----------------------------------------------------------------------------


def test_the_other_field_for_the_limit_is_discovered_once() -> None:
    why = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. "
        "Use 'max_completion_tokens' instead."
    )

    def openai(asked: Asked, number: int) -> Answer:
        return error(400, why) if "max_tokens" in asked.body else completion("ok")

    with ChatServer(openai) as server:
        first, second = ask_calls(service(server.url), 2)
        limits = [{k: v for k, v in asked.body.items() if "tokens" in k} for asked in server.asked]
    assert (call_of(first)["attempts"], second.text) == (2, "ok")
    assert limits == [{"max_tokens": 768}, *[{"max_completion_tokens": 768}] * 2]


def test_a_token_limit_has_three_names() -> None:
    for name in ("max_new_tokens", "max_tokens", "max_completion_tokens"):
        assert token_limit({name: 64, "seed": 3}) == (64, {"seed": 3})
    twice = {"max_tokens": 5, "max_new_tokens": 6}
    for given in ({"max_tokens": 0}, {"max_tokens": "64"}, {"max_tokens": 1.5}, twice):
        with pytest.raises(ValueError, match="max_"):
            token_limit(given)
