"""Samples as tensors: the turns of a sample share its images and are hidden from each other.

A row of a batch is the opening (images and the text between them), then the turns in slots of one
length. A turn attends to the opening and to itself, at the positions that it would have alone; so
one pass teaches several questions at the price of one image (:mod:`training.nano.attention`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, product
from typing import Any, NamedTuple

import torch

from training.nano.architecture import PATCH, TOKEN_SIDE, coordinates
from training.samples import Sample, SampleMark, Turn
from training.scenes import Scene
from vlmeval_findit.data import COLOURS, SHAPES, TEXTURES
from vlmeval_findit.marks import Shape, style
from vlmeval_findit.models import MODELS, MessageEncoder
from vlmeval_findit.protocol import Message

IGNORED = -100  # The target of tokens that are not to be learnt

# Values of a visual token: four sides, then a place for every name (see :func:`cells`)
CELL = 4 + len(SHAPES) + len(COLOURS) + len(TEXTURES)

# Values of the mark on a visual token: a place for every name (see :func:`mark_cells`)
MARK_SHAPES = tuple(Shape)
MARK_COLOURS = tuple(style.COLOURS)
MARK = len(MARK_SHAPES) + len(MARK_COLOURS)


class Layout(NamedTuple):
    """The parts of a row: ``opening`` tokens, then ``slots`` turns of ``length`` each."""

    opening: int
    slots: int
    length: int
    patches: tuple[int, ...]  # Of each image


class Batch(NamedTuple):
    """Tensors of a step; B rows, T tokens, V visual tokens per row."""

    layout: Layout
    ids: Any  # (B, T)
    positions: Any  # (3, B, T)
    pixels: Any  # This and the next as the processor returns them
    grid: Any
    targets: Any  # (B, T): the next token; IGNORED outside replies
    cells: Any  # (B, V, CELL)
    marks: Any  # (B, V, MARK)
    pointers: Any  # (N, 2): row and place of a token before a coordinate of an object
    pointer_maps: Any  # (N, V): how that object covers the visual tokens; rows sum to 1
    phrases: Any  # (M, 2): row and place of the last token of a request or of a phrase in it
    phrase_maps: Any  # (M, V): 1 where a visual token lies on an object that it means
    options: Any  # (K, 2): row and place of the last token of an option
    options_right: Any  # (K,): 1 for right ones
    visual: Any  # (V,): places of visual tokens

    def to(self, device: Any) -> Batch:
        return Batch(self.layout, *(tensor.to(device) for tensor in self[1:]))


class RowLimit(NamedTuple):
    """The most turns of a row, and the most tokens of a turn."""

    turns: int
    length: int


# Of four corners' eight numbers, those that repeat an earlier number: a near miss makes no
# rectangle there, so they are learnt as words are.
_REPEATED = frozenset({3, 4, 6, 7})


class Tokens(NamedTuple):
    """A turn as tokens."""

    ids: list[int]  # With the end of the reply
    request: int  # Number of the request's tokens
    # (Place in ``ids`` of a coordinate or of a word, number of its object in the turn)
    objects: list[tuple[int, int]]
    phrases: list[int]  # Places of the last tokens of the turn's phrases


class _Pointers:
    """Targets of the losses that point at visual tokens or judge options, gathered turn by turn."""

    def __init__(self, visual: int) -> None:
        self._visual = visual  # Number of visual tokens of a row
        self._pointers: list[tuple[int, int]] = []
        self._pointer_maps: list[Any] = []
        self._phrases: list[tuple[int, int]] = []
        self._phrase_maps: list[Any] = []
        self._options: list[tuple[int, int]] = []
        self._right: list[float] = []

    def add(self, images: Sequence[Scene], turn: Turn, tokens: Tokens, row: int, at: int) -> None:
        """Add a turn about images, whose tokens begin at place ``at`` of a row."""
        covers = [_cover(images, *placed) for placed in turn.objects]
        self._phrases.append((row, at + tokens.request - 1))
        self._phrase_maps.append(_covers(covers, self._visual))
        for place, phrase in zip(tokens.phrases, turn.phrases, strict=True):
            if phrase.objects is not None:
                self._phrases.append((row, at + place))
                meant = [_cover(images, *placed) for placed in phrase.objects]
                self._phrase_maps.append(_covers(meant, self._visual))
            if phrase.right is not None:
                self._options.append((row, at + place))
                self._right.append(float(phrase.right))
        for place, number in tokens.objects:
            self._pointers.append((row, at + place - 1))
            self._pointer_maps.append(covers[number])

    def tensors(self) -> dict[str, Any]:
        """Return the fields of :class:`Batch`."""
        maps = self._pointer_maps
        return {
            "pointers": torch.tensor(self._pointers, dtype=torch.long).reshape(-1, 2),
            "pointer_maps": torch.stack(maps) if maps else torch.zeros(0, self._visual),
            "phrases": torch.tensor(self._phrases, dtype=torch.long),
            "phrase_maps": torch.stack(self._phrase_maps),
            "options": torch.tensor(self._options, dtype=torch.long).reshape(-1, 2),
            "options_right": torch.tensor(self._right),
        }


class Writer:
    """Makes batches with a processor, exactly as the package's encoder does."""

    def __init__(self, processor: Any, model: Any) -> None:
        family = MODELS["FindIt-Nano"].local
        assert family is not None
        self._encoder = MessageEncoder(processor, family)
        self._tokenizer = processor.tokenizer
        self._images = processor.image_processor
        self._rope = model.model.get_rope_index
        self._image_id: int = model.config.image_token_id
        self._numbers = coordinates(processor.tokenizer)

    def batch(self, samples: Sequence[Sample], room: RowLimit) -> Batch:
        """Return a batch of samples with the same opening and images of the same sizes.

        Args:
            samples: a sample for each row.
            room: turns that are too long for it are left out, the longest others come first.
        """
        sizes = tuple((s.width, s.height) for s in samples[0].images)
        scenes = chain.from_iterable(sample.images for sample in samples)
        images = self._images(images=[scene.pixels for scene in scenes], return_tensors="pt")
        opening, starts, after = self._opening(samples[0].opening, sizes)
        turns = [self._fitting(sample.turns, room) for sample in samples]
        longest = max(len(tokens.ids) for turn, tokens in chain.from_iterable(turns))
        patches = tuple(w * h // PATCH**2 for w, h in sizes)
        layout = Layout(len(opening), max(map(len, turns)), longest + -longest % 8, patches)
        rows = len(samples)
        total = layout.opening + layout.slots * layout.length

        ids = torch.full((rows, total), self._tokenizer.pad_token_id)
        ids[:, : layout.opening] = torch.tensor(opening)
        targets = torch.full((rows, total), IGNORED)
        positions = (after + torch.arange(layout.length)).repeat(3, rows, layout.slots)
        visual = torch.tensor([i for i, token in enumerate(opening) if token == self._image_id])
        pointers = _Pointers(len(visual))
        for row, (sample, row_turns) in enumerate(zip(samples, turns, strict=True)):
            for slot, (turn, tokens) in enumerate(row_turns):
                at = layout.opening + slot * layout.length
                reply = at + tokens.request
                end = at + len(tokens.ids)
                ids[row, at:end] = torch.tensor(tokens.ids)
                targets[row, reply - 1 : end - 1] = ids[row, reply:end]
                pointers.add(sample.images, turn, tokens, row, at)
        maps = [torch.cat([cells(scene) for scene in sample.images]) for sample in samples]
        return Batch(
            layout=layout,
            ids=ids,
            positions=torch.cat([starts.expand(3, rows, -1), positions], -1),
            pixels=images["pixel_values"],
            grid=images["image_grid_thw"],
            targets=targets,
            cells=torch.stack(maps),
            marks=torch.stack([_mark_maps(sample) for sample in samples]),
            visual=visual,
            **pointers.tensors(),
        )

    @lru_cache(maxsize=64)  # noqa: B019 - one writer a run
    def _opening(
        self, opening: Message, sizes: tuple[tuple[int, int], ...]
    ) -> tuple[list[int], Any, int]:
        """Return ids up to the last image's end, their positions (3, 1, tokens), and the next."""
        text = self._encoder.chat(opening)
        head = text[: text.rindex("<|vision_end|>") + len("<|vision_end|>")]
        grids = [(1, h * 2 // TOKEN_SIDE, w * 2 // TOKEN_SIDE) for w, h in sizes]
        pieces = head.split("<|image_pad|>")
        full = pieces[0]
        for piece, (_, rows, columns) in zip(pieces[1:], grids, strict=True):
            full += "<|image_pad|>" * (rows * columns // 4) + piece
        ids = self._tokenizer(full, add_special_tokens=False).input_ids
        row = torch.tensor([ids])
        types = (row == self._image_id).int()
        positions, _ = self._rope(row, types, image_grid_thw=torch.tensor(grids))
        return ids, positions, int(positions.max()) + 1

    def _fitting(self, turns: Sequence[Turn], room: RowLimit) -> list[tuple[Turn, Tokens]]:
        """Return the longest turns that fit; if none fits, the shortest."""
        encoded = [(turn, self._tokens(turn)) for turn in turns]
        encoded.sort(key=lambda pair: -len(pair[1].ids))
        fitting = [pair for pair in encoded if len(pair[1].ids) <= room.length]
        return fitting[: room.turns] or encoded[-1:]

    def _tokens(self, turn: Turn) -> Tokens:
        request = self._ids(f"{turn.request}<|im_end|>\n<|im_start|>assistant\n")
        phrases = [len(self._ids(turn.request[: phrase.end])) - 1 for phrase in turn.phrases]
        reply = [*self._ids(turn.reply), self._tokenizer.eos_token_id]
        numbers = [place for place, token in enumerate(reply) if token in self._numbers]
        coordinates = [place for place in numbers if not self._counts_frames(reply[place - 1])]
        described: list[tuple[int, int]] = []
        if len(coordinates) == len(turn.objects) * turn.numbers:
            for i, place in enumerate(coordinates):
                if turn.numbers != 8 or i % 8 not in _REPEATED:
                    described.append((place, i // turn.numbers))
        described += self._in_words(turn)
        objects = [(len(request) + place, number) for place, number in described]
        return Tokens([*request, *reply], len(request), objects, phrases)

    def _in_words(self, turn: Turn) -> Iterator[tuple[int, int]]:
        """Yield places of tokens in a reply in words, and the object that each describes."""
        if not turn.reply_spans:
            return
        spans = self._tokenizer(turn.reply, return_offsets_mapping=True).offset_mapping
        for place, (first, last) in enumerate(spans):
            for span in turn.reply_spans:
                if span.start < last and first < span.end:
                    yield place, span.which

    @lru_cache(maxsize=4096)  # noqa: B019 - one writer a run
    def _counts_frames(self, token: int) -> bool:
        """Return whether a frame's number follows a token: it looks like a coordinate."""
        return bool(self._tokenizer.decode([token]).rstrip().endswith('frame_idx":'))

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False).input_ids
        return ids


# --- what lies under a visual token ---------------------------------------------------------------


def cells(shown: Scene) -> Any:
    """Return the values of every visual token of an image: (tokens, CELL).

    Four distances from the token's middle to the sides of the object in front there, in pixels,
    left, top, right, bottom; then 1 at its shape, its colour, its texture. All zero without an
    object.
    """
    across = shown.width // TOKEN_SIDE
    down = shown.height // TOKEN_SIDE
    out = torch.zeros(down, across, CELL)
    names = [*SHAPES, *COLOURS, *TEXTURES]
    for thing in shown.things:
        x1, y1, x2, y2 = thing.box
        for row, column in _under(thing.box, across, down):
            x = (column + 0.5) * TOKEN_SIDE
            y = (row + 0.5) * TOKEN_SIDE
            out[row, column] = 0
            out[row, column, :4] = torch.tensor([x - x1, y - y1, x2 - x, y2 - y])
            for name in thing.look:
                out[row, column, 4 + names.index(name)] = 1
    return out.flatten(0, 1)


def _mark_maps(sample: Sample) -> Any:
    first, *others = sample.images
    plain = [torch.zeros(s.width * s.height // TOKEN_SIDE**2, MARK) for s in others]
    return torch.cat([mark_cells(first, sample.marks), *plain])


def mark_cells(shown: Scene, marks: Sequence[SampleMark]) -> Any:
    """Return the marks on every visual token of an image: (tokens, MARK).

    1 at the shape and at the colour of a mark that covers some pixels there.
    """
    across = shown.width // TOKEN_SIDE
    down = shown.height // TOKEN_SIDE
    out = torch.zeros(down, across, MARK)
    for mark in marks:
        parts = torch.from_numpy(mark.cover).reshape(down, TOKEN_SIDE, across, TOKEN_SIDE)
        there = parts.sum((1, 3)) >= _LEAST_PIXELS
        out[..., MARK_SHAPES.index(mark.shape)][there] = 1
        if mark.colour != style.CONTRAST:
            out[..., len(MARK_SHAPES) + MARK_COLOURS.index(mark.colour)][there] = 1
    return out.flatten(0, 1)


_LEAST_PIXELS = 8  # Least pixels of a mark on a visual token, which has 576


def _under(box: Sequence[float], across: int, down: int) -> list[tuple[int, int]]:
    """Return (row, column) of visual tokens whose middle is in a box, with a margin of 3 pixels.

    If there is none, it is the token under the middle of the box.
    """
    x1, y1, x2, y2 = box
    rows = [row for row in range(down) if y1 - 3 <= (row + 0.5) * TOKEN_SIDE <= y2 + 3]
    columns = [
        column for column in range(across) if x1 - 3 <= (column + 0.5) * TOKEN_SIDE <= x2 + 3
    ]
    if rows and columns:
        return list(product(rows, columns))
    middle_row = int((y1 + y2) / 2 / TOKEN_SIDE)
    middle_column = int((x1 + x2) / 2 / TOKEN_SIDE)
    return [(min(middle_row, down - 1), min(middle_column, across - 1))]


def _covers(parts: Sequence[Any], tokens: int) -> Any:
    """Return 1 where any map covers a visual token: (tokens,)."""
    return (sum(parts, torch.zeros(tokens)) > 0).float()


def _cover(images: Sequence[Scene], image: int, box: Sequence[float]) -> Any:
    """Return the share of a box on each visual token of all images: (V,), adding up to 1."""
    parts = [torch.zeros(s.height // TOKEN_SIDE, s.width // TOKEN_SIDE) for s in images]
    down, across = parts[image].shape
    places = _under(box, across, down)
    for row, column in places:
        parts[image][row, column] = 1 / len(places)
    return torch.cat([part.flatten() for part in parts])
