"""Disk cache of large scenes, decoded and resized to the size that is sent.

HR-InsDet asks a thousand questions about 40 to 120 scenes of 8192x6144 pixels: without a cache a
run decodes each up to two dozen times. The cache is bounded (least recently used goes first) and
safe to share between processes.

:func:`make` makes what servers are sent; for local processors see :mod:`.local.large_images`.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

from ..core.files import write_once
from ..core.folders import lmu_data_root
from ..core.image_files import decode
from ..core.lock import alone

log = logging.getLogger(__name__)

DEFAULT_LIMIT = 6 << 30
"""Bytes: the 160 scenes of HR-InsDet at the largest size of the model table, 12.8 megapixels of
three bytes, take 5.7 GiB. Its rows are not ordered by scene, so a smaller cache would thrash.
"""

_LOCKS = 64
"""Lock files shared by all keys; a collision only waits."""


JPEG_QUALITY = 95

FORMATS: Mapping[str, Mapping[str, Any]] = {"PNG": {}, "JPEG": {"quality": JPEG_QUALITY}}
"""PNG is lossless, JPEG is what many servers are sent."""


@dataclass(frozen=True, slots=True)
class CachedScene:
    """A file, the size (width, height) in pixels to send, and the format."""

    path: Path
    size: tuple[int, int]
    format: str = "PNG"


def key_of(path: Path, *made: object) -> str:
    """Return a key of what is ``made`` of a file in its present state; OSError if it is missing."""
    path = path.resolve()
    state = path.stat()
    identity = (str(path), state.st_size, state.st_mtime_ns, *made)
    return hashlib.sha256(repr(identity).encode()).hexdigest()


def make(scene: CachedScene) -> bytes:
    """Encode the stored pixels, resized, without profile or orientation; raises OSError."""
    image = decode(scene.path)
    if image.size != scene.size:
        image = image.resize(scene.size, Image.Resampling.LANCZOS)
    image.info.clear()
    buffer = io.BytesIO()
    image.save(buffer, scene.format, **FORMATS[scene.format])
    return buffer.getvalue()


LARGE = 16_000_000
"""Pixels from which on a file is cached: below, decoding is faster."""


def encoded(scene: CachedScene, original: tuple[int, int]) -> bytes:
    """Return an image's bytes, from the cache if the file's ``original`` size (w, h) is large."""
    limit = limit_of_runs()
    if limit == 0 or scene.size == original or not is_large(original):
        return make(scene)
    return SceneCache(limit=limit).encoded(scene)


def is_large(size: tuple[int, int]) -> bool:
    """Whether a file of this size (w, h) in pixels is worth caching."""
    return size[0] * size[1] >= LARGE


def limit_of_runs() -> int:
    """Return the cache limit in bytes: ``FINDIT_SCENES_MB`` (MiB); 0 switches it off."""
    return int(os.environ.get("FINDIT_SCENES_MB") or DEFAULT_LIMIT >> 20) << 20


class SceneCache:
    """Encoded scenes as files in a folder.

    Each scene is made once, also across processes, by system locks that are released when a process
    dies. Files are written atomically. A use updates the file's time stamp. On a full disk scenes
    are not stored.

    Args:
        folder: default: ``<LMUData>/findit_scenes``.
        limit: the most bytes to store.
    """

    def __init__(self, folder: Path | None = None, limit: int = DEFAULT_LIMIT) -> None:
        self._folder = lmu_data_root() / "findit_scenes" if folder is None else folder
        self._limit = limit
        self._locks = self._folder / "locks"
        self._locks.mkdir(parents=True, exist_ok=True)

    def encoded(self, scene: CachedScene) -> bytes:
        """Return the scene in its format and size; raises as :func:`make`."""
        return self.kept(key_of(scene.path, scene.size, scene.format), lambda: make(scene))

    def kept(self, key: str, made: Callable[[], bytes]) -> bytes:
        """Return what is stored under a key, else store what ``made`` returns."""
        path = self._path(key)
        known = _used(path)
        if known is not None:
            return known
        with alone(self._locks / f"{int(key[:8], 16) % _LOCKS:02}"):
            known = _used(path)
            if known is None:
                known = made()
                self._keep(path, known)
        return known

    def drop(self, key: str) -> None:
        self._path(key).unlink(missing_ok=True)

    def size(self) -> int:
        """Return the bytes stored."""
        return sum(file.size for file in _files(self._folder))

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}{_SUFFIX}"

    def _keep(self, path: Path, data: bytes) -> None:
        if len(data) > self._limit:
            return  # would evict everything else and itself
        with alone(self._locks / "limit"):
            self._make_room(len(data))
            try:
                write_once(path, data)
            except OSError as error:
                log.warning("FindIt: a large scene cannot be kept in %s: %s", self._folder, error)

    def _make_room(self, size: int) -> None:
        """Delete the least recently used files until ``size`` more bytes fit, and left-overs."""
        for path in self._folder.glob(f".*{_SUFFIX}.*"):
            path.unlink(missing_ok=True)
        files = sorted(_files(self._folder))
        total = sum(file.size for file in files)
        for file in files:
            if total + size <= self._limit:
                return
            file.path.unlink(missing_ok=True)
            total -= file.size


_SUFFIX = ".scene"


class _File(NamedTuple):
    used: int
    size: int
    path: Path


def _files(folder: Path) -> Iterator[_File]:
    for path in folder.glob(f"*{_SUFFIX}"):
        with suppress(FileNotFoundError):  # deleted by another process
            state = path.stat()
            yield _File(state.st_mtime_ns, state.st_size, path)


def _used(path: Path) -> bytes | None:
    """Return a stored file and mark it as used; None if there is none."""
    try:
        data = path.read_bytes()
        os.utime(path)
    except FileNotFoundError:
        return None
    return data
