"""``run_findit.py plugins``: what plug-ins add, and what of it cannot be used."""

from __future__ import annotations

from textwrap import wrap

import click

from ..core.command import SOME_FAILED
from ..core.plugin_rows import Broken, reported, unreported
from ..core.redaction import scrub
from ..runs.run_identity import plugin_tables
from .options import Command

_WIDTH = 80
_GROUP, _ROW = 16, 24


@click.command(cls=Command)
def command() -> int:
    """List the rows that plug-ins add, by table, and what cannot be used.

    docs/how-to/benchmarks.md says how to write a plug-in. Exit status 1: something is broken.
    """
    with unreported():
        rows = [
            (group.value, name, added.plugin)
            for group, table in plugin_tables().items()
            for name, added in table.added().items()
        ]
    for group, name, plugin in rows:
        row, version = f"{group:<{_GROUP}}{name:<{_ROW}}", f"{plugin.name} {plugin.version}"
        fits = len(name) < _ROW and len(row) + len(version) <= _WIDTH
        _print_indented(*([row + version] if fits else [row.rstrip(), version]), plugin.origin)
    broken = reported()
    if not rows and not broken:
        print("No plug-in adds a row: docs/how-to/benchmarks.md says how to write a plug-in.")
    for each in broken:
        _print_broken(each)
    return SOME_FAILED if broken else 0


def _print_broken(broken: Broken) -> None:
    plugin, group = broken.plugin, broken.group.value if broken.group else "file"
    why = wrap(scrub(broken.why), _WIDTH - _GROUP, break_long_words=False, break_on_hyphens=False)
    first = f"{group:<{_GROUP}}{f'broken: {broken.what}'.rstrip()}"
    _print_indented(first, f"{plugin.name} {plugin.version}".rstrip(), plugin.origin, *why)


def _print_indented(first: str, *rest: str) -> None:
    print(first)
    for line in rest:
        print(f"{'':<{_GROUP}}{line}")
