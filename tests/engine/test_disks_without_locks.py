"""Disks without locks, or that grant them to all: every lock holds by a lease, and nothing is lost.

The system's locks are replaced; network disks and FUSE answer like that.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from few_fast import few_fast

from vlmeval_findit.core import (
    LockedError,
    atomic_write,
    clear_leftovers,
    locked,
    new_file_set,
    settle_file_sets,
)
from vlmeval_findit.core import lock as locks
from vlmeval_findit.engine import Journal
from vlmeval_findit.storage import CustomDataset, custom_datasets, register_dataset

PROCESSES = 4
EACH = 6
GRANTED = "granted to all"
LOCKS = ["ENOLCK", GRANTED, "sound", "EOPNOTSUPP", "ENOSYS", "EINVAL", "EIO", "EPERM"]


@pytest.fixture(params=few_fast(LOCKS, 2), autouse=True)
def disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let the system's locks fail, or be granted to all."""

    def flock(file: object, operation: int) -> None:
        if request.param != GRANTED and not operation & fcntl.LOCK_UN:
            number = getattr(errno, request.param)
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(locks, "_GRANT_TO_ALL", {})
    locks._say_without_locks.cache_clear()
    if request.param != "sound":
        monkeypatch.setattr(fcntl, "flock", flock)
    return str(request.param)


def in_a_process(call: Callable[[], object]) -> int:
    """Call something in a process of its own, which then ends without any tidying; its number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        child = os.fork()
    if child:
        return child
    try:
        call()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def ended(child: int) -> bool:
    return os.waitpid(child, 0)[1] == 0


def all_ended(children: list[int]) -> bool:
    statuses = [ended(child) for child in children]
    return all(statuses)


def hold(path: Path, *, wait: bool, then: Callable[[], object] = lambda: None) -> None:
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        with locked(file, path, wait=wait, lease=path.with_name("lease")):
            then()
    finally:
        os.close(file)


def test_one_process_at_a_time_has_a_lock(
    disk: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "lock"

    def another_is_refused() -> None:
        with pytest.raises(LockedError):
            hold(path, wait=False)

    def another_process_is_refused() -> None:
        assert ended(in_a_process(another_is_refused))

    hold(path, wait=True, then=another_process_is_refused)
    hold(path, wait=False, then=another_is_refused)
    hold(path, wait=False)
    assert not (tmp_path / "lease").exists()
    said = [text for text in caplog.messages if "the disk has no locks" in text]
    assert len(said) == (disk != "sound")


def test_a_killed_process_holds_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert ended(in_a_process(lambda: hold(path, wait=True, then=lambda: os._exit(0))))
    began = time.monotonic()
    hold(path, wait=False)
    assert time.monotonic() - began < locks.LEASE_SECONDS / 2


def test_writers_take_turns(tmp_path: Path) -> None:
    """Each reads a number and writes the next one."""
    number = tmp_path / "number"
    number.write_text("0")

    def add() -> None:
        number.write_text(str(int(number.read_text()) + 1))

    def add_some() -> None:
        for _ in range(EACH):
            hold(tmp_path / "lock", wait=True, then=add)

    children = [in_a_process(add_some) for _ in range(PROCESSES)]
    assert all_ended(children)
    assert number.read_text() == str(PROCESSES * EACH)


def test_a_living_set_of_files_stays_a_killed_goes(tmp_path: Path) -> None:
    mark = tmp_path / "a"

    def begin() -> None:
        with new_file_set(mark, tmp_path) as files:
            (files.folder / "a").write_text("of a killed one")
            os._exit(0)

    with new_file_set(mark, tmp_path) as mine:
        (mine.folder / "a").write_text("new")
        assert ended(in_a_process(begin))
        assert ended(in_a_process(lambda: settle_file_sets(mark)))
        mine.commit()
    assert mark.read_text() == "new"
    assert {path.name for path in tmp_path.iterdir()} == {"a"}


def test_sets_of_two_writers_are_never_mixed(tmp_path: Path) -> None:
    names = [str(at) for at in range(8)]
    mark = tmp_path / names[0]

    def write(who: str) -> None:
        with new_file_set(mark, tmp_path) as files:
            for name in names:
                (files.folder / name).write_text(who)
            files.commit()

    children = [in_a_process(partial(write, str(at))) for at in range(PROCESSES)]
    assert all_ended(children)
    assert len({(tmp_path / name).read_text() for name in names}) == 1
    assert {path.name for path in tmp_path.iterdir()} == set(names)


def test_no_import_of_several_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMUData", str(tmp_path))

    def register(who: int) -> None:
        for at in range(EACH):
            register_dataset(f"N{who}x{at}", CustomDataset(folder="f"))

    children = [in_a_process(partial(register, at)) for at in range(PROCESSES)]
    assert all_ended(children)
    assert len(custom_datasets()) == PROCESSES * EACH


def record(name: str) -> dict[str, Any]:
    return {
        "key": sha256(name.encode()).hexdigest(),
        "error": None,
        "model": "M",
        "settings": {},
        "prompt_sha256": name,
        "image_sha256": ["0" * 64],
        "reply": "[]" * 50,
    }


def test_processes_of_a_run_append_in_turn(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"

    def append(who: int) -> None:
        with Journal(path, shared=True) as journal:
            for at in range(EACH):
                journal.append([record(f"{who} {at}")])

    with Journal(path, has_others=True) as journal:
        children = [in_a_process(partial(append, at)) for at in range(PROCESSES)]
        for at in range(EACH):
            journal.append([record(f"mine {at}")])
        assert all_ended(children)
        journal.catch_up()
        assert len(list(journal.records())) == (PROCESSES + 1) * EACH
    assert not list(tmp_path.glob("*.lease"))


def test_a_file_is_whole_and_its_writer_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with atomic_write(path) as f:
        f.write("new")
        assert ended(in_a_process(lambda: clear_leftovers(path)))
    assert path.read_text() == "new"
    assert {each.name for each in tmp_path.iterdir()} == {"a"}
