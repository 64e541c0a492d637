"""One (image, prompt) call, its images, and its key; cells, which consist of calls.

The key hashes all that an answer depends on, the *content* of images included: sweeps share equal
calls; a replaced image or a reworded prompt makes another call.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ..benchmarks import benchmark_of
from ..data import load_dataset
from ..protocol import (
    SAMPLE_SETTING,
    AnyDataset,
    CustomPrompt,
    DatasetVariant,
    Message,
    PartKind,
    PictureSample,
    PromptDigest,
    PromptSet,
    Reference,
    json_text,
    located,
    prompt_hash,
    prompt_set,
)
from ..storage import Folder, content_of, image_folder, rows_to_leave_out

_UNREAD = "not read: "


class Images:
    """The images of all messages of a command: numbered sets of files, each file read once."""

    def __init__(self) -> None:
        self.files: list[tuple[Path, ...]] = []  # of each number
        self.names: list[tuple[str, ...]] = []  # of these files in their folder
        self.references: list[tuple[bool, ...]] = []  # which of them are reference images
        self._numbers: dict[tuple[object, ...], int] = {}
        self.sha256 = cache(self._content)
        self.contents = cache(self._contents)

    def number(self, folder: str, names: Sequence[str], references: Sequence[bool]) -> int:
        """Return the number of a set of files, which is new if the set is."""
        at = (folder, *names, *references)
        if at not in self._numbers:
            self._numbers[at] = len(self.files)
            self.files.append(tuple(Path(folder, name) for name in names))
            self.names.append(tuple(names))
            self.references.append(tuple(references))
        return self._numbers[at]

    def _content(self, path: Path) -> str:
        """Return the content of a file, or why it cannot be read (:func:`unread`)."""
        try:
            return content_of(path)
        except OSError as error:
            return f"{_UNREAD}{error}"

    def _contents(self, number: int) -> tuple[str, ...]:
        return tuple(map(self.sha256, self.files[number]))

    def is_unchanged(self, path: Path) -> bool:
        """Return whether a file still has its planned content; it is read only if touched."""
        try:
            return content_of(path) == self.sha256(path)
        except OSError:
            return False


def unread(content: str) -> str | None:
    """Return why an image could not be hashed; None if it was."""
    return content.removeprefix(_UNREAD) if content.startswith(_UNREAD) else None


class PromptHashes(NamedTuple):
    """Hashes of the messages of many rows, which enter their keys."""

    images: array[int]  # numbers in :class:`Images`
    sha256: bytes  # of the other parts, 32 bytes each

    def message_sha256(self, at: int) -> str:
        return self.sha256[32 * at : 32 * at + 32].hex()


@dataclass(eq=False, repr=False)
class Prompts:
    """The messages of a dataset variant, one per row; only 36 bytes of each are stored."""

    dataset: AnyDataset
    folder: Folder
    words: PromptSet
    images: Images = field(default_factory=Images)
    custom: CustomPrompt | None = None
    _hashes: dict[tuple[int, ...], PromptHashes] = field(default_factory=dict, init=False)

    @cached_property
    def hash(self) -> str:
        """Hash of the messages of all rows (:meth:`.PromptSet.hash`)."""
        return prompt_hash(map(self.parts, self.dataset.queries))

    def parts(self, index: int) -> Message:
        """Return the message of a row, images relative to the image folder."""
        return self.words.message(self.dataset.queries[index], self.dataset.variant)

    def message(self, index: int) -> Message:
        """Return the message of a row, images as file paths."""
        return located(self.parts(index), self.folder.path)

    def hashes(self, rows: tuple[int, ...]) -> PromptHashes:
        """Return the hashes of the messages of rows; those of all rows give :attr:`hash`, too."""
        if rows not in self._hashes:
            self._hashes[rows] = self._hash_messages(rows)
        return self._hashes[rows]

    def _hash_messages(self, rows: tuple[int, ...]) -> PromptHashes:
        numbers = array("I")
        sha256 = bytearray()
        digest = PromptDigest()
        for row in rows:
            message = self.parts(row)
            numbers.append(self._image_number(message))
            sha256 += _sha256_without_images(message)
            digest.add(message)
        if rows == tuple(self.dataset.queries):
            self.hash = digest.hexdigest()
        return PromptHashes(numbers, bytes(sha256))

    def _image_number(self, message: Message) -> int:
        images = [part for part in message if part.kind is PartKind.IMAGE]
        names = [part.value for part in images]
        references = [isinstance(part, Reference) for part in images]
        return self.images.number(str(self.folder.path), names, references)


def _sha256_without_images(message: Message) -> bytes:
    """Hash a message with an empty name for each image."""
    parts = [
        '["image",""]' if kind is PartKind.IMAGE else f'["{kind.value}",{json_text(text)}]'
        for kind, text in message
    ]
    return hashlib.sha256(f"[{','.join(parts)}]".encode()).digest()


def prompts_of(
    dataset: AnyDataset, images: Images | None = None, custom: CustomPrompt | None = None
) -> Prompts:
    """Return the messages of a dataset, by the prompt set in force, or in the user's words.

    Raises:
        ValueError: the benchmark does not know what the user's template names.
    """
    words = prompt_set(benchmark_of(dataset.variant), custom)
    return Prompts(dataset, image_folder(dataset.variant.images), words, images or Images(), custom)


@dataclass(frozen=True, eq=False)
class Cell:
    """One model on one dataset variant: what a prediction file holds."""

    model: str
    prompts: Prompts = field(repr=False)
    rows: tuple[int, ...]  # asked indices, in the table's order
    left_out: tuple[int, ...]  # rows without a usable image
    settings: Mapping[str, Any] = field(default_factory=dict)  # besides the messages
    logprobs: bool = False  # whether log-probabilities are recorded
    sample: int = 1  # which of several replies to each query, from 1

    @property
    def is_sampled(self) -> bool:
        """Whether replies are sampled, not greedy."""
        return bool(float(self.settings.get("temperature") or 0))

    @property
    def dataset(self) -> AnyDataset:
        return self.prompts.dataset

    @property
    def variant(self) -> DatasetVariant:
        return self.dataset.variant

    @cached_property
    def prompt_hashes(self) -> PromptHashes:
        return self.prompts.hashes(self.rows)

    @property
    def prompt_hash(self) -> str:
        """Hash of the messages of all rows of the table, whichever are asked."""
        if len(self.rows) == len(self.dataset.queries):
            _ = self.prompt_hashes  # needed anyway, and gives both
        return self.prompts.hash

    def key_maker(self) -> Callable[[int], str]:
        """Return the function from a row's place to its key.

        A key is the SHA-256 of ``[model, settings, prompt, images]`` as JSON.
        """
        hashes = self.prompt_hashes
        contents = self.prompts.images.contents
        begun = hashlib.sha256(shared_key(self)[:-1].encode())

        def key(at: int) -> str:
            digest = begun.copy()
            shown = ",".join(map(json_text, contents(hashes.images[at])))
            digest.update(f',"{hashes.message_sha256(at)}",[{shown}]]'.encode())
            return digest.hexdigest()

        return key

    def call_keys(self) -> Iterator[str]:
        return map(self.key_maker(), range(len(self.rows)))


class Call(NamedTuple):
    """One call, with the first cell and the position in its rows that need it."""

    key: str
    cell: Cell
    at: int
    needed_by: tuple[int, ...] = ()  # indices of all cells of its plan that need it
    shares_images: bool = False  # another call of its plan shows the same

    @property
    def row(self) -> int:
        return self.cell.rows[self.at]

    @property
    def images(self) -> tuple[Path, ...]:
        return self.cell.prompts.images.files[self.cell.prompt_hashes.images[self.at]]

    @property
    def image_names(self) -> tuple[str, ...]:
        """Names of its images in the image folder."""
        return self.cell.prompts.images.names[self.cell.prompt_hashes.images[self.at]]

    @property
    def image_sha256(self) -> tuple[str, ...]:
        """The contents of its images (:mod:`..storage.image_content`)."""
        return self.cell.prompts.images.contents(self.cell.prompt_hashes.images[self.at])

    @property
    def prompt_sha256(self) -> str:
        return self.cell.prompt_hashes.message_sha256(self.at)

    @property
    def seed(self) -> int | None:
        """Seed of its random numbers, different in every sample; None: greedy."""
        return int(self.key[:8], 16) >> 1 if self.cell.is_sampled else None

    @property
    def message(self) -> Message:
        """Built on every access: the messages of a whole plan would fill the memory."""
        return self.cell.prompts.message(self.row)


def settings_of(
    variant: DatasetVariant, given: Mapping[str, Any], sample: int = 1
) -> dict[str, Any]:
    """Return what answers depend on besides the message: user settings and the protocol's."""
    settings: dict[str, Any] = {
        "max_new_tokens": variant.max_new_tokens,
        "image_folder": variant.images,
    }
    if variant.reply_schema is not None:
        settings["reply_schema"] = variant.reply_schema
    return {**settings, **given, **sample_setting(sample)}


