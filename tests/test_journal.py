"""The journal: nothing that was written is lost, and nothing torn is taken for a record."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vlmeval_findit.engine.journal import DiskFullError, Journal, JournalError, records


def record(key: str, reply: str = "[]", error: str | None = None) -> dict[str, Any]:
    return {"key": key, "reply": reply, "error": error}


def test_what_was_appended_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "calls.jsonl"
    with Journal(path) as journal:
        journal.append([record("a", "one"), record("b", "two\n\ud83d\0")])
        assert "a" in journal
        assert journal["b"]["reply"] == "two\n\ud83d\0"
    with Journal(path) as journal:
        assert len(journal) == 2
        assert journal["a"]["reply"] == "one"
        assert journal["b"]["reply"] == "two\n\ud83d\0"
        assert journal.get("c") is None
    assert not path.with_name("calls.jsonl.reserve").exists()


def test_a_failure_is_no_answer_and_the_first_answer_stays(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with Journal(path) as journal:
        journal.append([record("a", "", "TimeoutError")])
        assert "a" not in journal
        assert journal["a"]["error"] == "TimeoutError"
        journal.append([record("a", "first")])
        journal.append([record("a", "second"), record("a", "", "late")])
        assert journal["a"]["reply"] == "first"
    with Journal(path) as journal:
        assert journal["a"]["reply"] == "first"
        assert len(journal) == 1


@settings(max_examples=60, deadline=None)
@given(
    replies=st.lists(st.text(max_size=30), min_size=1, max_size=6),
    cut=st.floats(0, 1),
    rubbish=st.sampled_from([b"", b"\0\0\0\0", b'{"key": "torn', b"\xff\xfe"]),
)
def test_a_file_that_was_cut_anywhere_keeps_its_whole_records(
    replies: list[str], cut: float, rubbish: bytes
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "calls.jsonl"
        with Journal(path, reserve=0) as journal:
            for at, reply in enumerate(replies):
                journal.append([record(str(at), reply)])
        whole = path.read_bytes()
        kept = whole[: round(cut * len(whole))]
        # A record whose line end alone is missing is whole.
        complete = (kept + b"\n").count(b"}\n") if kept.endswith(b"}") else kept.count(b"\n")
        with path.open("wb") as f:
            f.write(kept + rubbish if kept.endswith(b"\n") else kept)
        with Journal(path, reserve=0) as journal:
            assert len(journal) == complete
            journal.append([record("new", "after the crash")])
        with Journal(path, reserve=0) as journal:
            assert [journal[str(at)]["reply"] for at in range(complete)] == replies[:complete]
            assert journal["new"]["reply"] == "after the crash"
        assert len(list(records(path))) == complete + 1


def test_a_spoilt_line_in_the_middle_costs_only_itself(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "calls.jsonl"
    with Journal(path) as journal:
        journal.append([record("a")])
    with path.open("ab") as f:
        f.write(b'{"key": 5}\nnot json\n\n')
    with Journal(path) as journal:
        journal.append([record("b")])
    with Journal(path) as journal:
        assert {"a", "b"} == {key for key in "ab" if key in journal}
    assert "is no record" in caplog.text


def test_two_engines_do_not_write_one_journal(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with Journal(path):
        with pytest.raises(JournalError, match=f"process {os.getpid()} on .*two sweeps"):
            Journal(path)
        other = subprocess.run(
            [sys.executable, "-c", _open_in_child(path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "two sweeps cannot write" in other.stderr
    with Journal(path) as journal:
        assert len(journal) == 0


def _open_in_child(path: Path) -> str:
    return (
        "from pathlib import Path; from vlmeval_findit.engine.journal import Journal; "
        f"Journal(Path({str(path)!r}))"
    )


def fill(journal: Journal, name: str = "") -> tuple[int, DiskFullError]:
    """Append until the disk is full; the number of the record that found it so, and the error."""
    for at in range(1000):
        try:
            journal.append([record(f"{name}{at}", "x" * 100)])
        except DiskFullError as error:
            return at, error
    raise AssertionError("never full")


class SmallDisk:
    """Writes fail when the files in a folder would hold more than so many bytes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, size: int) -> None:
        real = os.pwrite

        def pwrite(handle: int, data: bytes, offset: int) -> int:
            used = sum(path.stat().st_size for path in folder.iterdir())
            room = max(size - used, 0)
            if not room:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(handle, data[:room], offset)

        monkeypatch.setattr(os, "pwrite", pwrite)


def test_a_full_disk_keeps_what_is_on_its_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "calls.jsonl"
    journal = Journal(path, reserve=2000)
    SmallDisk(monkeypatch, tmp_path, 3000)
    kept, full = fill(journal)
    assert "every reply is kept" in str(full)
    # The reserve is free now: the reply that found the disk full is kept, and some more are.
    journal.append([record("on its way")])
    more, full = fill(journal, "more ")
    assert "1 replies could not be kept" in str(full)
    assert full.lost == 1
    journal.close()
    monkeypatch.undo()
    with Journal(path) as journal:
        assert all(str(at) in journal for at in range(kept + 1))
        assert "on its way" in journal
        assert f"more {more}" not in journal


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB; skipped where nobody may mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"no small file system: {error}")
    if done.returncode:
        pytest.skip(f"no small file system: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_file_system_that_is_really_full(small_disk: Path) -> None:
    path = small_disk / "calls.jsonl"
    with Journal(path, reserve=16 << 10) as journal:
        at, full = fill(journal)
        assert full.lost == 0
        journal.append([record("on its way")])
        answered = len(journal)
    assert answered == at + 2
    with Journal(path, reserve=0) as journal:
        assert len(journal) == answered
