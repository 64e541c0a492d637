"""What workers keep beside a journal: nothing of it is lost, whoever is killed, and it becomes part
of the journal as it is."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from test_journal import SmallDisk, content, key, record
from test_journal_segments import dies_at

from vlmeval_findit.engine.journal import sealed as journal_sealed
from vlmeval_findit.engine.journal import writer as journal_module
from vlmeval_findit.engine.journal.errors import DiskFullError
from vlmeval_findit.engine.journal.lookup import JournalView
from vlmeval_findit.engine.journal.reading import content_sha256, is_whole, records
from vlmeval_findit.engine.journal.segments import folder_of, segments_of
from vlmeval_findit.engine.journal.side import Side, live_sides, sealed_sides, side_path
from vlmeval_findit.engine.journal.tail import JournalTail
from vlmeval_findit.engine.journal.writer import Journal, NotOursError

ONE, OTHER = "1" * 32, "2" * 32


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda file: None)  # many, and slow


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return begun(tmp_path)


def begun(folder: Path) -> Path:
    """A journal as its driver has it when workers begin."""
    Journal(folder / "calls.jsonl").close()
    return folder / "calls.jsonl"


def kept(path: Path, token: str, names: str, *, sealed: bool) -> None:
    """What a worker keeps of some calls; its reply says who it is."""
    side = Side(path, token)
    for name in names:
        side.append([record(name, f"{name} by {token[0]}")])
    if sealed:
        side.seal(1)
    side.close()


def replies(path: Path) -> dict[str, str]:
    """The answers that a journal has, by name."""
    with JournalView(path) as seen:
        names = {one["prompt_sha256"] for one in records(path)}
        return {name: seen[key(name)]["reply"] for name in sorted(names)}


@pytest.mark.parametrize("sealed", [True, False])
def test_what_workers_keep_is_taken_in(path: Path, sealed: bool) -> None:
    with Journal(path) as journal:
        journal.append([record("a", "a by the driver")])
        kept(path, ONE, "bc", sealed=sealed)
        kept(path, OTHER, "cd", sealed=sealed)
        assert not is_whole(path)
        assert key("b") not in journal
        before = replies(path)
        assert list(before) == list("abcd"), "whoever reads sees it before it is taken in"
        journal.take_in()
        after = {name: journal[key(name)]["reply"] for name in "abcd"}
        journal.take_in()
    first = {"a": "a by the driver", "b": "b by 1", "c": "c by 1", "d": "d by 2"}
    assert before == after == replies(path) == first, "of two answers the first stands"
    assert is_whole(path)
    assert not live_sides(path)
    assert not sealed_sides(path)
    assert len(segments_of(path)) == (3 if sealed else 0)
    with Journal(path) as journal:
        assert len(journal) == 4


def test_a_file_without_a_reply_is_gone(path: Path) -> None:
    side = Side(path, ONE)
    assert side_path(path, ONE).exists(), "so that a driver sees that it would be found"
    side.seal(1)
    side.close()
    assert list(path.parent.iterdir()) == [path]


def test_the_next_journal_takes_in_what_was_left(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept(path, ONE, "ab", sealed=True)
    kept(path, ONE, "c", sealed=False)
    with Journal(path) as journal:
        assert [key(name) in journal for name in "abcd"] == [True, True, True, False]
    assert "what was kept beside it is taken in" in caplog.text


def test_who_takes_the_place_of_a_worker_knows_what_it_answered(path: Path) -> None:
    side = Side(path, ONE)
    side.append([record("a"), record("b", error="timeout")])
    with side.path.open("ab") as f:
        f.write(b'{"key": "torn')
    again = Side(path, ONE)
    assert [again.answered(key(name)) for name in "abc"] == [True, False, False]
    again.append([record("c")])
    again.close()
    assert list(replies(path)) == ["a", "b", "c"]
    with Journal(path) as journal:
        assert [key(name) in journal for name in "abc"] == [True, False, True]


def test_who_was_given_up_for_dead_may_still_write(path: Path) -> None:
    first, second = Side(path, ONE), Side(path, ONE)
    first.append([record("a")])
    second.append([record("b", "x" * 300)])
    first.append([record("c")])
    second.append([record("d")])
    second.seal(1)
    second.close()
    with Journal(path) as journal:
        assert [journal[key(name)]["prompt_sha256"] for name in "abcd"] == list("abcd")


def test_small_files_are_not_sealed(path: Path) -> None:
    side = Side(path, ONE)
    side.append([record("a")])
    side.seal(1 << 20)
    assert side.answered(key("a"))
    side.seal(1)
    assert not side.answered(key("a")), "who asks then has been told of it"
    side.append([record("b")])
    side.seal(1)
    side.close()
    assert [one.number for one in sealed_sides(path)] == [1, 2]
    assert list(replies(path)) == ["a", "b"]


@pytest.mark.parametrize("sealed", [True, False])
def test_a_reply_that_comes_while_it_is_taken_in_is_not_lost(path: Path, sealed: bool) -> None:
    side = Side(path, ONE)
    side.append([record("before")])
    side.sync()
    Journal(path).close()
    side.append([record("after")])
    if sealed:
        side.seal(1)
    side.close()
    assert list(replies(path)) == ["after", "before"]
    with Journal(path) as journal:
        assert key("after") in journal, "its keys name it too"


def test_without_room_nothing_is_half_there(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    side = Side(path, ONE)
    side.append([record("a")])
    with monkeypatch.context() as patch:
        SmallDisk(patch, path.parent, side.path.stat().st_size + 100)
        with pytest.raises(OSError, match="No space"):
            side.append([record("b", "x" * 1000)])
    side.append([record("c")])
    side.close()
    assert list(replies(path)) == ["a", "c"]


# --- taken in as it is ----------------------------------------------------------------------------


def test_keys_come_along_and_are_made_anew_where_they_do_not(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(path, ONE, "ab", sealed=True)
    kept(path, OTHER, "cd", sealed=True)
    monkeypatch.setattr(journal_sealed, "rows_of", None)
    with Journal(path) as journal:
        assert all(key(name) in journal for name in "abcd")
    monkeypatch.undo()
    kept(path, ONE, "ef", sealed=True)
    kept(path, OTHER, "gh", sealed=True)
    first, second = sealed_sides(path)
    first.keys.unlink()
    second.keys.write_bytes(second.keys.read_bytes()[:-40])
    with Journal(path) as journal:
        assert [journal[key(name)]["reply"][0] for name in "abcdefgh"] == list("abcdefgh")
    assert len(list(folder_of(path).glob("*.keys"))) == 1, "four of one size became one"


def test_without_room_for_keys_it_stays_beside(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(path, ONE, "ab", sealed=True)

    def full(*given: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(journal_sealed, "write_renumbered", full)
        with pytest.raises(DiskFullError):
            Journal(path)
    assert list(replies(path)) == ["a", "b"]
    with Journal(path) as journal:
        assert key("b") in journal


def test_nobody_takes_in_who_lost_the_journal(path: Path) -> None:
    with Journal(path) as journal:
        kept(path, ONE, "ab", sealed=True)
        with path.open("ab") as f:
            f.write(b"somebody else\n")
        with pytest.raises(NotOursError):
            journal.take_in()
    assert sealed_sides(path)


def test_who_follows_has_every_line_once(path: Path) -> None:
    tail, found = JournalTail(path), []
    with Journal(path) as journal:
        for number, names in enumerate(("ab", "cd", "ef")):
            journal.append([record(f"own {number}")])
            found += tail.records()
            kept(path, f"{number:032x}", names, sealed=True)
            journal.take_in()
            assert not tail.is_another()
            found += tail.records()
    assert sorted(one["prompt_sha256"] for one in found) == [*"abcdef", "own 0", "own 1", "own 2"]
    assert content_sha256(path) != content_sha256_of_nothing(path)


def content_sha256_of_nothing(path: Path) -> str:
    other = path.with_name("other.jsonl")
    Journal(other).close()
    return content_sha256(other)


# --- killed ---------------------------------------------------------------------------------------


def changes_of(work: Callable[[Callable[[], None]], None], number: int) -> bool:
    """Whether a process that does some work was killed when it was about to change the disk for
    the ``number``-th time since it called what it is given.
    """
    child = os.fork()
    if child == 0:
        counted = dies_at(number)

        def begin() -> None:
            for what in ("replace", "unlink", "rename"):
                setattr(Path, what, counted(getattr(Path, what)))
            os.fsync = counted(os.fsync)
            os.write = counted(os.write)

        work(begin)
        os._exit(0)
    return os.waitpid(child, 0)[1] != 0


def sealing(path: Path, begin: Callable[[], None] = lambda: None) -> None:
    begin()
    kept(path, ONE, "ab", sealed=True)
    kept(path, ONE, "c", sealed=False)


def taking_in(path: Path, begin: Callable[[], None]) -> None:
    with Journal(path, reserve=0) as journal:
        filled(path)
        begin()
        journal.append([record("own")])
        journal.take_in()


def filled(path: Path) -> None:
    sealing(path)
    kept(path, OTHER, "de", sealed=True)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("how", ["sealing", "taking in"])
def test_killed_anywhere_nothing_is_lost(how: str, tmp_path: Path) -> None:
    number, killed = 0, True
    while killed:
        folder = tmp_path / str(number)
        folder.mkdir()
        path = begun(folder)
        if how == "sealing":
            killed = changes_of(partial(sealing, path), number)
            told = []
        else:
            killed = changes_of(partial(taking_in, path), number)
            told = list("abcde")
        before = replies(path)
        assert set(told) <= set(before), "for who reads before it is opened again"
        with Journal(path, reserve=0) as journal:
            for name, reply in before.items():
                assert journal[key(name)]["reply"] == reply
            assert all(key(name) in journal for name in told)
        assert not sealed_sides(path)
        assert not live_sides(path)
        if not killed:
            assert set(before) >= set("abc")
        number += 1
    assert number > 8


def test_small_and_large_journals_hold_the_same(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sealed after every reply, or never: what was kept beside is in either."""
    for size, folder in ((1, "sealed"), (1 << 30, "plain")):
        monkeypatch.setattr(journal_module, "SEGMENT", size)
        one = path.parent / folder / "calls.jsonl"
        one.parent.mkdir()
        with Journal(one) as journal:
            journal.append([record("a")])
            kept(one, ONE, "bc", sealed=True)
            kept(one, OTHER, "d", sealed=False)
            journal.take_in()
            journal.append([record("e")])
        assert list(replies(one)) == list("abcde")
        assert len(content(one).splitlines()) == 5
