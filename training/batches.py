"""Lessons as tensors: every turn of a lesson shares its pictures, and is hidden from the others.

A row of a batch is the opening (pictures and what stands between them), then the turns in slots of
one length.  A turn sees the opening and itself, at the positions that it would have alone; so one
pass teaches several questions at the price of one picture, and the shape alone says who sees whom
(:mod:`training.attention`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch

from training.architecture import PATCH, TOKEN_SIDE, coordinates
from training.lessons import Lesson, Mark, Turn
from vlmeval_findit.core.messages import Message
from vlmeval_findit.data.rendered.drawing import COLOURS, SHAPES, TEXTURES
from vlmeval_findit.data.rendered.scene import Scene
from vlmeval_findit.marks import style
from vlmeval_findit.marks.style import Shape
from vlmeval_findit.models.local.encoding import MessageEncoder
from vlmeval_findit.models.model_table import MODELS

IGNORED = -100
"""The target of what is not to be learnt."""

CELL = 4 + len(SHAPES) + len(COLOURS) + len(TEXTURES)
"""What is known of a visual token: four sides, then a place for every name (see :func:`cells`)."""

MARK_SHAPES = tuple(Shape)
MARK_COLOURS = tuple(style.COLOURS)
MARK = len(MARK_SHAPES) + len(MARK_COLOURS)
"""What is known of the mark on a visual token: a place for every name (see :func:`mark_cells`)."""


class Layout(NamedTuple):
    """Where the parts of a row are: ``opening`` tokens, then ``slots`` turns of ``length`` each.

    ``patches`` are those of each of its pictures.
    """

    opening: int
    slots: int
    length: int
    patches: tuple[int, ...]


class Batch(NamedTuple):
    """Tensors of a step; B rows, T tokens, V visual tokens a row.

    ``ids`` (B, T); ``positions`` (3, B, T); ``pixels`` and ``grid`` as the processor gives them;
    ``targets`` (B, T): the token that follows, :data:`IGNORED` outside replies.  ``cells``
    (B, V, CELL), ``marks`` (B, V, MARK).  ``looks`` (N, 2): row and place of a token that is
    followed by a coordinate of an object; ``covers`` (N, V): how that object lies over the visual
    tokens, each row adding up to 1.  ``asks`` (M, 2): row and place of the last token of a request
    or of words in it that name something; ``meant`` (M, V): 1 where a visual token lies on what the
    reply is about, or on what is named.  ``options`` (K, 2): row and place of the last token of an
    option; ``right`` (K,): 1 of the right ones.
    ``visual`` (V,): places of visual tokens.
    """

    layout: Layout
    ids: Any
    positions: Any
    pixels: Any
    grid: Any
    targets: Any
    cells: Any
    marks: Any
    looks: Any
    covers: Any
    asks: Any
    meant: Any
    options: Any
    right: Any
    visual: Any

    def to(self, device: str) -> Batch:
        """The same on a device."""
        return Batch(self.layout, *(tensor.to(device) for tensor in self[1:]))


class Room(NamedTuple):
    """How many turns a row gets, and the tokens that each may have."""

    turns: int
    length: int


_SAID_BEFORE = frozenset({3, 4, 6, 7})
"""Of four corners' eight numbers, those that repeat one: near it is wrong there, as it makes no
rectangle, so they are learnt as words are."""


class Tokens(NamedTuple):
    """A turn as tokens: ``ids`` with the end of the reply; the first ``asked`` are the request."""

    ids: list[int]
    asked: int
    objects: list[tuple[int, int]]
    """(place in ``ids`` of a coordinate or of a word, which object of the turn it belongs to)."""
    named: list[int]
    """Places of the last tokens of words that name something, one for each of the turn's."""


