"""Settings of flags, files and Python meet in one way: merged, or refused before any call."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer
from every_pair import every_pair
from few_fast import every_nth_fast

from vlmeval_findit.cli import main

DATA = "FindIt_Demo_xyxy_json"


@pytest.fixture(autouse=True)
def folder(demo_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMUData", str(demo_data))
    for name in ("OPENROUTER_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "of-nobody")
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.chdir(tmp_path)


def swept(server: ChatServer, model: Mapping[str, Any], flags: str = "", **more: Any) -> int:
    """Ask one query by a sweep; return the exit status."""
    entry = {"name": "mine", "space": "unit", "base_url": server.url, **model}
    entry = {key: value for key, value in entry.items() if value is not None}
    Path("s.yaml").write_text(json.dumps({"models": [entry], "datasets": DATA, "limit": 1, **more}))
    return main(["sweep", "s.yaml", *shlex.split(flags)])


def extra(**fields: Any) -> str:
    return f"--extra-body {shlex.quote(json.dumps(fields))}"


# --- what is merged -------------------------------------------------------------------------------

# Settings of an entry, flags, and what is sent
MERGED: Mapping[str, tuple[Mapping[str, Any], str, Mapping[str, Any]]] = {
    "objects": (
        {"chat_template_kwargs": {"a": {"x": 1}, "b": [1]}},
        extra(chat_template_kwargs={"a": {"y": 2}, "b": [1]}),
        {"chat_template_kwargs": {"a": {"x": 1, "y": 2}, "b": [1]}},
    ),
    "fields": ({"top_k": 3}, extra(top_p=0.5, top_k=3), {"top_k": 3, "top_p": 0.5}),
    "a field that is left out": ({"top_k": 3}, extra(top_k=None, seed=1), {"seed": 1}),
    "a temperature of the flag": ({"temperature": 0.5}, "--temperature 0.7", {"temperature": 0.7}),
    "the limit of the file": ({"max_new_tokens": 77}, "", {"max_tokens": 77}),
    "the limit of the flag": ({}, extra(max_tokens=77), {"max_tokens": 77}),
    "one reply": ({"n": 1}, "", {"n": 1}),
}


@pytest.mark.parametrize("what", MERGED)
def test_both_are_sent(what: str, server: ChatServer) -> None:
    settings, flags, wanted = MERGED[what]
    assert swept(server, {"settings": settings}, flags) == 0
    body = server.asked[-1].body
    assert {name: body[name] for name in wanted} == wanted
    assert what != "a field that is left out" or "top_k" not in body


# --- what is refused ------------------------------------------------------------------------------

CONTRADICTIONS: Mapping[str, tuple[Mapping[str, Any], str, str]] = {
    "a field": ({"top_k": 3}, extra(top_k=4), "top_k: --extra-body says 4, and `settings` of its"),
    "a field inside": (
        {"a": {"b": {"c": True}}},
        extra(a={"b": {"c": 1}}),
        "a.b.c: --extra-body says 1, and `settings` of its entry true",
    ),
    "an object and a value": ({"a": {"b": 1}}, extra(a=1), "a: --extra-body says 1"),
    "limits": (
        {"max_new_tokens": 77},
        extra(max_tokens=78),
        "max_new_tokens and max_tokens are the same setting, but differ",
    ),
    "a temperature and none": (
        {},
        f"--temperature 0.5 {extra(temperature=None)}",
        '--temperature 0.5 and "temperature": null in --extra-body contradict',
    ),
    "a temperature of the body": ({}, extra(temperature=0.5), "Type --temperature T"),
    "a key twice": ({}, """--extra-body '{"a": 1, "a": 2}'""", "duplicate key 'a'"),
    "a key twice inside": ({}, """--extra-body '{"b": {"a": 1, "a": 1}}'""", "duplicate key 'a'"),
    "no limit": ({}, extra(max_tokens=None), "max_tokens: None should be a whole number"),
}


@pytest.mark.parametrize("more", ["", " --dry-run"])
@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_a_contradiction_is_refused(
    what: str, more: str, server: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    settings, flags, words = CONTRADICTIONS[what]
    asked = len(server.asked)
    assert swept(server, {"settings": settings}, flags + more) == 2
    assert words in capsys.readouterr().err
    assert len(server.asked) == asked


# A field that nobody may set, or not to this value, and what its refusal says
WRONG: list[tuple[Mapping[str, Any], str]] = [
    ({"n": 2}, "n: 2 replies would be paid for"),
    ({"generationConfig": {"candidateCount": 3}}, "generationConfig.candidateCount: 3 replies"),
    ({"headers": {"a": "b"}}, "headers is no field of a request. Type --header"),
    ({"extra_headers": {"a": "b"}}, "extra_headers is no field of a request. Type --header"),
    ({"extra_body": {"seed": 1}}, "extra_body is no field of a request. Write the fields"),
    ({"timeout": 9}, "timeout is no field of a request. Type --timeout SECONDS"),
    ({"retry": 9}, "retry is no field of a request"),
    ({"prices": [1, 2]}, "prices is no field of a request. Type --prices IN,OUT"),
    ({"base_url": "x"}, "base_url is no field of a request. Type --base-url URL"),
    ({"served": "x"}, "served is no field of a request. Type --model NAME=SERVED"),
    ({"max_tokens": 0}, "max_tokens: 0 should be a whole number, at least 1"),
    ({"max_tokens": "many"}, "max_tokens: 'many' should be a whole number, at least 1"),
]
HOT = [
    ({"temperature": value}, "temperature: ") for value in ("hot", "0.5", -1, True, [1], {"a": 1})
]
AT_SERVICES = {
    "a server": {},
    "a provider": {"provider": "openai", "served": "x", "like": "GPT-5.4"},
    "OpenRouter": {"provider": "openrouter", "served": "x"},
    "a batch": {"provider": "openai", "served": "x", "like": "GPT-5.4"},
}


@every_pair("kind, fields, words", AT_SERVICES, [*WRONG, *HOT])
def test_a_wrong_field_is_refused_at_every_door(
    fields: Mapping[str, Any],
    words: str,
    kind: str,
    server: ChatServer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = len(server.asked)
    more = {"batch": "openai"} if kind == "a batch" else {}
    for flags in ("", "--dry-run"):
        capsys.readouterr()
        assert swept(server, {**AT_SERVICES[kind], "settings": fields}, flags, **more) == 2
        error = capsys.readouterr().err
        assert "s.yaml, line 1: " in error
        assert words in error
        assert swept(server, AT_SERVICES[kind], f"{flags} {extra(**fields)}", **more) == 2
        error = capsys.readouterr().err
        assert words in error or "temperature has a flag" in error
    assert len(server.asked) == asked


@pytest.mark.parametrize("name", ["FullImage", "FindIt-Nano", "GPT-5.4", "Their-VL-7B"])
@pytest.mark.parametrize(("fields", "words"), HOT, ids=str)
def test_a_temperature_is_a_number_whoever_answers(
    name: str, fields: Mapping[str, Any], words: str, server: ChatServer,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    entry = {"name": name, "base_url": None, "settings": fields}
    assert swept(server, entry, "--dry-run") == 2
    assert words in capsys.readouterr().err


def test_models_that_are_asked_elsewhere_are_not_served(
    server: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert swept(server, {}, "--dry-run", serve="vllm") == 2
    said = "s.yaml, line 1: serve has no effect: mine is asked elsewhere (base_url). Leave one"
    assert said in capsys.readouterr().err


# --- one model by two names -----------------------------------------------------------------------

FLAGS = {
    "--like": "Qwen3-VL",
    "--prices": "1,2",
    "--header": "x-title: a",
    "--key": "k",
    "--extra-body": '{"seed": 1}',
    "--temperature": "0.5",
    "--timeout": "9",
    "--max-usd": "1",
    "--system": "system.txt",
    "--api-nproc": "3",
    "--gpus": "1",
    "--dtype": "float16",
    "--batch-size": "3",
}


@pytest.mark.parametrize("flag", every_nth_fast(FLAGS, 4))
def test_a_name_takes_the_flags_of_its_provider(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`GPT-5.4` is asked as `GPT-5.4 --provider openrouter` is."""
    Path("system.txt").write_text("Be short.")
    line = ["run", "--data", DATA, "--model", "GPT-5.4", "--limit", "1", "--dry-run"]
    seen = []
    for provider in ([], ["--provider", "openrouter"]):
        status = main([*line, flag, FLAGS[flag], *provider])
        printed = capsys.readouterr()
        what = printed.err.replace(
            "a model at a provider (--provider); ", "a model at OpenRouter; "
        )
        seen.append((status, printed.out, what))
    assert seen[0] == seen[1]


