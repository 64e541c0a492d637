"""The answers that a page shows: every one while there is room, else a choice from both ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from ..core.question import Query
from ..core.scored_row import ScoredRow
from ..core.visible import visible
from ..runs.anatomy import row_causes
from ..runs.scored_run import Run
from .drawn import drawn_values
from .pairs import FOUND, Pair, most_different
from .thumbnails import Thumbnail, thumbnails
from .transcripts import Transcript

CARDS = 4_000
"""Answers on one page."""

_TEXT = 2_500
"""Characters of a reply or prompt that are shown."""


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
            mine = _some(mine, share, column, first.get(run.path, frozenset()))
        cards += mine
    return cards


Key = tuple[str, ...]


def _of_model(run: Run) -> Key:
    return run.model, run.question.column


def _of_column(run: Run) -> Key:
    return (run.question.column,)


def _spreads(
    found: Iterable[Transcript], values: Iterable[Sequence[float]], key: Callable[[Run], Key]
) -> dict[tuple[str | int, ...], float]:
    """The largest goodness minus the smallest of every query, over the runs of a key."""
    by_query: dict[tuple[str | int, ...], list[float]] = {}
    for one, good in zip(found, values, strict=True):
        for row, value in zip(one.run.rows, good, strict=True):
            by_query.setdefault((*key(one.run), row.index), []).append(value)
    return {key: max(good) - min(good) for key, good in by_query.items()}


def _first(pairs: Sequence[Pair], limit: int) -> Mapping[Path, frozenset[int]]:
    """The answers in which pairs differ most, by prediction file: both of a query, or none."""
    queries = max(1, limit // (2 * len(pairs))) if pairs else 0
    found: dict[Path, frozenset[int]] = {}
    for pair in pairs:
        most = frozenset(most_different(pair, queries))
        for run in (pair.left, pair.right):
            found[run.path] = found.get(run.path, frozenset()) | most
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


# --- what the page's script reads -----------------------------------------------------------------


class _Numbered:
    """Values that stand often, once each."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._places: dict[Any, int] = {}

    def place(self, value: Any) -> int:
        if value not in self._places:
            self._places[value] = len(self.values)
            self.values.append(value)
        return self._places[value]


def gallery_data(cards: Sequence[Card], runs: Sequence[Run]) -> dict[str, Any]:
    """What the page's script shows, ready for JSON: see :func:`.drawn.drawn_values` for drawings.

    ``run``, ``prompt``, ``reply`` and labels of pictures are places in ``runs``, ``texts`` and
    ``pictures``; ``figure`` is what the goodness of answers is called.
    """
    texts, pictures = _Numbered(), _Numbered()
    place = {run.path: at for at, run in enumerate(runs)}
    entries = [
        {"run": place[card.transcript.run.path], **_entry(card, texts, pictures)} for card in cards
    ]
    made = thumbnails(path for path, *_ in pictures.values)
    return {
        "figure": runs[0].benchmark.metrics[0].name if runs else "",
        "runs": [_run(run) for run in runs],
        "texts": texts.values,
        "pictures": [_picture(made, *entry) for entry in pictures.values],
        "cards": entries,
    }


def _picture(made: Mapping[Path, Thumbnail], path: Path, width: int, height: int) -> dict[str, Any]:
    """Size in pixels of the original (the annotation's, where it is known) and the address."""
    thumbnail = made.get(path)
    if thumbnail is None:
        return {"name": path.name, "w": width or 4, "h": height or 3, "src": ""}
    return {
        "name": path.name,
        "w": width or thumbnail.width,
        "h": height or thumbnail.height,
        "src": thumbnail.address,
    }


def _run(run: Run) -> dict[str, str]:
    question = run.question
    return {"model": visible(run.model), "dataset": question.column, "format": question.format}


def _entry(card: Card, texts: _Numbered, pictures: _Numbered) -> dict[str, Any]:
    transcript, row = card.transcript, card.row
    reply = transcript.replies.get(row.index)
    return {
        "index": row.index,
        "label": card.query.label,
        "good": round(card.goodness, 1),
        "spread": round(card.spread, 1),
        "found": card.goodness >= FOUND,
        "failed": row.failed,
        "reason": row.reason or "",
        "causes": card.causes,
        "prompt": texts.place(_cut(transcript.prompt(row.index))),
        "reply": texts.place("The prediction file is gone." if reply is None else _cut(reply)),
        **drawn_values(transcript.draw(row), transcript.pictures, pictures.place),
    }


def _cut(text: str) -> str:
    if len(text) <= _TEXT:
        return text
    return f"{text[:_TEXT]} … and {len(text) - _TEXT:,} more characters"
