"""A sealed journal says what a plain one says, whoever is killed, reads or writes beside."""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from engine_fakes import FakeHost, FakeModel, demo_sweep, go
from engine_fakes import files as result_files
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_journal import content, key, record

from vlmeval_findit.engine.finished import NAME
from vlmeval_findit.engine.journal import sealed as journal_sealed
from vlmeval_findit.engine.journal import sealed_view as journal_sealed_view
from vlmeval_findit.engine.journal import segments as journal_segments
from vlmeval_findit.engine.journal import writer as journal_module
from vlmeval_findit.engine.journal.errors import JournalError
from vlmeval_findit.engine.journal.lines import as_line
from vlmeval_findit.engine.journal.lookup import Lookup
from vlmeval_findit.engine.journal.reading import (
    content_sha256,
    content_size,
    delete,
    is_whole,
    records,
    snapshot,
)
from vlmeval_findit.engine.journal.segments import folder_of, segments_of, zstd
from vlmeval_findit.engine.journal.tail import JournalTail
from vlmeval_findit.engine.journal.writer import Journal, NotOursError

NAMES = "abcde"


@pytest.fixture(autouse=True, scope="module")
def _small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal_module, "SEGMENT", 1)
        patch.setattr(journal_segments, "FRAME", 700)
        patch.setattr(os, "fsync", lambda file: None)  # many, and slow
        yield


def view(journal: Lookup) -> dict[str, Any]:
    """Everything that a journal says of its calls."""
    return {
        name: (
            journal.get(key(name)),
            key(name) in journal,
            [journal.serves(key(name), confidences=wanted) for wanted in (False, True)],
            journal.replies(key(name)),
            journal.is_news(record(name)),
            journal.is_news(record(name, confidences=True)),
        )
        for name in NAMES
    } | {
        "all": len(journal),
        "of a dataset": sorted(json.dumps(one) for one in journal.answers_of("M", "D")),
    }


def files(path: Path) -> list[Path]:
    return sorted(folder_of(path).iterdir())


def filled(path: Path, count: int, reply: str = "x" * 200) -> list[str]:
    """A journal of so many calls, each in a segment."""
    names = [str(at) for at in range(count)]
    with Journal(path, reserve=0) as journal:
        for name in names:
            journal.append([record(name, f"{reply}{name}")])
    return names


# --- the same as a plain one ----------------------------------------------------------------------

CALL = st.tuples(
    st.sampled_from(NAMES), st.sampled_from(["answer", "failure", "with log-probabilities"])
)
STEP = st.one_of(
    st.lists(CALL, min_size=1, max_size=3),
    st.sampled_from(["open again", "keys are lost", "killed before the file was replaced"]),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEP, max_size=14), st.sampled_from([1, 900, 3000]))
def test_a_sealed_journal_says_what_a_plain_one_says(steps: list[Any], size: int) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path, number = Path(folder) / "calls.jsonl", 0
        patch.setattr(journal_module, "SEGMENT", 1 << 40)
        plain = Journal(Path(folder) / "plain.jsonl", reserve=0)
        patch.setattr(journal_module, "SEGMENT", size)
        journal = Journal(path, reserve=0)
        for step in steps:
            if isinstance(step, list):
                made = []
                for name, kind in step:
                    number += 1
                    error = "Timeout" if kind == "failure" else None
                    more = {"confidences": True} if kind.startswith("with") else {}
                    dataset = "D" if number % 3 else "other"
                    made.append(record(name, f"{number}", error, dataset=dataset, **more))
                journal.append(made)
                patch.setattr(journal_module, "SEGMENT", 1 << 40)
                plain.append(made)
                patch.setattr(journal_module, "SEGMENT", size)
            else:
                journal.close()
                if step == "keys are lost":
                    for one in folder_of(path).glob("*.keys"):
                        one.unlink()
                elif step != "open again" and (there := segments_of(path)):
                    frames = journal_segments.frames(there[-1])
                    if not path.read_bytes():
                        path.write_bytes(b"".join(one.lines for one in frames))
                journal = Journal(path, reserve=0)
            assert view(journal) == view(plain)
            assert content(path) == content(plain.path), "the same lines, each once"
        assert list(records(path)) == list(records(plain.path))
        plain.close()
        journal.close()


