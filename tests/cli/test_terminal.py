"""What strangers wrote reaches no terminal raw: control characters in every field of every file."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from chat_server import Asked, ChatServer, completion, error
from custom_data import coco_values, data_folder, make_images
from scored_runs import World, speaking, world

from vlmeval_findit.cli import main
from vlmeval_findit.core import printable_lines, printable_logs
from vlmeval_findit.protocol import Answering
from vlmeval_findit.storage import RunFiles

__all__ = ["world"]

NASTY = "\x1b]0;pwn\x07\x1b[31mred\x9b2J\u202e\u2066\r\x08\x7f\u2028"
"""Window title, colour, C1, directions, carriage return, backspace, DEL, line separator."""

NAME = "FindIt_Pascal_xyxy_json"
Capture = pytest.CaptureFixture[str]
Log = pytest.LogCaptureFixture


def run(capfd: Capture, caplog: Log, *words: object) -> str:
    """Run a command; all that it printed and logged is printable. Return it."""
    caplog.clear()
    try:
        status: object = main(list(map(str, words)))
    except Exception:  # What Python's own hook would print
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        status = "an error"
    out, err = capfd.readouterr()
    printed = f"{out}{err}{caplog.text}"
    # A terminal's line may end in a carriage return; here is none.
    assert printable_lines(printed) == printed, (words, status)
    return printed


def with_nasty(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Yield copies of a JSON value with control characters in one text, or in one key."""
    if isinstance(value, str):
        yield at, value + NASTY
    elif isinstance(value, int | float) or value is None:
        yield at, NASTY
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield f"key {at}.{key}", {**value, key + NASTY: inner}
            for place, changed in with_nasty(inner, f"{at}.{key}"):
                yield place, {**value, key: changed}
    elif isinstance(value, list):
        for number, inner in enumerate(value[:1]):
            for place, changed in with_nasty(inner, f"{at}[{number}]"):
                yield place, [*value[:number], changed, *value[number + 1 :]]


COMMANDS: Sequence[Sequence[str]] = (
    ("leaderboard", "runs"),
    ("errors", "runs"),
    ("compare", "runs/A", "runs/B"),
    ("score", "runs"),
    ("coords", "runs"),
)


