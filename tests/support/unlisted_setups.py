"""Deployments with faults that no list of the code has, and right ones of many qualities.

A fault turns the box that a model means into a reply. Models see of a picture its size alone.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from reproductions import dataset_of, figure, query, setup
from simulated_deployments import PROFILES, objects

from vlmeval_findit.models import ModelEntry
from vlmeval_findit.protocol import Answering, Identity, Reply, ReplyRecord, settings_from
from vlmeval_findit.reproduction import Attempt, Cause, measure_figure
from vlmeval_findit.scoring import check_replies

Floats = NDArray[np.float64]
Rng = np.random.Generator
Size = tuple[int, int]

PUBLISHED = 92.2
"""The figure of a model that means the right object in 92.5 % of the queries."""


@dataclass(frozen=True)
class Asked:
    """A query: its object and the others of its picture, in shares of the picture."""

    row: int
    picture: int
    size: Size
    truth: Floats  # (4,)
    others: Floats  # (n, 4)


def draw_queries(seed: int, pictures: int = 70) -> list[Asked]:
    """Draw two expressions about each of three objects of a picture."""
    rng = np.random.default_rng(seed)
    profile = PROFILES["referring"]
    often = np.array([each for *_, each in profile.sizes])
    asked: list[Asked] = []
    for picture in range(pictures):
        width, height, _ = profile.sizes[rng.choice(len(often), p=often / often.sum())]
        things = objects(rng, profile, 3) * (0.9, 0.9, 0.9, 0.9)
        for at in (0, 1, 2, 0, 1, 2):
            others = np.delete(things, at, axis=0)
            asked.append(Asked(len(asked), picture, (width, height), things[at], others))
    return asked


@dataclass(frozen=True)
class Model:
    """How well a model means boxes: share of right objects, and error of edges in sides."""

    right: float = 0.925
    error: float = 0.03
    pull: float = 0.0  # To the picture's middle
    grown: float = 1.0  # Boxes are so many times too large


def meant(model: Model, asked: Asked) -> Floats:
    """Return the box that a model means, in shares of the picture."""
    rng = np.random.default_rng([asked.row, 17])
    box = asked.truth
    if rng.random() > model.right:
        box = asked.others[int(rng.integers(len(asked.others)))]
    side = np.tile(box[2:] - box[:2], 2)
    box = box + rng.normal(0, model.error, 4) * side
    centre = (box[:2] + box[2:]) / 2
    half = (box[2:] - box[:2]) / 2 * model.grown
    centre = centre + model.pull * (0.5 - centre)
    return np.concatenate([centre - half, centre + half]).clip(0, 1)


@dataclass(frozen=True)
class Said:
    """A reply, as a server gives it."""

    numbers: Sequence[float] = ()
    text: str | None = None  # In place of the numbers
    tokens: int = 0  # Of the prompt beyond the words
    finish: str = "stop"
    model: str = "Qwen/Qwen3-VL-8B-Instruct"
    call: Mapping[str, Any] | None = None


# From a query, the box meant (in shares) and a generator of random numbers to a reply
Fault = Callable[[Asked, Floats, Rng], Said]


def as_json(numbers: Sequence[float]) -> str:
    plain = [int(number) if number == int(number) else number for number in numbers]
    return json.dumps([{"bbox_2d": plain}])


def visual_tokens(size: Size) -> int:
    return math.ceil(size[0] / 32) * math.ceil(size[1] / 32)


def grid(box: Floats, most: float = 1000.0) -> list[float]:
    return [float(number) for number in np.round(box * most)]


def right(asked: Asked, box: Floats, rng: Rng) -> Said:
    return Said(grid(box))


def attempt(
    fault: Fault,
    model: Model = Model(),
    seed: int = 5,
    published: float = PUBLISHED,
    pictures: int = 70,
    writes: Callable[[Sequence[float]], str] = as_json,
) -> Attempt:
    """Return an attempt of a deployment with a fault."""
    asked = draw_queries(seed, pictures)
    name = "FindIt_RefCOCO_xyxy_json_bbox_2d"
    data = dataset_of(
        [
            query(
                each.row,
                tuple((each.truth * np.tile(each.size, 2)).tolist()),
                picture=f"{each.picture}.jpg",
                size=each.size,
            )
            for each in asked
        ],
        name,
    )
    replies = [_reply(fault, model, each, writes) for each in asked]
    identity = Identity(
        "Qwen3-VL",
        name,
        Answering(row="Qwen3-VL", checkpoint="Qwen/Qwen3-VL-8B-Instruct"),
        prompts="findit-own-1",
    )
    answered = check_replies(
        "Qwen3-VL", data, replies, settings_from({"space": "grid1000"}), identity
    )
    asking = replace(setup(figure(published), data), entry=ModelEntry("Qwen3-VL"))
    return measure_figure(asking, [answered])


def _reply(
    fault: Fault, model: Model, asked: Asked, writes: Callable[[Sequence[float]], str]
) -> Reply:
    said = fault(asked, meant(model, asked), np.random.default_rng([asked.row, 3]))
    record = ReplyRecord(
        finish_reason=said.finish,
        images=({"original": asked.size, "sent": asked.size},),
        tokens={"prompt": 60 + (said.tokens or visual_tokens(asked.size)), "completion": 20},
        model={"identifier": said.model},
        call={"id": f"c{asked.row}", "status": 200, **(said.call or {})},
    )
    text = writes(said.numbers) if said.text is None else said.text
    return Reply(asked.row, text, record)


# --- wrong ones -----------------------------------------------------------------------------------


def pixels_of(to_size: Callable[[Size], tuple[float, float]]) -> Fault:
    """Answer in pixels of a resized picture."""

    def fault(asked: Asked, box: Floats, rng: Rng) -> Said:
        return Said([float(n) for n in np.round(box * np.tile(to_size(asked.size), 2))])

    return fault


def smart(size: Size, factor: int, least: int, most: int) -> Size:
    """Resize as Qwen's processors do."""
    width, height = (max(factor, round(side / factor) * factor) for side in size)
    if width * height > most:
        by = math.sqrt(size[0] * size[1] / most)
        width, height = (max(factor, int(side / by / factor) * factor) for side in size)
    elif width * height < least:
        by = math.sqrt(least / (size[0] * size[1]))
        width, height = (math.ceil(side * by / factor) * factor for side in size)
    return width, height


