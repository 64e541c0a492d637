"""What a reader of a leaderboard must know beside its values: one line a model and cause."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from ..benchmarks.findit.box_metrics import rejection_line
from ..core.estimate import FEWEST
from ..core.formatting import counted
from ..runs.best_format import UNEVEN, rule
from .board import OVERALL, TIED, UNTOLD, Board, BoardCell
from .comparable import ComparableRuns
from .formats import FLAG, HALF
from .table import Note

SIGNS = (
    f"{TIED}: the difference to the rank above is not significant",
    f"{UNTOLD}: too few pictures to test the difference to the rank above",
)
"""What stands behind ranks and figures, as everything that shows them says it."""

NOTE = (
    "Figures in percent with 95 % intervals over pictures: queries of one picture count together, "
    "and so does a picture that datasets share; there is no interval where fewer than "
    f"{FEWEST} pictures count, and in that of a mean such a dataset counts as anything from 0 to "
    f"100 %. {'; '.join(SIGNS)} (at 5 %: paired t-test over pictures; p-values "
    "are corrected after Holm for the comparisons of their column). "
    "Models are ordered by the headline figure with failed calls as misses; other figures are over "
    "answered calls only, and rank no model that has failed calls. "
    "Averages are given for models that have every dataset in them."
)


def format_note(board: Board) -> str:
    """Which of a model's formats is reported."""
    on = f", on {board.chosen_on}" if board.chosen_on else ""
    return (
        f"A model is reported in one format {UNEVEN}, unless --format says otherwise: the one with "
        f"the {rule(board.benchmark)}{on}."
    )


def board_cells(board: Board) -> Iterator[BoardCell]:
    """Yield the values of models by dataset and average, in the order of tables."""
    for model in board.models:
        for name in board.names():
            if (model, name) in board.cells:
                yield board.cells[model, name]


def formats_used(board: Board) -> list[tuple[str, str, list[str]]]:
    """(model, format, columns): which format a model is reported at, and where.

    Empty where the benchmark has one format only, which has no name.
    """
    used: dict[tuple[str, str], list[str]] = {}
    for model in board.models:
        for column in board.columns:
            if (model, column.name) in board.cells:
                found = board.cells[model, column.name].format
                used.setdefault((model, found), []).append(column.name)
    named = any(found for _, found in used)
    return [(model, found, names) for (model, found), names in used.items() if named]


def formats_chosen(board: Board) -> list[str]:
    """Every model with the format that it is reported at; empty where there was nothing to
    choose."""
    used = formats_used(board)
    if all(row.reported for row in board.sweep):
        return []
    return [
        f"{model} {found}"
        + (f" ({counted(len(names), 'dataset')})" if len(names) < len(board.columns) else "")
        for model, found, names in used
    ]


def formats_tried(board: Board) -> dict[str, int]:
    """In how many formats each model was asked the queries that it is reported on, at most; empty
    where every one was asked in one format only."""
    found: dict[str, int] = {}
    for cell in board_cells(board):
        found[cell.model] = max(found.get(cell.model, 0), cell.tried)
    return found if any(tried > 1 for tried in found.values()) else {}


def notes_of(board: Board) -> list[Note]:
    """Return what a reader of its values must know, how to read them first."""
    sources: dict[str, dict[str, None]] = {}
    for one in board.published:
        sources.setdefault(one.where, {})[one.model] = None
    published = [f"{where}: {', '.join(models)}" for where, models in sources.items()]
    notes = [Note("", [NOTE]), *remarks(board), Note("Published values, not ranked", published)]
    return [note for note in notes if note.lines]


def remarks(board: Board) -> list[Note]:
    """Return what speaks against taking its values as they are, by kind; every output says it."""
    notes = (
        Note("Failed calls", failure_lines(board)),
        Note("Coordinate space in doubt", coordinate_lines(board)),
        Note("Formats tried", tried_lines(board)),
        Note("Part of a table", _by_dataset(board, _part)),
        Note("Intervals", _by_dataset(board, lambda one: _interval_note(board, one))),
        Note("Scored by", _by_dataset(board, lambda one: one.runs[0].provenance.scorer)),
        Note("Queries with nothing to find", rejection_lines(board)),
        Note("Sampled", sampled_lines(board)),
        Note("Forced", forced_lines(board)),
    )
    return [note for note in notes if note.lines]


def condensed(said: Iterable[tuple[str, str, str]]) -> list[str]:
    """Write (model, name of a run, what is said of it) as one line a cause.

    >>> condensed([("A", "x", "sampled"), ("A", "y", "sampled"), ("B", "x", "forced")])
    ['A (2 runs): sampled', 'B on x: forced']
    """
    names: dict[tuple[str, str], list[str]] = {}
    for model, name, what in said:
        names.setdefault((model, what), []).append(name)
    models: dict[tuple[str, str], list[str]] = {}
    for (model, what), of in names.items():
        where = f" ({len(of)} runs)" if len(of) > 1 else f" on {of[0]}"
        models.setdefault((where, what), []).append(model)
    return [f"{', '.join(whom)}{where}: {what}" for (where, what), whom in models.items()]


