"""The worst answers of a run, drawn on their pictures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from PIL.Image import Image

from ..api.drawing import draw_boxes
from ..core.drawing import DrawnBox, DrawnPicture
from ..core.image_files import decode
from ..core.scored_row import ScoredRow
from ..report.transcripts import Transcript
from .private import Private

SIDE = 1024
"""Pixels of the longer side of a picture, at most."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: its place among the worst, what was asked and said, and its picture with boxes
    (None: there is none)."""

    place: int
    row: ScoredRow
    score: float
    prompt: str
    reply: str
    picture: Image | None

    @property
    def file(self) -> str:
        return f"{self.place:02}_row_{self.row.index}.png"

    @property
    def caption(self) -> str:
        return f"row {self.row.index}, {self.row.reason or f'{self.score:.0f} %'}: {self.reply}"

    @property
    def said(self) -> Mapping[str, Any]:
        """As JSON has it."""
        return {
            "index": self.row.index,
            "score": self.score,
            "reason": self.row.reason,
            "picture": self.file if self.picture else None,
            "prompt": self.prompt,
            "reply": self.reply,
        }


def worst_answers(transcript: Transcript, most: int, private: Private) -> Iterator[Answer]:
    """The worst answers of a run, the worst first; calls that failed are no answers."""
    score_of = transcript.run.benchmark.goodness
    replies = transcript.read_replies()
    answered = [row for row in transcript.run.rows if not row.failed]
    worst = sorted(answered, key=lambda row: (score_of(row), row.index))[:most]
    for place, row in enumerate(worst, 1):
        yield Answer(
            place,
            row,
            score_of(row),
            private.said(transcript.prompt(row.index)),
            private.said(replies.get(row.index, "")),
            _drawn(transcript, row),
        )


def _drawn(transcript: Transcript, row: ScoredRow) -> Image | None:
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
    return image


def _scaled(picture: DrawnPicture, scale: tuple[float, float]) -> Iterator[DrawnBox]:
    for one in picture.boxes:
        box, *outlines = (
            tuple(n * scale[at % 2] for at, n in enumerate(line))
            for line in (one.box, *one.outlines)
        )
        yield one._replace(box=box, outlines=tuple(outlines))
