"""Where a server is: addresses, credentials, headers; what is secret in them is shown nowhere."""

from __future__ import annotations

from typing import Any

import pytest
from asking import ask_calls
from chat_server import ChatServer, error
from provider_servers import KEY

from vlmeval_findit.core import redaction, scrub
from vlmeval_findit.engine import HttpService
from vlmeval_findit.models import (
    PROVIDERS,
    Endpoint,
    chat_model,
    make_endpoints,
    provider_endpoints,
)

AZURE = "https://me.azure.com/openai/deployments/gpt"


@pytest.mark.parametrize(
    ("base", "url", "name"),
    [
        ("http://a/v1/", "http://a/v1/chat/completions", "http://a/v1"),
        (f"{AZURE}?api-version=2024", f"{AZURE}/chat/completions?api-version=2024", AZURE),
        ("http://[::1]:80/v1", "http://[::1]:80/v1/chat/completions", "http://[::1]:80/v1"),
    ],
)
def test_addresses(base: str, url: str, name: str) -> None:
    endpoint = Endpoint(base)
    assert (endpoint.at("chat/completions"), endpoint.name) == (url, name)
    assert repr(endpoint) == f"Endpoint({name!r})"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("me:S3CRET-value@a/v1",), "should begin with http"),
        (("http://",), "has no host"),
        (("http://me:S3CRET-value@a:port/v1",), "cannot be read"),
        (("http://me:S3CRET-value@a/v 1",), "a space"),
        (("http://me:S3CRET-value@a/v1",), "contains credentials"),
        (("http://a/v1", "S3CRET-value\n"), "that keys do not have"),
        (("http://a/v1", "S3CRET-value b"), "that keys do not have"),
        (("http://a/v1", "S3CRET-value-schlüssel"), "that keys do not have"),
        (("http://a/v1", "", {"x": "S3CRET-value\r\nY: z"}), "that headers do not have"),
        (("http://a/v1", "", {"x": "S3CRET-valueß"}), "that headers do not have"),
    ],
)
def test_what_is_none_is_refused_without_its_secrets(given: tuple[Any, ...], why: str) -> None:
    with pytest.raises(ValueError, match=why) as caught:
        Endpoint(*given)
    assert "S3CRET" not in str(caught.value)


def test_a_credential_in_an_address_is_used_but_never_shown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with ChatServer(lambda asked, number: error(400, f"what is {asked.path}?")) as server:
        asking = HttpService(chat_model("Qwen3-VL"), [Endpoint(f"{server.url}?key=par4m-secret")])
        reported = repr(ask_calls(asking, 1))
        assert server.asked[0].path == "/api/v1/chat/completions?key=par4m-secret"
    text = f"{reported} {asking!r} {caplog.text}"
    assert server.url in text
    assert "par4m-secret" not in text


@pytest.mark.sees("FINDIT_SERVER_HEADERS", "FINDIT_SERVER_KEY")
def test_headers_come_from_the_environment_and_from_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINDIT_SERVER_HEADERS", '{"api-key": "of-the-environment", "x-a": "1"}')
    monkeypatch.setenv("FINDIT_SERVER_KEY", "bearer-of-mine")
    expected = {"api-key": "of-the-flags", "x-a": "1", "Authorization": "Bearer bearer-of-mine"}
    for endpoint in make_endpoints("http://a/v1, http://b/v1", headers=["api-key:  of-the-flags "]):
        assert expected.items() <= endpoint.request_headers().items()
    (endpoint,) = make_endpoints("http://a/v1", headers={"Authorization": "Token of-my-own"})
    assert endpoint.request_headers()["Authorization"] == "Token of-my-own"
    # They do not go to a provider.
    (actual,) = provider_endpoints("openai", needs_key=False, headers=["x-a: 1"])
    assert (actual.key, actual.headers) == ("", {"x-a": "1"})
    monkeypatch.setenv("FINDIT_SERVER_HEADERS", "{")
    with pytest.raises(ValueError, match="should be a JSON object"):
        make_endpoints("http://a/v1")
    monkeypatch.delenv("FINDIT_SERVER_HEADERS")
    with pytest.raises(ValueError, match="--header") as caught:
        make_endpoints("http://a/v1", headers=["only-a-value"])
    assert "only-a-value" not in str(caught.value)


@pytest.mark.parametrize(
    "header",
    [
        "Authorization: Bearer S3CRET-value",
        "x-api-key: S3CRET-value",
        "X-Amz-Security-Token: S3CRET-value",
        "Cookie: theme=dark; id=S3CRET-value; a=b",
    ],
)
def test_credentials_in_headers_are_secrets(header: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_remembered", set())
    make_endpoints("http://a/v1", headers=[header])
    assert scrub("what is S3CRET-value?") == "what is ***?"


def test_openai_takes_another_limit() -> None:
    assert Endpoint("https://api.openai.com/v1").limit_field == "max_completion_tokens"
    assert Endpoint("http://proxy/v1", provider="openai").limit_field == "max_completion_tokens"
    assert Endpoint("http://localhost/v1").limit_field == "max_tokens"


# --- of providers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "given", "path"),
    [
        ("openai", None, "https://api.openai.com/v1"),
        ("openai", "http://a/openai/", "http://a/openai"),
        ("anthropic", None, "https://api.anthropic.com/v1"),
        ("google", None, "https://generativelanguage.googleapis.com/v1beta"),
        ("google", "http://a", "http://a/v1beta"),
        ("google", "http://a/v1", "http://a/v1"),
    ],
)
def test_addresses_of_providers(
    name: str, given: str | None, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PROVIDERS[name].keys[-1], KEY)
    (actual,) = provider_endpoints(name, given)
    assert (actual.name, actual.key) == (path, KEY)
    if given is not None:
        monkeypatch.setenv(PROVIDERS[name].address_variable, given)
        assert provider_endpoints(name)[0].name == path


@pytest.mark.parametrize(
    ("name", "given", "why"),
    [
        ("opnai", None, "unknown provider 'opnai': did you mean openai"),
        ("anthropic", "http://me:hidden-secret@a/v1", "contains credentials"),
        ("google", "http://a?key=hidden-secret", "should have no query"),
    ],
)
def test_addresses_of_providers_that_are_refused(name: str, given: str | None, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        provider_endpoints(name, given, needs_key=False)
    assert "hidden-secret" not in str(refused.value)


def test_names_of_models_are_the_providers_or_the_users() -> None:
    assert chat_model("Claude-Opus-5.5", "anthropic").served == "claude-opus-5-5"
    mine = chat_model("My-Gemini", "google", "gemini-9", like="Gemini 2.5 Flash")
    assert mine.served == "gemini-9"
    for model, provider, why in (
        ("Claude-Opus-5.5", "openai", r"Claude-Opus-5\.5=NAME_AT_OPENAI"),
        ("Qwen3-VL", "google", "the name of Qwen3-VL at google is not known"),
        ("My-Gemini", "google", "My-Gemini=NAME_AT_GOOGLE"),
    ):
        with pytest.raises(ValueError, match=why):
            chat_model(model, provider)
