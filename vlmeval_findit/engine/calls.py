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
from functools import cached_property, lru_cache
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
    """What a key is made of, of a message."""

    images: tuple[Path, ...]
    """The files of its images."""
    sha256: str
    """Of its other parts."""


class Prompts:
    """The messages of a question, one a row of its table.

    Nothing is kept of a message: there are as many as calls, and each is made in microseconds.
    """

    def __init__(self, task: AnyTask, folder: Folder, make: MessageMaker) -> None:
        self.task = task
        self.folder = folder
        self._make = make

    @cached_property
    def hash(self) -> str:
        """The hash of the messages of all rows (:meth:`.PromptSet.hash`)."""
        return prompt_hash(map(self.parts, self.task.queries))

    def parts(self, index: int) -> Message:
        """The message of a row, images relative to the image folder."""
        return self._make(self.task.queries[index], self.task.question)

    def message(self, index: int) -> Message:
        """The message of a row, images as paths of files."""
        return located(self.parts(index), self.folder.path)

    def prompt(self, index: int) -> Prompt:
        """The prompt of a row."""
        return self.prompt_of(self.parts(index))

    def prompt_of(self, parts: Message) -> Prompt:
        """The prompt of a message whose images are relative to the image folder."""
        words = [
            '["image",""]' if kind is PartKind.IMAGE else f'["text",{_quoted(value)}]'
            for kind, value in parts
        ]
        sha256 = hashlib.sha256(f"[{','.join(words)}]".encode()).hexdigest()
        return Prompt(self._files(_shown(parts)), sha256)

    def images(self, index: int) -> tuple[Path, ...]:
        """The files of the images in the message of a row."""
        return self._files(self.names(index))

    def names(self, index: int) -> list[str]:
        """The same, relative to the image folder."""
        return _shown(self.parts(index))

    def _files(self, names: Iterable[str]) -> tuple[Path, ...]:
        folder = str(self.folder.path)
        return tuple([_file(folder, name) for name in names])


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
    """One model over one question: what a prediction file holds."""

    model: str
    prompts: Prompts = field(repr=False)
    rows: tuple[int, ...]
    """The indices that are asked, in the table's order."""
    left_out: tuple[int, ...]
    """Those without a usable image."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """All that the model's answers depend on beside the message."""
    confidences: bool = False
    """Whether log-probabilities are recorded with them."""

    @property
    def task(self) -> AnyTask:
        return self.prompts.task

    @property
    def question(self) -> Question:
        return self.task.question


class Call(NamedTuple):
    """One call, known by what is asked, and the first cell and row that want it."""

    asked: Keyed
    cell: Cell
    row: int
    wanted_by: tuple[int, ...] = ()
    """The places of all cells of its plan that do."""

    @property
    def key(self) -> str:
        return self.asked.key

    @property
    def images(self) -> tuple[Path, ...]:
        return self.asked.images

    @property
    def message(self) -> Message:
        """Built anew every time: messages of a whole plan would fill the memory."""
        return self.cell.prompts.message(self.row)

    @property
    def scene(self) -> tuple[object, ...]:
        """What calls over the same images must share beside their messages to go together."""
        asked = self.cell.question
        held = _ENCODER.encode(asked.reply_schema)
        return asked.images, asked.frames, asked.has_references, asked.max_new_tokens, held


class ImageHashes:
    """The SHA-256 of image files, each read once; of one that cannot be read, why (``unread``)."""

    def __init__(self) -> None:
        self._known: dict[Path, str] = {}

    def __call__(self, path: Path) -> str:
        if path not in self._known:
            try:
                self._known[path] = self._sha256(path)
            except OSError as error:
                self._known[path] = f"{_UNREAD}{error}"
        return self._known[path]

    def _sha256(self, path: Path) -> str:
        return file_sha256(path)


_UNREAD = "not read: "


def unread(image_hash: str) -> str | None:
    """Why an image has no hash of its content; None where it has one."""
    return image_hash.removeprefix(_UNREAD) if image_hash.startswith(_UNREAD) else None


def settings_of(question: Question, given: Mapping[str, Any]) -> dict[str, Any]:
    """What an answer depends on beside the message: the user's settings, and the protocol's.

    New tokens go by frames, models size images by where they come from, and decoding may be held
    to a schema.
    """
    held = {} if question.reply_schema is None else {"reply_schema": question.reply_schema}
    asked = {"max_new_tokens": question.max_new_tokens, "image_folder": question.images}
    return {**asked, **held, **given}


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
    """Makes the keys of a cell's calls: the SHA-256 of ``[model, settings, prompt, images]`` as
    JSON.  What all rows have in common (``shared``) is worked out once.
    """

    def __init__(self, cell: Cell, image_hash: ImageHash) -> None:
        self._prompts = cell.prompts
        self._image_hash = image_hash
        self.shared = _ENCODER.encode([cell.model, cell.settings])
        self._begun = begin_key(cell.model, cell.settings)

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


def keys_of(cell: Cell, image_hash: ImageHash) -> Iterator[str]:
    """The keys of the calls of a cell, row by row; each is made when it is asked for."""
    keying = Keying(cell, image_hash)
    return (keying(index).key for index in cell.rows)


def key_fits(record: Mapping[str, Any]) -> bool:
    """Whether a record has the key of what it says was asked."""

    def fits(settings: Any) -> bool:
        asked = [record["model"], settings, record["prompt_sha256"], record["image_sha256"]]
        return bool(record["key"] == _sha256(asked))

    return fits(record["settings"]) or fits(_numbered(record["settings"]))


def _numbered(value: Any) -> Any:
    """Settings before JSON made words of numbers that name things in them (token ids): they sort
    in another way."""
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
