"""Every flag of every command changes something: what is printed, written, asked or refused."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from zipfile import ZipFile, ZipInfo

import click
import pytest
from chat_server import ChatServer, completion
from custom_data import coco_values, write_voc
from few_fast import every_nth_fast
from fresh_copy import FreshCopy
from refusal_files import LINES as LINES_OF_FILES
from refusal_files import make_folder
from seen_by import seen_flags
from stand_ins import QUICK

from vlmeval_findit.cli import COMMANDS, Commands, DeclaredOption, main
from vlmeval_findit.core import plugin_rows
from vlmeval_findit.data.fetch import download

pytestmark = pytest.mark.early  # A line shows what the processor of a model here makes of images

GOOD = "outputs/Good_FindIt_Pascal_xyxy_json_bbox_2d.json"
POOR = "outputs/Poor_FindIt_Pascal_xyxy_json_bbox_2d.json"
IMPORT = "--image-root data/images --name Mine"
RUN = "run --data FindIt_Demo_xyxy_json --model mine --space unit --base-url SERVER --limit 2"
SEARCH = "search --model mine --space unit --base-url SERVER --data Demo --limit 1"
SWEEP = "sweep sweeps/mine.yaml --base-url SERVER --limit 2"
PROBE = "probe --model mine --space unit --base-url SERVER --limit 20"

TYPED: dict[str, dict[str, list[str]]] = {
    "run": {
        RUN: [
            "--data FindIt_Demo_xywh_json", "--model other", "--mode infer", "--limit 1",
            "--work-dir elsewhere", """--judge-args '{"space": "pixels"}'""",
            "--image-root Demo=pictures", "--prompts qwen3-vl-1", "--like Qwen3-VL",
            "--space pixels", "--system system.txt", "--prompt-template template.txt",
            "--base-url http://127.0.0.1:1/v1 --retry 1", "--provider openai", "--key OTHER_KEY",
            "--header 'X-Team: a'", """--extra-body '{"top_k": 1}'""", "--temperature 0.5",
            "--max-usd 0.001", "--dry-run", "--logprobs", "nothing",
        ],
        f"{RUN} --dry-run": ["--prices 1,2"],
        f"{RUN} --temperature 0.5": ["--samples 2"],
    },
    "search": {
        SEARCH: [
            "--model other", "--data Demo_refexp", "--limit 2", "--race",
            "--work-dir there", "--journal there.jsonl",
        ],
        SEARCH.replace("Demo", "Demo_insdet"): ["--marks all"],
        "search --model GPT-5.4 --provider openai --data Demo --dry-run": ["--batch openai"],
    },
    "sweep": {
        SWEEP: [
            "--limit 1", "--work-dir there", "--journal there.jsonl", "--formats none.yaml",
        ],
        "sweep sweeps/priced.yaml --provider openai --dry-run": ["--batch openai"],
        "sweep": ["sweeps/good.yaml --dry-run"],
    },
    "probe": {
        PROBE: ["--model other", "--limit 21", "--work-dir there", "--format xywh_json"],
    },
    "data list": {},
    "data get": {
        "data get": ["RefCOCO"],
        "data get RefCOCO": ["--from none"],
    },
    "data import": {
        "data import": ["data/csv/good.csv", "--sets"],
        f"data import data/csv/good.csv {IMPORT}": [
            "--name Other", "--image-root pictures", "--units fractions",
            "--ignore-class cat", "--drop-class cat", "--rename-class cat=tiger", "--all-classes",
        ],
        f"data import data/coco/masks.json {IMPORT}": ["--no-masks"],
        f"data import data/lines/some_area.jsonl {IMPORT}": ["--leave-out-bad-boxes"],
        "data import data/csv/good.csv --image-root data/images --name Known": ["--replace"],
        "data import data/from_1 --name Mine": ["--voc-from 1"],
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
            "--reviews reviews/voted.jsonl", "--reads-like Qwen3-VL",
            "--thought-marks '<plan> </plan>'",
        ],
        f"score {GOOD} --data FindIt_Pascal_xywh_json": ["--force"],
    },
    "leaderboard": {
        "leaderboard": ["outputs"],
        "leaderboard outputs": [
            "--out board", "--format xyxy_text", "--reviews reviews/voted.jsonl",
            "--style full", "--best-marks",
        ],
    },
    "compare": {
        "compare": [GOOD],
        f"compare {GOOD}": [POOR],
        f"compare {GOOD} {POOR}": [
            "--show 1", "--detect 2", "--reviews reviews/voted.jsonl", "--json out.json",
        ],
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
    "ap": {"ap": ["outputs"], f"ap {GOOD}": ["--json out.json"]},
    "coords": {
        "coords": [GOOD],
        f"coords {GOOD}": ["--data FindIt_Pascal_xywh_json", "--space unit", "--json out.json"],
        f"coords {GOOD} --data FindIt_Pascal_xywh_json": ["--force"],
    },
    "report": {
        "report": ["outputs"],
        "report outputs": [
            "--out page.html", "--cards 1", "--compare Poor Good", "--format xyxy_text",
            "--reviews reviews/voted.jsonl",
        ],
        "report none.yaml": ["--watch"],
    },
    "export": {
        "export": ["outputs"],
        "export outputs": ["--to coco"],
        "export outputs --to coco": [
            "--out there", "--confidence minimum",
        ],
        "export outputs --to hub": ["--licence mit"],
        "export outputs --to training": ["--yes-test-data"],
        "export outputs --to training --yes-test-data": [
            "--trainer ms-swift", "--errors missed", "--right", "--formats none.yaml",
        ],
    },
    "formats": {"formats": ["xywh", "--data Scenes_mini_multilabel"]},
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

SHARED = {"--plugin", "--verbose", "--quiet", "--help-all"}
"""Options of every command that has them: they act before it does."""

ASKING = ("search", "sweep", "probe", "reproduce")
"""They have the options of ``run`` that say which model is asked, and how: the same objects."""

VALUE_REFUSED = {
    "run --judge-args": "--space unit and --judge-args name two spaces",
    "run --image-root": "pictures/photos/astronaut.png is missing",
    "run --prompts": "the prompt qwen3-vl-1 asks for one expression in an image",
    "run --max-usd": "the next call could pass the limit of $0.001",
    "run --base-url": "no call was answered",
    "search --model": "--model names mine, other",
    "search --data": "--data names Demo, Demo_refexp",
    "run nothing": "'nothing' belongs to no flag",
    f"compare {GOOD}": "B is missing",
    "export outputs": "Missing option '--to'",
    "run --provider": "the name of mine at openai is not known",
    "sweep --formats": "--formats none.yaml: the file does not exist",
    "data import data/csv/good.csv": "name the dataset",
    "samples outputs": "one reply to each query",
    f"calibration {GOOD}": "none of its boxes has a confidence",
    "score --convert": "name its dataset with --data",
    "data get --from": "none/refcoco_test.parquet is missing",
    "data import --image-root": "none of the 2 images is in pictures",
    "data import --units": "4 of 4 boxes cannot be used",
    "data remove --work-dir": "--work-dir none: no such folder",
    "data reviews --data": "no review is of a row of Demo",
    "score --data": "the predictions are not of the run that is scored",
    "leaderboard --format": "no run has this format",
    "leaderboard --best-marks": "none of the runs is of stage 1 of VP-Bench",
    "compare --reviews": "the difference would favour Good",
    "audit --data": "no run of it",
    "calibration --data": "the predictions are not of the run that is scored",
    "calibration --space": "the predictions are not of the run that is scored",
    "calibration --force": "none of its boxes has a confidence",
    "coords --data": "the predictions are not of the run that is scored",
    "report --format": "no run has this format",
    "report --watch": "a work dir may be created later",
    "check --like": "--like Qwen3-VL: of which checkpoint?",
    "check --system": "--system none.txt: the file does not exist",
    "check --prompt-template": "--prompt-template none.txt: the file does not exist",
    "export --confidence": "none of its boxes has a confidence 'minimum'",
    "export --formats": "none.yaml",
}
"""A flag whose value is refused, and what only those say who used it."""

_ON_THIS_MACHINE = "a model in this process under VLMEvalKit: the host's tests are slow"

NOT_SEEN = {
    **dict.fromkeys(("run --batch-size", "run --dtype", "run --device"), _ON_THIS_MACHINE),
    "run --reuse": "VLMEvalKit's own flag, passed on",
    "run --api-nproc": "how many calls are made at once: no result depends on it",
    "run --serve-args": "serving/test_real_vllm.py only gives them to a server",
    "watch-checkpoints --name": "tests only see a wrong name refused",
    "report --every": "a test of it would rest on time",
    "run --timeout": "a test of it would rest on time",
    "reproduce --model": "the same as the argument",
    "reproduce --work-dir": "tests of reproductions write to the folder that is the default",
    "data get --exif": "handed over as --units is; tests of stored pixels have each choice",
    "data get --videos": "needs the published videos of a dataset",
    "data get --no-images": "the images of the small world lie on no server",
}
"""What no line and no test shows, and why."""


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
        (made / "template.txt").write_text("{{ request }} Now.")
        _write_inputs(made)
        (made / "lmu").mkdir(exist_ok=True)
        patch.setenv("LMUData", str(made / "lmu"))
        line = "data import data/csv/good.csv --image-root data/images --name Known"
        assert main(line.split()) == 0
        assert main(["data", "show", "FindIt_Demo_xyxy_json"]) == 0
        yield made
    plugin_rows.forget()


@pytest.fixture(scope="module")
def copy(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> FreshCopy:
    """Return where lines are typed."""
    return FreshCopy(folder, tmp_path_factory.mktemp("typed") / "here")


def _write_inputs(folder: Path) -> None:
    """Write annotations and sweeps of which flags change what comes."""
    annotations = coco_values()
    for each in annotations["annotations"]:
        x, y, width, height = each["bbox"]
        each["segmentation"] = [[x, y, x + width, y, x, y + height]]
    (folder / "data/coco/masks.json").write_text(json.dumps(annotations))
    write_voc(folder / "data/from_1")
    good = '{"image": "three.jpg", "label": "cat", "boxes": [[1, 2, 30, 40]]}'
    lines = f"{LINES_OF_FILES['no_area']}\n{good}"
    (folder / "data/lines/some_area.jsonl").write_text(lines)
    mine = "models: [{name: mine, space: unit}]\ndatasets: FindIt_Demo_xyxy_json"
    (folder / "sweeps/mine.yaml").write_text(mine)
    priced = "models: GPT-5.4\ndatasets: FindIt_Demo_xyxy_json"
    (folder / "sweeps/priced.yaml").write_text(priced)


class Typist:
    """Types lines, each in the folder as it was."""

    def __init__(
        self, folder: Path, server: ChatServer, copy: FreshCopy, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self._folder, self._server, self._copy, self._capsys = folder, server, copy, capsys

    def facts(self, line: str) -> frozenset[str]:
        """Type a line; return its status, the lines printed, the files changed, the requests."""
        self._copy.put_back()
        environment = dict(os.environ)
        asked = len(self._server.asked)
        self._capsys.readouterr()
        try:
            status = main(shlex.split(line.replace("SERVER", self._server.url)))
        finally:
            if plugin_rows.FILES_VARIABLE in os.environ:
                plugin_rows.forget()
            os.environ.clear()
            os.environ.update(environment)
        printed = self._capsys.readouterr()
        paths = self._copy.changed()
        changed = _contents(self._copy.folder, paths) ^ _contents(self._folder, paths)
        requests = [
            json.dumps([each.path, dict(each.headers), each.body], sort_keys=True)
            for each in self._server.asked[asked:]
        ]
        lines = _CLOCK.sub(b"", (printed.out + printed.err).encode()).decode().splitlines()
        return frozenset([f"status {'abcde'[min(status, 4)]}", *lines, *changed, *requests])


def _contents(folder: Path, paths: Sequence[str]) -> frozenset[str]:
    """Return what is in those of the paths that are files."""
    files = [path for path in paths if (folder / path).is_file()]
    return frozenset(f"{path} {content}" for path in files for content in _content(folder / path))


# Keys of a run's record whose values are durations, or hashes over times
_TIMES = ("costs", "seal")

_CLOCK = re.compile(
    rb"20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?"
    rb'|"time": "\d{12}"'  # of OpenVLM's file
    rb"|[\d.]+/s  left [\d a-z?]+  "  # how fast calls go
)
"""What a clock writes into lines and files.

