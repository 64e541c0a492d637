"""``run_findit.py report``: one self-contained page of scored runs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from ..core.files import atomic_write
from ..report.gallery import CARDS
from ..report.page import make_page
from .leaderboard import add_board_flags, board_from, print_remarks


def main(argv: Sequence[str]) -> int:
    """One page with plots and every answer on its picture; it needs no network."""
    parser = argparse.ArgumentParser(prog="run_findit.py report", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("report.html"), help="the page")
    parser.add_argument(
        "--cards", type=positive, default=CARDS, help=f"answers in the gallery, at most ({CARDS})"
    )
    add_board_flags(parser)
    args = parser.parse_args(argv)
    board = board_from(args)
    page = make_page(board, datetime.now(UTC), args.cards)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(args.out) as f:
        f.write(page)
    print_remarks(board)
    size = args.out.stat().st_size / 1e6
    print(f"{args.out}: {len(board.sweep)} runs, {len(board.models)} models, {size:.1f} MB")
    return 0


def positive(text: str) -> int:
    """An argument that is a whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)
