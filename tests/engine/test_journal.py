"""The journal: nothing that was written is lost, and nothing torn counts as a record."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from engine_fakes import records
from hypothesis import given, settings
from hypothesis import strategies as st
from paths import python_path

from vlmeval_findit.core import LockedError, sha256_of
from vlmeval_findit.engine import (
    DiskFullError,
    Journal,
    JournalCutError,
    JournalError,
    JournalTakenError,
    JournalView,
    encode_record,
)

IMAGE = "1" * 64


def key(name: str, settings: dict[str, Any] | None = None) -> str:
    """Return the key of the call that asks a model for a name."""
    return sha256_of(f"{name} {settings or {}}".encode())


def answer_of(journal: JournalView, key: str) -> dict[str, Any]:
    """Return the record of a call, which must have one."""
    actual = journal.get(key)
    assert actual is not None
    return actual


def answered(journal: JournalView) -> int:
    """Return how many calls have an answer."""
    return len({item["key"] for item in journal.records() if not item["error"]})


def record(name: str, reply: str = "[]", error: str | None = None, **more: Any) -> dict[str, Any]:
    settings = more.get("settings", {})
    return {
        "key": key(name, settings),
        "error": error,
        "logprobs": False,
        "model": "M",
        "settings": settings,
        "prompt_sha256": name,
        "image_sha256": [IMAGE],
        "reply": reply,
        "extra_records": None,
        **more,
    }


def test_a_failure_is_no_answer_and_the_first_answer_stays(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "calls.jsonl"
    with Journal(path) as journal:
        journal.append([record("a", "", "TimeoutError")])
        assert key("a") not in journal
        assert answer_of(journal, key("a"))["error"] == "TimeoutError"
        journal.append([record("a", "first")])
        journal.append([record("a", "second"), record("a", "", "late")])
        assert answer_of(journal, key("a"))["reply"] == "first"
    with Journal(path) as journal:
        assert answer_of(journal, key("a"))["reply"] == "first"
        assert answered(journal) == 1
        assert journal.get(key("b")) is None
    assert [item.name for item in path.parent.iterdir()] == ["calls.jsonl"], "no lock, no reserve"


def test_an_answer_with_log_probabilities_replaces_an_answer_without(tmp_path: Path) -> None:
    with Journal(tmp_path / "calls.jsonl") as journal:
        journal.append([record("a", "plain")])
        assert journal.serves(key("a"), logprobs=False)
        assert not journal.serves(key("a"), logprobs=True)
        journal.append([record("a", "with", logprobs=True), record("a", "again")])
        assert journal.serves(key("a"), logprobs=True)
        assert answer_of(journal, key("a"))["reply"] == "with"


@settings(max_examples=60, deadline=None)
@given(
    replies=st.lists(st.text(max_size=30), min_size=1, max_size=6),
    cut=st.floats(0, 1),
    rubbish=st.sampled_from([b"", b"\0\0\0\0", b'{"key": "70a1', b"\xff\xfe"]),
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
        stored = whole[: round(cut * len(whole))]
        # A record whose line end alone is missing is whole.
        ends = accumulate(
            len(encode_record(record(str(at), reply))) for at, reply in enumerate(replies)
        )
        complete = sum(len(stored) >= end - 1 for end in ends)
        with path.open("wb") as f:
            f.write(stored + rubbish if stored.endswith(b"\n") else stored)
        with Journal(path, reserve=0) as journal:
            assert answered(journal) == complete
            journal.append([record("new", "after the crash")])
        with Journal(path, reserve=0) as journal:
            assert [answer_of(journal, key(str(at)))["reply"] for at in range(complete)] == replies[
                :complete
            ]
            assert answer_of(journal, key("new"))["reply"] == "after the crash"
        assert len(list(records(path))) == complete + 1


# --- what is read ---------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(codec=None, categories=None), max_size=40))
def test_any_reply_is_read_back_unchanged(reply: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "calls.jsonl"
        with Journal(path, reserve=0) as journal:
            journal.append([record("a", reply)])
            # Two halves of a surrogate pair are read as their character.
            whole = reply.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
            assert answer_of(journal, key("a")) == record("a", whole)
        assert list(records(path)) == [record("a", whole)]


SPOILT = {
    "a digit of the reply": lambda line: line.replace(b"[5, 6]", b"[5, 7]"),
    "the error is gone": lambda line: line.replace(b'"error": "Timeout"', b'"error": null'),
    "another key": lambda line: line.replace(b'{"key": "', b'{"key": "0', 1),
    "the checksum": lambda line: line[:-4] + (b"0" if line[-4:-3] != b"0" else b"1") + line[-3:],
    "a NUL": lambda line: line.replace(b"[5", b"\0[5"),
    "no record": lambda line: b'{"key": 5}\n',
}


@pytest.mark.parametrize("error", [None, "Timeout"])
@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_a_damaged_line_is_no_answer(
    spoil: Callable[[bytes], bytes],
    error: str | None,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = tmp_path / "calls.jsonl"
    first, middle, last = (
        encode_record(record(name, "[5, 6]", error if name == "b" else None)) for name in "abc"
    )
    bad = spoil(middle)
    assert (bad != middle) == (error is not None or spoil is not SPOILT["the error is gone"])
    path.write_bytes(first + bad + bad + last)
    with Journal(path) as journal:
        assert key("a") in journal
        assert key("c") in journal
        assert (journal.get(key("b")) is None) == (bad != middle)
    if bad != middle:
        assert "2 lines are damaged" in caplog.text
        assert f"the first is at byte {len(first)}" in caplog.text
        assert len(caplog.records) == 1, "one warning, however many lines"


# --- what is no journal ---------------------------------------------------------------------------

FOREIGN = {
    "text": b"Dear diary,\nnothing happened.\n",
    "one byte": b"x",
    "an object": b"{}",
    "JSON lines of others": b'{"key": "a", "value": 1}\n{"key": "b"}\n',
    "NULs": b"\0" * 4096,
    "ours, torn, and more": b'{"key": "0a\n{"key": "0b"}\n',
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_file_is_refused_and_left_alone(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    for opens in (Journal, JournalView):
        with pytest.raises(JournalError, match="is not a journal of this version"):
            opens(path)
    assert path.read_bytes() == content
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"], "not even a lock"


def test_only_a_regular_file_is_a_journal(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path, tmp_path / "fifo"):
        with pytest.raises(JournalError, match="is not a regular file"):
            Journal(path)
    assert [path.name for path in tmp_path.iterdir()] == ["fifo"]


# --- one process at a time ------------------------------------------------------------------------


def test_two_sweeps_cannot_open_the_same_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As on a network file system that grants every lock of the operating system to everybody.
    monkeypatch.setattr("fcntl.flock", lambda *anything: None)
    monkeypatch.setattr("fcntl.lockf", lambda *anything: None)
    path = tmp_path / "calls.jsonl"
    with Journal(path), pytest.raises(LockedError, match=f"process {os.getpid()} on .*two sweeps"):
        Journal(path)
    with Journal(path) as journal:
        assert answered(journal) == 0
    assert [item.name for item in tmp_path.iterdir()] == ["calls.jsonl"]


def test_a_journal_that_cannot_be_opened_is_not_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(journal: Journal, size: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    path = tmp_path / "calls.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "_reserve_room", fail)
        with pytest.raises(OSError, match="Input/output error") as error:
            Journal(path)
    assert [file.name for file in tmp_path.iterdir()] == ["calls.jsonl"], error.type


def lose_the_lock(journal: Journal) -> None:
    """Another machine thought us dead."""
    lock = journal.path.with_name(f"{journal.path.name}.lock")
    lock.unlink()
    lock.write_text("filelock/2\npid=1\nhost=elsewhere\nmode=lease\nduration=60.0\n")


def somebody_appends(journal: Journal) -> None:
    with journal.path.open("ab") as f:
        f.write(encode_record(record("of another")))


def somebody_takes_it_away(journal: Journal) -> None:
    journal.path.unlink()


@pytest.mark.parametrize("happens", [lose_the_lock, somebody_appends, somebody_takes_it_away])
def test_a_lost_lock_overwrites_nothing_and_loses_nothing(
    happens: Callable[[Journal], None], tmp_path: Path
) -> None:
    path = tmp_path / "calls.jsonl"
    journal = Journal(path)
    journal.append([record("before")])
    happens(journal)
    there = path.read_bytes() if path.exists() else b""
    for name in ("ours", "on its way"):
        if happens is somebody_appends:
            journal.append([record(name)])
            assert all(key(item) in journal for item in (name, "of another"))
        else:
            with pytest.raises(JournalTakenError, match="Every reply is stored in it"):
                journal.append([record(name)])
    assert path.read_bytes().startswith(there)
    journal.close()
    path.with_name("calls.jsonl.lock").unlink(missing_ok=True)
    with Journal(path) as journal:
        assert all(journal.get(key(name)) is not None for name in ("before", "ours", "on its way"))
        assert (key("of another") in journal) == (happens is somebody_appends)
    assert [item.name for item in tmp_path.iterdir()] == ["calls.jsonl"]


def test_a_journal_that_is_cut_anywhere_says_so(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    names = ("one", "two", "three")
    with Journal(path) as journal:
        journal.append(map(record, names))
        size = path.stat().st_size
    whole = path.read_bytes()
    for cut in range(0, size, 61):
        path.write_bytes(whole)
        journal = Journal(path)
        os.truncate(path, cut)
        for name in ("ours", "on its way"):
            with pytest.raises(JournalCutError, match="another program cut it off"):
                journal.append([record(name)])
        with pytest.raises(JournalCutError):
            journal.get(key("three"))
        journal.close()
        with Journal(path) as journal:
            assert all(journal.get(key(name)) is not None for name in ("ours", "on its way"))


@pytest.mark.slow
def test_processes_of_a_run_append_to_the_same_journal(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with Journal(path) as journal:
        others = [
            subprocess.Popen(
                [sys.executable, "-c", _APPENDS, str(path), name],
                env={**os.environ, "PYTHONPATH": f"{python_path()}:{Path(__file__).parent}"},
            )
            for name in "ab"
        ]
        for at in range(100):
            journal.append([record(f"0{at}")])
        assert [other.wait() for other in others] == [0, 0]
        journal.catch_up()
        assert answered(journal) == 300
        assert answer_of(journal, key("b99"))["reply"] == "b" * 5000
    assert len(list(records(path))) == 300


_APPENDS = """
import sys
from pathlib import Path
from test_journal import record
from vlmeval_findit.engine.journal.writer import Journal
path, name = sys.argv[1:]
with Journal(Path(path), shared=True) as journal:
    for at in range(100):
        journal.append([record(f"{name}{at}", name * 5000)])
