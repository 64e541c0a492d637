"""What a reader of a leaderboard must know beside its values, as sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..benchmarks.findit.metrics import rejection_line
from ..core.evidence import FEWEST
from ..core.spelling import counted
from ..runs.best_format import UNEVEN, rule
from ..runs.scored_run import Run
from .board import TIED, UNTOLD, Board, Standing
from .choosing import FLAG, HALF

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


def cells_of(board: Board) -> Iterator[Standing]:
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
    for cell in cells_of(board):
        found[cell.model] = max(found.get(cell.model, 0), cell.tried)
    return found if any(tried > 1 for tried in found.values()) else {}


def tried_lines(board: Board) -> list[str]:
    """A sentence for models that were asked in several formats, and what the best was chosen on."""
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


def _together(said: Iterable[tuple[str, str]]) -> list[str]:
    """Write sentences of (whom, what), those that say the same as one.

    >>> _together([("A", "failed"), ("B", "is forced"), ("C", "failed")])
    ['A, C: failed', 'B: is forced']
    """
    whom: dict[str, list[str]] = {}
    for name, what in said:
        whom.setdefault(what, []).append(name)
    return [f"{', '.join(dict.fromkeys(names))}: {what}" for what, names in whom.items()]


def part_lines(board: Board) -> list[str]:
    """A sentence for every column that is a part of its table, as after ``--limit``."""
    return [
        f"{column.name}: {len(basis.rows)} of the {len(basis.rows) + len(basis.missing)} queries "
        "of its table"
        for column in board.columns
        if (basis := column.runs[0].basis).missing
    ]


def remarks(board: Board) -> list[tuple[str, list[str]]]:
    """What a reader of the figures must know, by kind: a title and sentences.

    Every output says them, so none stands in one output only.
    """
    said = (
        ("Failed calls", failure_lines(board)),
        ("Formats tried", tried_lines(board)),
        ("Part of a table", part_lines(board)),
        ("Intervals", interval_lines(board)),
        ("Scored by", scorer_lines(board)),
        ("Queries with nothing to find", rejection_lines(board)),
        ("Sampled", sampled_lines(board)),
        ("Forced", forced_lines(board)),
        ("Coordinate space in doubt", doctor_lines(board)),
    )
    return [(title, lines) for title, lines in said if lines]


def interval_lines(board: Board) -> list[str]:
    """A sentence for every column whose intervals do not allow for everything."""
    questions = {one.column: one.run.question for one in board.sweep}
    notes = {name: board.benchmark.interval_note(one) for name, one in questions.items()}
    return [f"{name}: {note}" for name, note in notes.items() if note]


def failure_lines(board: Board) -> list[str]:
    """A sentence for every reported run with failed calls: what they cost it."""
    return [
        f"{cell.model}, {cell.column}: {cell.failures} of {cell.queries} calls failed"
        f"{_as_misses(board, cell.run)}"
        for cell in cells_of(board)
        if cell.run is not None and cell.failures
    ]


def _as_misses(board: Board, run: Run) -> str:
    missed, answered = board.metrics[0].value(run.sums), board.metrics[1].value(run.sums)
    if missed is None:
        return ""
    without = "" if answered is None else f", {answered:.1f} without them"
    return f"; its {board.metrics[1].name} is {missed:.1f} with them as misses{without}"


def rejection_lines(board: Board) -> list[str]:
    """A sentence for every reported run that was asked for what is not there."""
    return [
        f"{cell.model}, {cell.column}: {said}"
        for cell in cells_of(board)
        if cell.run is not None and (said := rejection_line(cell.run.sums))
    ]


def scorer_lines(board: Board) -> list[str]:
    """A sentence for every column in which more than the benchmark's own code decided."""
    return [
        f"{column.name}: {scorer}"
        for column in board.columns
        if (scorer := column.runs[0].basis.scorer)
    ]


def sampled_lines(board: Board) -> list[str]:
    """A sentence for every comparable run that was not answered greedily."""
    return [
        f"{one.run.model}, {one.run.question.name}: {said}"
        for one in board.sweep
        if (run := one.run.basis.identity) is not None and (said := run.answering.sampled)
    ]


def forced_lines(board: Board) -> list[str]:
    """A sentence for every comparable run in which ``--force`` went over a contradiction."""
    return [
        f"{one.run.model}, {one.run.question.name}: --force went over {'; '.join(forced)}"
        for one in board.sweep
        if (forced := one.run.basis.forced)
    ]


def doctor_lines(board: Board) -> list[str]:
    """A sentence for every doubt about coordinate spaces, with the comparable runs it is about."""
    runs: dict[tuple[str, str], list[str]] = {}
    for one in board.sweep:
        if said := one.run.basis.doctor:
            runs.setdefault((one.run.model, said), []).append(one.run.question.name)
    return _together(
        (f"{model} on {of[0]}" if len(of) == 1 else f"{model} ({len(of)} runs)", said)
        for (model, said), of in runs.items()
    )
