"""Choose the answers that a page shows: all while there is room, else some of every kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.question import Query
from ..core.scored_row import ScoredRow, indices
from ..runs.run_errors import error_types_of
from ..runs.scored_run import Run, read_details
from .pairs import Key, Pair, key_of, most_different
from .transcripts import Transcript

CARDS = 4_000  # Answers on one page
FEWEST = 3  # Of a run


@dataclass(frozen=True, slots=True)
class Card:
    """One answer of one run, with its details."""

    transcript: Transcript
    row: ScoredRow
    score: float  # Query score, in percent
    spread: float  # Largest query score minus smallest, over the formats of its model
    error_types: tuple[str, ...]  # Keys of its error types

    @property
    def query(self) -> Query:
        return self.transcript.task.queries[self.row.index]


def choose_cards(
    found: Sequence[Transcript], limit: int = CARDS, pairs: Sequence[Pair] = ()
) -> list[Card]:
    """Choose the answers that a page shows, run by run and by row.

    If there are more answers than ``limit``, half of the cards go to the answers in which ``pairs``
    differ most. Every run gets an equal share of the rest: by turns of its worst answers, its best,
    those of every error type, and those on which formats of its model, or runs of its dataset,
    disagree most. A share is at least three, so the last of very many runs get none.
    """
    first = _first(pairs, limit // 2)
    share = max(FEWEST, (limit - sum(map(len, first.values()))) // max(1, len(found)))
    some = [one for at, one in enumerate(found) if at < limit // FEWEST or key_of(one.run) in first]
    places: dict[str, dict[int, int]] = {}
    for one in some:
        known = places.setdefault(one.run.question.board_dataset, {})
        for index in indices(one.run.rows):
            known.setdefault(index, len(known))
    spreads = _spreads([one.run for one in some], places)
    return [card for one in some for card in _cards(one, share, first, places, spreads)]


def _cards(
    one: Transcript,
    share: int,
    first: Mapping[Key, frozenset[int]],
    places: Mapping[str, Mapping[int, int]],
    spreads: Mapping[tuple[str, ...], NDArray[np.float64]],
) -> Iterator[Card]:
    """Yield the cards of one run; only their details are read."""
    run = one.run
    at = _at(run, places)
    model, column = (spreads[key][at].tolist() for key in (_of_model(run), _of_column(run)))
    values = zip(
        indices(run.rows), run.query_scores, model, column, error_types_of(run), strict=True
    )
    chosen = [_Answer(place, *row) for place, row in enumerate(values)]
    if len(chosen) > share:
        chosen = _some(chosen, share, first.get(key_of(run), frozenset()))
    rows = read_details(run, [answer.place for answer in chosen])
    for row, answer in zip(rows, chosen, strict=True):
        yield Card(one, row, answer.score, answer.spread, answer.error_types)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What decides whether an answer is on the page."""

    place: int  # Among the run's rows
    index: int
    score: float
    spread: float
    apart: float  # The spread over the runs of its dataset
    error_types: tuple[str, ...]


def _spreads(
    runs: Sequence[Run], places: Mapping[str, Mapping[int, int]]
) -> dict[tuple[str, ...], NDArray[np.float64]]:
    """Subtract the smallest query score from the largest, over the runs of a model or dataset."""
    low: dict[tuple[str, ...], NDArray[np.float64]] = {}
    high: dict[tuple[str, ...], NDArray[np.float64]] = {}
    for run in runs:
        at, good = _at(run, places), run.query_scores
        queries = len(places[run.question.board_dataset])
        for key in (_of_model(run), _of_column(run)):
            np.minimum.at(low.setdefault(key, np.full(queries, np.inf)), at, good)
            np.maximum.at(high.setdefault(key, np.full(queries, -np.inf)), at, good)
    # A query that no run of a key was asked has no spread, and nobody asks for it.
    return {key: np.where(low[key] <= high[key], high[key] - low[key], 0.0) for key in low}


def _at(run: Run, places: Mapping[str, Mapping[int, int]]) -> NDArray[Any]:
    """Return the places of a run's rows among the queries of its dataset."""
    known = places[run.question.board_dataset]
    return np.array([known[index] for index in indices(run.rows)], dtype=np.intp)


def _of_model(run: Run) -> tuple[str, ...]:
    return run.model, run.question.board_dataset


def _of_column(run: Run) -> tuple[str, ...]:
    return (run.question.board_dataset,)


def _first(pairs: Sequence[Pair], limit: int) -> Mapping[Key, frozenset[int]]:
    """Return the answers in which pairs differ most, by run: both of a query, or none."""
    queries = max(1, limit // (2 * len(pairs))) if pairs else 0
    found: dict[Key, frozenset[int]] = {}
    for pair in pairs:
        most = frozenset(most_different(pair, queries))
        for run in (pair.left, pair.right):
            found[key_of(run)] = found.get(key_of(run), frozenset()) | most
    return found


def _some(answers: Sequence[_Answer], share: int, first: frozenset[int]) -> list[_Answer]:
    """Choose a share of one run's answers: ``first``, then by turns the next of every order."""
    worst = sorted(answers, key=lambda one: one.score)
    error_types = dict.fromkeys(error_type for one in answers for error_type in one.error_types)
    orders = [
        worst,
        worst[::-1],
        *([one for one in worst if error_type in one.error_types] for error_type in error_types),
        sorted((one for one in answers if one.spread), key=lambda one: -one.spread),
        sorted((one for one in answers if one.apart), key=lambda one: -one.apart),
    ]
    chosen = {one.index: None for one in answers if one.index in first}
    most = len(chosen) + share
    for turn in zip_longest(*orders):
        for one in filter(None, turn):
            if len(chosen) < most:
                chosen[one.index] = None
    return [one for one in answers if one.index in chosen]
