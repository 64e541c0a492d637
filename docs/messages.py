"""The page of messages: what commands refuse, by command, from ``tests/golden/refusals/``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vlmeval_findit.cli import COMMANDS

REFUSALS = Path(__file__).resolve().parents[1] / "tests" / "golden" / "refusals"

WORDS = {
    "NANO": "--model FindIt-Nano --data FindIt_Scenes_mini_xyxy_json",
    "PASCAL": "--data FindIt_Pascal_xyxy_json",
    "SERVER": "--base-url http://127.0.0.1:1/v1",
    "IMAGES": "--image-root data/images --name Mine",
}
"""Abbreviations in the files, so that a line shows only what is wrong with it."""

OTHER = "no command of ours"
"""The heading of lines whose first word is not a command."""


@dataclass(frozen=True)
class Refusal:
    """One refused command line."""

    section: str  # The heading above it, empty without one
    line: str  # As it stands in its file, with abbreviations
    printed: str
    status: int

    @property
    def typed(self) -> str:
        """Return the line without abbreviations; the program's name is not in it."""
        return whole(self.line)


def refusal_files() -> dict[str, Path]:
    """Return the file of each command, also of those that refuse nothing yet."""
    files = {name: REFUSALS / f"{name.replace(' ', '-')}.txt" for name in COMMANDS}
    return {**files, OTHER: REFUSALS / "no-command.txt"}


def whole(line: str) -> str:
    """Write out the abbreviations of a line."""
    return re.sub(rf"\b({'|'.join(WORDS)})\b(?!=)", lambda word: WORDS[word[0]], line)


def refusals(text: str) -> Iterator[Refusal]:
    """Read a file: entries are separated by empty lines, headings begin with ``#``."""
    section = ""
    for entry in text.strip().split("\n\n"):
        first, _, rest = entry.partition("\n")
        if first.startswith("# "):
            section = first.removeprefix("# ")
            continue
        printed, _, status = rest.rpartition("\n")
        yield Refusal(section, first.removeprefix("$ "), printed, int(status.strip("[]")))


def command_of(typed: str) -> str:
    """Return the command of a line; ``run`` may be left out.

    >>> command_of("FINDIT_TABLES=none --data A --model B"), command_of("--plugin a.py data list")
    ('run', 'data list')
    """
    words = shlex.split(typed)
    while re.match(r"[A-Z]\w*=", words[0]):
        del words[0]
    if words[0] == "--plugin":
        del words[:2]
    if words[0].startswith("-"):
        return "run"
    for name in (" ".join(words[:2]), words[0]):
        if name in COMMANDS:
            return name
    return OTHER


def messages_page() -> str:
    """Write the page: a section a command, a block a refusal."""
    lines = [_LEAD]
    for name, path in refusal_files().items():
        if path.exists():
            title = name if name == OTHER else f"`{name}`"
            lines += [f"## {title}", "", *blocks(path.read_text(encoding="utf-8"))]
    return "\n".join(lines)


_LEAD = """\
# Messages

What commands refuse, and what they then say to type. Search for a few words of your message.

The [exit status](exit-statuses.md) is 2, nothing was run, unless another is stated. `DIR` is the
current folder, `CLONE` the clone, `MODELS` the names that `findit models` lists.
"""


def blocks(text: str) -> Iterator[str]:
    """Show the refusals of a file, with its headings."""
    section = ""
    for refusal in refusals(text):
        if refusal.section != section:
            section = refusal.section
            yield f"### {section[:1].upper()}{section[1:]}\n"
        status = "" if refusal.status == 2 else f"\n(exit status {refusal.status})"
        shown = f"$ {_as_typed(refusal.typed)}\n{refusal.printed}{status}"
        shown = shown.replace("python run_findit.py", "findit")
        yield f"````{{code-block}} text\n:class: message\n\n{shown}\n````\n"


def _as_typed(typed: str) -> str:
    """Put the program's name behind the variables that a line sets."""
    variables = re.match(r"(?:[A-Z]\w*=(?:'[^']*'|\S)* )*", typed)
    assert variables
    return f"{variables[0]}findit {typed[variables.end() :]}"
