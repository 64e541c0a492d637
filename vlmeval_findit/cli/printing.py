"""Output of commands: tables of scores, lines, JSON, and the place of annotation tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..benchmarks import benchmark_of
from ..core import EXIT_LIMIT_REACHED, atomic_write, printable
from ..leaderboard import (
    IN_A_TERMINAL,
    Column,
    Table,
    count_column,
    fits_terminal,
    legend_of,
    plain_value_column,
    table_of,
    to_terminal,
)
from ..models import Budget
from ..protocol import none_answered
from ..scoring import SCORE_AGAIN
from .command_base import say

if TYPE_CHECKING:
    from rich.console import Console

_PIPE_WIDTH = 100_000
"""A pipe has no width: nothing is folded or cut there."""

_USUAL_WIDTH = 80

_MOST_ROWS = 20
_MOST_LINES = 12
"""Most lines on a terminal: of a table, of a list; a pipe gets all."""

WHOLE_OUTPUT = "the whole output (… | cat)"
"""Where the rest of a table or of a list is, if no file has it."""


def console() -> Console:
    """Return the console that tables go to."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=_PIPE_WIDTH)


def is_terminal() -> bool:
    """Tell whether a person reads the output: a pipe gets all."""
    return console().is_terminal


def fits(table: Table) -> bool:
    """Tell whether a table fits the terminal in some way; a pipe is taken for 80 columns."""
    out = console()
    return fits_terminal(table, out.width if out.is_terminal else _USUAL_WIDTH, below=True)


def print_table(table: Table, rest: str) -> None:
    """Print a table, and what its signs mean; on a terminal its first rows, and where the rest is.

    ``rest`` is that place.
    """
    out = console()
    shown = table.first(_MOST_ROWS) if out.is_terminal else table
    for part in to_terminal(shown, out.width):
        out.print(part)
    if more := len(table.rows) - len(shown.rows):
        say(f"{more:,} more in {rest}")
    for line in legend_of([shown], IN_A_TERMINAL):
        print_folded(f"{line}.")


def print_first_columns(
    table: Table, groups: Sequence[Sequence[str]], least: int, rest: str
) -> None:
    """Print a table; on a terminal those of its groups of columns that fit, and where the rest is.

    The first ``least`` groups are shown at any width; columns of no group are, too.
    """
    out = console()
    shown = len(groups)
    if out.is_terminal:
        while shown > least and not fits_terminal(_of_groups(table, groups, shown), out.width):
            shown -= 1
    print_table(_of_groups(table, groups, shown), rest)
    if names := [names[0] for names in groups[shown:]]:
        print_folded(f"{', '.join(names)}: in {rest}")


def _of_groups(table: Table, groups: Sequence[Sequence[str]], shown: int) -> Table:
    hidden = {name for names in groups[shown:] for name in names}
    return table.without(hidden)


def print_columns(
    rows: Iterable[Sequence[str]], *columns: str, numbers: Sequence[str] = ()
) -> None:
    """Print rows of texts below ``columns``; a terminal cuts the last one; ``numbers`` go right."""
    from rich.text import Text

    out = console()
    rows = [columns, *([printable(text) for text in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    signs = [">" if name in numbers else "<" for name in columns]
    for row in rows:
        cells = [f"{t:{sign}{width}}" for t, sign, width in zip(row, signs, widths, strict=True)]
        line = Text("  ".join(cells), style="bold" if row is columns else "")
        line.truncate(out.width, overflow="ellipsis")
        line.rstrip()
        out.print(line)


def print_lines(lines: Sequence[str], rest: str) -> None:
    """Print a list of lines; on a terminal the first of them, and where the ``rest`` is."""
    for line in first_lines(lines, rest):
        print_folded(line)


def print_folded(line: str) -> None:
    """Print a line; on a terminal it is folded between words, but not in a command to be copied."""
    from rich.text import Text

    out = console()
    before, sign, command = printable(line).partition(SCORE_AGAIN)
    if not (sign and out.is_terminal):
        out.print(Text(printable(line)))
        return
    out.print(Text(f"{before}{sign.rstrip()}"))
    out.print(Text(f"  {command}"), soft_wrap=True)


def print_text(text: str) -> None:
    """Print lines as they are, each folded on a terminal."""
    for line in text.split("\n"):
        print_folded(line)


def first_lines(lines: Sequence[str], rest: str) -> Sequence[str]:
    """Return the lines that fit on a terminal, and a last line that names where the others are."""
    if len(lines) <= _MOST_LINES or not is_terminal():
        return lines
    shown = lines[: _MOST_LINES - 1]
    return *shown, f"{len(lines) - len(shown):,} more in {rest}"


def print_rows(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print the scores of prediction files, a table for each benchmark.

    The key ``column`` of a row, if it has one, follows the name of its dataset.
    """
    by_benchmark: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_benchmark.setdefault(benchmark_of(row["dataset"]).name, []).append(row)
    for rows_of_benchmark in by_benchmark.values():
        metrics = benchmark_of(rows_of_benchmark[0]["dataset"]).metrics
        names = [metric.name for metric in metrics if metric.in_short_tables]
        columns: list[Column[Mapping[str, Any]]] = [
            Column("dataset", lambda row: f"{row['dataset']} {row.get('column', '')}".rstrip()),
            Column("model", lambda row: row["model"]),
            *map(_value_of_row, names),
            count_column("scored", lambda row: f"{row['scored']}/{row['rows']}"),
            count_column("failed", lambda row: str(row["failed calls"])),
        ]
        table = table_of("Scores", columns, rows_of_benchmark)
        print_table(table, "the …_score.csv of every run")
        for row in rows_of_benchmark:
            if none_answered(int(row["failed calls"]), int(row["scored"])):
                print_folded(f"{row['model']} on {row['dataset']}: no call was answered.")


def _value_of_row(name: str) -> Column[Mapping[str, Any]]:
    def value(row: Mapping[str, Any]) -> float | None:
        return None if row[name] in (None, "") else float(row[name])

    return plain_value_column(name, value)


def write_json(path: Path, value: object) -> None:
    """Write the results of a command, for ``--json FILE``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as f:
        f.write(json.dumps(value, indent=1) + "\n")


def _guessed(budget: Budget) -> str:
    """Say how much of what was spent is a guess."""
    if not budget.guesses:
        return ""
    calls = "a call" if budget.guesses == 1 else f"{budget.guesses} calls"
    words = (
        f", ${budget.guessed:.4f} of it counted at the most that {calls} can cost, whose replies "
        "were lost or do not tell their price"
    )
    if budget.is_estimated:
        words += (
            ". No reply told a price yet, so the tokens sent are our estimate: the service may "
            "bill more"
        )
    return words


def report_spending(budget: Budget) -> int:
    """Print the cost; return 3 if the limit stopped the run, else 0."""
    if budget.spent:
        say(f"spent: ${budget.spent:.4f}{_guessed(budget)}", file=sys.stderr)
    if not budget.exhausted:
        return 0
    say(
        f"stopped at --max-usd {budget.limit:g}. Nothing that was paid for is lost: run the same "
        "command again to go on; --max-usd counts from zero.",
        file=sys.stderr,
    )
    return EXIT_LIMIT_REACHED