@pytest.fixture
def runs(world: World, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the prediction file of a run beside which there is another; with rich records."""
    monkeypatch.chdir(world.folder)
    world.predict("B", NAME, speaking(NAME, 0.4), folder="B")

    def rich(identity: Any) -> Any:
        who = Answering("Test", endpoint="http://x/v1", settings={"temperature": 0.5, "a": ["b"]})
        return type(identity)(**{**vars_of(identity), "answering": who, "forced": ("model: a",)})

    path = world.predict("A", NAME, speaking(NAME, 0.8), folder="A", change=rich)
    rows = json.loads(path.read_text())
    record = {
        "space": {"kind": "grid1000"},
        "finish_reason": "stop",
        "images": [{"original": [200, 100], "sent": [200, 100]}],
        "thought": "hm",
        "tokens": {"prompt": 5},
        "model": {"identifier": "m"},
        "call": {"id": "1", "cost": 0.1, "server": "http://x/v1", "error": None},
    }
    for row in rows:
        row |= {"label": "cat", "width": 200, "height": 100}
        row["extra_records"] = json.dumps({"findit": record})
    path.write_text(json.dumps(rows))
    assert main(["score", str(path)]) == 0
    return path


def vars_of(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__slots__}


def test_every_field_of_predictions(runs: Path, capfd: Capture, caplog: Log) -> None:
    rows = json.loads(runs.read_text())
    first = rows[0]
    changed = list(with_nasty(first))
    record = json.loads(first["extra_records"])
    changed += [
        (f"record{at}", {**first, "extra_records": json.dumps(v)}) for at, v in with_nasty(record)
    ]
    said = ""
    for _, row in changed:
        runs.write_text(json.dumps([row, *rows[1:]]))
        said += run(capfd, caplog, "score", runs)
    assert "\\x1b]0;pwn\\x07" in said, "it is shown all the same"


@pytest.mark.parametrize("beside", ["identity", "provenance"])
def test_every_field_of_the_records_beside_them(
    beside: str, runs: Path, capfd: Capture, caplog: Log
) -> None:
    path: Path = getattr(RunFiles(runs), beside)
    before = json.loads(path.read_text())
    said = ""
    for number, (_, values) in enumerate(with_nasty(before)):
        path.write_text(json.dumps(values))
        words = COMMANDS[number % 3] if beside == "provenance" else COMMANDS[3]
        said += run(capfd, caplog, *words)
    assert "\\x1b" in said


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_field_of_the_details(
    command: Sequence[str], runs: Path, capfd: Capture, caplog: Log
) -> None:
    path = RunFiles(runs).details
    first, *others = path.read_text().splitlines()
    for _, values in list(with_nasty(json.loads(first)))[:: len(COMMANDS)]:
        path.write_text("\n".join([json.dumps(values), *others]) + "\n")
        run(capfd, caplog, *command)


def test_every_field_of_annotations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture, caplog: Log
) -> None:
    data_folder(tmp_path, monkeypatch)
    images = make_images(tmp_path / "images")
    said = ""
    for number, (_, values) in enumerate(with_nasty(coco_values())):
        path = tmp_path / "a.json"
        path.write_text(json.dumps(values))
        words = ("data", "import", path, "--name", f"X{number}", "--image-root", images)
        said += run(capfd, caplog, *words)
        if (tmp_path / "lmu" / f"X{number}.tsv").exists():
            said += run(capfd, caplog, "data", "show", f"FindIt_X{number}_xyxy_json")
            said += run(capfd, caplog, "data", "check", f"X{number}")
    line = {"image": "one.jpg", "label": "cat", "boxes": [[1, 2, 30, 40]], "slices": {"a": "b"}}
    for number, (_, values) in enumerate(with_nasty(line)):
        path = tmp_path / "a.jsonl"
        path.write_text(json.dumps(values))
        said += run(
            capfd, caplog, "data", "import", path, "--name", f"Y{number}", "--image-root", images
        )
    assert "\\x1b" in said


@pytest.mark.parametrize(
    "text",
    [
        "models: {name}\ndatasets: Demo",
        "models: A\ndatasets: {name}",
        "models: A\n{name}: Demo",
        "models: [{{name: A, {name}: 1}}]\ndatasets: Demo",
        "models: [{{name: A, space: {name}}}]\ndatasets: Demo",
        "models: [{{name: A, settings: {name}}}]\ndatasets: Demo",
        "models: FullImage\ndatasets: Demo\nrepresentations: {name}",
        "models: FullImage\ndatasets: Demo\nlimit: {name}",
        "{name}: 1\n{name}: 2",
    ],
)
def test_every_field_of_a_sweep(text: str, tmp_path: Path, capfd: Capture, caplog: Log) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(text.format(name='"\\e]0;pwn\\a\\e[31m\\u202e\\r\\x9b"'))
    assert "\\x1b]0;pwn" in run(capfd, caplog, "sweep", path)
    path.write_text(text.format(name=NASTY))
    assert "U+001B" in run(capfd, caplog, "sweep", path)


@pytest.mark.parametrize(
    "answer",
    [
        error(400, f"bad {NASTY} field"),
        error(401, NASTY),
        error(404, f"no model {NASTY}"),
        error(413, NASTY),
        error(400, NASTY, x_request_id="1"),
        completion("[]", model=f"m{NASTY}", provider=NASTY, id=NASTY),
        completion("[]", finish_reason=NASTY),
        completion(NASTY),
        completion(None, message={"refusal": NASTY}),
        completion(None, message={"content": [{"type": NASTY, "text": NASTY}]}),
        completion("[]", usage={NASTY: 1, "prompt_tokens": NASTY}),
        completion("[]", error={"message": NASTY, "code": NASTY}),
    ],
    ids=range(12),
)
@pytest.mark.parametrize("command", ["sweep", "probe"])
def test_every_message_of_a_server(
    command: str,
    answer: Any,
    tmp_path: Path,
    capfd: Capture,
    caplog: Log,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.chdir(tmp_path)

    def script(asked: Asked, number: int) -> Any:
        return answer

    with ChatServer(script) as server:
        if command == "sweep":
            text = "{models: [{name: mine, space: grid1000}], datasets: [Demo], limit: 2, "
            text += "representations: [xyxy], outputs: json}"
            Path("s.yaml").write_text(text)
            words = ("sweep", "s.yaml", "--work-dir", "o", "--journal", "o.jsonl")
        else:
            words = ("probe", "--limit", "2", "--model", "mine")
        run(capfd, caplog, *words, "--base-url", server.url)


def test_logs_of_all_programs_are_printable(caplog: Log) -> None:
    log = logging.getLogger("somebody")
    with printable_logs():
        log.warning("%s of %d", NASTY, 2)
        log.warning("two\nlines %s", ["plain"])
        try:
            raise ValueError(NASTY)
        except ValueError:
            log.exception("failed")
    messages = [record.msg for record in caplog.records]
    assert messages[0].startswith("\\x1b]0;pwn\\x07")
    assert caplog.records[1].args == (["plain"],), "others read their values"
    assert "\\x1b" in str(caplog.records[2].exc_text)
    assert "\x1b" not in str(caplog.records[2].exc_text)
    log.warning(NASTY)
    assert caplog.records[-1].msg == NASTY, "only within commands"


def test_names_of_files_and_values_of_flags(runs: Path, capfd: Capture, caplog: Log) -> None:
    name = f"C\x1b[31m\u202e_{NAME}"
    odd = runs.with_name(f"{name}.json")
    odd.write_text("[]")
    said = run(capfd, caplog, "score", "runs")
    for path in (RunFiles(odd).provenance, odd.with_name(f"{name}.txt")):
        path.write_text("{")
        said += run(capfd, caplog, "leaderboard", "runs")
        said += run(capfd, caplog, "score", path)
    said += run(capfd, caplog, "score", "runs", "--space", NASTY)
    said += run(capfd, caplog, NASTY)
    said += run(capfd, caplog, "leaderboard", f"--{NASTY}")
    assert said.count("\\x1b[31m") >= 6
