"""Locks between processes.

A :class:`Lock` lasts for a run and refuses others. It is filelock's lease, a file that its holder
touches every few seconds, as network disks may grant system locks to all. :func:`locked` is for a
moment, and is the system's lock, which a kill frees at once; a disk without such locks has a lease.
"""

from __future__ import annotations

import fcntl
import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

LEASE_SECONDS = 60.0  # A holder on another machine that is silent for longer is dead
HEARTBEAT_SECONDS = 10.0  # How often a holder touches its lease

_POLL_SECONDS = 0.1
_TRY_AGAIN = "it should be free in a moment; type the command again"
_PATIENCE = 600.0  # seconds to wait for what others write in a moment


class LockedError(ValueError):
    """Another process holds the lock; the message says which."""


class Lock:
    """An exclusive lock, else a LockedError that ends with ``why``.

    That of a process which died on this machine is free at once; that of another is waited for, for
    ``wait`` seconds.
    """

    def __init__(self, path: Path, why: str, wait: float = 0) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._lease = _lease(path)
        if not (self._got(0) or self._take_over() or (wait > 0 and self._got(wait))):
            raise LockedError(f"{path} is held by {self._holder()}: {why}")

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *stopped: object) -> None:
        self.release()

    def held(self) -> bool:
        """Return whether this process still holds it: others may believe that it died.

        Raises OSError where that cannot be told: no file can be opened, the disk does not answer.
        """
        owner = self._lease.owner
        if owner is None:  # It is gone, another's, or could not be read
            try:
                self._path.read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                return False
            owner = self._lease.owner
        return owner is not None and owner.token == self._lease.token

    def release(self) -> None:
        self._lease.release()

    def _got(self, seconds: float, give_up: Callable[[], bool] | None = None) -> bool:
        from filelock import Timeout  # Most commands need no lease

        try:
            self._lease.acquire(seconds, poll_interval=_POLL_SECONDS, cancel_check=give_up)
        except Timeout:
            return False
        return True

    def _take_over(self) -> bool:
        """Take it over if its holder is dead; return False as soon as the holder shows life."""
        first_lease = _content(self._path)
        first_beat = _beat(self._path)
        runs_here = _runs_here(self._lease)
        if runs_here:
            return False
        if runs_here is None:
            log.warning(
                "%s is held by %s, which may have died: waiting up to %d s for a sign of life",
                self._path,
                self._holder(),
                LEASE_SECONDS,
            )
            if self._got(LEASE_SECONDS + 1, lambda: _beat(self._path) != first_beat):
                return True
            if _beat(self._path) != first_beat:
                return False
        # filelock takes nothing over on disks that cannot exchange two names (NFS).
        return self._replaced(first_lease)

    def _replaced(self, dead: bytes | None) -> bool:
        """Remove the lease of a dead holder and take its place; False if another run was first.

        The lease, which has a token of its holder, names a file that a single run can create; only
        that run removes this lease, so a lease that another run took meanwhile stays.
        """
        claim = self._path.with_name(f"{self._path.name}.{sha256(dead or b'').hexdigest()[:16]}")
        if claim.exists() and _is_silent(claim):
            claim.unlink(missing_ok=True)  # of a run that was killed while it took the lease over
        try:
            os.close(os.open(claim, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        except FileExistsError:
            return False
        try:
            now = _content(self._path)
            if now is not None and now != dead:
                return False
            self._path.unlink(missing_ok=True)
            return self._got(0)
        finally:
            claim.unlink(missing_ok=True)

    def _holder(self) -> str:
        owner = self._lease.owner
        return f"process {owner.pid} on {owner.hostname}" if owner else "another process"


def is_held(path: Path) -> bool:
    """Return whether somebody seems to hold a lock, without touching it."""
    if not path.exists():
        return False
    runs_here = _runs_here(_lease(path))
    if runs_here is not None:
        return runs_here
    return not _is_silent(path)


@contextmanager
def locked(file: int, path: Path, *, wait: bool, lease: Path | None) -> Iterator[None]:
    """Hold the lock of an open file or folder in the block.

    Args:
        file: its number.
        path: of it.
        wait: until others have freed it; else a LockedError if somebody has it.
        lease: what stands for the lock on a disk that has none; None: nothing does.
    """
    with ExitStack() as undo:
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            undo.callback(fcntl.flock, file, fcntl.LOCK_UN)
            why = "it grants them to all" if grants_to_all(file, path) else ""
        except BlockingIOError:
            raise LockedError(f"{path} is held by another process") from None
        except OSError as error:
            why = error.strerror or str(error)
        if why and lease is not None:
            _say_without_locks(why)
            undo.enter_context(Lock(lease, _TRY_AGAIN, wait * _PATIENCE))
        yield


_GRANT_TO_ALL: dict[int, bool] = {}  # Disks, by their numbers


def grants_to_all(file: int, path: Path) -> bool:
    """Return whether a disk grants a lock that this process has to this process again."""
    state = os.fstat(file)
    if state.st_dev in _GRANT_TO_ALL:
        return _GRANT_TO_ALL[state.st_dev]
    second = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if not os.path.samestat(state, os.fstat(second)):
            return False  # Another file has its name now
        fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _GRANT_TO_ALL[state.st_dev] = True
    except BlockingIOError:
        _GRANT_TO_ALL[state.st_dev] = False
    finally:
        os.close(second)
    return _GRANT_TO_ALL[state.st_dev]


@cache
def _say_without_locks(why: str) -> None:
    """Say, once, what differs on a disk without locks."""
    log.warning(
        "the disk has no locks (%s): files say who writes there. After a kill, other machines wait "
        "for up to %d s",
        why,
        LEASE_SECONDS,
    )


def _lease(path: Path) -> Any:
    from filelock import SoftFileLease

    # Any thread may store a reply, not only the thread that opened the lock.
    return SoftFileLease(
        path, lease_duration=LEASE_SECONDS, heartbeat_interval=HEARTBEAT_SECONDS, thread_local=False
    )


def _runs_here(lease: Any) -> bool | None:
    """Return whether its holder runs on this machine; None if unknown."""
    owner = lease.owner
    if owner is None or owner.hostname != _this_machine():
        return None
    try:
        os.kill(owner.pid, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)  # but another user's process
    return not _has_ended(owner.pid)


def _has_ended(pid: int) -> bool:
    """Return whether a process is only waited for: who started it has not asked how it ended.

    A notebook or the first process of a container may never ask.
    """
    stat = _content(Path(f"/proc/{pid}/stat"))
    if stat is None:  # Not on Linux
        return False
    # The name before may hold anything, brackets too.
    state = stat.rpartition(b")")[2].split()[0]
    return state in (b"Z", b"X")


@cache
def _this_machine() -> str:
    """Return this machine's name as filelock writes it into leases, with the container's."""
    with tempfile.TemporaryDirectory() as folder, _lease(Path(folder) / "lock") as lease:
        return str(lease.owner.hostname)


def _content(path: Path) -> bytes | None:
    """Return a small file's content, as of a lease; None if it is gone."""
    try:
        return path.read_bytes()
    except OSError:
        return None


def _is_silent(path: Path) -> bool:
    """Return whether a file was last touched so long ago that its writer is dead.

    The disk's clock says what time it is: ours may be hours off, or be set meanwhile.
    """
    try:
        with tempfile.TemporaryFile(dir=path.parent) as f:
            now = os.fstat(f.fileno()).st_mtime
    except OSError:  # a folder that we only read
        now = time.time()
    return abs(now - _beat(path)) > LEASE_SECONDS


def _beat(path: Path) -> float:
    """Return when a lease was last touched; 0 if it is gone."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
