"""The answers that a page shows: every one while there is room, else a choice from both ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from ..benchmarks.findit.query import Query
from ..benchmarks.findit.thinning import thin
from ..core.visible import visible
from ..leaderboard.columns import column_name, format_name
from ..runs.scored_run import ScoredRow
from .box_roles import Role, roles
from .thumbnails import Thumbnail, thumbnails
from .transcripts import Material

CARDS = 4_000
"""Answers on one page."""

_FRAMES = 8
_SHOTS = 4
_BOXES = 200
_TEXT = 2_500
"""Characters of a reply or prompt that are shown."""


@dataclass(frozen=True, slots=True)
class Card:
    """One answer of one run.  ``spread`` is how far the formats of its model disagree on the query:
    the largest F1@0.5 minus the smallest, in percentage points.
    """

    material: Material
    answer: ScoredRow
    spread: float

    @property
    def query(self) -> Query:
        return self.material.queries[self.answer.index]


def choose_cards(found: Sequence[Material], limit: int = CARDS) -> list[Card]:
    """The cards of a page.

    Where there are more answers than cards, every run gets an equal share: a third of it the worst
    answers, a third the best, a third those on which formats disagree most.
    """
    spreads = _spreads(found)
    share = max(3, limit // max(1, len(found)))
    cards: list[Card] = []
    for one in found:
        column = column_name(one.run.variant)
        mine = [
            Card(one, answer, spreads[one.run.model, column, answer.index])
            for answer in one.run.answers
        ]
        cards += mine if len(mine) <= share else _both_ends(mine, share)
    return cards


def _spreads(found: Iterable[Material]) -> dict[tuple[str, str, int], float]:
    values: dict[tuple[str, str, int], list[float]] = {}
    for one in found:
        column = column_name(one.run.variant)
        for answer in one.run.answers:
            values.setdefault((one.run.model, column, answer.index), []).append(answer.f1)
    return {key: max(f1) - min(f1) for key, f1 in values.items()}


def _both_ends(cards: Sequence[Card], share: int) -> list[Card]:
    by_f1 = sorted(cards, key=lambda card: card.answer.f1)
    third = share // 3
    ends = [*by_f1[:third], *by_f1[-third:]]
    rest = sorted(by_f1[third:-third], key=lambda card: -card.spread)
    chosen = {card.answer.index for card in (*ends, *rest[: share - len(ends)])}
    return [card for card in cards if card.answer.index in chosen]


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
    """What the page's script shows, ready for JSON.

    ``cards[i].frames[j].boxes`` are [role, x1, y1, x2, y2, label, IoU] in pixels of the original
    picture; ``prompt``, ``reply`` and labels of pictures are places in ``texts`` and ``pictures``.
    """
    texts, pictures = _Numbered(), _Numbered()
    entries = [_entry(card, texts, pictures) for card in cards]
    made = thumbnails(path for path, *_ in pictures.values)
    return {
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
    run, answer, query = card.material.run, card.answer, card.query
    reply = card.material.replies.get(answer.index)
    folder = card.material.pictures
    shots = [pictures.place((folder / name, 0, 0)) for name in query.support[:_SHOTS]]
    return {
        "model": visible(run.model),
        "dataset": column_name(run.variant),
        "format": format_name(run.variant),
        "index": answer.index,
        "label": answer.label,
        "f1": round(answer.f1, 1),
        "spread": round(card.spread, 1),
        "reason": answer.reason.value if answer.reason else "",
        "prompt": texts.place(_cut(card.material.prompt(answer.index))),
        "reply": texts.place("The prediction file is gone." if reply is None else _cut(reply)),
        "shots": shots,
        "frames": _frames(card, pictures),
        "count": len(query.images),
    }


def _cut(text: str) -> str:
    if len(text) <= _TEXT:
        return text
    return f"{text[:_TEXT]} … and {len(text) - _TEXT:,} more characters"


def _frames(card: Card, pictures: _Numbered) -> list[dict[str, Any]]:
    query = card.query
    boxes = _boxes(card)
    return [
        {
            "frame": frame,
            "picture": pictures.place(
                (card.material.pictures / query.images[frame], query.width, query.height)
            ),
            "boxes": boxes.get(frame, []),
        }
        for frame in thin(len(query.images), _FRAMES)
    ]


def _boxes(card: Card) -> dict[int, list[list[Any]]]:
    """The drawn boxes by frame: objects first, so that answers lie above them."""
    answer, truth = card.answer, card.query.truth
    drawn: dict[int, list[list[Any]]] = {}
    for j, (box, frame) in enumerate(zip(truth.boxes, truth.frames, strict=True)):
        label = truth.labels[j] if truth.labels else answer.label
        drawn.setdefault(frame, []).append(_box(Role.TRUTH, box, label, answer.ious[j]))
    said = answer.frames or (0,) * len(answer.boxes)
    for i, (role, value) in enumerate(roles(answer, truth)[:_BOXES]):
        box_said = answer.boxes[i]
        if box_said is not None and all(map(isfinite, box_said)):
            label = answer.labels[i] if answer.labels else ""
            drawn.setdefault(said[i], []).append(_box(role, box_said, label, value))
    return drawn


_FAR = 1e6


def _box(role: Role, box: Sequence[float], label: str, value: float) -> list[Any]:
    # What a model said may be anywhere; far outside is outside, and a picture must bear it.
    corners = [round(min(max(n, -_FAR), _FAR), 1) for n in box]
    return [role.value, *corners, label, round(value, 3)]
