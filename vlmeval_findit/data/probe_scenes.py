"""The dataset of `probe`: one large shape on a plain background, in ten sizes of image.

Which sizes and places tell conventions apart best is a study's result: small images show least
bounds, strips show rounding and padding, large images show greatest bounds and senders' limits.
Shapes and colours are those of rendered scenes.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from ..benchmarks.findit import FindItQuery, PreparedTable, write_table
from ..boxes import Corners, Truth
from ..core import sha256_of, write_once
from ..storage import image_folder, make_lmu_data_root, source_checksum
from .rendered import scene_drawing as drawing
from .rendered.scene_drawing import COLOURS, SHAPES, Masks, Pixels, Rng

# (width, height) in pixels
PROBE_SIZES = (
    (224, 224),
    (320, 240),
    (240, 320),
    (640, 128),
    (128, 640),
    (1280, 720),
    (1080, 1920),
    (2400, 1600),
    (1600, 2400),
    (4600, 1500),
)

# About where an object's centre lies, in shares of width and height: four scenes a size.
#
# The first two lie across from each other, so that half of the scenes tell a scale from an offset.
CENTRES = ((0.2, 0.3), (0.7, 0.68), (0.76, 0.22), (0.34, 0.78))

# An object's sides, from and to, in shares of width and height
SIDES = (0.12, 0.28)

_LOOKS = (("circle", "red"), ("cross", "blue"), ("ring", "green"), ("circle", "purple"))
_BACKGROUND = (208, 208, 204)
_SEED = 13
_JITTER = 0.03
# Of the two sides in shares: were they equal, some orders of numbers would look the same
_LEAST_ASPECT = 1.25
# How many times as long as wide a shape is, where the sides allow it: it is still a circle
_STRETCH = 1.3
# Pairs of sides that are drawn; the best is used
_DRAWN = 200


@dataclass(frozen=True, slots=True)
class ProbeScene:
    """An image and its one object.

    ``box`` is (x1, y1, x2, y2) of the pixels that the object covers, the far sides exclusive.
    """

    pixels: Pixels
    label: str
    box: Corners

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) in pixels."""
        return self.pixels.shape[1], self.pixels.shape[0]


PROBE_SCENE_COUNT = len(PROBE_SIZES) * len(CENTRES)  # Number of scenes that a probe shows


def probe_scene(index: int) -> ProbeScene:
    """Return the scene of a place below :data:`PROBE_SCENE_COUNT`.

    The first ten have all sizes, and so have the next ten: any multiple of ten is a design.

    >>> scene = probe_scene(3)
    >>> scene.size, scene.label, scene.box
    ((640, 128), 'the red circle', (69.0, 19.0, 155.0, 53.0))
    """
    turn, place = divmod(index, len(PROBE_SIZES))
    width, height = PROBE_SIZES[place]
    x1, y1, x2, y2 = _frame(Rng([_SEED, index]), CENTRES[turn], (width, height))
    shape, colour = _LOOKS[turn]
    pixels = np.empty((height, width, 3), np.uint8)
    pixels[:] = _BACKGROUND
    mask = _paint(pixels[y1:y2, x1:x2], shape, colour)
    rows = np.flatnonzero(mask.any(1))
    columns = np.flatnonzero(mask.any(0))
    box = (x1 + columns[0], y1 + rows[0], x1 + columns[-1] + 1, y1 + rows[-1] + 1)
    return ProbeScene(pixels, f"the {colour} {shape}", tuple(map(float, box)))  # type: ignore[arg-type]


def _frame(
    rng: Rng, centre: tuple[float, float], size: tuple[int, int]
) -> tuple[int, int, int, int]:
    """Return where an object is painted, (x1, y1, x2, y2) in pixels."""
    drawn = rng.uniform(*SIDES, (_DRAWN, 2))
    in_shares = np.abs(np.log(drawn[:, 0] / drawn[:, 1]))
    in_pixels = np.abs(np.log(drawn[:, 0] * size[0] / (drawn[:, 1] * size[1])))
    off = np.abs(in_pixels - np.log(_STRETCH))
    off += np.where(in_shares < np.log(_LEAST_ASPECT), 9.0, 0.0)
    across, down = drawn[int(np.argmin(off))].tolist()
    spans = []
    for middle, side, pixels in zip(centre, (across, down), size, strict=True):
        middle += rng.uniform(-_JITTER, _JITTER)
        spans.append((round((middle - side / 2) * pixels), round((middle + side / 2) * pixels)))
    (x1, x2), (y1, y2) = spans
    return x1, y1, x2, y2


def _paint(canvas: Pixels, shape: str, colour: str) -> Masks:
    """Fill a part of an image with a shape, in place; gives the pixels that it covers.

    :func:`.scene_drawing.paint` needs floating-point numbers and shapes as wide as high; but the
    largest of these images has seven million pixels.
    """
    height, width, _ = canvas.shape
    x = (np.arange(width) + 0.5 - width / 2)[None, :] / (width / 2)
    y = (np.arange(height) + 0.5 - height / 2)[:, None] / (height / 2)
    distance = SHAPES[shape](x, y) * min(width, height) / 2
    cover = np.clip(0.5 - distance, 0.0, 1.0)
    ink = np.asarray(COLOURS[colour], dtype=np.float64)
    canvas[:] = np.floor(canvas + (ink - canvas) * cover[..., None] + 0.5).astype(np.uint8)
    return np.asarray(cover >= 0.5)


# --- the table ------------------------------------------------------------------------------------


TABLE = "Probe"  # also the key of its image folder


def ensure_probe() -> None:
    """Make the table and its images, unless they are up to date."""
    if source_checksum(make_lmu_data_root() / f"{TABLE}.tsv") != _recipe_sha256():
        prepare_probe()


def prepare_probe() -> PreparedTable:
    """Draw the images and write the table, below the LMUData root."""
    root = make_lmu_data_root()
    folder = image_folder(TABLE).path
    queries = []
    for index in range(PROBE_SCENE_COUNT):
        query, image = _drawn(index)
        write_once(folder / query.images[0], image)
        queries.append(query)
    origin = {"source": "rendered", "source_sha256": _recipe_sha256()}
    return write_table(root, TABLE, queries, origin)


def _recipe_sha256() -> str:
    """Return a checksum of the code that decides what is drawn and asked."""
    return sha256_of(*(Path(str(file)).read_bytes() for file in (drawing.__file__, __file__)))


def _drawn(index: int) -> tuple[FindItQuery, bytes]:
    """Return the query of a scene, and its image as PNG."""
    scene = probe_scene(index)
    width, height = scene.size
    name = f"{index:02d}-{width}x{height}.png"
    # Compressed: servers limit what they are sent, and stored these would be 20 MB each.
    compressed = io.BytesIO()
    Image.fromarray(scene.pixels).save(compressed, "PNG")
    truth = Truth((scene.box,), (0,))
    return FindItQuery(index, scene.label, width, height, (name,), truth), compressed.getvalue()
