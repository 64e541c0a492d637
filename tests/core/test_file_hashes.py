"""Files are hashed again when anything says that they may have changed."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from vlmeval_findit.core import files
from vlmeval_findit.core.files import SETTLED_NS, FileHashes, file_sha256

OLD = b"an old picture"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are read from now on."""
    names: list[str] = []

    def noted(path: Path) -> str:
        names.append(path.name)
        return file_sha256(path)

    monkeypatch.setattr(files, "file_sha256", noted)
    return names


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Lets images grow old."""
    real = time.time_ns
    return lambda: monkeypatch.setattr(time, "time_ns", lambda: real() + 2 * SETTLED_NS)


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "a.png"
    path.write_bytes(OLD)
    return path


def rewritten(path: Path, data: bytes = b"new") -> None:
    """Another content of the old modification time."""
    times = path.stat().st_mtime_ns
    path.write_bytes(data.ljust(len(OLD)))
    os.utime(path, ns=(times, times))


def replaced(path: Path) -> None:
    other = path.with_name("b.png")
    other.write_bytes(OLD.upper())
    shutil.copystat(path, other)
    other.replace(path)


def longer(path: Path) -> None:
    rewritten(path, OLD + b"!")


@pytest.mark.parametrize("change", [rewritten, replaced, longer, os.utime])
def test_a_changed_image_is_read_again(
    change: Callable[[Path], None], picture: Path, read: list[str], later: Callable[[], None]
) -> None:
    later()
    first = FileHashes()
    assert first(picture) == first(picture) == file_sha256(picture)
    assert len(read) == 1
    assert FileHashes(first.seen)(picture) == file_sha256(picture)
    assert len(read) == 1, "nothing changed"
    change(picture)
    assert FileHashes(first.seen)(picture) == file_sha256(picture)
    assert len(read) == 2


def test_what_was_written_just_before_it_was_read_is_not_remembered(
    picture: Path, read: list[str]
) -> None:
    """On a clock of two seconds another content could follow at the same time."""
    first = FileHashes()
    first(picture)
    FileHashes(first.seen)(picture)
    assert len(read) == 2
