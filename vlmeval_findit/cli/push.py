"""``run_findit.py push``: scored runs as a Hugging Face dataset."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from ..core.visible import counted
from ..runs.scored_run import load_runs
from .parsing import Parser

SOME_FAILED = 1

_NAMED = 3
"""How many files are named on the terminal."""


def main(argv: Sequence[str]) -> int:
    """Write scored runs as a dataset of the Hugging Face hub: a folder, uploaded if asked to.

    Returns 0; 1 when the folder was written and the upload failed.
    """
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
    args = parser.parse_args(argv)
    if args.upload != bool(args.repo):
        raise ValueError("--upload needs --repo OWNER/NAME, and --repo needs --upload")
    if args.private and not args.upload:
        raise ValueError("--private is of a repository to --upload to")
    for path in args.runs:
        if path.is_dir() and args.out.resolve().is_relative_to(path.resolve()):
            # The next call would take what this one writes for runs.
            raise ValueError(f"--out {args.out} lies in {path}: name a folder beside the runs")
    # It brings pyarrow and scipy, which a --help need not wait for.
    from ..publish.folder import write_dataset
    from ..publish.upload import Target, UploadError, Visibility, check_target, upload

    visibility = Visibility.PRIVATE if args.private else Visibility.PUBLIC
    target = Target(args.repo, visibility) if args.upload else None
    if target is not None:
        check_target(target)
    runs = load_runs(args.runs)
    written = write_dataset(runs, args.out, args.licence)
    queries = counted(sum(len(run.rows) for run in runs), "row")
    print(f"{args.out}/: {counted(len(runs), 'run')}, {queries}; the card is README.md")
    if written.hidden:
        more = len(written.hidden) - _NAMED
        rest = f" and {counted(more, 'more file')}, which the card names" if more > 0 else ""
        named = ", ".join(written.hidden[:_NAMED])
        print(f"paths or secrets of this machine were taken out of: {named}{rest}")
    if target is None:
        return 0
    try:
        print(f"uploaded: {upload(written, target)}")
    except UploadError as error:
        print(f"error: {error}", file=sys.stderr)
        print(f"{args.out}/ is whole; run the same command again to upload it", file=sys.stderr)
        return SOME_FAILED
    return 0


def _licence(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no licence's name as the hub has them, such as cc-by-4.0, mit or other"
        )
    return text
