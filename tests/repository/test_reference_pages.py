"""Pages of the reference that repeat what the code says."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest
from messages import REFUSALS, blocks, command_of, messages_page, refusal_files, refusals
from pages import WRITTEN
from paths import ROOT

from vlmeval_findit.cli import COMMANDS, main
from vlmeval_findit.core import EXIT_INTERRUPTED, EXIT_LATER, EXIT_LIMIT_REACHED
from vlmeval_findit.models import ModelEntry, RunSettings
from vlmeval_findit.sweeps import SweepFile

REFERENCE = ROOT / "docs" / "reference"
STATUSES = (REFERENCE / "exit-statuses.md").read_text(encoding="utf-8")

EVERYWHERE = {int(status) for status in re.findall(r"^\| (\d+) \|", STATUSES, re.MULTILINE)}
OF_COMMANDS = {
    (name, int(status)) for name, status in re.findall(r"^\| `([^`]+)` \| (\d+) \|", STATUSES, re.M)
}


def test_exit_statuses_are_the_constants_and_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    source = (ROOT / "vlmeval_findit" / "core" / "command.py").read_text(encoding="utf-8")
    constants = {int(value) for value in re.findall(r"^[A-Z_]+ = (\d+)", source, re.MULTILINE)}
    assert {0, *constants} == EVERYWHERE
    assert main(["--help"]) == 0
    told = capsys.readouterr().out.split("Exit status: ")[1].split("\n\n")[0]
    assert {int(status) for status in re.findall(r"\b\d+\b", told)} == EVERYWHERE


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_means_what_the_page_says(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Its help may repeat what 130 means everywhere, and 3 and 4 if its 0 is everybody's."""
    assert main([*name.split(), "--help"]) == 0
    sections = re.split(r"Exit\s+status", capsys.readouterr().out)[1:]
    for section in sections:
        told = {int(status) for status in re.findall(r"\b(\d+)(?::|  )", section.split("\n\n")[0])}
        assert told, section
        repeated = (
            {EXIT_INTERRUPTED} if 0 in told else {EXIT_LATER, EXIT_LIMIT_REACHED, EXIT_INTERRUPTED}
        )
        for status in told - repeated:
            assert (name, status) in OF_COMMANDS


def test_rows_of_exit_statuses_are_of_commands() -> None:
    assert {name for name, _ in OF_COMMANDS} <= set(COMMANDS)


def test_messages_are_all_on_their_page() -> None:
    page = messages_page()
    files = refusal_files().values()
    known = [each for path in files if path.exists() for each in refusals(path.read_text("utf-8"))]
    assert len(known) > 300
    for refusal in known:
        assert refusal.printed.replace("python run_findit.py", "findit") in page


def test_a_refusal_stands_in_the_file_of_its_command() -> None:
    files = refusal_files()
    assert set(REFUSALS.iterdir()) <= set(files.values())
    for command, path in files.items():
        if path.exists():
            of_file = list(refusals(path.read_text("utf-8")))
            assert {command_of(each.typed) for each in of_file} == {command}
            lines = [each.line for each in of_file]
            assert len(set(lines)) == len(lines), path


def test_a_refusal_is_shown_as_it_is_typed() -> None:
    text = "# first\n\n$ FINDIT_X='a b' PASCAL --model M\nerror: data list:\n  two lines\n[1]"
    assert list(blocks(text)) == [
        "### First\n",
        "````{code-block} text\n:class: message\n\n"
        "$ FINDIT_X='a b' findit --data FindIt_Pascal_xyxy_json --model M\n"
        "error: data list:\n  two lines\n(exit status 1)\n````\n",
    ]


def test_pages_that_the_build_writes_are_ignored() -> None:
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    folders = tuple(line for line in ignored if line.endswith("/"))
    assert [page for page in WRITTEN if page not in ignored and not page.startswith(folders)] == []


@pytest.mark.parametrize("command", ["run", "search", "sweep", "reproduce"])
def test_flags_of_models_are_on_their_page(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (REFERENCE / "model-names.md").read_text(encoding="utf-8")
    assert main([command, "--help-all"]) == 0
    of_models = capsys.readouterr().out.split("The model:")[1].split("Every command:")[0]
    flags = re.findall(r"^  (--[\w-]+)", of_models, re.MULTILINE)
    assert len(flags) > 15
    assert [flag for flag in flags if not re.search(rf"`{flag}[ `]", page)] == []


KEYS_OF_PAGES: tuple[tuple[type, list[str], set[str]], ...] = (
    (ModelEntry, ["model-names.md"], {"name", "where"}),
    (RunSettings, ["checkpoints.md", "model-names.md"], set()),
    (SweepFile, ["sweep-files.md"], set()),
)


@pytest.mark.parametrize(("record", "pages", "not_typed"), KEYS_OF_PAGES)
def test_keys_have_rows_on_their_page(record: type, pages: list[str], not_typed: set[str]) -> None:
    text = "\n".join((REFERENCE / page).read_text(encoding="utf-8") for page in pages)
    rows = "\n".join(line for line in text.splitlines() if line.startswith("|"))
    keys = {field.name for field in fields(record)} - not_typed
    assert len(keys) > 10
    assert [key for key in sorted(keys) if f"`{key}`" not in rows] == []
