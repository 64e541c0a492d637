"""What a command writes, as it was when the command began: of two at once, the second is refused.

A command remembers the places that it will write. Whoever writes there looks whether another
command did so meanwhile, as otherwise the last would replace the others in silence.
"""

from __future__ import annotations

import filecmp
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

_Alike = Callable[[Path, Path], bool]
_State = tuple[int, ...] | None  # None: there is no such file

_same_bytes: _Alike = partial(filecmp.cmp, shallow=False)

# Of the command that runs
_states: dict[Path, _State] = {}
_folders: set[Path] = set()
_alike: dict[Path, _Alike] = {}


class WrittenMeanwhileError(ValueError):
    """Another command wrote a file while this one worked."""


@contextmanager
def remembering_places() -> Iterator[None]:
    """Let the block, a command, remember places of its own."""
    outer = dict(_states), set(_folders), dict(_alike)
    _forget()
    try:
        yield
    finally:
        _forget()
        _states.update(outer[0])
        _folders.update(outer[1])
        _alike.update(outer[2])


def _forget() -> None:
    _states.clear()
    _folders.clear()
    _alike.clear()


def remember_file(path: Path, alike: _Alike = _same_bytes) -> None:
    """Remember a file, which may not be there yet; ``alike`` files may replace each other."""
    place = _absolute(path)
    _states[place] = _state(place)
    _alike[place] = alike


def remember_folder(path: Path) -> None:
    """Remember the files of a folder, which may not be there yet; not those of folders in it."""
    folder = _absolute(path)
    _folders.add(folder)
    if folder.is_dir():
        for place in folder.iterdir():
            _states[place] = _state(place)


def check_as_before(path: Path, new: Path | None) -> None:
    """Refuse to replace a remembered file that changed, unless it is like the new one.

    Args:
        path: where the new file goes.
        new: it; None: the file is deleted.
    """
    place = _absolute(path)
    if not _is_remembered(place):
        return
    now = _state(place)
    if now is None or now == _states.get(place):
        return
    is_alike = _alike.get(place, _same_bytes)
    if new is not None and is_alike(place, new):
        return
    raise WrittenMeanwhileError(
        f"another command wrote {path} while this one worked, and that stays: type this one again"
    )


def note_written(path: Path) -> None:
    """Note that this command wrote a file, which it may write again."""
    place = _absolute(path)
    if _is_remembered(place):
        _states[place] = _state(place)


def _is_remembered(place: Path) -> bool:
    return place in _states or place.parent in _folders


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))


def _state(place: Path) -> _State:
    try:
        stat = place.stat()
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns
