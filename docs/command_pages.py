"""Pages of commands: one for each, with its options by the parser, and its examples."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from vlmeval_findit.cli import COMMANDS, OLD_WORDS, command_named

FOLDER = "docs/reference/commands"


def command_pages() -> dict[str, Callable[[], str]]:
    """Return path -> what writes the page of a command."""
    return {
        f"{FOLDER}/{name.replace(' ', '-')}.md": partial(_page, name)
        for name in COMMANDS
        if name not in OLD_WORDS
    }


def _page(name: str) -> str:
    module, _, attribute = COMMANDS[name][0].partition(".")
    # The section of the parser's has the name alone
    lines = [f"# findit {name}: {COMMANDS[name][1]}", "", "```{eval-rst}"]
    lines += [f".. click:: vlmeval_findit.cli.{module}:{attribute or 'command'}"]
    lines += [f"   :prog: findit {name}", "```", ""]
    examples = getattr(command_named(name), "examples", ())
    if examples:
        lines += ["## Examples", "", "```sh"]
        lines += [each.replace("python run_findit.py", "findit") for each in examples]
        lines += ["```", ""]
    return "\n".join(lines)
