"""Locks: one holder at a time, and the dead hold nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from engine_fakes import FakeBackends, FakeModel, demo_sweep, go
from filelock import SoftFileLease

from vlmeval_findit.core import lock as locks
from vlmeval_findit.core.lock import Lock, LockedError, Watch, alone, is_held
from vlmeval_findit.engine.journal.writer import lock_path

WHY = "one at a time"


def test_one_holder_at_a_time_who_is_named(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "lock"
    with Lock(path, WHY), pytest.raises(LockedError) as refused:
        Lock(path, "two are too many")
    assert re.search(f"held by process {os.getpid()} on .*: two are too many", str(refused.value))
    assert not path.exists()


def test_for_a_moment_others_wait(tmp_path: Path) -> None:
    inside: list[int] = []

    def enter(number: int) -> None:
        with alone(tmp_path / "lock"):
            inside.append(number)
            time.sleep(0.02)
            inside.append(number)

    threads = [threading.Thread(target=enter, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert inside[::2] == inside[1::2]
    assert sorted(inside[::2]) == [0, 1, 2, 3]


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


@pytest.mark.parametrize("exchange", [True, False])
def test_a_holder_on_another_machine_that_is_silent_is_dead(
    exchange: bool, quick_leases: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not exchange:
        # As on file systems that cannot exchange two names, where filelock takes no lock over.
        monkeypatch.setattr("filelock._soft.exchange_names", lambda *names: False)
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
    # Heard of before every look, and not by a thread that may be held up.
    monkeypatch.setattr("time.sleep", lambda pause: (sleep(pause), path.touch()))
    with pytest.raises(LockedError, match="held by process 1 on elsewhere"):
        Lock(path, WHY)
    assert "host=elsewhere" in path.read_text()


@pytest.mark.slow
def test_the_locks_of_a_dead_machine_are_waited_for_once(
    quick_leases: float,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    sweep = demo_sweep(tmp_path)
    sweep.work_dir.mkdir()
    left = [sweep.work_dir / ".sweep.lock", lock_path(sweep.journal)]
    for path in left:
        hold_elsewhere(path, quick_leases)
    go(sweep, FakeBackends(FakeModel()))
    waited = [line for line in caplog.messages if "waiting up to" in line]
    assert waited == [
        f"{left[0]} is held by process 1 on elsewhere, which may have died: "
        "waiting up to 0 s for a sign of life"
    ]
    assert not any(path.exists() for path in left)


def test_who_was_heard_of_while_another_was_waited_for_lives(
    quick_leases: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    hold_elsewhere(path, quick_leases)
    watch = Watch(path)
    monkeypatch.setattr(locks, "LEASE_SECONDS", -1.0)
    assert watch.has_seen_dead(path)
    os.utime(path, (1, 1))
    assert not watch.has_seen_dead(path)
    path.unlink()
    assert not watch.has_seen_dead(path)
    assert not Watch(path).has_seen_dead(path), "there is none"


@pytest.mark.parametrize(("ago", "held"), [(5, True), (-5, True), (3600, False), (-3600, False)])
def test_a_clock_that_was_set_back_keeps_nobody_alive(ago: int, held: bool, tmp_path: Path) -> None:
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
    with pytest.raises(LockedError, match=f"held by process {os.getppid()} on "):
        Lock(path, WHY)


@pytest.mark.parametrize("exchange", [True, False])
def test_a_process_on_this_machine_that_died_is_not_waited_for(
    exchange: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not exchange:
        monkeypatch.setattr("filelock._soft.exchange_names", lambda *names: False)
    died = subprocess.Popen([sys.executable, "-c", ""])
    died.wait()
    path = tmp_path / "lock"
    hold_here(path, locks.LEASE_SECONDS, died.pid)
    waited: list[float] = []
    real = Lock._got

    def got(lock: Lock, seconds: float, *more: Any) -> bool:
        waited.append(seconds)
        return real(lock, seconds, *more)

    monkeypatch.setattr(Lock, "_got", got)
    Lock(path, WHY).release()
    assert set(waited) == {0}


def test_a_lock_that_somebody_looks_at_is_held_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    lock = Lock(path, WHY)
    aside = path.rename(tmp_path / "in hand")
    monkeypatch.setattr("time.sleep", lambda pause: pause and aside.exists() and aside.rename(path))
    assert lock.held()
    monkeypatch.undo()
    path.unlink()
    assert not lock.held()
    lock.release()


def test_a_process_id_that_is_anothers_now_holds_nothing(tmp_path: Path) -> None:
    """Whoever only looks and whoever takes the lock see the same."""
    path = tmp_path / "lock"
    with SoftFileLease(path, lease_duration=locks.LEASE_SECONDS, thread_local=False):
        record = path.read_text()
    assert re.search(r"start=\d+", record), "this system says when a process began"
    path.write_text(record)
    assert is_held(path)
    # Our own process id, of a process that began at another time.
    path.write_text(re.sub(r"start=\d+", "start=1", record))
    assert not is_held(path)
    assert "start=1\n" in path.read_text(), "to look changes nothing"
    Lock(path, WHY).release()


def test_of_two_who_find_a_holder_dead_one_gets_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("filelock._soft.exchange_names", lambda *names: False)
    died = subprocess.Popen([sys.executable, "-c", ""])
    died.wait()
    path = tmp_path / "lock"
    hold_here(path, locks.LEASE_SECONDS, died.pid)
    faster: list[Lock] = []
    real = locks._Holder.died_here

    def died_here(holder: Any) -> bool:
        result = real(holder)
        if result and not faster:
            monkeypatch.setattr(locks._Holder, "died_here", real)
            faster.append(Lock(path, WHY))
        return result

    monkeypatch.setattr(locks._Holder, "died_here", died_here)
    with pytest.raises(LockedError, match=f"held by process {os.getpid()}"):
        Lock(path, WHY)
    assert faster[0].held()
    faster[0].release()
    assert not list(tmp_path.iterdir())


def test_a_clock_that_goes_backwards_keeps_no_dead_holder(
    quick_leases: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    hold_elsewhere(path, quick_leases)
    before = time.time() - 10_000
    monkeypatch.setattr("time.time", lambda: before)
    with Lock(path, WHY) as lock:
        assert lock.held()
