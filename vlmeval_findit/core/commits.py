"""The commit that a clone is at, read from its files: git itself may not be installed."""

from __future__ import annotations

import re
from pathlib import Path

_LINKS = 5
"""So many references may name each other before we give up."""


def commit_of(clone: Path) -> str | None:
    """The commit of the clone whose top folder this is, in 12 digits; None where none is found.

    ``.git`` may be a folder, or a file that names one (a worktree, a submodule); the head may be
    detached, its branch a file or a line of ``packed-refs``.  Whether files were changed since
    cannot be told without git.
    """
    try:
        folder = _git_folder(clone / ".git")
        return _resolved(folder, _shared_folder(folder))
    except (OSError, ValueError):
        return None


def _git_folder(git: Path) -> Path:
    if git.is_dir():
        return git
    said = git.read_text(encoding="utf-8").strip()
    if not said.startswith("gitdir:"):
        raise ValueError(f"{git}: names no folder")
    return git.parent / said.removeprefix("gitdir:").strip()


def _shared_folder(folder: Path) -> Path:
    """Where the branches are: a worktree shares those of its clone."""
    common = folder / "commondir"
    if not common.is_file():
        return folder
    return folder / common.read_text(encoding="utf-8").strip()


def _resolved(folder: Path, shared: Path) -> str | None:
    said = (folder / "HEAD").read_text(encoding="utf-8").strip()
    for _ in range(_LINKS):
        if re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", said):
            return said[:12]
        if not said.startswith("ref:"):
            return None
        said = _reference(said.removeprefix("ref:").strip(), folder, shared)
    return None


def _reference(name: str, folder: Path, shared: Path) -> str:
    for base in (folder, shared):
        if (base / name).is_file():
            return (base / name).read_text(encoding="utf-8").strip()
    for line in (shared / "packed-refs").read_text(encoding="utf-8").splitlines():
        commit, _, packed = line.partition(" ")
        if packed == name:
            return commit
    raise ValueError(f"no reference {name}")
