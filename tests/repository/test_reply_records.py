"""A reply's record is text in files only: one module writes and reads it, and few may ask it to."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, completion
from engine_fakes import FakeDeployment, FakeModel, demo_sweep, go, servers
from paths import ROOT
from syntax_trees import nodes_of

from vlmeval_findit.protocol import CallResult, ReplyRecord
from vlmeval_findit.storage import reply_records

PACKAGE = ROOT / "vlmeval_findit"
HOME = "storage/reply_records.py"

# Which modules write records as text, or read them, and what they open
USERS: Mapping[str, Mapping[str, str]] = {
    "record_text": {
        "storage/predictions.py": "rows of prediction files",
        "analysis/consensus.py": "rows of the consensus of samples",
        "host/baseline_models.py": "rows of VLMEvalKit's own files",
    },
    "stored_record": {"engine/sink.py": "lines of journals"},
    "failed_column": {"engine/cell_files.py": "rows of failed calls, from the journal"},
    "fitting_column": {"storage/predictions.py": "cells of sheets"},
    "parse_record": {
        "storage/predictions.py": "prediction files",
        "engine/cell_files.py": "journals",
        "report/sweep_progress.py": "journals of a sweep that runs",
        "models/model_client.py": "what a model of VLMEvalKit's returns",
    },
}
_OF_JSON = {"loads", "load", "dumps", "dump", "encode", "decode", "parse_json", "read_json"}
_RECORDS = {"record", "recorded", "foreign"}  # Attributes of answers and replies
_COLUMN = "extra_records"


def _modules() -> Mapping[str, Path]:
    return {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}


def _called(node: ast.Call) -> str:
    match node.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _holds_a_record(node: ast.AST) -> bool:
    """Return whether an expression has an answer's record, or the column of one."""
    for inner in ast.walk(node):
        match inner:
            case ast.Attribute(attr=name) if name in _RECORDS:
                return True
            case ast.Constant(value=value) if value == _COLUMN:
                return True
    return False


def json_of_records(path: Path) -> list[int]:
    """Return the lines of a module that write records as JSON, or parse them."""
    lines = []
    for node in nodes_of(path):
        if isinstance(node, ast.Call) and _called(node) in _OF_JSON:
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            if any(map(_holds_a_record, given)):
                lines.append(node.lineno)
    return lines


def test_one_module_makes_text_of_records() -> None:
    found = {name: json_of_records(path) for name, path in _modules().items() if name != HOME}
    assert not any(found.values()), {name: lines for name, lines in found.items() if lines}


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        ("json.dumps(answer.record)", True),
        ("text = _ENCODER.encode({'findit': dict(reply.recorded.call)})", True),
        ("parse_json(row['extra_records'])", True),
        ("json.loads(s=answer.foreign or '{}')", True),
        ("json.dumps(dict(reply.shown))", False),
        ("parse_record(row['extra_records'])", False),
    ],
)
def test_text_of_a_record_is_seen(line: str, is_found: bool, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(f"x = 1\n{line}\n")
    assert json_of_records(path) == [2] * is_found


def test_only_who_opens_a_file_asks_for_text() -> None:
    users = defaultdict(set)
    for name, path in _modules().items():
        for node in nodes_of(path):
            match node:
                case ast.Name(id=used) | ast.Attribute(attr=used) if used in USERS:
                    users[used].add(name)
    assert {name: each - {HOME} for name, each in users.items()} == {
        name: set(modules) for name, modules in USERS.items()
    }


def test_a_record_makes_no_text_of_itself() -> None:
    assert isinstance(CallResult("").record, ReplyRecord)
    own = {name for name, each in vars(ReplyRecord).items() if callable(each) and name[0] != "_"}
    assert own == {"with_error"}, "what changes a record returns another"


CALLS = 25
"""Of the sweep below, each to an image and words of its own."""


def _in_this_process(folder: Path) -> None:
    recorded = {"findit": {"finish_reason": "stop", "tokens": {"prompt": 7}}}

    class Recording(FakeModel):
        def generate(self, message: Any, dataset: str) -> Any:
            text = super().generate(message, dataset)
            return {"prediction": text, "extra_records": recorded}

    go(demo_sweep(folder, ONE_FORMAT), FakeDeployment(Recording()))


def _at_a_server(folder: Path) -> None:
    with ChatServer(lambda asked, number: completion("[1, 2, 3, 4]")) as server:
        go(demo_sweep(folder, ONE_FORMAT), servers(server.url))


ONE_FORMAT = """
models: [{name: A, space: grid1000}]
datasets: [Demo, Demo_multilabel]
representations: xyxy
outputs: json
"""


@pytest.mark.parametrize(
    ("run", "written", "read"),
    [
        (_in_this_process, 0, 2 * CALLS),  # A model of VLMEvalKit's made the text, which is kept
        (_at_a_server, CALLS, CALLS),
    ],
)
def test_a_record_is_written_once_and_read_once(
    run: Callable[[Path], None],
    written: int,
    read: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts = Counter[str]()

    def counted(name: str) -> Callable[..., Any]:
        function = getattr(reply_records, name)

        def call(*arguments: Any) -> Any:
            counts[name] += 1
            return function(*arguments)

        return call

    for name in ("_values", "_object_in"):
        monkeypatch.setattr(reply_records, name, counted(name))
    run(tmp_path)
    assert (counts["_values"], counts["_object_in"]) == (written, read)
