"""Who is best, and whether that is certain: every model against the best of its panel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..core.estimate import Estimate, mean
from ..core.formatting import counted
from ..core.metric import Metric
from ..core.statistics import Difference, correct, difference
from ..leaderboard.board import Board, RankedValue
from ..leaderboard.notes import formats_tried, formats_used
from ..runs.run_statistics import estimate
from .losses import Losses

MODELS = 24
"""The first models of a board are drawn and tested against the best; the table has all."""

_PANELS = 8


@dataclass(frozen=True, slots=True)
class Dot:
    """A model in a panel; ``to_best`` is None for the best."""

    model: str
    entry: RankedValue
    to_best: Difference | None

    @property
    def standing(self) -> str:
        """How it stands to the best: one of :data:`STANDINGS`."""
        if self.to_best is None:
            return BEST
        if self.to_best.p_value is None:
            return UNTESTED
        return LOWER if self.to_best.significant else ALIKE


BEST, ALIKE, LOWER, UNTESTED = (
    "best", "not told apart from the best", "significantly worse", "too few images to test",
)  # fmt: skip
STANDINGS = (BEST, ALIKE, LOWER, UNTESTED)


@dataclass(frozen=True, slots=True)
class Panel:
    """The models of one average or dataset, the best first."""

    name: str
    datasets: Sequence[str]
    dots: tuple[Dot, ...]


def panels_of(board: Board) -> list[Panel]:
    """Return the panels of a board: all datasets, then each family, or each dataset of one.

    A panel is as :class:`.Board` ranks it, by the headline with failed calls as misses.  Tests are
    paired over images and corrected (Holm) for the models of their panel.
    """
    found = (_panel(board, *one) for one in _names(board))
    return [panel for panel in found if panel.dots][:_PANELS]


def _names(board: Board) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield each set of datasets once: its name, and the datasets."""
    seen = set()
    several = len({one.family for one in board.datasets}) > 1
    groups = [(one.name, one.datasets) for one in board.means]
    if not several:
        groups += [(one.name, (one.name,)) for one in board.datasets]
    for name, columns in groups:
        if columns not in seen:
            seen.add(columns)
            # Of one dataset its own name says more than "Overall".
            yield (columns[0] if len(columns) == 1 and not several else name), columns


def _panel(board: Board, name: str, columns: Sequence[str]) -> Panel:
    metric = board.metrics[0]
    entries = {
        model: cell.entries[metric.name]
        for model in board.models
        if (cell := board.cells.get((model, name))) and metric.name in cell.entries
    }
    ranked = sorted(entries, key=lambda model: (entries[model].rank or 0, model))
    # The same models in every panel, and whoever is best in it.
    drawn = {*board.models[:MODELS], *ranked[:1]}
    order = [model for model in ranked if model in drawn]
    if not order:
        return Panel(name, columns, ())
    best = _estimate(board, order[0], columns, metric)
    tests = correct(
        difference(_estimate(board, model, columns, metric), best, metric.name)
        for model in order[1:]
    )
    dots = zip(order, [None, *tests], strict=True)
    return Panel(name, columns, tuple(Dot(model, entries[model], test) for model, test in dots))


def _estimate(board: Board, model: str, columns: Sequence[str], metric: Metric) -> Estimate:
    runs = [run for name in columns if (run := board.cells[model, name].run) is not None]
    found = [estimate(run, (metric,)) for run in runs]
    return found[0] if len(found) == 1 else mean(found)


# --- the first screen -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Headline:
    """A question of the first screen: its answer in a few words, and what it rests on."""

    question: str
    answer: str
    because: str


def headlines_of(board: Board, panels: Sequence[Panel], losses: Losses) -> list[Headline]:
    """Return what the first screen says: who is best, how certain, in which format, and what the
    best loses most by; empty where nothing can be compared."""
    if not panels:
        return []
    panel = panels[0]
    return [
        _who(board, panel),
        *_certain(board, panel),
        *_format(board, panel),
        *_error(panel, losses),
    ]


