"""FindIt's models answer single questions: datasets of conversations are refused before a call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas
import pytest
from chat_server import ChatServer, completion

from vlmeval_findit.cli import main

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("host")]

OURS = "FindIt_Demo_xyxy_json"
TURNS = "MMDU"
WORDS = "answers single questions, and these are conversations"
MODELS: Mapping[str, list[str]] = {
    "here": ["FindIt-Nano"],
    "at a server": ["Qwen3-VL-8B=m", "--base-url", "SERVER"],
    "at a provider": ["GPT-5.4", "--provider", "openai", "--key", "some-long-key"],
    "at OpenRouter": ["GPT-5.4"],
}
ENTRIES: Mapping[str, Mapping[str, Any]] = {
    "here": {"class": "FindItLocalModel", "like": "FindIt-Nano"},
    "a baseline": {"class": "FindItBaseline"},
    "at a server": {"class": "FindItServer", "model": "Qwen3-VL-8B", "base_url": "SERVER"},
    "at a provider": {
        "class": "FindItProvider",
        "model": "GPT-5.4",
        "provider": "openai",
        "key": "some-long-key",
    },
}


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(lambda asked, number: completion("A")) as started:
        yield started


@pytest.fixture(autouse=True)
def folder(demo_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    from vlmeval_findit.host import OUTCOMES

    monkeypatch.setenv("LMUData", str(demo_data))
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.setenv("OPENROUTER_API_KEY", "some-long-key")
    monkeypatch.chdir(tmp_path)
    yield
    OUTCOMES.clear()


@pytest.mark.parametrize("others", [[], [OURS]])
@pytest.mark.parametrize("model", MODELS)
def test_a_command_refuses_conversations(
    model: str,
    others: list[str],
    server: ChatServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from vlmeval_findit import host

    monkeypatch.setattr(host, "run_host", lambda *words: pytest.fail("it was started"))
    words = [word.replace("SERVER", server.url) for word in MODELS[model]]
    line = ["run", "--data", *others, TURNS, "--model", *words, "--work-dir", "out"]
    assert main(line) == 2
    said = capsys.readouterr().err
    assert f"{TURNS}: " in said
    assert WORDS in said
    assert f"python -m vlmeval --data {TURNS} --model MODEL" in said
    assert not server.asked
    assert not list(Path("out").rglob("*.json*"))


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_config_refuses_conversations(entry: str, server: ChatServer) -> None:
    from vlmeval_findit.host import check_runs

    data = {"ours": {"class": "FindItObjectDetection", "dataset": OURS}}
    data["turns"] = {"class": "MMDUDataset", "dataset": TURNS}
    text = json.dumps({"model": {"mine": ENTRIES[entry]}, "data": data})
    Path("c.json").write_text(text.replace("SERVER", server.url))
    with pytest.raises(ValueError, match=rf"^c\.json: model\.mine: {TURNS}: mine {WORDS}"):
        check_runs(["--config", "c.json"])
    assert not server.asked


def test_a_config_of_vlmevalkit_holds_conversations() -> None:
    from vlmeval_findit.host import check_runs

    data = {"turns": {"class": "MMDUDataset", "dataset": TURNS}}
    model = {"theirs": {"class": "GPT4V", "model": "gpt-4o", "key": "some-long-key"}}
    Path("c.json").write_text(json.dumps({"model": model, "data": data}))
    check_runs(["--config", "c.json"])


# --- VLMEvalKit's jobs, whoever starts them -------------------------------------------------------


class Rows(SimpleNamespace):
    """What VLMEvalKit's jobs use of a dataset of conversations."""

    TYPE = "MT"

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, row: int) -> Any:
        return self.data.iloc[row]

    def build_prompt(self, row: Any) -> Any:
        return [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": ""}]


def rows() -> Rows:
    data = pandas.DataFrame({"index": range(2), "question": "Where?"})
    return Rows(dataset_name=TURNS, data=data)


def job(model: Any) -> None:
    from vlmeval.inference_mt import infer_data_job_mt

    infer_data_job_mt(model, ".", "m", rows(), api_nproc=1)


def api_mode(model: Any) -> None:
    from vlmeval.inference_api import APIEvalPipeline, DatasetConfig

    config = DatasetConfig(
        dataset_name=TURNS,
        dataset_obj=rows(),
        dataset_type="mt",
        model_name="m",
        model_obj=model,
        work_dir=".",
        result_file=f"m_{TURNS}.xlsx",
        judge_kwargs={},
    )
    pipeline = APIEvalPipeline([config], concurrency=1, run_eval=False)

    async def no_monitor() -> None: ...

    pipeline._monitor_loop = no_monitor  # It sleeps
    asyncio.run(pipeline.run())


JOBS: Mapping[str, Callable[[Any], None]] = {"job": job, "--api-mode": api_mode}


@pytest.mark.parametrize("ask", JOBS)
def test_a_job_refuses_conversations(ask: str, server: ChatServer) -> None:
    from vlmeval_findit.host import api

    with pytest.raises(ValueError, match=WORDS):
        JOBS[ask](api.FindItServer("m", server.url, like="Qwen3-VL"))
    assert not server.asked
    assert not [path.name for path in Path().glob("m_*")]


@pytest.mark.parametrize("ask", JOBS)
def test_another_model_holds_conversations(ask: str) -> None:
    class Theirs:
        is_api = True
        calls = 0

        def chat_inner(self, *_: Any, **__: Any) -> str:
            raise NotImplementedError

        def chat(self, messages: Any, **_: Any) -> str:
            self.calls += 1
            return "A"

    model = Theirs()
    JOBS[ask](model)
    assert model.calls == 2
