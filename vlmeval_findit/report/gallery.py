"""The answers that a page shows: every one while there is room, else a choice from both ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.question import Query
from ..core.scored_row import ScoredRow
from ..core.visible import visible
from .drawn import drawn_values
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
    def query(self) -> Query:
        return self.transcript.task.queries[self.row.index]


def choose_cards(found: Sequence[Transcript], limit: int = CARDS) -> list[Card]:
    """The cards of a page.

    Where there are more answers than cards, every run gets an equal share: a third of it the worst
    answers, a third the best, a third those on which formats disagree most.
    """
    values = [[one.run.benchmark.goodness(row) for row in one.run.rows] for one in found]
    spreads = _spreads(found, values)
    share = max(3, limit // max(1, len(found)))
    cards: list[Card] = []
    for one, good in zip(found, values, strict=True):
        run = one.run
        mine = [
            Card(one, row, value, spreads[run.model, run.question.column, row.index])
            for row, value in zip(run.rows, good, strict=True)
        ]
        cards += mine if len(mine) <= share else _both_ends(mine, share)
    return cards


def _spreads(
    found: Iterable[Transcript], values: Iterable[Sequence[float]]
) -> dict[tuple[str, str, int], float]:
    by_query: dict[tuple[str, str, int], list[float]] = {}
    for one, good in zip(found, values, strict=True):
        run = one.run
        for row, value in zip(run.rows, good, strict=True):
            by_query.setdefault((run.model, run.question.column, row.index), []).append(value)
    return {key: max(good) - min(good) for key, good in by_query.items()}


def _both_ends(cards: Sequence[Card], share: int) -> list[Card]:
    ordered = sorted(cards, key=lambda card: card.goodness)
    third = share // 3
    ends = [*ordered[:third], *ordered[-third:]]
    rest = sorted(ordered[third:-third], key=lambda card: -card.spread)
    chosen = {card.row.index for card in (*ends, *rest[: share - len(ends)])}
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


def gallery_data(cards: Sequence[Card]) -> dict[str, Any]:
    """What the page's script shows, ready for JSON: see :func:`.drawn.drawn_values` for drawings.

    ``prompt``, ``reply`` and labels of pictures are places in ``texts`` and ``pictures``;
    ``figure`` is what the goodness of answers is called.
    """
    texts, pictures = _Numbered(), _Numbered()
    entries = [_entry(card, texts, pictures) for card in cards]
    made = thumbnails(path for path, *_ in pictures.values)
    return {
        "figure": cards[0].transcript.run.benchmark.metrics[0].name if cards else "",
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


def _entry(card: Card, texts: _Numbered, pictures: _Numbered) -> dict[str, Any]:
    transcript, row = card.transcript, card.row
    reply = transcript.replies.get(row.index)
    question = transcript.run.question
    return {
        "model": visible(transcript.run.model),
        "dataset": question.column,
        "format": question.format,
        "index": row.index,
        "label": card.query.label,
        "good": round(card.goodness, 1),
        "spread": round(card.spread, 1),
        "reason": row.reason or "",
        "prompt": texts.place(_cut(transcript.prompt(row.index))),
        "reply": texts.place("The prediction file is gone." if reply is None else _cut(reply)),
        **drawn_values(transcript.draw(row), transcript.pictures, pictures.place),
    }


def _cut(text: str) -> str:
    if len(text) <= _TEXT:
        return text
    return f"{text[:_TEXT]} … and {len(text) - _TEXT:,} more characters"