def of_share(share: float, wrong: Fault, other: Fault = right) -> Fault:
    """Do wrong in a share of the replies."""

    def fault(asked: Asked, box: Floats, rng: Rng) -> Said:
        is_wrong = (asked.row * 0.6180339887 + 0.37) % 1 < share
        return (wrong if is_wrong else other)(asked, box, rng)

    return fault


def of_pictures(is_wrong: Callable[[Asked], bool], wrong: Fault) -> Fault:
    """Do wrong about some pictures."""
    return lambda asked, box, rng: (wrong if is_wrong(asked) else right)(asked, box, rng)


def states(fault: Fault, **said: Any) -> Fault:
    """State something else with each reply."""
    return lambda asked, box, rng: replace(fault(asked, box, rng), **said)


def moved(change: Callable[[Asked, Floats], Floats], most: float = 1000.0) -> Fault:
    """Change the box, in shares of the picture, before it is written."""
    return lambda asked, box, rng: Said(grid(change(asked, box), most))


def text_of(words: Callable[[list[int]], str]) -> Fault:
    return lambda asked, box, rng: Said(text=words([int(n) for n in grid(box)]))


def _answer_to(other: Callable[[Asked], int]) -> Fault:
    """Answer what another row asks."""
    rows = draw_queries(5)

    def fault(asked: Asked, box: Floats, rng: Rng) -> Said:
        return Said(grid(meant(Model(), rows[other(asked) % len(rows)])))

    return fault


def _crop(asked: Asked, box: Floats) -> Floats:
    short = min(asked.size)
    size = np.array(asked.size, float)
    start = (size - short) / 2
    inside = (box * np.tile(size, 2) - np.tile(start, 2)) / short
    return np.asarray(inside.clip(0, 1))


def _padded(colour_side: float) -> Callable[[Size], Callable[[Floats], Floats]]:
    def of(size: Size) -> Callable[[Floats], Floats]:
        longer = max(size)
        offset = (longer - np.array(size, float)) / 2 / longer
        scale = np.array(size, float) / longer
        return lambda box: (box * np.tile(scale, 2) + np.tile(offset, 2)) * colour_side

    return of


