"""Choose the answers that a page shows: all if there is room, else some of every kind."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ..analysis.run_errors import error_types_of
from ..leaderboard.comparable import grouped
from ..protocol.dataset_variant import Query
from ..protocol.metric import Array
from ..protocol.scored_row import ScoredRow, indices
from ..scoring.scored_run import Run, read_details
from .doubtful_labels import Doubts
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
        return self.transcript.dataset.queries[self.row.index]


def choose_cards(
    transcripts: Sequence[Transcript],
    limit: int = CARDS,
    pairs: Sequence[Pair] = (),
    doubts: Doubts = MappingProxyType({}),
) -> list[Card]:
    """Choose the answers that a page shows, run by run and by row.

    If there are more answers than ``limit``, half of the cards go to the answers in which ``pairs``
    differ most. Every run gets an equal share of the rest: by turns of its worst answers, its best,
    those of every error type, those whose label is doubtful, and those on which formats of its
    model, or runs of its dataset, disagree most. A share is at least three, so the last of very
    many runs get none.
    """
    first = _first(pairs, limit // 2)
    share = max(FEWEST, (limit - sum(map(len, first.values()))) // max(1, len(transcripts)))
    some = [
        transcript
        for at, transcript in enumerate(transcripts)
        if at < limit // FEWEST or key_of(transcript.run) in first
    ]
    runs = [transcript.run for transcript in some]
    spreads = _spreads(runs, lambda run: (run.model, run.board_dataset))
    spreads_of_dataset = _spreads(runs, lambda run: run.board_dataset)
    cards = []
    for transcript in some:
        run = transcript.run
        key = key_of(run)
        doubtful = doubts.get(run.board_dataset, {})
        chosen = _answers(run, spreads[key], spreads_of_dataset[key], doubtful.keys())
        if len(chosen) > share:
            chosen = _some(chosen, share, first.get(key, frozenset()))
        # Only the details of these are read.
        rows = read_details(run, [answer.place for answer in chosen])
        for row, answer in zip(rows, chosen, strict=True):
            cards.append(Card(transcript, row, answer.score, answer.spread, answer.error_types))
    return cards


class _Answer(NamedTuple):
    """The values that decide whether an answer is on the page."""

    place: int  # Among the run's rows
    row: int
    score: float
    spread: float
    spread_of_dataset: float  # Over all runs of its dataset
    error_types: tuple[str, ...]
    doubtful: bool  # Whether its label is


def _answers(
    run: Run, spreads: Array, spreads_of_dataset: Array, doubtful: Container[int]
) -> list[_Answer]:
    rows = indices(run.rows)
    columns = zip(
        rows,
        run.query_scores,
        spreads.tolist(),
        spreads_of_dataset.tolist(),
        error_types_of(run),
        [row in doubtful for row in rows],
        strict=True,
    )
    return [_Answer(place, *values) for place, values in enumerate(columns)]


def _spreads(runs: Sequence[Run], group: Callable[[Run], object]) -> dict[Key, Array]:
    """Subtract the smallest query score from the largest, over the runs of a group, by row."""
    spreads = {}
    for members in grouped(runs, group).values():
        rows = [np.array(indices(run.rows), dtype=np.intp) for run in members]
        queries = np.unique(np.concatenate(rows))
        low = np.full(len(queries), np.inf)
        high = np.full(len(queries), -np.inf)
        places = [np.searchsorted(queries, rows_of_run) for rows_of_run in rows]
        for run, at in zip(members, places, strict=True):
            np.minimum.at(low, at, run.query_scores)
            np.maximum.at(high, at, run.query_scores)
        for run, at in zip(members, places, strict=True):
            spreads[key_of(run)] = (high - low)[at]
    return spreads


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
    error_types = dict.fromkeys(name for answer in answers for name in answer.error_types)
    orders = [
        worst,
        worst[::-1],
        *([answer for answer in worst if name in answer.error_types] for name in error_types),
        [answer for answer in worst if answer.doubtful],
        sorted((answer for answer in answers if answer.spread), key=lambda answer: -answer.spread),
        sorted(
            (answer for answer in answers if answer.spread_of_dataset),
            key=lambda answer: -answer.spread_of_dataset,
        ),
    ]
    chosen = {answer.row: None for answer in answers if answer.row in first}
    most = len(chosen) + share
    for turn in zip_longest(*orders):
        for answer in filter(None, turn):
            if len(chosen) < most:
                chosen[answer.row] = None
    return [answer for answer in answers if answer.row in chosen]
