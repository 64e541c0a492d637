"""Files appear whole or not at all, whatever is written into them."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from vlmeval_findit.core import atomic_write, clear_leftovers, file_sha256, write_once


def test_a_failed_write_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "score.csv"
    write_once(path, b"one")
    with pytest.raises(ZeroDivisionError), atomic_write(path) as f:  # noqa: PT012
        f.write("half")
        1 / 0  # noqa: B018
    assert path.read_bytes() == b"one"
    inode = path.stat().st_ino
    write_once(path, b"one")
    assert path.stat().st_ino == inode
    write_once(path, b"two")
    assert path.read_bytes() == b"two"
    assert os.listdir(path.parent) == ["score.csv"]


def test_the_umask_decides_who_may_read_a_file(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with atomic_write(tmp_path / "text"):
            pass
        write_once(tmp_path / "bytes", b"")
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o640}


def test_half_a_surrogate_pair_can_be_written(tmp_path: Path) -> None:
    """A model can say it: JSON's \\ud83d is a valid string that UTF-8 cannot hold."""
    label = json.loads(r'"cat \ud83d"')
    path = tmp_path / "details.jsonl"
    with atomic_write(path) as f:
        json.dump({"label": label}, f, ensure_ascii=False)
    assert json.loads(path.read_text()) == {"label": label}


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "queue")
    for path in (tmp_path / "queue", Path("/dev/zero")):
        with pytest.raises(OSError, match="not a regular file"):
            file_sha256(path)
    with pytest.raises(IsADirectoryError):
        file_sha256(tmp_path)


@pytest.mark.parametrize("kind", ["queue", "descriptor", "redirected"])
def test_streams_are_written_to_and_stay(kind: str, tmp_path: Path) -> None:
    """``--json /dev/stdout``, ``>(jq)`` and queues."""
    queue = tmp_path / "queue"
    os.mkfifo(queue)
    reader = os.open(queue, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(queue, os.O_WRONLY)
    if kind == "redirected":
        os.close(reader)
        os.close(writer)
        reader = os.open(tmp_path / "output", os.O_RDWR | os.O_CREAT)
        writer = os.open(tmp_path / "output", os.O_WRONLY | os.O_APPEND)
        os.write(writer, b"before ")
    path = queue if kind == "queue" else Path(f"/dev/fd/{writer}")
    entries = set(tmp_path.iterdir())
    try:
        with atomic_write(path) as f:
            f.write("one ")
        write_once(path, b"two")
        assert os.read(reader, 100).endswith(b"one two")
    finally:
        os.close(reader)
        os.close(writer)
    assert set(tmp_path.iterdir()) == entries
    assert queue.is_fifo()


def test_what_killed_writers_left_is_deleted_and_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "r[1].html"
    left = [tmp_path / name for name in (".r[1].html.9483e6c7.new", ".r2.csv.0123abcd.new")]
    for each in left:
        each.write_text("half")
    names = (".r[1].html.new", ".r2.html.20261130", ".r.9483e6c7x.new", "9483e6c7.new", "r[1].html")
    others = [tmp_path / name for name in names]
    for other in others:
        other.write_text("kept")
    with atomic_write(page) as f:
        f.write("whole")
        (writing,) = set(tmp_path.iterdir()) - {*others}
        left[0].write_text("half again")
        clear_leftovers(page)
        assert not left[0].exists()
        assert writing.exists(), "its writer lives"
    assert page.read_text() == "whole"
    assert set(tmp_path.iterdir()) == {*others}


def test_a_file_deleted_before_its_lock_is_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another command takes it for a killed writer's between its creation and its lock."""
    flock = fcntl.flock
    is_written = Event()
    clearing: list[Thread] = []

    def clear(file: int, path: Path) -> None:
        is_written.wait(0.2)  # A writer that does not wait for the lock is done by now
        path.unlink(missing_ok=True)
        os.close(file)

    def lock_after_another(file: Any, operation: int) -> None:
        if not clearing:
            (path,) = tmp_path.glob(".*.new")
            others = os.open(path, os.O_RDONLY)
            flock(others, fcntl.LOCK_EX | fcntl.LOCK_NB)
            clearing.append(Thread(target=clear, args=(others, path)))
            clearing[0].start()
        flock(file, operation)

    monkeypatch.setattr("fcntl.flock", lock_after_another)
    with atomic_write(tmp_path / "a.txt") as f:
        f.write("whole")
        is_written.set()
        clearing[0].join()
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_bytes() == b"whole"
