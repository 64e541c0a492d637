"""Headers that a user states: how they meet, and what is recorded of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from vlmeval_findit.models import header_lines, joined_headers, recorded_headers, server_headers

# Headers that decide who answers, and hold no secret
PLAIN = [
    ("x-portkey-provider", "openai"),
    ("x-portkey-config", "pc-fallback-1"),
    ("x-portkey-custom-host", "http://127.0.0.1:8000/v1"),
    ("Helicone-Target-Url", "https://api.openai.com/v1/projects"),
    ("OpenAI-Organization", "org-a"),
    ("OpenAI-Project", "proj_b"),
    ("anthropic-beta", "context-1m-2025-08-07,output-128k-2025-02-19"),
    ("anthropic-version", "2023-06-01"),
    ("x-team", "skeleton crew"),
    ("api-version", "2024-10-21"),
    ("x-model-id", "123e4567-e89b-12d3-a456-426614174000"),
    ("cf-aig-cache-ttl", "0"),
]

# … whose name or value may hold one
SECRET = [
    ("Authorization", "Bearer abc"),
    ("authorization", "plain"),
    ("Proxy-Authorization", "Basic bWU6cHc="),
    ("Helicone-Auth", "Bearer sk-helicone-1234567"),
    ("x-portkey-api-key", "pk"),
    ("x-portkey-virtual-key", "v"),
    ("api-key", "1"),
    ("Ocp-Apim-Subscription-Key", "1"),
    ("X-Auth-Token", "1"),
    ("X-Amz-Security-Token", "1"),
    ("CF-Access-Client-Secret", "1"),
    ("Cookie", "id=1"),
    ("X-Session", "1"),
    ("x-passwd", "1"),
    ("x-jwt-assertion", "1"),
    ("x-portkey-config", '{"provider": "openai", "api_key": "abc"}'),
    ("x-portkey-config", '{"targets": [{"apiKey": "abc"}]}'),
    ("x-team", "Bearer abc"),
    ("x-team", "sk-1234567890"),
    ("x-team", "eyJhbGciOi.e30.abc"),
    ("x-team", "9f86d081884c7d659a2feaa0c55ad015"),
    ("Helicone-Target-Url", "https://me:password@api.openai.com"),
    ("Helicone-Target-Url", "https://api.openai.com/?api_key=abc"),
]


@pytest.mark.parametrize(("name", "value"), PLAIN)
def test_a_header_without_a_secret_is_recorded_as_stated(name: str, value: str) -> None:
    assert recorded_headers({name: value}) == {name.lower(): value}


@pytest.mark.parametrize(("name", "value"), SECRET)
def test_of_what_may_be_a_secret_a_hash_is_recorded(name: str, value: str) -> None:
    (recorded,) = recorded_headers({name: value}).items()
    assert recorded[0] == name.lower()
    assert recorded[1].startswith("sha256:")
    assert value not in recorded[1] or len(value) == 1
    assert recorded_headers({name: f"{value}x"})[name.lower()] != recorded[1]
    assert recorded_headers({name.upper(): value}) == dict([recorded])


def test_a_known_secret_is_hashed_wherever_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "correct-horse")
    assert "correct" not in str(recorded_headers({"x-team": "by correct-horse"}))


TWICE: Mapping[str, Any] = {
    "the same line": ["X-A: 1", "X-A: 1"],
    "other values": ["X-A: 1", "X-A: 2"],
    "another case": ["X-A: 1", "x-a: 2"],
    "another case by name": {"X-A": "1", "x-a": "1"},
}


@pytest.mark.parametrize("how", TWICE)
def test_a_header_stated_twice_is_refused(how: str) -> None:
    with pytest.raises(ValueError, match=r"--header names X-A.* twice: leave one out"):
        header_lines(TWICE[how])


@pytest.mark.parametrize("text", ['{"a": "1", "a": "2"}', '{"a": "1", "A": "2"}', '{"a": 1}'])
def test_the_variable_states_each_header_once(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINDIT_SERVER_HEADERS", text)
    with pytest.raises(ValueError, match=r"^FINDIT_SERVER_HEADERS"):
        server_headers()


def test_an_entry_and_a_flag_agree_or_are_refused() -> None:
    assert joined_headers(["X-A: 1"], {"x-a": "1", "b": "2"}) == {"x-a": "1", "b": "2"}
    with pytest.raises(ValueError, match="--header X-A and `headers` of its entry have differ"):
        joined_headers(["X-A: S3CRET"], {"x-a": "other"})


def test_a_flag_replaces_the_variable_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINDIT_SERVER_HEADERS", '{"Api-Key": "1", "x-a": "1"}')
    assert server_headers(["api-key: 2"]) == {"x-a": "1", "api-key": "2"}
