"""``run_findit.py leaderboard``: models x datasets, with intervals, from scored runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from ..leaderboard.board import Board, make_board
from ..leaderboard.files import write_board
from ..leaderboard.openvlm import NO_META, read_meta
from ..leaderboard.tables import apart_rows, failure_lines, grid, rank_text
from ..runs import load_runs
from ..statistics import METRICS, RESAMPLES, SEED


def main(argv: Sequence[str]) -> int:
    """Models x datasets, with intervals, from scored runs."""
    parser = argparse.ArgumentParser(prog="run_findit.py leaderboard", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("leaderboard"), help="folder to write")
    parser.add_argument("--meta", type=Path, help="YAML or JSON: model -> field of OpenVLM's META")
    add_board_flags(parser)
    args = parser.parse_args(argv)
    meta = read_meta(args.meta) if args.meta else NO_META
    board = board_from(args)
    files = write_board(board, args.out, datetime.now(UTC), meta)
    _print_board(board)
    print_remarks(board)
    print(f"{args.out}/: {', '.join(path.name for path in files)}")
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
    parser.add_argument("--resamples", type=positive, default=RESAMPLES, help=f"{RESAMPLES}")
    parser.add_argument("--seed", type=int, default=SEED, help=f"of the bootstrap ({SEED})")


def positive(text: str) -> int:
    """An argument that is a whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def board_from(args: argparse.Namespace) -> Board:
    """The leaderboard that :func:`add_board_flags` asks for."""
    return make_board(load_runs(args.runs), args.format, args.resamples, args.seed)


def _print_board(board: Board) -> None:
    """The averages: every dataset of its own does not fit a terminal, and is in the files."""
    from rich.console import Console
    from rich.table import Table

    metric = METRICS[0]
    table = Table(box=None, header_style="bold", pad_edge=False)
    averages = [average.name for average in board.averages]
    for name in ("rank", "model", *averages):
        table.add_column(name, justify="left" if name == "model" else "right")
    for model, cells in grid(board, metric):
        figures = (
            f"{cell.text}\n{cell.bounds}{cell.mark}" if cell else "–"
            for cell in cells[: len(averages)]
        )
        table.add_row(rank_text(cells[0]), model, *figures)
    print(f"{metric} in percent with 95 % intervals: means over {len(board.columns)} datasets")
    # A pipe has no width: never fold a name there.
    (Console() if sys.stdout.isatty() else Console(width=200)).print(table)


def print_remarks(board: Board) -> None:
    """What a reader of the figures must know: failed calls, and the runs that were not compared."""
    for line in failure_lines(board):
        print(line)
    rows = apart_rows(board)
    if rows:
        print(f"Not compared with the rest: {len(rows)} runs")
    for row in rows:
        print(f"  {row['model']} {row['dataset']} ({row['file']}): {row['reason']}")
