"""The answers that a page shows: every one while there is room, else a choice of every kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
    """The cards of a page.

    Where there are more answers than cards, half of them go to the answers in which ``pairs``
    differ most, where there are such, and every run gets an equal share of the rest: by turns of
    its worst answers, its best, those of every cause, and those on which formats of its model, or
    runs of its column, disagree most.
    """
    values = [[one.run.benchmark.goodness(row) for row in one.run.rows] for one in found]
    by_model, by_column = (_spreads(found, values, key) for key in (_of_model, _of_column))
    first = _first(pairs, limit // 2)
    spent = sum(map(len, first.values()))
    share = max(3, (limit - spent) // max(1, len(found)))
    cards: list[Card] = []
    for one, good in zip(found, values, strict=True):
        run = one.run
        mine = [
            Card(one, row, value, by_model[(*_of_model(run), row.index)])
            for row, value in zip(run.rows, good, strict=True)
        ]
        if len(mine) > share:
            column = {row.index: by_column[(*_of_column(run), row.index)] for row in run.rows}
            mine = _some(mine, share, column, first.get(key_of(run), frozenset()))
        cards += mine
    return cards


def _of_model(run: Run) -> tuple[str, ...]:
    return run.model, run.question.column


def _of_column(run: Run) -> tuple[str, ...]:
    return (run.question.column,)


def _spreads(
    found: Iterable[Transcript],
    values: Iterable[Sequence[float]],
    key: Callable[[Run], tuple[str, ...]],
) -> dict[tuple[str | int, ...], float]:
    """The largest goodness minus the smallest of every query, over the runs of a key."""
    by_query: dict[tuple[str | int, ...], list[float]] = {}
    for one, good in zip(found, values, strict=True):
        for row, value in zip(one.run.rows, good, strict=True):
            by_query.setdefault((*key(one.run), row.index), []).append(value)
    return {key: max(good) - min(good) for key, good in by_query.items()}


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
