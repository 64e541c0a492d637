"""Locks: a single holder, and dead processes hold nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import SoftFileLease

from vlmeval_findit.core import lock as locks
from vlmeval_findit.core.lock import Lock, LockedError, is_held

WHY = "one at a time"


def test_one_holder_at_a_time_who_is_named(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "lock"
    with Lock(path, WHY), pytest.raises(LockedError) as refused:
        Lock(path, "two are too many")
    assert re.search(f"held by process {os.getpid()} on .*: two are too many", str(refused.value))
    assert not path.exists()


def hold_elsewhere(path: Path, seconds: float) -> None:
    """The lock of a process on another machine, which agrees on how long a lease lasts."""
    path.write_text(
        f"filelock/2\npid=1\nhost=elsewhere\nmode=lease\ntoken={'0' * 32}\nduration={seconds!r}\n"
    )


@pytest.fixture
def quick_leases(monkeypatch: pytest.MonkeyPatch) -> float:
    """Leases of half a second."""
    monkeypatch.setattr(locks, "LEASE_SECONDS", 0.5)
    monkeypatch.setattr(locks, "HEARTBEAT_SECONDS", 0.1)
    monkeypatch.setattr(locks, "_POLL_SECONDS", 0.02)
    return 0.5


def without_take_overs(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on file systems that cannot exchange two names, where filelock takes no lock over."""
    acquire = Lock._got

    def got(lock: Lock, seconds: float, give_up: Callable[[], bool] | None = None) -> bool:
        return not lock._path.exists() and acquire(lock, seconds, give_up)

    monkeypatch.setattr(Lock, "_got", got)


@pytest.mark.parametrize("exchange", [True, False])
def test_a_holder_on_another_machine_that_is_silent_is_dead(
    exchange: bool, quick_leases: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not exchange:
        without_take_overs(monkeypatch)
    path = tmp_path / "lock"
    hold_elsewhere(path, quick_leases)
    lock = Lock(path, WHY)
    assert lock.held()
    lock.release()
    assert not path.exists()


def test_a_holder_on_another_machine_that_is_heard_of_lives(
    quick_leases: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    hold_elsewhere(path, quick_leases)
    sleep = time.sleep
    # Touched before every check, and not by a thread that may be held up.
    monkeypatch.setattr("time.sleep", lambda pause: (sleep(pause), path.touch()))
    with pytest.raises(LockedError, match="held by process 1 on elsewhere"):
        Lock(path, WHY)
    assert "host=elsewhere" in path.read_text()


@pytest.mark.parametrize(("ago", "held"), [(5, True), (3600, False)])
def test_a_lock_of_another_machine_is_held_while_it_is_touched(
    ago: int, held: bool, tmp_path: Path
) -> None:
    path = tmp_path / "lock"
    hold_elsewhere(path, locks.LEASE_SECONDS)
    heard = time.time() - ago
    os.utime(path, (heard, heard))
    assert is_held(path) is held


def hold_here(path: Path, seconds: float, pid: int) -> None:
    """The lock of a process on this machine, which is never heard of."""
    lease = SoftFileLease(path, lease_duration=seconds, thread_local=False)
    with lease:
        record = path.read_text()
    path.write_text(re.sub(r"pid=\d+", f"pid={pid}", re.sub(r"start=\d+\n", "", record)))


def test_a_process_on_this_machine_that_only_sleeps_lives(
    quick_leases: float, tmp_path: Path
) -> None:
    path = tmp_path / "lock"
    hold_here(path, quick_leases, os.getppid())
    assert is_held(path)
    with pytest.raises(LockedError, match=f"held by process {os.getppid()} on "):
        Lock(path, WHY)


@pytest.mark.parametrize("exchange", [True, False])
def test_a_process_on_this_machine_that_died_is_not_waited_for(
    exchange: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not exchange:
        without_take_overs(monkeypatch)
    died = subprocess.Popen([sys.executable, "-c", ""])
    died.wait()
    path = tmp_path / "lock"
    hold_here(path, locks.LEASE_SECONDS, died.pid)
    assert not is_held(path)
    began = time.monotonic()
    Lock(path, WHY).release()
    assert time.monotonic() - began < 0.5 * locks.LEASE_SECONDS
