"""What is asked, in our own words: both pictures, then the request.  :data:`VERSION` counts changes
of the wording, which is under a snapshot test."""

from __future__ import annotations

from ...core.messages import Message, image, text
from ...core.question import PlainQuestion
from .pairs import Pair, Side

VERSION = 1
NAME = f"self-retrieval-own-{VERSION}"

REQUEST = (
    "The first image is the left one, the second image is the right one. They look much alike. "
    "Find the small differences between them, then write one caption of each image, with details "
    "that are true of it and not of the other, so that a reader who sees a caption alone knows "
    "which of the two images it is about. "
    f'Answer with a JSON object of two strings: {{"{Side.LEFT.key}": "caption of the left image", '
    f'"{Side.RIGHT.key}": "caption of the right image"}}. Answer with nothing else.'
)


def message(pair: Pair, question: PlainQuestion) -> Message:
    """The whole message of a pair, the left picture first."""
    return (*map(image, pair.images), text(REQUEST))
