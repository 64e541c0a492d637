"""A journal read and followed while another process writes it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from engine_fakes import records
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_journal import answered, key, record

from vlmeval_findit.engine import Journal, JournalError, JournalTail, JournalView, encode_record

NAMES = "abcde"
CALL = st.tuples(
    st.sampled_from(NAMES), st.sampled_from(["answer", "failure", "with log-probabilities"])
)
CALLS = st.lists(CALL, max_size=6)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "calls.jsonl"


def encoded_calls(calls: list[tuple[str, str]], numbers: Iterator[int]) -> list[dict[str, Any]]:
    built = []
    for name, kind in calls:
        number = next(numbers)
        error = "Timeout" if kind == "failure" else None
        more = {"logprobs": True} if kind.startswith("with") else {}
        built.append(record(name, f"{number}", error, dataset="D" if number % 3 else "E", **more))
    return built


def view(journal: JournalView) -> dict[str, Any]:
    """Everything that a journal says of its calls."""
    each = {
        name: (
            journal.get(key(name)),
            key(name) in journal,
            [journal.serves(key(name), logprobs=requested) for requested in (False, True)],
        )
        for name in NAMES
    }
    return {**each, "all": list(journal.records())}


def traces(folder: Path) -> dict[Path, tuple[int, int, int]]:
    """Everything in a folder: which file it is, and when and how large it was written."""
    states = {path: path.stat() for path in [folder, *folder.rglob("*")]}
    return {path: (item.st_ino, item.st_mtime_ns, item.st_size) for path, item in states.items()}


# --- a view ---------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    appended=CALLS,
    rubbish=st.lists(st.sampled_from([b"", b"no record\n", b"\xff\xfe\n", b"\0\0\n"]), max_size=2),
    torn=st.integers(0, 300),
)
def test_a_view_reads_what_the_writer_reads(
    appended: list[Any], rubbish: list[bytes], torn: int
) -> None:
    with TemporaryDirectory() as name:
        folder, numbers = Path(name), iter(range(1000))
        path = folder / "calls.jsonl"
        lines = list(map(encode_record, encoded_calls(appended, numbers)))
        end = encode_record(record("torn off"))[:torn]
        path.write_bytes(b"".join([*lines, *(rubbish if lines else ()), end]))
        before = traces(folder)
        with JournalView(path) as seen:
            reported = view(seen)
            assert traces(folder) == before
            with Journal(path, reserve=0) as journal:
                assert reported == view(journal)
                journal.append([record("later")])
            assert view(seen) == reported, "although a writer went on"


def test_a_view_creates_no_journal(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        JournalView(path)
    assert not list(path.parent.iterdir())
    with pytest.raises(JournalError, match="is not a regular file"):
        JournalView(path.parent)


# --- what is no call ------------------------------------------------------------------------------


def test_events_are_read_back_in_order(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
        f.write(encode_record({"event": {"torn": True}})[:-3])
    for opened in (JournalView(path), Journal(path)):
        with opened:
            assert list(opened.events()) == events
            assert key("a") in opened
    assert [r["prompt_sha256"] for r in records(path)] == ["a"]
    assert [r["prompt_sha256"] for r in JournalTail(path).records()] == ["a"]


# --- followed -------------------------------------------------------------------------------------


def test_a_tail_yields_every_complete_line_once(path: Path) -> None:
    tail = JournalTail(path)

    def new() -> str:
        assert not tail.is_another()
        return "".join(record["prompt_sha256"] for record in tail.records())

    assert new() == ""
    with Journal(path) as journal:
        for name in "abc":
            journal.append([record(name)])
            assert new() == name
    line = encode_record(record("d"))
    with path.open("ab", buffering=0) as f:
        f.write(line[:50])
        assert (new(), tail.left) == ("", 50)
        f.write(line[50:])
        assert (new(), tail.left) == ("d", 0)


@pytest.mark.parametrize("change", ["replaced", "cut"])
def test_another_journal_is_noticed(change: str, path: Path) -> None:
    path.write_bytes(b"".join(map(encode_record, map(record, "abc"))))
    tail = JournalTail(path)
    assert len(list(tail.records())) == 3
    if change == "cut":
        os.truncate(path, len(encode_record(record("a"))))
    else:
        path.rename(path.with_name("old"))
        path.write_bytes(encode_record(record("a")))
    assert tail.is_another()
    assert len(list(tail.records())) == 1
    assert not tail.is_another()


# --- a damaged beginning --------------------------------------------------------------------------

LINES = [encode_record(record(name, f"{name} says")) for name in NAMES]


def with_bom(data: bytes) -> bytes:
    return b"\xef\xbb\xbf" + data


def without_block(data: bytes) -> bytes:
    return b"\0" * 512 + data[512:]


def with_flipped_bit(data: bytes) -> bytes:
    return data[:5] + bytes([data[5] ^ 4]) + data[6:]


def with_cut_line(data: bytes) -> bytes:
    return data[40:]


def with_another_line(data: bytes) -> bytes:
    return b"<html>Gateway timeout</html>\n" + data


def without_end_of_line(data: bytes) -> bytes:
    return data.replace(b"\n", b" ", 1)


DAMAGES = (
    with_bom,
    without_block,
    with_flipped_bit,
    with_cut_line,
    with_another_line,
    without_end_of_line,
)


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_first_line_is_a_line_like_any_other(damage: Any, path: Path) -> None:
    path.write_bytes(damage(b"".join(LINES)))
    with Journal(path) as journal:
        lost = [name for name in NAMES if key(name) not in journal]
        assert len(lost) <= 2
        journal.append([record(name, "again") for name in lost])
    with JournalView(path) as journal:
        assert all(key(name) in journal for name in NAMES)
    assert len(list(JournalTail(path).records())) == len(NAMES)


@given(st.integers(min_value=0), st.integers(min_value=1, max_value=255))
def test_one_damaged_byte_costs_at_most_two_calls(at: int, change: int) -> None:
    data = bytearray(b"".join(LINES))
    data[at % len(data)] ^= change
    with TemporaryDirectory() as folder:
        path = Path(folder, "calls.jsonl")
        path.write_bytes(data)
        with JournalView(path) as journal:
            kept = [name for name in NAMES if key(name) in journal]
            assert len(kept) >= len(NAMES) - 2
            for name in kept:
                answer = journal.get(key(name))
                assert answer is not None
                assert answer["reply"] == f"{name} says"


@pytest.mark.parametrize("damage", [with_flipped_bit, without_block])
def test_a_journal_of_one_damaged_call_is_one(damage: Any, path: Path) -> None:
    path.write_bytes(damage(encode_record(record("a", "x" * 1000))))
    with Journal(path) as journal:
        assert key("a") not in journal


def test_a_long_line_before_the_first_record_is_no_end(path: Path) -> None:
    path.write_bytes(b"x" * (3 << 20) + b"\n" + LINES[0])
    with JournalView(path) as journal:
        assert key(NAMES[0]) in journal


# --- a copy by another program --------------------------------------------------------------------

MANY = [encode_record(record(name, f"{name} says")) for name in "abcdefgh"]
WHOLE = {
    "line ends of Windows": b"".join(line.replace(b"\n", b"\r\n") for line in MANY),
    "line ends doubled": b"".join(line.replace(b"\n", b"\r\r\n") for line in MANY),
    "blanks at the ends": b"".join(line.replace(b"\n", b" \t \n") for line in MANY),
    "blanks at the beginnings": b"".join(b"    " + line for line in MANY),
    "empty lines": b"\n".join(MANY) + b"\n \n\r\n",
    "a mark of UTF-8": b"\xef\xbb\xbf" + b"".join(MANY),
    "no last line end": b"".join(MANY).rstrip(),
    "blanks on both sides": b"".join(b"\t " + line.replace(b"\n", b"  \n") for line in MANY),
    "lines of blanks": b" \t \n".join(MANY) + b"\t\n",
    "many empty lines": b"\n" * 1000 + b"".join(MANY) + b"\n" * 1000,
    "a mark, and line ends of Windows": with_bom(b"".join(MANY).replace(b"\n", b"\r\n")),
}


@pytest.mark.parametrize("copy", WHOLE)
def test_white_space_around_records_is_no_damage(
    copy: str, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_bytes(WHOLE[copy])
    with Journal(path) as journal:
        for name in "abcdefgh":
            answer = journal.get(key(name))
            assert answer is not None
            assert answer["reply"] == f"{name} says"
        journal.append([record("i", "is new")])
    assert not caplog.records
    with JournalView(path) as journal:
        assert all(key(name) in journal for name in "abcdefghi")
    assert len(list(JournalTail(path).records())) == 9


def dumped(**how: Any) -> bytes:
    return b"".join(json.dumps(json.loads(line), **how).encode() + b"\n" for line in MANY)


REWRITTEN = {
    "sorted keys": dumped(sort_keys=True),
    "no blanks": dumped(separators=(",", ":")),
    "other numbers": b"".join(line.replace(b"says", b"said") for line in MANY),
    "line ends of old": b"".join(MANY).replace(b"says", b"s").replace(b", ", b","),
    "indented": dumped(indent=1),
    "blanks before colons": dumped(separators=(", ", " : ")),
    "a list of records": b"[" + b",\n".join(line.strip() for line in MANY) + b"]",
    "UTF-16": b"".join(MANY).decode().encode("utf-16"),
    "numbered lines": b"".join(b"%d: %b" % (at, line) for at, line in enumerate(MANY)),
    "quoted lines": b"".join(json.dumps(line.decode()).encode() + b"\n" for line in MANY),
    "half of it": b"".join([*MANY[:3], *(line.replace(b"says", b"said") for line in MANY[3:])]),
}


@pytest.mark.parametrize("copy", REWRITTEN)
def test_a_journal_that_was_written_again_is_refused(copy: str, path: Path) -> None:
    """All its calls would be asked, and paid, once more; the user may have a good copy."""
    path.write_bytes(REWRITTEN[copy])
    for opened in (Journal, JournalView):
        with pytest.raises(JournalError, match=r"not a journal|of its . lines are damaged") as got:
            opened(path)
        assert "--journal FILE" in str(got.value)
    assert path.read_bytes() == REWRITTEN[copy]
    with pytest.raises(JournalError):  # the lock is free
        Journal(path)


def test_few_damaged_lines_of_many_are_asked_again(path: Path) -> None:
    spoilt = [line.replace(b"says", b"said") for line in MANY[:4]]
    path.write_bytes(b"".join([*spoilt, *MANY[4:]]))
    with Journal(path) as journal:
        assert [key(name) in journal for name in "abcdefgh"] == [False] * 4 + [True] * 4
