"""The reproductions of published figures that a page's runs are of: values, conditions, causes."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor

from markupsafe import Markup

from ..core import counted
from ..leaderboard import Board
from ..reproduction import (
    ConditionSet,
    FigureVerdict,
    StoredReproduction,
    reproduction_line,
    reproductions_of,
)
from .value_text import spread

_VERDICTS = {
    FigureVerdict.AGREES: "agrees with the published value",
    FigureVerdict.LOWER: "lower than published",
    FigureVerdict.HIGHER: "higher than published",
    FigureVerdict.CANNOT_BE_TOLD: "cannot be told yet",
}

# Conditions whose name in the file says too little on a page
_NAMES = {"space": "coordinate space", "bounds": "size of images", "iou": "IoU of a hit"}


@dataclass(frozen=True, slots=True)
class SetupReport:
    """One reproduction on a page."""

    stored: StoredReproduction
    changed: tuple[str, ...]  # Datasets whose replies are others than those that were judged

    @property
    def title(self) -> str:
        stored = self.stored
        return f"{stored.model} on {stored.figure.set}: {_VERDICTS[stored.judgement.verdict]}"

    @property
    def values(self) -> str:
        """Say what was published and what was measured."""
        figure = self.stored.figure
        judgement = self.stored.judgement
        interval = spread(judgement.interval).replace("(", "(95 % interval ")
        by = "its authors" if figure.measured_by == "authors" else figure.measured_by
        asked = f"{counted(self.stored.queries, 'row')} of {counted(judgement.pictures, 'picture')}"
        text = (
            f"Published {judgement.published:.1f} {figure.metric} for {figure.model} by {by}; "
            f"measured {judgement.measured:.1f}{interval} over {asked}"
        )
        if self.stored.failed:
            text += f", of which {counted(self.stored.failed, 'call')} failed, as misses"
        return f"{text}."

    @property
    def difference(self) -> str:
        """Say by how much the values differ, and what the verdict rests on."""
        judgement = self.stored.judgement
        tolerance = f"{judgement.tolerance:.1f} points"
        text = f"Difference {judgement.difference:+.1f} points"
        if judgement.difference_interval is not None:
            ends = judgement.difference_interval
            text += (
                f" ({ends.low:+.1f} to {ends.high:+.1f}: the interval, widened by {tolerance}, by "
                "which careful repetitions differ)"
            )
        if judgement.enough is not None:
            rows = sum(run.table.rows for run in self.stored.runs)
            text += f". {counted(judgement.enough, 'picture')} would do"
            if self.stored.queries == rows:
                text += ", and there are no more"
        return f"{text}."

    @property
    def advised(self) -> tuple[ConditionSet, ...]:
        """The conditions that come with advice."""
        return tuple(each for each in self.stored.conditions if each.advice)

    @property
    def badge(self) -> str:
        return reproduction_line(self.stored)

    @property
    def picture(self) -> Markup:
        return Markup(_strip(self.stored))

    @staticmethod
    def condition_name(name: str) -> str:
        """Return the name of a condition on a page."""
        return _NAMES.get(name, name)


def setups_of(board: Board) -> tuple[SetupReport, ...]:
    """Return the reproductions that judged runs of a board.

    Raises:
        ReproductionFileError: a file of a reproduction next to runs is damaged.
    """
    # Of two samples of different sizes one run is excluded from the board.
    runs = [*(row.run for row in board.runs), *(each.run for each in board.excluded)]
    nearby = reproductions_of({run.path: run.provenance.predictions_sha256 for run in runs})
    return tuple(SetupReport(each.stored, each.changed) for each in nearby)


# --- both values on a line ------------------------------------------------------------------------

_WIDTH, _HEIGHT = 360, 94
_EDGE = 14  # Blank at either end of the line
_LINE = 44  # Its height
_LEAST_RANGE = 10.0  # Points that the line shows


def _strip(stored: StoredReproduction) -> str:
    """Draw the published value with its tolerance, and the measured one with its interval."""
    judgement = stored.judgement
    ends = [judgement.published - judgement.tolerance, judgement.published + judgement.tolerance]
    ends.append(judgement.measured)
    if judgement.interval is not None:
        ends += [judgement.interval.low, judgement.interval.high]
    middle = (min(ends) + max(ends)) / 2
    reach = max(max(ends) - min(ends), _LEAST_RANGE) * 0.6
    low = max(0.0, floor(middle - reach))
    high = min(100.0, ceil(middle + reach))

    def at(value: float) -> float:
        share = (min(max(value, low), high) - low) / (high - low)
        return round(_EDGE + share * (_WIDTH - 2 * _EDGE), 1)

    parts = [f'<path class="axis" d="M{_EDGE} {_LINE}H{_WIDTH - _EDGE}"/>']
    for value, anchor in ((low, "start"), (high, "end")):
        parts.append(_text(at(value), _LINE + 44, f"{value:.0f}", anchor, "axis"))
    left, right = at(ends[0]), at(ends[1])
    band = f'x="{left}" y="{_LINE - 8}" width="{right - left:.1f}" height="16"'
    parts.append(f'<rect class="tolerance" {band}/>')
    if judgement.interval is not None:
        reach_of_interval = f"M{at(judgement.interval.low)} {_LINE}H{at(judgement.interval.high)}"
        parts.append(f'<path class="interval" d="{reach_of_interval}"/>')
    published = at(judgement.published)
    parts.append(f'<path class="published" d="M{published} {_LINE - 11}V{_LINE + 11}"/>')
    parts.append(f'<circle cx="{at(judgement.measured)}" cy="{_LINE}" r="5"/>')
    parts.append(_label(published, _LINE - 18, f"published {judgement.published:.1f}"))
    parts.append(_label(at(judgement.measured), _LINE + 26, f"measured {judgement.measured:.1f}"))
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    words = f"published {judgement.published:.1f}, measured {judgement.measured:.1f}"
    return f'<svg class="strip" role="img" aria-label="{words}" {size}>{"".join(parts)}</svg>'


def _label(x: float, y: float, text: str) -> str:
    """Write a label that does not reach over either end."""
    anchor = "middle"
    if x < _WIDTH / 4:
        anchor = "start"
    elif x > _WIDTH * 3 / 4:
        anchor = "end"
    return _text(x, y, text, anchor, "label")


def _text(x: float, y: float, text: str, anchor: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>'
