"""Pages of the documentation: their blocks, their commands, and what they show."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from paths import ROOT
from written_pages import WRITTEN

PAGES = {
    name: path
    for path in (
        *sorted(ROOT.glob("*.md")),
        *sorted((ROOT / "docs").rglob("*.md")),
        ROOT / "benchmarks" / "README.md",
    )
    if "_build" not in path.parts and (name := str(path.relative_to(ROOT))) not in WRITTEN
}
"""All pages of the clone by their path; not those that are written when the site is built."""

LEFT_OUT = "…"
_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROGRAMS = (("findit",), ("python", "run_findit.py"), (".venv/bin/python", "run_findit.py"))


class Block(NamedTuple):
    """A fenced block: its info string, its text, and the output shown below it."""

    info: str
    text: str
    shown: tuple[str, ...] = ()


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page; ``text`` blocks belong to the block above them."""
    fences = _FENCE.findall(page.read_text(encoding="utf-8"))
    for (info, text), (below, output) in pairwise([*fences, ("", "")]):
        if info != "text":
            lines = output.splitlines() if below == "text" else ()
            yield Block(info.strip(), text, tuple(x.rstrip() for x in lines if x != LEFT_OUT))


def commands(text: str) -> Iterator[list[str]]:
    """Yield the arguments of every ``findit`` command in a block of shell lines."""
    joined = text.replace("\\\n", " ")
    for line in joined.splitlines():
        words = _words(line)
        for at in range(len(words)):
            for program in _PROGRAMS:
                if tuple(words[at : at + len(program)]) == program:
                    yield list(_arguments(words[at + len(program) :]))


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:  # A line of a document that is written by the block
        return []


def _arguments(words: list[str]) -> Iterator[str]:
    for word in words:
        if word in ("&&", "||", "|", ";", "&") or word.startswith((">", "2>")):
            return
        yield word


def file_on_page(page: str, name: str) -> str:
    """Return the content of a file that a page writes."""
    text = PAGES[page].read_text(encoding="utf-8")
    return text.split(f"cat > {name} <<'EOF'\n")[1].split("\nEOF\n")[0] + "\n"