Two runs within a second have the same: they would tell each other from all later ones.
"""


def _content(path: Path) -> Iterator[str]:
    """Yield the digest of a file; of a run's record each value; of a sheet that of each part."""
    content = _CLOCK.sub(b"", path.read_bytes())
    if "_identity" in path.stem or "_provenance" in path.stem:
        with suppress(ValueError, TypeError):
            values = dict(json.loads(content))
            yield from (f"{key}: {values[key]}" for key in values if key not in _TIMES)
            return
    if path.suffix == ".xlsx":
        with ZipFile(path) as parts:
            for name in parts.namelist():
                yield f"{name} {hashlib.sha256(_CLOCK.sub(b'', parts.read(name))).hexdigest()}"
        return
    yield hashlib.sha256(content).hexdigest()


def is_changed(
    facts: frozenset[str], once: frozenset[str], again: frozenset[str], refused: str | None = None
) -> bool:
    """Whether facts are others than those of two runs without the flag.

    What differs between the two, as times and durations do, tells nothing. Neither does an error,
    unless it says what is ``refused`` of the value: by name, a flag is refused before it is used.
    """
    errors = [fact for fact in facts - once if fact.startswith("error:")]
    if errors:
        return refused is not None and any(refused in error for error in errors)
    if (once & again) - facts:
        return True
    return bool(set(map(_without_numbers, facts)) - set(map(_without_numbers, once | again)))


