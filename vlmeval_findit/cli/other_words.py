"""What is answered to words, commands and flags that are not ours."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import click

from ..core import NO_FLAG, OTHER_COMMANDS, TYPING_ERROR, as_called, closest, same_meaning

NEVER_GUESSED = frozenset(
    {
        "--clip-boxes",
        "--force",
        "--leave-out-bad-boxes",
        "--leave-out-unknown",
        "--no-masks",
        "--skip-missing-images",
        "--skip-unreadable-images",
        "--yes",
        "--yes-test-data",
    }
)
"""Flags that change what is accepted: nobody is led to one because letters are alike."""


def our_command(words: Sequence[str]) -> str:
    """Return `` Type: …`` for a command of another program; "" if none is known.

    A word behind ``data`` may be one that others have without it.

    >>> our_command(["view", "outputs"]).endswith(" report (one page with plots and every answer)")
    True
    >>> our_command(["data", "download"]) == our_command(["download"])
    True
    """
    names = [" ".join(words[:2]), *words[:1]]
    if words[0] == "data":
        names = [" ".join(words[:2]), *words[1:2]]
    for name in names:
        if name in OTHER_COMMANDS:
            typed = " or ".join(f"run_findit.py {row}" for row in OTHER_COMMANDS[name])
            return as_called(f" Type: {typed}")
    return ""


def other_flag(word: str, flags: Collection[str]) -> str | None:
    """Say which of a command's flags another program's is, or what to do without one.

    >>> other_flag("--tasks=RefCOCO", ["--data"])
    "unknown flag '--tasks': it is --data here"
    >>> other_flag("--resume", ["--data"])
    "unknown flag '--resume': type the same command again: it goes on"
    >>> other_flag("--anything", ["--data"])
    """
    name = word.partition("=")[0]
    if same := same_meaning(name, flags):
        return f"unknown flag {name!r}: it is {' '.join(filter(None, same))} here"
    advice = NO_FLAG.get(name.lstrip("-").replace("_", "-"))
    return f"unknown flag {name!r}: {as_called(advice)}" if advice else None


def misspelt_flag(word: str, flags: Collection[str]) -> str | None:
    """Say which flag was probably meant by one that is a letter or two off."""
    name = word.partition("=")[0]
    guessed = [each for each in flags if each not in NEVER_GUESSED]
    near = closest(name, guessed, TYPING_ERROR)
    return f"unknown flag {name!r}: did you mean {near}?" if near is not None else None


def unknown_flag(word: str, flags: Collection[str], command: str) -> str:
    """Say that ``command`` has no such flag, and what was probably meant."""
    nowhere = f"unknown flag {word.partition('=')[0]!r}. Type: {command} --help"
    return other_flag(word, flags) or misspelt_flag(word, flags) or nowhere


def flags_of(command: click.Command) -> set[str]:
    """Return all spellings of a command's own flags."""
    return {name for option in command.params for name in option.opts} | {"--version"}


def with_help_flag(words: Sequence[str]) -> list[str]:
    """Return a command line with ``--help`` in place of the word ``help``.

    A file or folder of that name is meant where there is one.

    >>> with_help_flag(["help"]), with_help_flag(["help", "run"]), with_help_flag(["data", "help"])
    (['--help'], ['run', '--help'], ['data', '--help'])
    """
    if list(words[:1]) == ["help"]:
        return [*words[1:], "--help"]
    has_flags = any(word.startswith("-") for word in words)
    if list(words[-1:]) == ["help"] and not has_flags and not Path("help").exists():
        return [*words[:-1], "--help"]
    return list(words)
