"""Which models a command asks, and how: by flags and files alike, and before any call."""

from __future__ import annotations

from pathlib import Path

import pytest
from chat_server import Answer, Asked, ChatServer, completion
from every_pair import every_pair

from vlmeval_findit.cli import main
from vlmeval_findit.core import ConfigError
from vlmeval_findit.engine import deployment_of
from vlmeval_findit.models import ModelEntry
from vlmeval_findit.protocol import Settings
from vlmeval_findit.sweeps import SingleRuns, Sweep, parse_sweep

DATA = "FindIt_Demo_xyxy_json"

SAME_NAMES = {
    "two names at a server": ("Qwen3-VL=a Qwen3-VL=b", "--base-url"),
    "two paths at a server": ("lab-a/ft lab-b/ft", "--base-url"),
    "one name at a server": ("Qwen3-VL Qwen3-VL", "--base-url"),
    "two names at a provider": ("GPT-5.4=a GPT-5.4=b", "--provider openai"),
    "two checkpoints": ("mine=FOLDER_A mine=FOLDER_B", ""),
    "two checkpoints that are served": ("mine=A mine=B", "--serve vllm"),
    "a baseline": ("FullImage FullImage", ""),
    "several samples": ("Qwen3-VL=a Qwen3-VL=b", "--temperature 1 --samples 2 --base-url"),
}


@pytest.fixture
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMUData", str(tmp_path / "lmu"))
    monkeypatch.setenv("OPENAI_API_KEY", "of-nobody")
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("how", SAME_NAMES)
@pytest.mark.usefixtures("_folder")
def test_two_models_of_one_name_are_refused(how: str, capsys: pytest.CaptureFixture[str]) -> None:
    def answer(asked: Asked, number: int) -> Answer:
        return completion("[]")

    models, flags = SAME_NAMES[how]
    with ChatServer(answer) as server:
        words = flags.split()
        words += [server.url] if words[-1:] == ["--base-url"] else []
        line = ["run", "--data", DATA, "--model", *models.split(), *words, "--limit", "1"]
        assert main(line) == 2
        assert not server.asked
    assert "two models are called" in capsys.readouterr().err


@pytest.mark.usefixtures("_folder")
def test_one_dataset_twice_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--data", DATA, DATA, "--model", "FullImage"]) == 2
    assert f"--data names {DATA} twice" in capsys.readouterr().err


def test_no_sweep_or_run_has_two_models_of_one_name(tmp_path: Path) -> None:
    two = (ModelEntry("ft", served="lab-a/ft"), ModelEntry("ft", served="lab-b/ft"))
    named = r"two models are called ft \(lab-a/ft and lab-b/ft\)"
    with pytest.raises(ConfigError, match=named):
        Sweep(models=two)
    with pytest.raises(ConfigError, match=named):
        SingleRuns(
            deployments=[deployment_of(entry) for entry in two],
            datasets=[DATA],
            work_dir=tmp_path,
            settings=Settings(),
        )
    with pytest.raises(ConfigError, match=r"^mine\.yaml, line 1: two models are called ft"):
        parse_sweep(f"models: [{{name: ft, space: unit}}, {{name: ft, space: unit}}]\n"
                    f"datasets: {DATA}", "mine.yaml")  # fmt: skip


# --- keys of a file -------------------------------------------------------------------------------

# A way of asking, the keys of a model that is asked so, and what else the command says
WAYS = {
    "a baseline": ("name: FullImage", ""),
    "a model on this machine": ("name: FindIt-Nano", ""),
    "a model at OpenRouter": ("name: GPT-5.4", ""),
    "a model of a server": ("name: Qwen3-VL", "--base-url http://127.0.0.1:9/v1"),
    "a model at a provider": ("name: GPT-5.4, provider: openai", ""),
}
KEYS = {
    "like": "Qwen3-VL",
    "prices": "[1, 2]",
    "headers": "{a: b}",
    "system": "words.txt",
    "served": "mine",
}
OF_SERVICES = {"a model of a server", "a model at a provider"}
HAS_EFFECT = {
    **{key: {*OF_SERVICES, "a model at OpenRouter"} for key in ("like", "prices", "headers")},
    "served": OF_SERVICES,
    "system": WAYS.keys() - {"a baseline"},
}


@every_pair("way, key", WAYS, KEYS)
@pytest.mark.usefixtures("_folder")
def test_a_key_without_effect_is_refused(
    way: str, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("words.txt").write_text("Look twice.\n")
    entry, flags = WAYS[way]
    Path("mine.yaml").write_text(
        f"datasets: {DATA}\nlimit: 1\nmodels:\n- {{{entry}, {key}: {KEYS[key]}}}\n"
    )
    status = main(["sweep", "mine.yaml", *flags.split(), "--dry-run"])
    error = capsys.readouterr().err
    if way in HAS_EFFECT[key]:
        assert status == 0, error
    else:
        assert status == 2
        assert error.startswith("error: mine.yaml, line 4: ")
        assert key in error or KEYS[key] in error


# --- fields of a request --------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["model: x", "messages: []", "stream: true"])
@pytest.mark.parametrize("more", ["base_url: 'http://127.0.0.1:9/v1'", "provider: openai"])
@pytest.mark.usefixtures("_folder")
def test_settings_of_a_file_replace_no_question(
    field: str, more: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("mine.yaml").write_text(
        f"datasets: {DATA}\nlimit: 1\nmodels:\n"
        f"- {{name: Mine, served: mine, space: unit, {more}, settings: {{{field}}}}}\n"
    )
    assert main(["sweep", "mine.yaml"]) == 2
    name = field.partition(":")[0]
    error = capsys.readouterr().err
    assert f"mine.yaml, line 4: Mine: {name} is set by FindIt. Leave it out" in error
