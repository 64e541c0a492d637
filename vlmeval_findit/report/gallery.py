"""Turn the answers of a page into values for its script."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from ..core.formatting import printable
from ..runs.run_statistics import FOUND
from ..runs.scored_run import Run
from .cards import Card
from .drawn import drawn_values
from .pairs import Key, key_of
from .thumbnails import Thumbnail, thumbnails

_TEXT = 2_500  # Characters of a reply or prompt that are shown


class TooLargeError(Exception):
    """The answers are more than one file should hold."""


class Numbered:
    """Numbers values that occur often, so that each stands once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.characters = 0
        self._places: dict[Any, int] = {}

    def place(self, value: Any) -> int:
        if value not in self._places:
            self._places[value] = len(self.values)
            self.values.append(value)
            self.characters += len(value)
        return self._places[value]


def gallery_data(
    cards: Iterable[Card], runs: Sequence[Run], most: int | None = None
) -> dict[str, Any]:
    """Return what the page's script shows; see :func:`.drawn.drawn_values` for drawings.

    ``run``, ``prompt``, ``reply``, ``parts`` and ``picture`` of an answer are places in ``runs``,
    ``texts``, ``parts`` and ``pictures``; ``figure`` is the metric that query scores are of.

    Args:
        cards: the answers, those of a run one after the other.
        runs: of the page.
        most: characters that the answers may have without their pictures (None: any number).

    Raises:
        TooLargeError: they have more; no more of them were made than that.
    """
    texts, pictures, parts = Numbered(), Numbered(), Numbered()
    place = {key_of(run): at for at, run in enumerate(runs)}
    entries: list[dict[str, Any]] = []
    size = 0
    for _, mine in groupby(cards, lambda card: id(card.transcript)):
        for entry in run_entries(list(mine), place, texts, pictures, parts):
            entries.append(entry)
            size += len(json.dumps(entry, ensure_ascii=False, separators=(",", ":")))
            if most is not None and size + texts.characters > most:
                raise TooLargeError
    made = thumbnails(path for path, *_ in pictures.values)
    return {
        **head(runs),
        "texts": texts.values,
        "parts": parts.values,
        "pictures": [picture_values(made, *entry) for entry in pictures.values],
        "cards": entries,
    }


def head(runs: Sequence[Run]) -> dict[str, Any]:
    """Return the metric of query scores, and the runs."""
    return {
        "figure": runs[0].benchmark.metrics[0].name if runs else "",
        "runs": [_run(run) for run in runs],
    }


def run_entries(
    cards: Sequence[Card],
    place: Mapping[Key, int],
    texts: Numbered,
    pictures: Numbered,
    parts: Numbered,
) -> Iterator[dict[str, Any]]:
    """Yield the answers of one run; ``place`` has the places of runs."""
    replies = cards[0].transcript.read_replies() if cards else {}
    for card in cards:
        entry = _entry(card, replies, texts, pictures, parts)
        yield {"run": place[key_of(card.transcript.run)], **entry}


def picture_values(
    made: Mapping[Path, Thumbnail], path: Path, width: int, height: int
) -> dict[str, Any]:
    """Return the original's size in pixels (the annotation's, if known) and the address."""
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
    return {
        "model": printable(run.model),
        "dataset": question.board_dataset,
        "format": question.format,
    }


def _entry(
    card: Card,
    replies: Mapping[int, str],
    texts: Numbered,
    pictures: Numbered,
    parts: Numbered,
) -> dict[str, Any]:
    transcript, row = card.transcript, card.row
    reply = replies.get(row.index)
    return {
        "index": row.index,
        "label": card.query.label,
        "good": round(card.score, 1),
        "spread": round(card.spread, 1),
        "found": card.score >= FOUND,
        "failed": row.failed,
        "reason": row.reason or "",
        "error_types": card.error_types,
        "parts": [parts.place(printable(f"{kind}: {part}")) for kind, part in row.slices.items()],
        "prompt": texts.place(_cut(transcript.prompt(row.index))),
        "reply": texts.place("The prediction file is gone." if reply is None else _cut(reply)),
        **drawn_values(transcript.draw(row), transcript.pictures, pictures.place),
    }


def _cut(text: str) -> str:
    if len(text) <= _TEXT:
        return text
    return f"{text[:_TEXT]} … and {len(text) - _TEXT:,} more characters"
