"""The answers that a page shows: every one while there is room, else a choice of every kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from ..core.question import Query
from ..core.scored_row import ScoredRow
from ..runs.anatomy import row_causes
from ..runs.scored_run import Run
from .pairs import Key, Pair, key_of, most_different
from .transcripts import Transcript

CARDS = 4_000
"""Answers on one page."""


@dataclass(frozen=True, slots=True)
class Card:
    """One answer of one run.

    ``goodness`` is its benchmark's, in percent; ``spread`` is how far the formats of its model
    disagree on the query: the largest goodness minus the smallest.
    """

    transcript: Transcript
    row: ScoredRow
    goodness: float
    spread: float

    @property
    def causes(self) -> tuple[str, ...]:
        """The keys of what the answer lost points by."""
        return row_causes(self.transcript.run.benchmark.anatomy, self.row)

    @property
    def query(self) -> Query:
        return self.transcript.task.queries[self.row.index]


def choose_cards(
    found: Sequence[Transcript], limit: int = CARDS, pairs: Sequence[Pair] = ()
) -> list[Card]:
    """The cards of a page; see :class:`Choice`."""
    choice = Choice.among(found, limit, pairs)
    return [card for one in found for card in choice.cards(one)]


@dataclass(frozen=True, slots=True)
class Choice:
    """Which answers of every run a page shows.

    Where there are more answers than cards, half of them go to the answers in which pairs differ
    most, where there are such, and every run gets an equal share of the rest: by turns of its worst
    answers, its best, those of every cause, and those on which formats of its model, or runs of its
    column, disagree most.  The cards of a run are made when they are wanted: those of all runs at
    once may be millions.
    """

    share: int
    first: Mapping[Key, frozenset[int]]
    by_model: Spreads
    by_column: Spreads

    @classmethod
    def among(
        cls, found: Sequence[Transcript], limit: int = CARDS, pairs: Sequence[Pair] = ()
    ) -> Choice:
        """The choice of at most ``limit`` answers, but of three of every run."""
        first = _first(pairs, limit // 2)
        spent = sum(map(len, first.values()))
        by_model: Spreads = {}
        by_column: Spreads = {}
        for one in found:
            of_model = by_model.setdefault(_of_model(one.run), {})
            of_column = by_column.setdefault(_of_column(one.run), {})
            for row in one.run.rows:
                good = one.run.benchmark.goodness(row)
                for spreads in (of_model, of_column):
                    low, high = spreads.get(row.index, (good, good))
                    spreads[row.index] = (min(low, good), max(high, good))
        return cls(max(3, (limit - spent) // max(1, len(found))), first, by_model, by_column)

    def cards(self, one: Transcript) -> list[Card]:
        """The cards of one run, by row."""
        run = one.run
        model, column = self.by_model[_of_model(run)], self.by_column[_of_column(run)]
        mine = [
            Card(one, row, run.benchmark.goodness(row), _spread(model[row.index]))
            for row in run.rows
        ]
        if len(mine) <= self.share:
            return mine
        apart = {row.index: _spread(column[row.index]) for row in run.rows}
        return _some(mine, self.share, apart, self.first.get(key_of(run), frozenset()))


Spreads = dict[tuple[str, ...], dict[int, tuple[float, float]]]
"""The smallest and the largest goodness of every query, over the runs of a key."""


def _spread(bounds: tuple[float, float]) -> float:
    low, high = bounds
    return high - low


def _of_model(run: Run) -> tuple[str, ...]:
    return run.model, run.question.column


def _of_column(run: Run) -> tuple[str, ...]:
    return (run.question.column,)


def _first(pairs: Sequence[Pair], limit: int) -> Mapping[Key, frozenset[int]]:
    """The answers in which pairs differ most, by run: both of a query, or none."""
    queries = max(1, limit // (2 * len(pairs))) if pairs else 0
    found: dict[Key, frozenset[int]] = {}
    for pair in pairs:
        most = frozenset(most_different(pair, queries))
        for run in (pair.left, pair.right):
            found[key_of(run)] = found.get(key_of(run), frozenset()) | most
    return found


def _some(
    cards: Sequence[Card], share: int, column: Mapping[int, float], first: frozenset[int]
) -> list[Card]:
    """A share of one run's cards: ``first``, then by turns the next of every order."""
    worst = sorted(cards, key=lambda card: card.goodness)
    causes = dict.fromkeys(cause for card in cards for cause in card.causes)
    orders = [
        worst,
        worst[::-1],
        *([card for card in worst if cause in card.causes] for cause in causes),
        sorted((card for card in cards if card.spread), key=lambda card: -card.spread),
        sorted(
            (card for card in cards if column[card.row.index]),
            key=lambda card: -column[card.row.index],
        ),
    ]
    chosen = {card.row.index: None for card in cards if card.row.index in first}
    most = len(chosen) + share
    for turn in zip_longest(*orders):
        for card in filter(None, turn):
            if len(chosen) < most:
                chosen[card.row.index] = None
    return [card for card in cards if card.row.index in chosen]