"""


@pytest.mark.parametrize("written", [1, 2, 50, -20])
def test_a_line_that_another_process_tore_costs_only_itself(written: int, tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with Journal(path) as journal, Journal(path, shared=True) as other:
        journal.append([record("a")])
        with path.open("ab") as f:
            f.write(encode_record(record("torn"))[:written])
        other.append([record("b")])
        assert key("a") in other
        journal.append([record("c")])
        assert [key(name) in journal for name in ("a", "b", "c", "torn")] == [True] * 3 + [False]
    assert [r["prompt_sha256"] for r in records(path)] == ["a", "b", "c"]


def test_a_whole_journal_stays_as_it_is_when_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with Journal(path) as journal, Journal(path, shared=True) as other:
        journal.append([record("a")])
        other.append([record("b")])
        journal.catch_up()
    whole = path.read_bytes()
    assert whole == encode_record(record("a")) + encode_record(record("b"))
    for shared in (False, True, False):
        with Journal(path, shared=shared) as journal:
            journal.catch_up()
        assert path.read_bytes() == whole


# --- a full disk ----------------------------------------------------------------------------------


def fill(journal: Journal, name: str = "") -> tuple[int, DiskFullError]:
    """Append until the disk is full; return the number of the last record, and the error."""
    for at in range(1000):
        try:
            journal.append([record(f"{name}{at}", "x" * 100)])
        except DiskFullError as error:
            return at, error
    raise AssertionError("never full")


def test_a_full_disk_stores_calls_in_flight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, size = os.write, 8000

    def write(handle: int, data: bytes) -> int:
        room = size - sum(path.stat().st_size for path in tmp_path.iterdir())
        if room <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(handle, data[:room])

    path = tmp_path / "calls.jsonl"
    journal = Journal(path, reserve=4000)
    monkeypatch.setattr(os, "write", write)
    stored, full = fill(journal)
    assert "every reply is stored" in str(full)
    # The reserve is free now: the reply that did not fit is stored, and so are some more.
    journal.append([record("on its way")])
    more, full = fill(journal, "more ")
    assert "1 reply could not be stored" in str(full)
    assert full.lost == 1
    journal.close()
    monkeypatch.undo()
    with Journal(path) as journal:
        assert all(key(str(at)) in journal for at in range(stored + 1))
        assert key("on its way") in journal
        assert key(f"more {more}") not in journal


def test_another_disk_error_is_no_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "calls.jsonl"
    with Journal(path) as journal:
        journal.append([record("a")])

        def fail(handle: int, data: bytes) -> int:
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(os, "write", fail)
        with pytest.raises(OSError, match="Input/output error"):
            journal.append([record("b")])
        monkeypatch.undo()
        journal.append([record("c")])
    assert [r["prompt_sha256"] for r in records(path)] == ["a", "c"]


@pytest.mark.parametrize(("seconds", "syncs"), [(0.0, 3), (1e9, 0)])
def test_the_journal_is_synced_each_second_and_at_the_end(
    seconds: float, syncs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    monkeypatch.setattr("vlmeval_findit.engine.journal.writer.SYNC_SECONDS", seconds)
    with Journal(tmp_path / "calls.jsonl") as journal:
        for name in "abc":
            journal.append([record(name)])
        assert len(synced) == syncs
    assert len(synced) == (syncs or 1)


def test_closing_a_journal_twice_touches_no_other_file(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "calls.jsonl")
    journal.append([record("a")])
    journal.close()
    with Journal(tmp_path / "calls.jsonl") as other, (tmp_path / "other").open("w") as file:
        journal.close()
        file.write("x")
        file.flush()
        assert (tmp_path / "calls.jsonl.reserve").exists(), "of the run that writes now"
        other.append([record("b")])
    assert (tmp_path / "other").read_text() == "x"
    with JournalView(tmp_path / "calls.jsonl") as view:
        assert answered(view) == 2


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
def test_a_closed_journal_holds_no_file_and_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    journal = Journal(path)
    journal.append([record("a")])
    journal.close()
    open_files = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            open_files.append(os.readlink(f"/proc/self/fd/{number}"))
    assert not [name for name in open_files if name.startswith(str(tmp_path))]
    assert [item.name for item in tmp_path.iterdir()] == ["calls.jsonl"]


def test_a_journal_that_could_not_be_synced_is_closed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "calls.jsonl")
    journal.append([record("a")])

    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        with pytest.raises(DiskFullError):
            journal.close()
    journal.close()
    Journal(tmp_path / "calls.jsonl").close()


@pytest.mark.parametrize(
    "number", [errno.EMFILE, errno.ENFILE, errno.EIO, errno.ESTALE, errno.EACCES]
)
@pytest.mark.parametrize("where", ["stat", "read_bytes"])
def test_an_error_of_the_disk_is_not_another_program(
    where: str,
    number: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Of the journal's state, or of its lease, of which filelock says nothing then."""

    def fail(*_: object, **__: object) -> object:
        raise OSError(number, os.strerror(number))

    with Journal(tmp_path / "calls.jsonl") as journal:
        with monkeypatch.context() as patch:
            if where == "stat":
                patch.setattr(os, "stat", fail)
            else:
                patch.setattr(type(journal._lock._lease), "owner", None)  # type: ignore[union-attr]
                patch.setattr(Path, "read_bytes", fail)
            journal.append([record("one")])
            journal.append([record("two")])
        (said,) = caplog.messages
        assert "whether another run writes it cannot be told" in said
        assert ("ulimit -n" in said) is (number in (errno.EMFILE, errno.ENFILE))
        journal.append([record("three")])
        assert all(key(name) in journal for name in ("one", "two", "three"))
