"""A journal looked up by key by whoever does not write it: the writer's answers, and no trace."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_journal import FOREIGN, key, record
from test_journal_segments import CALL, filled, view

from vlmeval_findit.engine.journal import lookup as journal_lookup
from vlmeval_findit.engine.journal import sealed_view as journal_sealed_view
from vlmeval_findit.engine.journal import segments as journal_segments
from vlmeval_findit.engine.journal import writer as journal_module
from vlmeval_findit.engine.journal.errors import JournalError
from vlmeval_findit.engine.journal.keys import keys_files
from vlmeval_findit.engine.journal.lines import as_line
from vlmeval_findit.engine.journal.lookup import JournalView
from vlmeval_findit.engine.journal.reading import snapshot
from vlmeval_findit.engine.journal.segments import folder_of, segments_of
from vlmeval_findit.engine.journal.side import live_sides
from vlmeval_findit.engine.journal.writer import Journal


@pytest.fixture(autouse=True, scope="module")
def _small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal_module, "SEGMENT", 1)
        patch.setattr(journal_segments, "FRAME", 700)
        patch.setattr(os, "fsync", lambda file: None)  # many, and slow
        yield


def traces(folder: Path) -> dict[str, tuple[int, int, int, int]]:
    """Everything in a folder: which file it is, and when and how large it was written."""
    found = {}
    for path in [folder, *folder.rglob("*")]:
        there = path.stat()
        found[str(path)] = (there.st_ino, there.st_mode, there.st_mtime_ns, there.st_size)
    return found


def made_of(calls: list[tuple[str, str]], numbers: Iterator[int]) -> list[dict[str, Any]]:
    made = []
    for name, kind in calls:
        number = next(numbers)
        error = "Timeout" if kind == "failure" else None
        more = {"confidences": True} if kind.startswith("with") else {}
        dataset = "D" if number % 3 else "other"
        made.append(record(name, f"{number}", error, dataset=dataset, **more))
    return made


# --- the same as the writer's ---------------------------------------------------------------------

CALLS = st.lists(CALL, max_size=4)

RUBBISH = st.lists(
    st.sampled_from([b"", b"no record\n", b"\xff\xfe\n", b'{"key": "70a1\n', b"\0\0\n"]), max_size=2
)

SPOILT_KEYS: dict[str, Callable[[Path], object]] = {
    "none": lambda keys: None,
    "missing": Path.unlink,
    "cut": lambda keys: os.truncate(keys, 30),
    "its directory": lambda keys: keys.write_bytes(keys.read_bytes()[:-5] + b"12345"),
    "a row": lambda keys: keys.write_bytes(b"spoilt" + keys.read_bytes()[6:]),
    "of others": lambda keys: keys.rename(keys.with_name("000001-000900.keys")),
}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    appended=st.lists(CALLS, max_size=7),
    size=st.sampled_from([1, 900, 1 << 40]),
    live=CALLS,
    others=st.lists(CALLS, max_size=3),
    rubbish=RUBBISH,
    torn=st.integers(0, 400),
    spoil=st.sampled_from(list(SPOILT_KEYS)),
    killed=st.booleans(),
)
def test_a_view_says_what_the_writer_says(
    appended: list[Any],
    size: int,
    live: list[Any],
    others: list[Any],
    rubbish: list[bytes],
    torn: int,
    spoil: str,
    killed: bool,
) -> None:
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder, numbers = Path(name), iter(range(1000))
        path = folder / "calls.jsonl"
        patch.setattr(journal_module, "SEGMENT", size)
        with Journal(path, reserve=0) as journal:
            for calls in appended:
                journal.append(made_of(calls, numbers))
        if killed and (there := segments_of(path)) and not path.stat().st_size:
            # Between the segment and the empty file; and something is left of the next one.
            path.write_bytes(b"".join(one.lines for one in journal_segments.frames(there[-1])))
            (folder_of(path) / f".{there[-1].path.name}.0a1b2c3d").write_bytes(b"half of it")
        else:
            with path.open("ab") as f:
                f.write(b"".join(map(as_line, made_of(live, numbers))))
                f.write(b"".join(rubbish) if f.tell() else b"")
                f.write(as_line(record("torn off"))[:torn])
        for at, calls in enumerate(others):
            side = folder / f"calls.jsonl.{'abc'[at] * 32}.jsonl{'.taken' * (at == 1)}"
            lines = map(as_line, made_of(calls, numbers))
            side.write_bytes(b"".join([*lines, as_line(record("torn off"))[:torn]]))
        for keys in sorted(folder_of(path).glob("*.keys"))[:2]:
            SPOILT_KEYS[spoil](keys)
        before = traces(folder)
        with JournalView(path) as seen:
            said = view(seen)
            assert traces(folder) == before
            with Journal(path, reserve=0) as journal:
                assert said == view(journal)
            assert view(seen) == said, "although it was opened, taken in and sealed by a writer"


# --- while another process writes -----------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("size", [1, 2000])
def test_a_view_is_a_beginning_of_what_another_process_writes(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "SEGMENT", size)
    path, names = tmp_path / "calls.jsonl", [str(at) for at in range(300)]
    with Journal(path, reserve=0) as journal:
        journal.append([record(names[0], names[0])])
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with Journal(path, reserve=0) as journal:
            for name in names[1:]:
                journal.append([record(name, name)])
                os.write(writing, b".")
        os._exit(0)
    os.close(writing)
    try:
        told, first, seen = 1, JournalView(path), 0
        there = len(first)
        with os.fdopen(reading, "rb", buffering=0) as f:
            while new := f.read(1000):
                told += len(new)
                with JournalView(path) as now:
                    found = [name for name in names if key(name) in now]
                    assert found == names[: len(found)]
                    assert len(found) >= told, "what was kept when it was opened is seen"
                    assert [now[key(name)]["reply"] for name in found] == found
                    assert len(now) == len(found), "what is appended meanwhile is not"
                    seen += 1
    finally:
        status = os.waitpid(child, 0)[1]
    assert status == 0
    assert seen > 3
    assert len(first) == there
    assert first[key(names[0])]["reply"] == names[0]
    first.close()


def test_an_open_view_keeps_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "calls.jsonl"
    names = filled(path, 3)
    monkeypatch.setattr(journal_module, "SEGMENT", 1 << 20)
    with Journal(path) as journal:
        journal.append([record("live", "in the file")])
    with JournalView(path) as seen:
        monkeypatch.setattr(journal_module, "SEGMENT", 1)
        filled(path, 30, reply="later")
        assert len(list(folder_of(path).glob("*.keys"))) < 9, "the keys of then are merged away"
        assert [seen[key(name)]["reply"][200:] for name in names] == names
        assert seen[key("live")]["reply"] == "in the file"
        assert key("29") not in seen
        assert len(seen) == 4
    with JournalView(path) as seen:
        assert len(seen) == 31


@pytest.mark.parametrize("moment", ["listed", "opened"])
def test_what_is_taken_in_meanwhile_is_seen(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "calls.jsonl"
    filled(path, 2)
    (tmp_path / f"calls.jsonl.{'a' * 32}.jsonl").write_bytes(as_line(record("beside")))
    real = live_sides if moment == "listed" else snapshot

    def taken_in(of: Path) -> Any:
        found = real(of) if moment == "listed" else None
        Journal(of).close()
        return found or real(of)

    monkeypatch.setattr(journal_lookup, real.__name__, taken_in)
    with JournalView(path) as seen:
        assert key("beside") in seen
        assert len(seen) == 3
    assert not list(tmp_path.glob("calls.jsonl.*.jsonl"))


def test_keys_that_are_merged_while_they_are_listed_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "calls.jsonl"
    names = filled(path, 4)
    before = {1: [(1, folder_of(path) / "000001-000001.keys")]}  # four files became one since
    looks = []

    def listed(folder: Path) -> Any:
        looks.append(folder)
        return before if len(looks) == 1 else keys_files(folder)

    monkeypatch.setattr(journal_sealed_view, "keys_files", listed)
    monkeypatch.setattr(journal_sealed_view, "keys_in_memory", None)
    with JournalView(path) as seen:
        assert [seen[key(name)]["reply"][200:] for name in names] == names
    assert len(looks) == 2


# --- what cannot be read --------------------------------------------------------------------------


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_file_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(JournalError, match="does not begin with a record of a journal"):
        JournalView(path)


def test_where_there_is_no_journal_none_is_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        JournalView(tmp_path / "calls.jsonl")
    assert not list(tmp_path.iterdir())
    with pytest.raises(JournalError, match="is no regular file"):
        JournalView(tmp_path)
    filled(tmp_path / "calls.jsonl", 2)
    (tmp_path / "calls.jsonl").unlink()
    with JournalView(tmp_path / "calls.jsonl") as seen:
        assert len(seen) == 2, "its segments are"


def test_spoilt_keys_of_many_segments_cost_none_of_them(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    names = filled(path, 6)
    SPOILT_KEYS["a row"](folder_of(path) / "000001-000004.keys")
    before = traces(tmp_path)
    with JournalView(path) as seen:
        assert [seen[key(name)]["reply"][200:] for name in names] == names
    assert traces(tmp_path) == before


def test_a_spoilt_frame_is_said_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    names = filled(path, 3)
    segment = segments_of(path)[0].path
    data = bytearray(segment.read_bytes())
    data[40] ^= 0xFF
    segment.write_bytes(data)
    before = traces(tmp_path)
    with JournalView(path) as seen:
        with pytest.raises(JournalError, match=r"spoilt at byte 0\. A sweep asks for the answers"):
            seen[key(names[0])]
        assert seen[key(names[1])]["reply"].endswith(names[1])
    assert traces(tmp_path) == before
