"""What is answered to words, commands and flags that are not ours."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import click

from ..core import (
    OTHER_COMMANDS,
    TYPING_ERROR,
    advice_without,
    as_called,
    closest,
    first_few,
    is_of_others,
    program,
    same_meaning,
)

FlagsByCommand = Mapping[str, Collection[str]]

_ASKS = "--max-usd"  # of every command that asks models of the user's choice

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

    A word behind ``data`` may be one that others have without it. The word behind a command is
    what ours is typed with, too.

    >>> our_command(["view", "outputs"]).endswith(" report (one page with plots and every answer)")
    True
    >>> our_command(["data", "download"]) == our_command(["download"])
    True
    >>> our_command(["rm", "Mine"]).endswith("data remove Mine (deletes what an import made)")
    True
    """
    names = [" ".join(words[:2]), *words[:1]]
    if words[0] == "data":
        names = [" ".join(words[:2]), *words[1:2]]
    for name in names:
        if name in OTHER_COMMANDS:
            rest = words[words.index(name.split()[-1]) + 1 :]
            rows = OTHER_COMMANDS[name]
            if len(rest) == 1 and not rest[0].startswith("-"):
                rows = [row.replace("NAME", shlex.quote(rest[0])) for row in rows]
            typed = " or ".join(f"run_findit.py {row}" for row in rows)
            return as_called(f" Type: {typed}")
    return ""


def other_flag(word: str, flags: Collection[str], command: str) -> str | None:
    """Say which of a command's flags another program's is, or what to do without one.

    Args:
        flags: that the command takes; a name without dashes is typed without a flag.
        command: its name, as ``data list``.

    >>> other_flag("--tasks=RefCOCO", ["--data"], "run")
    "unknown flag '--tasks': it is --data here"
    >>> other_flag("--tasks", ["data"], "data show")
    "unknown flag '--tasks': type it without a flag"
    >>> other_flag("--resume", ["--max-usd"], "run")
    "unknown flag '--resume': type the same command again: it goes on"
    >>> other_flag("--anything", ["--data"], "run")
    """
    name = word.partition("=")[0]
    advice = advice_without(name, command)
    if advice is not None and not advice.of_asking:
        return as_called(f"unknown flag {name!r}: {advice.sentence}")
    named = [flag for flag in flags if flag.startswith("-")]
    if same := same_meaning(name, named):
        return f"unknown flag {name!r}: it is {' '.join(filter(None, same))} here"
    if same_meaning(name, flags):
        return f"unknown flag {name!r}: type it without a flag"
    if advice is None:
        return None
    begin = "" if _ASKS in flags else f"{command} has none. For run: "
    return as_called(f"unknown flag {name!r}: {begin}{advice.sentence}")


def misspelt_flag(word: str, flags: Collection[str]) -> str | None:
    """Say which flag was probably meant by one that is a letter or two off."""
    name = word.partition("=")[0]
    guessed = [flag for flag in flags if flag.startswith("-") and flag not in NEVER_GUESSED]
    near = None if is_of_others(name) else closest(name, guessed, TYPING_ERROR)
    return f"unknown flag {name!r}: did you mean {near}?" if near is not None else None


def flag_elsewhere(word: str, command: str, by_command: FlagsByCommand) -> str | None:
    """Say which other commands have a flag, by our word or another program's."""
    name = word.partition("=")[0]
    takers: dict[str, list[str]] = {}
    for other, its_flags in by_command.items():
        if other == command:
            continue
        flags = [flag for flag in its_flags if flag.startswith("-")]
        same = (name, "") if name in flags else same_meaning(name, flags)
        if same:
            takers.setdefault(same[0], []).append(other)
    if not takers:
        return None
    flag = name if name in takers else max(takers, key=lambda each: len(takers[each]))
    return f"unknown flag {name!r}: {command} has none; {flag} is of {first_few(takers[flag], 4)}"


def unknown_flag(
    word: str, flags: Collection[str], command: str, by_command: Callable[[], FlagsByCommand]
) -> str:
    """Say that a command has no such flag, and what was probably meant.

    ``by_command`` returns the flags of all commands; it is asked last, as all are imported then.
    """
    nowhere = f"unknown flag {word.partition('=')[0]!r}. Type: {program()} {command} --help"
    return (
        other_flag(word, flags, command)
        or misspelt_flag(word, flags)
        or flag_elsewhere(word, command, by_command())
        or nowhere
    )


def flags_of(command: click.Command) -> set[str]:
    """Return all spellings of a command's own flags, and the names of what has none."""
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
