"""Locks: a single holder, and dead processes hold nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from lease_files import quicken_leases, write_lease

from vlmeval_findit.core import Lock, LockedError, is_held
from vlmeval_findit.core import lock as locks

WHY = "one at a time"


def test_one_holder_at_a_time_who_is_named(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "lock"
    with Lock(path, WHY), pytest.raises(LockedError) as refused:
        Lock(path, "two are too many")
    assert re.search(f"held by process {os.getpid()} on .*: two are too many", str(refused.value))
    assert not path.exists()


@pytest.fixture
def quick_leases(monkeypatch: pytest.MonkeyPatch) -> float:
    return quicken_leases(monkeypatch)


@pytest.fixture(params=[True, False])
def _exchange(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also as on file systems that cannot exchange two names: filelock takes no lock over."""
    acquire = Lock._got

    def got(lock: Lock, seconds: float, give_up: Callable[[], bool] | None = None) -> bool:
        return not lock._path.exists() and acquire(lock, seconds, give_up)

    if not request.param:
        monkeypatch.setattr(Lock, "_got", got)


@pytest.mark.usefixtures("_exchange")
def test_a_holder_on_another_machine_that_is_silent_is_dead(
    quick_leases: float, tmp_path: Path
) -> None:
    path = tmp_path / "lock"
    write_lease(path, "elsewhere", 1, quick_leases)
    lock = Lock(path, WHY)
    assert lock.held()
    lock.release()
    assert not path.exists()


def test_a_holder_on_another_machine_that_is_heard_of_lives(
    quick_leases: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    write_lease(path, "elsewhere", 1, quick_leases)
    sleep = time.sleep
    # Touched before every check, and not by a thread that may be held up.
    monkeypatch.setattr("time.sleep", lambda pause: (sleep(pause), path.touch()))
    with pytest.raises(LockedError, match="held by process 1 on elsewhere"):
        Lock(path, WHY)
    assert "host=elsewhere" in path.read_text()


def test_a_lock_of_another_machine_holds_while_touched(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    write_lease(path, "elsewhere", 1, locks.LEASE_SECONDS)
    for ago, held in ((5, True), (3600, False)):
        heard = time.time() - ago
        os.utime(path, (heard, heard))
        assert is_held(path) is held


def test_a_process_on_this_machine_that_only_sleeps_lives(
    quick_leases: float, tmp_path: Path
) -> None:
    path = tmp_path / "lock"
    write_lease(path, locks._this_machine(), os.getppid(), quick_leases)
    assert is_held(path)
    with pytest.raises(LockedError, match=f"held by process {os.getppid()} on "):
        Lock(path, WHY)


@pytest.mark.parametrize("asked_after", [True, False])
@pytest.mark.usefixtures("_exchange")
def test_a_dead_process_is_not_waited_for(asked_after: bool, tmp_path: Path) -> None:
    """Nor one whose starter has not asked how it ended, as of a notebook: its number stays."""
    died = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, died.pid, os.WEXITED | os.WNOWAIT)
    if asked_after:
        died.wait()
    path = tmp_path / "lock"
    write_lease(path, locks._this_machine(), died.pid, locks.LEASE_SECONDS)
    assert not is_held(path)
    began = time.monotonic()
    Lock(path, WHY).release()
    assert time.monotonic() - began < 0.5 * locks.LEASE_SECONDS
    died.wait()


@pytest.mark.parametrize("when", ["it was found dead", "it is being removed"])
@pytest.mark.parametrize("_exchange", [False], indirect=True)
@pytest.mark.usefixtures("_exchange")
def test_only_one_process_takes_over_a_dead_lock(
    when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run tries to take it over between two steps of this one."""
    path = tmp_path / "lock"
    died = subprocess.Popen([sys.executable, "-c", ""])
    died.wait()
    write_lease(path, locks._this_machine(), died.pid, locks.LEASE_SECONDS)
    others, tried = list[Lock](), list[str]()
    reads, is_dead = Path.read_bytes, locks._runs_here

    def taken() -> list[Lock]:
        try:
            return [Lock(path, WHY)]
        except LockedError:
            return []

    def another(moment: str) -> None:
        if moment == when and not tried:
            tried.append(moment)
            others.extend(taken())

    def looked(lease: Any) -> bool | None:
        found = is_dead(lease)
        another("it was found dead")
        return found

    def read(file: Path) -> bytes:
        content = reads(file)
        if file == path and list(tmp_path.glob("lock.*")):
            another("it is being removed")
        return content

    monkeypatch.setattr(locks, "_runs_here", looked)
    monkeypatch.setattr(Path, "read_bytes", read)
    mine = taken()
    assert tried
    assert [lock.held() for lock in [*mine, *others]] == [True]
    for lock in [*mine, *others]:
        lock.release()
    assert list(tmp_path.iterdir()) == []


def test_a_run_killed_during_a_takeover_holds_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    write_lease(path, "elsewhere", 1, locks.LEASE_SECONDS)
    dead = path.read_bytes()
    claim = path.with_name(f"lock.{sha256(dead).hexdigest()[:16]}")
    lock = Lock.__new__(Lock)
    lock._path, lock._lease = path, locks._lease(path)
    claim.touch()
    assert not lock._replaced(dead), "another run takes it over now"
    assert path.read_bytes() == dead
    os.utime(claim, (1, 1))
    assert lock._replaced(dead)
    lock.release()
    assert list(tmp_path.iterdir()) == []
