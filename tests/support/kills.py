"""Commands in forks of this process, which are killed: before each change below a folder, say."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import vl_convert

_CHANGES = frozenset(
    ["os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate"]
)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_NUMBER = 8
"""Bytes of a number in a pipe."""


def status_in_a_fork(command: Callable[[], int]) -> int:
    """Return the status of a command, negative for a signal's number as of :mod:`subprocess`."""
    child = _fork()
    if child == 0:
        _run(command)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def every_kill(command: Callable[[], int], below: Path) -> Iterator[int]:
    """Yield after each kill, with the number of changes before it; the last run is not killed.

    A fork runs the command until it would lock a file, or open, rename or delete one below a
    folder, and waits there: all that comes before is worked out once.  Forks of it go on;
    ``kill -9`` takes one before its first change, the next before its second, and so on.  The
    folder should be each time as it was.
    """
    waiting = _Waiting(command, below)
    changes = 0
    try:
        while _is_killed(waiting.goes_on(changes)):
            yield changes
            changes += 1
    finally:
        waiting.end()


def _is_killed(status: int) -> bool:
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0, "the command failed without a kill"
    return False


class _Waiting:
    """A command in a fork, which waits before its first lock or change."""

    def __init__(self, command: Callable[[], int], below: Path) -> None:
        asked, self._asks = os.pipe()
        self._told, tells = os.pipe()
        self._child = _fork()
        if self._child == 0:
            # Its input ends when the test ends it, or ends.
            os.close(self._asks)
            sys.addaudithook(_Killer(below, asked, tells).look)
            _run(command)
        os.close(asked)
        os.close(tells)

    def goes_on(self, changes: int) -> int:
        """Return the status of a fork that is killed after so many changes."""
        with suppress(BrokenPipeError):
            os.write(self._asks, changes.to_bytes(_NUMBER))
        if told := os.read(self._told, _NUMBER):
            return int.from_bytes(told)
        # It locked and changed nothing, and so did not wait.
        self._child, child = 0, self._child
        return os.waitpid(child, 0)[1]

    def end(self) -> None:
        os.close(self._asks)
        os.close(self._told)
        if self._child:
            os.waitpid(self._child, 0)


def _run(command: Callable[[], int]) -> NoReturn:
    """Run a command to the end of this process."""
    try:
        status = command()
    except BaseException:
        traceback.print_exc()
        os._exit(99)
    os._exit(status)


class _Killer:
    """What a command's process looks at, and forks or kills it before a change."""

    def __init__(self, below: Path, asked: int, tells: int) -> None:
        self._below = below
        self._asked = asked
        self._tells = tells
        self._left: int | None = None
        """Changes until the kill; None: nobody asked yet."""

    def look(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "fcntl.flock":
            if self._left is None:
                self._wait()
                _open_again(arguments[0])
            return
        if event == "open":
            if not isinstance(arguments[2], int) or not arguments[2] & _WRITES:
                return
        elif event not in _CHANGES:
            return
        names = [each for each in arguments[:2] if isinstance(each, str | os.PathLike)]
        if any(os.path.abspath(name).startswith(f"{self._below}/") for name in names):
            left = self._wait()
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
            self._left = left - 1

    def _wait(self) -> int:
        """Return in a fork that was asked for, with the number of changes that are left to it."""
        if self._left is None:
            self._left = self._fork_when_asked()
        return self._left

    def _fork_when_asked(self) -> int:
        """Return in each fork, with the number of changes that were asked for."""
        while asked := os.read(self._asked, _NUMBER):
            child = _fork()
            if child == 0:
                return int.from_bytes(asked)
            _, status = os.waitpid(child, 0)
            os.write(self._tells, status.to_bytes(_NUMBER))
        os._exit(0)


def _open_again(file: int) -> None:
    """Open an opened file again: a lock is of all forks that share what is opened."""
    again = os.open(f"/dev/fd/{file}", fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE)
    os.dup2(again, file, inheritable=False)
    os.close(again)


def _fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        child = os.fork()
    if child == 0:
        _draw_in_processes()
    return child


def _draw_in_processes() -> None:
    """Let processes of their own draw charts: once used, the library has threads that a fork lacks.

    It would wait for them for ever.
    """
    for name in ("vegalite_to_svg", "javascript_bundle"):
        setattr(vl_convert, name, partial(_called_in_a_process, name))


def _called_in_a_process(name: str, *given: Any) -> str:
    call = f"sys.stdout.write(vl_convert.{name}(*json.load(sys.stdin)))"
    return subprocess.run(
        [sys.executable, "-c", f"import json, sys, vl_convert\n{call}"],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
