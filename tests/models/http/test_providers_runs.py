"""Whole runs at providers with keys of one's own: the host, ``search``, ``sweep``, ``probe``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, Script, completion
from host_runs import environment, metric_values, predictions, require_host, run
from perfect_answers import content, perfect_answers
from provider_servers import (
    ANTHROPIC,
    GOOGLE,
    KEY,
    OPENAI,
    PROTOCOLS,
    AnswerOf,
    Protocol,
    address,
)

from vlmeval_findit.cli import main
from vlmeval_findit.models.http.providers import table
from vlmeval_findit.models.model_table import find_model

DATA = "FindIt_Demo_xyxy_json"


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for row in table.PROVIDERS.values():
        for name in (*row.keys, row.address_variable):
            monkeypatch.delenv(name, raising=False)
    for protocol in PROTOCOLS:
        monkeypatch.setenv(protocol.variable, KEY)


def one_box(parts: list[dict[str, Any]]) -> str:
    """The same answer to the same words."""
    words = " ".join(part["text"] for part in parts if part["type"] == "text")
    return f'[{{"bbox_2d": [20, 30, {500 + 37 * len(words) % 500}, 900], "label": "cat"}}]'


def plain(said: AnswerOf) -> Script:
    """A script of an OpenAI-compatible server."""
    return lambda asked, number: completion(said(asked.body["messages"][0]["content"]))


def no_secret(*folders: Path) -> None:
    for folder in folders:
        for path in folder.rglob("*"):
            assert not path.is_file() or b"SECRET" not in path.read_bytes(), path


def search(folder: Path, *flags: str) -> list[str]:
    folder.mkdir(exist_ok=True)
    places = {"--work-dir": "runs", "--journal": "calls.jsonl", "--out": "best.yaml"}
    where = [word for flag, name in places.items() for word in (flag, str(folder / name))]
    return ["search", "--data", "Demo", "--limit", "1", *flags, *where]


def test_going_on_with_another_provider_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--model", "GPT-5.4=gpt-5.4"]
    with ChatServer(OPENAI.answering(one_box)) as server:
        where = ["--provider", "openai", "--base-url", address(server, OPENAI)]
        assert main(search(tmp_path, *flags, *where)) == 0
        asked = len(server.asked)
    with ChatServer(plain(one_box)) as server:
        assert main(search(tmp_path, "--model", "GPT-5.4", "--base-url", server.url)) != 0
        assert not server.asked
    assert "class" in capsys.readouterr().err
    with ChatServer(plain(one_box)) as server:
        served = ["--model", "GPT-5.4=gpt-5.4", "--base-url", server.url]
        elsewhere = ["--work-dir", str(tmp_path / "other runs")]
        assert main([*search(tmp_path, *served), *elsewhere]) == 0
        assert len(server.asked) == asked, "Another deployment's answers are not taken for its own."
    with ChatServer(ANTHROPIC.answering(one_box)) as server:
        where = ["--provider", "anthropic", "--base-url", address(server, ANTHROPIC)]
        assert main(search(tmp_path, "--model", "GPT-5.4=claude-x", *where)) != 0
        assert not server.asked
    assert "anthropic" in capsys.readouterr().err


MIXED = """
models:
  - {{name: GPT-5.4, provider: openai}}
  - {{name: Mine, provider: google, served: gemini-2.5-flash, like: Gemini 2.5 Flash}}
  - {{name: GPT-6-Astra, provider: openai}}
