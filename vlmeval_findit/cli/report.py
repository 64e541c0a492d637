"""``run_findit.py report``: a page of scored runs, in one file while it is not too large."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from ..core.spelling import counted
from ..leaderboard.board import Board
from ..report.beside import write_page
from ..report.cards import CARDS
from ..report.pairs import FLAG, Side, sides_of
from ..runs.scored_run import Keep
from .leaderboard import add_board_flags, boards_from, print_remarks
from .parsing import Parser


def main(argv: Sequence[str]) -> int:
    """One page a benchmark, with plots and every answer on its picture; it needs no network."""
    parser = Parser(prog="run_findit.py report", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("report.html"), help="the page")
    parser.add_argument(
        "--cards", type=positive, default=CARDS, help=f"answers in the gallery, at most ({CARDS})"
    )
    parser.add_argument(
        FLAG,
        nargs=2,
        default=[],
        metavar=("LEFT", "RIGHT"),
        help="put these side by side first, and their most different answers on the page: "
        "MODEL, MODEL=FORMAT, or FORMAT where one model has it",
    )
    parser.add_argument(
        "--watch",
        action="store_true",
        help="follow a running sweep: its file, or its work dir, in place of runs",
    )
    parser.add_argument(
        "--every",
        type=_seconds,
        metavar="SECONDS",
        help=f"with --watch: write the page so often at most ({EVERY:g})",
    )
    add_board_flags(parser)
    args = parser.parse_args(argv)
    if args.watch:
        return _watched(args)
    if args.every is not None:
        raise ValueError("--every is of a page that follows a sweep: --watch")
    made = boards_from(args, Keep.GOODNESS)
    sides = sides_of(args.compare, made)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    for board in made:
        path = args.out
        if board is not made[0]:
            path = path.with_name(f"{path.stem}-{board.benchmark.name}{path.suffix}")
        if len(made) > 1:
            print(f"{board.benchmark.name}:")
        _write(board, path, args.cards, sides)
    return 0


EVERY = 5.0
"""Seconds between two looks at a sweep."""


def _watched(args: argparse.Namespace) -> int:
    if args.compare or args.format or args.cards != CARDS:
        raise ValueError(f"{FLAG}, --format and --cards are of a report, and not of --watch")
    from .watch import watch

    return watch(args.runs, args.out, args.every or EVERY)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return value


def _write(board: Board, path: Path, cards: int, sides: Sequence[Side]) -> None:
    """The page of one benchmark."""
    written = write_page(path, board, datetime.now(UTC), cards, sides)
    print_remarks(board, path.name)
    what = f"{counted(len(board.sweep), 'run')}, {counted(len(board.models), 'model')}"
    print(f"{path}: {what}, {_megabytes([written.page])}")
    if written.beside:
        folder, size = written.beside[0].parent, _megabytes(written.beside)
        print(f"{folder}/: its pictures and replies, {size}; keep it beside the page")


def _megabytes(files: Iterable[Path]) -> str:
    return f"{sum(file.stat().st_size for file in files) / 1e6:.1f} MB"


def positive(text: str) -> int:
    """An argument that is a whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)
