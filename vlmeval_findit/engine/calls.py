"""One (image, prompt) call, and the key by which it is known.

The key is a hash of all that an answer depends on: the model, its settings, the parts of the
prompt, and the *content* of every image.  Two cells or two sweeps that ask the same share a key,
and so an answer; an image that was replaced, or a prompt that was reworded, is another call.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ..benchmarks import benchmark_of
from ..core.files import file_sha256
from ..core.messages import Message, PartKind, located, prompt_hash
from ..core.places import Folder, image_folder
from ..core.question import AnyTask, Question

MessageMaker = Callable[[Any, Any], Message]
"""From a query and its question to a message, images relative to the image folder."""

ImageHash = Callable[[Path], str]
"""From an image's path to a name of its content."""


class Prompt(NamedTuple):
    """Of a message the files of its images, and the SHA-256 of its other parts."""

    images: tuple[Path, ...]
    sha256: str


class Prompts:
    """The messages of a question, one a row of its table.

    Nothing is kept of a message: there are as many as calls, and each is made in microseconds.
    """

    def __init__(self, task: AnyTask, folder: Folder, make: MessageMaker) -> None:
        self.task = task
        self.folder = folder
        self._make = make
        self._base = str(folder.path)
        self._hash: str | None = None

    @property
    def hash(self) -> str:
        """The hash of the messages of all rows (:meth:`.PromptSet.hash`)."""
        if self._hash is None:
            self._hash = prompt_hash(map(self.parts, self.task.queries))
        return self._hash

    def parts(self, index: int) -> Message:
        """The message of a row, images relative to the image folder."""
        return self._make(self.task.queries[index], self.task.question)

    def message(self, index: int) -> Message:
        """The message of a row, images as paths of files."""
        return located(self.parts(index), self.folder.path)

    def prompt(self, index: int) -> Prompt:
        """What a key is made of, of the message of a row."""
        return self.prompt_of(self.parts(index))

    def prompt_of(self, parts: Message) -> Prompt:
        """The same of a message whose images are relative to the image folder."""
        words = [
            '["image",""]' if kind is PartKind.IMAGE else f'["text",{_quoted(value)}]'
            for kind, value in parts
        ]
        sha256 = hashlib.sha256(f"[{','.join(words)}]".encode()).hexdigest()
        return Prompt(self._files(_shown(parts)), sha256)

    def images(self, index: int) -> tuple[Path, ...]:
        """The files of the images in the message of a row."""
        return self._files(self.names(index))

    def names(self, index: int) -> Sequence[str]:
        """The same, as the message has them: relative to the image folder."""
        return _shown(self.parts(index))

    def _files(self, names: Sequence[str]) -> tuple[Path, ...]:
        return tuple([_file(self._base, name) for name in names])


def _shown(parts: Message) -> list[str]:
    return [value for kind, value in parts if kind is PartKind.IMAGE]


@lru_cache(maxsize=1 << 16)
def _file(folder: str, name: str) -> Path:
    """An image's path: the same one for all questions about it, which is compared at once."""
    return Path(folder, name)


