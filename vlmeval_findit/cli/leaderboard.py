"""``run_findit.py leaderboard``: models x datasets, with intervals, from scored runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from ..core.command import as_called
from ..core.spelling import counted
from ..core.statistics import INTERVALS
from ..leaderboard.board import Board, boards
from ..leaderboard.choosing import FLAG, HALF
from ..leaderboard.files import folder_of, write_board
from ..leaderboard.notes import SIGNS, formats_chosen, remarks
from ..leaderboard.openvlm import NO_META, read_meta
from ..leaderboard.tables import metric_table
from ..runs.scored_run import Keep, PluginMissingError, load_runs
from .parsing import Parser
from .printing import first_lines, print_folded, print_lines, print_table


def main(argv: Sequence[str]) -> int:
    """Models x datasets, with intervals, from scored runs."""
    parser = Parser(prog="run_findit.py leaderboard", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("leaderboard"), help="folder to write")
    parser.add_argument("--meta", type=Path, help="YAML or JSON: model -> field of OpenVLM's META")
    add_board_flags(parser)
    parser.add_argument(
        FLAG,
        action="append",
        default=[],
        metavar="DATASET",
        help="choose each model's format on this dataset and report it on the others; "
        f"{HALF}: choose on half of the pictures, report on the other half",
    )
    args = parser.parse_args(argv)
    meta = read_meta(args.meta) if args.meta else NO_META
    made = boards_from(args, Keep.SUMS, args.choose_on)
    for board in made:
        if len(made) > 1:
            print(f"{board.benchmark.name}:")
        folder = folder_of(board, args.out)
        files = write_board(board, folder, datetime.now(UTC), meta)
        _print_board(board)
        print_remarks(board, "leaderboard.md")
        print(f"{folder}/: {', '.join(path.name for path in files)}")
    return 0


def add_board_flags(parser: argparse.ArgumentParser) -> None:
    """The arguments that say which runs are compared, and how."""
    parser.add_argument(
        "runs", type=Path, nargs="+", help="scored prediction files, or folders of them"
    )
    parser.add_argument(
        "--format",
        action="append",
        default=[],
        metavar="[MODEL=]FORMAT",
        help="report this format (xyxy_json) instead of a model's best",
    )


def boards_from(args: argparse.Namespace, keep: Keep, choose_on: Sequence[str] = ()) -> list[Board]:
    """The leaderboards that :func:`add_board_flags` asks for, one a benchmark."""
    return boards(load_runs(args.runs, _say_left_out, keep), args.format, choose_on)


def _say_left_out(error: PluginMissingError) -> None:
    print(f"left out: {as_called(str(error))}", file=sys.stderr)


def _print_board(board: Board) -> None:
    """The averages: every dataset of its own does not fit a terminal, and is in the files."""
    unit = " in percent" * board.headline.share
    print(f"{board.headline.title}{unit}: means over {counted(len(board.columns), 'dataset')}")
    print(f"Intervals: {INTERVALS}.")
    for sign in SIGNS:
        print(f"{sign}.")
    names = [average.name for average in board.averages]
    table = metric_table(board, board.headline.name, names).only("rank", "model", *names)
    print_table(table, "leaderboard.md")
    formats = formats_chosen(board)
    if formats:
        shown = "; ".join(first_lines(formats, "formats.csv"))
        print_folded(f"Each in one format: {shown}")


def print_remarks(board: Board, rest: str) -> None:
    """What a reader of the values must know: what scored, failed calls, what was forced, what is
    left out.

    On a terminal no more of each kind than one looks through; ``rest`` is the file that has all.
    """
    for title, lines in remarks(board):
        print_lines([f"{title}: {line}" for line in lines], rest)
    if board.apart:
        print(f"Not compared with the rest: {counted(len(board.apart), 'run')}")
    apart = [
        f"  {one.run.model} {one.run.question.name} ({one.run.path}): {one.reason}"
        for one in board.apart
    ]
    print_lines(apart, rest)
