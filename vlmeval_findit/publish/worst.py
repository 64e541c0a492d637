"""The worst answers of a run, drawn on their pictures."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass

from ..api.drawing import draw_boxes
from ..core.drawing import DrawnBox, DrawnPicture
from ..core.image_files import decode
from ..core.scored_row import ScoredRow
from ..report.transcripts import Transcript

SIDE = 1024
"""Pixels of the longer side of a picture, at most."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: what was asked and said, and a PNG with its boxes (None: there is no picture)."""

    index: int
    goodness: float
    reason: str | None
    prompt: str
    reply: str
    picture: bytes | None


def worst_answers(transcript: Transcript, most: int) -> Iterator[Answer]:
    """The worst answers of a run, the worst first; calls that failed are no answers."""
    goodness = transcript.run.benchmark.goodness
    replies = transcript.read_replies()
    answered = [row for row in transcript.run.rows if not row.failed]
    for row in sorted(answered, key=lambda row: (goodness(row), row.index))[:most]:
        yield Answer(
            row.index,
            goodness(row),
            row.reason,
            transcript.prompt(row.index),
            replies.get(row.index, ""),
            _drawn(transcript, row),
        )


def _drawn(transcript: Transcript, row: ScoredRow) -> bytes | None:
    pictures = transcript.draw(row).pictures
    # Of a video the first frame that shows anything.
    shown = next((one for one in pictures if one.boxes), next(iter(pictures), None))
    if shown is None:
        return None
    try:
        image = decode(transcript.pictures / shown.path, enough=(SIDE, SIDE))
    except OSError:
        return None
    image = image.convert("RGB")
    original = (shown.width or image.width, shown.height or image.height)
    image.thumbnail((SIDE, SIDE))
    scale = (image.width / original[0], image.height / original[1])
    draw_boxes(image, _scaled(shown, scale))
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def _scaled(picture: DrawnPicture, scale: tuple[float, float]) -> Iterator[DrawnBox]:
    for one in picture.boxes:
        box, *outlines = (
            tuple(n * scale[at % 2] for at, n in enumerate(line))
            for line in (one.box, *one.outlines)
        )
        yield one._replace(box=box, outlines=tuple(outlines))
