"""Every entry of a ``--config`` is checked before VLMEvalKit makes, and pays, the first model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, completion
from few_fast import every_nth_fast
from host_runs import STOCK, environment, run

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("host")]

NAME = "FindIt_Demo_xyxy_json"
DATASET = {"class": "FindItObjectDetection", "dataset": NAME}
LOCAL = {"class": "FindItLocalModel", "like": "FindIt-Nano"}
SERVER = {"class": "FindItServer", "model": "Qwen3-VL-8B", "base_url": "SERVER"}
PROVIDER = {"class": "FindItProvider", "model": "GPT-5.4", "provider": "openai", "key": "k"}
SERVED = {"class": "FindItServed", "model": "Qwen3-VL-8B"}

# A last entry that cannot be made, and words of the refusal
WRONG_MODELS: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "a key of a server": ({**SERVER, "temprature": 1}, "did you mean temperature?"),
    "a field of a request": ({**SERVER, "extra_body": {"temprature": 1}}, "mean temperature?"),
    "no address": ({"class": "FindItServer", "model": "Qwen3-VL-8B"}, "base_url"),
    "an address": ({**SERVER, "base_url": "localhost"}, "localhost"),
    "a temperature": ({**SERVER, "temperature": -1}, "at least 0"),
    "a limit": ({**SERVER, "max_new_tokens": 0}, "at least 1"),
    "contradicting thoughts": (
        {**SERVER, "extra_body": {"thinking": True, "enable_thinking": False}},
        "are the same setting, but differ",
    ),
    "a space": ({**SERVER, "space": "furlongs"}, "furlongs"),
    "no space": ({**SERVER, "model": "Mine"}, "space"),
    "another's words": ({**SERVER, "like": "Qwen9"}, "Qwen9"),
    "a header": ({**SERVER, "headers": {"x y": "a"}}, "x y"),
    "weights there": ({**SERVER, "dtype": "half"}, "dtype has no effect"),
    "a provider": ({**PROVIDER, "provider": "opnai"}, "opnai"),
    "no key": ({**PROVIDER, "key": None}, "OPENAI_API_KEY"),
    "no name there": ({**PROVIDER, "model": "Qwen3-VL"}, "is not known"),
    "OpenRouter's key": ({"class": "FindItOpenRouter", "model": "GPT-5.4"}, "OPENROUTER_API_KEY"),
    "no row": ({"class": "FindItOpenRouter", "model": "GPT-9"}, "GPT-9"),
    "a setting here": ({**LOCAL, "temprature": 1}, "did you mean temperature?"),
    "bounds here": ({**LOCAL, "max_pixels": 1000}, "min_pixels 2304 > max_pixels 1000"),
    "a type here": ({**LOCAL, "dtype": "int8"}, "int8"),
    "a folder": ({**LOCAL, "model_path": "/nowhere/at/all"}, "does not exist"),
    "a row": ({**LOCAL, "like": "Qwen9"}, "Qwen9"),
    "a program": ({**SERVED, "serve": "vlm"}, "vlm"),
    "a baseline": ({"class": "FindItBaseline", "baseline": "FulImage"}, "FullImage"),
    "a baseline's key": ({"class": "FindItBaseline", "temperature": 1}, "temperature"),
    "a class": ({"class": "FindItSever", "model": "x"}, "did you mean FindItServer?"),
    "no class": ({"model": "x"}, "unknown model"),
    "another's name": ({**SERVER, "like": "Gemma 4", "space": "unit"}, "another model"),
}
WRONG_DATASETS: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "a name": ({**DATASET, "dataset": "FindIt_Demo_xyxy_jsn"}, "xyxy_jsn"),
    "a table": ({**DATASET, "dataset": "FindIt_Nowhere_xyxy_json"}, "Nowhere"),
    "a space": ({**DATASET, "space": "furlongs"}, "furlongs"),
    "a class of another": ({**DATASET, "class": "FindItInstanceDetection"}, "is not its class"),
    "a class": (
        {**DATASET, "class": "FindItObjektDetection"},
        "did you mean FindItObjectDetection?",
    ),
    "no class": ({}, "no video dataset"),
}


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with ChatServer(lambda asked, number: completion("[]")) as started:
        yield started


@pytest.fixture(autouse=True)
def folder(demo_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMUData", str(demo_data))
    for name in ("OPENAI_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def write(server: ChatServer, models: Mapping[str, Any], data: Mapping[str, Any]) -> list[str]:
    """Write a ``--config``, and return the runner's arguments."""
    text = json.dumps({"model": models, "data": data}).replace("SERVER", server.url)
    Path("c.json").write_text(text)
    return ["--config", "c.json", "--limit", "1"]


