"""A split of RefCOCO that nobody annotated, and deployments that answer about it over HTTP.

A deployment is told by what it does to pictures, words and numbers; the defaults do nothing wrong.
It knows an object by the number in its expression, and sees of a picture its size alone.
"""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from chat_server import Answer, Asked, ChatServer, completion, error
from PIL import Image, ImageDraw
from probe_deployments import numbers, sent
from simulated_deployments import PROFILES, convention

from vlmeval_findit.data import Counts

Rng = np.random.Generator
Size = tuple[int, int]
Box = tuple[int, int, int, int]

# --- the split ------------------------------------------------------------------------------------

SMALLEST_SIDE = 44  # Pixels of the original
_COLOURS = ("red", "green", "blue", "yellow")


@dataclass(frozen=True)
class Thing:
    """An object with one expression, and the other objects of its picture."""

    number: int
    picture: int
    size: Size
    box: Box
    others: tuple[Box, ...]

    @property
    def file_name(self) -> str:
        return f"COCO_train2014_{self.picture:012}.jpg"

    @property
    def words(self) -> str:
        return f"the {_COLOURS[self.number % 4]} thing with the number {self.number}"


def draw_split(pictures: int, a_picture: int = 2, first: int = 1) -> list[Thing]:
    """Return the objects of a split: pictures as large as COCO's, and some small objects."""
    rng = np.random.default_rng(first)
    sizes = PROFILES["referring"].sizes
    weights = np.array([often for *_, often in sizes])
    things: list[Thing] = []
    for picture in range(first, first + pictures):
        width, height, _often = sizes[rng.choice(len(weights), p=weights / weights.sum())]
        size = (width, height)
        boxes = [_draw_box(rng, size) for _ in range(a_picture + 1)]
        for at in range(a_picture):
            others = tuple(box for box in boxes if box != boxes[at])
            things.append(Thing(len(things), picture, size, boxes[at], others))
    return things


def _draw_box(rng: Rng, size: Size) -> Box:
    mean, spread = np.array([-1.5, -1.2]), np.array([0.6, 0.55])
    least = SMALLEST_SIDE / np.array(size)
    sides = np.exp(rng.normal(mean, spread)).clip(least, 0.9)
    corner = rng.random(2) * (1 - sides)
    shares = np.concatenate([corner, corner + sides])
    x1, y1, x2, y2 = np.round(shares * np.tile(size, 2)).astype(int).tolist()
    return x1, y1, x2, y2


def write_splits(folder: Path, things: Sequence[Thing]) -> Mapping[str, Counts]:
    """Write testA, and a few pictures of the other splits, as Qwen-VL's JSON lines."""
    others = {"val": draw_split(1, first=5001), "testB": draw_split(1, first=6001)}
    splits = {"testA": things, **others}
    return {name: _write_split(folder, each, name) for name, each in splits.items()}


def _write_split(folder: Path, things: Sequence[Thing], split: str) -> Counts:
    images = folder / "train2014"
    images.mkdir(parents=True, exist_ok=True)
    lines = []
    for thing in things:
        width, height = thing.size
        entry = {"image": f"train2014/{thing.file_name}", "sent": thing.words, "bbox": thing.box}
        lines.append(json.dumps({**entry, "width": width, "height": height}))
    (folder / f"refcoco_{split}.jsonl").write_text("\n".join(lines))
    drawn = {thing.file_name: thing for thing in things}
    for name, thing in drawn.items():
        picture = Image.new("RGB", thing.size, (200, 200, 200))
        pen = ImageDraw.Draw(picture)
        for box in (thing.box, *thing.others):
            pen.rectangle(box, outline=(60, 60, 60), width=3)
        picture.save(images / name, quality=70)
    return Counts(images=len(drawn), queries=len(things))


# --- what a deployment does -----------------------------------------------------------------------

Sees = Callable[[Size], Size]
"""From the size of a picture as it was sent to its size as the model sees it, in pixels."""


def as_sent(size: Size) -> Size:
    return size


def shrunk(longer: int) -> Sees:
    """Shrink pictures to a longer side, as a proxy or a client in between does."""

    def sees(size: Size) -> Size:
        factor = min(1.0, longer / max(size))
        return round(size[0] * factor), round(size[1] * factor)

    return sees


