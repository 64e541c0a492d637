"""What a newcomer types first: a file for a dataset, a model of theirs, words of a help."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from vlmeval_findit.cli import main
from vlmeval_findit.core import vlmevalkit

SCENES = "FindIt_Scenes_mini_xyxy_json"
URL = "--base-url http://127.0.0.1:1/v1"


@pytest.fixture(autouse=True)
def _folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MMEVAL_ROOT", raising=False)


def without_vlmevalkit(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("core.vlmevalkit", "cli.run", "engine.deployment_kinds"):
        monkeypatch.setattr(f"vlmeval_findit.{place}.package_folder", lambda: None)
    vlmevalkit._text.cache_clear()


@pytest.fixture(params=[True, False], ids=["with VLMEvalKit", "without"])
def host(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> object:
    """Say whether VLMEvalKit is installed, whose runner has other datasets and models."""
    if not request.param:
        without_vlmevalkit(monkeypatch)
    yield request.param
    vlmevalkit._text.cache_clear()


def refusal(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what a command line is refused with."""
    capsys.readouterr()
    assert main(line.split()) == 2
    return capsys.readouterr().err


# --- datasets ---

OF_DATASETS = [
    "run --data {} --model FindIt-Nano",
    "run --data {} --model mine " + URL,
    f"run --data {SCENES} {{}} --model FindIt-Nano",
    "run --data {} --model FindIt-Nano --dry-run",
    "search --data {} --model FindIt-Nano",
    "formats --data {}",
    "data show {}",
    "data stats {}",
    "data reviews reviews.jsonl --data {}",
    "check {}",
    "watch-checkpoints . --once --data {}",
    "sweep sweep.yaml",
]


@pytest.mark.parametrize("path", ["mine.csv", "files/coco.json", "files/yolo", "./files", "no.xml"])
@pytest.mark.parametrize("line", OF_DATASETS)
def test_of_a_file_a_dataset_is_made_first(
    line: str, path: str, host: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "files" / "yolo").mkdir(parents=True)
    for file in ("mine.csv", "files/coco.json", "reviews.jsonl"):
        (tmp_path / file).touch()
    Path("sweep.yaml").write_text(f"models: [FindIt-Nano]\ndatasets: [{path}]")
    said = refusal(line.format(path), capsys)
    assert f"data import {path} --name NAME" in said
    assert "VLMEvalKit" not in said
    assert ("does not exist" in said) == (path == "no.xml")