def _together(said: Iterable[tuple[str, str]]) -> list[str]:
    """Write sentences of (whom, what), those that say the same as one.

    >>> _together([("A", "failed"), ("B", "is forced"), ("C", "failed")])
    ['A, C: failed', 'B: is forced']
    """
    whom: dict[str, dict[str, None]] = {}
    for name, what in said:
        whom.setdefault(what, {})[name] = None
    return [f"{', '.join(names)}: {what}" for what, names in whom.items()]


# --- by dataset -----------------------------------------------------------------------------------


def _by_dataset(board: Board, say: Callable[[ComparableRuns], object]) -> list[str]:
    return _together((one.name, str(said)) for one in board.columns if (said := say(one)))


def _part(column: ComparableRuns) -> str:
    """Say that only some of a table's queries were asked, as after ``--limit``."""
    provenance = column.runs[0].provenance
    asked, missing = len(provenance.rows), len(provenance.missing)
    return f"{asked} of the {asked + missing} queries of its table" if missing else ""


def _interval_note(board: Board, column: ComparableRuns) -> str | None:
    """Say what the intervals do not allow for."""
    return board.benchmark.interval_note(column.runs[0].question)


# --- by model -------------------------------------------------------------------------------------


def tried_lines(board: Board) -> list[str]:
    """Say which models were asked in several formats, and what the best was chosen on."""
    chosen = (
        f"chosen on {board.chosen_on}"
        if board.chosen_on
        else "on the queries that it is reported on: the best of many is optimistic; "
        f"{FLAG} {HALF}, or {FLAG} DATASET, chooses on other queries"
    )
    return _together(
        (model, f"one of {tried} formats that were tried, {chosen}")
        for model, tried in formats_tried(board).items()
        if tried > 1
    )


def failure_lines(board: Board) -> list[str]:
    """Say how many calls of a model failed, and what that costs its headline metric."""
    by_model: dict[str, list[BoardCell]] = {}
    for cell in board_cells(board):
        if cell.run is not None and cell.failures:
            by_model.setdefault(cell.model, []).append(cell)
    lines = []
    for model, failed in by_model.items():
        one = failed[0] if len(failed) == 1 else None
        where = one.column if one else f"{len(failed)} datasets"
        failures = sum(cell.failures for cell in failed)
        queries = sum(cell.queries for cell in failed)
        line = f"{model}, {where}: {failures:,} of {queries:,} calls failed"
        lines.append(line + _cost(board, one or board.cells.get((model, OVERALL))))
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
    """Say what models answered where there is nothing to find."""
    return condensed(
        (cell.model, cell.column, said)
        for cell in board_cells(board)
        if cell.run is not None and (said := rejection_line(cell.run.sums))
    )


def sampled_lines(board: Board) -> list[str]:
    """Say which comparable runs were not answered greedily."""
    return condensed(
        (one.run.model, one.run.question.name, said)
        for one in board.sweep
        if (run := one.run.provenance.identity) is not None and (said := run.answering.sampled)
    )


def forced_lines(board: Board) -> list[str]:
    """Say in which comparable runs ``--force`` went over a contradiction."""
    return condensed(
        (one.run.model, one.run.question.name, f"--force went over {'; '.join(forced)}")
        for one in board.sweep
        if (forced := one.run.provenance.forced)
    )


_OTHER = re.compile(
    r"(?P<doubt>declared (?P<declared>.+), but the answers follow (?P<followed>.+)) \(.+ agree\)"
)
"""A doubt as :func:`..coords.score_check.warning_line` writes it, where another convention fits."""


def coordinate_lines(board: Board) -> list[str]:
    """Say in which conventions models answer, where that is not the declared one."""
    doubts = [
        (one.run, one.run.provenance.coords_doubt)
        for one in board.sweep
        if one.run.provenance.coords_doubt
    ]
    asked: dict[tuple[str, str], set[str]] = {}
    for run, doubt in doubts:
        if found := _OTHER.fullmatch(doubt):
            asked.setdefault((run.model, found["followed"]), set()).add(found["declared"])
    return condensed(
        (run.model, run.question.name, _in_short(doubt, asked, run.model)) for run, doubt in doubts
    )


def _in_short(doubt: str, asked: Mapping[tuple[str, str], set[str]], model: str) -> str:
    """Shorten a doubt: without the numbers of one run, and where only orders differ to those."""
    found = _OTHER.fullmatch(doubt)
    if found is None:
        return doubt
    space, _, order = found["followed"].rpartition(", ")
    declared = [one.rpartition(", ") for one in asked[model, found["followed"]]]
    if any(said != space for said, _, _ in declared):
        return found["doubt"]
    where = "whatever is asked" if len(declared) > 1 else f"where {declared[0][2]} is asked"
    return f"answers {order} {where}"
