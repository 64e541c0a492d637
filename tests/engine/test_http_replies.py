"""Whatever a server replies over HTTP becomes an answer that can be stored, and is paid once."""

from __future__ import annotations

import json

import pytest
from asking import ask_call, ask_calls, service
from chat_server import GARBAGE, NO_CHOICES, Answer, ChatServer, completion, in_turn

from vlmeval_findit.core.answers import StopReason
from vlmeval_findit.core.replies import call_failed, recorded
from vlmeval_findit.models.http.spending import Budget

UGLY: list[tuple[Answer, str | None]] = [
    (GARBAGE, "not JSON"),
    (NO_CHOICES, "no choices"),
    (completion(choices=[{"finish_reason": "stop"}]), "no message"),
    (Answer(b"[]"), "not a JSON object"),
    (Answer(b'{"error": {"message": "no", "code": true}}'), "reports: no"),
    (Answer(b"\xff\xff", 400), "HTTP 400"),
    (Answer(b'{"error": {"message": null}}', 400), "HTTP 400: null"),
    (completion("half \ud800 a pair"), None),
    (completion("x", finish_reason=["a"], id=[1], model={"a": 1}, provider=5), None),
    (completion("x", usage={"cost": -1, "prompt_tokens": None}), None),
]


@pytest.mark.parametrize(("answer", "why"), UGLY, ids=range(len(UGLY)))
def test_any_reply_can_be_stored(answer: Answer, why: str | None) -> None:
    with ChatServer(in_turn(answer)) as server:
        got = ask_call(service(server.url))
        assert len(server.asked) == 1, "it is not paid again"
    whole = json.dumps([got.text, got.extra, got.error], ensure_ascii=False, allow_nan=False)
    assert whole.encode("utf-8")
    record = recorded(got.extra)
    assert call_failed(got.text, record) is (why is not None)
    assert json.dumps(json.loads(got.extra), allow_nan=False)
    assert record.call.get("error") == got.error
    if why is None:
        assert got.error is None
    else:
        assert why in (got.error or "")
        assert "\n" not in (got.error or "")


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), -5, "1"])
def test_a_cost_that_is_no_cost_keeps_no_limit(cost: float | str) -> None:
    budget = Budget(1.0)
    with ChatServer(in_turn(completion("x", usage={"cost": cost}))) as server:
        first, second = ask_calls(service(server.url, budget=budget), 2)
    assert first.text == "x"
    assert second.stop is StopReason.SPENT, "no cost is known: no limit can be kept"
    assert budget.spent == 0.0
