"""Requests that a server refuses: noticed by its first calls, and by a question before them."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from asking import QUICK, ask_call, ask_calls, call_of, service
from chat_server import (
    HELD_REPLY,
    Answer,
    Asked,
    ChatServer,
    Script,
    completion,
    error,
    holding,
    in_turn,
    is_first,
)

from vlmeval_findit.benchmarks.findit.dataset_names import parse
from vlmeval_findit.cli import main
from vlmeval_findit.core.answers import Answer as Answered
from vlmeval_findit.core.answers import StopReason
from vlmeval_findit.engine.http_backend import HttpBackend
from vlmeval_findit.models.http.spending import Budget

FREE = parse("FindIt_Demo_xyxy_json")
HELD = parse("FindIt_Demo_xyxy_json_constrained")
NO_GRAMMAR = error(500, "failed to parse grammar")
OK = completion("[]")


def answers(script: Script, calls: int, question: Any = FREE) -> list[Answered]:
    """Return the answers to calls one after the other."""
    with ChatServer(script) as server:
        return ask_calls(service(server.url), calls, question=question)


# --- refusals that are alike ----------------------------------------------------------------------


@pytest.mark.parametrize("script", [in_turn(NO_GRAMMAR), holding(in_turn(NO_GRAMMAR))])
def test_a_schema_that_is_refused_with_500_ends_the_run(script: Script) -> None:
    """The first question is refused as well, or only the schemas of boxes are."""
    with ChatServer(script) as server:
        received = ask_calls(service(server.url), 60, question=HELD)
        assert len(server.asked) <= 10
    assert len(received) < 20
    assert received[-1].stop is StopReason.HOPELESS
    why = received[-1].error or ""
    assert why.startswith("HTTP 500: failed to parse grammar")
    assert "; all first calls were refused in these words: " in why
    assert "it does not take response_format (ask FindIt_Demo_xyxy_json without" in why


def test_what_the_words_do_not_name_may_be_any_field() -> None:
    fields = {"top_k": 1, "seed": 7}
    with ChatServer(in_turn(error(400, "bad request"), error(400, "bad request"))) as server:
        why = ask_calls(service(server.url, fields), 5, logprobs=True)[-1].error or ""
    assert "it may not take logprobs (run without --logprobs), or seed (with --extra-body" in why
    assert """top_k (with --extra-body '{"top_k": null}' it is not sent)""" in why
    with ChatServer(in_turn(error(400, "top_k must be -1"))) as server:
        why = ask_calls(service(server.url, fields), 5)[-1].error or ""
    assert "it does not take top_k" in why
    assert "seed" not in why


def test_ids_and_times_in_refusals_are_no_difference() -> None:
    def script(asked: Asked, number: int) -> Answer:
        return error(400, f"no images (request req_{number}, 2026-11-23T06:00:{number:02})")

    assert answers(script, 5)[-1].stop is StopReason.HOPELESS


@pytest.mark.parametrize(
    "script",
    [
        in_turn(error(503, "loading model")),
        in_turn(error(429, "slow down")),
        in_turn(error(413, "too large")),
        in_turn(error(400, "blocked by the content filter")),
        lambda asked, number: error(500, f"worker {number} died"),
        lambda asked, number: error(400, f"{4000 + number} tokens are too many"),
        in_turn(completion("[1]"), error(500, "no")),
        in_turn(*[error(500, "no")] * 7, error(503, "starts"), *[error(500, "no")] * 7, OK),
    ],
    ids=["503", "429", "413", "moderated", "words", "counts", "answered", "between"],
)
def test_refusals_that_are_of_the_moment_or_the_call_end_nothing(script: Script) -> None:
    assert [answer.stop for answer in answers(script, 12)] == [None] * 12


@pytest.mark.parametrize("status", [400, 401, 500])
def test_calls_that_are_refused_together_count_once(status: int) -> None:
    """A server, or its gateway, that starts may refuse all that come with it in the same words."""
    together = threading.Barrier(8)

    def script(asked: Asked, number: int) -> Answer:
        if number < 8:
            together.wait(30)
            return error(status, "model runner is not up")
        return OK

    with ChatServer(script) as server:
        received = ask_calls(service(server.url), 9, at_once=8)
    assert [answer.stop for answer in received] == [None] * 9
    assert [answer.error for answer in received].count(None) == (9 if status == 500 else 1)


@pytest.mark.parametrize("question", [FREE, HELD])
def test_a_server_that_says_500_while_it_starts_is_waited_for(question: Any) -> None:
    starts = [error(500, "model runner is not up")] * 20
    answer = OK if question is FREE else completion(HELD_REPLY)
    patient = replace(QUICK, attempts=6, refusals=30)
    with ChatServer(in_turn(*starts, answer, OK)) as server:
        received = ask_call(service(server.url, policy=patient), question=question)
    assert (received.text, received.stop) == ("[]", None)


@pytest.mark.parametrize("refusal", [NO_GRAMMAR, error(400, "bad request")])
def test_free_answers_say_nothing_of_constrained_ones(refusal: Answer) -> None:
    def script(asked: Asked, number: int) -> Answer:
        return refusal if "response_format" in asked.body else OK

    with ChatServer(script) as server:
        backend = HttpBackend(lambda: service(server.url))
        assert ask_call(backend).error is None
        received = ask_calls(backend, 60, question=HELD)
    assert len(received) < 20
    assert received[-1].stop is StopReason.HOPELESS
    assert "take response_format (ask FindIt_Demo_xyxy_json without" in (received[-1].error or "")


def test_a_500_that_names_nothing_counts_where_others_are_answered() -> None:
    def script(asked: Asked, number: int) -> Answer:
        return error(500, "no") if "response_format" in asked.body else OK

    with ChatServer(script) as server:
        backend = HttpBackend(lambda: service(server.url, policy=replace(QUICK, attempts=1)))
        for _ in range(5):
            assert ask_call(backend).error is None
            last = ask_call(backend, question=HELD)
    assert last.stop is StopReason.HOPELESS
    assert "it may not take response_format" in (last.error or "")


# --- the question before constrained ones ---------------------------------------------------------


@pytest.mark.parametrize("reply", ["[]", "Hello there, friend!", '{"word": "hello"}', "", "null"])
def test_a_server_that_ignores_the_format_ends_the_run(reply: str) -> None:
    """Also where its replies are as the format has them all the same."""
    budget = Budget()
    with ChatServer(in_turn(completion(reply))) as server:
        (received,) = ask_calls(service(server.url, budget=budget), 2, question=HELD)
        (asked,) = server.asked
    assert (received.stop, received.text) == (StopReason.HOPELESS, "")
    why = received.error or ""
    assert f"it replied {reply!r}" in why if reply else "it replied an empty reply" in why
    assert "ask FindIt_Demo_xyxy_json without _constrained" in why
    assert budget.spent == call_of(received)["cost"] == 0.01
    (content,) = asked.body["messages"][0]["content"]
    assert content == {"type": "text", "text": "Say hello in three words."}


def test_it_is_asked_once_a_server_and_paid_with_the_first_call() -> None:
    budget = Budget()
    with ChatServer(holding(in_turn(OK))) as first, ChatServer(holding(in_turn(OK))) as second:
        asked = service([first.url, second.url], budget=budget)
        received = ask_calls(asked, 16, question=HELD, at_once=8)
        assert [len([it for it in at.asked if is_first(it)]) for at in (first, second)] == [1, 1]
        assert len(first.asked) + len(second.asked) == 18
    assert {answer.text for answer in received} == {"[]"}
    assert sorted(call_of(answer)["cost"] for answer in received) == [0.01] * 14 + [0.02] * 2
    assert {call_of(answer)["attempts"] for answer in received} == {1}
    assert budget.spent == pytest.approx(0.18)


def test_it_is_sent_as_the_calls_are_but_for_logprobs() -> None:
    with ChatServer(holding(in_turn(OK))) as server:
        ask_call(service(server.url, {"seed": 7}), question=HELD, logprobs=True)
        first, call = (dict(item.body) for item in server.asked)
    assert first.pop("response_format")["type"] == call.pop("response_format")["type"]
    assert call.pop("logprobs") is True
    assert call.pop("top_logprobs") == 1
    assert first.pop("messages") != call.pop("messages")
    assert first == call


def test_a_check_that_is_cut_off_in_a_thought_shows_nothing() -> None:
    cut = completion("<think>Three words", finish_reason="length")
    with ChatServer(in_turn(cut, OK)) as server:
        assert ask_call(service(server.url), question=HELD).text == "[]"


def test_a_check_that_fails_is_tried_again_with_its_call() -> None:
    with ChatServer(in_turn(error(503, "loads"), completion(HELD_REPLY), OK)) as server:
        answer = ask_call(service(server.url), question=HELD)
        assert [is_first(item) for item in server.asked] == [True, True, False]
    assert (answer.text, call_of(answer)["attempts"]) == ("[]", 2)


def test_who_waits_for_it_shares_its_failure() -> None:
    """A server that never answers costs a single time-out, however many calls wait."""
    dear = {"error": {"code": 400, "message": "no"}, "usage": {"cost": 0.5}}
    never = Answer(json.dumps(dear).encode(), delay=0.2)
    budget = Budget()
    with ChatServer(in_turn(never)) as server:
        once = replace(QUICK, attempts=1)
        asked = service(server.url, budget=budget, policy=once)
        received = ask_calls(asked, 4, question=HELD, at_once=4)
        assert len(server.asked) == 1
    assert ["HTTP 400" in (answer.error or "") for answer in received] == [True] * 4
    assert budget.spent == 0.5


def test_a_sweep_stops_and_says_what_to_type(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "sweep.yaml"
    config.write_text(
        f"models: [Qwen3-VL]\ndatasets: [{HELD.name}]\nwork_dir: {tmp_path / 'out'}\n"
        f"journal: {tmp_path / 'calls.jsonl'}\n"
    )
    heeds = holding(in_turn(OK))
    with ChatServer(lambda asked, number: heeds(asked, number) if number else OK) as server:
        assert main(["sweep", str(config), "--base-url", server.url]) == 1
        assert len(server.asked) == 1
        assert "it does not hold replies to a format" in capsys.readouterr().err
        assert not list((tmp_path / "out").rglob("*_score.csv"))
        # Once a run: this is the next, the server mended.
        assert main(["sweep", str(config), "--base-url", server.url]) == 0
        assert sum(map(is_first, server.asked)) == 2
