"""A copy of a folder in which commands write, put back for the next command."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path


class FreshCopy:
    """A copy of a folder that becomes as it was, without being made again.

    Args:
        source: what is copied; it stays as it is.
        folder: where; it does not exist.
        shared: names of folders in ``source`` that are linked, so that what is written there stays.
    """

    def __init__(self, source: Path, folder: Path, shared: Sequence[str] = ()) -> None:
        self.folder, self._source, self._shared = folder, source, shared
        ignored = shutil.ignore_patterns(*shared)
        shutil.copytree(source, folder, symlinks=True, ignore=ignored)
        for name in shared:
            (folder / name).symlink_to(source / name)
        self._stamps = _stamps(folder)

    def changed(self) -> list[str]:
        """Return the paths that were written, added or removed, folders before what is in them."""
        now = _stamps(self.folder)
        paths = sorted({*now, *self._stamps})
        return [path for path in paths if now.get(path) != self._stamps.get(path)]

    def put_back(self) -> None:
        """Make the folder as it was."""
        changed = self.changed()
        for path in changed:
            _remove(self.folder / path)
        for path in changed:
            if path in self._stamps:
                self._copy(path)
        if changed:
            self._stamps = _stamps(self.folder)

    def _copy(self, path: str) -> None:
        source, target = self._source / path, self.folder / path
        if path in self._shared:
            target.symlink_to(source)
        elif source.is_dir() and not source.is_symlink():
            target.mkdir()
        else:
            shutil.copy2(source, target, follow_symlinks=False)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _stamps(folder: Path) -> Mapping[str, tuple[int, ...]]:
    """Return what changes with every change of a file or link, or of a folder's mode, by paths."""
    stamps = {}
    waiting = [(str(folder), "")]
    while waiting:
        path, under = waiting.pop()
        with os.scandir(path) as entries:
            for entry in entries:
                now = entry.stat(follow_symlinks=False)
                is_folder = stat.S_ISDIR(now.st_mode)
                of_file = () if is_folder else (now.st_ino, now.st_ctime_ns)
                stamps[f"{under}{entry.name}"] = (now.st_mode, *of_file)
                if is_folder:
                    waiting.append((entry.path, f"{under}{entry.name}/"))
    return stamps
