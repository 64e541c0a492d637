"""Flags of a server that say which model it serves, and where, are FindIt's."""

from __future__ import annotations

import base64

import pytest

from vlmeval_findit.serving import PROGRAMS, ServeOptions

OWN = [
    (name, flag)
    for name, program in PROGRAMS.items()
    for flag in program.arguments.split()
    if flag in ("--host", "--port", "--served-model-name", "--model-path")
]


@pytest.mark.parametrize(("program", "flag"), OWN)
@pytest.mark.parametrize("written", ["{} x", "{}=x", "--other 1 {} x"])
def test_they_are_refused(program: str, flag: str, written: str) -> None:
    with pytest.raises(ValueError, match=f"--serve-args {flag}: FindIt states it"):
        ServeOptions(program, arguments=tuple(written.format(flag).split()))


@pytest.mark.parametrize(
    ("program", "flag"), [("vllm", "--tensor-parallel-size"), ("sglang", "--tp-size")]
)
def test_gpus_have_an_option_of_their_own(program: str, flag: str) -> None:
    with pytest.raises(ValueError, match="Type --tensor-parallel N"):
        ServeOptions(program, arguments=(flag, "2"))


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("flag", ["--limit-mm-per-prompt", "--generation-config", "--port-file"])
def test_others_are_passed_on(program: str, flag: str) -> None:
    assert ServeOptions(program, arguments=(flag, "x")).arguments == (flag, "x")


KEY = "sk-0123456789abcdefghijkl"


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    "arguments",
    [
        "--api-key {}", "--api-key={}", "--api_key other", "--hf-token {}", "--token=x",
        "--admin-api-key y", "--ssl-password z", "--chat-template {}",
        "--override x --other-args {base64}", "--served {hex}",
    ],
)  # fmt: skip
def test_keys_are_refused_as_processes_show_them(
    program: str, arguments: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    data = KEY.encode()
    forms = {"base64": base64.b64encode(data).decode(), "hex": data.hex()}
    with pytest.raises(ValueError, match="the list of processes would show it") as refused:
        ServeOptions(program, arguments=tuple(arguments.format(KEY, **forms).split()))
    assert KEY not in str(refused.value)


@pytest.mark.parametrize("arguments", ["", "--hf-token --seed 1", "--hf-token", "--max-tokens 9"])
def test_flags_without_a_key_are_passed_on(arguments: str) -> None:
    ServeOptions("vllm", arguments=tuple(arguments.split()))
