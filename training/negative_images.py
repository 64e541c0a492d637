"""Images without anything that FindIt-Nano knows: noise, edges and patterns like photographs.

They are computed, so no photograph is trained on. Shapes that the model knows are avoided: round
things are longer than wide or have a soft edge, others have five corners or more, or are much
longer than wide.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from vlmeval_findit.data import Floats, Pixels, Rng, as_pixels

Size = tuple[int, int]  # (width, height) in pixels

# Sizes that images are shrunk to: whole visual tokens, at most 168 x 168 pixels' worth
NEGATIVE_SIZES: tuple[Size, ...] = (
    (168, 168),
    (192, 120),
    (168, 144),
    (144, 168),
    (192, 144),
    (144, 192),
    (120, 192),
    (216, 120),
    (120, 216),
    (264, 96),
    (96, 264),
)

# Reference shots are crops of any shape, never less than 48 x 48 pixels' worth.
NEGATIVE_SHOT_SIZES: tuple[Size, ...] = (
    (96, 96),
    (120, 120),
    (48, 72),
    (48, 96),
    (96, 48),
    (168, 48),
    (216, 96),
)


def negative_image(rng: Rng, size: Size) -> Pixels:
    """Return an image of ``size``: a ground, things on it, light and grain."""
    return _finished(rng, _canvas(rng, size))


def negative_frames(rng: Rng, frames: int, size: Size) -> tuple[Pixels, ...]:
    """Return frames of ``size`` in which a camera moves over a negative image or zooms into it."""
    width, height = size
    zooms = rng.randint(3) == 0
    margin = rng.uniform(0.1, 0.4)
    wide = int(width * (1 + margin))
    high = int(height * (1 + margin))
    pixels = _finished(rng, _canvas(rng, (wide, high)))
    start = rng.random_sample(2)
    end = rng.random_sample(2)
    out = []
    for frame in range(frames):
        done = frame / max(frames - 1, 1)
        scale = 1 + margin * (1 - done) if zooms else 1.0
        place = start + (end - start) * done
        rows = _visible(high, height, scale, place[0])
        columns = _visible(wide, width, scale, place[1])
        out.append(pixels[rows[:, None], columns[None, :]])
    return tuple(out)


def _visible(
    length: int, shown: int, scale: float, place: float
) -> np.ndarray[tuple[int], np.dtype]:
    """Return the pixels of one axis that a frame of ``shown`` pixels shows."""
    first = (length - shown * scale) * place
    return np.clip((first + np.arange(shown) * scale).astype(np.int64), 0, length - 1)


# --- colours and noise ----------------------------------------------------------------------------


class _Palette(NamedTuple):
    """Colours (n, 3) from 0 to 255; ``grey`` says that the image has no others."""

    colours: Floats
    grey: bool

    def pick(self, rng: Rng) -> Floats:
        """Return a colour near one of the palette, or any colour."""
        if rng.randint(5) == 0 and not self.grey:
            return np.asarray(rng.uniform(0.0, 255.0, 3))
        off = np.asarray(rng.uniform(-40.0, 40.0, 1 if self.grey else 3))
        near = self.colours[rng.randint(len(self.colours))] + off
        return np.asarray(np.clip(near, 0.0, 255.0))


def _palette(rng: Rng) -> _Palette:
    grey = rng.randint(5) == 0
    middle = rng.uniform(20.0, 235.0, (1, 1 if grey else 3))
    spread = rng.uniform(20.0, 120.0)
    colours = middle + rng.uniform(-spread, spread, (2 + rng.randint(4), 1))
    colours = colours + rng.uniform(-40.0, 40.0, (len(colours), 3)) * (0.0 if grey else 1.0)
    return _Palette(np.clip(np.broadcast_to(colours, (len(colours), 3)), 0.0, 255.0), grey)


def _across(length: int, knots: int) -> Floats:
    """Return weights (length, knots) of linear interpolation between evenly spaced knots."""
    at = np.linspace(0.0, knots - 1.0, length)[:, None]
    return np.maximum(0.0, 1.0 - np.abs(at - np.arange(knots)[None, :]))


def _noise(rng: Rng, width: int, height: int) -> Floats:
    """Return octaves of smooth noise (height, width), 0 to 1; blotchy or stretched."""
    cell = rng.uniform(24.0, 120.0)
    stretch = (1.0, 1.0, 4.0, 0.25)[rng.randint(4)]
    rough = rng.uniform(0.3, 0.75)
    total = np.zeros((height, width))
    weight = 1.0
    for _ in range(2 + rng.randint(3)):
        down = 2 + int(height / cell)
        along = 2 + int(width / (cell * stretch))
        knots = rng.random_sample((min(down, height), min(along, width)))
        total += weight * (
            _across(height, knots.shape[0]) @ knots @ _across(width, knots.shape[1]).T
        )
        weight *= rough
        cell /= 2.2
    low = total.min()
    return np.asarray((total - low) / max(float(total.max() - low), 1e-9))


def _coloured(field: Floats, palette: _Palette) -> Floats:
    """Map values from 0 to 1 to colours between those of the palette: (height, width, 3)."""
    stops = np.linspace(0.0, 1.0, len(palette.colours))
    flat = field.ravel()
    lines = [np.interp(flat, stops, palette.colours[:, channel]) for channel in range(3)]
    return np.stack(lines, axis=-1).reshape(*field.shape, 3)


# --- grounds --------------------------------------------------------------------------------------


def _smooth(rng: Rng, width: int, height: int, palette: _Palette) -> Floats:
    return _coloured(_noise(rng, width, height), palette)


def _wall(rng: Rng, width: int, height: int, palette: _Palette) -> Floats:
    """Paint one colour with light from one side and a little noise."""
    x = np.linspace(-0.5, 0.5, width)[None, :]
    y = np.linspace(-0.5, 0.5, height)[:, None]
    light = rng.uniform(-70.0, 70.0) * x + rng.uniform(-70.0, 70.0) * y
    light = light + (_noise(rng, width, height) - 0.5) * rng.uniform(0.0, 30.0)
    return palette.pick(rng) + light[..., None]


def _horizon(rng: Rng, width: int, height: int, palette: _Palette) -> Floats:
    """Paint a smooth upper part, a rough lower part, and a crooked line between them."""
    line = rng.uniform(0.25, 0.8) * height
    ridge = _noise(rng, width, 1)[0] * rng.uniform(0.0, 0.4) * height
    soft = rng.uniform(0.5, 6.0)
    below = np.clip((np.arange(height)[:, None] - (line - ridge)[None, :]) / soft, 0.0, 1.0)
    sky = _wall(rng, width, height, palette)
    ground = _smooth(rng, width, height, palette)
    return np.asarray(sky + (ground - sky) * below[..., None])


def _silhouette(rng: Rng, width: int, height: int, palette: _Palette) -> Floats:
    """Paint two tones with a hard, winding border."""
    share = np.clip((_noise(rng, width, height) - rng.uniform(0.35, 0.65)) * 40.0, 0.0, 1.0)
    tone = palette.pick(rng)
    other = np.full(3, rng.uniform(0.0, 255.0))
    return np.asarray(tone + (other - tone) * share[..., None])


def _stripes(rng: Rng, width: int, height: int, palette: _Palette) -> Floats:
    """Paint planks, fences, fabric: soft lines in any direction, bent a little."""
    x = np.arange(width)[None, :]
    y = np.arange(height)[:, None]
    across, down = rng.uniform(-1.0, 1.0, 2)
    period = rng.uniform(8.0, 60.0)
    phase = (across * x + down * y) / period + _noise(rng, width, height) * rng.uniform(0.0, 1.5)
    wave = np.abs(phase - np.floor(phase) - 0.5) * 2.0
    sharp = rng.uniform(1.0, 8.0)
    return _coloured(np.clip((wave - 0.5) * sharp + 0.5, 0.0, 1.0), palette)


_Ground = Callable[[Rng, int, int, _Palette], Floats]
_GROUNDS: tuple[_Ground, ...] = (_smooth, _wall, _wall, _horizon, _silhouette, _stripes)


# --- things ---------------------------------------------------------------------------------------


class _Patch(NamedTuple):
    """A part of a canvas: its corner, and coordinates relative to the middle of a thing."""

    top: int
    left: int
    x: Floats
    y: Floats


def _patch(canvas: Floats, x: float, y: float, reach: float) -> _Patch:
    height, width, _ = canvas.shape
    left = max(int(x - reach), 0)
    right = min(int(x + reach) + 1, width)
    top = max(int(y - reach), 0)
    bottom = min(int(y + reach) + 1, height)
    columns = np.arange(left, max(right, left))
    rows = np.arange(top, max(bottom, top))
    return _Patch(top, left, columns[None, :] - x, rows[:, None] - y)


def _turn(rng: Rng) -> tuple[float, float]:
    """Return a random direction as a vector of length 1."""
    a, b = rng.uniform(-1.0, 1.0, 2) + 1e-6
    length = float(np.sqrt(a * a + b * b))
    return float(a) / length, float(b) / length


def _oval(rng: Rng, x: Floats, y: Floats, half: float) -> Floats:
    """Return the signed distance in pixels, negative inside, to an oval longer than wide."""
    a, b = _turn(rng)
    along = a * x + b * y
    across = (a * y - b * x) * rng.uniform(1.6, 4.0)
    return np.sqrt(along * along + across * across) - half


def _bar(rng: Rng, x: Floats, y: Floats, half: float) -> Floats:
    """Return the signed distance to a rectangle: a post, a limb, a window."""
    a, b = ((1.0, 0.0), (0.0, 1.0), _turn(rng))[rng.randint(3)]
    along = np.abs(a * x + b * y)
    across = np.abs(a * y - b * x)
    return np.maximum(along - half, across - half / rng.uniform(1.8, 12.0))


_ANGLES = {count: 2 * np.pi * np.arange(count) / count for count in (5, 6, 7)}
_CORNERS = {count: np.stack([np.cos(at), np.sin(at)]) for count, at in _ANGLES.items()}


def _stone(rng: Rng, x: Floats, y: Floats, half: float) -> Floats:
    """Return the signed distance to a crooked polygon with five corners or more."""
    normals = _CORNERS[5 + rng.randint(3)]
    a, b = _turn(rng)
    along = a * x + b * y
    across = (a * y - b * x) * rng.uniform(1.0, 2.0)
    reach = half * np.asarray(rng.uniform(0.65, 1.0, normals.shape[1]))
    nx, ny = normals[:, :, None, None]
    sides = reach[:, None, None]
    return np.asarray((nx * along + ny * across - sides).max(axis=0))


def _repeated(distances: Floats, pitch: float) -> Floats:
    """Return distances to the nearest of middles that lie ``pitch`` apart."""
    return (distances / pitch - np.floor(distances / pitch) - 0.5) * pitch


_OUTLINES = (_oval, _oval, _bar, _bar, _stone)


def _put(rng: Rng, canvas: Floats, palette: _Palette) -> None:
    """Paint one thing, or a row of the same thing, with a shade and a texture."""
    height, width, _ = canvas.shape
    share = rng.random_sample()
    half = 5.0 + 0.5 * max(width, height) * share * share
    soft = rng.uniform(1.0, 4.0) if rng.randint(4) else rng.uniform(4.0, 20.0)
    x = rng.uniform(0.0, width)
    y = rng.uniform(0.0, height)
    patch = _patch(canvas, x, y, half + soft)
    rows = patch.y.shape[0]
    columns = patch.x.shape[1]
    if rows < 2 or columns < 2:
        return
    across = patch.x
    down = patch.y
    if rng.randint(5) == 0:
        # Bricks, windows, a crowd: the same thing again and again.
        pitch = max(half * rng.uniform(0.3, 0.6), 6.0)
        across = _repeated(across, pitch)
        down = _repeated(down, pitch)
        half = pitch * 0.45
        soft = min(soft, 2.0)
    outline = _OUTLINES[rng.randint(len(_OUTLINES))]
    cover = np.clip(0.5 - outline(rng, across, down, half) / soft, 0.0, 1.0)[..., None]
    light = rng.uniform(-45.0, 45.0) * patch.x / half + rng.uniform(-45.0, 45.0) * patch.y / half
    if rng.randint(2):
        light = light + (_noise(rng, columns, rows) - 0.5) * rng.uniform(10.0, 110.0)
    under = canvas[patch.top : patch.top + rows, patch.left : patch.left + columns]
    under += (palette.pick(rng) + light[..., None] - under) * cover


# --- the whole ------------------------------------------------------------------------------------


def _canvas(rng: Rng, size: Size) -> Floats:
    width, height = size
    palette = _palette(rng)
    canvas = _GROUNDS[rng.randint(len(_GROUNDS))](rng, width, height, palette).copy()
    for _ in range(rng.randint(0, 15)):
        _put(rng, canvas, palette)
    return canvas


def _finished(rng: Rng, canvas: Floats) -> Pixels:
    """Apply light, contrast, dull colours, dark corners and grain, as a camera does."""
    height, width, _ = canvas.shape
    canvas = (canvas - 128.0) * rng.uniform(0.5, 1.3) + 128.0 + rng.uniform(-50.0, 50.0)
    canvas += (canvas.mean(axis=2, keepdims=True) - canvas) * rng.uniform(0.0, 0.9)
    if rng.randint(4) == 0:
        x = np.linspace(-1.0, 1.0, width)[None, :]
        y = np.linspace(-1.0, 1.0, height)[:, None]
        canvas *= (1.0 - rng.uniform(0.1, 0.35) * (x * x + y * y))[..., None]
    if rng.randint(3) == 0:
        # The mean of a pixel and its neighbours: out of focus.
        canvas[1:-1] = (canvas[:-2] + 2.0 * canvas[1:-1] + canvas[2:]) / 4.0
        canvas[:, 1:-1] = (canvas[:, :-2] + 2.0 * canvas[:, 1:-1] + canvas[:, 2:]) / 4.0
    if rng.randint(2):
        grain = np.frombuffer(rng.bytes(width * height), dtype=np.uint8).reshape(height, width, 1)
        canvas += (grain / 255.0 - 0.5) * rng.uniform(4.0, 50.0)
    return as_pixels(canvas)
