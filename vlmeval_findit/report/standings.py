"""Standings: which models of a panel may be the best, by the ranks that its tests allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ..analysis import ELSEWHERE
from ..core import counted, first_few
from ..leaderboard import (
    FORMAT_NOT_FOLLOWED,
    NOTHING_FOUND,
    ODD_REPLIES,
    SPACE_IN_DOUBT,
    Board,
    BoardCell,
    RankedValue,
    cells_on_datasets,
    difference_of,
    formats_compared,
    formats_tried,
    formats_used,
    remarks,
)
from ..protocol import Better
from ..statistics import TOO_FEW_IMAGES, Difference, Verdict
from .lost_points import Losses
from .value_text import spread, with_unit

MODELS = 24  # The first models of a board are drawn; the table has all

_PANELS = 8

BEST_STANDING = "best"  # First in its panel
NOT_WORSE = "no model is significantly better"  # It may be the best
LOWER_STANDING = "a model is significantly better"  # So it is not the best
UNTESTED_STANDING = "not tested"  # Against any: too few images, or a value that is not known
NOTHING_STANDING = "no model scores anything"  # So none is the best
STANDINGS = (BEST_STANDING, NOT_WORSE, LOWER_STANDING, UNTESTED_STANDING, NOTHING_STANDING)


@dataclass(frozen=True, slots=True)
class Dot:
    """A model in a panel; ``to_best`` is None for the best."""

    model: str
    entry: RankedValue
    to_best: Difference | None
    is_of_nothing: bool  # No model of its panel scores anything

    @property
    def standing(self) -> str:
        """What the tests of the panel say: one of :data:`STANDINGS`."""
        ranks = self.entry.ranks
        if ranks is not None and self.is_of_nothing:
            return NOTHING_STANDING
        if self.to_best is None or ranks is None:
            return BEST_STANDING
        if ranks.untested:
            return UNTESTED_STANDING
        return NOT_WORSE if ranks.best == 1 else LOWER_STANDING


@dataclass(frozen=True, slots=True)
class Panel:
    """The models of one average or dataset, the best first."""

    name: str
    datasets: Sequence[str]
    dots: tuple[Dot, ...]

    @property
    def has_best(self) -> bool:
        """Whether any model scores anything."""
        return not self.dots[0].is_of_nothing


def panels_of(board: Board) -> list[Panel]:
    """Return the panels of a board: all datasets, then each family, or each dataset of a family.

    A panel is ranked as in :class:`.Board`, by the headline with failed calls as misses. Tests are
    paired over images and hold for all pairs of models of their panel, drawn or not.
    """
    several = len({dataset.family for dataset in board.datasets}) > 1
    groups = [(average.datasets, average.name) for average in board.means]
    groups += [((each.name,), each.name) for each in board.datasets if not several]
    names: dict[Sequence[str], str] = {}
    for datasets, name in groups:
        # The name of a single dataset says more than "Overall".
        names.setdefault(datasets, name if several or len(datasets) != 1 else datasets[0])
    panels = (Panel(name, places, _dots(board, name, places)) for places, name in names.items())
    return [panel for panel in panels if panel.dots][:_PANELS]


def _dots(board: Board, name: str, datasets: Sequence[str]) -> tuple[Dot, ...]:
    metric = board.metrics[0]
    known = ((model, board.entry(model, name, metric.name)) for model in board.models)
    # Models that reviews favour have no rank: the table shows them with their sign.
    entries = {model: entry for model, entry in known if entry and entry.rank}
    ranked = sorted(entries, key=lambda model: (entries[model].rank, model))
    # The same models in every panel, and the best of the panel.
    drawn = {*board.models[:MODELS], *ranked[:1]}
    order = [model for model in ranked if model in drawn]
    if not order:
        return ()

    choice = board.choice(name, metric.name)
    best = board.tested_estimate(order[0], datasets, (metric,))

    def to_best(model: str) -> Difference:
        tested = board.tested_estimate(model, datasets, (metric,))
        value = entries[model].tested - entries[order[0]].tested
        return difference_of(choice, value, tested, best, metric.name)

    tests = map(to_best, order[1:])
    dots = zip(order, [None, *tests], strict=True)
    is_of_nothing = not metric.can_be_best(entries[order[0]].tested)
    return tuple(Dot(model, entries[model], test, is_of_nothing) for model, test in dots)


# --- the first screen -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Headline:
    """A question of the first screen: its answer in a few words, and the evidence."""

    question: str
    answer: str
    because: str


def headlines_of(
    board: Board,
    panels: Sequence[Panel],
    losses: Losses,
    by_size: Mapping[str, tuple[int, int]] = MappingProxyType({}),
) -> list[Headline]:
    """Return the first screen: best model, certainty, format, and the error that costs most.

    Empty if nothing can be compared. Of a model alone it says where it is weak: by dataset, and by
    size, of which ``by_size`` has the number of objects and of those that were found.
    """
    if not panels:
        return []
    panel = panels[0]
    if len(board.models) == 1:
        first = [*_score(board, panel), *_weakest(board), *_weakest_size(by_size)]
    else:
        first = [*_best(board, panel)]
    return [
        *first,
        *(_certain(board, panel) if panel.has_best else ()),
        *_failed_calls(board),
        *_doubts(board),
        *(_format(board, panel) if panel.has_best else ()),
        *_error(panel.dots[0], losses),
    ]


def _best(board: Board, panel: Panel) -> Iterator[Headline]:
    best, *others = panel.dots
    equal = [dot for dot in others if _shown_alike(board, dot, best)]
    interval = spread(best.entry.tested_interval).replace("(", "(95 % interval ")
    where = panel.datasets[0]
    if len(panel.datasets) > 1:
        where = f"mean over {counted(len(panel.datasets), 'dataset')}"
    value = with_unit(board.headline, best.entry.tested)
    if not panel.has_best:
        because = f"{board.headline.name} is {value} of every model, {where}"
        yield Headline("Which model is best?", "None", because)
        return
    because = f"{board.headline.name} {value}{interval}, {where}{_optimism(board, best.entry)}"
    for dot in others[len(equal) : len(equal) + 1]:
        because += f"; next is {dot.model}: {with_unit(board.headline, dot.entry.tested)}"
    names = [best.model, *(dot.model for dot in equal)]
    yield Headline("Which model is best?", " and ".join(names), because)


def _score(board: Board, panel: Panel) -> Iterator[Headline]:
    """Yield what a model alone scores: it is in no contest."""
    (dot,) = panel.dots
    interval = spread(dot.entry.tested_interval).replace("(", "(95 % interval ")
    where = panel.datasets[0]
    if len(panel.datasets) > 1:
        where = f"mean over {counted(len(panel.datasets), 'dataset')}"
    because = f"{board.headline.name}{interval}, {where}{_optimism(board, dot.entry)}"
    yield Headline(
        f"What does {dot.model} score?", with_unit(board.headline, dot.entry.tested), because
    )


def _weakest(board: Board) -> Iterator[Headline]:
    """Yield the dataset on which a model alone scores least; nothing where it has one."""
    (model,) = board.models
    entries = []
    for name in board.counted_datasets:
        entry = board.entry(model, name, board.metrics[0].name)
        if entry is not None:
            entries.append((entry.tested, name))
    if len(entries) < 2:
        return
    entries.sort(reverse=board.metrics[0].better is Better.LOWER)
    worst, *_, best = entries
    low, high = (with_unit(board.headline, value) for value, _ in (worst, best))
    if low != high:
        yield Headline("Where is it weak?", worst[1], f"{low}; best on {best[1]}: {high}")


_FEWEST_OBJECTS = 10  # Of a size that is compared with others
_APART = 10  # Points from which sizes are worth a word: they are not tested


def _weakest_size(by_size: Mapping[str, tuple[int, int]]) -> Iterator[Headline]:
    """Yield the size of objects that are found least; nothing where all are about alike."""
    shares = {
        size: 100 * found / objects
        for size, (objects, found) in by_size.items()
        if objects >= _FEWEST_OBJECTS
    }
    if not shares or max(shares.values()) - min(shares.values()) < _APART:
        return
    worst = min(shares, key=lambda size: shares[size])
    lines = [f"{share:.0f} % of {by_size[size][0]:,} {size} ones" for size, share in shares.items()]
    because = f"found: {', '.join(lines)} (COCO: below 32², from 96² pixels)"
    yield Headline(
        "Which objects does it miss most?", f"{worst[:1].upper()}{worst[1:]} ones", because
    )


def _optimism(board: Board, entry: RankedValue) -> str:
    """Say that the value of the best format is optimistic, where a format was chosen."""
    if entry.elsewhere is None:
        return ""
    if entry.elsewhere.value is None:
        return " (in its best format, which is optimistic)"
    return f" ({with_unit(board.headline, entry.value)} in its best format, which is optimistic)"


def _shown_alike(board: Board, dot: Dot, best: Dot) -> bool:
    """Tell whether a model's value is printed as the best value is."""
    values = [with_unit(board.headline, each.entry.tested) for each in (dot, best)]
    return values[0] == values[1]


