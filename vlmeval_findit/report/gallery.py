"""Turn the answers of a page into values for its script, with their images as thumbnails.

``templates/drawing.js`` draws their boxes.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from itertools import groupby, repeat
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ..analysis import HIT_SCORE, AuditedRow
from ..core import printable
from ..scoring import Run
from ..storage import decode_image, read_image_header
from .doubtful_labels import Doubts
from .gallery_choice import Card
from .pair_choice import page_key
from .transcripts import drawn_values

_TEXT = 2_500  # Characters of a reply or prompt that are shown

BUDGET = 14_000_000  # Characters that the thumbnails of a page may have together
_SIDES = (960, 640, 480, 384, 320, 256, 192, 144, 112, 80, 56)
_QUALITY = 72
_SAMPLE = 24


class Numbered:
    """Numbers values that occur often, so that each is stored once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._places: dict[Any, int] = {}

    def place(self, value: Any) -> int:
        if value not in self._places:
            self._places[value] = len(self.values)
            self.values.append(value)
        return self._places[value]


def gallery_data(
    cards: Sequence[Card], runs: Sequence[Run], doubts: Doubts = MappingProxyType({})
) -> dict[str, Any]:
    """Return the values of the page's script; see :func:`.transcripts.drawn_values` for drawings.

    ``run``, ``prompt``, ``reply``, ``parts`` and ``image`` of an answer are places in ``runs``,
    ``texts``, ``parts`` and ``images``; ``metric`` is the metric of query scores.

    Args:
        cards: the answers, run after run.
        runs: of the page.
        doubts: doubtful labels.
    """
    texts = Numbered()
    images = Numbered()
    parts = Numbered()
    place = {page_key(run): at for at, run in enumerate(runs)}
    entries = []
    for _, group in groupby(cards, lambda card: id(card.transcript)):
        cards_of_run = list(group)
        transcript = cards_of_run[0].transcript
        run = place[page_key(transcript.run)]
        replies = transcript.read_replies([card.row.index for card in cards_of_run])
        doubtful = doubts.get(transcript.run.board_dataset, {})
        for card in cards_of_run:
            entry = _entry(card, replies, texts, images, parts)
            entries.append({"run": run, **entry, **_doubt(doubtful.get(card.row.index))})
    return {
        "metric": runs[0].benchmark.metrics[0].name if runs else "",
        "runs": [_run_entry(run) for run in runs],
        "texts": texts.values,
        "parts": parts.values,
        "images": image_values(images.values),
        "cards": entries,
    }


def _run_entry(run: Run) -> dict[str, str]:
    return {
        "model": printable(run.model),
        "dataset": run.board_dataset,
        "format": run.variant.format,
    }


def _entry(
    card: Card, replies: Mapping[int, str], texts: Numbered, images: Numbered, parts: Numbered
) -> dict[str, Any]:
    transcript = card.transcript
    row = card.row
    reply = replies.get(row.index, "The prediction file does not exist any more.")
    return {
        "index": row.index,
        "label": card.query.label,
        "score": round(card.score, 3),
        "spread": round(card.spread, 3),
        "hit": card.score >= HIT_SCORE,
        "failed": row.failed,
        "reason": row.reason or "",
        "error_types": card.error_types,
        "parts": [parts.place(printable(f"{kind}: {part}")) for kind, part in row.slices.items()],
        "prompt": texts.place(_cut(transcript.prompt(row.index))),
        "reply": texts.place(_cut(reply)),
        **drawn_values(transcript.draw(row), transcript.images, images.place),
    }


def _doubt(row: AuditedRow | None) -> dict[str, str]:
    """Return what is doubted about a card's label; nothing where nothing is."""
    if row is None or row.fault is None:
        return {}
    return {"doubt": row.fault.value, "doubted_by": f"{row.agreeing} of {row.models} models"}


def _cut(text: str) -> str:
    if len(text) <= _TEXT:
        return text
    return f"{text[:_TEXT]} … and {len(text) - _TEXT:,} more characters"


# --- thumbnails -----------------------------------------------------------------------------------


def image_values(images: Sequence[tuple[Path, int, int]], budget: int = BUDGET) -> list[Any]:
    """Return name, size and thumbnail of each image; its size may be unknown (0)."""
    shrunk = thumbnails((path for path, *_ in images), budget)
    values = []
    for path, width, height in images:
        small = shrunk.get(path, Thumbnail("", 4, 3))
        # The size of the original in pixels: the annotation's, if known
        size = {"w": width or small.width, "h": height or small.height}
        values.append({"name": path.name, **size, "src": small.address})
    return values


class Thumbnail(NamedTuple):
    """A JPEG as a data address, with the size of its original in pixels."""

    address: str
    width: int
    height: int


def thumbnails(paths: Iterable[Path], budget: int = BUDGET) -> dict[Path, Thumbnail]:
    """Return the thumbnails of images; an image that cannot be opened has none.

    The longer side is the largest of a few sides that, by a sample, fit the budget.
    """
    unique = list(dict.fromkeys(paths))
    sample = unique[:: max(1, len(unique) // _SAMPLE)]
    for side in _SIDES:
        sizes = [len(small.address) for path in sample if (small := _thumbnail(path, side))]
        if not sizes or len(unique) * sum(sizes) / len(sizes) <= budget:
            break
    with ThreadPoolExecutor(2) as pool:
        shrunk = pool.map(_thumbnail, unique, repeat(side))
        pairs = zip(unique, shrunk, strict=True)
        return {path: thumbnail for path, thumbnail in pairs if thumbnail is not None}


def _thumbnail(path: Path, side: int) -> Thumbnail | None:
    try:
        width, height = read_image_header(path).size
        # JPEG decoders can leave out detail: scenes of 50 million pixels in a tenth the time.
        small = decode_image(path, enough=(side, side))
    except OSError:
        return None
    small.thumbnail((side, side))
    out = BytesIO()
    small.save(out, "JPEG", quality=_QUALITY, optimize=True)
    data = base64.b64encode(out.getvalue()).decode("ascii")
    return Thumbnail(f"data:image/jpeg;base64,{data}", width, height)
