"""Every flag of every command changes something: what is printed, written, asked or refused."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from chat_server import ChatServer, completion
from paths import ROOT
from refusal_files import make_folder

from vlmeval_findit.cli import COMMANDS, Commands, main
from vlmeval_findit.core import plugin_rows

GOOD = "outputs/Good_FindIt_Pascal_xyxy_json_bbox_2d.json"
POOR = "outputs/Poor_FindIt_Pascal_xyxy_json_bbox_2d.json"
IMPORT = "--image-root data/images --name Mine"
RUN = "run --data FindIt_Demo_xyxy_json --model mine --space unit --base-url SERVER --limit 2"

TYPED: dict[str, dict[str, list[str]]] = {
    "run": {
        RUN: [
            "--data FindIt_Demo_xywh_json", "--model other", "--mode infer", "--limit 1",
            "--work-dir elsewhere", """--judge-args '{"space": "pixels"}'""",
            "--image-root Demo=pictures", "--prompts qwen3-vl", "--like Qwen3-VL",
            "--space pixels", "--system system.txt", "--prompt-template template.txt",
            "--base-url http://127.0.0.1:1/v1", "--provider openai", "--key OTHER_KEY",
            "--header 'X-Team: a'", """--extra-body '{"top_k": 1}'""", "--temperature 0.5",
            "--batch-size 2", "--dtype float16", "--device cpu", "--serve vllm", "--gpus 0",
            "--tensor-parallel 2", "--serve-args '--seed 1'", "--max-usd 0.001",
            "--dry-run", "--logprobs", "nothing",
        ],
        f"{RUN} --dry-run": ["--prices 1,2"],
        f"{RUN} --temperature 0.5": ["--samples 2"],
    },
    "data list": {},
    "data get": {
        "data get": ["RefCOCO"],
        "data get RefCOCO": ["--from none"],
    },
    "data import": {
        "data import": ["data/csv/good.csv", "--sets"],
        f"data import data/csv/good.csv {IMPORT}": [
            "--set RefCOCO", "--name Other", "--image-root pictures", "--units fractions",
            "--frames 2", "--split val", "--only a", "--partial",
            "--ignore-class cat", "--drop-class cat", "--rename-class cat=tiger",
        ],
        f"data import data/lines/no_area.jsonl {IMPORT}": ["--leave-out-bad-boxes"],
        "data import data/csv/good.csv --image-root data/images --name Known": ["--replace"],
    },
    "data show": {
        "data show": ["FindIt_Demo_xywh_json"],
        "data show FindIt_Demo_xyxy_json": [
            "--index 2", "--model Qwen3-VL", "--system system.txt",
            "--prompt-template template.txt",
        ],
    },
    "data remove": {
        "data remove": ["Known"],
        "data remove Known": ["--work-dir none"],
    },
    "data reviews": {
        "data reviews": ["reviews/good.jsonl"],
        "data reviews reviews/voted.jsonl": [
            "--out joined.jsonl", "--data FindIt_Demo_xyxy_json", "--json out.json",
        ],
    },
    "data check": {"data check": ["Pascal"]},
    "score": {
        "score": ["outputs"],
        f"score {GOOD}": [
            "--data FindIt_Pascal_xywh_json", "--space pixels", "--convert",
            "--reviews reviews/voted.jsonl",
        ],
    },
    "leaderboard": {
        "leaderboard": ["outputs"],
        "leaderboard outputs": [
            "--out board", "--format xyxy_text", "--reviews reviews/voted.jsonl",
            "--style booktabs", "--best-marks",
        ],
    },
    "compare": {
        "compare": [GOOD],
        f"compare {GOOD}": [POOR],
        f"compare {GOOD} {POOR}": ["--show 1", "--reviews reviews/voted.jsonl", "--json out.json"],
    },
    "errors": {
        "errors": ["outputs"],
        "errors outputs": ["--by label", "--json out.json"],
        f"errors {GOOD}": [f"--against {POOR}"],
    },
    "audit": {
        "audit": ["outputs"],
        "audit outputs": [
            "--data FindIt_Demo_xyxy_json", "--top 1", "--review page.html",
            "--reviews reviews/voted.jsonl", "--json out.json",
        ],
    },
    "samples": {"samples": ["outputs"]},
    "calibration": {
        "calibration": [GOOD],
        f"calibration {GOOD}": ["--data FindIt_Pascal_xywh_json", "--space unit"],
        f"calibration {GOOD} --space unit": ["--force"],
    },
    "coords": {
        "coords": [GOOD],
        f"coords {GOOD}": ["--data FindIt_Pascal_xywh_json", "--space unit", "--json out.json"],
    },
    "report": {
        "report": ["outputs"],
        "report outputs": [
            "--out page.html", "--cards 1", "--compare Poor Good", "--format xyxy_text",
            "--reviews reviews/voted.jsonl", "--every 3",
        ],
        "report none.yaml": ["--watch"],
    },
    "export": {
        "export": ["outputs"],
        "export outputs": ["--to coco"],
        "export outputs --to coco": [
            "--out there", "--confidence minimum", "--licence mit", "--project mine",
            "--pictures 1", "--trainer trl", "--errors missed", "--right",
            "--formats none.yaml", "--yes-test-data",
        ],
    },
    "models": {"models": ["Qwen3-VL"]},
    "plugins": {},
    "check": {
        "check": ["Qwen3-VL"],
        "check FindIt-Nano": [
            "--data FindIt_Demo_xywh_json", "--like Qwen3-VL", "--system none.txt",
            "--prompt-template none.txt",
        ],
    },
}  # fmt: skip
"""Command -> what is typed without a flag -> the flags that change what comes of it."""

SHARED = {"--plugin", "--verbose", "--quiet"}
"""Options of every command: the same objects, which act before it does."""

ASKING = ("search", "sweep", "probe", "reproduce")
"""They have the options of ``run`` that say which model is asked, and how."""

SEEN_ELSEWHERE = {
    "analysis/test_calibration.py": ["calibration --json"],
    "benchmarks/refl4/test_refl4_command.py": ["data get --force"],
    "benchmarks/selfretrieval/test_selfretrieval_scoring.py": ["score --encoder"],
    "benchmarks/test_runs_under_vlmevalkit.py": ["run --reuse"],
    "cli/test_demo_command.py": ["demo --quick", "demo --work-dir"],
    "cli/test_early_checks.py": ["search --executor"],
    "cli/test_limited_runs.py": ["run --skip-missing-images"],
    "cli/test_reproduce.py": [
        "reproduce model",
        "reproduce --model",
        "reproduce --set",
        "reproduce --prompts",
        "reproduce --format",
        "reproduce --max-tokens",
        "reproduce --against",
        "reproduce --json",
    ],
    "cli/test_reproduce_against.py": ["reproduce --limit", "reproduce --seed"],
    "cli/test_run_at_servers.py": ["run --api-nproc", "run --force"],
    "cli/test_score_again.py": ["score --reads-like", "score --thought-marks"],
    "cli/test_watch_checkpoints.py": [
        "watch-checkpoints folder",
        "watch-checkpoints --data",
        "watch-checkpoints --name",
        "watch-checkpoints --once",
        "watch-checkpoints --until",
        "watch-checkpoints --to",
        "watch-checkpoints --work-dir",
        "watch-checkpoints rest",
    ],
    "cli/test_who_states_what.py": ["score --force", "coords --force"],
    "coords/test_probe_command.py": [
        "probe --model",
        "probe --format",
        "probe --limit",
    ],
    "data/custom/test_build.py": ["data import --skip-unreadable-images"],
    "data/custom/test_layouts.py": ["data import --voc-from"],
    "data/custom/test_stored_pixels.py": ["data import --exif"],
    "data/test_data_get.py": ["data get --no-images", "data get --limit"],
    "data/test_removal.py": ["data remove --yes"],
    "host/test_what_answers.py": ["run --timeout"],
    "models/http/test_providers_runs.py": ["search --batch", "sweep --batch"],
    "repository/test_cluster_files.py": [
        "sweep --executor",
        "probe --executor",
        "reproduce --executor",
    ],
    "scoring/test_check.py": ["check --from", "check --out", "check --encoder"],
    "sweeps/test_search_letters.py": [
        "search --model",
        "search --data",
        "search --marks",
        "search --out",
        "search --work-dir",
        "sweep --formats",
    ],
    "sweeps/test_sweep.py": [
        "search --limit",
        "search --journal",
        "sweep --limit",
        "sweep --work-dir",
        "sweep --journal",
    ],
    "sweeps/test_sweep_file.py": ["sweep config"],
    "data/custom/test_number_readings.py": ["data import --box"],
    "data/custom/test_one_truth.py": ["data import --clip-boxes"],
    "scoring/test_reply_layouts.py": [
        "score --min-score",
        "score --bbox",
        "score --leave-out-unknown",
    ],
    "data/test_set_statistics.py": ["data stats names", "data stats --json"],
}
"""Test -> the flags that it types and sees the effect of."""

NOT_SEEN = {
    "search --race": "races are tested below the command line: analysis/test_race.py",
    "search --replicas": "needs Ray or Slurm",
    "sweep --replicas": "needs Ray or Slurm",
    "probe --replicas": "needs Ray or Slurm",
    "reproduce --replicas": "needs Ray or Slurm",
    "probe --work-dir": "tests of probes write to the folder that is the default",
    "reproduce --work-dir": "tests of reproductions write to the folder that is the default",
    "data get --videos": "needs the published videos of a dataset",
    "data import --no-masks": "the COCO file of the small world has no masks",
    "data check --limit": "every image of the small world is there",
}
"""What no test types, and why."""


def command_of(name: str) -> click.Command:
    command: click.Command = Commands("findit")
    for word in name.split():
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word) or command
    return command


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with ChatServer(lambda asked, number: completion()) as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return runs, annotations and reviews, and a dataset that was imported."""
    made = tmp_path_factory.mktemp("flags")
    with pytest.MonkeyPatch.context() as patch:
        make_folder(made, patch)
        (made / "system.txt").write_text("Be short.")
        (made / "template.txt").write_text("{{ prompt }} Now.")
        (made / "lmu").mkdir(exist_ok=True)
        patch.setenv("LMUData", str(made / "lmu"))
        line = "data import data/csv/good.csv --image-root data/images --name Known"
        assert main(line.split()) == 0
        assert main(["data", "show", "FindIt_Demo_xyxy_json"]) == 0
        yield made
    plugin_rows.forget()


