"""Calls counted and weighed by what they share, without making them one by one.

Every message is made once, whichever models are asked it; what is counted of it are numbers in
arrays.  An image is read and encoded once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ..boxes.spaces import Space
from ..core.files import file_sha256
from ..core.messages import Part, PartKind, image
from ..core.question import Question
from ..models.http.chat import ChatModel
from ..models.http.estimate import CHARACTERS_A_TOKEN, Load, image_tokens, words_of
from ..models.http.images import ImageRule, SentImage, WantedImage, wanted_images
from ..models.http.payload import Manner, request
from ..models.prices import Prices
from .calls import Cell, Keying, Prompts
from .journal.lookup import JournalView

T = TypeVar("T")

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Track(Protocol):
    """Shows how far a loop is."""

    def __call__(self, items: Iterable[T], total: int, what: str) -> Iterable[T]:
        """Yield the items, ``total`` of them, which are counted as ``what``."""
        ...


def untracked(items: Iterable[T], total: int, what: str) -> Iterable[T]:
    """Yield the items and show nothing."""
    return items


# --- messages and images --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Read:
    """Messages in arrays, one place each.

    ``shown`` and ``kinds`` are the numbers of their images and of the kinds of their parts,
    ``sha256`` is the hash of the other parts.  Of their texts: ``length`` in characters, of it
    ``beginning`` before the last image, and ``size`` in bytes as JSON, without quotes.
    """

    shown: Numbers
    kinds: Numbers
    sha256: npt.NDArray[np.void]
    length: Numbers
    beginning: Numbers
    size: Numbers

    def only(self, places: Flags) -> Read:
        """Some of them."""
        return Read(*(getattr(self, one.name)[places] for one in fields(self)))


class Messages:
    """The messages of cells, each made once; only numbers are kept of it.

    ``shown`` are the images of messages and ``kinds`` the kinds of their parts, by their numbers.
    """

    def __init__(self) -> None:
        self.shown: dict[tuple[Path, ...], int] = {}
        self.kinds: dict[tuple[PartKind, ...], int] = {}
        self._known: dict[tuple[Prompts, tuple[int, ...]], Read] = {}

    def of(self, cell: Cell) -> Read:
        """The messages of a cell, row by row."""
        at = cell.prompts, cell.rows
        if at not in self._known:
            self._known[at] = self._read(*at)
        return self._known[at]

    def _read(self, prompts: Prompts, rows: Sequence[int]) -> Read:
        shown, kinds, words, sha256 = [], [], [], []
        for row in rows:
            parts = prompts.parts(row)
            prompt = prompts.prompt_of(parts)
            shown.append(self.shown.setdefault(prompt.images, len(self.shown)))
            own = tuple([kind for kind, _ in parts])
            kinds.append(self.kinds.setdefault(own, len(self.kinds)))
            words.append(words_of(parts))
            sha256.append(bytes.fromhex(prompt.sha256))
        length, beginning, size = np.array(words, np.int64).reshape(-1, 3).T
        numbers = np.array(shown, np.int64), np.array(kinds, np.int64)
        return Read(*numbers, np.array(sha256, "V32"), length, beginning, size)


class Content:
    """Images by what names their content; where a file is missing, by its path.

    ``shown`` are the images of messages by their numbers; messages show the same where
    ``numbers``, at the same places, are equal.  ``files`` are all files with their names,
    ``missing`` those that are none.
    """

    def __init__(self, shown: Iterable[tuple[Path, ...]], track: Track) -> None:
        self.missing: set[Path] = set()
        self.shown = tuple(shown)
        paths = list(dict.fromkeys(chain.from_iterable(self.shown)))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            names = track(pool.map(self._named, paths), len(paths), "images read")
            self.files = dict(zip(paths, names, strict=True))
        known: dict[tuple[str, ...], int] = {}
        numbers = [known.setdefault(self.names(at), len(known)) for at in range(len(self.shown))]
        self.numbers = np.array(numbers, np.int64)

    def name(self, path: Path) -> str:
        """What names the content of one file."""
        return self.files[path]

    def names(self, at: int) -> tuple[str, ...]:
        """What names the images with a number."""
        return tuple([self.files[path] for path in self.shown[at]])

    def _named(self, path: Path) -> str:
        try:
            return file_sha256(path)
        except OSError:
            self.missing.add(path)
            return str(path)


# --- calls ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Counted:
    """The calls of cells: over how many image files, how many, and how many the journal has.

    By row, cell after cell: ``left`` where a call is to be made, ``later`` where another call over
    the same images comes before it, ``several`` where any other does.
    """

    images: int
    calls: int
    finished: int
    left: Flags
    later: Flags
    several: Flags


class CallCounter:
    """Counts the calls of one model's cells: equal ones once, for the first row that wants them.

    Args:
        messages: those of all cells.
        content: of their images.
        finished: the journal (None: nothing is finished).
    """

    def __init__(self, messages: Messages, content: Content, finished: JournalView | None) -> None:
        self._messages = messages
        self._content = content
        self._finished = finished
        self._known: dict[tuple[object, ...], Counted] = {}

    def count(self, cells: Sequence[Cell]) -> Counted:
        """Count the calls of some cells."""
        read = [self._messages.of(cell) for cell in cells]
        keyings = [Keying(cell, self._content.name) for cell in cells]
        numbers = {text: at for at, text in enumerate(dict.fromkeys(k.shared for k in keyings))}
        settings = [numbers[one.shared] for one in keyings]
        # Models that are asked the same are counted once: a key has the model's name in it, so
        # not where there is a journal.
        names = () if self._finished is None else tuple(numbers)
        same = (*map(id, read), *settings, *names)
        if same not in self._known:
            self._known[same] = self._count(cells, read, keyings, settings)
        return self._known[same]

    def _count(
        self,
        cells: Sequence[Cell],
        read: Sequence[Read],
        keyings: Sequence[Keying],
        settings: Sequence[int],
    ) -> Counted:
        content = self._content
        lengths = [len(cell.rows) for cell in cells]
        shown = np.concatenate([np.empty(0, np.int64), *(one.shown for one in read)])
        asked = np.empty(len(shown), [("settings", "i8"), ("images", "i8"), ("prompt", "V32")])
        asked["settings"] = np.repeat(settings, lengths)
        asked["images"] = content.numbers[shown]
        asked["prompt"] = np.concatenate([np.empty(0, "V32"), *(one.sha256 for one in read)])
        first = np.zeros(len(shown), bool)
        first[np.unique(asked.view(f"V{asked.itemsize}"), return_index=True)[1]] = True
        left = first.copy()
        if self._finished is not None:
            for cell, one, keying, start in zip(
                cells, read, keyings, _starts(lengths), strict=True
            ):
                for at in np.flatnonzero(first[start : start + len(cell.rows)]).tolist():
                    key = keying.key(one.sha256[at].tobytes().hex(), content.names(one.shown[at]))
                    left[start + at] = not self._finished.serves(key, confidences=cell.confidences)
        places = np.flatnonzero(left)
        over = asked["images"][places]
        several = np.zeros(len(shown), bool)
        _, kind, each = np.unique(over, return_inverse=True, return_counts=True)
        several[places] = each[kind] > 1
        later = left.copy()
        later[places[np.argsort(over, kind="stable")][_starts(each)]] = False
        paths = {path for number in np.unique(shown).tolist() for path in content.shown[number]}
        calls = int(first.sum())
        return Counted(len(paths), calls, calls - len(places), left, later, several)


def _starts(lengths: Sequence[int] | Numbers) -> Numbers:
    """Where each of some pieces begins, one behind the other."""
    return np.cumsum([0, *lengths], dtype=np.int64)[:-1]


# --- what calls over HTTP send --------------------------------------------------------------------


class Weight(NamedTuple):
    """What the images of a message add to its request: how many, bytes and tokens."""

    images: int
    size: int
    tokens: int


_UNREADABLE = Weight(0, 0, 0)


@dataclass(frozen=True, slots=True)
class _Shown:
    """Images of messages that are sent alike, and their weights, by their numbers."""

    question: Question
    space: Space
    rule: ImageRule
    wanted: dict[int, list[WantedImage]] = field(default_factory=dict)
    weights: dict[int, Weight] = field(default_factory=dict)

    def want(self, number: int, files: Sequence[Path]) -> None:
        """Note images, whose number it is."""
        if number not in self.wanted:
            message = tuple([image(str(path)) for path in files])
            self.wanted[number] = wanted_images(message, self.question, self.space, self.rule)

    def weigh(self, sent: Mapping[WantedImage, _Sent | None]) -> None:
        """Weigh all that were noted."""
        for number, wanted in self.wanted.items():
            found = [one for each in wanted if (one := sent[each]) is not None]
            tokens = sum(image_tokens(one.image, self.space) for one in found)
            weight = Weight(len(found), sum(one.size for one in found), tokens)
            self.weights[number] = weight if len(found) == len(wanted) else _UNREADABLE


@dataclass(frozen=True, slots=True)
class _Calls:
    """The calls of one cell that are left, and how they are asked.

    ``numbers`` are those of their images, each once, and ``at`` the places in it by call.
    """

    question: Question
    space: Space
    manner: Manner
    read: Read
    later: Flags
    several: Flags
    shown: _Shown
    numbers: Sequence[int]
    at: Numbers


class Weighing:
    """Weighs the calls of many cells: an image is encoded once for all that send it alike.

    Args:
        messages: those of all cells.
    """

    def __init__(self, messages: Messages) -> None:
        self._messages = messages
        self._files = tuple(messages.shown)
        self._kinds = tuple(messages.kinds)
        self._shown: dict[tuple[object, ...], _Shown] = {}

    def note(self, cells: Sequence[Cell], counted: Counted, chat: ChatModel) -> None:
        """Note which images calls send, to be encoded together with others'."""
        for calls in self._calls(cells, counted, chat):
            for number in calls.numbers:
                calls.shown.want(number, self._files[number])

    def encode(self, track: Track) -> None:
        """Encode the images that were noted, and weigh them by message."""
        noted = chain.from_iterable(shown.wanted.values() for shown in self._shown.values())
        wanted = list(dict.fromkeys(chain.from_iterable(noted)))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            found = track(pool.map(_encoded, wanted), len(wanted), "images encoded")
            sent = dict(zip(wanted, found, strict=True))
        for shown in self._shown.values():
            shown.weigh(sent)

    def load(self, cells: Sequence[Cell], counted: Counted, chat: ChatModel) -> Load:
        """What calls send; those over an image that cannot be read would fail and send nothing."""
        found = (self._load(calls, chat.prices) for calls in self._calls(cells, counted, chat))
        return sum(found, Load())

    def _calls(self, cells: Sequence[Cell], counted: Counted, chat: ChatModel) -> Iterator[_Calls]:
        for cell, start in zip(cells, _starts([len(cell.rows) for cell in cells]), strict=True):
            part = slice(start, start + len(cell.rows))
            left = counted.left[part]
            read = self._messages.of(cell).only(left)
            later, several = counted.later[part][left], counted.several[part][left]
            space = chat.space(cell.question)
            numbers, at = np.unique(read.shown, return_inverse=True)
            manner, question = chat.manner(space), cell.question
            alike = manner.images, space, question.has_references and question.frames
            shown = self._shown.setdefault(alike, _Shown(question, space, manner.images))
            yield _Calls(question, space, manner, read, later, several, shown, numbers.tolist(), at)

    def _load(self, calls: _Calls, prices: Prices | None) -> Load:
        known = [calls.shown.weights[number] for number in calls.numbers]
        readable = np.array([one is not _UNREADABLE for one in known], bool)[calls.at]
        weights = np.array(known, np.int64).reshape(-1, 3)
        images, sizes, tokens = weights[calls.at[readable]].T
        read, later = calls.read.only(readable), calls.later[readable]
        kinds, of = np.unique(read.kinds, return_inverse=True)
        bare = np.array([self._bare_size(kind, calls) for kind in kinds.tolist()], np.int64)
        sent = read.length // CHARACTERS_A_TOKEN + tokens
        beginning = read.beginning // CHARACTERS_A_TOKEN + tokens
        limit = calls.manner.max_tokens or calls.question.max_new_tokens
        load = Load(
            calls=len(sent),
            images=int(images.sum()),
            size=int((bare[of] + read.size + sizes).sum()),
            tokens_in=int(sent.sum()),
            tokens_out_at_most=limit * len(sent),
            tokens_beginning=int(beginning.sum()),
            tokens_again=int(beginning[later].sum()),
        )
        if prices is None:
            return load
        # The provider keeps the beginning of the first call over images and reads it for others;
        # of a call that is alone with its images nothing is kept.
        kept = calls.several[readable] & (beginning >= prices.least)
        first = prices.first(int(sent[~later].sum()), int(beginning[~later & kept].sum()))
        others = prices.another(int(sent[later].sum()), int(beginning[later & kept].sum()))
        out = load.tokens_out_at_most * prices.answered / 1e6
        return replace(load, usd_in=first + others, usd_out_at_most=out)

    def _bare_size(self, kinds: int, calls: _Calls) -> int:
        """Bytes of a request without those of its texts and images.

        Raises:
            ValueError: the service cannot hold a reply to the question's schema.
        """
        manner = replace(calls.manner, images=lambda path, limit: _NOTHING)
        message = tuple([Part(kind, "") for kind in self._kinds[kinds]])
        return len(json.dumps(request(message, calls.question, calls.space, manner).body))


class _Sent(NamedTuple):
    """An image as it is sent, without its bytes; ``size`` is what it adds to a request."""

    image: SentImage
    size: int


_NOTHING = SentImage((1, 1), (1, 1), "", b"")


def _encoded(wanted: WantedImage) -> _Sent | None:
    """An image as it is sent; None where it cannot be read."""
    try:
        found = wanted.encoded()
    except OSError:
        return None
    return _Sent(replace(found, base64=b""), len(found.mime) + len(found.base64))
