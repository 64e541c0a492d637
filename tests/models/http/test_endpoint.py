"""Where a server is: addresses, credentials, headers; what is secret in them is shown nowhere."""

from __future__ import annotations

import pytest
from asking import ask_calls
from chat_server import Answer, Asked, ChatServer, error
from provider_servers import KEY

from vlmeval_findit.core import redaction
from vlmeval_findit.core.redaction import scrub
from vlmeval_findit.engine.http_backend import HttpService
from vlmeval_findit.models.http.addresses import endpoints, provider_endpoints
from vlmeval_findit.models.http.chat import chat_model
from vlmeval_findit.models.http.endpoint import Endpoint
from vlmeval_findit.models.http.providers.provider_table import PROVIDERS


@pytest.mark.parametrize(
    ("base", "url", "name"),
    [
        ("http://a:8000/v1", "http://a:8000/v1/chat/completions", "http://a:8000/v1"),
        ("http://a/v1/", "http://a/v1/chat/completions", "http://a/v1"),
        (
            "https://me.azure.com/openai/deployments/gpt?api-version=2024-10-21",
            "https://me.azure.com/openai/deployments/gpt/chat/completions?api-version=2024-10-21",
            "https://me.azure.com/openai/deployments/gpt",
        ),
        ("http://[::1]:80/v1", "http://[::1]:80/v1/chat/completions", "http://[::1]:80/v1"),
    ],
)  # fmt: skip
def test_addresses(base: str, url: str, name: str) -> None:
    endpoint = Endpoint(base)
    assert (endpoint.at("chat/completions"), endpoint.name) == (url, name)
    assert repr(endpoint) == f"Endpoint({name!r})"


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("localhost:8000/v1", "should begin with http"),
        ("me:pass-word@a/v1", "should begin with http"),
        ("http://", "names no host"),
        ("http://me:pass-word@a:port/v1", "cannot be read"),
        ("http://me:pass-word@a/v 1", "a space"),
        ("http://me:pass-word@a/v1", "holds credentials"),
    ],
)
def test_addresses_that_are_none_are_refused_without_their_secrets(url: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as caught:
        Endpoint(url)
    assert "pass-word" not in str(caught.value)


@pytest.mark.parametrize("key", ["sk\n", "a b", "schlüssel"])
def test_keys_that_a_library_would_quote_are_refused(key: str) -> None:
    with pytest.raises(ValueError, match="no key has") as caught:
        Endpoint("http://127.0.0.1/v1", key)
    assert key not in str(caught.value)


@pytest.mark.parametrize("headers", [{"x": "val-ue\r\nY: z"}, {"x": "val-ueß"}])
def test_headers_that_are_none_are_refused_without_their_values(headers: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="header") as caught:
        Endpoint("http://a/v1", headers=headers)
    assert "val-ue" not in str(caught.value)


def test_a_credential_in_the_query_of_an_address_is_used_and_shown_nowhere(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def quoting(asked: Asked, number: int) -> Answer:
        return error(400, f"what is {asked.path}?")

    with ChatServer(quoting) as server:
        asking = HttpService(chat_model("Qwen3-VL"), [Endpoint(f"{server.url}?key=par4m-secret")])
        reported = repr(ask_calls(asking, 1))
        assert server.asked[0].path == "/api/v1/chat/completions?key=par4m-secret"
    text = f"{reported} {asking!r} {caplog.text}"
    assert server.url in text
    assert "par4m-secret" not in text


def test_headers_come_from_the_environment_and_from_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINDIT_SERVER_HEADERS", '{"api-key": "of-the-environment", "x-a": "1"}')
    monkeypatch.setenv("FINDIT_SERVER_KEY", "bearer-of-mine")
    first, second = endpoints("http://a/v1, http://b/v1", headers=["api-key:  of-the-flags "])
    for endpoint in (first, second):
        headers = endpoint.request_headers()
        assert headers["api-key"] == "of-the-flags"
        assert headers["x-a"] == "1"
        assert headers["Authorization"] == "Bearer bearer-of-mine"
    endpoint = endpoints("http://a/v1", headers={"Authorization": "Token of-my-own"})[0]
    assert endpoint.request_headers()["Authorization"] == "Token of-my-own"
    assert scrub("of-the-flags, of-my-own") == "***, ***"
    monkeypatch.setenv("FINDIT_SERVER_HEADERS", "{")
    with pytest.raises(ValueError, match="should be a JSON object"):
        endpoints("http://a/v1")
    monkeypatch.delenv("FINDIT_SERVER_HEADERS")
    with pytest.raises(ValueError, match="--header") as caught:
        endpoints("http://a/v1", headers=["only-a-value"])
    assert "only-a-value" not in str(caught.value)


def test_openai_takes_another_limit() -> None:
    assert Endpoint("https://api.openai.com/v1").limit_field == "max_completion_tokens"
    assert Endpoint("http://proxy/v1", provider="openai").limit_field == "max_completion_tokens"
    assert Endpoint("http://localhost/v1").limit_field == "max_tokens"


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
    endpoints("http://a/v1", headers=[header])
    assert scrub("what is S3CRET-value?") == "what is ***?"


# --- of providers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "given", "path"),
    [
        ("openai", None, "https://api.openai.com/v1"),
        ("openai", "http://a/openai/", "http://a/openai"),
        ("anthropic", None, "https://api.anthropic.com/v1"),
        ("anthropic", "http://a", "http://a/v1"),
        ("google", None, "https://generativelanguage.googleapis.com/v1beta"),
        ("google", "http://a", "http://a/v1beta"),
        ("google", "http://a/v1", "http://a/v1"),
    ],
)
def test_addresses_of_providers(
    name: str, given: str | None, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PROVIDERS[name].keys[-1], KEY)
    (actual,) = provider_endpoints(name, given, needs_key=False)
    assert actual.name == path
    if given is not None:
        monkeypatch.setenv(PROVIDERS[name].address_variable, given)
        assert provider_endpoints(name, needs_key=False)[0].name == path


def test_headers_for_servers_do_not_go_to_a_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINDIT_SERVER_HEADERS", '{"x-mine": "secret-of-my-server"}')
    monkeypatch.setenv("FINDIT_SERVER_KEY", "key-of-my-server")
    (actual,) = provider_endpoints("openai", needs_key=False, headers=["x-a: 1"])
    assert (actual.key, actual.headers) == ("", {"x-a": "1"})


@pytest.mark.parametrize(
    ("name", "given", "why"),
    [
        ("opnai", None, "no provider 'opnai': did you mean openai"),
        ("anthropic", "http://me:hidden-secret@a/v1", "holds credentials"),
        ("google", "http://a?key=hidden-secret", "has no query"),
    ],
)
def test_addresses_of_providers_that_are_refused(name: str, given: str | None, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        provider_endpoints(name, given, needs_key=False)
    assert "hidden-secret" not in str(refused.value)


def test_names_of_models_are_the_providers_or_the_users() -> None:
    assert chat_model("Claude-Opus-5.5", "anthropic").served == "claude-opus-5-5"
    with pytest.raises(ValueError, match=r"Claude-Opus-5\.5=NAME_AT_OPENAI"):
        chat_model("Claude-Opus-5.5", "openai")
    with pytest.raises(ValueError, match="no name of google's for Qwen3-VL"):
        chat_model("Qwen3-VL", "google")
    with pytest.raises(ValueError, match="My-Gemini=NAME_AT_GOOGLE"):
        chat_model("My-Gemini", "google", like="Gemini 2.5 Flash")
    mine = chat_model("My-Gemini", "google", "gemini-9", like="Gemini 2.5 Flash")
    assert mine.served == "gemini-9"
