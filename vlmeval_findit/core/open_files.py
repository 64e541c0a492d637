"""How many files and connections this process may have open at a time (``ulimit -n``)."""

from __future__ import annotations

import errno
import os
import resource
from contextlib import suppress

_ENOUGH = 1 << 16  # where the hard limit is endless
_USUALLY_OPEN = 16  # where the system does not list the open files
_LISTED_IN = ("/proc/self/fd", "/dev/fd")


def room_for_files(wanted: int, spare: int) -> int:
    """Return how many of the ``wanted`` files may be opened besides those that are open.

    Where that is too few, the soft limit of the process is first raised to the hard one. ``spare``
    files more are left for others.
    """
    needed = wanted + spare + _open_now()
    if needed > open_file_limit():
        _raise_limit()
    return min(wanted, max(0, open_file_limit() - spare - _open_now()))


def open_file_limit() -> int:
    """Return how many files may be open at a time."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _ENOUGH if soft == resource.RLIM_INFINITY else soft


def _raise_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else hard
    if soft < wanted:
        with suppress(OSError, ValueError):  # the system may have a lower limit of its own
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _open_now() -> int:
    for folder in _LISTED_IN:
        with suppress(OSError):
            return len(os.listdir(folder))
    return _USUALLY_OPEN


def too_many_files(error: BaseException) -> str:
    """Say that no more files can be opened, if an error comes of that; else "".

    >>> too_many_files(ValueError("of something else"))
    ''
    """
    reason: BaseException | None = error
    while reason is not None:
        if isinstance(reason, OSError) and reason.errno in (errno.EMFILE, errno.ENFILE):
            return (
                f"too many open files: this process may have {open_file_limit()}. Raise that "
                "before the command (ulimit -n 4096), or make fewer calls at a time (--api-nproc)"
            )
        reason = reason.__cause__ or reason.__context__
    return ""