@pytest.mark.parametrize("name", ["Scenes_mini", "Scenes_mini_xywh_json", "Demo_refexp"])
@pytest.mark.parametrize("line", ["run --data {} --model FindIt-Nano", "data show {}"])
def test_a_bare_name_leads_to_the_whole_name(
    line: str, name: str, host: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refusal(line.format(name), capsys)
    assert re.search(rf"did you mean FindIt_{name}(_\w+)?\b", said)
    assert "VLMEvalKit" not in said


def test_a_search_without_data_says_what_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LMUData", str(tmp_path / "lmu"))
    monkeypatch.setenv("FINDIT_TABLES", str(tmp_path))
    said = refusal("search --model FindIt-Nano", capsys)
    assert "--data is not typed, and Pascal, which is searched then, is not here" in said
    assert "data get Pascal" in said
    assert "--data Scenes_mini" in said
    (tmp_path / "RefCOCO.tsv").touch()
    assert "Here are RefCOCO, Scenes_mini, Demo: --data RefCOCO" in refusal(
        "search --model FindIt-Nano", capsys
    )


@pytest.mark.parametrize(
    ("typed", "flag"),
    [
        ("--model FindIt-Nano FindIt-Nano-px --data Demo", "--model"),
        ("--model FindIt-Nano --model FindIt-Nano-px --data Demo", "--model"),
        ("--model FindIt-Nano --data Demo Scenes_mini", "--data"),
        ("--data Demo --data Scenes_mini --model FindIt-Nano", "--data"),
    ],
)
def test_a_search_is_of_one_at_a_time(
    typed: str, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first = {"--model": "FindIt-Nano", "--data": "Demo"}[flag]
    said = refusal(f"search {typed}", capsys)
    assert f"a search is of one at a time. Type {flag} {first};" in said


# --- models ---


@pytest.mark.parametrize("served", ["mymodel", "gpt-4o", "qwen2.5vl:7b", "Qwen2.5-VL-7B-Instruct"])
@pytest.mark.parametrize("where", ["--model {} " + URL, "--model mine={} --provider openai"])
@pytest.mark.parametrize("line", [f"run --data {SCENES} --dry-run", "search --data Demo --dry-run"])
def test_a_model_at_a_server_is_like_a_known_one(
    line: str, where: str, served: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refusal(f"{line} {where.format(served)}", capsys)
    like = "Qwen2.5-VL-7B" if "2.5" in served and "mine=" not in where else "Qwen3-VL-8B"
    assert f"--model {like}={served}, or --like {like}" in said
    assert said.count("\n") <= 4
    assert "Spaces:" not in said


ANOTHER = ["gpt-4o", "GPT-5.5", "gpt-5.1", "Qwen2-VL-7B", "Qwen4-VL", "Gemma 5", "claude-opus-4-1"]
MISSPELT = {
    "Qwen3-LV": "Qwen3-VL",
    "GTP-5.4": "GPT-5.4",
    "Qwen25-LV-7B": "Qwen2.5-VL",
    "FindIt-Nanno": "FindIt-Nano",
    "Gemini 25 Flsh": "Gemini 2.5 Flash",
}


@pytest.mark.parametrize("line", ["models {}", f"data show {SCENES} --model {{}}"])
@pytest.mark.parametrize("typed", [*ANOTHER, *MISSPELT])
def test_another_number_is_another_model(
    typed: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main([word.format(typed) for word in line.split()]) == 2
    said = capsys.readouterr().err
    if typed in MISSPELT:
        assert f"did you mean {MISSPELT[typed]}?" in said
    else:
        assert "did you mean" not in said
        assert "run_findit.py models)" in said


def test_an_unknown_model_leads_to_servers_and_providers(
    host: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refusal(f"run --data {SCENES} --model my-own-4", capsys)
    for typed in ("--model NAME=my-own-4 --base-url URL", "--provider", "--model my-own-4=FOLDER"):
        assert typed in said
    assert ("pip install" in said) == (not host)


@pytest.mark.parametrize(
    "line",
    [
        f"run --data {SCENES} --model MODEL",
        "run --data FindIt_DATASET_xyxy_json --model FindIt-Nano",
        "run --data NAME --model FindIt-Nano",
        f"run --data {SCENES} --model NAME=CHECKPOINT",
        "search --model MODEL --data Demo",
        f"search --model MODEL {URL} --data Demo",
        "models MODEL",
        "errors RUN",
        "data show DATASET",
        "reproduce MODEL",
    ],
)
def test_of_a_word_of_a_help_only_that_is_said(
    line: str, host: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refusal(line, capsys)
    assert re.fullmatch(r"error: [A-Z]+ stands for [^.()]*(\.py)?[^.()]*\n", said), said


def test_other_mistakes_beside_a_word_of_a_help_stay(capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal("sweep nowhere.yaml --work-dir DIR", capsys)
    assert "nowhere.yaml" in said
    assert said.endswith("(DIR stands for a folder)\n")


# --- runs ---


@pytest.mark.parametrize(
    ("line", "near"),
    [
        ("compare outputs/A outputs/B", "outputs/C"),
        ("compare outputs/A outputs/B=xyxy_json", "outputs/C"),
        ("errors outputs/A outputs/C outputs/B", None),
        ("errors A", "outputs/A"),
        ("errors AA/a.json", None),
        ("compare A C", "outputs/A"),
        ("coords C", "outputs/C"),
        ("score outputs/A C", "outputs/C"),
        ("leaderboard outputs/D", "outputs/A"),
    ],
)
def test_no_run_is_suggested_that_is_typed_already(
    line: str, near: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("A", "C"):
        (tmp_path / "outputs" / f"Model-{name}").mkdir(parents=True)
    line = re.sub(r"\b([ABCD])(?=[ /=]|$)", r"Model-\1", line)
    said = refusal(line, capsys)
    assert "does not exist" in said
    if near is None:
        assert "did you mean" not in said
    else:
        meant = re.search(r"did you mean (\S+)\?", said)
        assert meant
        assert meant[1] not in line.split()
        assert meant[1] == re.sub(r"([AC])$", r"Model-\1", near)