def test_many_segments_have_few_files_of_keys(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    names = filled(path, 23)
    assert len(segments_of(path)) == 23
    keys = [one.name for one in files(path) if one.suffix == ".keys"]
    assert keys == [
        "000001-000016.keys",
        "000017-000020.keys",
        *(f"0000{at}-0000{at}.keys" for at in (21, 22, 23)),
    ]
    with Journal(path) as journal:
        assert [journal[key(name)]["reply"][200:] for name in names] == names
        assert len(journal) == 23


def test_keys_are_found_in_every_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "calls.jsonl"
    names = [str(at) for at in range(1000)]
    monkeypatch.setattr("vlmeval_findit.engine.journal.keys._AT_A_TIME", 100)
    with Journal(path, reserve=0) as journal:
        for start in range(0, 1000, 125):
            journal.append(record(name, name) for name in names[start : start + 125])
            # Many failures of one call: more than a block holds.
            journal.append([record("0", "", "again")])
        assert len(segments_of(path)) == 16
        assert [one.suffix for one in files(path)].count(".keys") == 1
        assert [journal[key(name)]["reply"] for name in names] == names
        assert not any(f"{name} no" and key(f"{name} no") in journal for name in names)
        assert len(journal) == 1000


def test_a_journal_is_sealed_only_when_it_is_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "SEGMENT", 5000)
    path = tmp_path / "calls.jsonl"
    with Journal(path) as journal:
        while path.stat().st_size < 4500:
            journal.append([record(str(path.stat().st_size))])
        assert not folder_of(path).exists()
        lines = path.read_bytes()
        journal.append([record("a", "x" * 1000)])
        assert path.read_bytes() == b""
        assert content(path) == lines + as_line(record("a", "x" * 1000))


def test_an_old_journal_is_sealed_when_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    old = b"".join(json.dumps(record(name, name)).encode() + b"\n" for name in NAMES)
    path.write_bytes(old + b"no record\n" + as_line(record("new"))[:-20])
    path.chmod(0o640)
    assert len(list(records(path))) == 5, "and read before that"
    with Journal(path) as journal:
        assert [journal[key(name)]["reply"] for name in NAMES] == list(NAMES)
        assert path.read_bytes() == b""
    assert content(path) == old + b"no record\n"
    assert path.stat().st_mode & 0o777 == 0o640


def test_one_command_reads_it(tmp_path: Path) -> None:
    if shutil.which("zstd") is None:
        pytest.skip("there is no zstd")
    path = tmp_path / "calls.jsonl"
    filled(path, 6)
    path.write_bytes(as_line(record("last")))
    command = "zstd -dc calls.jsonl.d/*.zst | cat - calls.jsonl"
    said = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, check=True)
    assert said.stdout == content(path)
    assert [json.loads(line)["prompt_sha256"] for line in said.stdout.splitlines()] == [
        *"012345",
        "last",
    ]


def test_a_link_to_a_journal_has_its_segments(tmp_path: Path) -> None:
    real = tmp_path / "disk" / "answers.jsonl"
    real.parent.mkdir()
    path = tmp_path / "calls.jsonl"
    path.symlink_to(real)
    filled(path, 3)
    assert path.is_symlink()
    assert len(segments_of(real)) == 3
    with Journal(path) as journal:
        assert len(journal) == 3


# --- killed ---------------------------------------------------------------------------------------


