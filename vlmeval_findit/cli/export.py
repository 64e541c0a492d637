"""``run_findit.py export``: scored runs for other programs."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..boxes.confidences import DEFAULT, DEFINITIONS
from ..core.command import SOME_FAILED
from ..core.formatting import printable
from ..core.run_files import CHECKSUMS
from ..publish.targets import TARGETS, ExportError, exporter, some
from .options import PATH, Command, runs_argument

if TYPE_CHECKING:
    from ..publish.upload import Repository
    from ..runs.scored_run import Run

AnyCommand = TypeVar("AnyCommand", bound=Callable[..., Any] | click.Command)

_PLACES = 20
"""How many addresses and paths are listed where nothing is uploaded."""


def _flag(name: str, text: str, **settings: Any) -> Callable[[AnyCommand], AnyCommand]:
    """Make an option of the exporters that have a parameter of its name."""
    targets = ", ".join(target for target, row in TARGETS.items() if name in row.flags)
    return click.option(f"--{name}", help=f"{targets}: {text}", **settings)


_SERVERS = "; ".join(f"{name}: {row.server}" for name, row in TARGETS.items() if row.server)


@click.command(
    cls=Command,
    examples=["python run_findit.py export outputs --to coco"],
    sections={"Targets": lambda: [(name, row.what) for name, row in TARGETS.items()]},
)
@runs_argument
@click.option("--to", "target", required=True, type=click.Choice(tuple(TARGETS)), metavar="TARGET")
@click.option(
    "--out",
    type=PATH,
    metavar="DIR",
    help=f"Folder that is written [default: outputs/export/TARGET; {_SERVERS}].",
)
@_flag(
    "confidence",
    f"the score of a box, in runs with --logprobs ({DEFAULT}).",
    type=click.Choice(tuple(DEFINITIONS)),
)
@_flag("licence", "the hub's name for it, as cc-by-4.0.", metavar="NAME")
@_flag("project", "project, or experiment of MLflow (findit).", metavar="NAME")
@_flag(
    "pictures",
    "worst answers of a run, on their images (8).",
    type=click.IntRange(min=0),
    metavar="N",
)
@click.option("--upload", "address", metavar="OWNER/NAME", help="hub: upload to this repository.")
@click.option("--private", is_flag=True, help="hub: a new repository is private.")
@click.option("--yes", is_flag=True, help="hub: upload without asking.")
def command(
    runs: tuple[Path, ...],
    target: str,
    out: Path | None,
    address: str | None,
    private: bool,
    yes: bool,
    **flags: Any,
) -> int:
    """Export scored runs to what other programs read; no model is asked.

    The same runs again: files are written again, trackers keep what they have. Exit status 1:
    another program or server refused; run the same command again to go on.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    _check_flags(target, given, address, private, yes)
    server = TARGETS[target].server
    if out is None and not (server and os.environ.get(server)):
        out = Path("outputs", "export", target)
    # They import pyarrow and scipy, which a --help need not wait for.
    from ..publish.upload import changes, look_at, upload
    from ..runs.scored_run import load_runs

    try:
        repository = look_at(address, private) if address else None
        for line in exporter(target)(_checked(load_runs(runs), out), out, **given):
            # Indented lines are to be copied.
            print(line if line.startswith(" ") else "\n".join(_folded(line)))
        if target != "hub" or out is None:
            return 0
        files = _print_places(out, most=None if repository else _PLACES)
        if repository is None:
            return 0
        planned = changes(files, repository)
        _print_changes(repository, planned)
        if not yes and not click.confirm("Upload?"):
            print("nothing was uploaded", file=sys.stderr)
            return SOME_FAILED
        upload(out, planned, repository)
    except ExportError as error:
        print(f"error: {error}\nrun the same command again to go on", file=sys.stderr)
        return SOME_FAILED
    print(f"uploaded: {repository.address}")
    return 0


_folded = partial(wrap, width=80, break_long_words=False, break_on_hyphens=False)


def _checked(runs: Sequence[Run], out: Path | None) -> Sequence[Run]:
    """Refuse runs inside the folder that is written, and scores in another than the run's space."""
    for run in runs:
        if out and run.path.resolve().is_relative_to(out.resolve()):
            # No command would find it there any more.
            raise ValueError(f"--out {out} holds the run {run.path}: name another folder")
        if run.other_space:
            raise ValueError(f"{run.model}: not in the space that the run recorded: {run.path}")
    return runs


def _check_flags(
    target: str, flags: Mapping[str, Any], address: str | None, private: bool, yes: bool
) -> None:
    """Refuse flags of other targets, a licence that the hub does not know, and lonely flags."""
    for flag in flags:
        if flag not in TARGETS[target].flags:
            users = [other for other, row in TARGETS.items() if flag in row.flags]
            raise ValueError(f"--{flag} is for --to {' or '.join(users)}: leave it out")
    licence = flags.get("licence", "other")
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", licence):
        raise ValueError(
            f"--licence {licence!r} is not a licence that the hub knows: cc-by-4.0, mit or other"
        )
    if address and target != "hub":
        raise ValueError("--upload is for --to hub: leave it out")
    if (private or yes) and not address:
        raise ValueError("--private and --yes need --upload OWNER/NAME: add it")
    if address and not yes and not sys.stdin.isatty():
        raise ValueError(
            "--upload asks before it publishes, and there is no terminal to ask at: run without "
            "--upload, look at the addresses and paths that it lists, then add --yes"
        )


def _print_places(out: Path, most: int | None) -> tuple[str, ...]:
    """List the addresses and paths in a dataset's files; returns those files."""
    from ..publish.export_folder import written_files
    from ..publish.private import places_of

    files = written_files(out / CHECKSUMS, "hub")
    places = places_of(out, files)
    print(f"addresses and paths in it: {len(places) or 'none'}")
    for place, names in list(places.items())[:most]:
        print(f"  {printable(place)} in {some(names)}")
    if most is not None and len(places) > most:
        print(f"  and {len(places) - most:,} more, which --upload lists before it asks")
    return files


def _print_changes(repository: Repository, planned: Mapping[str, list[str]]) -> None:
    """Print what the upload changes, and who can read it."""
    readers = "PUBLIC: everybody can read it"
    if repository.private:
        readers = "private: only those who have access can read it"
    kind = "a new repository" if repository.commit is None else "an existing repository"
    print(f"to {repository.address}, {kind}, {readers}")
    for what, names in planned.items():
        if names:
            print(f"  {what}: {some(names)}")
