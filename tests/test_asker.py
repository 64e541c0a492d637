"""The asker of models behind HTTP: what it tries again, where, how long, and what it records."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast
from unittest.mock import patch

import pytest
from asking import KEY, WORK, Sleeps, asker, call_of, one
from chat_server import (
    GARBAGE,
    NEVER,
    NO_CHOICES,
    Answer,
    Asked,
    ChatServer,
    Script,
    completion,
    error,
    in_turn,
)

from vlmeval_findit.core.messages import image, text
from vlmeval_findit.core.replies import call_failed, recorded
from vlmeval_findit.core.work import Stop, Work
from vlmeval_findit.engine.calls import Call, Keyed
from vlmeval_findit.engine.cancel import CancelToken
from vlmeval_findit.engine.executors import ThreadsExecutor
from vlmeval_findit.engine.plan import WorkItem
from vlmeval_findit.models.http.asker import ChatAsker, Terms
from vlmeval_findit.models.http.chat import openrouter_model, server_model, token_limit
from vlmeval_findit.models.http.endpoint import Endpoint
from vlmeval_findit.models.http.spending import Budget

# --- one server -----------------------------------------------------------------------------------


def test_an_answer_comes_with_all_that_is_known_of_its_call() -> None:
    with ChatServer(in_turn(completion("[5]", message={"reasoning": "hm"}))) as server:
        answer = one(asker(server.url))
        (asked,) = server.asked
    assert (answer.text, answer.error, answer.stop) == ("[5]", None, None)
    assert answer.seconds > 0
    assert answer.record == {
        "space": {"kind": "grid1000"},
        "finish_reason": "stop",
        "thought": "hm",
        "tokens": {"prompt": 900, "completion": 20},
        "model": {
            "identifier": "openai/gpt-5.4-2026-03-05",
            "provider": "OpenAI",
            "row": "Qwen3-VL",
        },
        "call": {
            "id": "gen-1",
            "cost": 0.01,
            "status": 200,
            "attempts": 1,
            "server": server.url,
        },
    }
    assert asked.path == "/api/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body["max_tokens"] == 768


def test_429_waits_as_long_as_the_server_asks() -> None:
    sleeps = Sleeps()
    script = in_turn(error(429, "slow", Retry_After="7"), error(503, "busy"), completion("ok"))
    with ChatServer(script) as server:
        assert one(asker(server.url, sleeps=sleeps)).text == "ok"
        assert len(server.asked) == 3
    assert 7.0 <= sleeps[0] <= 7.5
    assert 2.0 <= sleeps[1] <= 3.0, "its own back-off: the second attempt failed"


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 529])
def test_statuses_that_are_tried_again(status: int) -> None:
    sleeps = Sleeps()
    with ChatServer(in_turn(error(status, "not now"))) as server:
        answer = one(asker(server.url, sleeps=sleeps))
        assert len(server.asked) == 4
    assert answer.error == f"HTTP {status}: not now (4 attempts)"
    assert call_of(answer)["attempts"] == 4
    assert all(2**n <= wait <= 2**n + 1 for n, wait in enumerate(sleeps)), "twice as long each"
    assert len(sleeps) == 3


@pytest.mark.parametrize(
    ("status", "asked"),
    [(302, 6), (400, 5), (401, 3), (402, 1), (403, 3), (404, 3), (413, 6), (422, 5)],
)
def test_statuses_that_are_not_and_are_shown_once(
    status: int, asked: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Without credit no other call is worth its way; without key or model, three in a row say;
    what five first calls are refused with in the same words, others would be."""
    with ChatServer(in_turn(error(status, "this will never do"))) as server:
        asking = asker(server.url)
        for number in range(1, 7):
            answer = one(asking)
            assert (answer.error or "").startswith(f"HTTP {status}: this will never do")
            ended = Stop.HOPELESS if asked < 6 and number >= asked else None
            assert (answer.stop, asking.stopped) == (ended, ended)
        assert len(server.asked) == asked
    shown = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert shown[0] == f"{server.url}: HTTP {status}: this will never do"
    why = "; 5 calls were refused in these words, and none was answered"
    assert shown[1:] == ([f"{shown[0]}{why}"] if asked == 5 else [])


