"""The interface and the names of dual encoders; needs no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ..shipped_weights import shipped_weights

Vectors = npt.NDArray[np.float32]  # n x d: one pooled, unnormalised vector per row


class Padding(Enum):
    """How captions are laid out for the text tower.

    SigLIP reads its feature from the last position and was trained on captions padded to 64 tokens
    without a mask: unpadded, a short caption has another feature.
    """

    # As in training: SigLIP padded to full length without a mask, others masked; cut at the model's
    # positions.
    AS_TRAINED = "as trained"
    # Cut at 64 tokens, neither padded nor masked.
    UNPADDED = "unpadded"


class TextFeatures(NamedTuple):
    """The vectors of captions, with their lengths."""

    vectors: Vectors
    tokens: tuple[int, ...]  # per caption before the cut, with begin and end tokens
    cut: tuple[bool, ...]  # whether each caption was cut


class DualEncoder(Protocol):
    """A dual encoder."""

    @property
    def facts(self) -> Mapping[str, str]:
        """What features depend on; recorded with every score."""
        ...

    def images(self, paths: Sequence[Path]) -> Vectors:
        """Return the vectors of image files; OSError if a file is missing or no image."""
        ...

    def texts(self, captions: Sequence[str], padding: Padding) -> TextFeatures: ...


class EncoderError(ValueError):
    """Not a dual encoder, or a model without features; the message names it."""


NANO_SIGLIP = "FindIt-Nano-SigLIP"  # ships with the package; it knows nothing but rendered scenes

# Checkpoints by name: a hub identifier or a folder.
ENCODERS: Mapping[str, str] = {
    "SigLIP": "google/siglip-so400m-patch14-384",
    NANO_SIGLIP: shipped_weights("findit_nano_siglip"),
}


def checkpoint_of(name: str) -> str:
    """Return the checkpoint of a name; an identifier or a folder stands for itself.

    >>> checkpoint_of("SigLIP")
    'google/siglip-so400m-patch14-384'
    >>> checkpoint_of("openai/clip-vit-base-patch32")
    'openai/clip-vit-base-patch32'
    """
    return ENCODERS.get(name, name)
