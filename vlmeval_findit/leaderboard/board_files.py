"""Write the leaderboard to a folder, in every file format, OpenVLM's schema among them."""

from __future__ import annotations

import csv
import json
from datetime import datetime
from pathlib import Path
from typing import Any

from ..benchmarks import prefix_of
from ..core import atomic_write, new_file_set, open_text
from .board import HOME, Board, BoardCell
from .board_tables import (
    EXCLUDED_COLUMNS,
    excluded_table,
    formats_table,
    metric_table,
    overall_table,
    slices_table,
    slices_tables,
    sweep_table,
    tested_cell,
    values_table,
)
from .cost_tables import cost_table, dull_counts
from .error_tables import errors_table, lost_table
from .format_costs import cheapest_formats, cheapest_table
from .latex_tables import PaperStyle, as_latex, asked_with
from .legends import elsewhere_column
from .result_table import Table
from .table_output import markdown_page, to_csv, to_json
from .worded_tables import words_table
from .workbook import write_sheets

WORKBOOK = "leaderboard.xlsx"
RUNS_FILE = "formats.csv"  # A row a run


def board_folder(board: Board, out: Path) -> Path:
    """Return the folder of a leaderboard's files: ``out`` for FindIt's, else a folder in it."""
    return out if board.benchmark.name == HOME else out / board.benchmark.name


def count_runs_of_tables(folder: Path) -> int | None:
    """Count the runs that the tables in a folder are of; None: it has none."""
    try:
        with open_text(folder / RUNS_FILE) as f:
            return max(0, sum(1 for _ in csv.reader(f)) - 1)
    except (OSError, ValueError, csv.Error):
        return None


def write_board(
    board: Board,
    out: Path,
    time: datetime | None = None,
    style: PaperStyle = PaperStyle.BOOKTABS,
) -> list[Path]:
    """Write the leaderboard of a time (None: now) into a folder, all at once; return the files.

    Slices, and objects with several expressions, have a file if there are any.
    """
    out.mkdir(parents=True, exist_ok=True)
    lists = {
        "leaderboard.csv": values_table(board),
        RUNS_FILE: sweep_table(board),
        "errors.csv": errors_table(board),
        "slices.csv": slices_table(board),
        "words.csv": words_table(board),
        "not_compared.csv": excluded_table(board),
    }
    lists = {name: table for name, table in lists.items() if table.rows or name not in _IF_ANY}
    texts = {name: to_csv(table) for name, table in lists.items()}
    content = to_json(lists["leaderboard.csv"])
    texts["leaderboard.json"] = json.dumps(content, indent=1, ensure_ascii=False)
    texts["openvlm.json"] = to_openvlm(board, time or datetime.now())
    texts["leaderboard.md"] = as_markdown(board)
    texts["leaderboard.tex"] = as_latex(board, style)
    scores, *metrics = _metric_tables(board)
    # A sheet is for people: they find nothing in columns of zeros, or in empty ones.
    dull = dull_counts([row.run.provenance.costs for row in board.runs])
    values, formats, *others = (_filled(table.without(dull)) for table in lists.values())
    costs = cost_table(board)
    formats_costs = cheapest_table(board, cheapest_formats(board))
    sheets = {
        "Scores": scores,
        "Formats": formats,
        **({"Cost": costs} if costs.rows else {}),
        **({"Cost of formats": formats_costs} if formats_costs.rows else {}),
        "What was lost": lost_table(board),
        **{table.title: table for table in metrics},
        **{table.title.partition(":")[0]: table for table in (*others, values)},
    }
    with new_file_set(out / WORKBOOK, out) as files:
        write_sheets(sheets, files.folder / WORKBOOK)
        for name, text in texts.items():
            with atomic_write(files.folder / name) as f:
                f.write(text)
        for name in _IF_ANY:
            if name not in texts:
                files.delete(out / name)
        files.commit()
    return [out / name for name in (WORKBOOK, *texts)]


_IF_ANY = ("slices.csv", "words.csv")


def _filled(table: Table) -> Table:
    """Leave out columns in which no row has a value."""
    empty = {field.name for field in table.fields if not field.is_key}
    for row in table.cells():
        empty -= {field.name for field, cell in row if cell.value not in (None, "")}
    return table.without(empty) if table.rows else table


def _metric_tables(board: Board, formats: bool = False) -> list[Table]:
    return [metric_table(board, metric.name, formats=formats) for metric in board.shown]


def as_markdown(board: Board) -> str:
    """Write the whole leaderboard as a Markdown page."""
    scores, *metrics = _metric_tables(board, formats=True)
    tables = [overall_table(board, formats=True), scores]
    tables += [cost_table(board), cheapest_table(board, cheapest_formats(board))]
    tables += [words_table(board), formats_table(board), lost_table(board)]
    tables += [*metrics, *slices_tables(board), excluded_table(board).only(*EXCLUDED_COLUMNS)]
    shown = [table for table in tables if table.rows or table.notes]
    return markdown_page(f"{board.benchmark.name} leaderboard", shown, asked_with(board))


# Facts of the schema about a model that this package does not know: they stay empty
UNKNOWN = ("Parameters", "Language Model", "Vision Model", "Org", "Time", "OpenSource")


def to_openvlm(board: Board, time: datetime) -> str:
    """Write the leaderboard in OpenVLM's schema.

    Values have two decimals, rounded as the authors of the benchmark round theirs
    (:meth:`.Metric.printed`); means over datasets are ours. Where formats were chosen, each value
    has another beside it, ``… elsewhere``, by which models are ranked. ``time`` is
    ``yymmddHHMMSS``;
    ``results[model]`` has ``META`` and an object for each dataset, in which ``Overall`` is the
    headline metric.
    """
    results: dict[str, dict[str, Any]] = {}
    for model in board.models:
        known = {"Method": [model, ""], **dict.fromkeys(UNKNOWN, "")}
        results[model] = {"META": {**known, "Verified": "No", "dir_name": model}}
    means = {mean.name for mean in board.means}
    for cell in board.ordered_cells():
        prefix = prefix_of(board.datasets[0].runs[0].variant.name)
        name = f"average_{cell.dataset}" if cell.dataset in means else cell.dataset
        results[cell.model][f"{prefix}{name}"] = _dataset(board, cell)
    content = {"time": time.strftime("%y%m%d%H%M%S"), "results": results}
    return json.dumps(content, indent=1, ensure_ascii=False)


def _dataset(board: Board, cell: BoardCell) -> dict[str, Any]:
    values: dict[str, float | None] = {
        name: round(entry.value, 2) for name, entry in cell.entries.items()
    }
    if cell.run is not None:
        known = [metric for metric in board.metrics if metric.name in values]
        if cell.run.random is None:
            values |= {metric.name: metric.printed(cell.run.sums) for metric in known}
    overall = values.get(board.headline.name)
    for name, entry in cell.entries.items():
        if board.elsewhere:
            tested = tested_cell(entry).value
            values[elsewhere_column(name)] = round(tested, 2) if isinstance(tested, float) else None
    return {"Overall": overall, **values, "Format": cell.format, "Queries": cell.queries}
