"""What commands print: tables of scores."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..metrics import SHOWN
from ..plain import visible

if TYPE_CHECKING:
    from rich.console import Console


_ENDLESS = 100_000
"""A pipe has no width: nothing is ever folded or cut there."""


def console() -> Console:
    """Where tables go."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=_ENDLESS)


def print_rows(rows: Iterable[Mapping[str, Any]]) -> None:
    """A table of the columns that a reader looks at first, and a line for what was left out."""
    from rich.table import Table
    from rich.text import Text

    rows = list(rows)
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("dataset", no_wrap=True)
    table.add_column("model", no_wrap=True)
    for name in (*SHOWN, "scored", "failed"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            row["dataset"],
            # Not markup, whatever it is called.
            Text(visible(row["model"])),
            *(f"{float(row[name]):.1f}" for name in SHOWN),
            f"{row['scored']}/{row['rows']}",
            str(row["failed calls"]),
        )
    console().print(table)
