"""Notes for the reader of a leaderboard: a line for each model and cause."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter

from ..benchmarks.findit.box_metrics import rejection_line
from ..core.formatting import counted
from ..core.influences import FEWEST
from ..core.scored_row import add_up
from ..runs.best_format import UNEVEN, rule
from ..runs.scored_run import Run
from .board import OVERALL, TIED, UNTESTED, Board, BoardCell
from .comparable import ComparableRuns, grouped
from .result_table import Note

SIGNS = (
    f"{TIED}: the difference to the rank above is not significant",
    f"{UNTESTED}: too few images to test the difference to the rank above",
)
"""Signs of ranks and values."""

NOTE = (
    "Values in percent with 95 % intervals over images: queries of one image count together, and "
    "so does an image that datasets share; there is no interval of fewer than "
    f"{FEWEST} images, nor of a mean with such a dataset. {'; '.join(SIGNS)} (at 5 %: paired "
    "t-test over images; p-values are corrected after Holm for the comparisons of their column). "
    "Models are ordered by the headline metric with failed calls as misses; other metrics are over "
    "answered calls only, and rank no model that has failed calls. "
    "Means are given for models that have every dataset in them."
)


MOST = 12
"""Most models that notes name; the tables have all."""


def format_note(board: Board) -> str:
    """Return a note on the choice of the reported format."""
    return (
        f"A model is reported in one format {UNEVEN}, unless --format says otherwise: the one with "
        f"the {rule(board.benchmark)}."
    )


def board_cells(board: Board) -> Iterator[BoardCell]:
    """Yield the cells of models by dataset and mean, in the order of tables."""
    for model in board.models:
        for name in board.names():
            if (model, name) in board.cells:
                yield board.cells[model, name]


def formats_used(board: Board) -> list[tuple[str, str, list[str]]]:
    """Return (model, format, datasets) of reported formats.

    Empty if the benchmark has a single format without a name.
    """
    cells = (cell for cell in board_cells(board) if cell.run is not None)
    used = grouped(cells, lambda cell: (cell.model, cell.format))
    named = any(name for _, name in used)
    return [(*key, [cell.dataset for cell in group]) for key, group in used.items() if named]


def formats_chosen(board: Board) -> list[str]:
    """Return every model with its reported format, or numbers of models if they are many.

    Empty if there was nothing to choose.
    """
    if all(row.reported for row in board.runs):
        return []
    chosen = formats_used(board)
    if len(chosen) > MOST:
        by_format = sorted(grouped(chosen, itemgetter(1)).items(), key=lambda item: -len(item[1]))
        return [f"{name} ({counted(len(models), 'model')})" for name, models in by_format]
    return [
        f"{model} {name}"
        + (f" ({counted(len(used), 'dataset')})" if len(used) < len(board.datasets) else "")
        for model, name, used in chosen
    ]


def formats_tried(board: Board) -> dict[str, int]:
    """Return the largest number of formats in which each model was asked its reported queries.

    Empty if each was asked in one format only.
    """
    tried: dict[str, int] = {}
    for cell in board_cells(board):
        tried[cell.model] = max(tried.get(cell.model, 0), cell.tried)
    return tried if any(number > 1 for number in tried.values()) else {}


def notes_of(board: Board) -> list[Note]:
    """Return all notes, first how to read the values."""
    sources: dict[str, dict[str, None]] = {}
    for each in board.published:
        sources.setdefault(each.where, {})[each.model] = None
    published = [f"{where}: {', '.join(models)}" for where, models in sources.items()]
    notes = [Note("", [NOTE]), *remarks(board), Note("Published values, not ranked", published)]
    return [note for note in notes if note.lines]


def remarks(board: Board) -> list[Note]:
    """Return the doubts about values, by kind; every output shows them."""
    notes = (
        Note("Failed calls", failure_lines(board)),
        Note("Coordinate space in doubt", coordinate_lines(board)),
        Note("Formats tried", tried_lines(board)),
        Note("Part of a table", _by_dataset(board, _part)),
        Note(
            "Intervals",
            _by_dataset(board, lambda d: board.benchmark.interval_note(d.runs[0].question)),
        ),
        Note("Scored by", _by_dataset(board, lambda d: d.runs[0].provenance.scorer)),
        Note("Queries with nothing to find", rejection_lines(board)),
        Note("Sampled", _by_run(board, _sampled)),
        Note("Custom prompts", _by_run(board, lambda run: run.provenance.custom_words)),
        Note("Forced", _by_run(board, _forced)),
    )
    return [note for note in notes if note.lines]


def condensed(remarks: Iterable[tuple[str, str, str]]) -> list[str]:
    """Write (model, name of a run, remark) as a line for each cause.

    >>> condensed([("A", "x", "sampled"), ("A", "y", "sampled"), ("B", "x", "forced")])
    ['A (2 runs): sampled', 'B on x: forced']
    """
    lines = []
    for (model, remark), runs in grouped(remarks, itemgetter(0, 2)).items():
        where = f" ({len(runs)} runs)" if len(runs) > 1 else f" on {runs[0][1]}"
        lines.append((model, f"{where}: {remark}"))
    return _together(lines)


def _together(remarks: Iterable[tuple[str, str]]) -> list[str]:
    """Write (name, remark), equal remarks once.

    >>> _together([("A", ": failed"), ("B", " is forced"), ("C", ": failed")])
    ['A, C: failed', 'B is forced']
    """
    lines = []
    for remark, group in grouped(dict.fromkeys(remarks), itemgetter(1)).items():
        more = f" and {len(group) - MOST:,} more" if len(group) > MOST else ""
        lines.append(f"{', '.join(name for name, _ in group[:MOST])}{more}{remark}")
    return lines


# --- by dataset -----------------------------------------------------------------------------------


def _by_dataset(board: Board, remark_of: Callable[[ComparableRuns], object]) -> list[str]:
    return _together(
        (dataset.name, f": {remark}")
        for dataset in board.datasets
        if (remark := remark_of(dataset))
    )


def _part(dataset: ComparableRuns) -> str:
    """Return a remark if only some of a table's queries were asked, as after ``--limit``."""
    provenance = dataset.runs[0].provenance
    asked, missing = len(provenance.rows), len(provenance.missing)
    return f"{asked} of the {asked + missing} queries of its table" if missing else ""


