"""``run_findit.py leaderboard``: models x datasets, with intervals, from scored runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.command import as_called
from ..core.spelling import counted, short, visible
from ..core.statistics import INTERVALS
from ..leaderboard.board import Board, boards
from ..leaderboard.choosing import FLAG, HALF
from ..leaderboard.files import folder_of, write_board
from ..leaderboard.openvlm import NO_META, read_meta
from ..leaderboard.rows import (
    SIGNS,
    GridCell,
    apart_rows,
    formats_chosen,
    grid,
    rank_text,
    remarks,
)
from ..runs.scored_run import Keep, PluginMissingError, load_runs
from .parsing import Parser
from .printing import console

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


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


_GAP = 2
_NAME = 24
"""Characters of a model's name on a terminal."""


def _print_board(board: Board) -> None:
    """The averages: every dataset of its own does not fit a terminal, and is in the files."""
    out = console()
    unit = " in percent" * board.headline.share
    print(f"{board.headline.title}{unit}: means over {counted(len(board.columns), 'dataset')}")
    print(f"Intervals: {INTERVALS}.")
    for sign in SIGNS:
        print(f"{sign}.")
    for table in _board_tables(board, out.width, _NAME if out.is_terminal else None):
        out.print(table)
    formats = formats_chosen(board)
    if formats:
        said = "; ".join(_first(formats, _most(out), "formats.csv"))
        said = visible(f"Each in one format: {said}")
        out.print(said, markup=False, highlight=False, soft_wrap=not out.is_terminal)


def _board_tables(board: Board, width: int, longest: int | None) -> Iterator[Table]:
    """Where the averages do not fit side by side, they stand in as many tables as it takes."""
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    averages = [average.name for average in board.averages]
    rows = grid(board, board.headline.name)
    models = [visible(model) for model, _ in rows]
    models = [short(model, longest) if longest else model for model in models]
    figures = [[_lines(cell) for cell in cells[: len(averages)]] for _, cells in rows]
    widths = [
        max(
            len(line) for text in (name, *(row[at] for row in figures)) for line in text.split("\n")
        )
        for at, name in enumerate(averages)
    ]
    widest = max(cell_len(model) for model in ("model", *models))
    room = width - len("rank") - widest - 2 * _GAP
    for block in _blocks(widths, room):
        table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, _GAP, 0, 0))
        for name in ("rank", "model", *(averages[at] for at in block)):
            table.add_column(name, justify="left" if name == "model" else "right", no_wrap=True)
        for (_, cells), model, texts in zip(rows, models, figures, strict=True):
            shown = (rank_text(cells[0]), model, *(texts[at] for at in block))
            # Not markup, whatever a model is called.
            table.add_row(*map(Text, shown))
        yield table


def _lines(cell: GridCell | None) -> str:
    return f"{cell.text}\n{cell.bounds}{cell.mark}" if cell else "–"


def _blocks(widths: Sequence[int], room: int) -> Iterator[list[int]]:
    """The places of columns in tables of at most so much room, one column at least in each."""
    block: list[int] = []
    left = room
    for at, width in enumerate(widths):
        if block and width > left:
            yield block
            block, left = [], room
        block.append(at)
        left -= width + _GAP
    if block:
        yield block


_LINES = 12
"""Of a kind on a terminal: those of hundreds of runs would drive the figures off it."""


def _most(out: Console) -> float:
    return _LINES if out.is_terminal else inf


def _first(lines: Sequence[str], most: float, rest: str) -> Sequence[str]:
    """The lines; where they are more than so many the first of them, and where the others are."""
    if len(lines) <= most:
        return lines
    return *lines[: _LINES - 1], f"{len(lines) - _LINES + 1:,} more in {rest}"


def print_remarks(board: Board, rest: str) -> None:
    """What a reader of the figures must know: what scored, failed calls, what was forced, what is
    left out.

    On a terminal no more of each kind than one looks through; ``rest`` is the file that has all.
    """
    most = _most(console())
    for title, lines in remarks(board):
        for line in _first([f"{title}: {line}" for line in lines], most, rest):
            print(visible(line))
    rows = apart_rows(board)
    if rows:
        print(f"Not compared with the rest: {counted(len(rows), 'run')}")
    apart = [f"  {row['model']} {row['dataset']} ({row['file']}): {row['reason']}" for row in rows]
    for line in _first(apart, most, rest):
        print(visible(line))
