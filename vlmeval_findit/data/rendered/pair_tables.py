"""Tables of pairs of rendered scenes: shipped as TSV, their images rendered on first use.

``SelfRetrieval_Scenes`` has 500 pairs of the test split, ``SelfRetrieval_Scenes_mini`` 50 of the
validation split.  The files in ``shipped`` are written by ``training.pair_tables``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...benchmarks.selfretrieval.image_pairs import ImagePair, write_table
from ...core.files import write_once
from ...core.places import image_folder, lmu_data_root
from ...core.stored_png import png
from ...core.table_files import made_of, read_table
from . import drawing
from .drawing import Floats, Look, Pixels, Place, Rng
from .scene import SIZES, Stream, paint_all, rng_of
from .tables import recipe_sha256, shipped

_PAIRS = 1  # names the random numbers of a seed's pair, which are not those of its scene

_ATTRIBUTES = 5  # in which the two images of a pair may differ

Placed = tuple[float, float, float, int]
"""Where an object lies: centre x, y and half its size in pixels; the seed of its tint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRow(ImagePair):
    """A pair with how it is rendered; captions say how objects look, in the same order."""

    first: tuple[Placed, Placed]  # the object that differs, in the left and the right image
    others: tuple[Placed, ...]


def ensure(table: str) -> None:
    """Make a table and its images, unless they are up to date."""
    recipe = recipe_sha256(table)
    if made_of(lmu_data_root() / f"{table}.tsv") == recipe:
        return
    rows: list[PairRow] = read_table(shipped(table), PairRow, "installing this package again")
    folder = image_folder(table).path
    for row in rows:
        rng, size = begun(int(row.uid))
        rng.randint(_ATTRIBUTES)
        background = drawing.background(rng, *size)
        for name, caption, first in zip(row.images, row.captions or (), row.first, strict=True):
            write_once(folder / name, png(_painted(background, caption, (first, *row.others))))
    write_table(lmu_data_root(), table, rows, {"source": "rendered", "source_sha256": recipe})


def begun(seed: int) -> tuple[Rng, tuple[int, int]]:
    """Return the random numbers of a seed's pair and the (width, height) of its images."""
    rng = rng_of(Stream.SCENE, seed, _PAIRS)
    return rng, SIZES[rng.randint(len(SIZES))]


def _painted(background: Floats, caption: str, placed: Sequence[Placed]) -> Pixels:
    canvas = background.copy()
    objects, tints = [], []
    for words, (x, y, half, tint) in zip(caption.split("; "), placed, strict=True):
        _, _, texture, colour, shape, *_ = words.split()
        objects.append((Look(shape, colour, texture), Place(x, y, half)))
        tints.append(drawing.tinted(Rng(tint), colour))
    paint_all(canvas, objects, tints, 0.0)
    return drawing.as_pixels(canvas)
