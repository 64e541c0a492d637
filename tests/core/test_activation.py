"""What makes ``python`` and ``findit`` those that run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from vlmeval_findit.core import activation


def environment(folder: Path, *programs: str) -> Path:
    """Make a virtual environment's folder of programs."""
    programs_folder = folder / "bin"
    programs_folder.mkdir(parents=True)
    for name in programs:
        (programs_folder / name).touch(0o755)
    return folder


@pytest.mark.parametrize(
    ("first", "programs", "words"),
    [
        ("other", ("python", "activate"), ". .venv/bin/activate"),
        ("none", ("python", "activate"), ". .venv/bin/activate"),
        ("own", ("python", "activate"), ""),
        ("other", ("python",), ""),
    ],
    ids=["another python is found", "no python is found", "it is activated", "conda"],
)
def test_what_is_to_be_typed_first(
    first: str,
    programs: tuple[str, ...],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = environment(tmp_path / ".venv", *programs)
    other = environment(tmp_path / "usr", "python")
    found = {"own": own / "bin", "other": other / "bin", "none": tmp_path}[first]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(found))
    monkeypatch.setattr(sys, "prefix", str(own))
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    assert activation() == words
    monkeypatch.chdir(other)
    if words:
        assert activation() == f". {own}/bin/activate", "from elsewhere"
    monkeypatch.setattr(sys, "base_prefix", str(own))
    assert activation() == "", "no virtual environment"