def _certain(board: Board, panel: Panel) -> Iterator[Headline]:
    best, *others = panel.dots
    question = "Is that certain?"
    if not others or best.entry.ranks is None:
        return
    # Those below the best that it is not significantly better than; not all are drawn.
    rivals = best.entry.ranks.worst - 1
    unsure = _misread(board, panel)
    if not rivals:
        because = "; ".join(filter(None, (_lead(board, others[0], len(others)), unsure)))
        yield Headline(question, "Only if boxes are read right" if unsure else "Yes", because)
        return
    drawn = [dot for dot in others if dot.to_best is not None and not dot.to_best.significant]
    tested = [dot for dot in drawn if dot.to_best and dot.to_best.verdict is not Verdict.NOT_TESTED]
    if not tested and drawn:
        why = f"{_margin(board, drawn[0])} between {best.model} and {drawn[0].model}"
        because = f"{why}, {UNTESTED_STANDING}: {_why_untested(best, drawn[0])}"
        yield Headline(question, "Not known", "; ".join(filter(None, (because, unsure))))
        return
    because = _lead(board, tested[0], len(others)) if tested else ""
    whom = f"{counted(rivals, 'model')} may be as good" if rivals > 1 or not tested else ""
    yield Headline(
        question, "No, it may be chance", "; ".join(filter(None, (because, whom, unsure)))
    )


