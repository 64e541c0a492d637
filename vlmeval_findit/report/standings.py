"""Standings: every model is tested against the best of its panel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..core.formatting import counted
from ..core.influences import Estimate, mean
from ..core.intervals import Difference, correct, difference
from ..core.metric import Metric
from ..leaderboard.board import Board, RankedValue
from ..leaderboard.notes import formats_tried, formats_used
from ..runs.run_statistics import estimate
from .lost_points import Losses

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
        """The result of the test against the best: one of :data:`STANDINGS`."""
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
    """Return the panels of a board: all datasets, then each family, or each dataset of a family.

    A panel is ranked as in :class:`.Board`, by the headline with failed calls as misses. Tests are
    paired over images and corrected (Holm) for the models of their panel.
    """
    panels = (_panel(board, name, datasets) for name, datasets in _names(board))
    return [panel for panel in panels if panel.dots][:_PANELS]


def _names(board: Board) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield each set of datasets once: its name, and the datasets."""
    known = set()
    several = len({dataset.family for dataset in board.datasets}) > 1
    groups = [(average.name, average.datasets) for average in board.means]
    if not several:
        groups += [(dataset.name, (dataset.name,)) for dataset in board.datasets]
    for name, datasets in groups:
        if datasets not in known:
            known.add(datasets)
            # The name of a single dataset says more than "Overall".
            yield (datasets[0] if len(datasets) == 1 and not several else name), datasets


def _panel(board: Board, name: str, datasets: Sequence[str]) -> Panel:
    metric = board.metrics[0]
    entries = {
        model: cell.entries[metric.name]
        for model in board.models
        if (cell := board.cells.get((model, name))) and metric.name in cell.entries
    }
    ranked = sorted(entries, key=lambda model: (entries[model].rank or 0, model))
    # The same models in every panel, and the best of the panel.
    drawn = {*board.models[:MODELS], *ranked[:1]}
    order = [model for model in ranked if model in drawn]
    if not order:
        return Panel(name, datasets, ())
    best = _estimate(board, order[0], datasets, metric)
    tests = correct(
        difference(_estimate(board, model, datasets, metric), best, metric.name)
        for model in order[1:]
    )
    dots = zip(order, [None, *tests], strict=True)
    return Panel(name, datasets, tuple(Dot(model, entries[model], test) for model, test in dots))


def _estimate(board: Board, model: str, datasets: Sequence[str], metric: Metric) -> Estimate:
    runs = [run for name in datasets if (run := board.cells[model, name].run) is not None]
    estimates = [estimate(run, (metric,)) for run in runs]
    return estimates[0] if len(estimates) == 1 else mean(estimates)


# --- the first screen -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Headline:
    """A question of the first screen: its answer in a few words, and the evidence."""

    question: str
    answer: str
    because: str


def headlines_of(board: Board, panels: Sequence[Panel], losses: Losses) -> list[Headline]:
    """Return the first screen: best model, certainty, format, and the error that costs most.

    Empty if nothing can be compared.
    """
    if not panels:
        return []
    panel = panels[0]
    return [
        _best(board, panel),
        *_certain(board, panel),
        *_format(board, panel),
        *_error(panel, losses),
    ]


def _best(board: Board, panel: Panel) -> Headline:
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
        alike = sum(dot.standing == ALIKE for dot in others)
        # Models that are not tested may be as good.
        least = "at least " if alike + 1 >= MODELS < len(board.models) else ""
        whom = f"; {least}{alike} models may be as good" if alike > 1 else ""
        lead = f"{by} ahead of" if round(test.value, 1) else "the same score as"
        yield Headline(question, "No, it may be chance", f"{lead} {next_.model}{p}{whom}")


def _p(value: float) -> str:
    return "below 0.001" if value < 0.001 else f"= {value:.3f}"


def _format(board: Board, panel: Panel) -> Iterator[Headline]:
    formats: dict[str, dict[str, int]] = {}
    for model, name, datasets in formats_used(board):
        formats.setdefault(model, {})[name] = len(datasets)
    best, *others = (dot.model for dot in panel.dots)
    by_count = formats.get(best)
    if not by_count:
        return
    name = max(by_count, key=lambda form: by_count[form])
    tried = formats_tried(board).get(best, 1)
    why = f"the best of {tried} formats for {best}" if tried > 1 else "the only format asked"
    if rest := sum(by_count.values()) - by_count[name]:
        why += f"; on {counted(rest, 'dataset')} another"
    for model in others[:1]:
        other_formats = formats[model]
        other_name = max(other_formats, key=lambda form: other_formats[form])
        why += f"; for {model}, too" if other_name == name else f"; for {model} it is {other_name}"
    yield Headline("In which format?", name, why)


def _error(panel: Panel, losses: Losses) -> Iterator[Headline]:
    best = panel.dots[0].model
    bar = next((bar for bar in losses.bars if bar.model == best), None)
    if bar is None:
        return
    worst = max(bar.segments, key=lambda segment: segment.points, default=None)
    question = f"Which error costs {best} most?"
    if worst is None or worst.points < 0.05:
        yield Headline(question, "Nothing", f"{best} made no error on {bar.where}")
        return
    lost = f"{worst.points:.1f} of the {100 - bar.score:.1f} points that it lost"
    name = worst.error_type.name
    answer = name[:1].upper() + name[1:]
    # What costs nothing, as a right rejection, is no error.
    costly = [segment for segment in bar.segments if segment.points > 0]
    commonest = max(costly, key=lambda segment: segment.events).error_type
    is_worst = commonest == worst.error_type
    often = "it is the commonest, too" if is_worst else f"the commonest is {commonest.name}"
    yield Headline(question, answer, f"{lost} ({worst.error_type.meaning}); {often}")


def with_unit(metric: Metric, value: float) -> str:
    """Format a value with its unit."""
    return f"{value:.1f} {metric.unit}".rstrip()