def tiled(most: int) -> Sees:
    """Cut pictures into tiles of 448 pixels, as InternVL does: the grid of the nearest shape."""
    grids = [(x, y) for x in range(1, most + 1) for y in range(1, most + 1) if x * y <= most]
    grids.sort(key=lambda grid: grid[0] * grid[1])

    def sees(size: Size) -> Size:
        best, least = (1, 1), float("inf")
        for x, y in grids:
            unlike = abs(size[0] / size[1] - x / y)
            # Of equal shapes the larger, if the picture fills half of it
            if unlike < least or (unlike == least and size[0] * size[1] > 0.5 * 448**2 * x * y):
                best, least = (x, y), unlike
        return 448 * best[0], 448 * best[1]

    return sees


Tokens = Callable[[Size], int]
"""From the size of a picture as it is seen to the number of its tokens."""


def patches_of_28(seen: Size) -> int:
    return -(-seen[0] // 28) * -(-seen[1] // 28)


def patches_of_32(seen: Size) -> int:
    return -(-seen[0] // 32) * -(-seen[1] // 32)


def tokens_of_tiles(seen: Size) -> int:
    """Count 256 tokens for every tile, and for the thumbnail of several."""
    tiles = seen[0] * seen[1] // 448**2
    return 256 * (tiles + (tiles > 1))


Writes = Callable[[Thing, Sequence[float]], str]


def as_text(thing: Thing, box: Sequence[float]) -> str:
    return str(list(box))


def as_json(thing: Thing, box: Sequence[float]) -> str:
    return json.dumps([{"bbox_2d": list(box)}])


def as_fenced_json(thing: Thing, box: Sequence[float]) -> str:
    entry = json.dumps([{"bbox_2d": list(box), "label": thing.words}])
    return f"```json\n{entry}\n```"


def as_refusal(thing: Thing, box: Sequence[float]) -> str:
    return "I cannot see a picture here. Please send it again."


def as_the_same(thing: Thing, box: Sequence[float]) -> str:
    return "[250, 250, 750, 750]"


def as_prose(thing: Thing, box: Sequence[float]) -> str:
    x1, y1, x2, y2 = box
    return f"Sure! {thing.words.capitalize()} is in the box from ({x1}, {y1}) to ({x2}, {y2})."


def after_words(words: str, writes: Writes) -> Writes:
    return lambda thing, box: f"{words}{writes(thing, box)}"


def before_another(thing: Thing, box: Sequence[float]) -> str:
    """Write two boxes, the right box first."""
    return json.dumps([{"bbox_2d": list(box)}, {"bbox_2d": [number + 90 for number in box]}])


def after_another(thing: Thing, box: Sequence[float]) -> str:
    return json.dumps([{"bbox_2d": [number + 200 for number in box]}, {"bbox_2d": list(box)}])


@dataclass(frozen=True)
class Deployment:
    """How a deployment answers.

    ``right`` is the share of boxes that are about their object, ``error`` the standard deviation of
    their edges in shares of the side, ``least`` the shorter side in pixels as seen below which an
    object is missed, ``astray`` the standard deviation in pixels by which boxes lie elsewhere.
    ``prompt`` are words that the published prompt has: with others ``otherwise`` are right.
    ``failing`` is the share of pictures that the server refuses, ``limit`` its limit of tokens, and
    with ``all_is_thought`` its parser takes the whole reply for a thought.  ``tiles`` is what
    requests call the most tiles of a picture.
    """

    right: float
    writes: Writes = as_text
    says: str = "grid1000/xyxy"
    error: float = 0.04
    sees: Sees = as_sent
    tokens: Tokens = patches_of_32
    least: float = 0.0
    astray: float = 0.0
    prompt: str = ""
    otherwise: float = 0.0
    failing: float = 0.0
    limit: int | None = None
    thought: str = ""
    all_is_thought: bool = False
    tiles: str = ""
    delay: float = 0.0
    pages: Mapping[str, Any] = field(default_factory=dict)


def is_of_share(number: int, share: float) -> bool:
    """Return whether a number is among a share of all; of any that follow it is nearly exact."""
    return number * 0.6180339887498949 % 1 < share


def answer(deployment: Deployment, thing: Thing, asked: Asked) -> Answer:
    """Answer a question about an object."""
    if is_of_share(thing.picture, deployment.failing):
        return error(400, "the image cannot be decoded")
    with Image.open(io.BytesIO(base64.b64decode(sent(asked).partition(",")[2]))) as picture:
        seen = _sees(deployment, asked)(picture.size)
    box = _meant(deployment, thing, seen, deployment.prompt in prompt_of(asked))
    rng = np.random.default_rng([thing.number, 1])
    stated = _with_errors(rng, box, thing.size, deployment.error)
    answered = numbers(stated, thing.size, convention(deployment.says), rng)
    text = deployment.writes(thing, [int(n) if n == int(n) else n for n in answered])
    limits = [asked.body["max_tokens"], *([deployment.limit] if deployment.limit else [])]
    most = 3 * min(limits)  # Characters
    is_cut = len(text) > most
    text, thought = text[:most], deployment.thought
    if deployment.all_is_thought:
        text, thought = "", text
    result = completion(
        text,
        finish_reason="length" if is_cut else "stop",
        model=asked.body["model"],
        provider=None,
        message={"reasoning_content": thought},
        usage={
            "prompt_tokens": 40 + deployment.tokens(seen),
            "completion_tokens": (len(text) + len(thought)) // 3,
        },
    )
    return Answer(result.body, delay=deployment.delay)


def _sees(deployment: Deployment, asked: Asked) -> Sees:
    """Return how a picture is seen, as far as a request may say it: other names are dropped."""
    stated = asked.body.get("mm_processor_kwargs") or {}
    return tiled(stated[deployment.tiles]) if deployment.tiles in stated else deployment.sees


def _meant(
    deployment: Deployment, thing: Thing, seen: Size, is_prompt_right: bool
) -> Sequence[float]:
    """Return the box that is meant, in pixels of the original."""
    rng = np.random.default_rng([thing.number, 0])
    right = deployment.right if is_prompt_right else deployment.otherwise
    across, down = np.array(seen) / thing.size
    x1, y1, x2, y2 = thing.box
    is_too_small = min((x2 - x1) * across, (y2 - y1) * down) < deployment.least
    if is_too_small or not is_of_share(thing.number, right):
        return _elsewhere(rng, thing)
    if not deployment.astray:
        return thing.box
    room = np.array(thing.size) - (x2, y2)
    moved = rng.normal(0, deployment.astray, 2).clip((-x1, -y1), room)
    return tuple(np.array(thing.box) + np.tile(moved, 2))


def _with_errors(rng: Rng, box: Sequence[float], size: Size, error: float) -> Sequence[float]:
    """Move the edges of a box; it stays in its picture."""
    corners = np.array(box, float)
    sides = np.tile(corners[2:] - corners[:2], 2)
    moved: list[float] = (
        (corners + rng.normal(0, error, 4) * sides).clip(0, np.tile(size, 2)).tolist()
    )
    return moved


def _elsewhere(rng: Rng, thing: Thing) -> Sequence[float]:
    """Return a box of another object, or a box that hardly covers this object."""
    far = [box for box in thing.others if _share_covered(thing.box, box) < 0.3]
    if far:
        return far[int(rng.integers(len(far)))]
    width, height = thing.size
    x1, y1, x2, y2 = thing.box
    left = 0 if x1 > width - x2 else width - (x2 - x1) // 3
    top = 0 if y1 > height - y2 else height - (y2 - y1) // 3
    return left, top, left + (x2 - x1) // 3, top + (y2 - y1) // 3


def _share_covered(box: Box, other: Box) -> float:
    """Return the IoU of two boxes."""
    across = min(box[2], other[2]) - max(box[0], other[0])
    down = min(box[3], other[3]) - max(box[1], other[1])
    common = max(across, 0) * max(down, 0)
    areas = [(each[2] - each[0]) * (each[3] - each[1]) for each in (box, other)]
    return common / (sum(areas) - common)


# --- over HTTP ------------------------------------------------------------------------------------


def prompt_of(asked: Asked) -> str:
    """Return all words of a request."""
    turns = asked.body["messages"]
    parts = [part for turn in turns for part in _parts(turn["content"])]
    return "\n".join(part["text"] for part in parts if part["type"] == "text")


def _parts(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def deployed(deployment: Deployment, things: Sequence[Thing]) -> ChatServer:
    """Return a server of a deployment, to be entered."""
    by_number = {thing.number: thing for thing in things}

    def script(asked: Asked, number: int) -> Answer:
        named = re.search(r"thing with the number (\d+)", prompt_of(asked))
        if named is None:
            return error(400, "no object of the split is asked for")
        return answer(deployment, by_number[int(named[1])], asked)

    return ChatServer(script, deployment.pages)
