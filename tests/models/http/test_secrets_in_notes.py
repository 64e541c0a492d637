"""What is said and stored of a reply quotes no key, wherever it stands: names of keys, too."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from asking import QUESTION, WORDS
from few_fast import every_nth_fast
from spelt_secrets import SPELLINGS
from test_charges import PRICES, model_of

from vlmeval_findit.core import known_secrets, redaction, remember_secrets
from vlmeval_findit.models import (
    Budget,
    CallError,
    ChatCall,
    judge_response,
)
from vlmeval_findit.storage import stored_record

KEY = "sk-proj-" + "".join(random.Random(64).sample("abcdefghijkLMNOPQRSTUVWXYZ0123456789", 30))

Reply = Mapping[str, Any]
TOKENS = {"prompt_tokens": 9, "completion_tokens": 2}


def _reply(content: object = "[]", reason: object = "stop", **more: Any) -> Reply:
    message = {"content": content, **more.pop("message", {})}
    return {"choices": [{"message": message, "finish_reason": reason}], **more}


PLACES: Mapping[str, Callable[[str], Reply]] = {
    "name of a cost in usage": lambda quoted: _reply(usage={f"cost_of_{quoted}": 0.1}),
    "name of a cost": lambda quoted: _reply(**{f"{quoted}_price": 0.1}),
    "name in a cost": lambda quoted: _reply(usage={"cost": {quoted: 0.1}}),
    "cost": lambda quoted: _reply(usage={"cost": quoted}),
    "cost in a list": lambda quoted: _reply(usage={"cost": [quoted, {quoted: quoted}]}),
    "tier": lambda quoted: _reply(service_tier=quoted, usage=TOKENS),
    "name in a tier": lambda quoted: _reply(usage={"speed": {quoted: 1}, **TOKENS}),
    "reason": lambda quoted: _reply(reason=quoted),
    "name in a reason": lambda quoted: _reply(reason={"type": "error", "message": {quoted: 1}}),
    "name in an error": lambda quoted: _reply(error={quoted: 1}),
    "name in a field's error": lambda quoted: {"detail": [{"loc": [quoted], quoted: 1}]},
    "code of an error": lambda quoted: {"error": {"code": quoted, "message": "no"}},
    "name in a message": lambda quoted: _reply("", message={quoted: "a box"}),
    "name in the content": lambda quoted: _reply([{quoted: "a box"}]),
    "type in the content": lambda quoted: _reply([{"type": quoted, quoted: "a box"}]),
    "name in a call of a tool": lambda quoted: _reply("", message={"tool_calls": [{quoted: 1}]}),
    "name without choices": lambda quoted: {quoted: 1, "choices": quoted},
    "name in broken logprobs": lambda quoted: {
        "choices": [{"message": {"content": "[]"}, "logprobs": {"content": [{quoted: quoted}]}}]
    },
}  # fmt: skip


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_remembered", set())
    remember_secrets(KEY)


def said_of(reply: Reply) -> list[str]:
    """Return all that is said and stored of a reply."""
    call = ChatCall(model_of(PRICES), Budget(), WORDS, QUESTION, logprobs=True)
    call.request = call.model.request(WORDS, QUESTION)
    outcome = judge_response(200, reply, logprobs=True).outcome
    if isinstance(outcome, CallError):
        call.fail(outcome)
    else:
        call.completion = outcome
        call.pay(outcome.usage)
    answer = call.answer()
    stored = known_secrets().scrubbed([stored_record(answer), answer.error])
    return [*call.warnings, json.dumps(stored, default=str)]


@pytest.mark.parametrize("spelling", every_nth_fast(SPELLINGS, 8))
def test_no_note_quotes_a_key(spelling: str) -> None:
    for place, reply in PLACES.items():
        spelt = SPELLINGS[spelling](KEY, random.Random(spelling))
        for said in said_of(reply(spelt)):
            assert spelt not in said, place
            assert json.dumps(spelt)[1:-1] not in said, place
            assert KEY[10:25] not in said, place


@pytest.mark.parametrize("place", [place for place in PLACES if "cost" in place or "tier" in place])
def test_what_costs_is_said_without_a_key(place: str) -> None:
    *said, _ = said_of(PLACES[place](KEY))
    assert "***" in " ".join(said)