def prompts_of(task: AnyTask) -> Prompts:
    """The messages of a task, by the prompt set in force."""
    words = benchmark_of(task.question).prompts()[0]
    return Prompts(task, image_folder(task.question.images), words.message)


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """One model over one question: what a prediction file holds.

    ``rows`` are the indices that are asked, in the table's order, ``left_out`` those without a
    usable image.  ``settings`` are all that the model's answers depend on beside the message:
    not on ``confidences``, whether log-probabilities are recorded with them.
    """

    model: str
    prompts: Prompts = field(repr=False)
    rows: tuple[int, ...]
    left_out: tuple[int, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    confidences: bool = False

    @property
    def task(self) -> AnyTask:
        return self.prompts.task

    @property
    def question(self) -> Question:
        return self.task.question


class Call(NamedTuple):
    """One call: what it is known by, and the first cell and row that want it.

    ``wanted_by`` are the places of all cells of its plan that do.
    """

    asked: Keyed
    cell: Cell
    row: int
    wanted_by: tuple[int, ...] = ()

    @property
    def key(self) -> str:
        return self.asked.key

    @property
    def images(self) -> tuple[Path, ...]:
        """The images in its message."""
        return self.asked.images

    @property
    def message(self) -> Message:
        """Built anew every time: messages of a whole plan would fill the memory."""
        return self.cell.prompts.message(self.row)

    @property
    def scene(self) -> tuple[object, ...]:
        """What calls over the same images must share to be answered together: all that a model
        makes of a question beside its message.
        """
        asked = self.cell.question
        held = asked.reply_schema
        schema = None if held is None else _ENCODER.encode(held)
        return asked.images, asked.frames, asked.has_references, asked.max_new_tokens, schema


class ImageHashes:
    """The SHA-256 of image files, each read once; of one that cannot be read, why (``unread``)."""

    def __init__(self) -> None:
        self._known: dict[Path, str] = {}

    def __call__(self, path: Path) -> str:
        known = self._known.get(path)
        if known is None:
            known = self._known[path] = self._read(path)
        return known

    def _read(self, path: Path) -> str:
        try:
            return self._sha256(path)
        except OSError as error:
            return f"{_UNREAD}{error}"

    def _sha256(self, path: Path) -> str:
        return file_sha256(path)


_UNREAD = "not read: "


def unread(image_hash: str) -> str | None:
    """Why an image has no hash of its content; None where it has one."""
    return image_hash.removeprefix(_UNREAD) if image_hash.startswith(_UNREAD) else None


def settings_of(question: Question, given: Mapping[str, Any]) -> dict[str, Any]:
    """What an answer depends on beside the message: the user's settings, and what the protocol
    makes of the dataset (new tokens by frames; models size images by where they come from), and
    the schema that decoding is held to.
    """
    held = {} if question.reply_schema is None else {"reply_schema": question.reply_schema}
    return {
        "max_new_tokens": question.max_new_tokens,
        "image_folder": question.images,
        **held,
        **given,
    }


NO_ANSWER_DEPENDS = frozenset(
    {"model_path", "row", "batch_size", "device", "key", "retry", "timeout", "verbose", "wait"}
    | {"max_usd", "budget", "space", "headers"}
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
    """A message's key, and what it is made of."""

    key: str
    images: tuple[Path, ...]
    prompt_sha256: str
    image_sha256: tuple[str, ...]


class Keying:
    """Makes the keys of a cell's calls.

    A key is the SHA-256 of ``[model, settings, prompt, images]`` as JSON; what all rows share of it
    is worked out once.

    ``shared`` is what all rows have in common, as JSON.

    Args:
        cell: whose calls.
        image_hash: names the content of images.
    """

    def __init__(self, cell: Cell, image_hash: ImageHash) -> None:
        self._prompts = cell.prompts
        self._image_hash = image_hash
        self.shared = _ENCODER.encode([cell.model, cell.settings])
        self._begun = hashlib.sha256(self.shared[:-1].encode())

    def __call__(self, index: int) -> Keyed:
        """The key of a row's call, and what it is made of."""
        prompt = self._prompts.prompt(index)
        hashes = tuple(map(self._image_hash, prompt.images))
        return Keyed(self.key(prompt.sha256, hashes), prompt.images, prompt.sha256, hashes)

    def key(self, prompt_sha256: str, image_sha256: Iterable[str]) -> str:
        """The key of the call with this prompt over these images."""
        digest = self._begun.copy()
        digest.update(f',"{prompt_sha256}",[{",".join(map(_quoted, image_sha256))}]]'.encode())
        return digest.hexdigest()


def begin_key(model: str, settings: Mapping[str, Any]) -> hashlib._Hash:
    """The beginning of the keys of all calls of a model with the same settings."""
    return hashlib.sha256(_ENCODER.encode([model, settings])[:-1].encode())


def keyed(cell: Cell, index: int, image_hash: ImageHash) -> Keyed:
    """The key of a row's call, and what it is made of."""
    return Keying(cell, image_hash)(index)


def keys_of(cell: Cell, image_hash: ImageHash) -> Iterator[str]:
    """The keys of the calls of a cell, row by row; each is made when it is asked for."""
    keying = Keying(cell, image_hash)
    for index in cell.rows:
        yield keying(index).key


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


_quoted = json.encoder.encode_basestring_ascii
"""A text as JSON writes it; to have lists of texts written by an encoder takes twice as long."""

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str)


def _sha256(value: Sequence[Any]) -> str:
    return hashlib.sha256(_ENCODER.encode(value).encode()).hexdigest()
