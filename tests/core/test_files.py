"""Files appear whole or not at all, whatever is written into them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vlmeval_findit.core.files import atomic_write, file_sha256, open_regular, write_once


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "score.csv"
    path.write_text("before")
    with pytest.raises(ZeroDivisionError), atomic_write(path) as f:  # noqa: PT012
        f.write("half")
        1 / 0  # noqa: B018
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["score.csv"]


def test_the_umask_decides_who_may_read_a_file(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with atomic_write(tmp_path / "text"):
            pass
        write_once(tmp_path / "bytes", b"")
    finally:
        os.umask(before)
    for path in tmp_path.iterdir():
        assert path.stat().st_mode & 0o777 == 0o640


def test_equal_content_leaves_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "f"
    write_once(path, b"one")
    inode = path.stat().st_ino
    write_once(path, b"one")
    assert path.stat().st_ino == inode
    write_once(path, b"two")
    assert path.read_bytes() == b"two"
    assert os.listdir(path.parent) == ["f"]


def test_half_a_surrogate_pair_can_be_written(tmp_path: Path) -> None:
    """A model can say it: JSON's \\ud83d is a valid string that UTF-8 cannot hold."""
    label = json.loads(r'"cat \ud83d"')
    path = tmp_path / "details.jsonl"
    with atomic_write(path) as f:
        json.dump({"label": label}, f, ensure_ascii=False)
    assert json.loads(path.read_text()) == {"label": label}


@pytest.mark.parametrize("read", [open_regular, file_sha256])
def test_only_regular_files_are_opened(read: Callable[[Path], Any], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "queue")
    for path in (tmp_path / "queue", Path("/dev/zero")):
        with pytest.raises(OSError, match="not a regular file"):
            read(path)
    with pytest.raises(IsADirectoryError):
        read(tmp_path)