@pytest.mark.parametrize("status", [401, 403, 404])
def test_refusals_with_answers_between_them_end_nothing(status: int) -> None:
    no, ok = error(status, "gateway restarts"), completion("ok")
    with ChatServer(in_turn(no, no, ok, no, no, ok, no, no, no)) as server:
        asking = asker(server.url)
        stops = [one(asking).stop for _ in range(9)]
        assert stops == [None] * 8 + [Stop.HOPELESS]
        assert len(server.asked) == 9


def test_calls_that_are_refused_together_count_once() -> None:
    together = threading.Barrier(8)

    def script(asked: Asked, number: int) -> Answer:
        if number < 8:
            together.wait(30)
            return error(401, "gateway restarts")
        return completion("ok")

    with ChatServer(script) as server:
        asking = asker(server.url)
        with ThreadPoolExecutor(8) as pool:
            burst = list(pool.map(lambda _: one(asking), range(8)))
        assert [answer.stop for answer in burst] == [None] * 8
        assert one(asking).text == "ok"


@pytest.mark.parametrize(
    "said",
    [
        {"message": "Your request was flagged by our moderation"},
        {"message": "no", "code": "content_policy_violation"},
        {"message": "The prompt triggered the content filter"},
        {"message": "blocked by our safety system"},
    ],
)
def test_inputs_that_a_moderator_refuses_end_no_run(said: dict[str, str]) -> None:
    refused = Answer(json.dumps({"error": said}).encode(), 403)
    with ChatServer(in_turn(refused)) as server:
        asking = asker(server.url)
        answers = [one(asking) for _ in range(5)]
        assert len(server.asked) == 5
    assert {answer.stop for answer in answers} == {None}
    assert {answer.error for answer in answers} == {f"HTTP 403: {said['message']}"}


def test_one_picture_that_a_moderator_refuses_does_not_end_a_run() -> None:
    flagged = {"code": 403, "message": "flagged", "metadata": {"reasons": ["too nice"]}}
    refused = Answer(json.dumps({"error": flagged}).encode(), 403)
    with ChatServer(in_turn(refused, completion("ok"))) as server:
        asking = asker(server.url)
        assert one(asking).stop is None
        assert one(asking).text == "ok"


@pytest.mark.parametrize(
    ("header", "waits", "says"),
    [
        ("0", (0.0, 0.5), ""),
        ("600", (600.0, 600.5), ""),
        ("601", None, "asks to come back in 0 h 10 min"),
        ("86400", None, "asks to come back in 24 h 00 min"),
        ("1e300", None, "asks not to come back"),
        ("inf", None, "asks not to come back"),
        ("Fri, 31 Dec 9999 23:59:59 GMT", None, "asks not to come back"),
        ("Fri, 31 Dec 9999 23:59:59 -1200", None, "asks not to come back"),
        ("Fri, 31 Dec 99999 23:59:59 GMT", (1.0, 2.0), ""),
        ("Fri, 31 Dec 2026 23:59:59 +9999999999", (1.0, 2.0), ""),
        ("Mon, 01 Jan 0001 00:00:00 +1400", (0.0, 0.5), ""),
        ("nan", (1.0, 2.0), ""),
        ("-7", (1.0, 2.0), ""),
        ("soon", (1.0, 2.0), ""),
        ("Sat, 99 Xyz 2026", (1.0, 2.0), ""),
        ("", (1.0, 2.0), ""),
        ("1" * 5000, None, "asks not to come back"),
    ],
)
def test_whatever_retry_after_says(
    header: str, waits: tuple[float, float] | None, says: str
) -> None:
    sleeps = Sleeps()
    with ChatServer(in_turn(error(429, "slow", Retry_After=header), completion("ok"))) as server:
        answer = one(asker(server.url, sleeps=sleeps))
    if waits is None:
        assert not sleeps
        assert answer.error is not None
        assert says in answer.error
    else:
        assert answer.text == "ok"
        (seconds,) = sleeps
        assert waits[0] <= seconds <= waits[1]


