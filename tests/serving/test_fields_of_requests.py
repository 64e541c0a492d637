"""Programs x rows: what is sent is what servers take, and advice names nothing that is needed."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import fake_program
import pytest
from asking import QUICK, ask_call, ask_calls
from chat_server import Answer, Asked, ChatServer, completion, error
from fake_program import Machine
from few_fast import every_nth_fast
from waits import until

from vlmeval_findit.benchmarks.findit import parse
from vlmeval_findit.engine import (
    AtServer,
    Deployment,
    HttpService,
    Served,
    ServedModel,
    served_model,
    users_of,
)
from vlmeval_findit.models import MODELS, NEEDED_FIELDS, ChatModel, Endpoint, ModelEntry, chat_model
from vlmeval_findit.serving import PROGRAMS, LocalServers, ServeOptions, flag_of

VARIANTS = [
    parse(name)
    for name in (
        "FindIt_Demo_xyxy_json",
        "FindIt_Demo_insdet_xyxy_json",
        "FindIt_Demo_refexp_xyxy_json",
    )
]
ROWS = [row.name for row in MODELS.values() if row.local is not None]
# Each program, and each age of the one whose versions differ
INSTALLED = [
    ("vllm", "new"), ("vllm", "old"), ("vllm", "oldest"), ("sglang", ""), ("transformers", "")
]  # fmt: skip
# Rows whose bounds or marks of boxes a program cannot be told
NOT_SERVED: Mapping[str, set[str]] = {
    "vllm": set(),
    "sglang": {"Qwen2.5-VL", "FindIt-Nano-px"},
    "transformers": {"Qwen2.5-VL", "FindIt-Nano-px", "GLM-4.6V"},
}
NAME = "M"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    built = Machine(tmp_path)
    for name, value in built.environment.items():
        monkeypatch.setenv(name, value)
    # Programs next to the interpreter come first, and transformers' is there.
    python = tmp_path / "env" / "bin" / "python"
    python.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(python))
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "config.json").write_text("{}")
    yield built
    assert built.ends()


def asked_as(row: str, program: str, machine: Machine, **settings: Any) -> ServedModel:
    checkpoint = str(machine.folder / "checkpoint")
    entry = ModelEntry(NAME, settings, checkpoint=checkpoint, like=row)
    return served_model(entry, ServeOptions(program, 1))


@pytest.mark.parametrize(("program", "version"), every_nth_fast(INSTALLED, 2))
def test_servers_take_every_field_that_rows_send(
    program: str, version: str, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_VLLM", version)
    checkpoint = str(machine.folder / "checkpoint")
    running = LocalServers(ServeOptions(program, 1), checkpoint, NAME, machine.folder / "logs")
    with closing(running):
        running.start()
        until(running.living)
        endpoints = [Endpoint(server.url) for server in running.living()]
        asked = []
        for row in ROWS:
            refusal = _refusal(row, program, machine)
            if refusal:
                assert _can_be_asked_instead(refusal, row, machine), refusal
                continue
            service = HttpService(asked_as(row, program, machine).chat(), endpoints, policy=QUICK)
            errors = [ask_call(service, variant=variant).error for variant in VARIANTS]
            assert (row, errors) == (row, [None] * len(VARIANTS))
            asked.append(row)
    assert {*ROWS} - {*asked} == NOT_SERVED[program]
    flag = "--trust-request-mm-kwargs"
    assert (flag in machine.started[0]["argv"]) == (version == "new")


def _refusal(row: str, program: str, machine: Machine) -> str:
    """Return why a program cannot serve a row; "" if it can."""
    try:
        chat = asked_as(row, program, machine).chat()
        for variant in VARIANTS:
            chat.space(variant)
    except ValueError as error:
        return str(error)
    return ""


def _can_be_asked_instead(refusal: str, row: str, machine: Machine) -> bool:
    """Return whether a refusal names programs, and all of them can serve the row."""
    named = re.findall(r"--serve (\w+)", refusal.partition("Type ")[2])
    return bool(named) and not any(_refusal(row, program, machine) for program in named)


def test_a_program_that_prints_no_help_is_warned_of(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    program = PROGRAMS["vllm"]
    broken = Path(program.executable)
    broken.write_text("#!/bin/sh\necho 'no GPU here' >&2\nexit 1\n")
    with caplog.at_level(logging.WARNING):
        assert program.field_flags() == []
    assert "ended with status 1: no GPU here" in caplog.text


# --- advice ---------------------------------------------------------------------------------------


def _chats(machine: Machine) -> Iterator[tuple[ChatModel, type[Deployment]]]:
    """Return every row as each program serves it, and as a server of others is asked."""
    for row in ROWS:
        for program in PROGRAMS:
            if not _refusal(row, program, machine):
                yield asked_as(row, program, machine, temperature=0.5).chat(), Served
        fields = {name: {"a": 1} for name in NEEDED_FIELDS}
        yield chat_model(NAME, space="pixels", like=row, fields=fields), AtServer
    yield chat_model("Qwen3-VL-nothink", space="pixels", like="Qwen3-VL"), AtServer


def test_advice_names_no_needed_field_and_no_refused_flag(machine: Machine) -> None:
    looked = set()
    for chat, kind in _chats(machine):
        (variant, *_) = VARIANTS
        body = chat.request((), variant).body
        for name in body.keys() - fake_program.OPENAI_FIELDS | {"temperature"}:
            why = _advice(chat, name)
            (hint,) = re.findall(rf"it does not take {name} \((.*)\)$", why)
            assert ("is not sent" in hint) == (kind is AtServer and name not in NEEDED_FIELDS)
            for flag in re.findall(r"--[a-z-]+", hint):
                key = flag.removeprefix("--").replace("-", "_")
                assert kind in users_of(key) or flag == flag_of(name) or key == "serve"
            looked.add((kind, name))
    assert looked >= {(kind, name) for kind in (Served, AtServer) for name in NEEDED_FIELDS}


def _advice(chat: ChatModel, name: str) -> str:
    """Return the error of a call where a server refuses all that have a field."""

    def refuse(asked: Asked, number: int) -> Answer:
        return error(400, f"{name} is off here") if name in asked.body else completion("[]")

    with ChatServer(refuse) as server:
        asked = HttpService(chat, [Endpoint(server.url)], policy=QUICK)
        return ask_calls(asked, 5)[-1].error or ""


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        (Served, "add --serve-args '--trust-request-mm-kwargs'"),
        (AtServer, "start the server with --trust-request-mm-kwargs (vllm)"),
    ],
)
def test_bounds_that_are_refused_name_the_flag(
    kind: type[Deployment], hint: str, machine: Machine
) -> None:
    bounds = {"mm_processor_kwargs": {"min_pixels": 3136}}
    asked = {
        Served: asked_as("Qwen3-VL", "vllm", machine).chat(),
        AtServer: chat_model("Qwen3-VL", fields=bounds),
    }
    assert hint in _advice(asked[kind], "mm_processor_kwargs")
