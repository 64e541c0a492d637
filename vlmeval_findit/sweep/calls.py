"""One (image, prompt) call, and the key by which it is known.

The key is a hash of all that an answer depends on: the model, its settings, the parts of the
prompt, and the *content* of every image.  Two cells or two sweeps that ask the same share a key,
and so an answer; an image that was replaced, or a prompt that was reworded, is another call.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ..benchmarks.findit.prompts import MessageMaker
from ..benchmarks.findit.variant import Variant
from ..core.files import file_sha256
from ..core.messages import Message, PartKind
from ..core.places import Folder
from ..core.question import AnyTask
from ..core.work import HostMessage

ImageHash = Callable[[Path], str]
"""From an image's path to a name of its content."""


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """One model over one variant: what a prediction file holds.

    ``rows`` are the indices that are asked, in the table's order, ``left_out`` those without a
    usable image.  ``settings`` are all that the model's answers depend on beside the message.
    """

    model: str
    task: AnyTask
    rows: tuple[int, ...]
    left_out: tuple[int, ...]
    folder: Folder
    make: MessageMaker = field(repr=False)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def variant(self) -> Variant:
        found: Variant = self.task.variant
        return found

    def parts(self, index: int) -> Message:
        """The message of a row, images relative to their folder."""
        return self.make(self.task.queries[index], self.variant)  # type: ignore[arg-type]

    def message(self, index: int) -> HostMessage:
        """The message of a row, as a model takes it."""
        base = str(self.folder.path)
        return [
            {
                "type": kind.value,
                "value": os.path.join(base, value) if kind is PartKind.IMAGE else value,
            }
            for kind, value in self.parts(index)
        ]


class Call(NamedTuple):
    """One call: its key, the images in its message, and the first cell and row that want it."""

    key: str
    images: tuple[Path, ...]
    cell: Cell
    row: int

    @property
    def scene(self) -> tuple[str, int]:
        """What calls over the same images must share to be answered together."""
        return self.cell.variant.dataset, self.cell.variant.frames


class ImageHashes:
    """The SHA-256 of image files, each read once; of one that cannot be read, why (``unread``)."""

    def __init__(self) -> None:
        self._known: dict[Path, str] = {}

    def __call__(self, path: Path) -> str:
        if path not in self._known:
            try:
                self._known[path] = file_sha256(path)
            except OSError as error:
                self._known[path] = f"{_UNREAD}{error}"
        return self._known[path]


_UNREAD = "not read: "


def unread(image_hash: str) -> str | None:
    """Why an image has no hash of its content; None where it has one."""
    return image_hash.removeprefix(_UNREAD) if image_hash.startswith(_UNREAD) else None


def settings_of(variant: Variant, given: Mapping[str, Any]) -> dict[str, Any]:
    """What an answer depends on beside the message: the user's settings, and what the protocol
    makes of the dataset (new tokens by frames; models size images by where they come from).
    """
    return {
        "max_new_tokens": variant.max_new_tokens,
        "image_folder": variant.row.images,
        **given,
    }


NO_ANSWER_DEPENDS = frozenset(
    {"model_path", "row", "batch_size", "device", "key", "retry", "timeout", "verbose", "wait"}
    | {"max_usd", "budget", "space", "tensor_parallel_size", "headers", "use_vllm"}
)
"""Settings on which no answer depends, or that stand in a key otherwise."""


def given_key(given: Mapping[str, Any], checkpoint: str | None) -> dict[str, Any]:
    """What of a model's settings is part of the key of its calls.

    Args:
        given: what a user set.
        checkpoint: of a model of ours on this machine: a hash of its files, so that it is the same
            checkpoint wherever it lies, or its identifier.
    """
    kept = {name: value for name, value in given.items() if name not in NO_ANSWER_DEPENDS}
    return kept if checkpoint is None else {**kept, "checkpoint": checkpoint}


class Keyed(NamedTuple):
    """A message and its hashes."""

    key: str
    images: tuple[Path, ...]
    prompt_sha256: str
    image_sha256: tuple[str, ...]


def keyed(cell: Cell, index: int, image_hash: ImageHash) -> Keyed:
    """The key of a row's call, and what it is made of."""
    base, images, hashes, words = cell.folder.path, [], [], []
    for kind, value in cell.parts(index):
        if kind is PartKind.IMAGE:
            images.append(base / value)
            hashes.append(image_hash(images[-1]))
            words.append(("image", ""))
        else:
            words.append(("text", value))
    prompt = _sha256(words)
    key = _sha256([cell.model, cell.settings, prompt, hashes])
    return Keyed(key, tuple(images), prompt, tuple(hashes))


def key_fits(record: Mapping[str, Any]) -> bool:
    """Whether a record has the key of what it says was asked."""
    model, settings = record["model"], record["settings"]
    parts = record["prompt_sha256"], record["image_sha256"]
    if record["key"] == _sha256([model, settings, *parts]):
        return True
    return bool(record["key"] == _sha256([model, _numbered(settings), *parts]))


def _numbered(value: Any) -> Any:
    """Settings before JSON made words of the numbers that name things in them (token ids), which
    sort in another way."""
    if isinstance(value, list):
        return [_numbered(item) for item in value]
    if not isinstance(value, dict):
        return value
    whole = all(isinstance(name, str) and _WHOLE.fullmatch(name) for name in value)
    return {int(name) if whole else name: _numbered(item) for name, item in value.items()}


_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,18})")


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str)


def _sha256(value: Sequence[Any]) -> str:
    return hashlib.sha256(_ENCODER.encode(value).encode()).hexdigest()
