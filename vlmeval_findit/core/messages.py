"""Messages: texts and images in the order in which a model sees them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple


class PartKind(Enum):
    """The kinds of parts of a message, by VLMEvalKit's names."""

    IMAGE = "image"
    TEXT = "text"


class Part(NamedTuple):
    """One part of a message: text, or an image's path relative to its dataset's folder."""

    kind: PartKind
    value: str


Message = tuple[Part, ...]


def text(value: str) -> Part:
    """A part that is text."""
    return Part(PartKind.TEXT, value)


def image(path: str) -> Part:
    """A part that is an image."""
    return Part(PartKind.IMAGE, path)


def prompt_hash(messages: Iterable[Message]) -> str:
    """A hash of everything that was asked: texts and places of images, in order."""
    digest = hashlib.sha256()
    for parts in messages:
        digest.update(json.dumps([(p.kind.value, p.value) for p in parts]).encode())
        digest.update(b"\n")
    return digest.hexdigest()
