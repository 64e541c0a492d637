"""``--prompts`` means the same in every command that asks, and is recorded as the variable is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chat_server import ChatServer

from vlmeval_findit.cli import main
from vlmeval_findit.protocol import PROMPTS_VARIABLE

WORDS = "qwen3-vl-1"
ONE = "FindIt_Demo_refexp_xyxy_json_bbox_2d"  # a question that these words can ask
OTHER = "FindIt_Demo_xyxy_json"  # one that they cannot
ASKS = ("run", "run --samples", "sweep", "search", "probe")
# A search asks in formats in which a family has no words
ASKS_IN_ONE_FORMAT = ("run", "run --samples", "sweep")


def typed(command: str, dataset: str) -> list[str]:
    Path("sweep.yaml").write_text(json.dumps({"models": ["Qwen3-VL"], "datasets": [dataset]}))
    model = ["--model", "Qwen3-VL", "--limit"]
    run = ["run", "--data", dataset, *model, "1"]
    return {
        "run": run,
        "run --samples": [*run, "--samples", "2", "--temperature", "0.5"],
        "sweep": ["sweep", "sweep.yaml", "--limit", "1"],
        "search": ["search", "--data", dataset, *model, "1"],
        "probe": ["probe", *model, "20"],
    }[command]


@pytest.fixture(autouse=True)
def folder(demo_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMUData", str(demo_data))
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.setenv(PROMPTS_VARIABLE, "")  # a flag becomes a variable; it ends with the test
    monkeypatch.chdir(tmp_path)


def recorded(server: ChatServer, line: list[str], out: str) -> tuple[set[str], list[str]]:
    """Run a command twice; return the recorded prompt sets, and the texts that were asked."""
    before = len(server.asked)
    whole = [*line, "--base-url", server.url, "--work-dir", out]
    assert main(whole) == 0
    asked = server.asked[before:]
    assert main(whole) == 0
    assert server.asked[before:] == asked, "the second time nothing is left"
    records = [json.loads(path.read_text()) for path in Path(out).rglob("*_identity.json")]
    texts = [json.dumps(each.body["messages"]) for each in asked]
    return {each["prompts"] for each in records}, sorted(texts)


@pytest.mark.parametrize("command", ASKS_IN_ONE_FORMAT)
def test_the_flag_is_the_variable(
    command: str, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = typed(command, ONE)
    by_flag = recorded(server, [*line, "--prompts", WORDS], "flag")
    by_variable = recorded(server, line, "variable")
    monkeypatch.setenv(PROMPTS_VARIABLE, "")
    without = recorded(server, line, "without")
    assert by_flag == by_variable
    assert by_flag[0] == {WORDS}
    assert without[0] != {WORDS}
    assert without[1] != by_flag[1]


@pytest.mark.parametrize("command", ASKS)
@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
def test_words_that_cannot_ask_are_refused_before_a_call(
    command: str, dry: list[str], server: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    before = len(server.asked)
    line = [*typed(command, OTHER), *dry, "--prompts", WORDS, "--base-url", server.url]
    for _ in range(2):
        assert main([*line, "--work-dir", "out"]) == 2
        assert f"the prompt {WORDS} " in capsys.readouterr().err
    assert len(server.asked) == before
