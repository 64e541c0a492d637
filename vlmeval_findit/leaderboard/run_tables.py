"""The tables of a run's confidences: average precision, and calibration."""

from __future__ import annotations

from collections.abc import Sequence

from ..boxes.confidences import DEFINITIONS
from ..core.evidence import FEWEST
from ..core.statistics import DRAWN, Interval
from ..runs.confidences import ORDERS, CalibrationResult, Figure, Ranked, RankingResult
from .table import Cell, Field, FieldType, Note, Table, Value, count, value


def ranking_table(run: RankingResult) -> Table:
    """Make one row an order of the boxes: average precision, and its gain over the output's."""
    random = run.at_random
    rows: list[list[Value]] = [["at random", _spread(random.ap), "", _spread(random.ap50), ""]]
    rows.append(["as output", *_ranked(run.as_output)])
    rows += [[f"by {one.definition}", *_ranked(one.ranked)] for one in run.by_definition]
    fields = [Field("boxes ranked")]
    for name in ("AP", "AP50"):
        fields += [value(name), Field(f"{name} gain", FieldType.DIFFERENCE)]
    return Table(f"{run.model} on {run.dataset}", fields, rows)


def _spread(of_orders: tuple[float, float, float]) -> Cell:
    mean, least, most = of_orders
    return Cell(mean, Interval(least, most))


def _ranked(one: Ranked) -> list[Value]:
    return [*_with_gain(one.ap), *_with_gain(one.ap50)]


def _with_gain(one: Figure) -> list[Value]:
    if one.gain is None:
        return [Cell(one.value, one.interval), ""]
    spread = one.gain_interval
    is_near = spread is not None and spread.low <= 0 <= spread.high
    return [Cell(one.value, one.interval), Cell(one.gain, sign="≈" if is_near else "")]


def calibration_table(run: RankingResult) -> Table:
    """Make one row a definition of confidence: its error, and the best threshold."""
    fields = [
        Field("confidence"),
        Field("ECE", FieldType.VALUE),
        Field("best cut", FieldType.PROBABILITY, interval=True),
        *(Field(name, FieldType.VALUE) for name in ("F1 there", "elsewhere", "uncut")),
        count("unsure"),
    ]
    return Table("Calibration", fields, list(map(_calibrated, run.by_definition)))


def _calibrated(one: CalibrationResult) -> list[Value]:
    error = None if one.error is None else 100 * one.error
    cut = one.threshold
    if cut is None:
        return [one.definition, error, None, None, None, None, None]
    best = Cell(cut.value, cut.interval)
    return [one.definition, error, best, cut.f1, cut.elsewhere, cut.without, one.unsure]


def legend(runs: Sequence[RankingResult]) -> Note:
    """Say what the words of the tables mean."""
    there = {one.definition for run in runs for one in run.by_definition}
    lines = [f"{name}: {row.means}" for name, row in DEFINITIONS.items() if name in there]
    lines += [
        f"at random: mean, least and most of {ORDERS} orders",
        "gain: over the order of output; ≈: not significant",
        f"brackets: 95 %, {DRAWN} times the pictures drawn again; none of fewer than {FEWEST}",
        "best cut: the confidence from which boxes are kept for the highest F1, which was chosen "
        "on these boxes; elsewhere: F1 with each half cut where the other is best",
    ]
    return Note("", lines)