def dies_at(number: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """What makes functions end their process when one of them is called for the ``number``-th time,
    counted together and from 0.
    """
    left = [number]

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                os._exit(9)
            return real(*given, **named)

        return call

    return counted


def killed_at(number: int, path: Path, names: list[str]) -> tuple[bool, list[str]]:
    """Append calls in a process that is killed when it is about to change the disk for the
    ``number``-th time; whether it was, and which calls it had been told are kept.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        counted = dies_at(number)
        journal = Journal(path, reserve=0)
        Path.replace, Path.unlink = counted(Path.replace), counted(Path.unlink)  # type: ignore[method-assign]
        os.fsync = counted(os.fsync)
        for name in names:
            journal.append([record(name, name)])
            os.write(writing, name.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as f:
        kept = list(f.read().decode())
    return os.waitpid(child, 0)[1] != 0, kept


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_killed_anywhere_nothing_is_lost_and_nothing_is_there_twice(tmp_path: Path) -> None:
    names, number, killed = list("vwxyz"), 0, True
    while killed:
        path = tmp_path / str(number) / "calls.jsonl"
        path.parent.mkdir()
        killed, kept = killed_at(number, path, names)
        there = [one["reply"] for one in records(path)] if path.exists() else []
        assert there in (kept, names[: len(kept) + 1]), "for who reads before it is opened again"
        with Journal(path, reserve=0) as journal:
            assert [name for name in names if key(name) in journal] == there
            for name in names:
                if key(name) not in journal:
                    journal.append([record(name, name)])
        with Journal(path, reserve=0) as journal:
            assert [journal[key(name)]["reply"] for name in names] == names
        assert content(path) == b"".join(as_line(record(name, name)) for name in names)
        assert all(one.suffix in (".zst", ".keys") for one in files(path)), "nothing half made"
        assert {one.name for one in path.parent.iterdir()} == {path.name, f"{path.name}.d"}
        number += 1
    assert number > 20, "five times sealed, once four files of keys became one"


# --- spoilt ---------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(where=st.floats(0, 1, exclude_max=True), how=st.sampled_from(["cut", "spoil", "double"]))
def test_a_spoilt_segment_costs_its_own_answers_only(where: float, how: str) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder) / "calls.jsonl"
        patch.setattr(journal_module, "SEGMENT", 9000)
        names = filled(path, 24, reply="y" * 300)
        first = segments_of(path)[0].path
        whole = first.read_bytes()
        at = int(where * len(whole))
        first.write_bytes(
            {
                "cut": whole[:at],
                "spoil": whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :],
                "double": whole[:at] + whole[at:] * 2,
            }[how]
        )
        right = {name: f"{'y' * 300}{name}" for name in names}
        # Whoever reads it gets what can be read, and nothing wrong.
        assert {
            one["prompt_sha256"]: one["reply"] for one in records(path)
        }.items() <= right.items()
        # What is found out while a call is read ends the run; the next one leaves it out.
        with suppress(JournalError), Journal(path, reserve=0) as journal:
            found = {name: journal.get(key(name)) for name in names}
        with Journal(path, reserve=0) as journal:
            found = {name: journal.get(key(name)) for name in names}
        there = {name: one["reply"] for name, one in found.items() if one is not None}
        assert there.items() <= right.items()
        in_first = len(names) - sum(one.size for one in segments_of(path)[1:]) // 700
        assert len(there) >= 24 - in_first
        with Journal(path, reserve=0) as journal:
            journal.append(record(name, right[name]) for name in names if key(name) not in journal)
        with Journal(path, reserve=0) as journal:
            assert {name: journal[key(name)]["reply"] for name in names} == right


def lying(lines: bytes) -> bytes:
    """A frame whose header says 256 bytes less than there are."""
    frame = bytearray(zstd.compress(lines))
    assert frame[4] >> 6 == 1, "the size has two bytes, less 256"
    at = 5 if frame[4] & 0x20 else 6
    frame[at : at + 2] = (len(lines) - 512).to_bytes(2, "little")
    return bytes(frame)


def unsaid(lines: bytes) -> bytes:
    """A frame whose header does not say how much is in it."""
    packer = zstd.ZstdCompressor()
    return packer.compress(lines) + packer.flush()


@pytest.mark.parametrize(
    ("made", "left"),
    [(zstd.compress, 0), (lying, 257), (unsaid, 0)],
    ids=["more than a line may have", "more than it says", "unsaid"],
)
def test_a_frame_is_not_unpacked_beyond_what_its_header_says(
    made: Callable[[bytes], bytes], left: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = zstd.compress(b"{}\n")
    bomb = made(b"\0" * 10_000)
    path = tmp_path / "000001.jsonl.zst"
    path.write_bytes(bomb + good)
    monkeypatch.setattr(journal_segments, "LARGEST", 9_999 + bool(left))
    unpacked: list[int] = []
    real = zstd.ZstdDecompressor

    class Watched:
        def __init__(self) -> None:
            self._real = real()

        def __getattr__(self, name: str) -> Any:
            return getattr(self._real, name)

        def decompress(self, data: bytes, max_length: int = -1) -> bytes:
            found = self._real.decompress(data, max_length)
            unpacked.append(len(found))
            return found

    monkeypatch.setattr(journal_segments.zstd, "ZstdDecompressor", Watched)
    segment = journal_segments.segment_at(path, 1)
    assert [one.lines for one in journal_segments.frames(segment)] == [b"{}\n"]
    assert journal_segments.lines_at(path, 0, len(bomb)) is None
    assert max(unpacked) < 10_000


@settings(max_examples=20, deadline=None)
@given(where=st.floats(0, 1, exclude_max=True), cut=st.booleans())
def test_spoilt_keys_are_made_again(where: float, cut: bool) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "calls.jsonl"
        names = filled(path, 6)
        keys = sorted(folder_of(path).glob("*.keys"))[0]
        whole = keys.read_bytes()
        at = int(where * len(whole))
        spoilt = whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :]
        keys.write_bytes(whole[:at] if cut else spoilt)
        with Journal(path, reserve=0) as journal:
            assert [journal[key(name)]["reply"][200:] for name in names] == names
            assert key("another") not in journal


def test_keys_of_other_segments_are_not_believed(tmp_path: Path) -> None:
    path, other = tmp_path / "calls.jsonl", tmp_path / "other.jsonl"
    filled(path, 1)
    with Journal(other) as journal:
        journal.append([record("another")])
    shutil.copy(folder_of(other) / "000001-000001.keys", folder_of(path))
    with Journal(path) as journal:
        assert key("0") in journal
        assert key("another") not in journal


def test_a_segment_that_is_missing_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "calls.jsonl"
    filled(path, 6)
    (folder_of(path) / "000002.jsonl.zst").unlink()
    with Journal(path) as journal:
        assert [key(str(at)) in journal for at in range(6)] == [at != 1 for at in range(6)]
        journal.append([record("1", "again")])
    assert "segments are missing" in caplog.text
    assert [one["prompt_sha256"] for one in records(path)] == list("023451")


def test_segments_without_their_journal_are_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "calls.jsonl"
    filled(path, 2)
    path.unlink()
    assert len(list(records(path))) == 2
    with Journal(path) as journal:
        assert len(journal) == 2
    assert "its segments are, and are read" in caplog.text
    delete(path)
    with Journal(path) as journal:
        assert len(journal) == 0


# --- no room --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "what"),
    [(journal_module, "replacing")]
    + [(journal_sealed, one) for one in ("write_segment", "write_keys", "merge_keys")]
    + [(journal_sealed, one) for one in ("replacing", "_sync_folder")],
)
def test_without_room_to_seal_the_file_grows_on(
    module: Any,
    what: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = tmp_path / "calls.jsonl"

    def full(*given: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(journal_module, "SEGMENT", 1000)
    with Journal(path) as journal:
        with monkeypatch.context() as patch:
            patch.setattr(module, what, full)
            for at in range(20):
                journal.append([record(str(at), str(at))])
        assert "could not be sealed (" in caplog.text
        assert [journal[key(str(at))]["reply"] for at in range(20)] == list(map(str, range(20)))
        for at in range(20, 30):
            journal.append([record(str(at), str(at))])
        assert path.stat().st_size < 2500
    with Journal(path) as journal:
        assert [journal[key(str(at))]["reply"] for at in range(30)] == list(map(str, range(30)))
    assert {one.name for one in tmp_path.iterdir()} == {path.name, f"{path.name}.d"}
    found = [one["reply"] for one in records(path)]
    assert sorted(set(found), key=int) == list(map(str, range(30)))
    if what != "_sync_folder":
        assert len(found) == 30


# --- two at once ----------------------------------------------------------------------------------


def test_what_somebody_writes_while_it_is_sealed_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "calls.jsonl"
    journal = Journal(path)
    other = os.open(path, os.O_WRONLY | os.O_APPEND)
    real = Path.replace

    def replace(source: Path, target: Path) -> Path:
        if target == path:
            os.write(other, as_line(record("theirs")))  # with the lock lost, at the last moment
        return real(source, target)

    monkeypatch.setattr(Path, "replace", replace)
    journal.append([record("ours")])
    monkeypatch.undo()
    assert {one["prompt_sha256"] for one in records(path)} == {"ours", "theirs"}
    journal.close()
    with Journal(path) as journal:
        assert key("theirs") in journal


def test_who_writes_a_journal_that_another_one_seals_notices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "calls.jsonl"
    monkeypatch.setattr(journal_module, "SEGMENT", 1 << 20)
    journal = Journal(path)
    journal.append([record("before")])
    real = journal._write

    def write(data: bytes) -> int | None:
        start = real(data)
        path.with_name("calls.jsonl.lock").unlink()
        monkeypatch.setattr(journal_module, "SEGMENT", 1)
        Journal(path).close()
        return start

    monkeypatch.setattr(journal, "_write", write)
    with pytest.raises(NotOursError, match=r"calls\.jsonl\.\w{32}"):
        journal.append([record("in the middle")])
    monkeypatch.setattr(journal, "_write", real)
    with pytest.raises(NotOursError):
        journal.append([record("after")])
    journal.close()
    with Journal(path) as journal:
        assert all(key(name) in journal for name in ("before", "in the middle", "after"))


# --- who reads while one writes -------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=8),
    st.sampled_from([1, 1000, 1 << 20]),
    st.sampled_from([1, 1500]),
)
def test_a_tail_has_every_line_once(appends: list[int], at_a_time: int, size: int) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal_module, "SEGMENT", size)
        path, found, names = Path(folder) / "calls.jsonl", [], []
        tail = JournalTail(path, at_a_time)
        with Journal(path, reserve=0) as journal:
            for count in appends:
                for _ in range(count):
                    names.append(str(len(names)))
                    journal.append([record(names[-1])])
                assert not tail.is_another()
                found += tail.records()
            while tail.left:
                assert not tail.is_another()
                found += tail.records()
            found += tail.records()
            assert tail.left == 0
        assert [one["prompt_sha256"] for one in found] == names


def test_a_tail_knows_another_journal(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    filled(path, 3)
    tail = JournalTail(path)
    assert len(list(tail.records())) == 3
    delete(path)
    filled(path, 5, reply="another")
    assert tail.is_another()
    assert len(list(tail.records())) == 5
    assert not tail.is_another()


def test_who_reads_gets_every_line_once_whenever_it_is_sealed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The moment between a new segment and a new file, as a reader sees it."""
    path, seen = tmp_path / "calls.jsonl", []
    real = journal_sealed._sync_folder

    def look(folder: Path) -> None:
        tail = JournalTail(path)
        for found in (list(records(path)), list(tail.records())):
            seen.append([one["prompt_sha256"] for one in found])
        assert content_size(path) == sum(one.size for one in segments_of(path))
        real(folder)

    monkeypatch.setattr(journal_sealed, "_sync_folder", look)
    names = filled(path, 5)
    assert seen == [names[: at // 2 + 1] for at in range(10)]


def test_a_reader_that_lags_behind_reads_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with Journal(path) as journal:
        journal.append([record("a")])
        reading = records(path)
        assert next(reading)["prompt_sha256"] == "a"
        journal.append([record("b")])
        journal.append([record("c")])
        assert [one["prompt_sha256"] for one in reading] == ["b"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal_module, "SEGMENT", 1 << 20)
        with Journal(path) as journal, snapshot(path) as there:
            journal.append([record("d"), record("e")])
            patch.setattr(journal_module, "SEGMENT", 1)
            journal._seal_at = 1
            journal.append([record("f")])
            assert there.live is not None
            assert len(there.live.read().splitlines()) == 3, "the old file is whole"


# --- what a finished sweep remembers --------------------------------------------------------------


def test_the_hash_of_a_journal_is_that_of_all_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    filled(path, 3)
    assert is_whole(path)
    before, size = content_sha256(path), content_size(path)
    for keys in folder_of(path).glob("*.keys"):
        keys.unlink()
    Journal(path).close()
    assert (content_sha256(path), content_size(path)) == (before, size)
    with Journal(path) as journal:
        journal.append([record("more")])
    assert content_sha256(path) != before
    path.write_bytes(b"torn")
    assert not is_whole(path)


def test_warnings_name_what_was_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "SEGMENT", 3000)
    path = tmp_path / "calls.jsonl"
    filled(path, 12)
    segment = segments_of(path)[0]
    data = bytearray(segment.path.read_bytes())
    data[20] ^= 0xFF
    segment.path.write_bytes(data)
    with caplog.at_level(logging.WARNING):
        found = [one["prompt_sha256"] for one in records(path)]
    assert "0" not in found
    assert set(found) < set(map(str, range(12)))
    assert f"{segment.path}: " in caplog.text
    assert "bytes are spoilt and left out, from byte 0 on" in caplog.text


def test_a_sweep_over_a_sealed_journal_leaves_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = []
    for size in (1 << 40, 4000):
        monkeypatch.setattr(journal_module, "SEGMENT", size)
        sweep = demo_sweep(tmp_path / str(size))
        go(sweep, FakeHost(FakeModel()))
        left.append(result_files(sweep.work_dir))
    assert len(segments_of(sweep.journal)) > 5
    assert left[0] == left[1]
    asked: list[Any] = []
    again = FakeModel(lambda *call: asked.append(call))
    with monkeypatch.context() as patch:
        # What is finished is found out without a look into a segment.
        patch.setattr(journal_segments, "_frame", None)
        patch.setattr(journal_sealed_view, "lines_at", None)
        assert len(go(sweep, FakeHost(again))) == 8
    (sweep.work_dir / NAME).unlink()
    assert len(go(sweep, FakeHost(again))) == 8
    assert result_files(sweep.work_dir) == left[0]
    # A segment fewer: its calls are asked again, and nothing else.
    segments_of(sweep.journal)[3].path.unlink()
    shutil.rmtree(sweep.work_dir)
    go(sweep, FakeHost(again))
    assert 1 <= len(asked) <= 8
    assert result_files(sweep.work_dir) == left[0]
