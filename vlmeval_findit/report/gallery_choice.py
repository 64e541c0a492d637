"""Choose the answers that a page shows: all if there is room, else some of every kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ..analysis import rows_with_events_of
from ..core import counted
from ..leaderboard import group_by
from ..protocol import Array, Query, ScoredRow, indices
from ..scoring import Run, read_details
from .doubtful_labels import Doubts
from .pair_choice import Key, Pair, most_different, page_key
from .transcripts import Transcript

CARDS_ON_A_PAGE = 4_000  # Answers on one page
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
    limit: int = CARDS_ON_A_PAGE,
    pairs: Sequence[Pair] = (),
    doubts: Doubts = MappingProxyType({}),
    reported: Sequence[Run] = (),
) -> list[Card]:
    """Choose the answers that a page shows, run by run and by row.

    If there are more answers than ``limit``, half of the cards go to the answers in which ``pairs``
    differ most, and a quarter to all answers of ``reported`` runs to the queries of each dataset on
    which those disagree most. Every run gets an equal share of the rest: by turns of its worst
    answers, its best, those of every error type, those whose label is doubtful, and those on which
    formats of its model, or runs of its dataset, disagree most. A share is at least three, where
    there are so many cards, so the last of very many runs get none.
    """
    first = _joined(_first(pairs, limit // 2), _shared(transcripts, reported, limit // 4))
    most_runs = max(1, limit // FEWEST)
    some = [
        transcript
        for at, transcript in enumerate(transcripts)
        if at < most_runs or page_key(transcript.run) in first
    ]
    runs = [transcript.run for transcript in some]
    rest = max(0, limit - sum(map(len, first.values())))
    shares = _shares([len(run.rows) for run in runs], rest)
    spreads = _spreads(runs, lambda run: (run.model, run.board_dataset))
    spreads_of_dataset = _spreads(runs, lambda run: run.board_dataset)
    cards = []
    for transcript, share in zip(some, shares, strict=True):
        run = transcript.run
        key = page_key(run)
        doubtful = doubts.get(run.board_dataset, {})
        answers = _AnswerColumns(
            scores=np.array(run.query_scores),
            spreads=spreads[key],
            spreads_of_dataset=spreads_of_dataset[key],
            by_error_type=rows_with_events_of(run),
            is_doubtful=_are_among(doubtful, run),
        )
        places = list(range(len(run.rows)))
        if len(places) > share:
            is_first = _are_among(first.get(key, frozenset()), run)
            places = _some(answers, share, np.flatnonzero(is_first).tolist())
        # Only the details of these are read.
        for place, row in zip(places, read_details(run, places), strict=True):
            score = float(answers.scores[place])
            spread = float(answers.spreads[place])
            cards.append(Card(transcript, row, score, spread, answers.error_types(place)))
    return cards


def kinds_of_cards(cards: Sequence[Card], runs: int, is_doubted: bool) -> str:
    """Say which answers :func:`choose_cards` chose, where a page has not all of them.

    Args:
        cards: the chosen answers.
        runs: that have answers.
        is_doubted: whether any label is doubtful.
    """
    of_runs = Counter(page_key(card.transcript.run) for card in cards)
    whose = "every run" if len(of_runs) == runs else counted(len(of_runs), "run")
    most = max(of_runs.values(), default=0)
    if most < FEWEST:
        return f"the worst{' and the best' if most > 1 else ''} of {whose}"
    doubtful = ", those with doubtful labels" if is_doubted else ""
    return (
        f"of {whose} the worst, the best, some of every error type{doubtful}, and those on which "
        "formats or models disagree most"
    )


def _shares(answers: Sequence[int], cards: int) -> list[int]:
    """Divide cards equally among runs; what a run has no answers for goes to the others.

    >>> _shares([24, 24], 5), _shares([2, 24, 24], 30)
    ([2, 3], [2, 14, 14])
    """
    shares = [0] * len(answers)
    by_size = sorted(range(len(answers)), key=lambda at: answers[at])
    for place, at in enumerate(by_size):
        shares[at] = min(answers[at], cards // (len(by_size) - place))
        cards -= shares[at]
    return shares


@dataclass(frozen=True, slots=True)
class _AnswerColumns:
    """The values that decide which answers of a run are on the page: columns over its rows."""

    scores: Array
    spreads: Array
    spreads_of_dataset: Array  # Over all runs of its dataset
    by_error_type: Mapping[str, NDArray[np.bool_]]  # Whether an answer has events of it
    is_doubtful: NDArray[np.bool_]  # Whether its label is

    def error_types(self, place: int) -> tuple[str, ...]:
        return tuple(key for key, has_events in self.by_error_type.items() if has_events[place])


def _are_among(queries: Collection[int], run: Run) -> NDArray[np.bool_]:
    """Return whether each row of a run is of one of some queries."""
    return np.array([index in queries for index in indices(run.rows)], dtype=bool)


def _spreads(runs: Sequence[Run], group: Callable[[Run], object]) -> dict[Key, Array]:
    """Subtract the smallest query score from the largest, over the runs of a group, by row."""
    spreads = {}
    for members in group_by(runs, group).values():
        rows = [np.array(indices(run.rows), dtype=np.intp) for run in members]
        queries = np.unique(np.concatenate(rows))
        low = np.full(len(queries), np.inf)
        high = np.full(len(queries), -np.inf)
        places = [np.searchsorted(queries, rows_of_run) for rows_of_run in rows]
        for run, at in zip(members, places, strict=True):
            np.minimum.at(low, at, run.query_scores)
            np.maximum.at(high, at, run.query_scores)
        for run, at in zip(members, places, strict=True):
            spreads[page_key(run)] = (high - low)[at]
    return spreads


def _first(pairs: Sequence[Pair], limit: int) -> Mapping[Key, frozenset[int]]:
    """Return the answers in which pairs differ most, by run: both answers of a query, or none."""
    queries = max(1, limit // (2 * len(pairs))) if pairs else 0
    chosen: dict[Key, frozenset[int]] = {}
    for pair in pairs:
        most = frozenset(most_different(pair, queries))
        for run in (pair.left, pair.right):
            chosen[page_key(run)] = chosen.get(page_key(run), frozenset()) | most
    return chosen


def _shared(
    transcripts: Sequence[Transcript], reported: Sequence[Run], limit: int
) -> dict[Key, frozenset[int]]:
    """Return the answers to the queries on which reported runs disagree most, by run.

    Runs without a transcript have none; a query has the answers of all others of its dataset.
    """
    keys = {page_key(run) for run in reported}
    runs = [each.run for each in transcripts if page_key(each.run) in keys]
    by_dataset = group_by(runs, lambda run: run.board_dataset)
    several = [members for members in by_dataset.values() if len(members) > 1]
    queries = limit // max(1, sum(map(len, several)))
    if not queries:
        return {}
    spreads = _spreads(runs, lambda run: run.board_dataset)
    chosen: dict[Key, frozenset[int]] = {}
    for members in several:
        widest = _widest(spreads[page_key(members[0])])[:queries]
        rows = np.array(indices(members[0].rows))
        shared = frozenset(rows[widest].tolist())
        for run in members:
            chosen[page_key(run)] = shared
    return chosen


def _joined(
    some: Mapping[Key, frozenset[int]], others: Mapping[Key, frozenset[int]]
) -> dict[Key, frozenset[int]]:
    """Return the answers of both, by run."""
    joined = dict(some)
    for key, queries in others.items():
        joined[key] = joined.get(key, frozenset()) | queries
    return joined


def _some(answers: _AnswerColumns, share: int, first: Sequence[int]) -> list[int]:
    """Choose the places of ``first``, and a share of others: by turns the next of every order."""
    worst = np.argsort(answers.scores, kind="stable")
    orders = [worst, worst[::-1]]
    # The error types that occur, in the order of the rows
    columns = [has_events for has_events in answers.by_error_type.values() if has_events.any()]
    for has_events in sorted(columns, key=lambda has_events: int(has_events.argmax())):
        orders.append(worst[has_events[worst]])
    orders.append(worst[answers.is_doubtful[worst]])
    orders += [_widest(answers.spreads), _widest(answers.spreads_of_dataset)]
    chosen = set(first)
    most = len(chosen) + share
    # As many turns are enough: each has another of the worst.
    for turn in zip_longest(*(order[:most].tolist() for order in orders)):
        for place in turn:
            if place is not None and len(chosen) < most:
                chosen.add(place)
    return sorted(chosen)


def _widest(spreads: Array) -> NDArray[np.intp]:
    """Return the places of spreads, the largest first, without those that are 0."""
    order = np.argsort(-spreads, kind="stable")
    return order[spreads[order] > 0]