def _misread(board: Board, panel: Panel) -> str:
    """Name the compared models whose boxes may be misread: another space may change the order."""
    doubted = {cell.model for cell in cells_on_datasets(board) if _is_in_doubt(cell, panel)}
    named = [dot.model for dot in panel.dots if dot.model in doubted]
    if not named:
        return ""
    return f"{SPACE_IN_DOUBT[:1].lower()}{SPACE_IN_DOUBT[1:]} of {first_few(named, _MOST_FAILING)}"


def _is_in_doubt(cell: BoardCell, panel: Panel) -> bool:
    if cell.run is None or cell.dataset not in panel.datasets:
        return False
    return cell.run.provenance.coords_doubt is not None


def _lead(board: Board, other: Dot, others: int) -> str:
    """Say by how much the best leads another model: ``6.1 points ahead of m1, p = 0.037``."""
    test = other.to_best
    assert test is not None
    margin = f"{_margin(board, other)} ahead of" if round(test.value, 1) else "the same score as"
    if test.interval is not None and test.significant:
        low, high = sorted((abs(test.interval.low), abs(test.interval.high)))
        margin = f"{_margin(board, other)} ({low:.1f} to {high:.1f}) ahead of"
    p = test.corrected
    p_text = ""
    if p is not None:
        p_text = ", p below 0.001" if p < 0.001 else f", p = {p:.3f}"
        if others > 1:
            p_text += f", {test.family.value}"
    return f"{margin} {other.model}{p_text}"


def _margin(board: Board, other: Dot) -> str:
    assert other.to_best is not None
    points = "points" if board.headline.share else board.headline.unit
    return f"{abs(other.to_best.value):.1f} {points}".rstrip()


def _why_untested(best: Dot, other: Dot) -> str:
    for dot in (best, other):
        if dot.entry.elsewhere is not None and dot.entry.elsewhere.value is None:
            return f"no value {ELSEWHERE} of {dot.model} is known (see Notes)"
    return TOO_FEW_IMAGES


