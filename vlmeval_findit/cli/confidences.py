"""``run_findit.py confidences``: what a model's own probabilities say of its boxes.

Average precision of boxes ranked by each definition of confidence, in the order of the replies and
in random order; whether the confidences mean what they say; the threshold of the best F1.  Needs no
model, and runs that were made with --confidences.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from ..core.files import atomic_write, write_once
from ..core.settings import settings_from
from ..core.spelling import visible
from ..doctor.of_run import NotBoxesError
from ..leaderboard.calibration import calibration_table, legend, ranking_table
from ..runs.confidences import Judged, judge
from ..runs.prediction_names import prediction_files
from ..runs.results import as_scored
from ..runs.score import score_file
from .parsing import Parser
from .printing import print_lines, print_table

NOTHING = 1
"""No run has answers that are boxes."""


def main(argv: Sequence[str]) -> int:
    """Say of every run what its confidences are worth."""
    parser = Parser(
        prog="run_findit.py confidences",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "runs", type=Path, nargs="+", metavar="RUN", help="prediction files, or folders of them"
    )
    parser.add_argument("--dataset", help="the dataset's name, for files of any other name")
    parser.add_argument("--space", help="coordinate space (see: score --help)")
    parser.add_argument("--force", action="store_true", help="see: score --help")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything there")
    parser.add_argument(
        "--picture", type=Path, metavar="FILE.png", help="draw calibration and F1 there"
    )
    args = parser.parse_args(argv)
    settings = settings_from({"space": args.space, "force": args.force})
    told: list[Judged] = []
    for path in prediction_files(args.runs):
        try:
            told.append(judge(score_file(path, as_scored(path, settings), args.dataset), path))
        except NotBoxesError as error:
            print(f"{path}: left out: {error}", file=sys.stderr)
            continue
        _print(told[-1])
    if not told:
        return NOTHING
    print_lines(legend(told).lines, "docs/confidences.md")
    if args.json is not None:
        with atomic_write(args.json) as f:
            f.write(json.dumps([one.as_dict() for one in told], indent=1) + "\n")
    if args.picture is not None:
        from ..report.confidences import picture

        write_once(args.picture, picture(told))
        print(f"{args.picture}: calibration and F1 of {len(told)} runs")
    return 0


def _print(run: Judged) -> None:
    print(f"{visible(run.model)} on {run.dataset}")
    print(f"{run.boxes} boxes in {run.queries} replies about {run.pictures} pictures")
    for table in (ranking_table(run), calibration_table(run)):
        print()
        print_table(table, "--json FILE")
    print()