class Typist:
    """Types lines, each in its own copy of the folder."""

    def __init__(
        self, folder: Path, server: ChatServer, here: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self._folder, self._server, self._here, self._capsys = folder, server, here, capsys

    def facts(self, line: str) -> frozenset[str]:
        """Type a line; return its status, the lines printed, the files changed, the requests."""
        os.chdir(self._here.parent)
        shutil.rmtree(self._here, ignore_errors=True)
        shutil.copytree(self._folder, self._here, symlinks=True)
        os.chdir(self._here)
        environment = dict(os.environ)
        before = self._files()
        asked = len(self._server.asked)
        self._capsys.readouterr()
        try:
            status = main(shlex.split(line.replace("SERVER", self._server.url)))
        finally:
            os.environ.clear()
            os.environ.update(environment)
            plugin_rows.forget()
        printed = self._capsys.readouterr()
        changed = self._files() ^ before
        requests = [
            json.dumps([each.path, dict(each.headers), each.body], sort_keys=True)
            for each in self._server.asked[asked:]
        ]
        lines = (printed.out + printed.err).splitlines()
        return frozenset([f"status {'abcde'[min(status, 4)]}", *lines, *changed, *requests])

    def _files(self) -> frozenset[str]:
        paths = (path for path in self._here.rglob("*") if path.is_file())
        return frozenset(f"{path.relative_to(self._here)} {_digest(path)}" for path in paths)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def is_changed(facts: frozenset[str], once: frozenset[str], again: frozenset[str]) -> bool:
    """Whether facts are others than those of two runs without the flag.

    What differs between the two, as times and durations do, tells nothing.
    """
    if (once & again) - facts:
        return True
    return bool(set(map(_without_numbers, facts)) - set(map(_without_numbers, once | again)))


def _without_numbers(fact: str) -> str:
    return re.sub(r"\b[0-9a-f]{64}\b|\d", "", fact)


@pytest.fixture
def typist(
    folder: Path,
    server: ChatServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Typist:
    here = tmp_path / "here"
    monkeypatch.setenv("LMUData", str(here / "lmu"))
    monkeypatch.setenv("FINDIT_TABLES", str(here))
    monkeypatch.setenv("FINDIT_IMAGES", f"Pascal={here / 'pictures'}")
    monkeypatch.setenv("SOME_KEY", "sk-test")
    monkeypatch.chdir(tmp_path)
    return Typist(folder, server, here, capsys)


def names_of(command: str) -> dict[str, click.Parameter]:
    """Return the flags of a command, and its arguments, without those of every command."""
    params = {param.opts[-1]: param for param in command_of(command).params}
    return {name: param for name, param in params.items() if name not in SHARED}


def is_option_of_run(param: click.Parameter) -> bool:
    other = names_of("run").get(param.opts[-1])
    return other is not None and other.to_info_dict() == param.to_info_dict()


def test_every_flag_is_seen_to_change_something() -> None:
    """A new flag has a line above, a test that types it, or a reason."""
    elsewhere = {each for flags in SEEN_ELSEWHERE.values() for each in flags}
    known = elsewhere | set(NOT_SEEN)
    unseen = []
    for command in COMMANDS:
        typed = {
            shlex.split(flag)[0] for flags in TYPED.get(command, {}).values() for flag in flags
        }
        for name, param in names_of(command).items():
            is_shared = command in ASKING and is_option_of_run(param)
            is_typed = name in typed or (isinstance(param, click.Argument) and command in TYPED)
            if not (is_shared or is_typed or f"{command} {name}" in known):
                unseen.append(f"{command} {name}")
    assert unseen == []
    of_commands = {f"{command} {name}" for command in COMMANDS for name in names_of(command)}
    assert known <= of_commands, "of no command any more"


@pytest.mark.parametrize("path", SEEN_ELSEWHERE)
def test_a_test_elsewhere_types_the_flag(path: str) -> None:
    text = (ROOT / "tests" / path).read_text(encoding="utf-8")
    for each in SEEN_ELSEWHERE[path]:
        command, _, name = each.rpartition(" ")
        word = name if name.startswith("-") else command.split()[-1]
        assert re.search(rf"(?<![\w-]){word}(?![\w-])", text), each


LINES = [
    pytest.param(line, flags, id=line)
    for of_command in TYPED.values()
    for line, flags in of_command.items()
]


@pytest.mark.slow
@pytest.mark.parametrize(("line", "flags"), LINES)
def test_a_flag_changes_what_comes_of_a_line(line: str, flags: list[str], typist: Typist) -> None:
    once, again = typist.facts(line), typist.facts(line)
    unseen = [flag for flag in flags if not is_changed(typist.facts(f"{line} {flag}"), once, again)]
    assert not unseen, "; ".join(unseen)
