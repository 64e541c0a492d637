"""What is sealed of a journal, for the process that writes it: added to, and kept in few files.

A segment is there when it has its name; only then does an empty file take the journal's place.
Whoever is killed between the two leaves the same lines twice (:func:`.reading.snapshot`
sees that).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ...core.files import left_behind, replacing
from .keys import (
    MERGED,
    Keys,
    Line,
    SpoiltKeysError,
    keys_path,
    merge_keys,
    rows_within,
    write_keys,
    write_renumbered,
)
from .sealed_view import SealedView, rows_of
from .segments import Segment, path_of, segment_at, segments_of, write_segment
from .side import SealedSide, is_alone


class Sealed(SealedView):
    """The segments of a journal.  Only who has the lock of the journal opens them.

    Args:
        journal: the journal.

    Raises:
        OSError: they cannot be read, or their files of keys not be written.
    """

    def __init__(self, journal: Path) -> None:
        super().__init__(journal, segments_of(journal))
        known = {keys.path for keys in self._keys}
        if self._folder.is_dir():
            for path in self._folder.iterdir():
                if left_behind(path) is not None or is_alone(path, known):
                    path.unlink()

    def add(self, file: int, size: int, noted: Iterable[tuple[str, Line]]) -> None:
        """Seal the first ``size`` bytes of an open journal, whose records are ``noted`` in their
        order.

        Raises:
            OSError: there is no room; nothing is sealed.
        """
        number = self._segments[-1].number + 1 if self._segments else 1
        path = path_of(self._folder, number)
        self._folder.mkdir(exist_ok=True)
        with replacing(path) as temporary:
            made, places = write_segment(temporary, file, size, (path, number))
            rows = rows_within(noted, number, places)
            keys = Keys(write_keys(keys_path(self._folder, [made]), [made], rows), [made])
        _sync_folder(self._folder)
        self._segments.append(made)
        self._keys.append(keys)

    def adopt(self, side: SealedSide) -> None:
        """Make what was sealed beside the journal its next segment.

        Raises:
            OSError: there is no room for its keys; the segment is there all the same.
        """
        before = segment_at(side.path, side.number)
        number = self._segments[-1].number + 1 if self._segments else 1
        made = before._replace(number=number, path=path_of(self._folder, number))
        where = keys_path(self._folder, [made])
        try:
            with Keys(side.keys, [before]) as old:
                write_renumbered(where, made, old)
        except (SpoiltKeysError, FileNotFoundError):
            write_keys(where, [made], rows_of(before._replace(number=number)))
        # Only now is it part of the journal: keys of a segment that is not there harm nobody.
        side.path.rename(made.path)
        _sync_folder(self._folder)
        side.keys.unlink(missing_ok=True)
        self._segments.append(made)
        self._keys.append(Keys(where, [made]))

    def tidy(self) -> None:
        """Make one of files of keys where there are several of one size.

        Raises:
            OSError: there is no room; all are as good as before.
        """
        while len(last := self._keys[-MERGED:]) == MERGED and len({k.span for k in last}) == 1:
            covered = self._segments[-sum(keys.span for keys in last) :]
            try:
                merged = Keys(merge_keys(keys_path(self._folder, covered), covered, last), covered)
            except SpoiltKeysError as error:
                self._replace(error)
                return
            self._keys[-MERGED:] = [merged]
            for keys in last:
                keys.close()
                keys.path.unlink(missing_ok=True)

    def _spoilt(self, line: Line) -> str:
        # Whoever opens the journal next makes these keys anew, of what can be read.
        for keys, covered in self._covered():
            if covered[-1].number >= line.segment:
                keys.path.unlink(missing_ok=True)
                break
        return (
            "Run again: the answers in that place are left out then, and asked for again; "
            "or put a good copy there"
        )

    def _replace(self, error: SpoiltKeysError) -> None:
        error.path.unlink(missing_ok=True)
        super()._replace(error)

    def _made(self, segment: Segment) -> Keys:
        path = keys_path(self._folder, [segment])
        return Keys(write_keys(path, [segment], rows_of(segment)), [segment])


def _sync_folder(folder: Path) -> None:
    """Have the disk hold the names in a folder."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
