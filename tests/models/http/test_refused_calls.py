"""Requests that a server refuses: noticed by its first calls, and by a question before them."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace

import pytest
from asking import QUICK, WORDS, ask_call, ask_calls, call_of, service
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

from vlmeval_findit.benchmarks.findit import parse
from vlmeval_findit.engine import HttpBackend
from vlmeval_findit.models import (
    Budget,
    CallError,
    ChatCall,
    Completion,
    EncodedImages,
    Endpoint,
    HttpClient,
    HttpEndpoint,
    chat_model,
    extra_fields,
    read_completion,
)
from vlmeval_findit.protocol import Message, StopReason, text

HELD = parse("FindIt_Demo_xyxy_json_constrained")
OK = completion("[]")


# --- refusals that are alike ----------------------------------------------------------------------


def test_what_the_words_do_not_name_may_be_any_field() -> None:
    fields = {"top_k": 1, "seed": 7}
    with ChatServer(in_turn(error(400, "bad request"))) as server:
        why = ask_calls(service(server.url, fields), 5, logprobs=True)[-1].error or ""
    assert "it may not take logprobs (run without --logprobs), or seed (with --extra-body" in why
    assert """top_k (with --extra-body '{"top_k": null}' it is not sent)""" in why
    with ChatServer(in_turn(error(400, "top_k must be -1"))) as server:
        why = ask_calls(service(server.url, fields), 5)[-1].error or ""
    assert "it does not take top_k" in why
    assert "seed" not in why


NAMED = {
    "temperature": "Unsupported value: 'temperature' does not support 0 with this model.",
    "top_k": "top_k must be -1",
    "min_p": "Extra inputs are not permitted: body.min_p",
    "repetition_penalty": "the repetition penalty is out of its range",
}


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize("field", NAMED)
def test_a_field_that_a_server_names_can_be_left_out(field: str, status: int) -> None:
    """With what the message says to type the same server answers."""
    others = {"top_k": 1, "repetition_penalty": 9.0, "min_p": 0.1}

    def script(asked: Asked, number: int) -> Answer:
        return error(status, NAMED[field]) if field in asked.body else OK

    with ChatServer(script) as server:
        why = ask_calls(service(server.url, others), 5)[-1].error or ""
        hint = f"""(with --extra-body '{{"{field}": null}}' it is not sent)"""
        assert f"it does not take {field} {hint}" in why
        left = {**others, **extra_fields(f'{{"{field}": null}}')}
        assert ask_call(service(server.url, left)).error is None


def test_fields_that_nearly_all_take_are_not_suspected_in_silence() -> None:
    with ChatServer(in_turn(error(400, "bad request"))) as server:
        assert "temperature" not in (ask_calls(service(server.url), 5)[-1].error or "")


@pytest.mark.parametrize("status", [400, 422])
def test_a_server_that_refuses_max_tokens_gets_the_other_name(status: int) -> None:
    def script(asked: Asked, number: int) -> Answer:
        if "max_tokens" in asked.body:
            return error(status, "max_tokens: Extra inputs are not permitted")
        return OK

    with ChatServer(script) as server:
        assert [answer.error for answer in ask_calls(service(server.url), 3)] == [None] * 3
        assert len(server.asked) == 4


def test_a_seed_of_samples_can_be_left_out() -> None:
    asked = chat_model("Qwen3-VL", fields={"seed": None, "temperature": 0.7})
    call = ChatCall(asked, Budget(), WORDS, HELD, seed=3)
    assert "seed" not in asyncio.run(call.build_request(EncodedImages())).body


@pytest.mark.parametrize(
    "script",
    [
        in_turn(error(503, "loading model")),
        in_turn(error(413, "too large")),
        in_turn(error(400, "blocked by the content filter")),
        lambda asked, number: error(400, f"{4000 + number} tokens are too many"),
        in_turn(completion("[1]"), error(400, "no")),
    ],
    ids=["503", "413", "moderated", "counts", "answered"],
)
def test_passing_refusals_end_nothing(script: Script) -> None:
    with ChatServer(script) as server:
        assert [answer.stop for answer in ask_calls(service(server.url), 12)] == [None] * 12


@pytest.mark.parametrize("at_once", [1, 3])
def test_refusals_of_one_image_are_of_that_image(at_once: int) -> None:
    """A request that is too large, six times, says nothing of the small images behind it."""

    def script(asked: Asked, number: int) -> Answer:
        is_large = "large" in json.dumps(asked.body)
        return error(400, "the request exceeds the context size") if is_large else OK

    messages: list[Message] = [(text(f"large {number}"),) for number in range(6)]
    messages += [(text(f"small {number}"),) for number in range(12)]
    images = ["one"] * 6 + [f"image {number // 2}" for number in range(12)]
    with ChatServer(script) as server:
        answers = ask_calls(service(server.url), message=messages, images=images, at_once=at_once)
        assert len(server.asked) == 18
    assert [answer.error is None for answer in answers] == [False] * 6 + [True] * 12
    assert {answer.stop for answer in answers} == {None}


@pytest.mark.parametrize("reply", [error(400, "no"), Answer(b"<html>log in</html>")])
@pytest.mark.parametrize(("a_row", "calls"), [(1, 5), (2, 9), (7, 29)])
def test_refusals_of_five_images_end_the_run(reply: Answer, a_row: int, calls: int) -> None:
    images = [f"image {number // a_row}" for number in range(60)]
    with ChatServer(in_turn(reply)) as server:
        answers = ask_calls(service(server.url), 60, images=images)
        assert len(server.asked) == calls
    assert answers[-1].stop is StopReason.HOPELESS
    assert re.search("; all first (calls were refused|replies were like)", answers[-1].error or "")


def test_five_refusals_of_one_image_name_the_field() -> None:
    with ChatServer(in_turn(error(400, "top_k must be -1"))) as server:
        answers = ask_calls(service(server.url, {"top_k": 1}), 7, images=["one"] * 7)
    told = ["it does not take top_k" in (answer.error or "") for answer in answers]
    assert told == [False] * 4 + [True] * 3
    assert {answer.stop for answer in answers} == {None}


def test_free_answers_say_nothing_of_constrained_ones() -> None:
    def script(asked: Asked, number: int) -> Answer:
        return error(400, "bad request") if "response_format" in asked.body else OK

    with ChatServer(script) as server:
        backend = HttpBackend(lambda: service(server.url))
        assert ask_call(backend).error is None
        received = ask_calls(backend, 60, variant=HELD)
    assert len(received) < 20
    assert received[-1].stop is StopReason.HOPELESS
    assert "take response_format (ask FindIt_Demo_xyxy_json without" in (received[-1].error or "")


# --- the question before constrained ones ---------------------------------------------------------


@pytest.mark.parametrize("reply", ["[]", "Hello there, friend!", ""])
def test_a_server_that_ignores_the_format_ends_the_run(reply: str) -> None:
    """Also where its replies are as the format has them all the same."""
    budget = Budget()
    with ChatServer(in_turn(completion(reply))) as server:
        (received,) = ask_calls(service(server.url, budget=budget), 2, variant=HELD)
        (asked,) = server.asked
    assert (received.stop, received.text) == (StopReason.HOPELESS, "")
    why = received.error or ""
    assert f"it replied {reply!r}" in why if reply else "it replied an empty reply" in why
    assert "ask FindIt_Demo_xyxy_json without _constrained" in why
    assert budget.spent == call_of(received)["cost"] == 0.01
    (content,) = asked.body["messages"][0]["content"]
    assert content == {"type": "text", "text": "Say hello in three words."}


def test_a_schema_check_is_asked_once_a_server() -> None:
    budget = Budget()
    with ChatServer(holding(in_turn(OK))) as first, ChatServer(holding(in_turn(OK))) as second:
        asked = service([first.url, second.url], budget=budget)
        received = ask_calls(asked, 16, variant=HELD, at_once=8)
        assert [len([it for it in at.asked if is_first(it)]) for at in (first, second)] == [1, 1]
        assert len(first.asked) + len(second.asked) == 18
    assert {answer.text for answer in received} == {"[]"}
    assert sorted(call_of(answer)["cost"] for answer in received) == [0.01] * 14 + [0.02] * 2
    assert {call_of(answer)["attempts"] for answer in received} == {1}
    assert budget.spent == pytest.approx(0.18)


def test_a_schema_check_cut_off_in_a_thought_proves_nothing() -> None:
    cut = completion("<think>Three words", finish_reason="length")
    with ChatServer(in_turn(cut, OK)) as server:
        assert ask_call(service(server.url), variant=HELD).text == "[]"


def test_who_waits_for_it_shares_its_failure() -> None:
    """A server that never answers costs a single time-out, however many calls wait."""
    dear = {"error": {"code": 400, "message": "no"}, "usage": {"cost": 0.5}}
    never = Answer(json.dumps(dear).encode(), delay=0.2)
    budget = Budget()
    with ChatServer(in_turn(never)) as server:
        once = replace(QUICK, attempts=1)
        asked = service(server.url, budget=budget, policy=once)
        received = ask_calls(asked, 4, variant=HELD, at_once=4)
        assert len(server.asked) == 1
    assert ["code 400" in (answer.error or "") for answer in received] == [True] * 4
    assert budget.spent == 0.5


@pytest.mark.parametrize("fault", [AttributeError("no get"), asyncio.CancelledError()])
@pytest.mark.parametrize("then", [completion(HELD_REPLY), completion("Hello there, friend!")])
def test_a_waiter_repeats_a_cut_off_check(
    fault: BaseException, then: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a server whose reply to the check was seen enforces schemas."""
    asked = []

    async def sent(call: ChatCall, *request: object) -> Completion:
        asked.append(call)
        await asyncio.sleep(0.01)
        if len(asked) == 1:
            raise fault
        return read_completion(json.loads(then.body))

    async def outcomes() -> list[object]:
        server = HttpEndpoint(Endpoint("http://127.0.0.1/v1"))
        model = chat_model("Qwen3-VL")
        calls = [ChatCall(model, Budget(), WORDS, HELD) for _ in range(3)]
        request = model.request(WORDS, HELD)
        client = HttpClient(1.0)
        checks = [call._check_schemas(server, client, request) for call in calls]
        return await asyncio.gather(*checks, return_exceptions=True)

    monkeypatch.setattr(ChatCall, "_send", sent)
    first, *others = asyncio.run(outcomes())
    assert type(first) is type(fault)
    assert len(asked) == 2, "the next that waits asks, and the third shares its result"
    enforced = then.body == completion(HELD_REPLY).body
    assert [other is None for other in others] == [enforced] * 2
    assert enforced or all(isinstance(other, CallError) and other.hopeless for other in others)