NESTED = b"[" * 900 + b"]" * 900
UGLY: list[tuple[Answer, str | None]] = [
    (GARBAGE, "not JSON"),
    (NO_CHOICES, "no choices"),
    (completion(choices=None), "no choices"),
    (completion(choices=["?"]), "no choices"),
    (completion(choices=[{"finish_reason": "stop"}]), "no message"),
    (completion(choices=[{"message": NESTED.decode()}]), "no message"),
    (Answer(b"[]"), "not a JSON object"),
    (Answer(b"NaN"), "not a JSON object"),
    (Answer(b"\xff\xfe"), "not JSON"),
    (Answer(b"\x80 caf\xe9"), "not JSON"),
    (Answer(b"[" * 100_000), "not JSON"),
    (Answer(b'{"usage": {"cost": ' + b"9" * 5000 + b"}}"), "not JSON"),
    (Answer(b""), "not JSON"),
    (Answer(b'{"error": ' + NESTED + b"}"), "reports"),
    (Answer(b'{"error": {"message": {"a": [1]}, "code": 1e400}}'), "reports"),
    (Answer(b'{"error": {"message": "no", "code": ' + b"9" * 3000 + b"}}"), "reports: no"),
    (Answer(b'{"error": {"message": "no", "code": true}}'), "reports: no"),
    (Answer(b'{"error": "\\ud800"}'), "reports"),
    (Answer(b"\xff\xff", 400), "HTTP 400"),
    (Answer(b"", 418), "HTTP 418"),
    (Answer(NESTED, 400), "HTTP 400"),
    (Answer(b'{"error": {"message": null}}', 400), "HTTP 400: null"),
    (Answer(b'{"detail": [{"loc": ["body"]}]}', 422), "HTTP 422"),
    (completion("half \ud800 a pair"), None),
    (completion(None, finish_reason={"a": 1}), None),
    (completion("x", finish_reason=["a"], id=[1], model={"a": 1}, provider=5), None),
    (completion("x", usage=[1]), None),
    (completion("x", usage={"cost": "1", "prompt_tokens": None}), None),
    (completion("x", usage={"cost": 10**400, "prompt_tokens": 10**400}), None),
    (completion("x", usage={"cost": float("nan"), "completion_tokens": float("inf")}), None),
    (completion("x", usage={"cost": -1, "prompt_tokens": -1, "completion_tokens": True}), None),
    (completion([{"type": "text"}, {"type": "text", "text": 5}, 7]), None),  # type: ignore[arg-type]
    (completion(5), None),  # type: ignore[arg-type]
    (completion("x", message={"reasoning": {"a": 1}, "reasoning_content": [2]}), None),
]


@pytest.mark.parametrize(("answer", "why"), UGLY, ids=range(len(UGLY)))
def test_whatever_a_server_says_becomes_an_answer_that_can_be_stored(
    answer: Answer, why: str | None
) -> None:
    with ChatServer(in_turn(answer)) as server:
        got = one(asker(server.url))
        assert len(server.asked) == 1, "it is not paid again"
    whole = json.dumps([got.text, got.extra, got.error], ensure_ascii=False, allow_nan=False)
    assert whole.encode("utf-8")
    record = recorded(got.extra)
    assert call_failed(got.text, record) is (why is not None)
    assert json.dumps(json.loads(got.extra), allow_nan=False)
    assert all(0 <= count < 2**53 for count in record.tokens.values())
    if why is None:
        assert got.error is None
        assert "error" not in record.call
    else:
        assert why in (got.error or "")
        assert record.call["error"] == got.error
        assert "\n" not in (got.error or "")


def test_names_that_are_none_are_not_recorded() -> None:
    odd = completion("x", finish_reason=["a"], id=[1], model={"a": 1}, provider=5)
    with ChatServer(in_turn(odd)) as server:
        answer = one(asker(server.url))
    assert answer.record["model"] == {"row": "Qwen3-VL"}
    assert "id" not in call_of(answer)
    assert "finish_reason" not in answer.record