_MOST_FAILING = 3  # Models that the card of failed calls names


def _failed_calls(board: Board) -> Iterator[Headline]:
    """Yield how many calls failed, and of which models most did; nothing where all were answered.

    Calls are those behind the values of the board, in reported formats.
    """
    cells = cells_on_datasets(board)
    failures = Counter[str]()
    for cell in cells:
        failures[cell.model] += cell.failures
    failures = +failures
    if not failures:
        return
    asked = sum(cell.queries for cell in cells)
    named = [f"{count:,} of {model}" for model, count in failures.most_common(_MOST_FAILING)]
    because = ", ".join(named)
    if more := len(failures) - len(named):
        because += f" and {counted(more, 'more model')}"
    because += "; they count as misses here: run the same command again to ask them again"
    answer = f"{failures.total():,} of {asked:,} calls failed"
    yield Headline("Was every call answered?", answer, because)


# The questions that remarks answer, by their titles
_DOUBTS = {
    ODD_REPLIES: "Were queries answered as usual?",
    FORMAT_NOT_FOLLOWED: "Are replies in the format that was asked for?",
    NOTHING_FOUND: "Does the model find what is there?",
    SPACE_IN_DOUBT: "Are boxes read as they are meant?",
}


def _doubts(board: Board) -> Iterator[Headline]:
    """Yield the warnings that come before any reading of scores.

    They are of reported formats; Notes have those that nothing is ranked by, too.
    """
    lines_of = dict(remarks(board, only_reported=True))
    for title, question in _DOUBTS.items():
        if lines := lines_of.get(title):
            first, *others = lines
            more = f"; {len(others)} more in Notes" if others else ""
            yield Headline(question, title, f"{first}{more}")


def _format(board: Board, panel: Panel) -> Iterator[Headline]:
    counts: dict[str, Counter[str]] = {}
    for model, name, datasets in formats_used(board):
        counts.setdefault(model, Counter())[name] = len(datasets)
    best, *others = (dot.model for dot in panel.dots)
    if best not in counts:
        return
    ((name, most),) = counts[best].most_common(1)
    of_best = why = _why_format(board, best)
    if why.startswith("the best"):
        why += f" formats for {best}"
    if rest := counts[best].total() - most:
        why += f"; on {counted(rest, 'dataset')} another"
    for model in others[:1]:
        ((other, _),) = counts[model].most_common(1)
        its = _why_format(board, model)
        if other != name:
            why += f"; for {model} it is {other}"
        elif its == of_best:
            why += f"; for {model}, too"
        else:
            why += f"; {model} is also reported in it, {its}"
    yield Headline("In which format?", name, why)


def _why_format(board: Board, model: str) -> str:
    """Say which formats of a model its reported one was compared with."""
    if model in board.named:
        return "named beforehand (--format)"
    tried = formats_tried(board).get(model, 1)
    if tried < 2:
        return "the only format asked"
    rivals = formats_compared(board)[model]
    if rivals > 1:
        return f"the best of {rivals}"
    used = sum(each == model for each, *_ in formats_used(board))
    return (
        "the only format on all its datasets" if used == 1 else "the format of most of its datasets"
    )


def _error(dot: Dot, losses: Losses) -> Iterator[Headline]:
    best = dot.model
    bar = next((bar for bar in losses.bars if bar.model == best), None)
    if bar is None:
        return
    worst = max(bar.segments, key=lambda segment: segment.points, default=None)
    question = f"Which error costs {best} most?"
    if worst is None or worst.points < 0.05:
        yield Headline(question, "Nothing", f"{best} made no error on {bar.where}")
        return
    times = counted(round(worst.events), "time")
    because = f"{times}: {worst.error_type.meaning}; {worst.points:.1f} of the "
    because += f"{100 - bar.score:.1f} points lost"
    if dot.entry.elsewhere is not None:
        # The first question shows its value elsewhere.
        because += " in its best format"
    name = worst.error_type.name
    yield Headline(question, name[:1].upper() + name[1:], because)
