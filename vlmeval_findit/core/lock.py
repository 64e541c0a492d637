"""Locks between processes.

A :class:`Lock` lasts for a run and refuses others. It is filelock's lease, a file that its holder
touches every few seconds, as network disks may grant system locks to all.
"""

from __future__ import annotations

import logging
import os
import secrets
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from filelock import LeaseSettingsMismatch, SoftFileLease, Timeout

log = logging.getLogger(__name__)

LEASE_SECONDS = 60.0  # A holder on another machine that is silent for longer is dead
HEARTBEAT_SECONDS = 10.0  # How often a holder touches its lease

_POLL_SECONDS = 0.1


class LockedError(ValueError):
    """Another process holds the lock; the message says which."""


class Lock:
    """An exclusive lock; that of a process which died on this machine is free at once.

    Raises:
        LockedError: another process has it; ``why`` ends the message.
        OSError: it cannot be made.
    """

    def __init__(self, path: Path, why: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        # Any thread may store a reply, not only the thread that opened the lock.
        self._lease: Any = SoftFileLease(
            path,
            lease_duration=LEASE_SECONDS,
            heartbeat_interval=HEARTBEAT_SECONDS,
            thread_local=False,
        )
        if not self._got(0) and not self._take_over():
            raise LockedError(f"{path} is held by {self._holder()}: {why}")
        self._held_content: bytes | None = None

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *stopped: object) -> None:
        self.release()

    def held(self) -> bool:
        """Return whether this process still holds it: others may believe that it died."""
        content = _content(self._path)
        if content is not None and content == self._held_content:
            return True
        for pause in (0.0, 0.05, 0.5):
            # A process that looks whether we are dead may hold it for a moment.
            if pause:  # sleep(0) would yield the processor
                time.sleep(pause)
            owner = self._lease.owner
            if owner is not None:
                still_held = bool(owner.token == self._lease.token)
                # Remembered, as this is called for every reply.
                self._held_content = (
                    content if still_held and content == _content(self._path) else None
                )
                return still_held
        return False

    @property
    def token(self) -> str:
        return str(self._lease.token)

    def release(self) -> None:
        self._lease.release()

    def _got(self, seconds: float, give_up: Callable[[], bool] | None = None) -> bool:
        try:
            self._lease.acquire(seconds, poll_interval=_POLL_SECONDS, cancel_check=give_up)
        except (Timeout, LeaseSettingsMismatch):
            return False
        return True

    def _take_over(self) -> bool:
        """Take it over if its holder is dead; return False as soon as the holder shows life."""
        holder = _Holder(self._lease, self._path)
        if holder.lives():
            return False
        if holder.runs_here() is not False:
            log.warning(
                "%s is held by %s, which may have died: waiting up to %d s for a sign of life",
                self._path,
                self._holder(),
                LEASE_SECONDS,
            )
            if self._got(LEASE_SECONDS + 1, holder.lives):
                return True
            if holder.lives():
                return False
        # Not handed over: no exchange of names on this disk, or this lease did not watch itself.
        holder.evict()
        return self._got(0)

    def _holder(self) -> str:
        owner = self._lease.owner
        return f"process {owner.pid} on {owner.hostname}" if owner else "another process"


def is_held(path: Path) -> bool:
    """Return whether somebody seems to hold a lock, without touching it."""
    holder = _Holder(_lease(path), path)
    runs_here = holder.runs_here()
    if runs_here is not None:
        return runs_here
    return abs(time.time() - _beat(path) / 1e9) < LEASE_SECONDS


class _Holder:
    def __init__(self, lease: Any, path: Path) -> None:
        self._lease = lease
        self._path = path
        self._first = _beat(path)
        self._record = _content(path)

    def lives(self) -> bool:
        """Return whether it runs on this machine, or has beaten since this watch began."""
        return self.runs_here() is True or _beat(self._path) != self._first

    def runs_here(self) -> bool | None:
        """Return whether it runs on this machine; None if unknown."""
        owner = self._lease.owner
        if owner is None or owner.hostname != _this_machine():
            return None
        try:
            os.kill(owner.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return not _is_of_another_process(_content(self._path) or b"")

    def evict(self) -> None:
        # A faster waiter may hold it by now: move the file aside, which only one process can do,
        # and put it back if it is not the dead holder's.
        aside = self._path.with_name(f".{self._path.name}.{secrets.token_hex(4)}")
        try:
            self._path.rename(aside)
        except FileNotFoundError:
            return
        if _content(aside) == self._record and _beat(aside) == self._first:
            aside.unlink()
        else:
            aside.rename(self._path)


def _lease(path: Path) -> Any:
    return SoftFileLease(path, lease_duration=LEASE_SECONDS, thread_local=False)


def _is_of_another_process(content: bytes) -> bool:
    """Return whether the process id was reused: then filelock acquires a copy of the lease."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "lock"
        copy.write_bytes(content)
        try:
            with _lease(copy).acquire(0):
                return True
        except (Timeout, LeaseSettingsMismatch):
            return False


def _beat(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


@cache
def _this_machine() -> str:
    with tempfile.TemporaryDirectory() as folder:
        lease: Any = SoftFileLease(Path(folder) / "lock", thread_local=False)
        with lease:
            return str(lease.owner.hostname)