def test_what_a_server_calls_a_cost_ends_no_limit() -> None:
    odd = [completion("x", usage={"cost": cost}) for cost in (float("nan"), float("inf"), -5, "1")]
    for answer in odd:
        budget = Budget(1.0)
        with ChatServer(in_turn(answer)) as server:
            asking = asker(server.url, budget=budget)
            assert one(asking).text == "x"
            assert one(asking).stop is Stop.SPENT, "no cost is known: no limit can be kept"
        assert budget.spent == 0.0


def test_errors_in_replies_of_status_200() -> None:
    late = Answer(json.dumps({"error": {"code": "503", "message": "gone"}}).encode())
    choice = completion(
        choices=[{"error": {"code": 400, "message": "too large"}, "message": {"content": ""}}]
    )
    with ChatServer(in_turn(late, choice)) as server:
        answer = one(asker(server.url))
        assert len(server.asked) == 2
    assert answer.error == "HTTP 400: the service reports: too large (2 attempts)"
    assert call_of(answer)["status"] == 400


def test_what_failed_attempts_cost_is_added_up() -> None:
    broken = {"error": {"code": 502, "message": "upstream"}, "usage": {"cost": 0.25}}
    dear = Answer(json.dumps(broken).encode())
    budget = Budget(10.0)
    with ChatServer(in_turn(dear, dear, completion("ok"))) as server:
        asking = asker(server.url, budget=budget)
        assert call_of(one(asking))["cost"] == pytest.approx(0.51)
    assert budget.spent == pytest.approx(0.51)
    with ChatServer(in_turn(dear, error(400, "no"))) as server:
        failed = one(asker(server.url, budget=budget))
    assert call_of(failed) == {
        "cost": 0.25,
        "status": 400,
        "attempts": 2,
        "server": server.url,
        "error": "HTTP 400: no (2 attempts)",
    }
    assert budget.spent == pytest.approx(0.76)


def test_a_picture_that_cannot_be_read_is_a_failed_call(tmp_path: Any) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(b"no picture")
    message = (image(str(path)),)
    with ChatServer(in_turn(completion())) as server:
        (answer,) = asker(server.url).ask(Work((message,), WORK.questions, {}, False))
        assert not server.asked
    assert "is not an image" in (answer.error or "")
    assert call_of(answer)["error"] == answer.error


def test_nobody_there() -> None:
    sleeps = Sleeps()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    answer = one(asker(f"http://127.0.0.1:{port}/v1", Terms(attempts=3), sleeps))
    assert "ConnectionRefused" in (answer.error or "")
    assert len(sleeps) == 2
    assert "status" not in call_of(answer), "no reply has none"


