"""``run_findit.py leaderboard``: models x datasets, with intervals, from scored runs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..benchmarks import benchmarks
from ..core import EXIT_SOME_FAILED, as_called, counted, suffix_of
from ..leaderboard import (
    Board,
    PaperStyle,
    Table,
    asked_at,
    board_folder,
    cheapest_formats,
    cheapest_sentence,
    cost_table,
    count_runs_of_tables,
    elsewhere_column,
    formats_chosen,
    lost_table,
    metric_table,
    of_answered_calls,
    remarks,
    words_table,
    write_board,
)
from ..leaderboard import boards as make_boards
from ..protocol import ANOTHER_NAME, Reviews
from ..scoring import PluginMissingError, RowData, Run, load_runs, reviewed_runs
from ..storage import (
    demonstrations_below,
    read_reviews,
    scores_in_other_spaces,
    scores_with_reviews,
)
from .command_base import (
    BESIDE_RUNS,
    WRITTEN_FOLDER,
    Command,
    begin_folder,
    beside_runs,
    figures_option,
    is_quiet,
    option,
    print_note,
    results_argument,
    reviews_option,
    say,
)
from .printing import (
    first_lines,
    fits,
    is_terminal,
    print_first_columns,
    print_folded,
    print_lines,
    print_table,
)

if TYPE_CHECKING:
    from ..data import PublishedFigure

_FOLDER = "leaderboard"

format_option = click.option(
    "--format",
    "formats",
    multiple=True,
    metavar="[MODEL=]FORMAT",
    help="Report this format (xyxy_json) instead of a model's best; again for another model.",
)


@click.command(cls=Command, examples=["python run_findit.py leaderboard outputs"])
@results_argument
@option(
    "--out",
    "DIR",
    f"Folder to write tables to.  [default: {_FOLDER}, {BESIDE_RUNS}]",
    type=WRITTEN_FOLDER,
)
@format_option
@reviews_option
@figures_option
@click.option(
    "--style",
    type=click.Choice([style.value for style in PaperStyle]),
    default=PaperStyle.BOOKTABS.value,
    help="leaderboard.tex: booktabs, for any template; or full, with intervals, scaled to a page.",
)
@click.option(
    "--best-marks",
    "best_marks",
    is_flag=True,
    help="Write which marks models see best in stage 1 of VP-Bench, and nothing else: stage 2 "
    "uses that file.",
)
def command(
    runs: tuple[Path, ...],
    out: Path | None,
    formats: tuple[str, ...],
    reviews: tuple[Path, ...],
    figures_file: Path | None,
    style: str,
    best_marks: bool,
) -> int:
    """Rank models over datasets, with intervals, and write the tables.

    RUN is a scored prediction file, or a folder of them. With --reviews, each dataset whose labels
    were reviewed has a second column, next to its first.
    """
    if out is not None and suffix_of(out) in (".csv", ".xlsx", ".json", ".md", ".tex", ".html"):
        raise ValueError(
            f"--out {out}: it should be a folder, for tables of all kinds. Type --out {out.stem}"
        )
    if best_marks:
        if reviews:
            raise ValueError("--best-marks excludes --reviews: stage 1 has no boxes to review")
        return _write_best_marks(runs)
    out = out or WRITTEN_FOLDER.begin(beside_runs(runs, _FOLDER), "--out")
    for benchmark in benchmarks():
        begin_folder(out / benchmark.name)
    boards = boards_from(runs, formats, RowData.SUMS, reviews, figures_in(figures_file))
    shown = boards_to_show(boards, "leaderboard", lambda board: bool(board.runs))
    for board in shown:
        if len(boards) > 1:
            say(f"{board.benchmark.name}:")
        folder = board_folder(board, out)
        before = count_runs_of_tables(folder)
        files = write_board(board, folder, style=PaperStyle(style))
        print_board(board)
        print_remarks(board, "leaderboard.md")
        instead = ""
        if before is not None and before != len(board.runs):
            instead = f", in place of those of {counted(before, 'run')}"
        print_folded(f"{folder}/: {', '.join(path.name for path in files)}{instead}")
    return 0 if len(shown) == len(boards) else EXIT_SOME_FAILED


def figures_in(path: Path | None) -> Sequence[PublishedFigure]:
    """Return the published figures of a user's file; none without a file."""
    if path is None:
        return ()
    from ..data import read_figures  # Read where they are needed only

    return read_figures(path)


