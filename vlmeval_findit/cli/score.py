"""``run_findit.py score``: score prediction files again, without a model.

With --convert, FILE is another program's, or a run over the same table: a prediction file of
--dataset is made of it first.  With --reviewed, FILE is a list of results, and nothing is scored.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..benchmarks.findit.metrics import rejection_line
from ..benchmarks.refl4.reviews import compare
from ..boxes.spaces import SpaceError, spaces_help
from ..core.command import as_called
from ..core.settings import Settings, settings_from
from ..runs.convert import convert_file
from ..runs.prediction_names import prediction_files
from ..runs.results import score_row, write_score
from ..runs.salvage import salvaged_line
from ..runs.score import RunScore, score_file
from .parsing import Parser
from .printing import print_rows


def main(argv: Sequence[str]) -> int:
    """Score prediction files again, without a model."""
    args = _parser(argv).parse_args(argv)
    if args.reviewed:
        for path in args.predictions:
            print("\n  ".join((str(path), *compare(path, args.reviewed).lines())))
        return 0
    settings = _settings(args)
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    files = prediction_files(args.predictions)
    for path in (convert_file(path, args.dataset) if args.convert else path for path in files):
        run = score_file(path, settings, args.dataset)
        write_score(run, path)
        # All that is kept of a run: the answers of thousands do not fit.
        rows.append(score_row(run))
        notes += _notes(run)
    print_rows(rows)
    for note in notes:
        print(note)
    return 0


def _notes(run: RunScore) -> Iterator[str]:
    """What is said of a run below the table."""
    name = f"{run.model} {run.task.name}"
    for note in run.forced:
        yield f"forced: {name}: {note}"
    if run.identity is not None and run.identity.answering.sampled:
        yield f"{name}: {run.identity.answering.sampled}"
    if run.doctor is not None:
        yield f"{name}: {run.doctor} {as_called('(see: run_findit.py doctor)')}"
    salvaged = salvaged_line(run.benchmark, run.rows, run.sums)
    for line in filter(None, (rejection_line(run.sums), salvaged)):
        yield f"{name}: {line}"


def _parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    parser = Parser(
        prog="run_findit.py score",
        description=__doc__,
        # Listing them asks plug-ins.
        epilog=f"coordinate spaces:\n{spaces_help()}" if {"-h", "--help"} & set(argv) else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "predictions",
        type=Path,
        nargs="+",
        help="<model>_<dataset>.json|tsv|xlsx, or folders of such files",
    )
    parser.add_argument("--dataset", help="the dataset's name, for files of any other name")
    parser.add_argument(
        "--convert",
        action="store_true",
        help="FILE is another program's, in a layout that the benchmark of --dataset knows, or a "
        "run over the table of --dataset: make <model>_<dataset>.json of it and score that",
    )
    parser.add_argument(
        "--reviewed",
        type=Path,
        action="append",
        metavar="REVIEWED.json",
        help="a review of RefCOCO, RefCOCO+ or RefCOCOg by Ref-L4's authors (again for another "
        "split): FILE is a list of {annotation id, expression, hit or iou}, and the accuracy on "
        "all expressions and on those without an error is printed",
    )
    parser.add_argument("--space", help="coordinate space, where neither run nor model says it")
    parser.add_argument("--min-pixels", type=int, help="of smart_resize")
    parser.add_argument("--max-pixels", type=int, help="of smart_resize")
    parser.add_argument(
        "--two-step", action="store_true", help="smart_resize of the chat interface"
    )
    parser.add_argument(
        "--factor", type=int, help="of smart_resize: what edges are multiples of (default: 28)"
    )
    parser.add_argument("--scene-max-size", type=int, help="longer side that scenes were shrunk to")
    parser.add_argument(
        "--encoder",
        help="what scores captions: SigLIP, FindIt-Nano-SigLIP, any dual encoder of Hugging Face, "
        "or a folder (default: the dataset's own)",
    )
    parser.add_argument("--reads-like", help="model whose answers to `unconstrained` it shares")
    parser.add_argument(
        "--force",
        action="store_true",
        help="score although something contradicts what the run recorded; the result says so",
    )
    return parser


def _settings(args: argparse.Namespace) -> Settings:
    fields = {
        name: getattr(args, name)
        for name in ("min_pixels", "max_pixels", "two_step", "factor", "scene_max_size")
        if getattr(args, name)
    }
    if fields and not args.space:
        raise SpaceError(f"--{next(iter(fields)).replace('_', '-')} needs --space")
    space = {"kind": args.space, **fields} if fields else args.space
    return settings_from(
        {
            "space": space,
            "reads_like": args.reads_like,
            "force": args.force,
            "encoder": args.encoder,
        }
    )
