"""A command that is killed before each change that it makes below a folder."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_CHANGES = frozenset(
    ["os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate"]
)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def every_kill(command: Callable[[], int], below: Path) -> Iterator[int]:
    """Yield after each kill, with the number of changes before it; the last run is not killed.

    A fork runs the command, and ``kill -9`` takes it before it opens, renames or deletes a file
    below a folder for the first time, then before the second time, and so on.
    """
    changes = 0
    while _is_killed(command, below, changes):
        yield changes
        changes += 1


def _is_killed(command: Callable[[], int], below: Path, changes: int) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        child = os.fork()
    if child == 0:
        try:
            sys.addaudithook(_killer(below, changes))
            status = command()
        except BaseException:
            os._exit(99)
        os._exit(status)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0, "the command failed without a kill"
    return False


def _killer(below: Path, changes: int) -> Callable[[str, tuple[Any, ...]], None]:
    left = [changes]

    def look(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            if not isinstance(arguments[2], int) or not arguments[2] & _WRITES:
                return
        elif event not in _CHANGES:
            return
        names = [each for each in arguments[:2] if isinstance(each, str | os.PathLike)]
        if any(os.path.abspath(name).startswith(f"{below}/") for name in names):
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1

    return look
