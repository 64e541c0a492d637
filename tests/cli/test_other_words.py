"""Words and flags of other programs lead to ours."""

from __future__ import annotations

from pathlib import Path

import pytest
from every_pair import every_pair

from vlmeval_findit.cli import COMMANDS, main, other_words, run_command
from vlmeval_findit.core import program


def test_what_is_offered_exists() -> None:
    flags = {flag for option in run_command.params for flag in option.opts} | {"--batch-size"}
    for rows in other_words.COMMANDS.values():
        for row in rows:
            words = row.partition(" (")[0]
            assert any(words.startswith(name) for name in (*COMMANDS, "--version")), row
    for flag in other_words.FLAGS.values():
        assert flag.split()[0] in flags | {"--version"}
    assert not set(other_words.COMMANDS) & set(COMMANDS)
    assert not set(other_words.FLAGS) & flags


@pytest.mark.parametrize("name", sorted(other_words.COMMANDS))
def test_a_word_of_another_program_names_our_command(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(name.split()) == 2
    assert "Type: " in capsys.readouterr().err


@every_pair(
    "flag, form",
    sorted(other_words.FLAGS),
    ["{} x", "{}=x", "--data FindIt_Demo_xyxy_json {} x"],
)
def test_a_flag_of_another_program_comes_before_what_is_missing(
    flag: str, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *form.format(flag).split()]) == 2
    assert f"unknown flag {flag!r}: it is " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "first"),
    [
        (["help"], "Usage: {} [OPTIONS] COMMAND"),
        (["help", "run"], "Usage: {} run"),
        (["run", "help"], "Usage: {} run"),
        (["score", "help"], "Usage: {} score"),
        (["help", "data"], "Usage: {} data"),
        (["data", "help"], "Usage: {} data"),
        (["help", "data", "get"], "Usage: {} data get"),
    ],
)
def test_the_word_help_is_the_flag(
    words: list[str],
    first: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 0
    assert capsys.readouterr().out.startswith(first.format(program()))


def test_a_folder_called_help_is_a_folder(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "help").mkdir()
    assert main(["leaderboard", "help"]) == 2
    assert capsys.readouterr().err.startswith("error: help")


def test_a_flag_of_vlmevalkit_is_never_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its next version calls its flags."""
    pytest.importorskip("vlmeval")
    monkeypatch.setitem(other_words.FLAGS, "--retry", "--model")
    assert main(["run", "--retry", "3", "--model", "FindIt-Nano"]) == 2
    assert capsys.readouterr().err.startswith("error: --model without --data")
