"""Classes of --config files take every setting over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import pytest

from vlmeval_findit.benchmarks import parse
from vlmeval_findit.engine import ApiSettings, chat_of
from vlmeval_findit.models import Budget, ModelEntry
from vlmeval_findit.protocol import text

pytestmark = pytest.mark.host

VARIANT = parse("FindIt_Pascal_xyxy_json_bbox_2d")
BUDGET = Budget(1.5)


def _body(servers: Any, entry: ModelEntry) -> Mapping[str, Any]:
    return chat_of(entry).request((text("where?"),), VARIANT, ()).body


# An unusual value of each setting, and how what a class makes of it has it
FOUND: Mapping[str, tuple[Any, Callable[[Any, ModelEntry], Any]]] = {
    "retry": (9, lambda servers, entry: servers.policy.attempts),
    "timeout": (77.0, lambda servers, entry: servers.inference.timeout),
    "max_usd": (3.5, lambda servers, entry: servers.budget.limit),
    "budget": (BUDGET, lambda servers, entry: servers.budget),
    "max_new_tokens": (77, lambda servers, entry: _body(servers, entry)["max_tokens"]),
    "temperature": (0.7, lambda servers, entry: _body(servers, entry)["temperature"]),
    "prices": ("given prices 1/2", lambda servers, entry: entry.prices.source),
}
IN_KEYS = ("max_new_tokens", "temperature")


def made(kind: str, **settings: Any) -> tuple[Any, ModelEntry]:
    import vlmeval.api

    from vlmeval_findit.host import register

    register()
    priced = {"prices": (1.0, 1.0), **settings}  # a limit needs prices
    if kind == "FindItServer":
        model = vlmeval.api.FindItServer("Qwen3-VL-8B", "http://127.0.0.1:9/v1", **priced)
    else:
        known = {"served": "x", "like": "GPT-5.4", "key": "k"}
        model = vlmeval.api.FindItProvider("Mine", "openai", **known, **priced)
    servers, entry = model.asked
    return servers, entry


@pytest.mark.parametrize("kind", ["FindItServer", "FindItProvider"])
@pytest.mark.parametrize("name", FOUND)
def test_a_setting_reaches_what_asks(kind: str, name: str) -> None:
    value, found = FOUND[name]
    given = (1.0, 2.0) if name == "prices" else value
    servers, entry = made(kind, **{name: given})
    assert found(servers, entry) == value
    if name in IN_KEYS:
        assert servers.settings(entry)[name] == value
        assert servers.describe(entry, VARIANT).answering.settings[name] == value


def test_every_setting_has_a_row() -> None:
    assert FOUND.keys() == {each.name for each in fields(ApiSettings)}


def test_two_temperatures_are_refused() -> None:
    with pytest.raises(ValueError, match=r"temperature: 0.2 is given, but FindIt sends 0.7"):
        made("FindItServer", temperature=0.7, extra_body={"temperature": 0.2})
