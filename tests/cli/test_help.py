"""What helps show: the common options first, all of them when asked; old words are not listed."""

from __future__ import annotations

import logging
import re

import click
import pytest

from vlmeval_findit.cli import COMMANDS, ROOT, command_base, command_named, main
from vlmeval_findit.core import flag_name
from vlmeval_findit.models import declared_options

ASKING = ("run", "search", "sweep", "probe", "reproduce")
COMMON = {
    *("--like", "--space", "--base-url", "--provider", "--key", "--api-nproc"),
    *("--batch-size", "--serve", "--max-usd", "--dry-run"),
}


def described(text: str) -> set[str]:
    """Return the flags that a help has a line for."""
    return set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text.partition(" more, described")[0], re.M))


def helped(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(line.split()) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", ASKING)
def test_ten_options_of_asking_are_shown_first(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    of_asking = {flag_name(each) for each, row in declared_options().items() if row.option.heading}
    short = described(helped(f"{name} -h", capsys))
    assert short & of_asking == COMMON
    assert described(helped(f"{name} --help-all", capsys)) & of_asking > COMMON


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_described_or_named(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And has its line in the long help, if there is one."""
    command = command_named(name)
    options = {option.opts[-1] for option in command.params if isinstance(option, click.Option)}
    short = helped(f"{name} --help", capsys)
    named = short.partition(" more, described by --help-all:")[2].partition("\n\n")[0].split()
    assert options <= described(short) | set(named)
    if "--help-all" in options:
        assert options <= described(helped(f"{name} --help-all", capsys))
        assert not described(short) & set(named)
    else:
        assert not named


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("plugins", "check"),
        ("probe --model FindIt-Nano --dry-run", "coords --model FindIt-Nano --dry-run"),
        ("probe --model FindIt-Nano --dry-run", "coords --model=FindIt-Nano --dry-run"),
    ],
)
def test_an_old_word_does_what_the_new_one_does(
    old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert helped(old, capsys) == helped(new, capsys)


def test_what_check_is_told_without_a_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--like", "Qwen3-VL"]) == 2
    assert "--like has no effect: no NAME says what to try" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("switch", "least"),
    [("", logging.WARNING), ("--verbose", logging.NOTSET), ("--quiet", logging.ERROR)],
)
def test_lines_of_vlmevalkit_are_shown_when_asked(switch: str, least: int) -> None:
    context = ROOT.make_context("findit", [*switch.split(), "models"])
    with context:
        assert command_base.host_log_level() == least
