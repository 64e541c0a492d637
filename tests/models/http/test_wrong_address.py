"""An address or a model's name that is wrong: few calls, and what to type."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler

import pytest
from asking import KEY, QUICK, ask_calls, service
from chat_server import Answer, ChatServer, completion, error, in_turn
from json_replies import JsonReplies, ServerProcess

from vlmeval_findit.engine import HttpService
from vlmeval_findit.models import (
    CallError,
    Endpoint,
    chat_model,
    is_about_model,
    names_in,
    other_addresses,
    redirect_error,
)
from vlmeval_findit.protocol import StopReason


class NamedServer(ServerProcess):
    """Answers for models by name below ``root`` alone, and lists them if it ``lists``."""

    path = ""

    def __init__(self, names: Sequence[str], root: str = "/v1", *, lists: bool = True) -> None:
        super().__init__(self._handler())
        self.names, self.root, self.lists = names, root, lists
        self.models, self.everywhere = f"{root}/models", False
        self.posts = 0
        self.keys: set[str] = set()

    def _handler(self) -> type[JsonReplies]:
        outer = self

        class Handler(JsonReplies, BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.keys.add(self.named().get("authorization", ""))
                is_listed = self.path == outer.models or outer.everywhere
                if outer.lists and is_listed:
                    self.say(200, {"data": [{"id": name} for name in outer.names]})
                else:
                    self.say(404, {"error": {"message": f"no such path {self.path}"}})

            def do_POST(self) -> None:
                outer.posts += 1
                model = json.loads(self.read())["model"]
                if self.path != f"{outer.root}/chat/completions":
                    self.say(404, {"detail": "Not Found"})
                elif model not in outer.names:
                    self.say(404, {"error": {"message": f"The model `{model}` does not exist."}})
                else:
                    self.say(200, completion("[]").body)

        return Handler


def asked_at(url: str, served: str = "mine") -> HttpService:
    model = replace(chat_model("Qwen3-VL"), served=served)
    return HttpService(model, [Endpoint(url, KEY)], policy=QUICK)


@pytest.mark.parametrize(
    ("given", "root", "typed"),
    [
        ("", "/v1", "--base-url {host}/v1"),
        ("/", "/v1", "--base-url {host}/v1"),
        ("/v1/chat/completions", "/v1", "--base-url {host}/v1"),
        ("/v1/chat/completions/", "/v1", "--base-url {host}/v1"),
        ("/chat/completions", "/v1", "--base-url {host}/v1"),
        ("/v1/models", "/v1", "--base-url {host}/v1"),
        ("/v1/v1", "/v1", "--base-url {host}/v1"),
        ("/api", "/v1", "--base-url {host}/v1"),
        ("/openai", "/openai/v1", "--base-url {host}/openai/v1"),
        ("/api/v3/chat/completions", "/api/v3", "--base-url {host}/api/v3"),
    ],
)
def test_the_address_that_was_meant_is_named_after_one_call(
    given: str, root: str, typed: str
) -> None:
    with NamedServer(["mine"], root) as server:
        (answer,) = ask_calls(asked_at(server.url + given), 12)
        assert server.posts == 1
        assert server.keys <= {f"Bearer {KEY}"}
    assert answer.stop is StopReason.HOPELESS
    why = answer.error or ""
    assert "HTTP 404: Not Found" in why
    assert f"asked: {server.url}{given.rstrip('/')}/chat/completions" in why
    assert why.endswith(f"the API is at another address: {typed.format(host=server.url)})")


def test_a_model_list_everywhere_does_not_hide_the_chat() -> None:
    with NamedServer(["mine"]) as server:
        server.everywhere = True
        (answer,) = ask_calls(asked_at(server.url), 12)
        assert server.posts == 1
    assert f"--base-url {server.url}/v1" in (answer.error or "")


@pytest.mark.parametrize(
    ("given", "typed"),
    [
        ("", "; is it --base-url {host}/v1?)"),
        ("/v1/chat/completions", "; is it --base-url {host}/v1?)"),
        ("/v1", "asked: {host}/v1/chat/completions)"),
        ("/v2beta", "asked: {host}/v2beta/chat/completions)"),
    ],
)
def test_a_server_without_a_list_is_dropped_after_three_calls(given: str, typed: str) -> None:
    """Gateways answer 404 for a moment, too."""
    with NamedServer(["mine"], "/elsewhere", lists=False) as server:
        answers = ask_calls(asked_at(server.url + given), 12)
        assert server.posts == 3
    assert answers[-1].stop is StopReason.HOPELESS
    assert (answers[-1].error or "").endswith(typed.format(host=server.url))


@pytest.mark.parametrize(
    ("served", "names", "told"),
    [
        ("my-model", ["my-served-model"], "it has my-served-model: --model Qwen3-VL=my-served-mod"),
        ("qwen", ["llama", "Qwen/Qwen3-VL-8B"], "it has Qwen/Qwen3-VL-8B, llama: --model"),
        ("m7", [f"m{n}x" for n in range(20)], "and 15 more: --model Qwen3-VL=m7x (in a file, `s"),
        ("a\nb", ["red"], "calls no model 'a b'; it has"),
    ],
)
def test_an_unknown_model_is_reported_with_the_servers_list(
    served: str, names: list[str], told: str
) -> None:
    with NamedServer(names) as server:
        (answer,) = ask_calls(asked_at(f"{server.url}/v1", served), 12)
        assert server.posts == 1
    assert answer.stop is StopReason.HOPELESS
    assert told in (answer.error or "")


@pytest.mark.parametrize("names", [["mine"], []])
def test_a_server_that_lists_the_name_or_none_proves_nothing(names: list[str]) -> None:
    with NamedServer(names, "/v1") as server:
        server.root = "/v1"
        lost = ask_calls(asked_at(f"{server.url}/v1", "mine" if names else "other"), 2)
    assert [answer.stop for answer in lost] == [None, None]


@pytest.mark.parametrize(
    ("status", "location", "told"),
    [
        (
            308,
            "https://real.example/v1/chat/completions",
            "give https://real.example/v1 as the address",
        ),
        (307, "//real.example/v1/chat/completions", "give http://real.example/v1 as the address"),
        (301, "/openai/v1/chat/completions", "give {host}/openai/v1 as the address"),
        (
            302,
            "https://login.example/?token=s3cret-s3cret",
            "redirects to https://login.example/: see t",
        ),
        (
            303,
            "https://u:pw-pw-pw@r.example/v1/chat/completions",
            "give https://r.example/v1 as the ad",
        ),
        (307, "/api/v1/chat/completions/", "/api/v1/chat/completions/: see that the address"),
        (307, "", "redirects, and does not say where"),
    ],
)
def test_a_redirect_ends_the_run_and_says_where_it_leads(
    status: int, location: str, told: str
) -> None:
    """The key must not follow it, not even to the same host."""
    answer = Answer(b"{}", status, {"Location": location} if location else {})
    with ChatServer(in_turn(answer)) as server:
        (last,) = ask_calls(service(server.url), 12)
        assert len(server.asked) == 1
    host = server.url.removesuffix(server.path)
    why = last.error or ""
    assert last.stop is StopReason.HOPELESS
    assert why.startswith(f"HTTP {status}: {server.url}/chat/completions redirects")
    assert told.format(host=host) in why
    assert not any(secret in why for secret in ("s3cret", "pw-pw"))


def test_a_redirect_ends_one_server_only() -> None:
    away = Answer(b"", 307, {"Location": "https://real.example/v1/chat/completions"})
    with ChatServer(in_turn(away)) as one, ChatServer(in_turn(completion("[]"))) as other:
        answers = ask_calls(service([one.url, other.url]), 24)
        assert len(one.asked) <= 1
    assert {answer.error for answer in answers} == {None}


@pytest.mark.parametrize("status", [405, 410])
def test_other_words_for_nothing_there(status: int) -> None:
    with ChatServer(in_turn(error(status, "no"))) as server:
        answers = ask_calls(service(server.url), 12)
        assert len(server.asked) == 3
    assert f"asked: {server.url}/chat/completions" in (answers[-1].error or "")


PAGE = b"""<!DOCTYPE HTML>
<html lang="en"><head><title>Error &amp; more</title><style>p { color: red }</style></head>
<body><h1>Error response</h1><p>Unsupported method ('POST').</p></body></html>"""


@pytest.mark.parametrize("status", [404, 405, 501, 403, 502, 503])
@pytest.mark.parametrize("page", [PAGE, b"<h1>Error &amp; more</h1>" + 99 * b"<p>long text</p>"])
def test_a_web_page_is_one_short_line(status: int, page: bytes) -> None:
    with ChatServer(in_turn(Answer(page, status))) as server:
        said = ask_calls(service(server.url), 1)[0].error or ""
    assert f"HTTP {status}: Error & more" in said
    assert "<" not in said
    assert len(said) < 400
    asks = "this is no OpenAI-compatible server; is the address, --base-url, right?"
    # Proxies before a server say what passes in pages, too.
    assert (asks in said) == (status in (404, 405, 501))


@pytest.mark.parametrize(
    ("message", "is_it"),
    [
        ("The model `mine` does not exist.", True),
        ("mine is not a valid model ID", True),  # OpenRouter
        ("Invalid model name passed in model=mine. Call `/v1/models`", True),  # LiteLLM
        ('model "mine" not found, try pulling it first', True),  # Ollama
        ("the prompt is longer than the context of model mine", False),
        ("top_k is not supported", False),
        ("Not Found", False),
    ],
)
def test_which_refusals_are_about_the_name(message: str, is_it: bool) -> None:
    assert is_about_model(CallError(message, 400), "mine") == is_it


def test_names_are_told_where_the_status_is_400_too() -> None:
    with NamedServer(["Qwen3"]) as server:
        script = in_turn(error(400, "nope is not a valid model ID"))
        with ChatServer(script) as chat:
            chat_host, listed = chat.url, server.url
            assert chat_host != listed
            answers = ask_calls(asked_at(chat.url, "nope"), 9)
            assert len(chat.asked) == 5
    assert f"asked: {chat_host}/chat/completions" in (answers[-1].error or "")


def test_lists_of_models_in_each_protocol() -> None:
    assert names_in(b'{"models": [{"name": "models/gemini-3"}, {"name": 3}, 4]}') == ["gemini-3"]
    for no_list in (b"", b"[]", b"<html>", b'{"data": {}}', b"{" * 9999, b"\xff"):
        assert names_in(no_list) is None


def test_other_addresses_keep_the_query() -> None:
    assert other_addresses("https://h/openai?api-version=1") == [
        "https://h/openai/v1?api-version=1",
        "https://h/v1?api-version=1",
    ]
    assert other_addresses("https://h/v1") == []


def test_a_redirect_error_has_no_query() -> None:
    told = redirect_error(307, "http://h/v1/messages?key=abc", "https://h/v1/messages?key=abc")
    assert "abc" not in str(told)
    assert "give https://h/v1 as the address" in str(told)