# --- by model -------------------------------------------------------------------------------------


def tried_lines(board: Board) -> list[str]:
    """Return lines on models that were asked in several formats."""
    optimistic = "on the queries that it is reported on: the best of many is optimistic"
    return _together(
        (model, f": one of {tried} formats that were tried, {optimistic}")
        for model, tried in formats_tried(board).items()
        if tried > 1
    )


def failure_lines(board: Board) -> list[str]:
    """Return lines on failed calls and their cost in the headline metric.

    Of many models only the total: the tables have each.
    """
    failed = (cell for cell in board_cells(board) if cell.run is not None and cell.failures)
    by_model = grouped(failed, lambda cell: cell.model)
    if len(by_model) > MOST:
        every = [cell for cells in by_model.values() for cell in cells]
        failures, queries = sum(c.failures for c in every), sum(c.queries for c in every)
        return [
            f"{len(by_model):,} models: {failures:,} of {queries:,} calls failed, which count as "
            f"misses in the ranking; the table {OVERALL} has each"
        ]
    lines = []
    for model, cells in by_model.items():
        single = cells[0] if len(cells) == 1 else None
        where = single.dataset if single else f"{len(cells)} datasets"
        failures, queries = sum(c.failures for c in cells), sum(c.queries for c in cells)
        line = f"{model}, {where}: {failures:,} of {queries:,} calls failed"
        lines.append(line + _cost(board, single or board.cells.get((model, OVERALL))))
    return lines


def _cost(board: Board, cell: BoardCell | None) -> str:
    missed, answered = (
        cell.entries.get(metric.name) if cell else None for metric in board.metrics[:2]
    )
    if missed is None or cell is None:
        return ""
    whose = "its" if cell.run else "its mean"
    without = f", {answered.value:.1f} without them" if answered else ""
    return f"; {whose} {board.metrics[1].name} is {missed.value:.1f} with them as misses{without}"


def rejection_lines(board: Board) -> list[str]:
    """Return lines on answers to queries with nothing to find; of many models, the total."""
    asked = [
        (cell, line)
        for cell in board_cells(board)
        if cell.run is not None and (line := rejection_line(cell.run.sums))
    ]
    if (count := len({cell.model for cell, _ in asked})) > MOST:
        total = add_up(cell.run.sums for cell, _ in asked if cell.run is not None)
        return [f"{count:,} models: {rejection_line(total)}"]
    return condensed((cell.model, cell.dataset, line) for cell, line in asked)


def _by_run(board: Board, remark_of: Callable[[Run], str | None]) -> list[str]:
    return condensed(
        (row.run.model, row.run.question.name, remark)
        for row in board.runs
        if (remark := remark_of(row.run))
    )


def _sampled(run: Run) -> str | None:
    return run.provenance.identity.answering.sampled if run.provenance.identity else None


def _forced(run: Run) -> str:
    forced = "; ".join(run.provenance.forced)
    return f"contradicts the record: {forced}" if forced else ""


_AGREE = re.compile(r" \([^()]+ agree\)$")
"""The counts of a run at the end of a doubt of :func:`..coords.score_check.warning_line`."""


def coordinate_lines(board: Board) -> list[str]:
    """Return lines on models that do not answer in the declared convention."""
    return _by_run(board, lambda run: _AGREE.sub("", run.provenance.coords_doubt or ""))
