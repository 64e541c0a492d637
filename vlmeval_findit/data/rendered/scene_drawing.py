"""Shapes, colours, textures and backgrounds, drawn with numpy: the same pixels on every machine.

Only additions, multiplications, comparisons and square roots are used, each of which IEEE 754
rounds in one way, and numpy's frozen ``RandomState``, whose streams never change.  A drawing
library would be shorter, but its anti-aliasing changes between versions.

Each shape, colour, texture and background is a row of a table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]  # Array of 64-bit floats of any shape
# height x width x 3, RGB
Pixels = npt.NDArray[np.uint8]
# height x width
Masks = npt.NDArray[np.bool_]
Colour = tuple[int, int, int]
Rng = np.random.RandomState  # Random numbers that are the same under every version of numpy

# Signed distance to an outline around the origin, in units of its half size: negative inside. ``x``
# points right, ``y`` down; the shape fills [-1, 1] x [-1, 1].
Distance = Callable[[Floats, Floats], Floats]


# Distance to a shape's edge by its name: negative inside, 1 is half its size
SHAPES: dict[str, Distance] = {
    "circle": lambda x, y: np.sqrt(x * x + y * y) - 1.0,
    "square": lambda x, y: np.maximum(np.abs(x), np.abs(y)) - 1.0,
    # Its tip is (0, -1); the flanks run from there to (+-1, 1), with the normal (2, -1) / sqrt 5.
    "triangle": lambda x, y: np.maximum(y - 1.0, (2.0 * np.abs(x) - y - 1.0) * 0.4472135954999579),
    "diamond": lambda x, y: (np.abs(x) + np.abs(y) - 1.0) * 0.7071067811865476,
    "ring": lambda x, y: np.abs(np.sqrt(x * x + y * y) - 0.72) - 0.28,
    "cross": lambda x, y: np.minimum(
        np.maximum(np.abs(x) - 1.0, np.abs(y) - 0.34),
        np.maximum(np.abs(x) - 0.34, np.abs(y) - 1.0),
    ),
}

# RGB, 0 to 255, by the colour's name in prompts
COLOURS: dict[str, Colour] = {
    "red": (215, 40, 40),
    "green": (45, 170, 60),
    "blue": (50, 85, 220),
    "yellow": (235, 210, 50),
    "purple": (150, 60, 185),
    "orange": (245, 140, 30),
}

# How much of a texture's second colour lies at a point, 0 to 1; ``x``, ``y`` in pixels
Share = Callable[[Floats, Floats], Floats]


def _part(number: Floats) -> Floats:
    """Return what is behind the point."""
    return number - np.floor(number)


# Share of the second colour at each pixel, by the texture's name in prompts
TEXTURES: dict[str, Share] = {
    "plain": lambda x, y: np.zeros(np.broadcast(x, y).shape),
    "striped": lambda x, y: (_part((x + y) / 11.0) < 0.45).astype(np.float64),
    "dotted": lambda x, y: (
        (_part(x / 10.0) - 0.5) ** 2 + (_part(y / 10.0) - 0.5) ** 2 < 0.075
    ).astype(np.float64),
}


class Look(NamedTuple):
    """What makes an object that object, whatever its size and place."""

    shape: str
    colour: str
    texture: str


class ObjectPlacement(NamedTuple):
    """Where an object lies: its centre and half its size, in pixels."""

    x: float
    y: float
    half: float


# --- backgrounds ----------------------------------------------------------------------------------

# width x height pixels around a colour: height x width x 3, 0 to 255
Background = Callable[[Rng, int, int, Colour], Floats]


def _flat(rng: Rng, width: int, height: int, colour: Colour) -> Floats:
    return np.broadcast_to(np.asarray(colour, dtype=np.float64), (height, width, 3)).copy()


def _gradient(rng: Rng, width: int, height: int, colour: Colour) -> Floats:
    across = rng.randint(-60, 61)
    down = rng.randint(-60, 61)
    x = (np.arange(width) / (width - 1) - 0.5)[None, :, None]
    y = (np.arange(height) / (height - 1) - 0.5)[:, None, None]
    return _flat(rng, width, height, colour) + across * x + down * y


def _noisy(rng: Rng, width: int, height: int, colour: Colour) -> Floats:
    strength = rng.randint(10, 45)
    noise = np.frombuffer(rng.bytes(width * height), dtype=np.uint8).reshape(height, width, 1)
    return _flat(rng, width, height, colour) + (noise / 255.0 - 0.5) * strength


BACKGROUNDS: dict[str, Background] = {"plain": _flat, "gradient": _gradient, "noisy": _noisy}


def background(rng: Rng, width: int, height: int) -> Floats:
    """Draw a background of any kind in a dull colour, with specks and lines as distractors."""
    grey = rng.randint(30, 226)
    red, green, blue = (int(grey + rng.randint(-18, 19)) for _ in range(3))
    kinds = tuple(BACKGROUNDS.values())
    canvas = kinds[rng.randint(len(kinds))](rng, width, height, (red, green, blue))
    for _ in range(rng.randint(0, 4)):
        _clutter(rng, canvas)
    return canvas


def _clutter(rng: Rng, canvas: Floats) -> None:
    """Draw a speck of a few pixels or a thin line, in grey."""
    height, width, _ = canvas.shape
    shade = float(rng.randint(20, 236))
    x = rng.randint(0, width - 8)
    y = rng.randint(0, height - 8)
    if rng.randint(2):
        canvas[y : y + rng.randint(3, 8), x : x + rng.randint(3, 8)] = shade
    elif rng.randint(2):
        canvas[y : y + 2, x : x + rng.randint(20, 70)] = shade
    else:
        canvas[y : y + rng.randint(20, 70), x : x + 2] = shade


# --- objects --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Painted:
    """Pixels that an object covers, whether or not something else is painted over them later.

    ``top`` and ``left`` are where ``mask`` begins on the canvas; ``mask`` holds what lies on it.
    """

    top: int
    left: int
    mask: Masks


def paint(canvas: Floats, look: Look, place: ObjectPlacement, colour: Colour) -> Painted:
    """Paint an object over a canvas (height x width x 3), in place, with smooth edges.

    A pixel belongs to the object where the object covers half of it or more.
    """
    height, width, _ = canvas.shape
    x1, x2 = _span(place.x, place.half, width)
    y1, y2 = _span(place.y, place.half, height)
    x: Floats = (np.arange(x1, x2, dtype=np.float64) + 0.5 - place.x)[None, :]
    y: Floats = (np.arange(y1, y2, dtype=np.float64) + 0.5 - place.y)[:, None]
    distance = SHAPES[look.shape](x / place.half, y / place.half) * place.half
    cover = np.clip(0.5 - distance, 0.0, 1.0)
    share = TEXTURES[look.texture](x, y)[..., None]
    first = np.asarray(colour, dtype=np.float64)
    second = first * 0.25 + (185.0 if sum(colour) < 330 else 0.0)
    ink = first * (1.0 - share) + second * share
    under = canvas[y1:y2, x1:x2]
    canvas[y1:y2, x1:x2] = under + (ink - under) * cover[..., None]
    return Painted(y1, x1, cover >= 0.5)


def _span(centre: float, half: float, size: int) -> tuple[int, int]:
    """Return the pixels of an axis that an object may touch."""
    first = min(max(int(np.floor(centre - half)) - 1, 0), size)
    return first, min(max(int(np.ceil(centre + half)) + 1, first), size)


def tint_colour(rng: Rng, name: str) -> Colour:
    """Return a colour of the table, slightly changed."""
    red, green, blue = (int(np.clip(v + rng.randint(-14, 15), 0, 255)) for v in COLOURS[name])
    return red, green, blue


def as_pixels(canvas: Floats) -> Pixels:
    """Whole numbers of 0 to 255."""
    return np.clip(np.floor(canvas + 0.5), 0.0, 255.0).astype(np.uint8)
