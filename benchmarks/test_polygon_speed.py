"""COCO's polygons become run lengths in at most twice the time that pycocotools takes.

``python -m pytest benchmarks/test_polygon_speed.py --benchmark-enable`` measures it: as an import
fills them, many at once, against pycocotools an object at a time, which is all that it offers.
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

import numpy as np
import pytest

from vlmeval_findit.data import OBJECTS_AT_ONCE, Outlines, fill_outlines, segmentation_of_coco

SIZE = (640, 480)
OBJECTS = 2000
ROUNDS = 12
MOST = 2.0
"""How many times as long as pycocotools."""


def outlines(points: int) -> list[list[float]]:
    """Return polygons through random points of boxes that are 20 to 100 pixels wide."""
    generator = np.random.default_rng(0)
    found = []
    for _ in range(OBJECTS):
        corner = generator.integers(0, 380, 2)
        sides = generator.integers(20, 100, 2)
        found.append((corner + generator.random((points, 2)) * sides).round(2).ravel().tolist())
    return found


def ratio_of(ours: Callable[[], object], theirs: Callable[[], object]) -> float:
    """Return how many times as long one takes: of the least processor times of rounds in turn."""
    times: dict[Callable[[], object], list[float]] = {ours: [], theirs: []}
    for _ in range(ROUNDS):
        for run, of_run in times.items():
            begin = process_time()
            run()
            of_run.append(process_time() - begin)
    return min(times[ours]) / min(times[theirs])


@pytest.mark.parametrize("points", [20, 60, 200])
def test_polygons_take_at_most_twice_the_time_of_pycocotools(benchmark, points: int) -> None:
    if benchmark.disabled:
        pytest.skip("a ratio of times: --benchmark-enable")
    masks = pytest.importorskip("pycocotools.mask")
    polygons = outlines(points)

    def theirs() -> None:
        for polygon in polygons:
            masks.merge(masks.frPyObjects([polygon], SIZE[1], SIZE[0]))

    def ours() -> None:
        for first in range(0, OBJECTS, OBJECTS_AT_ONCE):
            several = polygons[first : first + OBJECTS_AT_ONCE]
            stated = [segmentation_of_coco([polygon], SIZE, "a.json") for polygon in several]
            fill_outlines([each for each in stated if isinstance(each, Outlines)])

    ratio = ratio_of(ours, theirs)
    benchmark.extra_info["times as long as pycocotools"] = round(ratio, 2)
    benchmark.pedantic(ours, rounds=1)
    assert ratio <= MOST, f"{ratio:.2f} times as long as pycocotools"
