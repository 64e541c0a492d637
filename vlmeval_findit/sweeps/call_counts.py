"""Count the calls of a run and their tokens, without a model, a network or a key.

Calls are those of the plan of a run. Their messages are built once for all models, and images are
read and encoded once. Missing images are told apart by name, and calls over them weigh nothing.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from ..boxes import Space
from ..engine import (
    BatchLedger,
    Cell,
    CellBuilder,
    Deployment,
    Images,
    JournalView,
    Plan,
    Prompts,
    shared_key,
    unread,
)
from ..models import (
    BATCH_PRICE,
    CHARACTERS_A_TOKEN,
    ChatModel,
    ImageRule,
    ImageToSend,
    Load,
    SentImage,
    image_tokens,
    images_to_send,
    words_of,
)
from ..protocol import image, reference
from .sweep_cells import Sweep, all_variants, cells_to_ask

Track = Callable[[Iterable[Any], int, str], Iterable[Any]]
"""Yields ``count`` items and shows the progress under a name."""


@dataclass(frozen=True, slots=True)
class CallGroup:
    """Cells of one model that are counted together."""

    name: str
    cells: tuple[Cell, ...]
    chat: ChatModel | None = None  # how it is asked, if over HTTP
    share: float = 1.0  # of the standard price of single calls


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """What one group would be asked."""

    name: str
    cells: int
    queries: int  # rows of all cells
    images: int  # distinct files
    calls: int  # distinct calls
    finished: int  # with a suitable answer in the journal
    submitted: int  # in batches whose results are not collected
    load: Load | None = None  # what the others send (None: not over HTTP)


@dataclass(frozen=True, slots=True)
class DryRun:
    """The counts of every group, and of distinct and missing images."""

    counts: tuple[GroupCounts, ...]
    images: int
    missing: int


JournalOf = Callable[[Cell], Path]
"""Returns the journal of a cell, which need not exist."""

ViewOf = Callable[[Cell], JournalView | None]
"""Returns what the journal of a cell has; None: there is none."""


@contextmanager
def opened_journals(journal_of: JournalOf) -> Iterator[ViewOf]:
    """Open the journals of cells for reading, each once, when it is asked for."""
    with ExitStack() as stack:

        @cache
        def view(path: Path) -> JournalView | None:
            return stack.enter_context(JournalView(path)) if path.exists() else None

        yield lambda cell: view(journal_of(cell))


def count_calls(
    groups: Sequence[CallGroup],
    view_of: ViewOf = lambda cell: None,
    track: Track = lambda items, *_: items,
) -> DryRun:
    """Count cells, queries, images, calls, finished calls, and what calls over HTTP send.

    ``view_of``: whose answers are finished calls; by default nothing is finished.
    """
    cells = [cell for group in groups for cell in group.cells]
    images = cells[0].prompts.images if cells else Images()
    # Building the messages of a cell numbers its images.
    paths = _files(track(cells, len(cells), "cells read"), images)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        hashes = list(track(pool.map(images.sha256, paths), len(paths), "images read"))
    weights = _CallWeights(images, track)
    counted: dict[tuple[object, ...], _CountedCalls] = {}
    counts = []
    has_journal = any(view_of(cell) is not None for cell in cells)

    def is_finished(cell: Cell, key: str) -> bool:
        view = view_of(cell)
        return view is not None and view.serves(key, logprobs=cell.logprobs)

    @cache
    def open_in(view: JournalView) -> frozenset[str]:
        return BatchLedger(view).open

    def is_submitted(cell: Cell, key: str) -> bool:
        view = view_of(cell)
        return view is not None and key in open_in(view)

    for group in track(groups, len(groups), "models counted"):
        # Models that are asked the same share their counts, unless a journal tells them apart.
        same = (group.name,) if has_journal else _asked_alike(group.cells)
        if same not in counted:
            counted = {same: _count(group.cells, images, is_finished, is_submitted)}
        files, calls, submitted, left = counted[same]
        counts.append(
            GroupCounts(
                group.name,
                cells=len(group.cells),
                queries=sum(len(cell.rows) for cell in group.cells),
                images=files,
                calls=calls,
                finished=calls - submitted - len(left),
                submitted=submitted,
                load=group.chat and weights.load(left, group.chat).paid(group.share),
            )
        )
    return DryRun(tuple(counts), len(paths), sum(unread(sha256) is not None for sha256 in hashes))


def _files(cells: Iterable[Cell], images: Images) -> set[Path]:
    """Return the images that the messages of cells show."""
    numbers = set[int]().union(*(cell.prompt_hashes.images for cell in cells))
    return {path for number in numbers for path in images.files[number]}


def _asked_alike(cells: Sequence[Cell]) -> tuple[object, ...]:
    """Return what cells of two models have in common if equal calls are at the same places."""
    settings = [shared_key(cell) for cell in cells]
    hashes = [id(cell.prompt_hashes) for cell in cells]
    return tuple(zip(hashes, map(settings.index, settings), strict=True))


class _LeftCall(NamedTuple):
    """A call that is left."""

    prompts: Prompts
    images: int  # their number in :class:`.Images`
    characters: int  # of its texts
    beginning: int  # of these, before the last image
    later: bool  # whether an earlier call has the same images
    several: bool  # whether any other call has the same images


_Is = Callable[[Cell, str], bool]
"""Whether something is so of a call of a cell, by its key."""


class _CountedCalls(NamedTuple):
    images: int  # distinct files
    calls: int
    submitted: int
    left: Sequence[_LeftCall]


def _count(
    cells: Sequence[Cell], images: Images, is_finished: _Is, is_submitted: _Is
) -> _CountedCalls:
    """Count the calls of cells; equal calls once."""
    calls = 0
    submitted = 0
    unanswered = []
    for call in Plan(cells).calls():
        calls += 1
        needed_by = [cells[at] for at in call.needed_by]
        if any(is_finished(cell, call.key) for cell in needed_by):
            continue
        if any(is_submitted(cell, call.key) for cell in needed_by):
            submitted += 1
        else:
            unanswered.append(call)
    left = []
    for _, group in groupby(unanswered, attrgetter("image_sha256")):
        same_images = list(group)
        for place, call in enumerate(same_images):
            prompts = call.cell.prompts
            number = call.cell.prompt_hashes.images[call.at]
            words = words_of(prompts.parts(call.row))
            left.append(_LeftCall(prompts, number, *words, place > 0, len(same_images) > 1))
    return _CountedCalls(len(_files(cells, images)), calls, submitted, left)


# --- what calls over HTTP send --------------------------------------------------------------------


_Way = tuple[Space, ImageRule]
"""How images are sent."""


class _CallWeights:
    """Weighs calls over HTTP, encoding each image once per way of sending it."""

    def __init__(self, images: Images, track: Track) -> None:
        self._images = images
        self._track = track
        self._sent: dict[ImageToSend, SentImage | None] = {}
        # Count and tokens by the images' number; None: an image is unreadable.
        self._weights: defaultdict[_Way, dict[int, tuple[int, int] | None]] = defaultdict(dict)

    def load(self, left: Sequence[_LeftCall], chat: ChatModel) -> Load:
        """Sum what calls send; calls over unreadable images fail and send nothing."""
        shown: defaultdict[Prompts, dict[int, None]] = defaultdict(dict)
        for call in left:
            shown[call.prompts][call.images] = None
        ways = dict[Prompts, _Way]()
        limits = dict[Prompts, int]()
        for prompts in shown:
            space = chat.space(prompts.dataset.variant)
            ways[prompts] = space, chat.image_rule(space)
            limits[prompts] = chat.max_tokens(prompts.dataset.variant)
        self._encode((ways[prompts], number) for prompts, of in shown.items() for number in of)
        weights = {prompts: self._weights[way] for prompts, way in ways.items()}
        calls = images = tokens_in = tokens_out = tokens_beginning = tokens_again = 0
        usd_in = 0.0
        for call in left:
            if (weight := weights[call.prompts][call.images]) is None:
                continue
            count, tokens = weight
            sent = call.characters // CHARACTERS_A_TOKEN + tokens
            beginning = call.beginning // CHARACTERS_A_TOKEN + tokens
            calls += 1
            images += count
            tokens_in += sent
            tokens_out += limits[call.prompts]
            tokens_beginning += beginning
            tokens_again += beginning if call.later else 0
            if chat.prices is not None:
                # Only the first of several calls over images writes to the cache.
                price = chat.prices.another if call.later else chat.prices.first
                usd_in += price(sent, beginning if call.several else 0)
        usd_out = 0.0 if chat.prices is None else tokens_out * chat.prices.answered / 1e6
        return Load(
            calls, images, tokens_in, tokens_out, tokens_beginning, tokens_again, usd_in, usd_out
        )

    def _encode(self, shown: Iterable[tuple[_Way, int]]) -> None:
        """Encode images, in threads, and weigh them."""
        new = {
            (way, number): self._to_send(way, number)
            for way, number in shown
            if number not in self._weights[way]
        }
        files = [each for each in dict.fromkeys(chain(*new.values())) if each not in self._sent]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            encoded = self._track(pool.map(_encoded, files), len(files), "images encoded")
            self._sent.update(zip(files, encoded, strict=True))
        for (way, number), images in new.items():
            readable = [sent for each in images if (sent := self._sent[each]) is not None]
            weight = len(images), sum(image_tokens(sent, way[0]) for sent in readable)
            self._weights[way][number] = weight if len(readable) == len(images) else None

    def _to_send(self, way: _Way, number: int) -> list[ImageToSend]:
        files = zip(self._images.files[number], self._images.references[number], strict=True)
        message = [(reference if is_ref else image)(str(path)) for path, is_ref in files]
        return images_to_send(tuple(message), *way)


def _encoded(image_to_send: ImageToSend) -> SentImage | None:
    """Return an image as sent, without its bytes; None if it is unreadable."""
    with suppress(OSError):
        return replace(image_to_send.encoded(), base64=b"")
    return None


# --- sweeps ---------------------------------------------------------------------------------------


def sweep_groups(sweep: Sweep, deployments: Iterable[Deployment]) -> list[CallGroup]:
    """Return the cells of a sweep, one group per model.

    Later stages are counted as if the first format won: as many calls.

    Raises FileNotFoundError where a table is missing; the message says how to make it.
    """
    tables = CellBuilder(skip_missing=None)
    share = 1.0 if sweep.batch is None else BATCH_PRICE

    def group(deployment: Deployment) -> CallGroup:
        entry = deployment.entry
        variants = all_variants(sweep, entry.name)
        cells = tuple(cells_to_ask(sweep, deployment, variants, tables))
        chat = deployment.chat
        of_price = share
        if chat is not None and chat.prices is not None:
            of_price = chat.asked_surcharge(chat.prices).of(share)
        return CallGroup(entry.name, cells, chat, of_price)

    return list(map(group, deployments))
