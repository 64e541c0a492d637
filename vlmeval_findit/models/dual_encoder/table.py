"""The dual encoders that have a name; others go by that of their checkpoint (:mod:`.loading`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

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
