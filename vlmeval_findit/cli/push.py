"""``run_findit.py push``: scored runs as a Hugging Face dataset."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.spelling import counted, visible
from ..runs.scored_run import Run, load_runs
from .parsing import Parser

if TYPE_CHECKING:
    from ..publish.folder import Written
    from ..publish.upload import Repository

SOME_FAILED = 1

_NAMED = 3
"""How many files are named on the terminal."""


def main(argv: Sequence[str]) -> int:
    """Write scored runs as a dataset of the Hugging Face hub: a folder, uploaded if asked to.

    Returns 0; 1 when nothing was uploaded although it should be.
    """
    args = _arguments(argv)
    # It brings pyarrow and scipy, which a --help need not wait for.
    from ..publish.folder import write_dataset
    from ..publish.places import places_of
    from ..publish.upload import UploadError, Visibility, look_at, upload

    visibility = Visibility.PRIVATE if args.private else Visibility.PUBLIC
    try:
        repository = look_at(args.repo, visibility) if args.upload else None
    except UploadError as error:
        print(f"error: {error}", file=sys.stderr)
        print("nothing was written; run the same command again", file=sys.stderr)
        return SOME_FAILED
    runs = load_runs(args.runs)
    written = write_dataset(runs, args.out, args.licence)
    _say_written(runs, written)
    print("addresses and paths in it:")
    for place, names in (places_of(written) or {"none": ()}).items():
        print(f"  {visible(place)}" + (f" in {_some(names)}" if names else ""))
    if repository is None:
        return 0
    _say_upload(written, repository)
    if not args.yes and not _agrees():
        print("nothing was uploaded", file=sys.stderr)
        return SOME_FAILED
    try:
        print(f"uploaded: {upload(written, repository)}")
    except UploadError as error:
        print(f"error: {error}", file=sys.stderr)
        print(f"{args.out}/ is whole; run the same command again to upload it", file=sys.stderr)
        return SOME_FAILED
    return 0


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = Parser(prog="run_findit.py push", description=main.__doc__)
    parser.add_argument(
        "runs", type=Path, nargs="+", help="scored prediction files, or folders of them"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="what is written")
    parser.add_argument(
        "--licence",
        "--license",
        type=_licence,
        metavar="NAME",
        help="the hub's name of the licence (cc-by-4.0); we cannot know it",
    )
    parser.add_argument("--repo", metavar="OWNER/NAME", help="the dataset repository to upload to")
    parser.add_argument("--upload", action="store_true", help="upload the folder to --repo")
    parser.add_argument("--private", action="store_true", help="a new repository is private")
    parser.add_argument("--yes", action="store_true", help="upload without asking, as in scripts")
    args = parser.parse_args(argv)
    if args.upload != bool(args.repo):
        raise ValueError("--upload needs --repo OWNER/NAME, and --repo needs --upload")
    for flag in ("private", "yes"):
        if getattr(args, flag) and not args.upload:
            raise ValueError(f"--{flag} is of a repository to --upload to")
    if args.upload and not args.yes and not sys.stdin.isatty():
        raise ValueError(
            "--upload asks before it publishes, and there is no terminal to ask at: run without "
            "--upload and --repo, look at the addresses and paths that it lists, then add --yes"
        )
    for path in args.runs:
        if path.is_dir() and args.out.resolve().is_relative_to(path.resolve()):
            # The next call would take what this one writes for runs.
            raise ValueError(f"--out {args.out} lies in {path}: name a folder beside the runs")
    return args


def _say_written(runs: Sequence[Run], written: Written) -> None:
    queries = counted(sum(len(run.rows) for run in runs), "row")
    print(f"{written.folder}/: {counted(len(runs), 'run')}, {queries}; the card is README.md")
    if written.hidden:
        more = len(written.hidden) - _NAMED
        rest = ", which the card names" if more > 0 else ""
        print(f"paths or secrets of this machine were taken out of: {_some(written.hidden)}{rest}")


def _say_upload(written: Written, repository: Repository) -> None:
    """Say what is about to happen, and who will see it."""
    from ..publish.upload import Visibility, changes

    who = {
        Visibility.PUBLIC: "PUBLIC: everybody can read it",
        Visibility.PRIVATE: "private: only those who have access can read it",
    }[repository.visibility]
    there = "a new repository" if repository.commit is None else "a repository that is there"
    print(f"to {repository.address}, {there}, {who}")
    planned = changes(written, repository)
    for what in ("new", "replaced", "deleted"):
        names = getattr(planned, what)
        if names:
            print(f"  {what}: {_some(names)}")


def _agrees() -> bool:
    try:
        return input("Upload? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _some(names: Sequence[str]) -> str:
    """The first of many names."""
    more = len(names) - _NAMED
    rest = f" and {counted(more, 'more file')}" if more > 0 else ""
    return ", ".join(map(visible, names[:_NAMED])) + rest


def _licence(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no licence's name as the hub has them, such as cc-by-4.0, mit or other"
        )
    return text
