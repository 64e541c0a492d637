"""What a dual encoder is to those who ask it, and which have a name; needs no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
"""n x d: one vector a row, pooled, not normalised."""


class Padding(Enum):
    """How captions are laid out for the text tower.

    SigLIP reads its feature off the last position and was trained on captions padded to 64 tokens,
    with no mask: of a short caption that is not padded it makes another feature altogether.
    """

    AS_TRAINED = "as trained"
    """As the model's training did: SigLIP's padded to their full length and not masked, others'
    masked; as many tokens as the model has positions."""
    UNPADDED = "unpadded"
    """Cut at 64 tokens, not padded, not masked."""


UNPADDED_TOKENS = 64
"""Tokens at which :attr:`Padding.UNPADDED` cuts; the token that ends a caption is kept."""


class TextFeatures(NamedTuple):
    """The vectors of captions, and how long the captions are.

    ``tokens`` are those of each caption before it was cut, the ones that begin and end it counted;
    ``cut`` says whether it was.
    """

    vectors: Vectors
    tokens: tuple[int, ...]
    cut: tuple[bool, ...]


class Encoder(Protocol):
    """A dual encoder."""

    @property
    def facts(self) -> Mapping[str, str]:
        """What features depend on: to be written beside every score."""
        ...

    def images(self, paths: Sequence[Path]) -> Vectors:
        """The vectors of image files.

        Raises:
            OSError: a file is not there or is no image.
        """
        ...

    def texts(self, captions: Sequence[str], padding: Padding) -> TextFeatures:
        """The vectors of captions."""
        ...


class EncoderError(ValueError):
    """Not a dual encoder, or one that gives no features; the message names it."""


# --- names ----------------------------------------------------------------------------------------

NANO_SIGLIP = "FindIt-Nano-SigLIP"
"""The one that ships with the package: it knows rendered scenes and nothing else of the world."""

ENCODERS: Mapping[str, str] = {
    "SigLIP": "google/siglip-so400m-patch14-384",
    NANO_SIGLIP: str(Path(__file__).parent.with_name("findit_nano_siglip")),
}
"""The checkpoint, an identifier of the Hugging Face hub or a folder, by name."""


def checkpoint_of(name: str) -> str:
    """The checkpoint that a name stands for; an identifier or a folder stands for itself.

    >>> checkpoint_of("SigLIP")
    'google/siglip-so400m-patch14-384'
    >>> checkpoint_of("openai/clip-vit-base-patch32")
    'openai/clip-vit-base-patch32'
    """
    return ENCODERS.get(name, name)


def identifier_of(name: str) -> str:
    """What a record calls an encoder: the one that ships goes by its name, wherever it lies.

    >>> identifier_of("SigLIP"), identifier_of("FindIt-Nano-SigLIP")
    ('google/siglip-so400m-patch14-384', 'FindIt-Nano-SigLIP')
    """
    return name if name == NANO_SIGLIP else checkpoint_of(name)
