"""A response is an answer, cut off, refused, or a failed call: exactly one, whatever it holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from asking import QUICK, ask_call, ask_calls, call_of, service
from chat_server import Answer, ChatServer, completion, in_turn
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.models import (
    Budget,
    CallError,
    CallVerdict,
    Completion,
    Judgement,
    judge_response,
    prices_from,
)
from vlmeval_findit.models import reply_of_content as of_google
from vlmeval_findit.models import reply_of_messages as of_anthropic
from vlmeval_findit.protocol import StopReason, stored_reply

BOX = '[{"bbox": [100, 100, 500, 500]}]'
ANSWERS = (CallVerdict.ANSWER, CallVerdict.CUT, CallVerdict.REFUSED)
USAGE = {"prompt_tokens": 1000, "completion_tokens": 20}


def reply(finish: Any = "stop", choice: Any = None, **message: Any) -> dict[str, Any]:
    """Return a chat reply of one choice; ``choice`` are further fields of it."""
    whole = {"content": BOX, **message}
    first = {"finish_reason": finish, "message": whole, **(choice or {})}
    return {"choices": [first], "usage": USAGE}


def judged(body: Mapping[str, Any]) -> Judgement:
    return judge_response(200, json.dumps(body).encode())


def answer_in(judgement: Judgement) -> Completion:
    assert isinstance(judgement.outcome, Completion), judgement
    return judgement.outcome


def error_in(judgement: Judgement) -> CallError:
    assert isinstance(judgement.outcome, CallError), judgement
    return judgement.outcome


def test_a_thought_with_a_cut_answer_ended_in_the_answer() -> None:
    """Only a reply that ends before its answer ends in its thought."""
    ends = {}
    for content in ("", BOX[:20]):
        body = reply("length", content=content, reasoning_content="The dog is left.")
        record = answer_in(judged(body)).record
        ends[content] = record.ends_in_thought
    assert ends == {"": True, BOX[:20]: False}


@pytest.mark.parametrize(
    ("stated", "is_error"), [("0", False), (0, False), ("", False), ("1", True), (1, True)]
)
def test_a_code_of_zero_beside_an_answer_is_no_error(stated: Any, is_error: bool) -> None:
    outcome = judged({**reply(), "error": stated}).outcome
    assert isinstance(outcome, CallError) is is_error


# --- how a reply ended ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("finish", "verdict", "kept"),
    [
        ("stop", CallVerdict.ANSWER, "stop"),
        ("STOP", CallVerdict.ANSWER, "stop"),
        ("end_turn", CallVerdict.ANSWER, "stop"),
        ("COMPLETE", CallVerdict.ANSWER, "stop"),
        ("eosFound", CallVerdict.ANSWER, "stop"),
        ({"type": "eos_token"}, CallVerdict.ANSWER, "stop"),
        ({"type": "stop", "matched": 151645}, CallVerdict.ANSWER, "stop"),
        ("tool_calls", CallVerdict.ANSWER, "tool_calls"),
        (None, CallVerdict.ANSWER, ""),
        ("", CallVerdict.ANSWER, ""),
        (7, CallVerdict.ANSWER, ""),
        ("length", CallVerdict.CUT, "length"),
        ("MAX_TOKENS", CallVerdict.CUT, "length"),
        ("FINISH_REASON_MAX_TOKENS", CallVerdict.CUT, "length"),
        ("model_length", CallVerdict.CUT, "length"),
        ("model_context_window_exceeded", CallVerdict.CUT, "length"),
        ("maxPredictedTokensReached", CallVerdict.CUT, "length"),
        ({"type": "length", "length": 20}, CallVerdict.CUT, "length"),
        ("content_filter", CallVerdict.REFUSED, "content_filter"),
        ("SAFETY", CallVerdict.REFUSED, "content_filter"),
        ("IMAGE_PROHIBITED_CONTENT", CallVerdict.REFUSED, "content_filter"),
        ("refusal", CallVerdict.REFUSED, "content_filter"),
        ("sensitive", CallVerdict.REFUSED, "content_filter"),
    ],
)
def test_a_finish_reason_says_what_an_answer_is(
    finish: Any, verdict: CallVerdict, kept: str
) -> None:
    judgement = judged(reply(finish))
    assert judgement.verdict is verdict
    assert answer_in(judgement).text == BOX
    assert answer_in(judgement).record.finish_reason == kept


STOPPED_BY_SERVICE = [
    "abort",
    "aborted",
    "cancelled",
    "error",
    "ERROR",
    "server_error",
    "network_error",
    "insufficient_system_resource",
    "timeout",
    "timed_out",
    "time_limit",
    "preempted",
    "OTHER",
    "MALFORMED_RESPONSE",
    "MALFORMED_FUNCTION_CALL",
    "FINISH_REASON_UNSPECIFIED",
    "UNEXPECTED_TOOL_CALL",
    "modelUnloaded",
    "unload",
    "userStopped",
    "shutdown",
    "null",
    "incomplete",
    "not_finished",
    "NO_IMAGE",
    "pause_turn",
    "internal-error",
]


@pytest.mark.parametrize("finish", STOPPED_BY_SERVICE)
@pytest.mark.parametrize("content", [BOX, BOX[:20], "", None])
def test_a_call_that_the_service_ended_may_be_repeated(finish: str, content: str | None) -> None:
    judgement = judged(reply(finish, content=content))
    assert judgement.verdict is CallVerdict.PASSING
    assert judgement.reason == f"the service ended the reply: finish_reason {finish}"
    assert error_in(judgement).usage.tokens == {"prompt": 1000, "completion": 20}


def test_a_service_s_own_words_are_in_the_reason() -> None:
    google = {"finishReason": "OTHER", "finishMessage": "fell over", "content": {"role": "model"}}
    assert judged(of_google({"candidates": [google]})).reason.endswith("OTHER: fell over")
    sglang = {"type": "abort", "message": "The scheduler is gone"}
    assert judged(reply(sglang)).reason.endswith("abort: The scheduler is gone")
    gone = {"error": {"code": 502, "message": "upstream died"}}
    for body in (reply("error", gone), reply("stop", gone), reply("stop", **gone)):
        judgement = judged(body)
        assert judgement.verdict is CallVerdict.PASSING
        assert judgement.reason == "an error in a reply with status 200: code 502, upstream died"


def test_an_unknown_finish_reason_counts_and_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with ChatServer(in_turn(completion(BOX, finish_reason="schluss"))) as server:
        received = ask_calls(service(server.url), 3)
    assert [answer.text for answer in received] == [BOX] * 3
    assert (
        caplog.text.count("its replies end with finish_reason 'schluss', which is not known") == 1
    )
    assert judged(reply("schluss", content="")).verdict is CallVerdict.PASSING


@pytest.mark.parametrize("first", [reply("abort"), reply("error", content=None)])
def test_what_the_service_ended_is_asked_again(first: Mapping[str, Any]) -> None:
    with ChatServer(in_turn(Answer(json.dumps(first).encode()), completion(BOX))) as server:
        answer = ask_call(service(server.url))
        assert len(server.asked) == 2
    assert (answer.error, answer.text) == (None, BOX)


# --- where the answer is --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "text", "thought"),
    [
        (BOX, BOX, ""),
        ([BOX], BOX, ""),
        ([{"type": "text", "text": BOX}], BOX, ""),
        ([{"text": BOX}], BOX, ""),
        ([{"type": "output_text", "text": BOX, "annotations": []}], BOX, ""),
        ([{"type": "text", "text": BOX[:9]}, BOX[9:]], BOX, ""),
        ([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": BOX}], BOX, "hm"),
        (
            [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                {"type": "text", "text": BOX},
            ],
            BOX,
            "hm",
        ),
        (
            [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
                {"type": "text", "text": BOX},
            ],
            BOX,
            "hm",
        ),
        ([{"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": BOX}], BOX, ""),
        ([{"type": "reference", "reference_ids": [1]}, {"type": "text", "text": BOX}], BOX, ""),
        ([{"type": "refusal", "refusal": "I cannot."}], "I cannot.", ""),
        ([], "", ""),
        (None, "", ""),
    ],
)
def test_content_of_every_known_shape_is_read(content: Any, text: str, thought: str) -> None:
    read = answer_in(judged(reply(content=content)))
    assert (read.text, read.record.thought) == (text, thought)


def test_a_refusal_is_the_reply_s_text() -> None:
    words = "I cannot identify people."
    judgement = judged(reply(content=None, refusal=words))
    assert (judgement.verdict, judgement.reason) == (CallVerdict.REFUSED, words)
    assert answer_in(judgement).text == words
    both = judged(reply(content=BOX, refusal=words))
    assert both.verdict is CallVerdict.REFUSED
    assert (answer_in(both).text, answer_in(both).more) == (BOX, {"refusal": words})


TOOL = {"id": "c", "type": "function", "function": {"name": "locate", "arguments": BOX}}


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (reply("tool_calls", content=None, tool_calls=[TOOL]), [TOOL]),
        (reply(content="", function_call=TOOL["function"]), [TOOL["function"]]),
        (
            of_anthropic(
                {
                    "content": [{"type": "tool_use", "name": "locate", "input": {"a": 1}}],
                    "stop_reason": "tool_use",
                }
            ),
            [{"type": "tool_use", "name": "locate", "input": {"a": 1}}],
        ),
        (
            of_google(
                {
                    "candidates": [
                        {
                            "content": {"parts": [{"functionCall": {"name": "f", "args": {}}}]},
                            "finishReason": "STOP",
                        }
                    ]
                }
            ),
            [{"type": "tool_use", "name": "f", "args": {}}],
        ),
    ],
)
def test_arguments_of_tools_are_kept_in_the_record(
    body: Mapping[str, Any], kept: list[Any]
) -> None:
    with ChatServer(in_turn(Answer(json.dumps(body).encode()))) as server:
        answer = ask_call(service(server.url)) if "usage" in body else None
    assert answer_in(judged(body)).text == ""
    assert answer_in(judged(body)).more["tool_calls"] == kept
    if answer is not None and body["choices"][0]["message"].get("tool_calls"):
        assert answer.record.call["tool_calls"] == kept


def test_a_filtered_answer_keeps_the_filters_word() -> None:
    google = {"finishReason": "RECITATION", "content": {"parts": [{"text": BOX[:9]}]}}
    judgement = judged(of_google({"candidates": [google]}))
    assert (judgement.verdict, judgement.reason) == (CallVerdict.REFUSED, "RECITATION")
    assert answer_in(judgement).more == {"finish_reason": "RECITATION"}


def test_google_s_parts_that_are_no_text_are_named() -> None:
    parts = [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]
    body = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}
    assert "has type 'inlineData', which is not text" in judged(of_google(body)).reason
    signed = [{"text": BOX}, {"thoughtSignature": "x"}]
    body = {"candidates": [{"content": {"parts": signed}, "finishReason": "STOP"}]}
    assert answer_in(judged(of_google(body))).text == BOX


def test_an_empty_reply_without_a_finish_reason_was_not_finished() -> None:
    assert judged(reply(None, content=None)).verdict is CallVerdict.PASSING
    assert judged(reply("stop", content=None)).verdict is CallVerdict.ANSWER
    assert judged(reply(None, content=None, reasoning="hm")).verdict is CallVerdict.ANSWER


# --- errors in a reply of status 200 --------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "verdict", "words"),
    [
        (
            {"object": "error", "message": "The prompt has 5000 tokens", "code": 40303},
            CallVerdict.FINAL,
            "the service reports: The prompt has 5000 tokens",
        ),
        (
            {"choices": None, "base_resp": {"status_code": 1002, "status_msg": "try again"}},
            CallVerdict.PASSING,
            "the service reports: try again",
        ),
        (
            {
                "choices": None,
                "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"},
            },
            CallVerdict.FINAL,
            "insufficient balance",
        ),
        (
            {"error": {"message": "slow down", "code": "rate_limit_exceeded"}},
            CallVerdict.PASSING,
            "the service reports: slow down",
        ),
        ({"error": {"type": "overloaded_error", "message": "no"}}, CallVerdict.PASSING, "no"),
        ({"type": "error", "error": {"type": "api_error"}}, CallVerdict.FINAL, "api_error"),
        ({"error": {"status": "UNAVAILABLE", "message": "later"}}, CallVerdict.PASSING, "later"),
        ({"error": "Internal Server Error"}, CallVerdict.PASSING, "Internal Server Error"),
        ({"error": {"code": "insufficient_quota", "message": "pay"}}, CallVerdict.FINAL, "pay"),
        ({"error": {"code": 429, "message": "wait"}}, CallVerdict.PASSING, "code 429, wait"),
        (
            {"error": {"code": "502", "message": "gone"}},
            CallVerdict.PASSING,
            "status 200: code 502, gone",
        ),
        (
            {"error": True, "message": "out of memory"},
            CallVerdict.FINAL,
            "the service reports: out of memory",
        ),
        (
            {"error": 1, "message": "out of memory"},
            CallVerdict.FINAL,
            "the service reports: out of memory",
        ),
        ({"detail": "model is not loaded"}, CallVerdict.FINAL, "model is not loaded"),
        (
            {"success": False, "errors": [{"message": "no image"}]},
            CallVerdict.FINAL,
            "the service reports: no image",
        ),
        ({"choices": [], "message": "no capacity"}, CallVerdict.FINAL, "no capacity"),
        ({"choices": []}, CallVerdict.FINAL, "the reply has no choices"),
        ({}, CallVerdict.FINAL, "the reply has no choices"),
    ],
)
def test_an_error_inside_a_reply_keeps_its_words(
    body: Mapping[str, Any], verdict: CallVerdict, words: str
) -> None:
    judgement = judged(body)
    assert judgement.verdict is verdict
    assert words in judgement.reason


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "no"}}, "no"),
        ([{"error": {"message": "API key not valid"}}], "API key not valid"),
        ({"errors": [{"message": "no image"}]}, "no image"),
        ({"errors": ["no image"]}, "no image"),
        (
            {"errors": [{"message": "no image"}, {"message": "no text"}]},
            '[{"message": "no image"}, {"message": "no text"}]',
        ),
        # A field that is not permitted: its place is half of the message.
        (
            {"detail": [{"loc": ["body", "top_k"], "msg": "not permitted"}]},
            '[{"loc": ["body", "top_k"], "msg": "not permitted"}]',
        ),
        ({"error": {"message": "", "code": 7}}, '{"message": "", "code": 7}'),
        ({"error": {"ret": "余额不足"}}, '{"ret": "余额不足"}'),
        ([], "[]"),
        ("no", "no"),
        ("", "Bad Request"),
    ],
)
def test_an_error_of_another_status_keeps_its_words(body: object, words: str) -> None:
    judgement = judge_response(400, json.dumps(body).encode(), phrase="Bad Request")
    assert (judgement.verdict, judgement.reason) == (CallVerdict.FINAL, f"HTTP 400: {words}")


@pytest.mark.parametrize(
    "more",
    [
        {"error": None},
        {"error": {}},
        {"error": ""},
        {"error": {"code": 0, "message": "success"}},
        {"error": {"code": None, "message": None}},
        {"base_resp": {"status_code": 0, "status_msg": "success"}},
        {"message": "ok"},
    ],
)
def test_an_empty_field_for_errors_is_none(more: Mapping[str, Any]) -> None:
    assert judged({**reply(), **more}).verdict is CallVerdict.ANSWER


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b"<!DOCTYPE html><html>log in</html>", "is a web page, and not JSON"),
        (b'data: {"choices": []}\n\ndata: [DONE]\n', "is a stream of events"),
        (json.dumps(reply()).encode()[:-30], "is not JSON"),
        (b"[]", "is not a JSON object"),
        (json.dumps({**reply(), "choices": []}).encode(), "has no choices"),
        (json.dumps(reply(content={"text": BOX})).encode(), "has an unknown shape"),
    ],
)
def test_five_equal_useless_replies_end_a_run(body: bytes, what: str) -> None:
    budget = Budget()
    with ChatServer(in_turn(Answer(body))) as server:
        asked = service(server.url, {"top_k": 1}, budget=budget)
        received = ask_calls(asked, 20)
        assert len(server.asked) == 5
    assert received[-1].stop is StopReason.HOPELESS
    assert what in (received[-1].error or "")
    assert "all first replies were like this" in (received[-1].error or "")


@pytest.mark.parametrize(
    ("status", "body"), [(200, b""), (201, b" \r\n"), (204, b""), (200, b"\n"), (204, b"\n")]
)
def test_an_empty_body_may_pass_and_is_named(status: int, body: bytes) -> None:
    judgement = judge_response(status, body)
    assert judgement.verdict is CallVerdict.PASSING
    assert judgement.reason == "the reply has an empty body"
    assert error_in(judgement).is_charged


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        (425, CallVerdict.PASSING),
        (500, CallVerdict.PASSING),
        (501, CallVerdict.FINAL),
        (502, CallVerdict.PASSING),
        (407, CallVerdict.FINAL),
    ],
)
def test_a_refusal_of_the_request_is_final(status: int, verdict: CallVerdict) -> None:
    assert judge_response(status, b'{"error": {"message": "no"}}').verdict is verdict


@pytest.mark.parametrize("status", [400, 404, 500])
@pytest.mark.parametrize(
    "words",
    [
        "image input is not supported - hint: you may need to provide the mmproj",
        "Missing data required for image input",
        "this model does not support vision",
        "small-3b is not a multimodal model",
    ],
)
def test_a_model_without_eyes_is_not_asked_again(words: str, status: int) -> None:
    """Some say so with a status that would pass."""
    judgement = judge_response(status, json.dumps({"error": {"message": words}}).encode())
    assert judgement.verdict is CallVerdict.FINAL
    assert error_in(judgement).hopeless
    assert not error_in(judgement).worked_on


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"data: {}", b"{", b"[]", b"null", b'"words"', b"[" * 100_000]
)
def test_what_is_no_reply_arrived_and_may_be_billed(body: bytes) -> None:
    error = error_in(judge_response(200, body))
    assert (error.arrived, error.worked_on) == (True, True)
    assert error.unread is bool(body)


@pytest.mark.parametrize(
    ("body", "dollars"),
    [
        (json.dumps({"choices": [], "usage": USAGE}).encode(), 0.011),
        (json.dumps(reply("abort")).encode(), 0.011),
        (json.dumps({"error": {"message": "no"}, "usage": USAGE}).encode(), 0.011),
        (json.dumps({"error": {"message": "no"}}).encode(), None),
        (json.dumps({"error": {"message": "no", "code": 400}}).encode(), 0.0),
        (json.dumps({"error": {"message": "no", "type": "invalid_request_error"}}).encode(), 0.0),
        (json.dumps({"error": {"message": "rate limit"}}).encode(), 0.0),
        (json.dumps({"error": {"message": "no", "code": 504}}).encode(), None),
        (b"<html>", None),
        (json.dumps({"choices": []}).encode(), None),
    ],
)
def test_a_useless_reply_costs_its_usage_or_the_maximum(body: bytes, dollars: float | None) -> None:
    budget, once = Budget(), replace(QUICK, attempts=1)
    with ChatServer(in_turn(Answer(body))) as server:
        asked = service(server.url, budget=budget, policy=once)
        asked.model = replace(asked.model, prices=prices_from("10,50"))
        answer = ask_call(asked)
    assert answer.error
    if dollars is None:
        assert budget.spent == call_of(answer)["cost_guessed"] > 0.01
    else:
        assert budget.spent == pytest.approx(dollars)


# --- whatever a response holds --------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
errors = st.sampled_from(
    ["boom", {"message": "boom"}, {"code": 500}, {"code": "x", "type": "y"}, True]
)
contents = st.sampled_from([BOX, "", None, [BOX], [{"type": "text", "text": BOX}], {"text": BOX}])
choices = st.fixed_dictionaries(
    {},
    optional={
        "finish_reason": st.sampled_from(["stop", "length", "SAFETY", *STOPPED_BY_SERVICE])
        | json_values,
        "message": st.fixed_dictionaries(
            {},
            optional={
                "content": contents | json_values,
                "reasoning_content": json_values,
                "refusal": st.sampled_from(["no", None]) | json_values,
                "tool_calls": st.just([TOOL]) | json_values,
                "error": json_values,
            },
        )
        | json_values,
        "error": errors | json_values,
        "logprobs": json_values,
    },
)
wild = st.fixed_dictionaries(
    {},
    optional={
        "choices": st.lists(choices, max_size=2) | json_values,
        "usage": st.just(USAGE) | json_values,
        "error": errors | json_values,
        "object": st.sampled_from(["chat.completion", "error"]) | json_values,
        "base_resp": json_values | st.just({"status_code": 1000, "status_msg": "no"}),
        "detail": json_values,
    },
)
sound = st.builds(
    reply,
    st.sampled_from(["stop", "length", "SAFETY"]),
    content=st.sampled_from([BOX, [BOX], ""]),
    reasoning=st.sampled_from(["hm", None]),
)
with_one_fault = st.one_of(
    st.builds(lambda body, error: {**body, "error": error}, sound, errors),
    st.builds(lambda body: {**body, "object": "error", "message": "boom"}, sound),
    st.builds(
        lambda body, error: {**body, "choices": [{**body["choices"][0], "error": error}]},
        sound,
        errors,
    ),
    st.builds(lambda body: {**body, "base_resp": {"status_code": 1000, "status_msg": "no"}}, sound),
    st.builds(reply, st.sampled_from(STOPPED_BY_SERVICE)),
)
bodies = sound | with_one_fault | wild


def says_it_failed(body: Mapping[str, Any]) -> bool:
    """Return whether a reply states an error in a place where services do, spelt out anew."""
    known = ("boom", {"message": "boom"}, {"code": 500}, {"code": "x", "type": "y"}, True)
    listed = body.get("choices")
    first = listed[0] if isinstance(listed, list) and listed else None
    choice = first if isinstance(first, dict) else {}
    base = body.get("base_resp")
    return (
        any(place.get("error") is not None and place["error"] in known for place in (body, choice))
        or body.get("object") == "error"
        or base == {"status_code": 1000, "status_msg": "no"}
        or (
            isinstance(choice.get("finish_reason"), str)
            and choice["finish_reason"] in STOPPED_BY_SERVICE
        )
    )


@given(
    status=st.sampled_from([200, 200, 200, 201, 204, 302, 400, 404, 422, 429, 500, 503]),
    body=bodies,
    logprobs=st.booleans(),
    cut=st.integers(0, 400) | st.none(),
)
def test_every_response_has_one_verdict(
    status: int, body: dict[str, Any], logprobs: bool, cut: int | None
) -> None:
    for given_body in (body, json.dumps(body).encode()[:cut]):
        judgement = judge_response(status, given_body, logprobs=logprobs)
        is_answer = isinstance(judgement.outcome, Completion)
        assert is_answer == (judgement.verdict in ANSWERS)
        if isinstance(judgement.outcome, CallError):
            assert judgement.reason == str(judgement.outcome) != ""
            assert judgement.outcome.transient == (judgement.verdict is CallVerdict.PASSING)
        if is_answer:
            assert status in (200, 201, 204)
            assert not says_it_failed(body)


# --- thoughts -------------------------------------------------------------------------------------

THOUGHT = "I think of [1, 2, 3, 4]"
IN_DETAILS = [{"type": "reasoning.text", "text": "I think of "}, {"summary": "[1, 2, 3, 4]"}]
THOUGHTS = {
    "servers": {"reasoning_content": THOUGHT},
    "OpenRouter": {"reasoning": THOUGHT},
    "OpenRouter's details": {"reasoning_details": [{"type": "reasoning.text", "text": THOUGHT}]},
    "a summary": {"reasoning_details": [{"type": "reasoning.summary", "summary": THOUGHT}]},
    "several details": {"reasoning_details": [{"type": "reasoning.encrypted"}, *IN_DETAILS]},
    "details beside nothing": {"reasoning": None, "reasoning_details": IN_DETAILS},
    "Ollama": {"thinking": THOUGHT},
    "LiteLLM": {"thinking_blocks": [{"type": "thinking", "thinking": THOUGHT, "signature": "x"}]},
    "an object": {"reasoning": {"content": THOUGHT}},
    "a list of texts": {"reasoning_content": ["I think of ", "[1, 2, 3, 4]"]},
    "both": {"reasoning": THOUGHT, "reasoning_details": IN_DETAILS},
    "Anthropic": {"content": [{"type": "thinking", "thinking": THOUGHT}]},
}


@pytest.mark.parametrize("place", THOUGHTS)
@pytest.mark.parametrize("finish", ["stop", "length"])
def test_thoughts_are_read_wherever_they_are(place: str, finish: str) -> None:
    message = {"content": None, **THOUGHTS[place]}
    completion = answer_in(judged({"choices": [{"finish_reason": finish, "message": message}]}))
    assert (completion.text, completion.record.thought) == ("", THOUGHT)
    assert completion.record.ends_in_thought is (finish == "length")
    assert "texts_under" not in completion.more
    stored = stored_reply({"role": "assistant", **message})
    assert (stored.text, stored.thought) == ("", THOUGHT), "of a prediction file"


@pytest.mark.parametrize(
    ("message", "named"),
    [
        ({"content": "", "answer": THOUGHT}, ["answer"]),
        ({"content": None, "output": {"parts": [{"value": THOUGHT}]}}, ["output"]),
        ({"content": "[5]", "answer": THOUGHT}, None),
        ({"content": "", "reasoning": THOUGHT, "answer": THOUGHT}, None),
        ({"content": "", "id": "msg_1", "name": "a b", "service": "x-1", "n": 3}, None),
    ],
)
def test_words_that_nobody_reads_are_named(
    message: dict[str, Any], named: list[str] | None
) -> None:
    body = {"choices": [{"finish_reason": "stop", "message": message}]}
    assert answer_in(judged(body)).more.get("texts_under") == named
