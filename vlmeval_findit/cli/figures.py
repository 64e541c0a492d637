"""``run_findit.py figures``: whose published figures are known, and a file for others."""

from __future__ import annotations

from pathlib import Path

import click

from ..core import as_called, atomic_write, counted
from ..data import figures_template, published_figures, read_figures, sources_of
from ..reproduction import OWN_PAPER
from .command_base import WRITTEN_FILE, Command, figures_option, option, say
from .printing import print_folded


@click.command(
    cls=Command,
    examples=[
        "python run_findit.py figures",
        "python run_findit.py figures --template figures.yaml",
        "python run_findit.py figures --figures figures.yaml  # with your values",
    ],
)
@option(
    "--template",
    "FILE",
    "Write a file for figures, with the conditions of both releases of FindIt's paper.",
    type=WRITTEN_FILE,
)
@figures_option
def command(template: Path | None, figures_file: Path | None) -> int:
    """List whose published figures are known, or write a file to type others into.

    `reproduce`, `leaderboard` and `report` take the file after --figures.
    """
    if template is not None:
        _write_template(template)
        return 0
    own = read_figures(figures_file) if figures_file is not None else ()
    for source, number in sources_of([*own, *published_figures()]).items():
        print_folded(f"{counted(number, 'figure')}: {source}")
    if not any(OWN_PAPER in figure.source for figure in own):
        say("")
        print_folded(
            f"Not known: those of FindIt's own paper ({OWN_PAPER}); its tables could not be read "
            "in a public copy. Whoever has them types them into a file:"
        )
        say(as_called("  python run_findit.py figures --template figures.yaml"))
    return 0


def _write_template(path: Path) -> None:
    if path.exists():
        raise ValueError(f"--template {path}: the file exists, and may have figures: name another")
    with atomic_write(path) as file:
        file.write(figures_template())
    say(f"{path}: type the values, then name it after --figures")
