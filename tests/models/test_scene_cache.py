"""The cache of large scenes: bounded, least recently used first, safe for several processes."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from paths import ROOT
from PIL import Image

from vlmeval_findit.core.image_files import ImageFileError, from_bytes
from vlmeval_findit.models import scene_cache
from vlmeval_findit.models.scene_cache import CachedScene, SceneCache, make


def photograph(path: Path, seed: int = 0, size: tuple[int, int] = (160, 120)) -> Path:
    pixels = np.random.default_rng(seed).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path, "JPEG", quality=90)
    return path


def stored(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.scene"))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[CachedScene]:
    calls: list[CachedScene] = []

    def counted(scene: CachedScene) -> bytes:
        calls.append(scene)
        return make(scene)

    monkeypatch.setattr(scene_cache, "make", counted)
    return calls


def test_a_scene_is_made_once_a_size_and_format(tmp_path: Path, made: list[CachedScene]) -> None:
    cache = SceneCache(tmp_path / "cache")
    path = photograph(tmp_path / "a.jpg")
    for _ in range(3):
        for size in ((80, 60), (40, 30)):
            for kind in ("PNG", "JPEG"):
                assert from_bytes(cache.encoded(CachedScene(path, size, kind))).size == size
    assert len(made) == 4


def test_png_keeps_exactly_the_pixels_of_a_run_without_the_cache(tmp_path: Path) -> None:
    path = photograph(tmp_path / "a.jpg")
    with Image.open(path) as picture:
        plain = picture.convert("RGB").resize((80, 60), Image.Resampling.LANCZOS)
    cached = from_bytes(SceneCache(tmp_path / "cache").encoded(CachedScene(path, (80, 60))))
    assert cached.tobytes() == plain.tobytes()


def test_another_file_at_the_same_path_is_made_again(
    tmp_path: Path, made: list[CachedScene]
) -> None:
    cache = SceneCache(tmp_path / "cache")
    path = photograph(tmp_path / "a.jpg", seed=1)
    before = cache.encoded(CachedScene(path, (80, 60)))
    photograph(path, seed=2)
    os.utime(path, ns=(1, 1))
    assert cache.encoded(CachedScene(path, (80, 60))) != before
    assert len(made) == 2


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path, made: list[CachedScene]) -> None:
    paths = [photograph(tmp_path / f"{i}.jpg", seed=i) for i in range(4)]
    item = len(make(CachedScene(paths[0], (80, 60))))
    cache = SceneCache(tmp_path / "cache", limit=int(item * 3.5))
    for i in (0, 1, 2, 0, 3):  # 3 pushes 1 out: 0 was used after it
        cache.encoded(CachedScene(paths[i], (80, 60)))
    made.clear()
    for i in (0, 2, 3):
        cache.encoded(CachedScene(paths[i], (80, 60)))
    assert made == []
    cache.encoded(CachedScene(paths[1], (80, 60)))
    assert len(made) == 1


def test_the_limit_holds_after_every_scene(tmp_path: Path) -> None:
    cache = SceneCache(tmp_path / "cache", limit=60_000)
    for i in range(12):
        scene = CachedScene(photograph(tmp_path / f"{i}.jpg", seed=i), (40 + 5 * i, 60))
        assert cache.encoded(scene)
        assert stored(tmp_path / "cache") <= 60_000
    assert stored(tmp_path / "cache") > 20_000


def test_a_scene_larger_than_the_limit_is_served_and_not_kept(tmp_path: Path) -> None:
    cache = SceneCache(tmp_path / "cache", limit=100)
    assert from_bytes(
        cache.encoded(CachedScene(photograph(tmp_path / "a.jpg"), (80, 60)))
    ).size == (80, 60)
    assert stored(tmp_path / "cache") == 0


def test_threads_that_ask_at_once_make_it_once(tmp_path: Path, made: list[CachedScene]) -> None:
    cache = SceneCache(tmp_path / "cache")
    scene = CachedScene(photograph(tmp_path / "a.jpg", size=(800, 600)), (80, 60))
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: cache.encoded(scene), range(16)))) == 1
    assert len(made) == 1


PROCESS = """
import sys
from pathlib import Path
from vlmeval_findit.core.image_files import from_bytes
from vlmeval_findit.models import scene_cache
folder, names = Path(sys.argv[1]), sys.argv[2:]
real = scene_cache.make
def counted(scene):
    print("made", scene.path.name)
    return real(scene)
