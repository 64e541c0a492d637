"""Disk cache of large scenes, resized to the size that servers are sent.

HR-InsDet asks a thousand questions about 40 to 120 scenes of 8192x6144 pixels: without a cache a
run decodes each up to two dozen times. The cache is bounded (least recently used goes first) and
safe to share between processes.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    """Return an image's bytes, from the cache if the file's ``original`` size (w, h) is large.

    ``FINDIT_SCENES_MB`` limits the cache in MiB; 0 switches it off.
    """
    limit = int(os.environ.get("FINDIT_SCENES_MB") or DEFAULT_LIMIT >> 20) << 20
    if limit == 0 or scene.size == original or original[0] * original[1] < LARGE:
        return make(scene)
    return SceneCache(limit=limit).encoded(scene)


class SceneCache:
    """Encoded scenes as files in a folder, the least recently used of which are deleted.

    Each scene is made once, also across processes, by system locks that are released when a process
    dies. Files are written atomically; on a full disk scenes are not stored.

    Args:
        folder: default: ``<LMUData>/findit_scenes``.
        limit: most bytes to store.
    """

    def __init__(self, folder: Path | None = None, limit: int = DEFAULT_LIMIT) -> None:
        self._folder = lmu_data_root() / "findit_scenes" if folder is None else folder
        self._limit = limit
        self._locks = self._folder / "locks"
        self._locks.mkdir(parents=True, exist_ok=True)

    def encoded(self, scene: CachedScene) -> bytes:
        """Return the scene in its format and size; raises as :func:`make`."""
        source = scene.path.resolve()
        state = source.stat()
        identity = (str(source), state.st_size, state.st_mtime_ns, scene.size, scene.format)
        key = hashlib.sha256(repr(identity).encode()).hexdigest()
        path = self._folder / f"{key}{_SUFFIX}"
        data = _read(path)
        if data is None:
            with alone(self._locks / f"{int(key[:8], 16) % _LOCKS:02}"):
                data = _read(path)
                if data is None:
                    data = make(scene)
                    self._store(path, data)
        return data

    def _store(self, path: Path, data: bytes) -> None:
        if len(data) > self._limit:
            return  # would evict everything else and itself
        with alone(self._locks / "limit"):
            self._make_room(len(data))
            try:
                write_once(path, data)
            except OSError as error:
                log.warning("FindIt: cannot store a large scene in %s: %s", self._folder, error)

    def _make_room(self, size: int) -> None:
        """Delete the least recently used files until ``size`` more bytes fit, and left-overs."""
        for path in self._folder.glob(f".*{_SUFFIX}.*"):
            path.unlink(missing_ok=True)
        files = []
        for path in self._folder.glob(f"*{_SUFFIX}"):
            with suppress(FileNotFoundError):  # deleted by another process
                state = path.stat()
                files.append((state.st_mtime_ns, state.st_size, path))
        total = sum(stored for _, stored, _ in files)
        for _, stored, path in sorted(files):
            if total + size <= self._limit:
                return
            path.unlink(missing_ok=True)
            total -= stored


_SUFFIX = ".scene"


def _read(path: Path) -> bytes | None:
    """Return a stored file and mark it as used; None if there is none."""
    try:
        data = path.read_bytes()
        os.utime(path)
    except FileNotFoundError:
        return None
    return data
