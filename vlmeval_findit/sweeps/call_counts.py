"""Count the calls of a run and their tokens, without a model, a network or a key.

Every message is built once for all models, and reduced to numbers in arrays. An image is read and
encoded once. Missing images are told apart by name, and calls over them weigh nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..boxes.spaces import Space
from ..core.question import Question, image, reference
from ..engine.calls import Cell, CellBuilder, Images, Prompts, shared_key, unread
from ..engine.journal.view import JournalView
from ..models.http.batch import HALF
from ..models.http.chat import ChatModel
from ..models.http.sent_images import ImageRule, ImageToSend, SentImage, images_to_send
from ..models.http.spending import CHARACTERS_A_TOKEN, Load, image_tokens, words_of
from ..models.model_entry import ModelEntry
from ..models.prices import TokenPrices
from .sweep_file import Sweep, all_questions

Array = npt.NDArray[Any]

Track = Callable[[Iterable[Any], int, str], Iterable[Any]]
"""Yields ``count`` items and shows the progress under a name."""

MESSAGE = np.dtype(
    [
        ("shown", "i4"),  # number of its images
        ("sha256", "V32"),  # hash of the other parts
        ("length", "i8"),  # of its texts, in characters
        ("beginning", "i8"),  # of these, before the last image
    ]
)
"""One message."""


class MessageIndex:
    """The messages of cells, each built once."""

    def __init__(self) -> None:
        self._known: dict[tuple[Prompts, tuple[int, ...]], Array] = {}

    def of(self, cell: Cell) -> Array:
        at = cell.prompts, cell.rows
        if at not in self._known:
            self._known[at] = np.array(list(self._read(*at)), MESSAGE)
        return self._known[at]

    def _read(self, prompts: Prompts, rows: Iterable[int]) -> Iterator[tuple[Any, ...]]:
        for shown, sha256, parts in prompts.read(rows):
            yield shown, sha256, *words_of(parts)


def read_images(images: Images, track: Track) -> tuple[Array, int]:
    """Read all images that messages show.

    Return a number by number of images, equal for equal contents; and how many are missing.
    """
    paths = list(dict.fromkeys(chain.from_iterable(images.files)))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        hashes = list(track(pool.map(images.sha256, paths), len(paths), "images read"))
    numbers: dict[tuple[str, ...], int] = {}
    contents = map(images.contents, range(len(images.files)))
    image_numbers = [numbers.setdefault(content, len(numbers)) for content in contents]
    return np.array(image_numbers, np.int64), sum(unread(content) is not None for content in hashes)


@dataclass(frozen=True, slots=True)
class CountedCalls:
    """The calls of cells; arrays are by row, cell after cell."""

    images: int  # files
    calls: int
    finished: int  # calls with a suitable answer in the journal
    left: Array  # whether the call is left
    later: Array  # an earlier call has the same images
    several: Array  # any other call has the same images

    def parts(self, cells: Sequence[Cell]) -> Iterator[tuple[Cell, Array, Array, Array]]:
        """Yield each cell with its parts of ``left``, ``later`` and ``several``, where left."""
        for cell, end in zip(cells, np.cumsum([len(cell.rows) for cell in cells]), strict=True):
            part = slice(end - len(cell.rows), end)
            left = self.left[part]
            yield cell, left, self.later[part][left], self.several[part][left]


class CallCounter:
    """Counts the calls of a model's cells; equal calls once, at the first row.

    ``contents`` is from :func:`read_images`; ``finished`` is the journal (None: nothing is).
    """

    def __init__(
        self, messages: MessageIndex, images: Images, contents: Array, finished: JournalView | None
    ) -> None:
        self._messages = messages
        self._images = images
        self._contents = contents
        self._finished = finished
        self._known: dict[tuple[object, ...], CountedCalls] = {}

    def count(self, cells: Sequence[Cell]) -> CountedCalls:
        shared = [shared_key(cell) for cell in cells]
        numbers = {text: at for at, text in enumerate(dict.fromkeys(shared))}
        settings = [numbers[text] for text in shared]
        # Share counts between models that are asked the same; not with a journal, as keys contain
        # the model.
        names = () if self._finished is None else tuple(numbers)
        same = (*(id(self._messages.of(cell)) for cell in cells), *settings, *names)
        if same not in self._known:
            self._known[same] = self._count(cells, settings)
        return self._known[same]

    def _count(self, cells: Sequence[Cell], settings: Sequence[int]) -> CountedCalls:
        lengths = [len(cell.rows) for cell in cells]
        read = np.concatenate([np.empty(0, MESSAGE), *map(self._messages.of, cells)])
        asked = np.empty(len(read), [("settings", "i8"), ("images", "i8"), ("prompt", "V32")])
        asked["settings"] = np.repeat(settings, lengths)
        asked["images"] = self._contents[read["shown"]]
        asked["prompt"] = read["sha256"]
        left = np.zeros(len(read), bool)
        left[np.unique(asked.view(f"V{asked.itemsize}"), return_index=True)[1]] = True
        calls = int(left.sum())
        if self._finished is not None:
            first_calls = np.split(left, np.cumsum(lengths)[:-1]) if cells else []
            for cell, part in zip(cells, first_calls, strict=True):
                key = cell.key_maker()
                for at in np.flatnonzero(part).tolist():
                    part[at] = not self._finished.serves(key(at), logprobs=cell.logprobs)
        places = np.flatnonzero(left)
        _, first, over, each = np.unique(
            asked["images"][places], return_index=True, return_inverse=True, return_counts=True
        )
        later, several = left.copy(), left.copy()
        later[places[first]] = False
        several[places] = each[over] > 1
        shown = {path for at in np.unique(read["shown"]) for path in self._images.files[at]}
        return CountedCalls(len(shown), calls, calls - len(places), left, later, several)


@dataclass(frozen=True, slots=True)
class _SentAlike:
    """Messages whose images are sent alike; arrays are by number of images."""

    space: Space
    rule: ImageRule
    is_sent: Array  # whether any call sends them
    weights: Array
    """What images add to a request: count, tokens; -1 if an image is unreadable."""

    def images(self, shown: Sequence[Path], references: Sequence[bool]) -> list[ImageToSend]:
        message = tuple(
            [
                (reference if is_reference else image)(str(path))
                for path, is_reference in zip(shown, references, strict=True)
            ]
        )
        return images_to_send(message, self.space, self.rule)


class CallWeights:
    """Weighs the calls of many cells, encoding each image once per way of sending it."""

    def __init__(self, messages: MessageIndex, images: Images) -> None:
        self._messages = messages
        self._shown = tuple(zip(images.files, images.references, strict=True))
        self._alike: dict[tuple[object, ...], _SentAlike] = {}

    def note(self, cells: Sequence[Cell], counted: CountedCalls, chat: ChatModel) -> None:
        for cell, left, *_ in counted.parts(cells):
            alike = self._sent_alike(cell.question, chat)
            alike.is_sent[self._messages.of(cell)["shown"][left]] = True

    def encode(self, track: Track) -> None:
        asked = [
            (alike, at, alike.images(*self._shown[at]))
            for alike in self._alike.values()
            for at in np.flatnonzero(alike.is_sent).tolist()
        ]
        distinct = list(dict.fromkeys(chain.from_iterable(images for *_, images in asked)))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            results = track(pool.map(_encoded, distinct), len(distinct), "images encoded")
            sent = dict(zip(distinct, results, strict=True))
        for alike, at, images in asked:
            readable = [encoded for item in images if (encoded := sent[item]) is not None]
            if len(readable) == len(images):
                tokens = sum(image_tokens(encoded, alike.space) for encoded in readable)
                alike.weights[at] = len(images), tokens

    def load(self, cells: Sequence[Cell], counted: CountedCalls, chat: ChatModel) -> Load:
        """Sum what calls send; calls over unreadable images fail and send nothing."""
        total = Load()
        for cell, left, later, several in counted.parts(cells):
            question = cell.question
            read = self._messages.of(cell)[left]
            weights = self._sent_alike(question, chat).weights[read["shown"]]
            readable = weights[:, 0] >= 0
            read, later, several = read[readable], later[readable], several[readable]
            images, tokens = weights[readable].T
            sent = read["length"] // CHARACTERS_A_TOKEN + tokens
            beginning = read["beginning"] // CHARACTERS_A_TOKEN + tokens
            load = Load(
                calls=len(read),
                images=int(images.sum()),
                tokens_in=int(sent.sum()),
                tokens_out_at_most=chat.max_tokens(question) * len(read),
                tokens_beginning=int(beginning.sum()),
                tokens_again=int(beginning[later].sum()),
            )
            if chat.prices is not None:
                usd_in = _usd_in(sent, beginning, later, several, chat.prices)
                out = load.tokens_out_at_most * chat.prices.answered / 1e6
                load = replace(load, usd_in=usd_in, usd_out_at_most=out)
            total += load
        return total

    def _sent_alike(self, question: Question, chat: ChatModel) -> _SentAlike:
        space = chat.space(question)
        rule, count = chat.image_rule(space), len(self._shown)
        key = rule, space
        if key not in self._alike:
            arrays = np.zeros(count, bool), np.full((count, 2), -1)
            self._alike[key] = _SentAlike(space, rule, *arrays)
        return self._alike[key]


def _usd_in(
    sent: Array, beginning: Array, later: Array, several: Array, prices: TokenPrices
) -> float:
    """Return US dollars for prompts; only the first of several calls over images writes to the
    cache.
    """
    cached = several & (beginning >= prices.least)
    first = prices.first(int(sent[~later].sum()), int(beginning[~later & cached].sum()))
    return first + prices.another(int(sent[later].sum()), int(beginning[later & cached].sum()))


def _encoded(image_to_send: ImageToSend) -> SentImage | None:
    """Return an image as sent, without its bytes; None if it is unreadable."""
    with suppress(OSError):
        return replace(image_to_send.encoded(), base64=b"")
    return None


# --- runs and sweeps ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CallGroup:
    """Cells of one model that are counted together."""

    name: str
    cells: tuple[Cell, ...]
    chat: ChatModel | None = None  # how it is asked, if over HTTP
    share: float = 1.0  # of the price of single calls


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """What one group would be asked."""

    name: str
    cells: int
    queries: int  # rows of all cells
    images: int  # distinct files
    calls: int  # distinct calls
    finished: int  # with a suitable answer in the journal
    load: Load | None = None  # what the others send (None: not over HTTP)


@dataclass(frozen=True, slots=True)
class DryRun:
    """The counts of every group, and of distinct and missing images."""

    counts: tuple[GroupCounts, ...]
    images: int
    missing: int


def count_calls(
    groups: Sequence[CallGroup], journal: Path | None = None, track: Track = lambda items, *_: items
) -> DryRun:
    """Count cells, queries, images, calls, finished calls, and what calls over HTTP send."""
    messages = MessageIndex()
    cells = [cell for group in groups for cell in group.cells]
    for cell in track(cells, len(cells), "cells read"):
        messages.of(cell)
    images = cells[0].prompts.images if cells else Images()
    contents, missing = read_images(images, track)
    with ExitStack() as stack:
        finished = None
        if journal is not None:
            # Without a journal, nothing is finished.
            with suppress(FileNotFoundError, NotADirectoryError):
                finished = stack.enter_context(JournalView(journal))
        counter = CallCounter(messages, images, contents, finished)
        asked = [
            (group, counter.count(group.cells))
            for group in track(groups, len(groups), "models counted")
        ]
    weights = CallWeights(messages, images)
    for group, counted in asked:
        if group.chat is not None:
            weights.note(group.cells, counted, group.chat)
    weights.encode(track)
    counts = []
    for group, counted in asked:
        load = group.chat and weights.load(group.cells, counted, group.chat).paid(group.share)
        queries = sum(len(cell.rows) for cell in group.cells)
        counts_of_calls = counted.images, counted.calls, counted.finished
        counts.append(GroupCounts(group.name, len(group.cells), queries, *counts_of_calls, load))
    files = len({path for shown in images.files for path in shown})
    return DryRun(tuple(counts), files, missing)


def sweep_groups(
    sweep: Sweep,
    settings: Mapping[str, Mapping[str, Any]],
    chats: Mapping[str, ChatModel],
) -> list[CallGroup]:
    """Return the cells of a sweep, one group per model.

    Later stages are counted as if the first format won: as many calls.

    Args:
        settings: by model, :meth:`.BackendFactory.settings`.
        chats: by model, how it is asked over HTTP.

    Raises:
        FileNotFoundError: a table is missing; the message says how to make it.
    """
    tables = CellBuilder(skip_missing=None)

    def cells(entry: ModelEntry) -> tuple[Cell, ...]:
        questions = all_questions(sweep, entry.name)
        given = settings[entry.name]
        options: Any = {"logprobs": sweep.logprobs, "prompt": entry.prompt}
        return tuple(
            tables.cell(entry.name, question, sweep.limit, given, sample=sample, **options)
            for question in questions
            for sample in range(1, sweep.samples + 1)
        )

    share = 1.0 if sweep.batch is None else HALF
    return [
        CallGroup(entry.name, cells(entry), chats.get(entry.name), share) for entry in sweep.models
    ]
