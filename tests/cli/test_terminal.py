"""What strangers wrote reaches no terminal raw: control characters in every field of every file."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from chat_server import Asked, ChatServer, completion, error
from custom_data import coco_values, data_folder, make_images
from few_fast import every_nth_fast
from scored_runs import World, speaking

from vlmeval_findit.cli import main
from vlmeval_findit.core import (
    EXIT_REFUSED,
    EXIT_SOME_FAILED,
    printable_lines,
    printable_logs,
)
from vlmeval_findit.protocol import Answering
from vlmeval_findit.storage import RunFiles

NASTY = "\x1b]0;pwn\x07\x1b[31mred\x9b2J\u202e\u2066\r\x08\x7f\u2028"
"""Window title, colour, C1, directions, carriage return, backspace, DEL, line separator."""

NAME = "FindIt_Pascal_xyxy_json"
Capture = pytest.CaptureFixture[str]
Log = pytest.LogCaptureFixture


READ_OR_REFUSED = {0, EXIT_REFUSED}
"""Statuses of commands that read damaged files: of some all the rest can be said."""

SHOWN = "\\x1b"
"""How the first control character of all is shown."""


class Done(NamedTuple):
    """A command's exit status and all that it printed and logged."""

    status: int
    printed: str


def run(capfd: Capture, caplog: Log, *words: object) -> Done:
    """Run a command; what it prints and logs is printable, and it raises nothing."""
    caplog.clear()
    status = main(list(map(str, words)))
    out, err = capfd.readouterr()
    printed = f"{out}{err}{caplog.text}"
    # A terminal's line may end in a carriage return; here is none.
    assert printable_lines(printed) == printed, (words, status)
    return Done(status, printed)


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
    said, statuses = "", set()
    for _, row in changed:
        runs.write_text(json.dumps([row, *rows[1:]]))
        done = run(capfd, caplog, "score", runs)
        statuses.add(done.status)
        said += done.printed
    assert statuses == READ_OR_REFUSED
    assert "\\x1b]0;pwn\\x07" in said, "it is shown all the same"


@pytest.mark.parametrize(
    ("beside", "expected"),
    [
        ("identity", {0, EXIT_SOME_FAILED}),
        pytest.param("provenance", READ_OR_REFUSED, marks=pytest.mark.slow),
    ],
)
def test_every_field_of_the_records_beside_them(
    beside: str, expected: set[int], runs: Path, capfd: Capture, caplog: Log
) -> None:
    path: Path = getattr(RunFiles(runs), beside)
    before = json.loads(path.read_text())
    said, statuses = "", set()
    for number, (_, values) in enumerate(with_nasty(before)):
        path.write_text(json.dumps(values))
        words = COMMANDS[number % 3] if beside == "provenance" else COMMANDS[3]
        done = run(capfd, caplog, *words)
        statuses.add(done.status)
        said += done.printed
    assert statuses == expected
    assert SHOWN in said


@pytest.mark.parametrize(
    "command",
    [
        COMMANDS[1],
        *(pytest.param(words, marks=pytest.mark.slow) for words in (COMMANDS[0], *COMMANDS[2:])),
    ],
    ids=" ".join,
)
def test_every_field_of_the_details(
    command: Sequence[str], runs: Path, capfd: Capture, caplog: Log
) -> None:
    path = RunFiles(runs).details
    first, *others = path.read_text().splitlines()
    said, statuses = "", set()
    for _, values in list(with_nasty(json.loads(first)))[:: len(COMMANDS)]:
        path.write_text("\n".join([json.dumps(values), *others]) + "\n")
        done = run(capfd, caplog, *command)
        statuses.add(done.status)
        said += done.printed
    # The others make details anew from the replies, which are sound.
    reads_details = command[0] not in ("score", "coords")
    assert statuses == (READ_OR_REFUSED if reads_details else {0})
    assert (SHOWN in said) == reads_details