def test_the_key_is_in_no_message(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    quoting = [error(status, f"the key {KEY} is no good") for status in (400, 401, 500)]
    quoting += [Answer(f"what, {KEY}?".encode()), Answer(f"oops {KEY}".encode(), 403)]
    # Long messages are cut; the key must be gone before.
    quoting += [error(400, "x" * n + KEY) for n in (460, 485, 492, 496)]
    # And some servers cut it themselves.
    quoting += [error(400, f"no such key: {KEY[:12]}"), error(400, f"no such key: {KEY[:9]}...")]
    said = []
    for answer in quoting:
        with ChatServer(in_turn(answer)) as server:
            asking = asker(server.url)
            said += [repr(one(asking)), repr(asking), repr(vars(asking))]
    text = "\n".join([*said, caplog.text])
    assert "***" in text
    assert KEY[:4] not in text


@pytest.mark.parametrize("where", ["reply", "thought"])
def test_a_reply_that_quotes_a_key_is_a_failed_call(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    quoting = f'{{"key": "{KEY}", "bbox": [1, 2, 3, 4]}}'
    more: dict[str, Any] = {"message": {"reasoning": quoting}} if where == "thought" else {}
    budget = Budget()
    with ChatServer(in_turn(completion("[]" if more else quoting, **more))) as s:
        answer = one(asker(s.url, budget=budget))
        assert len(s.asked) == 1, "the next reply would quote it too"
    assert answer.text == ""
    assert answer.error == "the reply quotes a credential (a key of this run): it is not kept"
    assert call_of(answer)["error"] == answer.error
    assert "thought" not in answer.record
    assert budget.spent == 0.01, "it was paid for"
    assert KEY not in repr(answer)
    assert KEY not in caplog.text
    if where == "reply":
        assert '{"key": "***", "bbox": [1, 2, 3, 4]}' in caplog.text


def test_names_that_quote_a_key_do_not_cost_the_reply() -> None:
    more = {"id": f"gen-{KEY}", "model": KEY, "provider": f"by {KEY}", "finish_reason": KEY}
    with ChatServer(in_turn(completion("[]", **more))) as s:
        answer = one(asker(s.url))
    assert (answer.text, answer.error) == ("[]", None)
    assert KEY not in repr(answer)


def test_words_of_plain_headers_change_no_reply() -> None:
    reply = '[{"label": "motorcycle", "bbox": [1, 2, 3, 4]}]'
    headers = {"X-Title": "motorcycle study", "HTTP-Referer": "https://motorcycle.example"}
    with ChatServer(in_turn(completion(reply))) as s:
        asking = ChatAsker(server_model("Qwen3-VL"), [Endpoint(s.url, KEY, headers)])
        assert one(asking).text == reply
        assert s.asked[0].headers["x-title"] == "motorcycle study"


def test_a_message_is_shown_once_however_many_attempts_it_took(
    caplog: pytest.LogCaptureFixture,
) -> None:
    no = error(400, "never")
    with ChatServer(in_turn(no, error(429, "slow down", Retry_After="0"), no)) as server:
        asking = asker(server.url)
        for _ in range(2):
            assert "never" in (one(asking).error or "")
    shown = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert shown == [f"{server.url}: HTTP 400: never"]


def test_threads_share_an_asker_and_get_their_own_answers() -> None:
    def script(asked: Asked, number: int) -> Answer:
        if number % 3 == 0:
            return error(429, "slow down", Retry_After="0")
        return completion(f"answer to {asked.body['messages'][0]['content'][0]['text']}")

    def ask(n: int) -> str:
        message = (text(str(n)),)
        (answer,) = asking.ask(Work((message,), WORK.questions, {}, False))
        return answer.text

    with ChatServer(script) as server:
        asking = asker(server.url, Terms(attempts=20))
        with ThreadPoolExecutor(8) as pool:
            texts = list(pool.map(ask, range(40)))
    assert texts == [f"answer to {n}" for n in range(40)]


# --- several servers ------------------------------------------------------------------------------


def two(first: Script, second: Script) -> tuple[ChatServer, ChatServer]:
    return ChatServer(first), ChatServer(second)


def test_the_next_attempt_goes_to_another_server_at_once() -> None:
    sleeps = Sleeps()
    bad, good = two(in_turn(error(503, "busy", Retry_After="500")), in_turn(completion("ok")))
    with bad, good:
        asking = asker([bad.url, good.url], sleeps=sleeps)
        answers = [one(asking) for _ in range(10)]
        assert [answer.text for answer in answers] == ["ok"] * 10
        assert call_of(answers[0])["server"] == good.url
        assert len(bad.asked) == 1, "it asked to be left alone"
    assert sleeps == [0.0], "another server answers meanwhile"


def test_where_all_servers_fail_the_attempts_are_those_of_the_policy() -> None:
    sleeps = Sleeps()
    bad, worse = two(in_turn(error(500, "no")), in_turn(error(502, "no")))
    with bad, worse:
        answer = one(asker([bad.url, worse.url], sleeps=sleeps))
        assert len(bad.asked) == len(worse.asked) == 2
    assert call_of(answer)["attempts"] == 4
    assert sleeps[0] == sleeps[2] == 0.0
    assert sleeps[1] >= 1.0, "both were asked: now it waits"


def test_a_hopeless_server_is_left_out_and_only_all_of_them_end_a_run() -> None:
    refusing, good = two(in_turn(error(401, "who?")), in_turn(completion("ok"), error(402, "pay")))
    with refusing, good:
        asking = asker([refusing.url, good.url])
        first = one(asking)
        assert (first.text, first.stop) == ("ok", None)
        assert len(refusing.asked) == 1
        found = [one(asking) for _ in range(6)]
        assert found[-1].stop is Stop.HOPELESS
        assert len(refusing.asked) == 3, "no further request"
        assert len(good.asked) == 2, "no further request"


def test_a_stopped_call_says_nothing_of_the_servers_it_did_not_ask() -> None:
    refusing, good = two(in_turn(error(401, "who?")), in_turn(completion("ok")))
    with refusing, good:
        asking = asker([refusing.url, good.url])
        asking.stop()
        answer = one(asking)
        assert (answer.error, answer.stop) == ("HTTP 401: who?", None)
        assert one(asking).text == "ok"


def test_what_one_server_does_not_take_is_not_sent_to_the_others() -> None:
    picky, good = two(in_turn(error(400, "bad picture")), in_turn(completion("ok")))
    with picky, good:
        assert one(asker([picky.url, good.url])).error == "HTTP 400: bad picture"
        assert not good.asked


# --- the end of a run -----------------------------------------------------------------------------


def waiting_asker(url: str, timeout: float = 600.0) -> ChatAsker:
    """One that really waits."""
    return ChatAsker(server_model("Qwen3-VL"), [Endpoint(url)], Terms(4, timeout))


def until(condition: Any) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_waiting_for_another_attempt_ends_with_the_run() -> None:
    with ChatServer(in_turn(error(429, "slow", Retry_After="500"), completion())) as server:
        asking = waiting_asker(server.url)
        with ThreadPoolExecutor(1) as pool:
            coming = pool.submit(one, asking)
            until(lambda: server.asked)
            asking.stop()
            answer = coming.result(60)
        assert answer.error == "HTTP 429: slow"
        assert len(server.asked) == 1
        assert one(asking).text == "[]", "what was taken is still asked, once"


def test_a_run_that_is_told_to_stop_waits_for_no_other_attempt() -> None:
    with ChatServer(in_turn(error(429, "slow", Retry_After="500"), completion())) as server:
        asking = waiting_asker(server.url)
        call = Call(Keyed("k", (), "", ()), cast(Any, None), 0)
        stop = CancelToken()
        executor = ThreadsExecutor(lambda: [asking], 1)
        work = patch("vlmeval_findit.engine.backend.work_of", lambda unit: WORK)
        with work, ThreadPoolExecutor(1) as pool:
            coming = pool.submit(lambda: list(executor.run([WorkItem((call,), False)], stop)))
            until(lambda: server.asked)
            stop.request()
            ((_, (answer,)),) = coming.result(60)
        assert answer.error == "HTTP 429: slow"
        assert len(server.asked) == 1


def test_calls_on_their_way_can_be_cancelled() -> None:
    with ChatServer(in_turn(NEVER)) as server:
        asking = waiting_asker(server.url)
        with ThreadPoolExecutor(3) as pool:
            coming = [pool.submit(one, asking) for _ in range(3)]
            until(lambda: len(server.asked) == 3)
            asking.cancel()
            answers = [future.result(60) for future in coming]
        assert [answer.error for answer in answers] == ["cancelled"] * 3
        assert all(call_of(answer)["error"] == "cancelled" for answer in answers)
        assert one(asking).error == "cancelled"
        assert len(server.asked) == 3, "nothing begins afterwards"


def test_a_limit_in_dollars_is_an_answer_that_ends_the_run() -> None:
    budget = Budget(0.02)
    with ChatServer(in_turn(completion())) as server:
        asking = asker(server.url, budget=budget)
        other = asker(server.url, budget=budget)
        answers = [one(asking), one(other), one(asking), one(other)]
        assert len(server.asked) == 2, "two models, one budget"
        assert asking.stopped is other.stopped is Stop.SPENT
    assert [answer.stop for answer in answers] == [None, None, Stop.SPENT, Stop.SPENT]
    assert "limit of $0.02" in (answers[2].error or "")
    assert "call" not in answers[2].record, "a call that was not made is none"


def test_threads_waiting_for_the_budget_come_back_when_it_is_over() -> None:
    with ChatServer(in_turn(NEVER)) as server:
        budget = Budget(1.0)
        asking = ChatAsker(server_model("Qwen3-VL"), [Endpoint(server.url)], Terms(), budget)
        with ThreadPoolExecutor(3) as pool:
            coming = [pool.submit(one, asking) for _ in range(3)]
            until(lambda: server.asked)
            asking.cancel()
            assert [future.result(60).error for future in coming] == ["cancelled"] * 3


# --- limits of tokens, temperature ----------------------------------------------------------------


def fields(asked: Asked) -> dict[str, Any]:
    return {name: value for name, value in asked.body.items() if name not in ("messages", "model")}


UNSUPPORTED = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. "
    "Use 'max_completion_tokens' instead."
)


def test_the_other_field_for_the_limit_is_found_out_once() -> None:
    def openai(asked: Asked, number: int) -> Answer:
        return error(400, UNSUPPORTED) if "max_tokens" in asked.body else completion("ok")

    with ChatServer(openai) as server:
        asking = asker(server.url)
        assert call_of(one(asking))["attempts"] == 2
        assert one(asking).text == "ok"
        asked = [fields(one_) for one_ in server.asked]
    limits = [{"max_tokens": 768}, *[{"max_completion_tokens": 768}] * 2]
    assert asked == [{**limit, "temperature": 0.0} for limit in limits]


def test_a_server_that_takes_neither_field_is_asked_as_before() -> None:
    with ChatServer(in_turn(error(400, UNSUPPORTED))) as server:
        asking = asker(server.url)
        assert "HTTP 400" in (one(asking).error or "")
        one(asking)
        asked = [set(one_.body) & {"max_tokens", "max_completion_tokens"} for one_ in server.asked]
    assert asked == [{"max_tokens"}, {"max_completion_tokens"}] * 2


def test_a_limit_that_is_too_large_is_no_unknown_field() -> None:
    large = error(400, "max_tokens is too large: 768. This model supports at most 512")
    with ChatServer(in_turn(large)) as server:
        assert "too large" in (one(asker(server.url)).error or "")
        assert len(server.asked) == 1


def test_some_models_take_no_temperature() -> None:
    with ChatServer(in_turn(completion())) as server:
        assert one(asker(server.url, fields={"temperature": None})).error is None
        astra = ChatAsker(server_model("GPT-6-Astra"), [Endpoint(server.url)])
        assert one(astra).error is None
        none, row = map(fields, server.asked)
    assert none == {"max_tokens": 768}
    assert row == {"max_tokens": 8000}, "as its row of the model table says"


@pytest.mark.parametrize("name", ["max_new_tokens", "max_tokens", "max_completion_tokens"])
def test_a_limit_of_tokens_given_as_a_setting_is_kept(name: str) -> None:
    limit, rest = token_limit({name: 64, "seed": 3})
    assert rest == {"seed": 3}
    with ChatServer(in_turn(completion())) as server:
        for model in (server_model("Qwen3-VL", max_tokens=limit), openrouter_model("GPT-5.4", 64)):
            assert one(ChatAsker(model, [Endpoint(server.url)])).error is None
        assert [asked.body["max_tokens"] for asked in server.asked] == [64, 64]


@pytest.mark.parametrize(
    "settings",
    [
        {"max_tokens": 0},
        {"max_new_tokens": "64"},
        {"max_tokens": True},
        {"max_tokens": 1.5},
        {"max_tokens": 5, "max_new_tokens": 6},
    ],
)
def test_a_limit_of_tokens_that_cannot_be_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="max_"):
        token_limit(settings)


def test_a_reply_of_ten_megabytes_is_handled_fast() -> None:
    text = "[1, 2, 3, 4], café " * 500_000
    with ChatServer(in_turn(completion(text))) as server:
        asking = asker(server.url)
        began = time.process_time()
        answer = one(asking)
        seconds = time.process_time() - began
    assert answer.text == text.strip()
    assert threading.active_count() < 50
    assert seconds < 60, "a guard against a square law, no measurement"
