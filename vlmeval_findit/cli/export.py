"""``run_findit.py export``: scored runs for other programs."""

from __future__ import annotations

import argparse
import os
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..boxes.confidences import DEFAULT, DEFINITIONS
from ..core.command import SOME_FAILED
from ..core.spelling import visible
from ..publish.targets import TARGETS, ExportError, exporter, some
from .parsing import Parser

if TYPE_CHECKING:
    from ..publish.upload import Repository

_PLACES = 20
"""How many addresses and paths are listed where nothing is uploaded."""

FLAGS: dict[str, dict[str, Any]] = {
    "confidence": {
        "choices": tuple(DEFINITIONS),
        "help": f"the score of a box, in runs with --confidences ({DEFAULT})",
    },
    "licence": {"metavar": "NAME", "help": "the hub's name of it, as cc-by-4.0"},
    "project": {"metavar": "NAME", "help": "project, or experiment of MLflow (findit)"},
    "pictures": {"metavar": "N", "help": "worst answers of a run, on their pictures (8)"},
}
"""The flags of exporters, by the names of their parameters."""


def main(argv: Sequence[str]) -> int:
    """Export scored runs to what other programs read; nothing asks a model.

    Returns 0; 1 when somebody else's program or server refused: run again to go on.
    """
    args = _arguments(argv)
    # They bring pyarrow and scipy, which a --help need not wait for.
    from ..publish.upload import changes, look_at, upload
    from ..runs.scored_run import load_runs

    names = TARGETS[args.to].flags
    given = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    try:
        repository = look_at(args.upload, args.private) if args.upload else None
        for line in exporter(args.to)(load_runs(args.runs), args.out, **given):
            _say(line)
        if args.to != "hub":
            return 0
        files = _say_places(args.out, most=None if repository else _PLACES)
        if repository is None:
            return 0
        planned = changes(files, repository)
        _say_changes(repository, planned)
        if not args.yes and not _agrees():
            print("nothing was uploaded", file=sys.stderr)
            return SOME_FAILED
        upload(args.out, planned, repository)
    except ExportError as error:
        print(f"error: {error}\nrun the same command again to go on", file=sys.stderr)
        return SOME_FAILED
    print(f"uploaded: {repository.address}")
    return 0


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    targets = "\n".join(f"  {name:<9} {row.what}" for name, row in TARGETS.items())
    parser = Parser(
        prog="run_findit.py export",
        usage="%(prog)s --to TARGET RUN… --out FOLDER [flags of the target]",
        description=f"Export scored runs to what other programs read.\n\ntargets:\n{targets}",
        epilog="the same runs again: files are made anew, trackers keep what they have",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="or folders of runs")
    parser.add_argument("--to", required=True, choices=tuple(TARGETS), metavar="TARGET")
    servers = ", ".join(f"{row.server}: {name}" for name, row in TARGETS.items() if row.server)
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help=f"what is written (or the server of {servers})"
    )
    for name, how in FLAGS.items():
        of = ", ".join(target for target, row in TARGETS.items() if name in row.flags)
        parser.add_argument(f"--{name}", **{**how, "help": f"{of}: {how['help']}"})
    parser.add_argument("--upload", metavar="OWNER/NAME", help="hub: upload to this repository")
    parser.add_argument("--private", action="store_true", help="hub: a new repository is private")
    parser.add_argument("--yes", action="store_true", help="hub: upload without asking")
    args = parser.parse_args(argv)
    _check(args)
    return args


def _check(args: argparse.Namespace) -> None:
    target = TARGETS[args.to]
    for name in FLAGS:
        if getattr(args, name) is not None and name not in target.flags:
            of = [other for other, row in TARGETS.items() if name in row.flags]
            raise ValueError(f"--{name} is of --to {' or '.join(of)}: leave it out")
    if args.upload and args.to != "hub":
        raise ValueError("--upload is of --to hub: leave it out")
    if (args.private or args.yes) and not args.upload:
        raise ValueError("--private and --yes are of --upload OWNER/NAME: add it")
    if args.licence and not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", args.licence):
        raise ValueError(
            f"--licence {args.licence!r} is no name that the hub has: cc-by-4.0, mit or other"
        )
    if args.pictures is not None:
        if not args.pictures.isdecimal():
            raise ValueError(f"--pictures {args.pictures!r} is no number: --pictures 8")
        args.pictures = int(args.pictures)
    if args.out is None and not (target.server and os.environ.get(target.server)):
        instead = f" (or the variable {target.server})" if target.server else ""
        raise ValueError(f"nothing says where to: add --out FOLDER{instead}")
    for path in args.runs:
        if args.out and path.is_dir() and args.out.resolve().is_relative_to(path.resolve()):
            # The next call would take what this one writes for runs.
            raise ValueError(f"--out {args.out} lies in {path}: name a folder beside the runs")
    if args.upload and not args.yes and not sys.stdin.isatty():
        raise ValueError(
            "--upload asks before it publishes, and there is no terminal to ask at: run without "
            "--upload, look at the addresses and paths that it lists, then add --yes"
        )


def _say(line: str) -> None:
    """Print a line, within 80 columns unless it is one to be copied."""
    folded = textwrap.wrap(line, 80, break_long_words=False, break_on_hyphens=False)
    print(line if line.startswith(" ") else "\n".join(folded))


def _say_places(out: Path, most: int | None) -> tuple[str, ...]:
    """List the addresses and paths in a dataset's files; returns those files."""
    from ..publish.folder import CHECKSUMS, written_files
    from ..publish.places import places_of

    files = written_files(out / CHECKSUMS, "hub")
    places = places_of(out, files)
    print(f"addresses and paths in it: {len(places) or 'none'}")
    for place, names in list(places.items())[:most]:
        print(f"  {visible(place)} in {some(names)}")
    if most is not None and len(places) > most:
        print(f"  and {len(places) - most:,} more, which --upload lists before it asks")
    return files


def _say_changes(repository: Repository, planned: Mapping[str, list[str]]) -> None:
    """Say what is about to happen, and who will see it."""
    who = "private: only those who have access can read it"
    who = who if repository.private else "PUBLIC: everybody can read it"
    there = "a new repository" if repository.commit is None else "a repository that is there"
    print(f"to {repository.address}, {there}, {who}")
    for what, names in planned.items():
        if names:
            print(f"  {what}: {some(names)}")


def _agrees() -> bool:
    try:
        return input("Upload? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False