def boards_from(
    runs: Sequence[Path],
    formats: Sequence[str],
    keep: RowData,
    reviews: Sequence[Path] = (),
    figures: Sequence[PublishedFigure] = (),
) -> list[Board]:
    """Make a leaderboard of each benchmark of the runs, and name scores that are not shown.

    With files of reviews, runs are scored with these, too, where they are not yet. ``figures`` are
    published figures of the user.
    """
    decided = read_reviews(reviews) if reviews else None
    hidden = [path for folder in runs for path in scores_in_other_spaces(folder)]
    if hidden and not is_quiet():
        say(
            f"not shown: {counted(len(hidden), 'score')} in another space than the run recorded; "
            f"name a file to see it: {hidden[0]}",
            file=sys.stderr,
        )

    unshown = [path for folder in runs for path in scores_with_reviews(folder)]
    if unshown and decided is None and not is_quiet():
        say(
            f"not shown: {counted(len(unshown), 'score')} with reviews; to see them next to the "
            "others: --reviews FILE",
            file=sys.stderr,
        )

    def report_plugin(error: PluginMissingError) -> None:
        say(f"left out: {as_called(str(error))}", file=sys.stderr)

    loaded = load_runs(runs, report_plugin, keep)
    if not is_quiet():
        for folder in chain.from_iterable(map(demonstrations_below, runs)):
            if not any(run.path.is_relative_to(folder) for run in loaded):
                say(f"not shown: the demonstration; name it to see it: {folder}", file=sys.stderr)
    if decided is not None:
        loaded += with_reviews(loaded, decided, keep)
    return make_boards(loaded, formats, figures)


def boards_to_show(
    boards: Sequence[Board], command: str, has_content: Callable[[Board], bool]
) -> list[Board]:
    """Return the boards of which a command has something to show; say why others have nothing.

    Raises:
        ValueError: nothing can be shown, so that ``command`` should write nothing.
    """
    shown = [board for board in boards if has_content(board)]
    whys = [_why_empty(board, command) for board in boards if not has_content(board)]
    if not shown:
        raise ValueError("\n".join(whys))
    for why in whys:
        print_note(f"error: {why}")
    return shown


_MOST_REASONS = 6  # Of runs that are not shown


def _why_empty(board: Board, command: str) -> str:
    """Say why a benchmark has no run to show, and what to type."""
    lines = list(_excluded_lines(board))
    said = [
        f"nothing of {board.benchmark.name} can be shown, so nothing is written:",
        *lines[:_MOST_REASONS],
    ]
    if len(lines) > _MOST_REASONS:
        said.append(f"  and {len(lines) - _MOST_REASONS} more reasons")
    measured, _ = of_answered_calls(each.run for each in board.excluded if each.run.rows)
    if measured:
        newest = max(measured, key=lambda run: asked_at(run) or "")
        said.append(
            f"One run alone is shown: run_findit.py {command} {shlex.quote(str(newest.path))}"
        )
        said.append(f"To compare two, ask one under another name: {ANOTHER_NAME}")
    return "\n".join(said)


def with_reviews(runs: Sequence[Run], reviews: Reviews, keep: RowData) -> list[Run]:
    """Return the scores of runs with reviews; say how many had to be made, and what has none."""
    reviewed = reviewed_runs(runs, reviews, keep)
    for why in reviewed.left_out:
        say(f"without reviews: {why}", file=sys.stderr)
    if reviewed.scored and not is_quiet():
        say(f"scored with reviews: {counted(len(reviewed.scored), 'run')}", file=sys.stderr)
    return list(reviewed.runs)


