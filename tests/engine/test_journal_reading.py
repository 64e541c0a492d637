"""A journal read beside its writer, from what is beside it, compressed, and quickly."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from engine_fakes import records
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_journal import answer_of, answered, key, record

from vlmeval_findit.engine.calls import key_of
from vlmeval_findit.engine.journal import index as journal_index
from vlmeval_findit.engine.journal import lines as journal_lines
from vlmeval_findit.engine.journal import writer as journal_writer
from vlmeval_findit.engine.journal.index import Index
from vlmeval_findit.engine.journal.lines import MAX_LINE, Line, State, as_line
from vlmeval_findit.engine.journal.view import (
    JournalError,
    JournalTail,
    JournalView,
    packed_path,
    unpack,
    zstd,
)
from vlmeval_findit.engine.journal.writer import Journal

NAMES = "abcde"
CALL = st.tuples(
    st.sampled_from(NAMES), st.sampled_from(["answer", "failure", "with log-probabilities"])
)
CALLS = st.lists(CALL, max_size=6)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "calls.jsonl"


def filled(path: Path, count: int) -> list[str]:
    names = [str(at) for at in range(count)]
    with Journal(path, reserve=0) as journal:
        journal.append(record(name, name) for name in names)
    return names


def made_of(calls: list[tuple[str, str]], numbers: Iterator[int]) -> list[dict[str, Any]]:
    made = []
    for name, kind in calls:
        number = next(numbers)
        error = "Timeout" if kind == "failure" else None
        more = {"confidences": True} if kind.startswith("with") else {}
        made.append(record(name, f"{number}", error, dataset="D" if number % 3 else "E", **more))
    return made


def view(journal: JournalView) -> dict[str, Any]:
    """Everything that a journal says of its calls."""
    each = {
        name: (
            journal.get(key(name)),
            key(name) in journal,
            [journal.serves(key(name), confidences=wanted) for wanted in (False, True)],
        )
        for name in NAMES
    }
    return {**each, "all": list(journal.records())}


def traces(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Everything in a folder: which file it is, and when and how large it was written."""
    states = {str(path): path.stat() for path in [folder, *folder.rglob("*")]}
    return {name: (one.st_ino, one.st_mtime_ns, one.st_size) for name, one in states.items()}


# --- a view ---------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    appended=CALLS,
    rubbish=st.lists(st.sampled_from([b"", b"no record\n", b"\xff\xfe\n", b"\0\0\n"]), max_size=2),
    torn=st.integers(0, 300),
)
def test_a_view_says_what_the_writer_says(
    appended: list[Any], rubbish: list[bytes], torn: int
) -> None:
    with TemporaryDirectory() as name:
        folder, numbers = Path(name), iter(range(1000))
        path = folder / "calls.jsonl"
        lines = list(map(as_line, made_of(appended, numbers)))
        end = as_line(record("torn off"))[:torn]
        path.write_bytes(b"".join([*lines, *(rubbish if lines else ()), end]))
        before = traces(folder)
        with JournalView(path) as seen:
            said = view(seen)
            assert traces(folder) == before
            with Journal(path, reserve=0) as journal:
                assert said == view(journal)
                journal.append([record("later")])
            assert view(seen) == said, "although a writer went on"


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_view_is_a_beginning_of_what_another_process_writes(path: Path) -> None:
    names = [str(at) for at in range(200)]
    filled(path, 1)
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
    told, looks = 1, 0
    with os.fdopen(reading, "rb", buffering=0) as f:
        while new := f.read(40):  # not all at once, however late we look
            told, looks = told + len(new), looks + 1
            with JournalView(path) as now:
                found = [name for name in names if key(name) in now]
                assert found == names[: len(found)]
                assert len(found) >= told, "what was kept when it was opened is seen"
                assert [answer_of(now, key(name))["reply"] for name in found] == found
    assert os.waitpid(child, 0)[1] == 0
    assert looks > 3


