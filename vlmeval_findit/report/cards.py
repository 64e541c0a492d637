"""Choose the answers that a page shows: all if there is room, else some of every kind."""

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
FEWEST = 3  # Cards of a run


@dataclass(frozen=True, slots=True)
class Card:
    """An answer of a run, with its details."""

    transcript: Transcript
    row: ScoredRow
    score: float  # Query score, in percent
    spread: float  # Largest query score minus smallest, over the formats of its model
    error_types: tuple[str, ...]  # Keys of its error types

    @property
    def query(self) -> Query:
        return self.transcript.task.queries[self.row.index]


def choose_cards(
    transcripts: Sequence[Transcript], limit: int = CARDS, pairs: Sequence[Pair] = ()
) -> list[Card]:
    """Choose the answers that a page shows, run by run and by row.

    If there are more answers than ``limit``, half of the cards go to the answers in which ``pairs``
    differ most. Every run gets an equal share of the rest: by turns of its worst answers, its best,
    those of every error type, and those on which formats of its model, or runs of its dataset,
    disagree most. A share is at least three, so the last of very many runs get none.
    """
    first = _first(pairs, limit // 2)
    share = max(FEWEST, (limit - sum(map(len, first.values()))) // max(1, len(transcripts)))
    some = [
        transcript
        for at, transcript in enumerate(transcripts)
        if at < limit // FEWEST or key_of(transcript.run) in first
    ]
    places: dict[str, dict[int, int]] = {}
    for transcript in some:
        known = places.setdefault(transcript.run.question.board_dataset, {})
        for index in indices(transcript.run.rows):
            known.setdefault(index, len(known))
    spreads = _spreads([transcript.run for transcript in some], places)
    return [card for each in some for card in _cards(each, share, first, places, spreads)]


def _cards(
    transcript: Transcript,
    share: int,
    first: Mapping[Key, frozenset[int]],
    places: Mapping[str, Mapping[int, int]],
    spreads: Mapping[tuple[str, ...], NDArray[np.float64]],
) -> Iterator[Card]:
    """Yield the cards of a run; only their details are read."""
    run = transcript.run
    at = _at(run, places)
    of_model, of_dataset = (spreads[key][at].tolist() for key in (_of_model(run), _of_dataset(run)))
    values = zip(
        indices(run.rows), run.query_scores, of_model, of_dataset, error_types_of(run), strict=True
    )
    chosen = [_Answer(place, *row) for place, row in enumerate(values)]
    if len(chosen) > share:
        chosen = _some(chosen, share, first.get(key_of(run), frozenset()))
    rows = read_details(run, [answer.place for answer in chosen])
    for row, answer in zip(rows, chosen, strict=True):
        yield Card(transcript, row, answer.score, answer.spread, answer.error_types)


@dataclass(frozen=True, slots=True)
class _Answer:
    """The values that decide whether an answer is on the page."""

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
        for key in (_of_model(run), _of_dataset(run)):
            np.minimum.at(low.setdefault(key, np.full(queries, np.inf)), at, good)
            np.maximum.at(high.setdefault(key, np.full(queries, -np.inf)), at, good)
    # A query that no run of a key was asked has no spread, and none is needed.
    return {key: np.where(low[key] <= high[key], high[key] - low[key], 0.0) for key in low}


def _at(run: Run, places: Mapping[str, Mapping[int, int]]) -> NDArray[Any]:
    """Return the places of a run's rows among the queries of its dataset."""
    known = places[run.question.board_dataset]
    return np.array([known[index] for index in indices(run.rows)], dtype=np.intp)


def _of_model(run: Run) -> tuple[str, ...]:
    return run.model, run.question.board_dataset


def _of_dataset(run: Run) -> tuple[str, ...]:
    return (run.question.board_dataset,)


def _first(pairs: Sequence[Pair], limit: int) -> Mapping[Key, frozenset[int]]:
    """Return the answers in which pairs differ most, by run: both answers of a query, or none."""
    queries = max(1, limit // (2 * len(pairs))) if pairs else 0
    chosen: dict[Key, frozenset[int]] = {}
    for pair in pairs:
        most = frozenset(most_different(pair, queries))
        for run in (pair.left, pair.right):
            chosen[key_of(run)] = chosen.get(key_of(run), frozenset()) | most
    return chosen


def _some(answers: Sequence[_Answer], share: int, first: frozenset[int]) -> list[_Answer]:
    """Choose a share of a run's answers: ``first``, then by turns the next of every order."""
    worst = sorted(answers, key=lambda answer: answer.score)
    error_types = dict.fromkeys(
        error_type for answer in answers for error_type in answer.error_types
    )
    orders = [
        worst,
        worst[::-1],
        *([answer for answer in worst if name in answer.error_types] for name in error_types),
        sorted((answer for answer in answers if answer.spread), key=lambda answer: -answer.spread),
        sorted((answer for answer in answers if answer.apart), key=lambda answer: -answer.apart),
    ]
    chosen = {answer.index: None for answer in answers if answer.index in first}
    most = len(chosen) + share
    for turn in zip_longest(*orders):
        for answer in filter(None, turn):
            if len(chosen) < most:
                chosen[answer.index] = None
    return [answer for answer in answers if answer.index in chosen]