def sample_setting(sample: int) -> dict[str, Any]:
    """Return the setting that tells a sample apart; the first sample has none."""
    return {SAMPLE_SETTING: sample} if sample > 1 else {}


_OF_CALLS = "how calls are made, not what is asked"
_OF_COSTS = "it ends a run, and changes no answer"
# Settings that no key has as they are stated, and why
NOT_IN_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "model_path": "the key has the checkpoint, by its content where it is a folder",
        "like": "`made_by` has the row",
        "space": "each reply has it, and is compared by it",
        "headers": "`made_by` has them, of secrets a hash",
        "batch_size": "how many queries are answered at once",
        "device": "where the model runs",
        "key": "a secret of the service",
        **dict.fromkeys(("retry", "timeout", "verbose", "wait"), _OF_CALLS),
        **dict.fromkeys(("max_usd", "budget"), _OF_COSTS),
    }
)


def of_answers(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of a model's settings that its calls' keys have, as they were stated."""
    return {name: value for name, value in settings.items() if name not in NOT_IN_KEYS}


def shared_key(cell: Cell) -> str:
    """Return the JSON with which the keys of all calls of a cell begin."""
    return _ENCODER.encode([cell.model, cell.settings])


class AskedRows(NamedTuple):
    """Which rows of a table are asked, in its order."""

    rows: tuple[int, ...]
    left_out: tuple[int, ...]  # Those in between without a usable image


class CellBuilder:
    """Loads datasets, and makes cells of their usable rows.

    ``skip_missing``: leave out rows without a usable image; None: do not check images.
    """

    def __init__(self, skip_missing: bool | None) -> None:
        self.images = Images()
        self._skip = skip_missing
        self._datasets: dict[_Rows, AnyDataset] = {}
        self._asked: dict[tuple[object, ...], AskedRows] = {}
        self._prompts: dict[tuple[DatasetVariant, str | None, CustomPrompt | None], Prompts] = {}
        self._rows: dict[tuple[int, ...], tuple[int, ...]] = {}

    def dataset(self, variant: DatasetVariant) -> AnyDataset:
        """Return the loaded dataset; FileNotFoundError or TableError if it has no table."""
        at = _rows_of(variant)
        if at not in self._datasets:
            self._datasets[at] = load_dataset(variant.name)
        return replace(self._datasets[at], name=variant.name, variant=variant)

    def cell(
        self,
        model: str,
        variant: DatasetVariant,
        limit: int | None,
        given: Mapping[str, Any] = MappingProxyType({}),
        *,
        logprobs: bool = False,
        prompt: CustomPrompt | None = None,
        sample: int = 1,
        pictures: PictureSample | None = None,
    ) -> Cell:
        """Return the cell of a model, with its settings if known: a variant's first usable rows.

        Of these only the rows of ``pictures``, if there is a sample of them.

        Raises:
            ImageError: images are missing, and their rows are not to be left out.
            ValueError: it is not known how this model is asked.
        """
        asked = self.asked(variant, limit, pictures)
        prompts = self._prompts_for(variant, model, prompt)
        settings = settings_of(variant, given, sample)
        return Cell(model, prompts, asked.rows, asked.left_out, settings, logprobs, sample)

    def _prompts_for(
        self, variant: DatasetVariant, model: str, prompt: CustomPrompt | None
    ) -> Prompts:
        # Most messages are the same for all models: their key has no model.
        for key in ((variant, model, prompt), (variant, None, prompt)):
            if key in self._prompts:
                return self._prompts[key]
        dataset = benchmark_of(variant).for_model(self.dataset(variant), model)
        prompts = prompts_of(dataset, self.images, prompt)
        depends_on_model = dataset.base_dataset is not None
        self._prompts[variant, model if depends_on_model else None, prompt] = prompts
        return prompts

    def asked(
        self, variant: DatasetVariant, limit: int | None, pictures: PictureSample | None = None
    ) -> AskedRows:
        """Return the rows that are asked, or raise ImageError; images of others are not needed."""
        at = (*_rows_of(variant), limit, pictures)
        if at not in self._asked:
            self._asked[at] = self._rows_to_ask(variant, limit, pictures)
        return self._asked[at]

    def _rows_to_ask(
        self, variant: DatasetVariant, limit: int | None, pictures: PictureSample | None
    ) -> AskedRows:
        queries = self.dataset(variant).queries
        left_out = frozenset[int]()
        if self._skip:  # A sample is drawn of the rows that can be asked
            left_out = self._left_out(variant, queries, limit)
        rows = tuple(row for row in queries if row not in left_out)[:limit]
        if pictures is not None:
            rows = pictures.draw(queries, rows)
        if self._skip is False:
            self._left_out(variant, rows, None)
        rows = self._rows.setdefault(rows, rows)  # shared by all tables with such rows
        return AskedRows(rows, tuple(sorted(left_out)))

    def _left_out(
        self, variant: DatasetVariant, rows: Iterable[int], limit: int | None
    ) -> frozenset[int]:
        queries = self.dataset(variant).queries
        folder = image_folder(variant.images)
        return rows_to_leave_out([queries[row] for row in rows], folder, bool(self._skip), limit)


_Rows = tuple[object, ...]


def _rows_of(variant: DatasetVariant) -> _Rows:
    benchmark = benchmark_of(variant)
    return benchmark.name, *benchmark.query_set_key(variant)


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str)
