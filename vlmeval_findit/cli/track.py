"""``run_findit.py track``: scored runs in an MLflow experiment."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ..core.spelling import counted, visible
from ..runs.scored_run import load_runs
from .parsing import Parser

SOME_FAILED = 1


def main(argv: Sequence[str]) -> int:
    """Log scored runs with MLflow, each once: figures, intervals, slices, files, worst answers.

    Returns 0; 1 when the tracking server refused or could not be reached (run again to go on).
    """
    parser = Parser(prog="run_findit.py track", description=main.__doc__)
    parser.add_argument(
        "runs", type=Path, nargs="+", help="scored prediction files, or folders of them"
    )
    parser.add_argument(
        "--uri", help="of the tracking server, or sqlite:///FILE (default: MLFLOW_TRACKING_URI)"
    )
    parser.add_argument("--experiment", default="findit", metavar="NAME", help="default: findit")
    parser.add_argument(
        "--pictures", type=_count, default=8, metavar="N", help="worst answers of a run (8)"
    )
    args = parser.parse_args(argv)
    # It brings scipy, and MLflow a second.
    from ..publish.copies import check_whole
    from ..publish.tracking import Logged, Tracker, TrackingError

    runs = load_runs(args.runs)
    for run in runs:
        check_whole(run)
    new = 0
    try:
        for done in Tracker(args.uri, args.experiment, args.pictures).log(runs):
            new += done.logged is Logged.NEW
            print(f"{visible(done.run.model)} {done.run.question.name}: {done.logged.value}")
            if done.note:
                print(f"  without pictures: {done.note}")
    except TrackingError as error:
        print(f"error: {error}", file=sys.stderr)
        print(f"{counted(new, 'run')} logged; run the same again to go on", file=sys.stderr)
        return SOME_FAILED
    print(f"{args.experiment}: {new} of {counted(len(runs), 'run')} logged now")
    return 0


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of answers")
    return int(text)