datasets: [Demo]
representations: [xyxy]
outputs: json
limit: 2
work_dir: {folder}
"""


def test_a_sweep_may_ask_several_providers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(
        MIXED.format(folder=tmp_path / "runs", here="{name: GPT-6-Astra, provider: openai}")
    )
    with (
        ChatServer(OPENAI.answering(one_box)) as one,
        ChatServer(GOOGLE.answering(one_box)) as two,
    ):
        monkeypatch.setenv("OPENAI_BASE_URL", address(one, OPENAI))
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", address(two, GOOGLE))
        assert main(["sweep", str(path), "--dry-run"]) == 0
        assert "GPT-5.4 over HTTP: 2 calls" in capsys.readouterr().out
        assert (len(one.asked), len(two.asked)) == (0, 0)
        assert main(["sweep", str(path)]) == 0
        assert (len(one.asked), len(two.asked)) == (4, 2)
        assert {asked.body["model"] for asked in one.asked} == {"gpt-5.4", "gpt-6-astra"}
        capsys.readouterr()
        assert main(["sweep", str(path), "--provider", "openai"]) == 2
        assert "Mine is to be asked at google" in capsys.readouterr().err
    identity = next((tmp_path / "runs" / "Mine").glob("*_identity.json"))
    who = json.loads(identity.read_text())["answering"]
    assert (who["kind"], who["checkpoint"]) == ("provider google", "gemini-2.5-flash")
    assert who["endpoint"] == f"{address(two, GOOGLE)}/v1beta"
    no_secret(tmp_path)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("search --model GPT-5.4 --provider opnai", "did you mean openai"),
        ("search --model Claude-Opus-5.5 --provider openai", "NAME_AT_OPENAI"),
        ("search --data Demo --model Qwen2.5-VL=q --provider openai", "min_pixels"),
        ("search --model Unknown=q --provider openai", "no model 'Unknown'"),
        ("search --model GPT-6-Astra --provider openai --temperature 1", "takes none at openai"),
        ("search --model GPT-5.4 --provider openai --batch anthropic", "is another's"),
        ("search --model Gemini-2.5-Flash --provider google --batch openai", "is another's"),
        ("search --model GPT-5.4 --provider openai --executor ray", "--executor has no effect"),
        ("search --model GPT-5.4 --provider openai --base-url a:8000", "should begin with http"),
        ("search --model GPT-5.4 --provider openai --base-url http://a?k=1", "nor a query"),
        ("probe --model GPT-5.4 --provider opnai", "did you mean openai"),
        (f"--data {DATA} --model GPT-5.4 --provider opnai", "did you mean openai"),
        (f"--data {DATA} --model Opus --provider anthropic", "NAME_AT_ANTHROPIC"),
        (
            f"--data {DATA} --model GPT-5.4 --provider openai --dry-run --like x",
            "--like: no model 'x'",
        ),
        ("--data MMBench --model GPT-5.4 --provider openai", "--provider is for FindIt's"),
        (f"--data {DATA} MMBench --model GPT-5.4 --provider openai", "apart"),
        (f"--data {DATA} MMBench --model FindIt-Nano --temperature 1", "apart"),
    ],
)
def test_what_contradicts_is_refused_before_the_first_call(
    command: str,
    why: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # no outputs/ of before, where a finished sweep is looked for first
    if command.startswith("--"):
        require_host()
    assert main(command.split()) == 2
    assert why in capsys.readouterr().err


# --- VLMEvalKit -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lmu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    require_host()
    folder = tmp_path_factory.mktemp("lmu")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMUData", str(folder))
        yield folder


def knowing(protocol: Protocol) -> AnswerOf:
    """Every third answer is perfect, the others one box."""
    row = find_model(protocol.model)
    assert row is not None
    assert row.api is not None
    detail = row.api.image_detail
    perfect = perfect_answers(protocol.model, [DATA], "openrouter")
    third = dict(list(perfect.items())[::3])

    def said(parts: list[dict[str, Any]]) -> str:
        shown = [dict(part) for part in parts]
        for part in shown:
            if detail and part["type"] == "image_url":
                part["image_url"] = {**part["image_url"], "detail": detail}
        key = content({"messages": [{"role": "user", "content": shown}]})
        assert key in perfect, "Texts, pictures and their places are those of OpenRouter's runs."
        return third.get(key) or one_box(parts)

    return said


IN_ONE_PROCESS = """
import json, sys
from vlmeval_findit.cli import main
for command in json.loads(sys.argv[1]):
    status = main(command)
    print("status", status)
"""
"""VLMEvalKit takes seconds to import."""


@pytest.mark.slow
@pytest.mark.host
def test_the_host_scores_as_over_openrouter(lmu: Path, tmp_path: Path) -> None:
    with ExitStack() as stack:
        said = {protocol: knowing(protocol) for protocol in PROTOCOLS}
        where = {}
        for protocol in PROTOCOLS:
            server = stack.enter_context(ChatServer(protocol.answering(said[protocol])))
            where[protocol.provider] = address(server, protocol)
        through = stack.enter_context(ChatServer(plain(said[OPENAI])))
        entry = {"class": "FindItProvider", "model": GOOGLE.model, "provider": "google"}
        data = {DATA: {"class": "FindItObjectDetection", "dataset": DATA}}
        config = tmp_path / "config.json"
        models = {GOOGLE.model: {**entry, "base_url": where["google"], "max_usd": 5}}
        config.write_text(json.dumps({"model": models, "data": data}))
        asking = ["--limit", "6", "--data", DATA, "--model"]
        commands = [[*asking, OPENAI.model, "--work-dir", "openrouter"]]
        commands.append(["--config", str(config), "--limit", "6"])
        for one in (OPENAI, ANTHROPIC):
            own = ["--provider", one.provider, "--base-url", where[one.provider]]
            commands.append([*asking, one.model, *own, "--max-usd", "5"])
        env = environment(lmu, OPENROUTER_API_KEY=KEY, OPENROUTER_BASE_URL=through.url)
        done = run(["-c", IN_ONE_PROCESS], [json.dumps(commands)], tmp_path, env)
    assert done.stdout.count("status 0") == 4, done.stdout
    assert "SECRET" not in done.stdout
    assert "HTTP Request" not in done.stdout, "The packages say nothing of their own."
    assert "spent: $" in done.stdout
    expected = metric_values(predictions(tmp_path / "openrouter", OPENAI.model, DATA))
    assert 0 < expected["f1"] < 100
    assert metric_values(predictions(tmp_path / "outputs", OPENAI.model, DATA)) == expected
    for protocol in PROTOCOLS:
        path = predictions(tmp_path / "outputs", protocol.model, DATA)
        assert metric_values(path)["f1"] > 0
        who = json.loads(path.with_name(f"{path.stem}_identity.json").read_text())["answering"]
        assert who["kind"] == f"provider {protocol.provider}"
        assert who["endpoint"].startswith(where[protocol.provider])
        rows = json.loads(path.read_text())
        records = [json.loads(row["extra_records"])["findit"] for row in rows]
        assert all(one["call"]["cost_from"] for one in records)
    no_secret(tmp_path)