def _who(board: Board, panel: Panel) -> Headline:
    best, *others = panel.dots
    bounds = best.entry.interval
    spread = f" (95 % interval {bounds.low:.1f} to {bounds.high:.1f})" if bounds else ""
    over = f"mean over {counted(len(panel.datasets), 'dataset')}"
    where = over if len(panel.datasets) > 1 else panel.datasets[0]
    because = (
        f"{board.headline.name} {with_unit(board.headline, best.entry.value)}{spread}, {where}"
    )
    if others:
        because += (
            f"; next is {others[0].model}: {with_unit(board.headline, others[0].entry.value)}"
        )
    return Headline("Which model is best?", best.model, because)


def _certain(board: Board, panel: Panel) -> Iterator[Headline]:
    best, *others = panel.dots
    question = "Is that certain?"
    if not others:
        return
    next_, test = others[0], others[0].to_best
    assert test is not None
    points = "points" if board.headline.share else board.headline.unit
    by = f"{abs(test.value):.1f} {points}".rstrip()
    if test.interval is not None:
        low, high = sorted((abs(test.interval.low), abs(test.interval.high)))
        by += f" ({low:.1f} to {high:.1f})" if test.significant else ""
    p = "" if test.corrected is None else f", p {_p(test.corrected)}"
    if next_.standing == UNTESTED:
        why = f"too few images to test the {by} between {best.model} and {next_.model}"
        yield Headline(question, "Not known", why)
    elif next_.standing == LOWER:
        yield Headline(question, "Yes", f"{by} ahead of {next_.model}{p}")
    else:
        alike = sum(one.standing == ALIKE for one in others)
        # Of more models than are tested, others may be as good.
        least = "at least " if alike + 1 >= MODELS < len(board.models) else ""
        whom = f"; {least}{alike} models may be as good" if alike > 1 else ""
        lead = f"{by} ahead of" if round(test.value, 1) else "the same score as"
        yield Headline(question, "No, it may be chance", f"{lead} {next_.model}{p}{whom}")


def _p(value: float) -> str:
    return "below 0.001" if value < 0.001 else f"= {value:.3f}"


def _format(board: Board, panel: Panel) -> Iterator[Headline]:
    used: dict[str, dict[str, int]] = {}
    for model, name, columns in formats_used(board):
        used.setdefault(model, {})[name] = len(columns)
    best, *others = (one.model for one in panel.dots)
    mine = used.get(best)
    if not mine:
        return
    name = max(mine, key=lambda one: mine[one])
    tried = formats_tried(board).get(best, 1)
    why = f"the best of {tried} formats for {best}" if tried > 1 else "the only one asked"
    if rest := sum(mine.values()) - mine[name]:
        why += f"; on {counted(rest, 'dataset')} another one"
    for model in others[:1]:
        theirs = used[model]
        other_name = max(theirs, key=lambda one: theirs[one])
        why += f"; for {model}, too" if other_name == name else f"; for {model} it is {other_name}"
    yield Headline("In which format?", name, why)


def _error(panel: Panel, losses: Losses) -> Iterator[Headline]:
    best = panel.dots[0].model
    bar = next((one for one in losses.bars if one.model == best), None)
    if bar is None:
        return
    worst = max((one for one in bar.segments), key=lambda one: one.points, default=None)
    question = f"Which error costs {best} most?"
    if worst is None or worst.points < 0.05:
        yield Headline(question, "Nothing", f"{best} made no error on {bar.where}")
        return
    lost = f"{worst.points:.1f} of the {100 - bar.score:.1f} points that it lost"
    name = worst.error_type.name
    answer = name[:1].upper() + name[1:]
    yield Headline(question, answer, f"{lost}: {worst.error_type.meaning}")


def with_unit(metric: Metric, value: float) -> str:
    """Format a value with its unit."""
    return f"{value:.1f} {metric.unit}".rstrip()
