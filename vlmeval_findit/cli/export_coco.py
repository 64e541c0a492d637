"""``run_findit.py export-coco``: the boxes of runs as COCO results."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ..boxes.confidences import DEFAULT, DEFINITIONS
from ..core.settings import settings_from
from ..doctor.of_run import NotBoxesError
from ..runs.coco_export import export
from ..runs.prediction_names import prediction_files
from ..runs.results import as_scored
from ..runs.score import score_file
from .parsing import Parser

NOTHING = 1
"""No run has answers that are boxes."""


def main(argv: Sequence[str]) -> int:
    """Write the boxes of runs as COCO results, with the ground truth that they are for."""
    parser = Parser(prog="run_findit.py export-coco", description=__doc__)
    parser.add_argument(
        "runs", type=Path, nargs="+", metavar="RUN", help="prediction files, or folders of them"
    )
    parser.add_argument("--dataset", help="the dataset's name, for files of any other name")
    parser.add_argument("--space", help="coordinate space (see: score --help)")
    parser.add_argument("--force", action="store_true", help="see: score --help")
    parser.add_argument(
        "--confidence",
        choices=DEFINITIONS,
        help=f"the score of a box, in runs with --confidences (default: {DEFAULT})",
    )
    args = parser.parse_args(argv)
    exported = 0
    for path in prediction_files(args.runs):
        settings = settings_from({"space": args.space, "force": args.force})
        run = score_file(path, as_scored(path, settings), args.dataset)
        try:
            done = export(run, path, args.confidence)
        except NotBoxesError as error:
            print(f"{path}: left out: {error}", file=sys.stderr)
            continue
        exported += 1
        print(f"{path}: {done.boxes} boxes in {done.images} images")
        for count, what in (
            (done.failed, "failed calls are in neither file"),
            (done.unknown_labels, "boxes have a label that is no category: left out"),
            (done.not_numbers, "boxes are not finite: left out"),
            (done.repeated, "queries ask what another asks: left out"),
        ):
            if count:
                print(f"  {count} {what}")
        print(f"  results: {done.results}\n  ground truth: {done.truth}")
        print(done.note)
    return 0 if exported else NOTHING
