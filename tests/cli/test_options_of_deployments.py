"""Every option of ``run`` acts on who answers, or is refused: at each kind, dry or not."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest
from chat_server import ChatServer
from few_fast import few_fast
from server_options import SERVER_OPTIONS, typed

from vlmeval_findit.cli import main
from vlmeval_findit.core import flag_name
from vlmeval_findit.engine import OF_SOME, deployment_of, has_effect
from vlmeval_findit.models import ModelEntry, declared_options

# An option -> how it is typed
TYPED: Mapping[str, str] = {
    "api_nproc": "--api-nproc 3",
    "batch_size": "--batch-size 2",
    "device": "--device cpu",
    "dtype": "--dtype half",
    "extra_body": """--extra-body '{"top_k": 3}'""",
    "gpus": "--gpus 1",
    "header": "--header 'x-team: a'",
    "key": "--key k",
    "like": "--like Qwen3-VL",
    "logprobs": "--logprobs",
    "max_usd": "--max-usd 9",
    "prices": "--prices 1,2",
    "prompt_template": "--prompt-template text.txt",
    "samples": "--samples 2 --temperature 0.5",
    "serve_args": "--serve-args '--flag 1'",
    "system": "--system text.txt",
    "temperature": "--temperature 0.5",
    "timeout": "--timeout 9",
    **{name: typed(name) for name in SERVER_OPTIONS},
}
# They choose who answers, or no `run` has them
CHOOSING = {"base_url", "serve", "batch", "executor", "replicas"}
OF_ALL = {"dry_run", "force", "prompts", "provider", "skip_missing_images", "space"}

# A kind -> what is typed of its model, and its entry
KINDS: Mapping[str, tuple[str, ModelEntry]] = {
    "a baseline": ("FullImage", ModelEntry("FullImage")),
    "here": ("FindIt-Nano", ModelEntry("FindIt-Nano")),
    "a server": (
        "Qwen3-VL-8B --base-url SERVER",
        ModelEntry("Qwen3-VL-8B", base_url="http://127.0.0.1:1/v1"),
    ),
    "a provider": (
        "GPT-5.4 --provider openai --base-url SERVER",
        ModelEntry("GPT-5.4", provider="openai"),
    ),
    "OpenRouter": ("Gemini-2.5-Flash", ModelEntry("Gemini-2.5-Flash")),
}


@pytest.fixture(autouse=True)
def folder(demo_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMUData", str(demo_data))
    monkeypatch.setenv("COLUMNS", "1000")
    for name in ("OPENAI_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.setenv(name, "k")
    for name in ("FINDIT_LOGPROBS", "FINDIT_FORCE"):
        monkeypatch.setenv(name, "")  # flags become variables; they end with the test
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("Look twice. {{ request }}")


def test_every_option_is_in_the_table() -> None:
    assert OF_SOME & declared_options().keys() == {*TYPED} | CHOOSING
    assert declared_options().keys() - OF_SOME == OF_ALL


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
def test_an_option_without_effect_is_said(
    kind: str, dry: list[str], server: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    model, entry = KINDS[kind]
    deployment = deployment_of(entry)
    asked = len(server.asked)
    for option, words in TYPED.items():
        if has_effect(deployment, option):
            continue
        line = f"run --data FindIt_Demo_xyxy_json --model {model} {words} --limit 1 --work-dir out"
        assert main([*shlex.split(line.replace("SERVER", server.url)), *dry]) == 2, words
        said = capsys.readouterr().err
        flag = "--temperature" if option == "samples" else flag_name(option)
        assert f"{flag_name(option)} has no effect" in said or f"{flag} has no effect" in said
    assert len(server.asked) == asked
    assert not Path("out").exists()


@pytest.mark.parametrize("kind", few_fast(["a server", "a provider", "OpenRouter"], 2))
def test_an_option_with_effect_is_taken(
    kind: str, server: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    model, entry = KINDS[kind]
    deployment = deployment_of(entry)
    for option, words in TYPED.items():
        if not has_effect(deployment, option) or option in ("prices", "logprobs", "like"):
            continue  # refused where a table has prices, or the row is known
        line = f"run --data FindIt_Demo_xyxy_json --model {model} {words} --limit 1 --dry-run"
        assert main(shlex.split(line.replace("SERVER", server.url))) == 0, words
        assert "has no effect" not in capsys.readouterr().err
