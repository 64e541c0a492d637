"""What the scene cache saves of an HR-InsDet pass.

``pytest benchmarks --benchmark-enable`` prints the seconds; without that flag it is a quick
check that the cache saves anything at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from PIL import Image

from vlmeval_findit.models.scene_cache import CachedScene, SceneCache, make

Asked = TypeVar("Asked")
SCENE = (8192, 6144)
SENT = (2048, 1536)
QUERIES_A_SCENE = 8
"""HR-InsDet asks 8 (easy) to 24 (hard)."""


def synthetic_scene(path: Path, seed: int) -> Path:
    """Smooth shapes with some grain, so that the JPEG is as hard to decode as a photograph's."""
    rng = np.random.default_rng(seed)
    smooth = Image.fromarray(rng.integers(0, 255, (48, 64, 3), dtype=np.uint8)).resize(SCENE)
    grain = rng.integers(-12, 13, (512, 512, 1), dtype=np.int16)
    tiled = np.tile(grain, (SCENE[1] // 512, SCENE[0] // 512, 1))
    pixels = np.clip(np.asarray(smooth, dtype=np.int16) + tiled, 0, 255).astype(np.uint8)
    Image.fromarray(pixels).save(path, "JPEG", quality=90)
    return path


def seconds(get: Callable[[Asked], object], scenes: Sequence[Asked], queries: int) -> float:
    start = time.perf_counter()
    for _ in range(queries):
        for scene in scenes:
            get(scene)
    return time.perf_counter() - start


def test_a_pass_over_large_scenes(
    tmp_path: Path, measures: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    count, queries = (2, QUERIES_A_SCENE) if measures else (1, 1)
    scenes = [CachedScene(synthetic_scene(tmp_path / f"{i}.jpg", i), SENT) for i in range(count)]
    cache = SceneCache(tmp_path / "cache")
    without, with_it = seconds(make, scenes, queries), seconds(cache.encoded, scenes, queries)
    if measures:
        with capsys.disabled():
            print(
                f"\n{count * queries} queries in {count} scenes of {SCENE[0]}x{SCENE[1]}, sent as "
                f"{SENT[0]}x{SENT[1]}: {without:.1f} s on images without the cache, "
                f"{with_it:.1f} s with it, {without / with_it:.1f} times less"
            )
    # Ideally the ratio is the queries a scene; half of it allows for a busy machine.
    assert not measures or without / with_it > queries / 2
    assert cache.encoded(scenes[0]) == make(scenes[0])