GOOD = {"one": {**SERVER, "space": "unit"}, "two": LOCAL}


def test_a_config_that_can_run_is_not_refused(server: ChatServer) -> None:
    from vlmeval_findit.host import check_runs

    for _ in range(2):
        check_runs(write(server, {**GOOD, "three": PROVIDER}, {NAME: DATASET}))
    assert not server.asked
    assert not list(Path("outputs").rglob("*.json*"))


@pytest.mark.parametrize("what", every_nth_fast(WRONG_MODELS, 3))
@pytest.mark.parametrize("place", ["first", "last"])
def test_a_model_is_refused_wherever_it_stands(what: str, place: str, server: ChatServer) -> None:
    from vlmeval_findit.host import check_runs

    entry, words = WRONG_MODELS[what]
    name = "Qwen3-VL-8B" if what == "another's name" else "wrong"
    models = {**GOOD, name: entry} if place == "last" else {name: entry, **GOOD}
    with pytest.raises(ValueError, match=f"^c.json: model.{name}: ") as refused:
        check_runs(write(server, models, {NAME: DATASET}))
    assert words in str(refused.value)
    assert not server.asked


@pytest.mark.parametrize("what", WRONG_DATASETS)
def test_a_dataset_is_refused_behind_others(what: str, server: ChatServer) -> None:
    from vlmeval_findit.host import check_runs

    entry, words = WRONG_DATASETS[what]
    with pytest.raises(ValueError, match=r"^c\.json: data\.wrong: ") as refused:
        check_runs(write(server, GOOD, {NAME: DATASET, "wrong": entry}))
    assert words in str(refused.value)
    assert not server.asked


def test_without_a_config_nothing_is_checked() -> None:
    from vlmeval_findit.host import check_runs

    check_runs(["--data", NAME, "--model", "FindIt-Nano"])
    check_runs(["--config", "none.json"])
    check_runs(["--config", "configs/other.py"])


@pytest.mark.slow
def test_the_runner_asks_nobody_before_the_last_entry(
    server: ChatServer, lmu: Path, tmp_path: Path
) -> None:
    temperature = {**GOOD["one"], "temperature": 0.5}
    right = {"one": GOOD["one"], "two": temperature}
    wrong = {**right, "three": {**GOOD["one"], "temprature": 0.5}}
    other = {**right, "two": {**temperature, "temperature": 0.6}}
    before = len(server.asked)
    # In the wrong order, and each twice: calls of the runner, and words of its refusal
    for models, calls, words in (
        (wrong, 0, "error: c.json: model.three: unknown setting 'temprature'"),
        (wrong, 0, "error: c.json: model.three: unknown setting 'temprature'"),
        (right, 2, ""),
        (right, 0, ""),
        (other, 0, "error: c.json: model.two: outputs/two/two_FindIt_Demo_xyxy_json.json is of"),
    ):
        line = [*write(server, models, {NAME: DATASET}), "--mode", "infer", "--reuse"]
        done = run(STOCK, line, tmp_path, environment(lmu))
        assert done.returncode == (2 if words else 0), done.stdout
        assert words in done.stdout
        assert len(server.asked) - before == calls
        before = len(server.asked)
