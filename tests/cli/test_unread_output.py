"""Who reads the screen changes nothing: ``findit … | head -1`` ends and writes as without it."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import pytest
from chat_server import ChatServer, completion
from few_fast import few_fast
from fresh_copy import FreshCopy
from refusal_files import make_folder
from scored_runs import World, speaking
from test_watch_checkpoints import DATA, FLAGS, add_checkpoint

from vlmeval_findit.cli import COMMANDS, Commands, command_base, main, watch_checkpoints
from vlmeval_findit.core import plugin_rows
from vlmeval_findit.sweeps import Checkpoint

GOOD = "outputs/Good_FindIt_Pascal_xyxy_json_bbox_2d.json"
POOR = "outputs/Poor_FindIt_Pascal_xyxy_json_bbox_2d.json"
BOX = '[{"bbox": [0.1, 0.2, 0.5, 0.6]}]'
ASK = "--model mine --space unit --base-url SERVER"

LINES = {
    "run": f"{ASK} --data FindIt_Demo_xyxy_json --limit 2 --work-dir there",
    "search": f"{ASK} --data Demo --limit 1 --out formats.yaml",
    "sweep": "sweeps/mine.yaml --base-url SERVER --limit 2 --work-dir there",
    "probe": f"{ASK} --limit 20 --work-dir there",
    "reproduce": "FindIt-Nano --limit 5 --json out.json",
    "figures": "--template figures.yaml",
    "data import": "data/csv/good.csv --image-root data/images --name Mine",
    "data stats": "FindIt_Demo_xyxy_json --json out.json",
    "data remove": "Known",
    "data reviews": "reviews/voted.jsonl --out new.jsonl --json out.json",
    "score": GOOD,
    "leaderboard": "outputs --out board",
    "compare": f"{GOOD} {POOR} --show page.html --json out.json",
    "errors": "outputs --json out.json",
    "audit": "outputs --review page.html --json out.json",
    "calibration": "sampled --json out.json",
    "ap": "outputs --json out.json",
    "coords": f"{GOOD} --json out.json",
    "report": "outputs --out page.html",
    "export": "outputs --to coco --out there",
    "check": "FindIt_Demo_xyxy_json --out there",
}
"""Command -> what is typed behind it: it prints, and writes files."""

WRITE_NOTHING = {"data list", "data check", "samples", "formats", "models", "plugins"}

ELSEWHERE = {
    "demo": "it is run, search, report",
    "data show": "it makes the table of a dataset that lacks it, as run does",
    "data get": "as data import, of files that are downloaded",
    "watch-checkpoints": "it never ends: see below",
}

SLOW = ("run", "search", "sweep", "probe", "reproduce", "compare", "report", "leaderboard", "check")

WITH_TIMES = ("search", "reproduce", "audit", "report")
"""Their files state when they were made, or how long that took."""


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with ChatServer(lambda asked, number: completion(BOX)) as running:
        yield running


@pytest.fixture(scope="module")
def folder(server: ChatServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        make_folder(made, patch)
        mine = "models: [{name: mine, space: unit}]\ndatasets: FindIt_Demo_xyxy_json"
        (made / "sweeps/mine.yaml").write_text(mine)
        (made / "lmu").mkdir(exist_ok=True)
        patch.setenv("LMUData", str(made / "lmu"))
        line = "data import data/csv/good.csv --image-root data/images --name Known"
        assert main(line.split()) == 0
        line = f"run {LINES['run']} --samples 2 --temperature 0.5".replace("there", "sampled")
        assert main(line.replace("SERVER", server.url).split()) == 0
        yield made
    plugin_rows.forget()


@pytest.fixture(scope="module")
def copy(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> FreshCopy:
    return FreshCopy(folder, tmp_path_factory.mktemp("typed") / "here")


@pytest.fixture
def here(copy: FreshCopy, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LMUData", str(copy.folder / "lmu"))
    monkeypatch.setenv("FINDIT_TABLES", str(copy.folder))
    monkeypatch.setenv("FINDIT_IMAGES", f"Pascal={copy.folder / 'pictures'}")
    monkeypatch.chdir(copy.folder)
    return copy.folder


def typed(words: Sequence[str], monkeypatch: pytest.MonkeyPatch, is_read: bool) -> int:
    """Type a command whose output goes to a pipe, and return its status."""
    reader, writer = os.pipe()
    if is_read:
        # A file takes all that is printed.
        os.close(writer)
        writer = os.open("../printed.txt", os.O_WRONLY | os.O_CREAT)
    os.close(reader)
    with monkeypatch.context() as patch:
        for name in ("stdout", "stderr"):
            patch.setattr(sys, name, io.TextIOWrapper(io.FileIO(writer, "wb", closefd=False)))
        status = main(words)
    os.close(writer)
    return status


def _written(copy: FreshCopy, words: Sequence[str], with_times: bool) -> dict[str, bytes | None]:
    """Return the files that were written; those that a command names, and have no times, whole."""
    written: dict[str, bytes | None] = {}
    for path in copy.changed():
        is_named = path in words and (copy.folder / path).is_file() and not with_times
        written[path] = (copy.folder / path).read_bytes() if is_named else None
    return written


@pytest.mark.parametrize(
    "command",
    [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in LINES],
)
def test_files_and_status_are_the_same_without_a_reader(
    command: str,
    here: Path,
    copy: FreshCopy,
    server: ChatServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = shlex.split(f"{command} {LINES[command]}".replace("SERVER", server.url))
    outcomes = []
    for is_read in (True, False):
        copy.put_back()
        status = typed(words, monkeypatch, is_read)
        outcomes.append((status, _written(copy, words, command in WITH_TIMES)))
    assert outcomes[0][1], "nothing was written"
    assert outcomes[0] == outcomes[1]


def test_every_command_that_writes_has_a_line() -> None:
    assert {*LINES, *WRITE_NOTHING, *ELSEWHERE} == {*COMMANDS}
    for name in COMMANDS:
        command: click.Command = Commands("findit")
        for word in name.split():
            assert isinstance(command, click.Group)
            command = command.get_command(click.Context(command), word) or command
        for param in command.params:
            if param.type in (command_base.WRITTEN, command_base.WRITTEN_FILE):
                assert any(flag in LINES[name].split() for flag in param.opts), (name, param.opts)


@pytest.mark.parametrize(
    ("buffered", "both", "ends"),
    few_fast([("", "", "head -1"), ("", "2>&1", "true"), ("-u", "", "true")], 1),
)
def test_a_shell_is_told_what_came_of_it(buffered: str, both: str, ends: str) -> None:
    typed = f"{shlex.quote(sys.executable)} {buffered} -m vlmeval_findit formats {both}"
    shell = f"{typed} | {ends} > /dev/null; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_output_that_is_closed_is_no_error() -> None:
    typed = [sys.executable, "-m", "vlmeval_findit", "formats"]
    shell = f"{shlex.join(typed)} >&-; echo $? >&2"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "0\n")


def test_a_command_that_never_ends_does_without_a_reader(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluated = []

    def evaluate(checkpoint: Checkpoint, name: str, flags: Sequence[str]) -> int:
        evaluated.append(checkpoint.step)
        model = checkpoint.model(name)
        world.predict(model, DATA, speaking(DATA, 0.5), folder=f"../outputs/{model}")
        return 0

    def wait(_: float) -> None:
        raise AssertionError("nobody reads it")

    monkeypatch.chdir(world.folder)
    monkeypatch.setattr(watch_checkpoints, "evaluate_checkpoint", evaluate)
    monkeypatch.setattr(watch_checkpoints.time, "sleep", wait)
    for step in (20, 10):
        add_checkpoint(world.folder / "training", step)
    assert typed(["watch-checkpoints", "training", *FLAGS], monkeypatch, is_read=False) == 130
    assert evaluated == [10, 20]