def _without_numbers(fact: str) -> str:
    return re.sub(r"\b[0-9a-f]{64}\b|\d", "", fact)


@pytest.fixture
def typist(
    folder: Path,
    server: ChatServer,
    copy: FreshCopy,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Typist:
    here = copy.folder
    monkeypatch.setenv("LMUData", str(here / "lmu"))
    monkeypatch.setenv("FINDIT_TABLES", str(here))
    monkeypatch.setenv("FINDIT_IMAGES", f"Pascal={here / 'pictures'}")
    monkeypatch.setenv("SOME_KEY", "sk-test")
    # Nothing leaves this machine, and nobody waits for it.
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setattr(download, "Policy", lambda: QUICK)
    monkeypatch.chdir(here)
    return Typist(folder, server, copy, capsys)


def names_of(command: str) -> dict[str, click.Parameter]:
    """Return the flags of a command, and its arguments, without those of every command."""
    params = {param.opts[-1]: param for param in command_of(command).params}
    return {name: param for name, param in params.items() if name not in SHARED}


def is_option_of_run(param: click.Parameter) -> bool:
    """Whether a parameter is made by the declaration of one of ``run``."""
    other = names_of("run").get(param.opts[-1])
    return (
        isinstance(param, DeclaredOption)
        and isinstance(other, DeclaredOption)
        and (param.declaration is other.declaration)
    )


def test_every_flag_is_seen_to_change_something() -> None:
    """A new flag has a line above, a test with the mark ``sees``, or a reason."""
    known = {*(each.name for each in seen_flags()), *NOT_SEEN}
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


def test_a_test_elsewhere_types_the_flag() -> None:
    for each in seen_flags():
        command, _, name = each.name.rpartition(" ")
        word = name if name.startswith("-") else command.split()[-1]
        assert re.search(rf"(?<![\w-]){word}(?![\w-])", each.text), each.name


def test_a_refusal_by_name_is_no_effect() -> None:
    once = frozenset(["status a"])
    facts = frozenset(["status c", "error: --no-masks is not for CSV. Leave it out"])
    assert not is_changed(facts, once, once)
    assert is_changed(facts, once, once, "is not for CSV")
    assert is_changed(frozenset(["status b"]), once, once)


CLOCKS = {
    "scored 2026-11-30T09:59:59+00:00 by 1.1.0": "scored 2026-12-01T10:00:00+00:00 by 1.1.0",
    "<p>2026-11-30 09:59 UTC</p>": "<p>2026-12-01 10:00 UTC</p>",
    '{"time": "261130095959"}': '{"time": "261201100000"}',
    "calls 2/2  9.9/s  left 59 s  failed 0": "calls 2/2  10.1/s  left 1 min 05 s  failed 0",
}
"""What is written at a time -> a day later."""


@pytest.mark.parametrize("text", CLOCKS)
def test_what_a_clock_writes_is_no_effect(text: str, tmp_path: Path) -> None:
    contents = []
    for written in (text, CLOCKS[text]):
        (tmp_path / "page.html").write_text(written)
        with ZipFile(tmp_path / "sheet.xlsx", "w") as parts:
            parts.writestr(ZipInfo("core.xml", (2026, 11, 30, 9, 59, len(contents))), written)
        contents.append(_contents(tmp_path, ["page.html", "sheet.xlsx"]))
    assert contents[0] == contents[1]


ASKS = ("run", "search", "sweep", "probe", "report", "compare", "leaderboard", "check", "export")
"""Commands whose lines take seconds each: their tests are slow."""

LINES = [
    pytest.param(command, line, flags, id=line, marks=[pytest.mark.slow] if command in ASKS else [])
    for command, of_command in TYPED.items()
    for line, flags in of_command.items()
]


@pytest.mark.parametrize(("command", "line", "flags"), every_nth_fast(LINES, 3))
def test_a_flag_changes_what_comes_of_a_line(
    command: str, line: str, flags: list[str], typist: Typist
) -> None:
    once, again = typist.facts(line), typist.facts(line)
    unseen = []
    for flag in flags:
        refused = VALUE_REFUSED.get(f"{command} {shlex.split(flag)[0]}")
        if not is_changed(typist.facts(f"{line} {flag}"), once, again, refused):
            unseen.append(flag)
    assert not unseen, "; ".join(unseen)
