"""``run_findit.py plugins``: the rows that other packages and files add, and what is broken."""

from __future__ import annotations

from textwrap import wrap

import click

from ..core.plugins import Broken, Plugin, reported, unreported
from ..core.redaction import scrub
from ..runs.run_identity import plugin_tables
from .options import Command

BROKEN = 1
"""The exit status where something cannot be used."""

_WIDTH = 80
_GROUP, _ROW = 16, 24


@click.command(cls=Command)
def command() -> int:
    """List the rows that plug-ins add, by table, and what cannot be used.

    docs/plugins.md says how to write a plug-in. Exit status 1: something is broken.
    """
    with unreported():
        found = [
            (group.value, name, added.plugin)
            for group, table in plugin_tables().items()
            for name, added in table.added().items()
        ]
    for group, name, plugin in found:
        print("\n".join(_lines(group, name, plugin)))
    broken = reported()
    if not found and not broken:
        print("No plug-in adds a row: docs/plugins.md says how one does.")
    for one in broken:
        print("\n".join(_broken_lines(one)))
    return BROKEN if broken else 0


def _lines(group: str, name: str, plugin: Plugin) -> list[str]:
    """A row: group, name, and what it is of; a path is not broken."""
    first = f"{group:<{_GROUP}}{name:<{_ROW}}"
    said = f"{plugin.name} {plugin.version}"
    if len(name) < _ROW and len(first) + len(said) <= _WIDTH:
        return [first + said, f"{'':<{_GROUP}}{plugin.origin}"]
    return [first.rstrip(), f"{'':<{_GROUP}}{said}", f"{'':<{_GROUP}}{plugin.origin}"]


def _broken_lines(one: Broken) -> list[str]:
    plugin = one.plugin
    group = one.group.value if one.group else "file"
    what = " ".join(filter(None, ("broken:", one.what)))
    said = " ".join(filter(None, (plugin.name, plugin.version)))
    indent = " " * _GROUP
    why = wrap(scrub(one.why), _WIDTH - _GROUP, break_long_words=False, break_on_hyphens=False)
    return [f"{group:<{_GROUP}}{what}", f"{indent}{said}", f"{indent}{plugin.origin}"] + [
        f"{indent}{line}" for line in why
    ]