def letterboxed(side: float) -> Fault:
    return lambda asked, box, rng: Said(
        [float(n) for n in np.round(_padded(side)(asked.size)(box))]
    )


def _turned(box: Floats) -> Floats:
    """Turn a picture by 90 degrees clockwise."""
    return np.array([1 - box[3], box[0], 1 - box[1], box[2]])


def _is_tall(asked: Asked) -> bool:
    return asked.size[1] > asked.size[0]


def _is_wide(asked: Asked) -> bool:
    return asked.size[0] > asked.size[1]


def _bent(axis: int, power: float) -> Fault:
    """Bend an axis, with its ends in place."""

    def bent(asked: Asked, box: Floats) -> Floats:
        box = box.copy()
        box[axis::2] **= power
        return box

    return moved(bent)


def _scaled(across: float, down: float) -> Fault:
    return moved(lambda asked, box: box * (across, down, across, down))


def _swap(box: Floats) -> Floats:
    return box[[1, 0, 3, 2]]


def _mirrored(box: Floats) -> Floats:
    return np.array([1 - box[2], box[1], 1 - box[0], box[3]])


def _by_side(asked: Asked, sides: Sequence[float]) -> Floats:
    """Return by how much numbers differ that are divided by other sides."""
    return np.tile(np.array(asked.size) / np.array(sides), 2)


def _of_earlier_version(asked: Asked, box: Floats) -> Floats:
    """Return the box in a picture that was larger before it was cut."""
    rng = np.random.default_rng([asked.picture, 77])
    scale = rng.uniform(0.75, 0.95)
    return np.asarray(box * scale + np.tile(rng.uniform(0, 1 - scale, 2), 2))


def _constant(*numbers: float) -> Fault:
    return lambda asked, box, rng: Said(list(numbers))


def _unseen(asked: Asked, box: Floats, rng: Rng) -> Said:
    low = rng.integers(150, 400, 2)
    high = rng.integers(550, 850, 2)
    return Said([float(n) for n in (*low, *high)], tokens=1)


OTHER = {"model": "qwen2.5-vl-7b-instruct"}


@dataclass(frozen=True)
class Wrong:
    """A wrong setup, and the causes that name it or describe it rightly."""

    fault: Fault
    causes: tuple[str, ...]
    words: str = ""  # A pattern that the right finding has
    writes: Callable[[Sequence[float]], str] = as_json


def is_right(wrong: Wrong, cause: Cause) -> bool:
    """Return whether a cause names or describes what is wrong."""
    return cause.name in wrong.causes and re.search(wrong.words, cause.finding) is not None


_RANDOM = np.random.default_rng(2026)


def _random_resizes() -> dict[str, Wrong]:
    setups = {}
    for number in range(8):
        factor = int(_RANDOM.choice([28, 32]))
        least = int(_RANDOM.integers(330_000, 1_400_000))
        name = f"smart_resize {number}: factor {factor}, at least {least}"

        def resized(size: Size, factor: int = factor, least: int = least) -> Size:
            return smart(size, factor, least, 10**8)

        setups[name] = Wrong(pixels_of(resized), ("coordinates",), f"factor {factor}|not known")
    for _ in range(3):
        most = int(_RANDOM.integers(60_000, 180_000))

        def shrunk(size: Size, most: int = most) -> Size:
            return smart(size, 28, 784, most)

        name = f"smart_resize at most {most}"
        setups[name] = Wrong(pixels_of(shrunk), ("coordinates",), "at most about|not known")
    return setups


def _side(side: float, of: Callable[[Size], float]) -> Fault:
    return pixels_of(lambda size: (size[0] * side / of(size), size[1] * side / of(size)))


def _to_multiple(size: Size, by: float, factor: int) -> Size:
    width, height = (max(factor, round(side * by / factor) * factor) for side in size)
    return width, height


COORDINATES = ("coordinates",)
PIXELS = pixels_of(lambda size: size)
_LATE = _answer_to(lambda asked: max(0, asked.row - 1 - asked.row * 7919 % 8))

