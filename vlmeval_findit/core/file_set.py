"""Files that take their places together: after a kill all are the old ones, or all the new ones.

New files wait in a hidden folder beside their places. A list of moves, which is renamed into that
folder when all files are whole, decides: a set without a list is thrown away, and one with a list
is finished, by whoever looks next.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from .files import all_left_behind, atomic_write, clear_left_behind, unsafe_name, waiting_place
from .lock import LockedError, locked
from .places import check_as_before, note_written
from .text_files import TextError, read_json

_FILES = "files"  # What waits, each below the name that it will have
_LOCK = "lock"  # Held by the writer: without that, the set is of a killed one
_LIST = "moves.json"
_ELSEWHERE = "elsewhere.json"


class FileSet:
    """New files of a folder, which wait for :meth:`commit`.

    Attributes:
        folder: what is written below it gets the same name below ``root``.
    """

    def __init__(self, mark: Path, root: Path, waiting: Path) -> None:
        self._mark = mark
        self._waiting = waiting
        self._elsewhere: list[str] = []
        self._moves: list[tuple[str, str]] = []
        self._deleted: list[str] = []
        self.root = root
        self.folder = waiting / _FILES
        self.folder.mkdir()

    def use(self, folder: Path) -> None:
        """Name a folder elsewhere, on the disk of other places; it is deleted with the set."""
        self._elsewhere.append(self._name(folder))
        (self._waiting / _ELSEWHERE).write_text(json.dumps(self._elsewhere), encoding="utf-8")

    def move(self, path: Path, target: Path) -> None:
        """Add a file, or a folder that is not there yet, that waits elsewhere."""
        self._moves.append((self._name(path), self._name(target)))

    def delete(self, path: Path) -> None:
        """Add a file of the old ones that is none of the new ones."""
        self._deleted.append(self._name(path))

    def commit(self, first: str = "") -> None:
        """Put all files in their places; a kill in between is made good by the next command.

        Args:
            first: the file that goes before all others, by its name in :attr:`folder`.

        Raises:
            OSError: a file cannot be moved, so that the set is not finished.
            WrittenMeanwhileError: another command wrote a file that this one remembered.
        """
        home = self._mark.parent
        with _alone_in(home):
            _settle(home)
            self._list_moves(first)
            self.check()
            values = {"moves": self._moves, "deleted": self._deleted}
            draft = self._waiting / f".{_LIST}"
            draft.write_text(json.dumps(values), encoding="utf-8")
            draft.replace(self._waiting / _LIST)
            _finish(home, self._waiting)
            for _, target in self._moves:
                note_written(home / target)

    def check(self) -> None:
        """Refuse to replace what another command wrote meanwhile; raises as :meth:`commit`."""
        for path in self._new_files():
            check_as_before(self.root / path.relative_to(self.folder), path)
        for name in self._deleted:
            check_as_before(self._mark.parent / name, None)

    def _new_files(self) -> list[Path]:
        return [path for path in self.folder.rglob("*") if not path.is_dir()]

    def _list_moves(self, first: str) -> None:
        if not self.root.exists():
            self.move(self.folder, self.root)  # All in one step
        for path in self._new_files():
            self.move(path, self.root / path.relative_to(self.folder))
        if first:
            self._moves.sort(key=lambda move: move[1] != self._name(self.root / first))

    def _name(self, path: Path) -> str:
        return Path(os.path.relpath(path, self._mark.parent)).as_posix()


@contextmanager
def new_file_set(mark: Path, root: Path) -> Iterator[FileSet]:
    """Yield an empty set of files; without a :meth:`FileSet.commit` nothing comes of it.

    Args:
        mark: a file or folder on the disk of the set, after which the folder of what waits is
            named: whoever comes to it finds what was left.
        root: the folder that the files go into, that of ``mark`` or below it.
    """
    clear_leftovers(mark)
    mark.parent.mkdir(parents=True, exist_ok=True)
    waiting, lock = _new_folder(mark)
    try:
        yield FileSet(mark, root, waiting)
    finally:
        # A set whose moves failed is finished by the next command.
        if not (waiting / _LIST).exists():
            _throw_away(mark.parent, waiting)
        lock.close()


def write_together(texts: Mapping[Path, str]) -> None:
    """Write texts to files of one folder, all at once; the first may be a stream if it is alone."""
    (first, text), *others = texts.items()
    if not others:
        with atomic_write(first) as f:
            f.write(text)
        return
    with new_file_set(first, first.parent) as files:
        for path, text in texts.items():
            with atomic_write(files.folder / path.name) as f:
                f.write(text)
        files.commit()


def clear_leftovers(path: Path) -> None:
    """Make good what killed writers left beside a file or folder."""
    clear_left_behind(path.parent)
    settle_file_sets(path)


def settle_file_sets(mark: Path) -> None:
    """Finish or throw away what killed writers left of sets beside a file or folder.

    Raises:
        OSError: the files of a set that was decided cannot be moved.
    """
    if _left(mark.parent):
        with _alone_in(mark.parent):
            _settle(mark.parent)


def _left(home: Path) -> list[Path]:
    """Return the folders of sets, of living and killed writers."""
    return [path for path in all_left_behind(home) if path.is_dir()]


def _settle(home: Path) -> None:
    for folder in _left(home):
        lock = _locked(folder)
        if lock is None:
            continue
        with lock:
            if (folder / _LIST).exists():
                _finish(home, folder)
            else:
                _throw_away(home, folder)


def _finish(home: Path, waiting: Path) -> None:
    """Do what the list of a set says; what a killed writer did of it is done."""
    values = _read_list(waiting / _LIST, dict)
    for name, target in values.get("moves", ()):
        source, place = _below(home, name), _below(home, target)
        if source is not None and place is not None and source.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            source.replace(place)
    for name in values.get("deleted", ()):
        place = _below(home, name)
        if place is not None:
            place.unlink(missing_ok=True)
    _throw_away(home, waiting)


def _throw_away(home: Path, waiting: Path) -> None:
    """Delete the folders of a set; the list goes last of all but the lock."""
    with suppress(OSError):  # of a folder that cannot be written to
        for name in _read_list(waiting / _ELSEWHERE, list):
            folder = _below(home, name)
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(waiting / _FILES, ignore_errors=True)
        shutil.rmtree(waiting, ignore_errors=True)


def _read_list(path: Path, kind: type) -> Any:
    """Return a list of a set; an empty one where it is missing, or of another program."""
    try:
        values = read_json(path)
    except (OSError, TextError):
        return kind()
    return values if isinstance(values, kind) else kind()


def _below(home: Path, name: str) -> Path | None:
    """Return a path of a list; None if it leads out of the folder: no list of ours does that."""
    return None if unsafe_name(name) else home / name


# --- locks ----------------------------------------------------------------------------------------


def _new_folder(mark: Path) -> tuple[Path, ExitStack]:
    """Make the folder of a set, and lock it."""
    while True:
        folder = waiting_place(mark)
        folder.mkdir()
        lock = _locked(folder)
        if lock is not None:
            return folder, lock


def _locked(folder: Path) -> ExitStack | None:
    """Lock a set, and return what frees it; None if somebody else has it, or it is gone."""
    path = folder / _LOCK
    with ExitStack() as lock:
        try:
            file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
            lock.callback(os.close, file)
            lock.enter_context(locked(file, path, wait=False, lease=folder / f"{_LOCK}.lease"))
        except (FileNotFoundError, LockedError):
            return None
        if os.fstat(file).st_nlink:
            return lock.pop_all()
    return None


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Let one process at a time move files of sets; a kill frees it."""
    file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with locked(file, folder, wait=True, lease=folder / ".moves.lease"):
            yield
    finally:
        os.close(file)