class Writer:
    """Makes batches with a processor, exactly as the package's own encoder would."""

    def __init__(self, processor: Any, model: Any) -> None:
        family = MODELS["FindIt-Nano"].local
        assert family is not None
        self._encoder = MessageEncoder(processor, family)
        self._tokenizer = processor.tokenizer
        self._images = processor.image_processor
        self._rope = model.model.get_rope_index
        self._image_id: int = model.config.image_token_id
        self._numbers = coordinates(processor.tokenizer)

    def batch(self, lessons: Sequence[Lesson], room: Room) -> Batch:
        """A batch of lessons with the same opening and pictures of the same sizes.

        Args:
            lessons: one a row.
            room: turns that are too long for it are left out, the longest others come first.
        """
        sizes = tuple((s.width, s.height) for s in lessons[0].pictures)
        shown = [s.pixels for lesson in lessons for s in lesson.pictures]
        images = self._images(images=shown, return_tensors="pt")
        opening, starts, after = self._opening(lessons[0].opening, sizes)
        turns = [self._fitting(lesson.turns, room) for lesson in lessons]
        longest = max(len(tokens.ids) for row in turns for _, tokens in row)
        patches = tuple(w * h // PATCH**2 for w, h in sizes)
        layout = Layout(len(opening), max(map(len, turns)), longest + -longest % 8, patches)
        rows, total = len(lessons), layout.opening + layout.slots * layout.length

        ids = torch.full((rows, total), self._tokenizer.pad_token_id)
        ids[:, : layout.opening] = torch.tensor(opening)
        targets = torch.full((rows, total), IGNORED)
        positions = (after + torch.arange(layout.length)).repeat(3, rows, layout.slots)
        positions = torch.cat([starts.expand(3, rows, -1), positions], -1)
        visual = torch.tensor([i for i, token in enumerate(opening) if token == self._image_id])
        maps = [_maps(lesson.pictures) for lesson in lessons]
        looks, covers, asks, meant, options, right = [], [], [], [], [], []
        for row, (lesson, said) in enumerate(zip(lessons, turns, strict=True)):
            for slot, (turn, tokens) in enumerate(said):
                at = layout.opening + slot * layout.length
                end = at + len(tokens.ids)
                ids[row, at:end] = torch.tensor(tokens.ids)
                targets[row, at + tokens.asked - 1 : end - 1] = ids[row, at + tokens.asked : end]
                under = [_cover(lesson.pictures, *one) for one in turn.objects]
                asks.append((row, at + tokens.asked - 1))
                meant.append(_covers(under, len(visual)))
                for place, named in zip(tokens.named, turn.named, strict=True):
                    if named.objects is not None:
                        asks.append((row, at + place))
                        there = [_cover(lesson.pictures, *one) for one in named.objects]
                        meant.append(_covers(there, len(visual)))
                    if named.right is not None:
                        options.append((row, at + place))
                        right.append(float(named.right))
                for place, which in tokens.objects:
                    looks.append((row, at + place - 1))
                    covers.append(under[which])
        return Batch(
            layout=layout,
            ids=ids,
            positions=positions,
            pixels=images["pixel_values"],
            grid=images["image_grid_thw"],
            targets=targets,
            cells=torch.stack(maps),
            marks=torch.stack([_mark_maps(lesson) for lesson in lessons]),
            looks=torch.tensor(looks, dtype=torch.long).reshape(-1, 2),
            covers=torch.stack(covers) if covers else torch.zeros(0, len(visual)),
            asks=torch.tensor(asks, dtype=torch.long),
            meant=torch.stack(meant),
            options=torch.tensor(options, dtype=torch.long).reshape(-1, 2),
            right=torch.tensor(right),
            visual=visual,
        )

    @lru_cache(maxsize=64)  # noqa: B019 - one writer a run
    def _opening(
        self, opening: Message, sizes: tuple[tuple[int, int], ...]
    ) -> tuple[list[int], Any, int]:
        """Token ids up to the last picture's end, their positions (3, 1, tokens), the next one."""
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

    def _fitting(self, turns: Sequence[Turn], room: Room) -> list[tuple[Turn, Tokens]]:
        """The longest turns that fit; where none does, the shortest."""
        made = sorted(
            ((turn, self._tokens(turn)) for turn in turns), key=lambda pair: -len(pair[1].ids)
        )
        fitting = [pair for pair in made if len(pair[1].ids) <= room.length]
        return fitting[: room.turns] or made[-1:]

    def _tokens(self, turn: Turn) -> Tokens:
        asked = self._ids(f"{turn.request}<|im_end|>\n<|im_start|>assistant\n")
        named = [len(self._ids(turn.request[: one.end])) - 1 for one in turn.named]
        reply = [*self._ids(turn.reply), self._tokenizer.eos_token_id]
        places = [
            i
            for i, token in enumerate(reply)
            if token in self._numbers and not self._counts_frames(reply[i - 1])
        ]
        if len(places) != len(turn.objects) * turn.numbers:
            places = []
        objects = [
            (len(asked) + place, i // turn.numbers)
            for i, place in enumerate(places)
            if turn.numbers != 8 or i % 8 not in _SAID_BEFORE
        ]
        objects += [(len(asked) + place, which) for place, which in self._spoken(turn)]
        return Tokens([*asked, *reply], len(asked), objects, named)

    def _spoken(self, turn: Turn) -> Iterator[tuple[int, int]]:
        """Places in a reply of the tokens of words, and the object that each is of."""
        if turn.spoken:
            spans = self._tokenizer(turn.reply, return_offsets_mapping=True).offset_mapping
            for place, (first, last) in enumerate(spans):
                for one in turn.spoken:
                    if one.start < last and first < one.end:
                        yield place, one.which

    @lru_cache(maxsize=4096)  # noqa: B019 - one writer a run
    def _counts_frames(self, token: int) -> bool:
        """Whether what follows a token is a frame's number: it looks like a coordinate."""
        return bool(self._tokenizer.decode([token]).rstrip().endswith('frame_idx":'))

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False).input_ids
        return ids


# --- what lies under a visual token ---------------------------------------------------------------


def _maps(pictures: Sequence[Scene]) -> Any:
    return torch.cat([cells(shown) for shown in pictures])


def cells(shown: Scene) -> Any:
    """What is known of every visual token of a picture: (tokens, CELL).

    Four distances from the token's middle to the sides of the object in front there, in pixels,
    left, top, right, bottom; then 1 at its shape, its colour, its texture.  All zero where no
    object is.
    """
    across, down = shown.width // TOKEN_SIDE, shown.height // TOKEN_SIDE
    out = torch.zeros(down, across, CELL)
    names = [*SHAPES, *COLOURS, *TEXTURES]
    for thing in shown.things:
        x1, y1, x2, y2 = thing.box
        for row, column in _under(thing.box, across, down):
            x, y = (column + 0.5) * TOKEN_SIDE, (row + 0.5) * TOKEN_SIDE
            out[row, column] = 0
            out[row, column, :4] = torch.tensor([x - x1, y - y1, x2 - x, y2 - y])
            for name in thing.look:
                out[row, column, 4 + names.index(name)] = 1
    return out.flatten(0, 1)


def _mark_maps(lesson: Lesson) -> Any:
    first, *others = lesson.pictures
    plain = [torch.zeros(s.width * s.height // TOKEN_SIDE**2, MARK) for s in others]
    return torch.cat([mark_cells(first, lesson.marks), *plain])


def mark_cells(shown: Scene, marks: Sequence[Mark]) -> Any:
    """What is known of the marks on every visual token of a picture: (tokens, MARK).

    1 at the shape and at the colour of a mark that covers some pixels there.
    """
    across, down = shown.width // TOKEN_SIDE, shown.height // TOKEN_SIDE
    out = torch.zeros(down, across, MARK)
    for mark in marks:
        parts = torch.from_numpy(mark.cover).reshape(down, TOKEN_SIDE, across, TOKEN_SIDE)
        there = parts.sum((1, 3)) >= _SEEN_FROM
        out[..., MARK_SHAPES.index(mark.shape)][there] = 1
        if mark.colour != style.CONTRAST:
            out[..., len(MARK_SHAPES) + MARK_COLOURS.index(mark.colour)][there] = 1
    return out.flatten(0, 1)


_SEEN_FROM = 8
"""Pixels of a mark on a visual token, which has 576."""


def _under(box: Sequence[float], across: int, down: int) -> list[tuple[int, int]]:
    """(row, column) of the visual tokens whose middle a box holds, by a margin of three pixels."""
    x1, y1, x2, y2 = box
    found = [
        (row, column)
        for row in range(down)
        for column in range(across)
        if x1 - 3 <= (column + 0.5) * TOKEN_SIDE <= x2 + 3
        and y1 - 3 <= (row + 0.5) * TOKEN_SIDE <= y2 + 3
    ]
    middle = (int((y1 + y2) / 2 / TOKEN_SIDE), int((x1 + x2) / 2 / TOKEN_SIDE))
    return found or [(min(middle[0], down - 1), min(middle[1], across - 1))]


def _covers(parts: Sequence[Any], tokens: int) -> Any:
    """1 where one of some maps lies over a visual token: (tokens,)."""
    return (sum(parts, torch.zeros(tokens)) > 0).float()


def _cover(pictures: Sequence[Scene], picture: int, box: Sequence[float]) -> Any:
    """How a box lies over the visual tokens of all pictures: (V,), adding up to 1."""
    parts = []
    for number, shown in enumerate(pictures):
        across, down = shown.width // TOKEN_SIDE, shown.height // TOKEN_SIDE
        part = torch.zeros(down, across)
        if number == picture:
            places = _under(box, across, down)
            for row, column in places:
                part[row, column] = 1 / len(places)
        parts.append(part.flatten())
    return torch.cat(parts)
