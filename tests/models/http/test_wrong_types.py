"""Replies whose parts have other types than the protocol says.

Numbers and names count as absent; of a text whose shape is unknown, the call failed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from asking import QUESTION, WORDS, ask_call, call_of, service
from chat_server import ChatServer, completion, in_turn
from few_fast import every_nth_fast
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.engine import run_sync
from vlmeval_findit.models import (
    BATCH_SERVICES,
    BatchKind,
    BatchLine,
    Budget,
    CallError,
    Completion,
    Endpoint,
    chat_model,
    object_in,
    read_completion,
)
from vlmeval_findit.models import reply_of_content as of_google
from vlmeval_findit.models import reply_of_messages as of_anthropic
from vlmeval_findit.models.http import chat_call, response_verdict
from vlmeval_findit.protocol import image

ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    7,
    1e400,
    float("nan"),
    10**400,
    "",
    "abc",
    [],
    ["hello"],
    [None],
    [[]],
    [{}],
    [{"type": "text"}],
    [{"type": "text", "text": None}],
    [300],
    [-1],
    [True],
    {},
    {"a": 1},
    {"text": 5},
)
"""Values of which some stand wrong at every place of a reply."""

OPENAI = {
    "id": "chat-1",
    "model": "m",
    "provider": "p",
    "choices": [
        {
            "finish_reason": "stop",
            "message": {
                "content": [{"type": "text", "text": "[]"}],
                "reasoning": "hm",
                "reasoning_content": "hm",
            },
            "logprobs": {"content": [{"token": "[]", "logprob": -0.5, "bytes": [91, 93]}]},
        }
    ],
    "usage": {
        "prompt_tokens": 9,
        "completion_tokens": 2,
        "prompt_tokens_details": {"cached_tokens": 1},
        "completion_tokens_details": {"reasoning_tokens": 1},
        "cost": 0.01,
        "cache_discount": 0.001,
    },
}
ANTHROPIC = {
    "id": "msg-1",
    "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "[]"}],
    "stop_reason": "end_turn",
    "usage": {
        "input_tokens": 9,
        "cache_read_input_tokens": 1,
        "output_tokens": 2,
        "output_tokens_details": {"thinking_tokens": 1},
        "cost": 0.01,
    },
}
GOOGLE = {
    "responseId": "g-1",
    "candidates": [
        {
            "content": {"parts": [{"text": "hm", "thought": True}, {"text": "[]"}]},
            "finishReason": "STOP",
            "logprobsResult": {"chosenCandidates": [{"token": "[]", "logProbability": -0.5}]},
        }
    ],
    "promptFeedback": {"blockReason": None},
    "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 2, "thoughtsTokenCount": 1},
}
REPLIES = {
    "openai": (OPENAI, lambda reply: reply),
    "anthropic": (ANTHROPIC, of_anthropic),
    "google": (GOOGLE, of_google),
}


def with_others(value: Any, other: Any) -> Iterator[Any]:
    """Yield a reply with another value at each of its places in turn."""
    yield other
    pairs = enumerate(value) if isinstance(value, list) else ()
    pairs = value.items() if isinstance(value, dict) else pairs
    for key, inner in pairs:
        for changed in with_others(inner, other):
            whole = list(value) if isinstance(value, list) else dict(value)
            whole[key] = changed
            yield whole


def read_or_error(
    translated: Callable[[Any], Any], reply: Any
) -> tuple[Completion | None, CallError | None]:
    try:
        return read_completion(translated(reply), logprobs=True), None
    except CallError as error:
        return None, error


@pytest.mark.parametrize("protocol", REPLIES)
@pytest.mark.parametrize("other", every_nth_fast(ODD, 3), ids=lambda value: repr(value)[:20])
def test_a_wrong_type_anywhere_is_absent_or_named(protocol: str, other: Any) -> None:
    whole, translated = REPLIES[protocol]
    for changed in with_others(whole, other):
        if not isinstance(changed, dict):
            continue  # no object: refused when it is parsed
        read, error = read_or_error(translated, changed)
        paid = 0.0
        if error is not None:
            assert "cannot be read" not in str(error), changed
            paid = error.usage.stated or 0.0
        if read is not None:
            assert read.text in ("[]", "hm", "", "abc", "abc[]", "hello", "hm[]"), changed
            assert all(type(count) is int and count >= 0 for count in read.record.tokens.values())
            paid = read.usage.stated or 0.0
        usage = changed.get("usage")
        stated = usage.get("cost") if isinstance(usage, Mapping) else None
        assert paid == (stated if type(stated) is float and stated < 1e300 else paid)
        if changed.get("usage") == whole.get("usage") and protocol != "google":
            assert paid == 0.01, changed


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@pytest.mark.parametrize("translated", [of_anthropic, of_google, lambda reply: reply])
@given(content=values, logprobs=values, usage=values)
def test_any_response_raises_only_call_errors(
    translated: Callable[[Any], Any], content: Any, logprobs: Any, usage: Any
) -> None:
    for reply in (
        {"choices": [{"message": {"content": content}, "logprobs": logprobs}], "usage": usage},
        {"content": content, "usage": usage, "stop_reason": logprobs},
        {"candidates": content, "usageMetadata": usage, "promptFeedback": logprobs},
        {"candidates": [{"content": {"parts": content}, "logprobsResult": logprobs}]},
    ):
        _, error = read_or_error(translated, reply)
        assert error is None or "cannot be read" not in str(error)


@pytest.mark.parametrize("odd", ["abc", {"a": 1}, 3, True, [300], [None], [True], [1.0]])
def test_a_token_without_bytes_has_its_texts_bytes(odd: Any) -> None:
    entries = [{"token": "[]", "logprob": -0.5, "bytes": odd}]
    choice = {"message": {"content": "[]"}, "logprobs": {"content": entries}}
    read = read_completion({"choices": [choice]}, logprobs=True)
    assert read.text == "[]"
    assert read.record.token_logprobs is not None
    assert read.record.token_logprobs.ends == (2,)


def test_deeply_nested_json_is_no_reply() -> None:
    with pytest.raises(CallError, match="not JSON"):
        object_in(b"[" * 200_000)


@pytest.mark.parametrize(
    ("content", "shape"),
    [
        ([{"type": "text"}], "has type 'text', and its text is missing or null"),
        ([{"type": "text", "text": None}], "has type 'text', and its text is missing or null"),
        ([{"type": "text", "text": {"value": "[]"}}], "has type 'text', and its text is an object"),
        ([{"type": "hologram", "text": "[]"}], "has type 'hologram', which is not text"),
        ([{"type": ["text"], "text": "[]"}], "has type ['text'], which is not text"),
        ([None], "a part of the content is missing or null"),
        ([["[]"]], "a part of the content is a list"),
        ({"type": "text", "text": "[]"}, "the content is an object: neither"),
        (5, "the content is a number: neither"),
        (True, "the content is true or false: neither"),
    ],
)
def test_content_of_an_unknown_shape_is_a_paid_failure(content: Any, shape: str) -> None:
    budget = Budget()
    message = {"message": {"content": content}, "finish_reason": "stop"}
    with ChatServer(in_turn(completion(choices=[message]))) as server:
        answer = ask_call(service(server.url, budget=budget))
        assert len(server.asked) == 1, "it would have this shape again"
    assert answer.error is not None
    assert answer.error.startswith("the reply has an unknown shape: ")
    assert shape in answer.error
    assert call_of(answer)["cost"] == budget.spent == 0.01


@pytest.mark.parametrize("module", [response_verdict, chat_call])
def test_a_fault_after_the_answer_counts_as_a_made_call(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a reply is read its cost is known; elsewhere the dearest call stands for it."""
    budget = Budget()
    name = {response_verdict: "answer_in", chat_call: "read_completion"}[module]
    with ChatServer(in_turn(completion())) as server:
        asked = service(server.url, budget=budget)
        assert ask_call(asked).error is None
        with monkeypatch.context() as patched:
            patched.setattr(module, name, lambda *given, **more: 1 // 0)
            answer = ask_call(asked)
        assert len(server.asked) == 2
    assert "ZeroDivisionError" in (answer.error or "")
    assert budget.spent == pytest.approx(0.02)
    assert call_of(answer)["cost"] == 0.01
    assert call_of(answer)["attempts"] == 1


def test_an_image_that_cannot_be_read_is_still_no_call(tmp_path: Any) -> None:
    broken = tmp_path / "a.png"
    broken.write_bytes(b"no image")
    budget = Budget()
    with ChatServer(in_turn(completion())) as server:
        answer = ask_call(service(server.url, budget=budget), message=(image(str(broken)),))
        assert server.asked == []
    assert answer.error
    assert budget.spent == 0


@pytest.mark.parametrize("kind", BatchKind)
@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        b'{"custom_id": 5}',
        b'{"response": []}',
        b'{"response": {"status_code": 200, "body": {"choices": [5]}}}',
        b'{"response": {"status_code": "200", "body": 5}, "error": 5}',
        b'{"result": {"type": "succeeded", "message": {"content": ["x"]}}}',
        b'{"result": {"type": 5, "error": [5]}}',
        b'{"result": []}',
    ],
)
def test_a_batch_s_result_of_other_types_is_an_answer(kind: BatchKind, line: bytes) -> None:
    found = BATCH_SERVICES[kind](
        chat_model("Qwen3-VL"), Endpoint("http://127.0.0.1/v1"), 1.0, Budget()
    )
    answer = run_sync(
        found.answer(
            found.call(WORDS, QUESTION), "batch", BatchLine(json.loads(line), "line 1"), "none"
        )
    )
    assert answer.error or answer.text in ("", "x")