def test_an_address_in_place_of_the_files_is_said(
    server: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = {"base_url": "http://127.0.0.1:9/v1?key=s3cret"}
    assert swept(server, elsewhere, f"--base-url {server.url}") == 0
    said = capsys.readouterr().err
    assert f"mine: --base-url {server.url}, in place of http://127.0.0.1:9/v1?key=***" in said
    assert "s3cret" not in said


# --- who answers, by the file and by a flag -------------------------------------------------------

OTHERS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any], str, str]] = {
    "an address in place of a provider": (
        {"provider": "openai", "served": "x", "base_url": None},
        {},
        "--base-url SERVER",
        "--base-url SERVER, in place of openai's usual address (its entry): "
        "openai's protocol and key, at SERVER",
    ),
    "a provider in place of a server": (
        {"served": "x"},
        {},
        "--provider openai --key k",
        "--provider openai, in place of a server's protocol and key (its entry): "
        "openai's protocol and --key, at SERVER",
    ),
    "an address in place of a server here": (
        {"base_url": None},
        {"serve": "vllm"},
        "--base-url SERVER",
        "--base-url SERVER, in place of serve: vllm (its file)",
    ),
    "a provider in place of a server here": (
        {"base_url": None, "served": "x"},
        {"serve": "vllm"},
        "--provider openrouter",
        "--provider openrouter, in place of serve: vllm (its file): openrouter's protocol and key",
    ),
}


@pytest.mark.parametrize("what", OTHERS)
def test_another_answerer_than_the_files_is_told(
    what: str, server: ChatServer, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Over one model a flag goes first, and is told; over several it is refused."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    entry, more, flags, words = (
        json.loads(json.dumps(each).replace("SERVER", server.url)) for each in OTHERS[what]
    )
    asked = len(server.asked)
    assert swept(server, entry, f"{flags} --dry-run", **more) == 0
    said = capsys.readouterr().err
    assert f"mine: {words}" in said
    assert "no effect" not in said, "it is said once"
    values = {"space": "unit", "base_url": server.url, **entry}
    stated = {key: value for key, value in values.items() if value is not None}
    both = [{**stated, "name": name} for name in ("one", "two")]
    assert swept(server, {}, f"{flags} --dry-run", **{**more, "models": both}) == 2
    assert "is said of 2 models, but one has" in capsys.readouterr().err
    assert len(server.asked) == asked