scene_cache.make = counted
cache = scene_cache.SceneCache(folder, limit=10_000_000)
for name in names * 3:
    assert from_bytes(cache.encoded(scene_cache.CachedScene(Path(name), (80, 60)))).size == (80, 60)
"""


def test_processes_share_it(tmp_path: Path) -> None:
    paths = [str(photograph(tmp_path / f"{i}.jpg", i, (1200, 900))) for i in range(3)]
    command = [sys.executable, "-c", PROCESS, str(tmp_path / "cache"), *paths]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) for _ in range(4)
    ]
    outputs = [process.communicate()[0] for process in running]
    assert [process.returncode for process in running] == [0] * 4
    assert sorted("".join(outputs).split()) == ["0.jpg", "1.jpg", "2.jpg", "made", "made", "made"]


KILLED = """
import os, sys
from pathlib import Path
from vlmeval_findit.core.image_files import ImageFileError
from vlmeval_findit.models.scene_cache import CachedScene, SceneCache
os.replace = lambda source, target: os._exit(9)
SceneCache(Path(sys.argv[1])).encoded(CachedScene(Path(sys.argv[2]), (80, 60)))
"""


def test_what_a_killed_process_left_is_taken_away(tmp_path: Path) -> None:
    folder, scene = tmp_path / "cache", CachedScene(photograph(tmp_path / "a.jpg"), (80, 60))
    command = [sys.executable, "-c", KILLED, str(folder), str(scene.path)]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 9
    (left,) = (path for path in folder.iterdir() if path.is_file())
    SceneCache(folder).encoded(scene)
    assert not left.exists()
    assert len([path for path in folder.iterdir() if path.is_file()]) == 1


def test_a_file_that_is_no_image_is_said_and_not_kept(tmp_path: Path) -> None:
    (tmp_path / "page.jpg").write_bytes(b"<html>")
    cache = SceneCache(tmp_path / "cache")
    with pytest.raises(ImageFileError, match=r"page\.jpg is a web page"):
        cache.encoded(CachedScene(tmp_path / "page.jpg", (80, 60)))
    assert stored(tmp_path / "cache") == 0


def test_what_is_sent_of_large_files_is_kept_and_of_small_ones_not(
    tmp_path: Path, made: list[CachedScene], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LMUData", str(tmp_path))
    monkeypatch.setattr(scene_cache, "LARGE", 160 * 120)
    large, small = photograph(tmp_path / "a.jpg"), photograph(tmp_path / "b.jpg", 1, (80, 60))
    for _ in range(3):
        kept = scene_cache.encoded(CachedScene(large, (40, 30)), (160, 120))
        scene_cache.encoded(CachedScene(small, (40, 30)), (80, 60))
        scene_cache.encoded(CachedScene(large, (160, 120)), (160, 120))
    assert [scene.path.name for scene in made].count("a.jpg") == 1 + 3
    assert [scene.path.name for scene in made].count("b.jpg") == 3
    monkeypatch.setenv("FINDIT_SCENES_MB", "0")
    assert scene_cache.encoded(CachedScene(large, (40, 30)), (160, 120)) == kept


def test_what_a_provider_is_sent_comes_from_the_cache(
    tmp_path: Path, made: list[CachedScene], monkeypatch: pytest.MonkeyPatch
) -> None:
    from vlmeval_findit.models.http.images import for_provider

    monkeypatch.setenv("LMUData", str(tmp_path))
    monkeypatch.setattr(scene_cache, "LARGE", 160 * 120)
    path = photograph(tmp_path / "a.jpg")
    first = for_provider(path, 80)
    again = for_provider(path, 80)
    assert first == again
    assert first.sent == (80, 60)
    assert len(made) == 1
