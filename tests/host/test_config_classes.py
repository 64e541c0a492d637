"""Classes of --config files take every setting over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import pytest

from vlmeval_findit.benchmarks import parse
from vlmeval_findit.engine import ApiSettings, Deployment
from vlmeval_findit.models import Budget
from vlmeval_findit.protocol import text

pytestmark = pytest.mark.host

VARIANT = parse("FindIt_Pascal_xyxy_json_bbox_2d")
BUDGET = Budget(1.5)


def _body(deployment: Deployment) -> Mapping[str, Any]:
    assert deployment.chat is not None
    return deployment.chat.request((text("where?"),), VARIANT, ()).body


# An unusual value of each setting, and how what a class makes of it has it
FOUND: Mapping[str, tuple[Any, Callable[[Deployment], Any]]] = {
    "retry": (9, lambda it: it.asking.policy.attempts),
    "timeout": (77.0, lambda it: it.asking.calls.timeout),
    "max_usd": (3.5, lambda it: it.asking.budget.limit),
    "budget": (BUDGET, lambda it: it.asking.budget),
    "max_new_tokens": (77, lambda it: _body(it)["max_tokens"]),
    "temperature": (0.7, lambda it: _body(it)["temperature"]),
    "prices": ("given prices 1/2", lambda it: it.entry.prices.source),
}
IN_KEYS = ("max_new_tokens", "temperature")


def made(kind: str, **settings: Any) -> Deployment:
    import vlmeval.api

    from vlmeval_findit.host import register

    register()
    priced = {"prices": (1.0, 1.0), **settings}  # a limit needs prices
    if kind == "FindItServer":
        model = vlmeval.api.FindItServer("Qwen3-VL-8B", "http://127.0.0.1:9/v1", **priced)
    else:
        known = {"served": "x", "like": "GPT-5.4", "key": "k"}
        model = vlmeval.api.FindItProvider("Mine", "openai", **known, **priced)
    deployment: Deployment = model.asked
    return deployment


@pytest.mark.parametrize("kind", ["FindItServer", "FindItProvider"])
@pytest.mark.parametrize("name", FOUND)
def test_a_setting_reaches_what_asks(kind: str, name: str) -> None:
    value, found = FOUND[name]
    given = (1.0, 2.0) if name == "prices" else value
    deployment = made(kind, **{name: given})
    assert found(deployment) == value
    if name in IN_KEYS:
        assert deployment.key(VARIANT)[name] == value
        assert deployment.describe(VARIANT).answering.settings[name] == value


def test_every_setting_has_a_row() -> None:
    assert FOUND.keys() == {each.name for each in fields(ApiSettings)}


def test_two_temperatures_are_refused() -> None:
    with pytest.raises(ValueError, match=r"temperature: 0.2 is given, but FindIt sends 0.7"):
        made("FindItServer", temperature=0.7, extra_body={"temperature": 0.2})


@pytest.mark.parametrize("kind", ["FindItServer", "FindItProvider"])
def test_headers_are_part_of_who_answers(kind: str) -> None:
    stated = made(kind, headers={"X-Team": "a", "x-api-key": "k"})
    recorded = stated.describe(VARIANT).answering.headers
    assert recorded is not None
    assert recorded["x-team"] == "a"
    assert recorded["x-api-key"].startswith("sha256:")
