"""One grammar of models in ``run``, ``search``, ``sweep``, ``probe``, sweep files and Python."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from asked_so import asked_so
from chat_server import ChatServer, completion
from PIL import Image

import vlmeval_findit as findit
from vlmeval_findit.cli import main
from vlmeval_findit.core import ConfigError
from vlmeval_findit.engine import AtServer
from vlmeval_findit.models import ModelEntry, ModelOptions
from vlmeval_findit.sweeps import parse_sweep

URL = "http://127.0.0.1:9/v1"
SPACE = '{"kind": "unit"}'


def test_a_model_of_options() -> None:
    all_keys = {
        "like": "Qwen3-VL",
        "space": '{"kind": "unit"}',
        "temperature": 0.5,
        "device": "cpu",
    }
    cases: list[tuple[dict[str, Any], str, ModelEntry]] = [
        ({}, "Qwen3-VL", ModelEntry("Qwen3-VL")),
        ({}, "mine=/a", ModelEntry("mine", checkpoint="/a")),
        ({"base_url": URL}, "A=b", ModelEntry("A", served="b", base_url=URL)),
        ({"provider": "openai"}, "A=b", ModelEntry("A", served="b", provider="openai")),
        (
            all_keys,
            "mine=a/b",
            ModelEntry(
                "mine",
                {"temperature": 0.5},
                checkpoint="a/b",
                like="Qwen3-VL",
                space={"kind": "unit"},
                resources={"device": "cpu"},
            ),
        ),
    ]
    for flags, model, entry in cases:
        assert ModelOptions(**flags).entry(model) == entry


def test_the_command_line_overrides_a_sweeps_file() -> None:
    keys = {"temperature": 0.5, "dtype": "float16", "batch_size": 2, "device": "cpu"}
    text = f"models: [{json.dumps({'name': 'Qwen3-VL', 'base_url': URL, **keys})}]\ndatasets: Demo"
    (entry,) = parse_sweep(text).models
    assert entry.base_url == URL
    assert entry.settings == {"temperature": 0.5, "dtype": "float16"}
    assert entry.resources == {"batch_size": 2, "device": "cpu"}
    assert URL not in repr(entry), "an address may hold a key"
    applied = ModelOptions(temperature=0.7, batch_size=4, space="grid1000").applied(entry)
    assert applied.settings == {"temperature": 0.7, "dtype": "float16"}
    assert (applied.resources, applied.space) == ({"batch_size": 4, "device": "cpu"}, "grid1000")


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ("temperature: hot", "should be a number, at least 0"),
        (
            "temperature: 1, settings: {temperature: 2}",
            "duplicate temperature: it is here and in settings",
        ),
    ],
)
def test_a_key_that_cannot_be_is_refused_with_its_line(keys: str, why: str) -> None:
    with pytest.raises(ConfigError, match=f"line 2.*{why}"):
        parse_sweep(f"models:\n  - {{name: Qwen3-VL, {keys}}}\ndatasets: Demo")


def test_a_server_takes_no_setting_of_this_machine() -> None:
    entry = ModelOptions(device="cpu", base_url=URL).entry("Qwen3-VL")
    with pytest.raises(ValueError, match="device has no effect: it is of models on this machine"):
        AtServer(entry).check()


def test_models_of_a_sweep_may_have_different_servers(tmp_path: Path) -> None:
    with ChatServer(lambda *_: completion("[]")) as a, ChatServer(lambda *_: completion("[]")) as b:
        models = [
            {"name": "Qwen3-VL", "base_url": a.url},
            {"name": "Mine", "like": "Qwen3-VL", "served": "m", "base_url": b.url},
        ]
        path = tmp_path / "sweep.yaml"
        values = {"models": models, "datasets": "FindIt_Demo_xyxy_json", "limit": 1}
        path.write_text(json.dumps(values))
        assert main(["sweep", str(path), "--work-dir", str(tmp_path / "out")]) == 0
        assert {asked.body["model"] for asked in a.asked} == {"Qwen3-VL"}
        assert {asked.body["model"] for asked in b.asked} == {"m"}


def test_a_temperature_is_sent_recorded_and_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "sweep.yaml"
    config.write_text("models: Qwen3-VL\ndatasets: FindIt_Demo_xyxy_json\nlimit: 2\n")
    with ChatServer(lambda *_: completion("[]")) as server:
        command = ["sweep", str(config), "--base-url", server.url, "--work-dir"]
        sampled = str(tmp_path / "sampled")
        assert main([*command, sampled, "--temperature", "0.7"]) == 0
        assert "sampled at temperature 0.7" in capsys.readouterr().out
        assert {asked.body["temperature"] for asked in server.asked} == {0.7}
        assert main([*command, str(tmp_path / "greedy")]) == 0
        assert "sampled" not in capsys.readouterr().out
        assert server.asked[-1].body["temperature"] == 0.0
        assert main([*command, sampled]) == 2, "another temperature is another run"
    assert "setting temperature: recorded 0.7, now 0.0" in capsys.readouterr().err
    assert main(["leaderboard", sampled, "--out", str(tmp_path / "board")]) == 0
    pages = "".join(path.read_text() for path in (tmp_path / "board").rglob("*.md"))
    assert "sampled at temperature 0.7" in capsys.readouterr().out + pages


def test_python_takes_the_same_words() -> None:
    with ChatServer(lambda *_: completion("[]")) as server:
        model = findit.open_model("Qwen3-VL", server.url, temperature=0.4)
        model.ask(Image.new("RGB", (20, 20)), "dog")
        assert [asked.body["temperature"] for asked in server.asked] == [0.4]
    with pytest.raises(ValueError, match="temperature has no effect: a baseline has none"):
        findit.open_model("FullImage", temperature=1.0)


@pytest.mark.sees("search --executor", "search --replicas", "probe --executor", "probe --replicas")
@pytest.mark.parametrize("command", ["search --model FindIt-Nano", "probe --model FindIt-Nano"])
def test_options_of_clusters_reach_who_answers(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    usual = asked_so(command.split(), monkeypatch)
    flags = ["--executor", "ray", "--replicas", "8", "--gpus", "2"]
    asked = asked_so([*command.split(), *flags], monkeypatch)
    assert not usual.on_ray
    assert asked.on_ray
    assert asked.calls == replace(usual.calls, replicas=8, gpus=2.0)
