"""Print a hash of how boxes with many ties are matched, to compare versions of numpy and scipy.

``python tests/support/matched_ties.py`` needs nothing but the package.
"""

from __future__ import annotations

import hashlib
import random

import numpy as np
import scipy

from vlmeval_findit.boxes import ParsedReply, Truth, match

QUERIES = 20_000
SCALES = (1, 7.3, 1 / 3)
Box = tuple[float, float, float, float]


def box(generator: random.Random, grid: int) -> Box:
    """Return a box with corners on a coarse grid, so that many IoUs are equal."""
    x, y = generator.randrange(grid), generator.randrange(grid)
    width, height = generator.randrange(1, grid), generator.randrange(1, grid)
    scale = generator.choice(SCALES)
    return (x * scale, y * scale, (x + width) * scale, (y + height) * scale)


def values(number: int, generator: random.Random) -> list[object]:
    """Return the boxes, IoUs, hits and assignment of one query as plain values."""
    grid = generator.choice((2, 3, 4, 6, 30))
    # Of some queries no table of all costs is made.
    predicted, true = (900, 700) if number % 2000 == 0 else (generator.randrange(14), 13)
    labels = generator.choice((("a",), ("a", "b")))

    def side(count: int) -> tuple[tuple[Box, ...], tuple[int, ...], tuple[str, ...]]:
        boxes = tuple(box(generator, grid) for _ in range(count))
        return boxes, (0,) * count, tuple(generator.choice(labels) for _ in range(count))

    boxes, frames, names = side(predicted)
    reading = ParsedReply(boxes=boxes, frames=frames, labels=names, reason=None)
    (matched,) = match([reading], [Truth(*side(true))])
    return [np.asarray(value).tolist() for value in (matched.ious, matched.hits, matched.assigned)]


def main() -> None:
    generator = random.Random(7)
    digest = hashlib.sha256()
    for number in range(QUERIES):
        digest.update(repr(values(number, generator)).encode())
    versions = f"numpy {np.__version__}, scipy {scipy.__version__}"
    print(f"{QUERIES:,} queries, {versions}: {digest.hexdigest()[:16]}")


if __name__ == "__main__":
    main()