def test_where_there_is_no_journal_none_is_made(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        JournalView(path)
    assert not list(path.parent.iterdir())
    with pytest.raises(JournalError, match="is no regular file"):
        JournalView(path.parent)


def test_segments_of_version_0_2_are_refused_with_what_to_type(path: Path) -> None:
    lines = [as_line(record(name)) for name in "abc"]
    segments = path.with_name("calls.jsonl.d")
    segments.mkdir()
    for at in (0, 1):
        (segments / f"00000{at + 1}.jsonl.zst").write_bytes(zstd.compress(lines[at]))
    path.write_bytes(lines[2])
    for opens in (Journal, JournalView):
        with pytest.raises(JournalError, match="kept large journals") as error:
            opens(path)
    command = str(error.value).partition("Make one file of both: ")[2]
    if subprocess.run(["zstd", "-V"], check=False, capture_output=True).returncode == 0:
        subprocess.run(command, shell=True, check=True)
        with Journal(path) as journal:
            assert [key(name) in journal for name in "abc"] == [True] * 3


# --- what is no call ------------------------------------------------------------------------------


def test_what_is_noted_is_read_back_in_order(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [{"batch": "b1", "keys": [key("a")]}, {"batch": "b1", "id": "ä\n"}, {"error": None}]
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    with Journal(path) as journal:
        journal.note(events[0])
        assert len(synced) == 1, "before anything is sent"
        journal.append([record("a")])
        journal.note(events[1])
        journal.note(events[2])
        assert list(journal.events()) == events
        assert answered(journal) == 1
    with path.open("ab") as f:
        f.write(as_line({"event": {"torn": True}})[:-3])
    for opened in (JournalView(path), Journal(path)):
        with opened:
            assert list(opened.events()) == events
            assert key("a") in opened
    assert [r["prompt_sha256"] for r in records(path)] == ["a"]
    assert [r["prompt_sha256"] for r in JournalTail(path).records()] == ["a"]


def test_a_spoilt_event_is_left_out(path: Path) -> None:
    with Journal(path) as journal:
        journal.note({"id": "one"})
        journal.note({"id": "two"})
    path.write_bytes(path.read_bytes().replace(b"one", b"0ne"))
    with Journal(path) as journal:
        assert list(journal.events()) == [{"id": "two"}]


# --- compressed -----------------------------------------------------------------------------------


@pytest.fixture
def packed(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compressed journal of a thousand calls and an event."""
    monkeypatch.setattr(journal_writer, "PACKED_FROM", 1)
    filled(path, 1000)
    with Journal(path) as journal:
        journal.note({"id": "one"})
        journal.pack()
        assert answer_of(journal, key("7"))["reply"] == "7", "it can be read until it is closed"
    assert [one.name for one in path.parent.iterdir()] == ["calls.jsonl.zst"]
    return packed_path(path)


def test_a_compressed_journal_is_read_and_gone_on_with(packed: Path, path: Path) -> None:
    before = traces(path.parent)
    with JournalView(path) as seen:
        assert answered(seen) == 1000
        assert list(seen.events()) == [{"id": "one"}]
        assert answer_of(seen, key("999"))["reply"] == "999"
    assert [r["reply"] for r in records(path)] == list(map(str, range(1000)))
    assert traces(path.parent) == before
    with Journal(path) as journal:
        journal.append([record("more")])
    assert not packed.exists()
    assert len(list(records(path))) == 1001


def test_a_small_journal_is_not_compressed(path: Path) -> None:
    with Journal(path) as journal:
        journal.append([record("a")])
        journal.pack()
    assert path.exists()


def test_a_compressed_journal_that_is_spoilt_keeps_what_is_before(
    packed: Path, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = packed.read_bytes()
    for spoilt in (data[: len(data) // 2], data[:-200] + b"\0" * 200):
        packed.write_bytes(spoilt)
        with JournalView(path) as seen:
            found = [at for at in range(1000) if key(str(at)) in seen]
            assert found == list(range(len(found)))
    assert "is spoilt" in caplog.text


def test_what_is_no_compressed_journal_is_left_alone(packed: Path, path: Path) -> None:
    packed.write_bytes(b"no zstd")
    for opens in (Journal, JournalView):
        with pytest.raises(JournalError, match="See yourself: zstd -d"):
            opens(path)
    assert packed.read_bytes() == b"no zstd"
    assert not path.exists()


def test_zeros_are_unpacked_piece_by_piece(tmp_path: Path) -> None:
    zeros, path = bytes(64 << 20), tmp_path / "calls.jsonl.zst"
    path.write_bytes(zstd.compress(zeros))
    tracemalloc.start()
    try:
        with (tmp_path / "calls.jsonl").open("wb") as target:
            unpack(path, target)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert (tmp_path / "calls.jsonl").stat().st_size == len(zeros)


def test_who_is_killed_between_two_files_has_both(packed: Path, path: Path) -> None:
    data = packed.read_bytes()
    Journal(path).close()
    packed.write_bytes(data)
    with Journal(path) as journal:
        assert answered(journal) == 1000
        journal.append([record("more")])
    assert len(list(records(path))) == 1001


# --- followed -------------------------------------------------------------------------------------


def test_a_tail_tells_every_whole_line_once(path: Path) -> None:
    tail = JournalTail(path)
    assert not list(tail.records())
    with Journal(path) as journal:
        for name in "abc":
            journal.append([record(name)])
            assert not tail.is_another()
            assert [r["prompt_sha256"] for r in tail.records()] == [name]
        line = as_line(record("d"))
        with path.open("ab") as f:
            f.write(line[:50])
            f.flush()
            assert not list(tail.records())
            assert tail.left == 50
            f.write(line[50:])
        assert [r["prompt_sha256"] for r in tail.records()] == ["d"]
        assert tail.left == 0


def test_one_look_reads_no_more_than_it_may(path: Path) -> None:
    filled(path, 40)
    size, tail = path.stat().st_size, JournalTail(path, at_a_time=2000)
    looks = []
    while found := [r["reply"] for r in tail.records()]:
        looks.append(found)
        assert tail.left == size - tail._read
    assert [reply for look in looks for reply in look] == list(map(str, range(40)))
    assert len(looks) > 3


def test_a_tail_goes_on_when_a_journal_is_compressed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_writer, "PACKED_FROM", 1)
    tail = JournalTail(path)
    with Journal(path) as journal:
        journal.append([record("a")])
        assert len(list(tail.records())) == 1
        journal.append([record("b")])
        journal.pack()
    assert not tail.is_another()
    assert [r["prompt_sha256"] for r in tail.records()] == ["b"]
    assert not list(tail.records())
    assert len(list(JournalTail(path).records())) == 2
    Journal(path).close()
    assert tail.is_another()
    assert len(list(tail.records())) == 2


@pytest.mark.parametrize("how", ["replaced", "cut"])
def test_another_journal_is_noticed(how: str, path: Path) -> None:
    filled(path, 3)
    tail = JournalTail(path)
    assert len(list(tail.records())) == 3
    if how == "cut":
        os.truncate(path, len(path.read_bytes().splitlines(keepends=True)[0]))
    else:
        path.rename(path.with_name("old"))
        filled(path, 1)
    assert tail.is_another()
    assert len(list(tail.records())) == 1
    assert not tail.is_another()


# --- quickly, and in little memory ----------------------------------------------------------------


def hashed(*said: object) -> str:
    return hashlib.sha256(repr(said).encode()).hexdigest()


def engine_record(at: int, **more: Any) -> dict[str, Any]:
    """A record in the order in which the engine writes it."""
    settings = {"max_new_tokens": 1024, "prompt": 'a", "dataset": "b'}
    words, images = hashed("words", at), [hashed("image", at)]
    said = {"error": None, **more}
    return {
        "key": key_of("M", settings, words, images),
        "model": "M",
        "settings": settings,
        "dataset": "FindIt_Scale",
        "row": at,
        "prompt_sha256": words,
        "image_sha256": images,
        "reply": '", "error": null, "crc32": "',
        "extra_records": {"error": None},
        "made_by": {"package": "0.3"},
        **said,
    }


journal_record = journal_lines.record_in

CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda line: line,
    "a reply": lambda line: line.replace(b'"reply": "', b'"reply": "x'),
    "a key": lambda line: line[:9] + hashed("other").encode() + line[73:],
    "no end": lambda line: line[:-1],
    "other blanks": lambda line: json.dumps(json.loads(line), separators=(",", ":")).encode(),
}


@pytest.mark.parametrize("more", [{}, {"confidences": True}, {"error": "Timeout"}])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_quick_look_at_a_line_says_what_parsing_it_says(
    change: Callable[[bytes], bytes], more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = change(as_line(engine_record(7, **more)))
    found, parsed = journal_lines._line(line, 5, len(line)), []
    monkeypatch.setattr(journal_lines, "_ANSWER_END", re.compile(rb"(?!)"))
    monkeypatch.setattr(
        journal_lines, "record_in", lambda raw: parsed.append(raw) or journal_record(raw)
    )
    assert found == journal_lines._line(line, 5, len(line))
    assert len(parsed) == 1
    assert found.key in (None, engine_record(7)["key"])


PLACES = st.tuples(
    st.integers(0, 30),  # of which call
    st.one_of(st.integers(0, 2**48 - 1), st.just(2**48 - 1)),
    st.one_of(st.integers(1, 1000), st.just(MAX_LINE)),
    st.sampled_from(State),
)


@given(st.lists(PLACES, max_size=60), st.sampled_from([1, 2, 16]))
def test_an_index_says_what_a_dictionary_says(
    places: list[tuple[int, int, int, State]], least: int
) -> None:
    """The first answer stands, but for one with log-probabilities; else the last failure."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal_index, "_LEAST", least)
        index = Index()
    plain: dict[str, list[Line]] = {}
    for number, start, length, state in places:
        line = Line(start, length, hashed(number), state)
        index.note(line)
        plain.setdefault(hashed(number), []).append(line)
    for at in range(31):
        lines = plain.get(hashed(at), [])
        by_state = {state: [one for one in lines if one.state is state] for state in State}
        answers = [*by_state[State.WITH_LOGPROBS][:1], *by_state[State.ANSWERED][:1]]
        wanted = next(iter([*answers, *by_state[State.FAILED][::-1]]), None)
        assert index.line(hashed(at)) == wanted
        assert index.state(hashed(at)) == (-1 if wanted is None else wanted.state)


@pytest.mark.parametrize("name", ["", "a call", "0" * 63, "0" * 66, "g" * 64])
def test_what_is_no_key_is_not_known(name: str) -> None:
    index = Index()
    index.note(Line(0, 10, name))
    assert index.line(name) is None


def test_a_call_takes_few_bytes(path: Path) -> None:
    """A hundred bytes a call is what a run of a million may need."""
    path.write_bytes(b"".join(as_line(engine_record(at)) for at in range(20_000)))
    tracemalloc.start()
    try:
        with JournalView(path) as seen:
            size = tracemalloc.get_traced_memory()[0]
            assert answered(seen) == 20_000
    finally:
        tracemalloc.stop()
    assert size < 20_000 * 70
