"""Models that cannot be asked as is said: arguments, and words of each refusal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from adapters import write_base
from weight_headers import write_weights


class Wrong(NamedTuple):
    """A model that cannot be asked so: its arguments in Python, and words of each refusal."""

    model: str
    arguments: Mapping[str, Any]
    words: str
    # In the words of a command, if they are not those of Python; None: no flag says it
    flags: str | None = ""


AT = {"base_url": "SERVER", "space": "unit"}
WRONG: Mapping[str, Wrong] = {
    # --- a model at a server ---
    "an address": Wrong("Mine", {"base_url": "localhost", "space": "unit"}, "localhost"),
    "a temperature": Wrong("Mine", {**AT, "temperature": -1}, "should be a number, at least 0"),
    "no temperature": Wrong("Mine", {**AT, "temperature": "hot"}, "temperature", None),
    "a limit": Wrong("Mine", {**AT, "max_new_tokens": 0}, "max_new_tokens: 0 should be", None),
    "weights there": Wrong("Mine", {**AT, "dtype": "half"}, "dtype has no effect"),
    "a device there": Wrong("Mine", {**AT, "device": "cpu"}, "device has no effect"),
    "a batch there": Wrong("Mine", {**AT, "batch_size": 2}, "batch"),
    "a header": Wrong("Mine", {**AT, "headers": {"x y": "a"}}, "x y", "--header 'x y: a'"),
    "a space": Wrong("Mine", {"base_url": "SERVER", "space": "furlongs"}, "furlongs"),
    "another's words": Wrong("Mine", {**AT, "like": "Qwen9"}, "Qwen9"),
    "a text": Wrong("Mine", {**AT, "system": "none.txt"}, "none.txt"),
    "a template": Wrong("Mine", {**AT, "prompt_template": "none.txt"}, "none.txt"),
    "a template's name": Wrong("Mine", {**AT, "prompt_template": "shade.txt"}, "shade"),
    "a baseline": Wrong("FullImage", {"base_url": "SERVER"}, "is a baseline and calls no server"),
    # --- at a provider ---
    "a provider": Wrong("GPT-5.4", {"provider": "opnai"}, "opnai"),
    "no key": Wrong("GPT-5.4", {"provider": "openai"}, "OPENAI_API_KEY"),
    "no name there": Wrong("Qwen3-VL", {"provider": "openai", "key": "k"}, "is not known"),
    "a baseline there": Wrong("FullImage", {"provider": "openai"}, "calls no server"),
    "a warm one": Wrong(
        "GPT-6-Astra", {"provider": "openai", "key": "k", "temperature": 0.5}, "temperature: GPT-6"
    ),
    # --- on this machine ---
    "a name": Wrong("FindIt-Nanno", {}, "FindIt-Nano"),
    "a key": Wrong("FindIt-Nano", {"key": "k"}, "key has no effect"),
    "headers": Wrong("FindIt-Nano", {"headers": {"a": "b"}}, "header", "--header 'a: b'"),
    "a relative": Wrong("FindIt-Nano", {"like": "Qwen3-VL"}, "like has no effect"),
    "a type": Wrong("FindIt-Nano", {"dtype": 7}, "dtype", None),
    "a batch": Wrong("FindIt-Nano", {"batch_size": 0}, "0 should be a whole number, at least 1"),
    "a GPU": Wrong("FindIt-Nano", {"device": "cuda:99"}, "cuda:99"),
    "an adapter": Wrong("FindIt-Nano", {"merge_adapter": True}, "merge_adapter", None),
    "bounds": Wrong("FindIt-Nano", {"patches": 7}, "patches", None),
    "a folder": Wrong("mine=/nowhere/at/all", {"like": "Qwen3-VL"}, "does not exist"),
    "another type": Wrong("mine=other", {"like": "Qwen3-VL"}, "qwen2_5_vl"),
    "a baseline's words": Wrong("FullImage", {"system": "text.txt"}, "system has no effect"),
    "a baseline's heat": Wrong("FullImage", {"temperature": 0.5}, "temperature has no effect"),
}


@pytest.fixture(autouse=True)
def folder(demo_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a folder with the files that these models name, and work in it."""
    monkeypatch.setenv("LMUData", str(demo_data))
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("Look twice.")
    Path("shade.txt").write_text("{{ shade }}")
    write_base(Path("other"), model_type="qwen2_5_vl")
    write_weights(Path("other/model.safetensors"), "model.norm.weight")
