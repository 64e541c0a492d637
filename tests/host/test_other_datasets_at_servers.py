"""What is typed of a model at a server answers every dataset, or is refused before a call."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from chat_server import ChatServer, completion
from PIL import Image

from vlmeval_findit.cli import main

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("host")]

OURS = "FindIt_Demo_xyxy_json"
THEIRS = "Colours"  # a table of its user's, which VLMEvalKit asks
KINDS: Mapping[str, list[str]] = {
    "theirs": [THEIRS],
    "ours before theirs": [OURS, THEIRS],
    "theirs before ours": [THEIRS, OURS],
}
MODEL = ["--model", "Qwen3-VL-8B=m"]


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(lambda asked, number: completion("A", model="gpt-4o-mini")) as started:
        yield started


@pytest.fixture(autouse=True)
def folder(demo_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMUData", str(demo_data))
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.chdir(tmp_path)
    picture = BytesIO()
    Image.new("RGB", (64, 48), "red").save(picture, "PNG")
    row = f"0\tWhich colour?\tred\tblue\tA\t{base64.b64encode(picture.getvalue()).decode()}"
    table = demo_data / f"{THEIRS}.tsv"
    table.write_text(f"index\tquestion\tA\tB\tanswer\timage\n{row}\n")


class Started(NamedTuple):
    """What VLMEvalKit's runner is started with, and the model that it would ask."""

    words: list[str]
    model: Any


def named(model: str) -> dict[str, Any]:
    """Return what VLMEvalKit gives to a job, by which it asks a model of its table."""
    return {"model": model, "model_name": model, "dataset": SimpleNamespace(dump_image=None)}


def started(monkeypatch: pytest.MonkeyPatch, model: str = "Qwen3-VL-8B") -> list[Started]:
    """Return what VLMEvalKit's runner is started with; it is not started."""
    from vlmeval_findit import host as host_room

    starts: list[Started] = []

    def run_host(runner: Any, words: list[str], work_dir: Path) -> None:
        starts.append(Started(words, host_room.model_for_others(named(model))))

    monkeypatch.setattr(host_room, "run_host", run_host)
    return starts


def typed(datasets: list[str], *more: str) -> list[str]:
    return ["run", "--data", *datasets, *MODEL, "--mode", "infer", "--work-dir", "out", *more]


@pytest.mark.parametrize("datasets", KINDS)
@pytest.mark.parametrize("twice", [1, 2])
def test_the_entry_answers_all_datasets(
    datasets: str, twice: int, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = started(monkeypatch)
    more = ["--temperature", "0.5", "--header", "x-team: a", "--extra-body", '{"top_k": 3}']
    for _ in range(twice):
        main(typed(KINDS[datasets], "--base-url", server.url, *more))
    assert len(starts) == twice
    words, model = starts[-1]
    assert not {"--base-url", "--temperature", "--extra-body"} & {*words}
    assert model.generate([{"type": "text", "value": "Which colour?"}], dataset=THEIRS) == "A"
    (asked,) = server.asked
    body = {name: value for name, value in asked.body.items() if name != "messages"}
    assert body == {"model": "m", "max_tokens": 768, "temperature": 0.5, "top_k": 3}
    assert asked.headers["x-team"] == "a"


def test_another_model_that_answers_is_told_once(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from vlmeval_findit.host import api

    told: list[str] = []
    monkeypatch.setattr(api.log, "warning", lambda text, *words: told.append(text % words))
    starts = started(monkeypatch)
    main(typed([THEIRS], "--base-url", server.url))
    model = starts[0].model
    for _ in range(2):
        model.generate("hello", dataset=THEIRS)
    assert told == ["Qwen3-VL-8B: answered by gpt-4o-mini; asked was m"]


@pytest.mark.parametrize("entry", [["Qwen3-VL-8B"], ["Mine=m", "--like", "Qwen3-VL"]])
def test_nothing_of_a_command_is_left_for_the_next(
    entry: list[str], server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vlmeval.config import supported_VLM

    from vlmeval_findit.host import model_for_others

    model = entry[0].partition("=")[0]
    starts = started(monkeypatch, model)
    before = dict(supported_VLM)
    at_server = ["--base-url", server.url, "--mode", "infer"]
    main(["run", "--data", THEIRS, "--model", *entry, *at_server])
    (start,) = starts
    assert start.model != model, "made as the command says"
    assert supported_VLM == before
    assert model_for_others(named(model)) == model, "made as VLMEvalKit makes it"


# Flags, and words of the refusal: of VLMEvalKit's data alone, and beside FindIt's (None: taken)
REFUSED: Mapping[str, tuple[str, str | None]] = {
    "--space unit": ("--space is for FindIt's datasets", None),
    "--system text.txt": ("--system is for FindIt's datasets", "run FindIt's datasets and others"),
    "--prompt-template text.txt": ("--prompt-template is for FindIt's datasets", None),
    "--logprobs": ("--logprobs is for FindIt's datasets", None),
    "--dtype half": ("--dtype has no effect", "--dtype has no effect"),
    "--top-k 3": ("--top-k has no effect", "--top-k has no effect"),
    "--max-tokens 9": ("--max-tokens has no effect", "--max-tokens has no effect"),
    "--temperature -1": ("should be a number, at least 0", "should be a number, at least 0"),
    """--extra-body {"temprature":1}""": ("did you mean temperature?", "did you mean temperature?"),
    "--like Qwen9": ("Qwen9", "Qwen9"),
    "--provider opnai": ("opnai", "opnai"),
}


@pytest.mark.parametrize("flag", REFUSED)
@pytest.mark.parametrize("place", ["alone", "beside"])
def test_a_flag_acts_on_all_or_is_refused(
    flag: str,
    place: str,
    server: ChatServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = started(monkeypatch)
    Path("text.txt").write_text("Look twice.")
    words = REFUSED[flag][0 if place == "alone" else 1]
    if words is None:
        return
    datasets = [THEIRS] if place == "alone" else [OURS, THEIRS]
    assert main(typed(datasets, "--base-url", server.url, *flag.split(" "))) == 2
    assert words in capsys.readouterr().err
    assert not lines
    assert not server.asked


@pytest.mark.parametrize("name", ["MMBench_Video_1fps_nopack", "MVBench_8frame"])
def test_videos_are_refused_at_servers(
    name: str,
    server: ChatServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = started(monkeypatch)
    assert main(typed([name], "--base-url", server.url)) == 2
    assert "these are videos" in capsys.readouterr().err
    assert not lines


def test_a_baseline_is_refused_beside_other_datasets(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = started(monkeypatch)
    line = ["run", "--data", OURS, THEIRS, "--model", "FindIt-Nano", "FullImage"]
    assert main([*line, "--work-dir", "out"]) == 2
    assert "FullImage answers FindIt's queries only" in capsys.readouterr().err
    assert not lines