WRONG: Mapping[str, Wrong] = {
    **_random_resizes(),
    "shorter side to 733": Wrong(_side(733, min), COORDINATES, "shorter side to 73"),
    "longer side to 1777": Wrong(_side(1777, max), COORDINATES, "longer side to 17"),
    "width to 911": Wrong(_side(911, lambda size: size[0]), COORDINATES, "width to 9"),
    "height to 611": Wrong(_side(611, lambda size: size[1]), COORDINATES, "height to 6"),
    "area of 0.55 megapixels": Wrong(
        _side(742, lambda size: math.sqrt(size[0] * size[1])), COORDINATES, "area|at least about 5"
    ),
    "square of 999 x 555": Wrong(
        pixels_of(lambda size: (999, 555)), COORDINATES, "not known|scaled by"
    ),
    "1.7 times, multiples of 64": Wrong(
        pixels_of(lambda size: _to_multiple(size, 1.7, 64)),
        COORDINATES,
        "not known|scaled by 1.[67]",
    ),
    "sizes exchanged, 1.3 times": Wrong(
        pixels_of(lambda size: (1.3 * size[1], 1.3 * size[0])),
        COORDINATES,
        "width and height exchanged",
    ),
    "ten-thousandths": Wrong(
        moved(lambda asked, box: box, 10000), COORDINATES, "(?:9|10)[0-9]{3} x|scaled by (?:9.9|10)"
    ),
    "letterbox of 777": Wrong(letterboxed(777), COORDINATES, "padded to 7"),
    "letterbox of 1333": Wrong(letterboxed(1333), COORDINATES, "padded to 13"),
    "square crop, thousandths": Wrong(moved(_crop), COORDINATES, "square in its middle"),
    "square crop, 640": Wrong(moved(_crop, 640), COORDINATES, "cropped"),
    "mirrored": Wrong(
        moved(lambda asked, box: np.array([1 - box[2], box[1], 1 - box[0], box[3]])),
        COORDINATES,
        "mirrored",
    ),
    "turned by EXIF": Wrong(
        moved(lambda asked, box: _turned(box)), COORDINATES, "turned clockwise"
    ),
    "tall pictures turned by EXIF": Wrong(
        of_pictures(_is_tall, moved(lambda asked, box: _turned(box))),
        ("coordinates", "some pictures"),
    ),
    "width and height exchanged of pictures wider than 600": Wrong(
        of_pictures(lambda asked: asked.size[0] > 600, moved(lambda asked, box: _swap(box))),
        ("coordinates", "some pictures"),
    ),
    "scaled by 0.8 and 1.1": Wrong(_scaled(0.8, 1.1), COORDINATES),
    "moved by a tenth": Wrong(moved(lambda asked, box: box + 0.1), COORDINATES),
    "border of 12 % on the left": Wrong(
        moved(lambda asked, box: box * (0.88, 1, 0.88, 1) + (0.12, 0, 0.12, 0)), COORDINATES
    ),
    "half of the servers in pixels": Wrong(of_share(0.5, PIXELS), COORDINATES),
    "half of the servers in pixels of 700": Wrong(of_share(0.5, _side(700, max)), COORDINATES),
    "a server of two is blind": Wrong(
        of_share(
            0.5,
            states(_unseen, tokens=0, call={"server": "b:8001"}),
            states(right, call={"server": "a:8000"}),
        ),
        ("checkpoint",),
    ),
    "a gateway falls back to another model in pixels": Wrong(
        of_share(0.3, states(PIXELS, **OTHER)), ("checkpoint",)
    ),
    "a gateway falls back to a weak model": Wrong(
        of_share(0.4, states(_unseen, tokens=0, **OTHER)), ("checkpoint",)
    ),
    "a system of two is broken": Wrong(
        of_share(
            0.35,
            states(_unseen, tokens=0, call={"system_fingerprint": "fp_2"}),
            states(right, call={"system_fingerprint": "fp_1"}),
        ),
        ("checkpoint",),
    ),
    "every third call has no picture": Wrong(of_share(1 / 3, _unseen), ("unseen pictures",)),
    "every answer is the one before": Wrong(
        _answer_to(lambda asked: asked.row - 1), ("other requests",)
    ),
    "every answer is two late": Wrong(_answer_to(lambda asked: asked.row - 2), ("other requests",)),
    "off by one row": Wrong(_answer_to(lambda asked: asked.row + 1), ("other requests",)),
    "a cache by picture": Wrong(
        _answer_to(lambda asked: asked.row - asked.row % 6), ("other requests",)
    ),
    "a third are answers to any request": Wrong(
        of_share(1 / 3, _answer_to(lambda asked: asked.row * 7919 + 13)), ("other requests",)
    ),
    "a tenth are answers to any request": Wrong(
        of_share(0.12, _answer_to(lambda asked: asked.row * 7919 + 13)), ("other requests",)
    ),
    "a third are the whole picture": Wrong(
        of_share(1 / 3, _constant(0, 0, 1000, 1000)), ("other requests",)
    ),
    "always one box": Wrong(_constant(312, 208, 701, 799), ("other requests",)),
    "a fifth are empty": Wrong(of_share(0.2, lambda *_: Said(text="")), ("format",)),
    "a fifth refuse": Wrong(
        of_share(0.2, lambda *_: Said(text="I'm sorry, but I can't assist with that request.")),
        ("format",),
    ),
    "a third ends early": Wrong(
        of_share(1 / 3, text_of(lambda n: f'[{{"bbox_2d": [{n[0]}, {n[1]}, {n[2]}')),
        ("format", "truncation"),
    ),
    "decimal commas": Wrong(
        text_of(lambda n: "[" + "; ".join(f"0,{each:03}" for each in n) + "]"), ("format",)
    ),
    "four corners": Wrong(
        text_of(lambda n: str([n[0], n[1], n[2], n[1], n[2], n[3], n[0], n[3]])), ("format",)
    ),
    "in words": Wrong(
        text_of(lambda n: f"x from {n[0]} to {n[2]}, y from {n[1]} to {n[3]}"), ("format",)
    ),
    "a quarter of the calls fail": Wrong(
        of_share(0.25, lambda *_: Said(text="", call={"error": "HTTP 500"})), ("failed calls",)
    ),
    "mixed: a third as corner and size": Wrong(
        of_share(1 / 3, moved(lambda asked, box: box - (0, 0, box[0], box[1]))), COORDINATES
    ),
    "answers are late by up to eight rows": Wrong(_LATE, ("other requests",), "shortly before"),
    "a third is late by up to eight rows": Wrong(
        of_share(1 / 3, _LATE), ("other requests",), "shortly before"
    ),
    "late by a picture": Wrong(_answer_to(lambda asked: asked.row - 6), ("other requests",), "6"),
    "a cache by the beginning of the prompt": Wrong(
        _answer_to(lambda asked: asked.row - asked.row % 12), ("other requests",)
    ),
    "late, and half of another model in pixels": Wrong(
        of_share(0.4, states(PIXELS, **OTHER), _answer_to(lambda asked: asked.row - 1)),
        ("other requests", "checkpoint", "coordinates"),
    ),
    "percent, and a third late": Wrong(
        of_share(
            1 / 3, _answer_to(lambda asked: asked.row - 1), moved(lambda asked, box: box, 100)
        ),
        ("other requests", "coordinates"),
    ),
    "pixels, and a third empty": Wrong(
        of_share(1 / 3, lambda *_: Said(text=""), PIXELS), ("coordinates", "format")
    ),
    "half of the servers letterbox": Wrong(
        of_share(0.5, letterboxed(1333)), COORDINATES, "padded to 13"
    ),
    "a third letterboxed to 640": Wrong(
        of_share(1 / 3, letterboxed(640)), COORDINATES, "padded to 6"
    ),
    "half of the servers crop to 800": Wrong(
        of_share(0.5, moved(_crop, 800)), COORDINATES, "cropped"
    ),
    "tall pictures in pixels": Wrong(
        of_pictures(_is_tall, PIXELS), COORDINATES, "about tall pictures are pixels of the image,"
    ),
    "wide pictures, longer side to 700": Wrong(
        of_pictures(_is_wide, _side(700, max)),
        COORDINATES,
        "about wide pictures are pixels after a resize",
    ),
    "pictures from 640 pixels across, in pixels": Wrong(
        of_pictures(lambda asked: asked.size[0] >= 640, PIXELS), COORDINATES, "about "
    ),
    "bent across by 1.2": Wrong(_bent(0, 1.2), COORDINATES, "bent across"),
    "bent across by 1.5": Wrong(_bent(0, 1.5), COORDINATES, "bent across"),
    "bent across by 0.7": Wrong(_bent(0, 0.7), COORDINATES, "bent across"),
    "bent down by 1.4": Wrong(_bent(1, 1.4), COORDINATES, "bent down"),
    "bent on both axes": Wrong(
        moved(lambda asked, box: np.asarray(box**1.3)), COORDINATES, "bent across and down"
    ),
    "half late by a row": Wrong(
        of_share(0.5, _answer_to(lambda asked: asked.row - 1)),
        ("other requests",),
        "the row before",
    ),
    "a third late by two rows": Wrong(
        of_share(1 / 3, _answer_to(lambda asked: asked.row - 2)),
        ("other requests",),
        "the row before theirs by 2",
    ),
    "half early by a row": Wrong(
        of_share(0.5, _answer_to(lambda asked: asked.row + 1)), ("other requests",), "the row after"
    ),
    "every second row late, within pictures": Wrong(
        lambda asked, box, rng: (_answer_to(lambda each: each.row - 1) if asked.row % 2 else right)(
            asked, box, rng
        ),
        ("other requests",),
        "the row before",
    ),
    "half of the servers mirror": Wrong(
        of_share(0.5, moved(lambda asked, box: _mirrored(box))), COORDINATES, "mirrored"
    ),
    "cropped and mirrored": Wrong(
        moved(lambda asked, box: _mirrored(_crop(asked, box))), COORDINATES, "mirrored"
    ),
    "resized and mirrored": Wrong(
        lambda asked, box, rng: PIXELS(asked, 1.3 * _mirrored(box), rng), ()
    ),
    "from the bottom": Wrong(
        moved(lambda asked, box: np.array([box[0], 1 - box[3], box[2], 1 - box[1]])),
        COORDINATES,
        "bottom",
    ),
    "in thousandths of the other side": Wrong(
        moved(lambda asked, box: box * _by_side(asked, asked.size[::-1])), COORDINATES, "exchanged"
    ),
    "in thousandths of the longer side": Wrong(
        moved(lambda asked, box: box * _by_side(asked, (max(asked.size), max(asked.size)))),
        COORDINATES,
        "longer side",
    ),
    "a fifth of the pictures is turned": Wrong(
        of_pictures(lambda asked: asked.picture % 5 == 0, moved(lambda asked, box: _turned(box))),
        COORDINATES,
        "clockwise",
    ),
    "boxes of an earlier version of each picture": Wrong(moved(_of_earlier_version), ()),
    "rounded to sixths of the picture": Wrong(
        moved(lambda asked, box: np.round(box / 0.16) * 0.16), ()
    ),
    "temperature 2": Wrong(
        lambda asked, box, rng: Said(grid((box + rng.normal(0, 0.09, 4)).clip(0, 1))), ()
    ),
    "small objects are lost": Wrong(
        lambda asked, box, rng: (
            right(asked, box, rng)
            if min(asked.truth[2:] - asked.truth[:2]) > 0.28
            else _unseen(asked, box, rng).__class__(grid(rng.random(4) * 0.2 + (0, 0, 0.6, 0.6)))
        ),
        (),
    ),
    "quantised without its name": Wrong(
        of_share(0.25, lambda asked, box, rng: Said(grid(asked.others[0]))), ()
    ),
}


# --- right ones -----------------------------------------------------------------------------------


def as_plain_fence(numbers: Sequence[float]) -> str:
    return f"```json\n{as_json(numbers)}\n```"


def right_models() -> list[tuple[Model, Callable[[Sequence[float]], str], int]]:
    """Return sixty right setups: models of many qualities, ways of writing, and seeds."""
    models = [
        Model(share, error, pull, grown)
        for share in (0.98, 0.925, 0.8, 0.65, 0.5)
        for error in (0.02, 0.06, 0.12)
        for pull, grown in ((0.0, 1.0), (0.04, 1.05))
    ]
    writings = (as_json, as_plain_fence)
    return [(model, writes, 100 + at) for at, model in enumerate(models) for writes in writings]
