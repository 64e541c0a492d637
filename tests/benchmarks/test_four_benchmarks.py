"""One sweep over all benchmarks of the house, killed and gone on with: the same files."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from chat_server import Answer, Asked, ChatServer, completion
from engine_fakes import answered_keys, files
from host_runs import RUN_FINDIT, environment, kill_midway, metric_values, predictions, run
from refl4_stand_in import prepared

from vlmeval_findit.benchmarks import benchmark_of, benchmarks

pytestmark = pytest.mark.slow

FINDIT = "FindIt_Scenes_mini_xyxy_json_bbox_2d"
REF_L4 = "FindIt_RefL4Full_val_xyxy_json_bbox_2d"
VP_BENCH = "VPBench_Scenes_mini"
SELF_RETRIEVAL = "SelfRetrieval_Scenes_mini"
NAMES = (FINDIT, REF_L4, VP_BENCH, SELF_RETRIEVAL)

MODEL = "Qwen3-VL-8B"
ROWS = 8
CONFIG = f"models: [{MODEL}]\ndatasets: [{', '.join(NAMES)}]\nlimit: {ROWS}\n"
CALLS = ROWS * len(NAMES)
SECONDS = 0.05  # A call takes so long that a kill falls between the first and the last


def in_kind(asked: Asked, number: int) -> Answer:
    """The same words to the same request, of the kind that it asks for."""
    words = "\n".join(
        part["text"]
        for message in asked.body["messages"]
        for part in message["content"]
        if part["type"] == "text"
    )
    if "right_image" in words:
        reply = '{"left_image": "a red circle", "right_image": "a blue square"}'
    elif "\nA. " in words:
        reply = f"The answer is {'ABCD'[len(words) % 4]}."
    else:
        reply = f'[{{"bbox_2d": [10, 20, {200 + len(words) % 700}, 900]}}]'
    return Answer(completion(reply).body, delay=SECONDS)


@pytest.fixture(scope="module")
def lmu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch", reason="self-retrieval is scored by an encoder: pip install torch")
    return prepared(tmp_path_factory.mktemp("lmu"), tmp_path_factory.mktemp("parquet"))


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with ChatServer(in_kind) as server:
        yield server


def sweep_in(folder: Path, server: ChatServer) -> list[str]:
    """The command of the sweep, its file in a folder."""
    (folder / "sweep.yaml").write_text(CONFIG)
    address = server.url.replace("/api/v1", "/v1")
    return [*RUN_FINDIT, "sweep", "sweep.yaml", "--base-url", address]


def results(folder: Path) -> dict[str, str]:
    """All files of a sweep but its journal, whose lines are in any order."""
    return {n: text for n, text in files(folder / "outputs").items() if "calls.jsonl" not in n}


def test_a_killed_sweep_resumes_to_the_same_files(
    lmu: Path, server: ChatServer, tmp_path: Path
) -> None:
    asked = [benchmark_of(name).name for name in NAMES]
    assert sorted(asked) == sorted(each.name for each in benchmarks()), "one is left out"
    quiet, killed = tmp_path / "quiet", tmp_path / "killed"
    env = environment(lmu)
    for folder, kills in ((quiet, 0), (killed, 2)):
        folder.mkdir()
        command = sweep_in(folder, server)
        for answers in sorted(random.Random(9).sample(range(2, CALLS - 6), kills)):
            assert kill_midway(command, folder, env, answers) < CALLS
        done = run(command[:1], command[1:], folder, env)
        assert done.returncode == 0, done.stdout

    keys = answered_keys(killed / "outputs" / "calls.jsonl")
    assert len(keys) == len(set(keys)) == CALLS, "no finished call was repeated"
    actual, expected = results(killed), results(quiet)
    assert sum(name.endswith("_score.csv") for name in expected) == len(NAMES)
    assert actual.keys() == expected.keys()
    assert actual == expected
    for name in NAMES:
        assert metric_values(predictions(quiet / "outputs", MODEL, name))

    # The boards of all four, twice: the second writes the same.
    boards = []
    for _ in range(2):
        for part in ("leaderboard", "report"):
            out = ["--out", str(quiet / ("board" if part == "leaderboard" else "report.html"))]
            done = run(RUN_FINDIT, [part, "outputs", *out], quiet, env)
            assert done.returncode == 0, done.stdout
        boards.append((quiet / "board" / "leaderboard.md").read_text())
    assert boards[0] == boards[1]
    for name in ("Ref-L4", "VP-Bench", "Self-Retrieval"):
        assert MODEL in (quiet / "board" / name / "leaderboard.md").read_text()
        assert (quiet / f"report-{name}.html").stat().st_size > 10_000
    letters = (quiet / "board" / "VP-Bench" / "leaderboard.md").read_text()
    assert "## Hallucination rate (lower is better)" in letters
    assert "MIA" not in letters, "stage 2 was not asked"