def print_board(board: Board) -> None:
    """Print the mean and each dataset, or the means of families where many datasets do not fit.

    A terminal shows the first of them that fit, and names the files with the rest, costs and
    losses.
    """
    unit = " in percent" if board.headline.share else ""
    where = f"means over {counted(len(board.counted_datasets), 'dataset')}"
    if len(board.counted_datasets) == 1:
        where = board.counted_datasets[0]
    say(f"{board.headline.title}{unit}: {where}")
    means = board.mean_names()
    reviewed = []
    for dataset in board.datasets:
        if dataset.reviews is not None:
            reviewed += [dataset.runs[0].variant.board_dataset, dataset.name]
    # What reviews change is what one asked for: it is shown at any width
    first = [name for name in [*means[:1], *reviewed] if name in board.names()]
    datasets = board.counted_datasets if len(board.counted_datasets) > 1 else ()
    names = [*first, *datasets]
    least = len({*names})
    if datasets and fits(_table_of_places(board, names)):
        names += [mean.name for mean in board.means if 1 < len(mean.datasets) < len(datasets)]
    else:
        names = [*first, *means[1:]]
        least = len({*first})
    table = _table_of_places(board, names)
    groups = [(name, elsewhere_column(name)) for name in dict.fromkeys(names)]
    print_first_columns(table, groups, least, "leaderboard.md")
    if formats := formats_chosen(board):
        print_folded(f"Reported formats: {'; '.join(first_lines(formats, 'formats.csv'))}")
    costs = cost_table(board)
    lost = lost_table(board)
    words = words_table(board)
    if is_terminal():
        if sentence := cheapest_sentence(board, cheapest_formats(board)):
            print_folded(sentence)
        titles = [table.title for table in (costs, words, lost) if table.rows]
        if titles:
            print_folded(f"{', '.join(titles)}: in leaderboard.md")
        return
    if costs.rows:
        say(f"{costs.title} (means over datasets):")
        print_table(costs, "leaderboard.md")
        for note in costs.notes:
            print_lines(note.lines, "leaderboard.md")
    if sentence := cheapest_sentence(board, cheapest_formats(board)):
        print_folded(sentence)
    if words.rows:
        say(f"{words.title}:")
        print_table(words, "words.csv")
        for note in words.notes[:1]:
            print_folded(note.text)
    if lost.rows:
        say(f"{lost.title}, in points (means over datasets):")
        print_table(lost, "errors.csv")


def _table_of_places(board: Board, names: Sequence[str]) -> Table:
    """Make the table of the headline in means and datasets, with rank and model alone."""
    names = list(dict.fromkeys(names))
    columns = [column for name in names for column in (name, elsewhere_column(name))]
    return metric_table(board, board.headline.name, names).only("rank", "model", *columns)


def print_remarks(board: Board, rest: str) -> None:
    """Print what a reader of the values must know: failed calls, forced scores, excluded runs.

    On a terminal a few of each kind are printed; ``rest`` is the file that has all.
    """
    for title, lines in remarks(board):
        print_lines([f"{title}: {line}" for line in lines], rest)
    if board.excluded:
        say(f"Not compared with the rest: {counted(len(board.excluded), 'run')}")
    print_lines(list(_excluded_lines(board)), rest)


def _excluded_lines(board: Board) -> Iterator[str]:
    """Yield a line for each reason for which runs are not compared."""
    by_reason: dict[str, list[Run]] = {}
    for excluded in board.excluded:
        by_reason.setdefault(excluded.reason, []).append(excluded.run)
    for reason, (first, *others) in by_reason.items():
        more = f" and {len(others):,} more" if others else ""
        yield f"  {first.model} {first.variant.name} ({first.path}){more}: {reason}"


def _write_best_marks(runs: Sequence[Path]) -> int:
    from ..benchmarks.vpbench import mark_choices
    from ..leaderboard import MARK_SHAPES, find_best_marks
    from ..marks import COLOURS

    marks = find_best_marks(load_runs(runs))
    path = mark_choices.write_marks(marks.values())
    say(marks.table.title)
    print_table(marks.table, path.name)
    for note in marks.table.notes:
        print_folded(note.text)
    for model in marks.models:
        rivals = [*model.rivals(MARK_SHAPES), *model.rivals(COLOURS)]
        also = f"; not told apart from it: {', '.join(rivals)}" if rivals else ""
        print_folded(f"best of {model.model}: {model.best.name}{also}")
    for excluded in marks.excluded:
        say(f"not counted: {excluded.run.path}: {excluded.reason}")
    good = [", ".join(marks.good(names)) for names in (MARK_SHAPES, COLOURS)]
    say(f"good for all: {'; '.join(good)}")
    say(path)
    return 0