def test_every_field_of_annotations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture, caplog: Log
) -> None:
    data_folder(tmp_path, monkeypatch)
    images = make_images(tmp_path / "images")
    said, statuses = "", set()

    def shown(*words: object) -> None:
        nonlocal said
        done = run(capfd, caplog, "data", *words)
        statuses.add(done.status)
        said += done.printed

    for number, (_, values) in enumerate(with_nasty(coco_values())):
        path = tmp_path / "a.json"
        path.write_text(json.dumps(values))
        shown("import", path, "--name", f"X{number}", "--image-root", images)
        if (tmp_path / "lmu" / f"X{number}.tsv").exists():
            shown("show", f"FindIt_X{number}_xyxy_json")
            shown("check", f"X{number}")
    line = {"image": "one.jpg", "label": "cat", "boxes": [[1, 2, 30, 40]], "slices": {"a": "b"}}
    for number, (_, values) in enumerate(with_nasty(line)):
        path = tmp_path / "a.jsonl"
        path.write_text(json.dumps(values))
        shown("import", path, "--name", f"Y{number}", "--image-root", images)
    assert statuses == READ_OR_REFUSED
    assert SHOWN in said


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
    escaped = run(capfd, caplog, "sweep", path)
    assert escaped.status == EXIT_REFUSED
    assert "\\x1b]0;pwn" in escaped.printed
    path.write_text(text.format(name=NASTY))
    raw = run(capfd, caplog, "sweep", path)
    assert raw.status == EXIT_REFUSED
    assert "U+001B" in raw.printed


BOTH = ("sweep", "probe")
UNDECIDED, FAILED = 2, 3  # Statuses of a probe, as its help says


@pytest.mark.parametrize(
    ("answer", "fails", "shown_by"),
    every_nth_fast(
        [
            (error(400, f"bad {NASTY} field"), True, BOTH),
            (error(401, NASTY), True, BOTH),
            (error(404, f"no model {NASTY}"), True, BOTH),
            (error(413, NASTY), True, BOTH),
            (error(400, NASTY, x_request_id="1"), True, BOTH),
            (completion("[]", finish_reason=NASTY), False, BOTH),
            (completion("[]", model=f"m{NASTY}", provider=NASTY, id=NASTY), False, BOTH),
            # What is read as a reply is kept, and printed by neither.
            (completion(NASTY), False, ()),
            (completion(None, message={"refusal": NASTY}), False, ()),
            (completion("[]", usage={NASTY: 1, "prompt_tokens": NASTY}), False, ()),
            (completion(None, message={"content": [{"type": NASTY, "text": NASTY}]}), True, BOTH),
            (completion("[]", error={"message": NASTY, "code": NASTY}), True, BOTH),
        ],
        3,
    ),
    ids=range(12),
)
@pytest.mark.parametrize("command", ["sweep", pytest.param("probe", marks=pytest.mark.slow)])
def test_every_message_of_a_server(
    command: str,
    answer: Any,
    fails: bool,
    shown_by: Sequence[str],
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
            words = ("probe", "--limit", "20", "--model", "mine")
        done = run(capfd, caplog, *words, "--base-url", server.url)
    # A probe without boxes is undecided, one with failed calls has a status of its own.
    statuses = {"sweep": (0, EXIT_SOME_FAILED), "probe": (UNDECIDED, FAILED)}[command]
    assert done.status == statuses[fails]
    assert (SHOWN in done.printed) == (command in shown_by)


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
    files = RunFiles(odd).provenance, odd.with_name(f"{name}.txt")
    refused = [run(capfd, caplog, "score", "runs")]
    for path in files:
        path.write_text("{")
        refused.append(run(capfd, caplog, "leaderboard", "runs"))
        refused.append(run(capfd, caplog, "score", path))
    refused.append(run(capfd, caplog, "score", "runs", "--space", NASTY))
    refused.append(run(capfd, caplog, NASTY))
    refused.append(run(capfd, caplog, "leaderboard", f"--{NASTY}"))
    assert [done.status for done in refused] == [EXIT_SOME_FAILED] + [EXIT_REFUSED] * 7
    for done in refused:
        assert "\\x1b[31m" in done.printed, done
