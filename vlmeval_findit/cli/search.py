"""``run_findit.py search``: the format that a model answers best in (protocol section 6)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..benchmarks.findit.benchmark import BENCHMARK
from ..benchmarks.findit.grid import Table
from ..benchmarks.findit.variant import MARKS
from ..boxes.spaces import space_from
from ..core.predictions import check_model_name
from ..core.settings import settings_from
from ..core.spelling import nearest
from ..models.entry import ModelEntry
from ..models.table import MODELS, find_model
from ..runs.best_format import rule
from ..sweeps.config import Race, search_sweep, searched
from .batch import add_batch_flag, batch_kind
from .parsing import Parser
from .printing import report_spending
from .provider import served_there, with_provider
from .refusals import check_amounts
from .serve import serving_from
from .sweep import (
    CONFIDENCES_HELP,
    FORCE_HELP,
    add_executor_flags,
    budget_for,
    hosts_for,
    run,
)

LIMIT = 50
"""Queries of the paper's search; it took 20 for proprietary models."""


def main(argv: Sequence[str]) -> int:
    """Stage 1 over all representations in text and JSON, stage 2 over the keys at the winner.

    A benchmark that is not of FindIt's grid is asked in all its formats at once.
    """
    parser = Parser(
        prog="run_findit.py search", description=__doc__, epilog=f"the winner: {rule(BENCHMARK)}"
    )
    parser.add_argument(
        "--model",
        required=True,
        help="a name, or NAME=CHECKPOINT for another checkpoint; with --endpoints, --batch or "
        "--provider NAME=NAME_THERE",
    )
    parser.add_argument("--like", help="of NAME=CHECKPOINT: the model that it is run like")
    parser.add_argument(
        "--dataset",
        default="Pascal",
        help="a table, or a complete name in any of its formats (default: Pascal)",
    )
    parser.add_argument(
        "--limit",
        type=int,
        default=LIMIT,
        help=f"queries (default: {LIMIT}; the paper took 20 for proprietary models)",
    )
    parser.add_argument(
        "--marks",
        metavar="SHAPE,…",
        help="of an instance-detection dataset: also ask the winner with marked reference "
        f"pictures ({', '.join(MARKS)}, or all)",
    )
    parser.add_argument(
        "--race",
        action="store_true",
        help="drop formats on the way that can hardly win: half of the calls",
    )
    parser.add_argument(
        "--seed", type=int, help="of the order in which a race takes pictures (default: 0)"
    )
    parser.add_argument("--out", type=Path, default=Path("best_formats.yaml"))
    parser.add_argument("--work-dir", type=Path, help="default: outputs/search")
    parser.add_argument(
        "--journal",
        type=Path,
        help="default: calls.jsonl in the --work-dir that is given, else outputs/calls.jsonl",
    )
    parser.add_argument("--space", help="coordinate space, where the model table says none")
    parser.add_argument("--served", help="the endpoints' or the provider's name for the model")
    parser.add_argument("--skip-missing-images", action="store_true")
    parser.add_argument("--dry-run", action="store_true", help="count, and ask nothing")
    parser.add_argument("--confidences", action="store_true", help=CONFIDENCES_HELP)
    parser.add_argument("--force", action="store_true", help=FORCE_HELP)
    add_executor_flags(parser)
    add_batch_flag(parser)
    args = parser.parse_args(argv)
    over = searched(args.dataset)
    entry = with_provider(_entry(args, isinstance(over, Table) or over.in_boxes), args)
    if args.endpoints or batch_kind(args) is not None:
        entry = served_there(entry, "the endpoints'")
    check_amounts({"limit": args.limit})
    if args.seed is not None and not args.race:
        raise ValueError("--seed orders the pictures of a --race, and there is none")
    race = Race(args.seed or 0) if args.race else None
    marks, journal = _marks(args.marks), (args.work_dir or Path("outputs")) / "calls.jsonl"
    places = args.work_dir or Path("outputs/search"), args.journal or journal
    sweep = search_sweep(entry, over, args.limit, places, marks, race)
    sweep = replace(
        sweep,
        skip_missing=args.skip_missing_images,
        force=args.force,
        confidences=args.confidences,
        batch=batch_kind(args),
        serve=serving_from(args),
    )
    if args.dry_run:
        from .dry_run import of_sweep

        return of_sweep(sweep, bool(args.endpoints or sweep.batch))
    budget = budget_for(sweep, args)
    status = run(sweep, hosts_for(sweep, args, budget), args.out)
    return report_spending(budget) or status


def _marks(said: str | None) -> tuple[str, ...]:
    if said is None or said == "all":
        return MARKS if said else ()
    marks = tuple(dict.fromkeys(said.split(",")))
    for mark in marks:
        if mark not in MARKS:
            raise ValueError(f"--marks: no mark {mark!r}{nearest(mark, MARKS)}")
    return marks


def _entry(args: argparse.Namespace, in_boxes: bool = True) -> ModelEntry:
    name, given, checkpoint = args.model.partition("=")
    check_model_name(name)
    space = settings_from({"space": args.space}).space if args.space else None
    if space is not None:
        space_from(space)
    elif in_boxes and find_model(args.like or name) is None:
        raise ValueError(
            f"no model {args.like or name!r} in the model table"
            f"{nearest(args.like or name, MODELS)}; one that the table does not have needs "
            "--like or --space"
        )
    return ModelEntry(
        name,
        space=space,
        checkpoint=checkpoint if given else None,
        like=args.like,
        served=args.served,
    )
