"""What helps and README show is typed, in one folder and in the order of the page, and works."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from chat_server import ChatServer, completion
from pages import PAGES, blocks, commands
from paths import ROOT

from vlmeval_findit.benchmarks import parse
from vlmeval_findit.cli import COMMANDS, command_base, command_named, main, main_command
from vlmeval_findit.core import program

SERVER = "http://localhost:8000/v1"
"""The address in examples: a server that the reader has, a stub here."""

ELSEWHERE = ("demo",)
"""Commands whose examples have tests of their own, and take minutes."""

MAY_FIND = {"coords", "audit"}
"""Commands whose exit status 1 says what they found."""


def _of_epilog() -> Iterator[str]:
    lines = main_command._EPILOG.split("Examples:\n")[1].split("\n\n")[0]
    yield from filter(None, map(str.strip, lines.splitlines()))


def _examples() -> Iterator[str]:
    yield from _of_epilog()
    for name in COMMANDS:
        command = command_named(name)
        if name not in ELSEWHERE and isinstance(command, command_base.Command):
            yield from command.examples


EXAMPLES = [*dict.fromkeys(_examples())]
TYPED = [line for line in EXAMPLES if "  # " not in line]
"""A comment says what an example needs that is not here: a network, files of the reader."""


def _words(line: str, server: str) -> list[str]:
    words = shlex.split(line.replace("\\\n", " ").replace(SERVER, server))
    assert words[:2] == ["python", "run_findit.py"]
    return words[2:]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which lines are typed, as a newcomer has it: empty."""
    for name in [each for each in os.environ if each.startswith(("FINDIT_", "MMEVAL_", "PRED_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("LMUData", str(tmp_path / "data"))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def _typed(words: list[str]) -> int:
    before = dict(os.environ)
    try:
        return main(words)
    finally:
        os.environ.clear()
        os.environ.update(before)


@pytest.mark.slow
def test_every_example_of_helps_works_in_order(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ChatServer(lambda asked, number: completion("[]")) as server:
        for line in TYPED:
            words = _words(line, server.url)
            status = _typed(words)
            printed = capsys.readouterr()
            allowed = (0, 1) if words[0] in MAY_FIND else (0,)
            assert status in allowed, f"{line}\n{printed.out}\n{printed.err}"
            if line == TYPED[0]:
                row = printed.out.splitlines()[1].split()
                assert float(row[2]) > 90, printed.out  # F1@0.5
                assert f"Next: {program()} report outputs" in printed.err


def test_most_examples_are_typed() -> None:
    """The first of each command, unless it asks for files of the reader."""
    assert len(TYPED) > 25
    assert len(EXAMPLES) - len(TYPED) < 20
    assert "FindIt-Nano" in TYPED[0]


@pytest.mark.slow
def test_blocks_of_readme_work_in_order(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With a server, RefCOCO, a checkpoint and a file in the places of the reader's."""
    _lay_out(desk)
    capsys.readouterr()
    lines = [*_readme()]
    assert len(lines) > 12
    with ChatServer(lambda asked, number: completion("[[10, 10, 500, 500]]")) as server:
        for words in lines:
            status = _typed(_as_here(words, server.url))
            printed = capsys.readouterr()
            allowed = (0, 1) if words[0] in MAY_FIND else (0,)
            assert status in allowed, f"{words}\n{printed.out}\n{printed.err}"


NOT_TYPED = {"demo", "get"}
"""It takes minutes; it takes a network."""


def _readme() -> Iterator[list[str]]:
    for block in blocks(PAGES["README.md"]):
        if not block.info.startswith("sh"):
            continue
        text = "\n".join(line for line in block.text.splitlines() if "needs a copy" not in line)
        for words in commands(text):
            if not NOT_TYPED & set(words[:2]):
                yield words


def _as_here(words: list[str], server: str) -> list[str]:
    """Return a line for who has a stub, where the reader has a GPU, a server or an account."""
    line = " ".join(words).replace(SERVER, server).replace("/path", "checkpoint --like FindIt-Nano")
    if "--serve" in words:
        served = "--model Qwen3-VL-8B=served-name"
        line = line.replace("--serve vllm", f"--base-url {server}")
        return line.replace("--model Qwen3-VL-8B", served).split()
    is_asked_here = "--base-url" in words or "my-ft" in line
    return line.split() if words[0] != "run" or is_asked_here else [*line.split(), "--dry-run"]


def _lay_out(desk: Path) -> None:
    """Write what the reader has: RefCOCO, a checkpoint, a file of annotations."""
    assert _typed(["data", "show", "FindIt_Scenes_mini_refexp_xyxy_json"]) == 0
    data = desk.parent / "data"
    of_refcoco = parse("FindIt_RefCOCO_xyxy_json").images
    shutil.copy(data / "Scenes_mini_refexp.tsv", data / "RefCOCO.tsv")
    shutil.copytree(data / "images" / "Scenes_mini", data / "images" / of_refcoco)
    shutil.copytree(ROOT / "weights" / "findit_nano", desk / "checkpoint")
    image = next((data / "images" / "Scenes_mini").rglob("*.png"))
    shutil.copy(image, desk / image.name)
    row = {"image": image.name, "label": "ring", "boxes": [[10, 10, 50, 50]]}
    (desk / "mine.jsonl").write_text(json.dumps(row))
