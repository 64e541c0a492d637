"""Why replies cannot be kept."""

from __future__ import annotations

import errno
from pathlib import Path

from ...core.files import is_disk_full
from ...core.lock import Lock, LockedError, Watch


class JournalError(ValueError):
    """A journal that cannot be used; the message says why.  ``lost`` replies could not be kept."""

    lost = 0

    def and_lost(self, more: int) -> JournalError:
        """The same, when more replies could not be kept."""
        return self


class DiskFullError(JournalError):
    """No room for more: what was finished is kept, as far as ``lost`` does not say otherwise."""

    errno = errno.ENOSPC

    def __init__(self, path: Path, lost: int) -> None:
        what = f"{lost} replies could not be kept" if lost else "every reply is kept"
        super().__init__(
            f"{path}: the disk is full; {what}. Free some space and run again: "
            "finished calls are not repeated."
        )
        self.path = path
        self.lost = lost

    def and_lost(self, more: int) -> DiskFullError:
        return DiskFullError(self.path, self.lost + more)


def full_disk(error: OSError, path: Path) -> DiskFullError:
    """The error for a file that found no room; one of another kind is raised."""
    if not is_disk_full(error):
        raise error
    return DiskFullError(path, 0)


def lock_path(journal: Path) -> Path:
    """The file of a journal's lock."""
    return journal.with_name(f"{journal.name}.lock")


def lock_of_a_sweep(path: Path, watch: Watch | None = None) -> Lock:
    """The lock of files that one sweep at a time writes; ``watch`` is as of :class:`.Lock`.

    Raises:
        JournalError: another process has it, or there is no room for it.
        OSError: it cannot be made.
    """
    try:
        return Lock(path, "two sweeps cannot write the same files at a time", watch)
    except LockedError as error:
        raise JournalError(str(error)) from None
    except OSError as error:
        raise full_disk(error, path) from None
