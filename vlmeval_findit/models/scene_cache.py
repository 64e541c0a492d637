"""Large scenes, decoded and resized once a size that is sent, and kept on disk.

HR-InsDet asks about a thousand things in 40 to 120 scenes of 8192x6144 pixels: without a cache a
run decodes each of them up to two dozen times.  The cache is bounded, what was not used for longest
goes first, and any number of processes may share it.

What is sent to servers is made here (:func:`make`); what a checkpoint's own processor makes of a
scene is kept in the same folder, see :mod:`.local.large_pictures`.
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
from ..core.image_files import decode
from ..core.lock import alone
from ..core.places import lmu_data_root

log = logging.getLogger(__name__)

DEFAULT_LIMIT = 6 << 30
"""Bytes on disk: the 160 scenes of HR-InsDet as the largest that a row of the model table sends.

Those are 12.8 megapixels of three bytes, 5.7 GiB together.  The rows of HR-InsDet do not come scene
by scene, so a folder that holds only some of the scenes would be asked for the others.
"""

_LOCKS = 64
"""Lock files that all keys share: two keys on one lock wait for each other, no more."""


JPEG_QUALITY = 95

FORMATS: Mapping[str, Mapping[str, Any]] = {"PNG": {}, "JPEG": {"quality": JPEG_QUALITY}}
"""In which form a scene is kept: PNG loses nothing, JPEG is what many servers are sent."""


@dataclass(frozen=True, slots=True)
class CachedScene:
    """What is asked for: a file, the size in pixels (width, height) that is sent, the format."""

    path: Path
    size: tuple[int, int]
    format: str = "PNG"


def key_of(path: Path, *made: object) -> str:
    """Names what is made of a file as it is now, by what is done to it.

    Another file at this path, or the file changed, is another key.

    Raises:
        OSError: the file is not there.
    """
    path = path.resolve()
    state = path.stat()
    identity = (str(path), state.st_size, state.st_mtime_ns, *made)
    return hashlib.sha256(repr(identity).encode()).hexdigest()


def make(scene: CachedScene) -> bytes:
    """Decode, resize and encode a scene, without any cache.

    Pixels are those of the file as it is stored; its profile and orientation do not go with them.

    Raises:
        OSError: the file is no image, or damaged.
    """
    image = decode(scene.path)
    if image.size != scene.size:
        image = image.resize(scene.size, Image.Resampling.LANCZOS)
    image.info.clear()
    buffer = io.BytesIO()
    image.save(buffer, scene.format, **FORMATS[scene.format])
    return buffer.getvalue()


LARGE = 16_000_000
"""Pixels from which on a file is kept: below, decoding costs less than it takes to look."""


def encoded(scene: CachedScene, original: tuple[int, int]) -> bytes:
    """The bytes of an image that is sent: of a large file from the cache, else made anew.

    Args:
        scene: what is asked for.
        original: the file's own size in pixels.
    """
    limit = limit_of_runs()
    if limit == 0 or scene.size == original or not is_large(original):
        return make(scene)
    return SceneCache(limit=limit).encoded(scene)


def is_large(size: tuple[int, int]) -> bool:
    """Whether a file of this size (w, h) in pixels is worth keeping."""
    return size[0] * size[1] >= LARGE


def limit_of_runs() -> int:
    """The limit of the runs' cache in bytes: ``FINDIT_SCENES_MB`` (in MiB); 0 switches it off."""
    return int(os.environ.get("FINDIT_SCENES_MB") or DEFAULT_LIMIT >> 20) << 20


class SceneCache:
    """Scenes as they are sent, as files in a folder.

    Args:
        folder: where to keep them (default: ``<LMUData>/findit_scenes``).
        limit: the most bytes that are kept.

    Every scene is made once, also when several processes ask for it at the same moment: locks of
    the system, which lets go of them when a process dies.  Files appear whole or not at all.  A use
    is marked in the file's time stamp, so all processes agree on what was not used for longest.
    Where the disk is full, scenes are served and not kept.
    """

    def __init__(self, folder: Path | None = None, limit: int = DEFAULT_LIMIT) -> None:
        self._folder = lmu_data_root() / "findit_scenes" if folder is None else folder
        self._limit = limit
        self._locks = self._folder / "locks"
        self._locks.mkdir(parents=True, exist_ok=True)

    def encoded(self, scene: CachedScene) -> bytes:
        """The scene as a file's bytes, in its format and size.  Raises what :func:`make` raises."""
        return self.kept(key_of(scene.path, scene.size, scene.format), lambda: make(scene))

    def kept(self, key: str, made: Callable[[], bytes]) -> bytes:
        """What is kept by a key (:func:`key_of`), else what ``made`` returns, from now on kept.

        Raises:
            Exception: whatever ``made`` raises; nothing is kept then.
        """
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
        """Let go of what is kept by a key."""
        self._path(key).unlink(missing_ok=True)

    def size(self) -> int:
        """Bytes that are kept."""
        return sum(file.size for file in _files(self._folder))

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}{_SUFFIX}"

    def _keep(self, path: Path, data: bytes) -> None:
        if len(data) > self._limit:
            return  # it would push out everything else and itself
        with alone(self._locks / "limit"):
            self._make_room(len(data))
            try:
                write_once(path, data)
            except OSError as error:
                log.warning("FindIt: a large scene cannot be kept in %s: %s", self._folder, error)

    def _make_room(self, size: int) -> None:
        """Let go of what was not used for longest, until so many bytes more are within the limit.

        Under the lock nobody else writes, so a file that is not whole was left by the dead.
        """
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
        with suppress(FileNotFoundError):  # another process has just made room
            state = path.stat()
            yield _File(state.st_mtime_ns, state.st_size, path)


def _used(path: Path) -> bytes | None:
    """The content of a kept file, marked as used now; None where it is not kept."""
    try:
        data = path.read_bytes()
        os.utime(path)
    except FileNotFoundError:
        return None
    return data
