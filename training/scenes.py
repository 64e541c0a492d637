"""Which seeds are for what, and which object of a scene is seen at every pixel."""

from __future__ import annotations

from vlmeval_findit.data.rendered import drawing
from vlmeval_findit.data.rendered.scene import Owners, Scene, composed, paint_owners, places

SPLITS = {
    "test": range(0, 2**20),
    "validation": range(2**20, 2**21),
    "train": range(2**21, 2**32),
}
"""Seeds by split; no seed is in two, so no model is asked about what it was trained on."""


def scene_and_owners(
    seed: int, count: tuple[int, int] = (3, 5), size: tuple[int, int] | None = None
) -> tuple[Scene, Owners]:
    """Return the scene of a seed, and which of its objects is seen at every pixel."""
    canvas, placings, things = composed(seed, count, size)
    shown = Scene(drawing.as_pixels(canvas), things)
    return shown, paint_owners(canvas, places(placings), [(0, 0, 0)] * len(placings))
