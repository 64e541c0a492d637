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
    """Kinds of message parts, by VLMEvalKit's names; it has none of a system text."""

    IMAGE = "image"
    TEXT = "text"
    SYSTEM = "system"


class Part(NamedTuple):
    """Text, or an image's path: below the image folder until :func:`located` makes it a file."""

    kind: PartKind
    value: str


class Reference(Part):
    """The part of an image that shows the object that is asked for, outside the scene."""

    __slots__ = ()


Message = tuple[Part, ...]


def text(value: str) -> Part:
    """Make a text part."""
    return Part(PartKind.TEXT, value)


def system(value: str) -> Part:
    """Make a system text: the first part of a message, if it has one."""
    return Part(PartKind.SYSTEM, value)


def image(path: str) -> Part:
    """Make an image part."""
    return Part(PartKind.IMAGE, path)


def reference(path: str) -> Part:
    """Make the part of a reference image."""
    return Reference(PartKind.IMAGE, path)


def split_system(message: Message) -> tuple[str | None, Message]:
    """Return the system text of a message, if it has one, and the rest."""
    if message and message[0].kind is PartKind.SYSTEM:
        return message[0].value, message[1:]
    return None, message


def located(message: Message, folder: Path) -> Message:
    """Return a message whose images are files below a folder, as models are asked."""
    base = str(folder)
    return tuple(
        part._replace(value=os.path.join(base, part.value)) if part.kind is PartKind.IMAGE else part
        for part in message
    )


def prompt_hash(messages: Iterable[Message]) -> str:
    """Hash everything that was asked: texts and paths of images, in order."""
    digest = hashlib.sha256()
    for parts in messages:
        digest.update(json.dumps([(p.kind.value, p.value) for p in parts]).encode())
        digest.update(b"\n")
    return digest.hexdigest()
