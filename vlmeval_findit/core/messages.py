"""Messages: texts and images in the order in which a model sees them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import NamedTuple


class PartKind(Enum):
    """The kinds of parts of a message, by VLMEvalKit's names."""

    IMAGE = "image"
    TEXT = "text"


class Part(NamedTuple):
    """Text, or an image's path: below the image folder until :func:`located` makes it a file."""

    kind: PartKind
    value: str


Message = tuple[Part, ...]


def text(value: str) -> Part:
    """A part that is text."""
    return Part(PartKind.TEXT, value)


def image(path: str) -> Part:
    """A part that is an image."""
    return Part(PartKind.IMAGE, path)


def located(message: Message, folder: Path) -> Message:
    """A message whose image parts are paths of files below a folder: as models are asked."""
    base = str(folder)
    return tuple(
        Part(kind, os.path.join(base, value)) if kind is PartKind.IMAGE else Part(kind, value)
        for kind, value in message
    )


def prompt_hash(messages: Iterable[Message]) -> str:
    """A hash of everything that was asked: texts and places of images, in order."""
    digest = hashlib.sha256()
    for parts in messages:
        digest.update(json.dumps([(p.kind.value, p.value) for p in parts]).encode())
        digest.update(b"\n")
    return digest.hexdigest()
