"""``run_findit.py leaderboard``: models x datasets, with intervals, from scored runs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from ..core.command import as_called
from ..core.run_files import in_other_spaces
from ..core.spelling import counted
from ..core.statistics import INTERVALS
from ..leaderboard.board import Board, boards
from ..leaderboard.board_files import board_folder, write_board
from ..leaderboard.board_tables import metric_table
from ..leaderboard.comparable import ExcludedRun
from ..leaderboard.error_tables import lost_table
from ..leaderboard.formats import FLAG, HALF
from ..leaderboard.notes import SIGNS, formats_chosen, remarks
from ..leaderboard.openvlm import NO_META, read_meta
from ..runs.scored_run import PluginMissingError, RowData, Run, load_runs
from .options import PATH, Command, is_quiet, runs_argument
from .printing import first_lines, print_folded, print_lines, print_table

format_option = click.option(
    "--format",
    "formats",
    multiple=True,
    metavar="[MODEL=]FORMAT",
    help="Report this format (xyxy_json) instead of a model's best; again for another model.",
)


@click.command(cls=Command, examples=["python run_findit.py leaderboard outputs"])
@runs_argument
@click.option(
    "--out",
    type=PATH,
    default=Path("outputs/leaderboard"),
    metavar="DIR",
    help="Folder to write tables to.",
)
@click.option(
    "--meta", type=PATH, metavar="FILE", help="YAML or JSON: model -> field of OpenVLM's META."
)
@format_option
@click.option(
    FLAG,
    "choose_on",
    multiple=True,
    metavar="DATASET",
    help="Choose each model's format on this dataset and report it on the others (again for "
    f"another); {HALF}: choose on half of the images, report on the other half.",
)
@click.option(
    "--best-marks",
    "best",
    is_flag=True,
    help="Write which marks models see best in stage 1 of VP-Bench, and nothing else: stage 2 asks "
    "by that file.",
)
@click.option(
    "--at-least",
    type=click.IntRange(min=1),
    default=20,
    metavar="N",
    help="With --best-marks: questions that a shape or a colour needs.",
)
def command(
    runs: tuple[Path, ...],
    out: Path,
    meta: Path | None,
    formats: tuple[str, ...],
    choose_on: tuple[str, ...],
    best: bool,
    at_least: int,
) -> int:
    """Rank models over datasets, with intervals, and write the tables.

    RUN is a scored prediction file, or a folder of them.
    """
    if best:
        return _write_best_marks(runs, at_least)
    fields = read_meta(meta) if meta else NO_META
    made = boards_from(runs, formats, RowData.SUMS, choose_on)
    for board in made:
        if len(made) > 1:
            print(f"{board.benchmark.name}:")
        folder = board_folder(board, out)
        files = write_board(board, folder, datetime.now(UTC), fields)
        _print_board(board)
        print_remarks(board, "leaderboard.md")
        print_folded(f"{folder}/: {', '.join(path.name for path in files)}")
    return 0


def boards_from(
    runs: Sequence[Path], formats: Sequence[str], keep: RowData, choose_on: Sequence[str] = ()
) -> list[Board]:
    """Make a leaderboard of each benchmark of the runs, and name scores that are not shown."""
    hidden = [path for folder in runs for path in in_other_spaces(folder)]
    if hidden and not is_quiet():
        print(
            f"not shown: {counted(len(hidden), 'score')} in another space than the run recorded; "
            f"name a file to see it: {hidden[0]}",
            file=sys.stderr,
        )
    return boards(load_runs(runs, _say_left_out, keep), formats, choose_on)


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
    lost = lost_table(board)
    if lost.rows:
        print(f"{lost.title}, in points (means over datasets):")
        print_table(lost, "errors.csv")


def print_remarks(board: Board, rest: str) -> None:
    """What a reader of the values must know: what scored, failed calls, what was forced, what is
    left out.

    On a terminal no more of each kind than one looks through; ``rest`` is the file that has all.
    """
    for title, lines in remarks(board):
        print_lines([f"{title}: {line}" for line in lines], rest)
    if board.apart:
        print(f"Not compared with the rest: {counted(len(board.apart), 'run')}")
    print_lines(apart_lines(board.apart), rest)


def apart_lines(apart: Iterable[ExcludedRun]) -> list[str]:
    """Write a line for each model and reason why runs of it are not compared."""
    by_reason: dict[tuple[str, str], list[Run]] = {}
    for one in apart:
        by_reason.setdefault((one.run.model, one.reason), []).append(one.run)
    return [
        f"  {model} {runs[0].question.name} ({runs[0].path})"
        + (f" and {len(runs) - 1} more" if len(runs) > 1 else "")
        + f": {reason}"
        for (model, reason), runs in by_reason.items()
    ]


def _write_best_marks(runs: Sequence[Path], at_least: int) -> int:
    """Write the file of marks that stage 2 of VP-Bench asks by, and print what it says."""
    from ..benchmarks.vpbench import best_marks
    from ..leaderboard.best_marks import find_best_marks

    found = find_best_marks(load_runs(runs), at_least)
    path = best_marks.write(found.values())
    print(found.table.title)
    print_table(found.table, path.name)
    for left in found.apart:
        print(f"not counted: {left.run.path}: {left.reason}")
    print(f"good for all: {', '.join(found.good_shapes)}; {', '.join(found.good_colours)}")
    print(path)
    return 0
