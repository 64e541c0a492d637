"""Files appear whole or not at all, whatever is written into them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from vlmeval_findit.core.files import atomic_write, file_sha256


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "score.csv"
    with atomic_write(path) as f:
        f.write("a")
        assert not path.exists()
    assert path.read_text() == "a"
    assert os.listdir(tmp_path) == ["score.csv"]


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "score.csv"
    path.write_text("before")
    with pytest.raises(ZeroDivisionError), atomic_write(path) as f:  # noqa: PT012
        f.write("half")
        1 / 0  # noqa: B018
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["score.csv"]


def test_others_may_read_it(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "f"):
        pass
    assert (tmp_path / "f").stat().st_mode & 0o044 == 0o044 & ~_umask()


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


def test_half_a_surrogate_pair_can_be_written(tmp_path: Path) -> None:
    """A model can say it: JSON's \\ud83d is a valid string that UTF-8 cannot hold."""
    label = json.loads(r'"cat \ud83d"')
    path = tmp_path / "details.jsonl"
    with atomic_write(path) as f:
        json.dump({"label": label}, f, ensure_ascii=False)
    assert json.loads(path.read_text()) == {"label": label}


def test_sha256(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert file_sha256(tmp_path / "empty").startswith("e3b0c44298fc1c149afbf4c8996fb924")
