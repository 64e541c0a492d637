"""A folder in which commands were typed is put back, whatever they did to it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from fresh_copy import FreshCopy


@pytest.fixture
def copy(tmp_path: Path) -> FreshCopy:
    source = tmp_path / "source"
    (source / "a/b").mkdir(parents=True)
    (source / "shared").mkdir()
    (source / "a/file").write_text("1")
    (source / "a/b/file").write_text("2")
    (source / "link").symlink_to("a/file")
    return FreshCopy(source, tmp_path / "copy", shared=["shared"])


def contents(folder: Path) -> dict[str, str]:
    found = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"to {os.readlink(path)}"
        else:
            found[name] = path.read_text() if path.is_file() else "folder"
    return found


def replace_by_same(folder: Path) -> None:
    os.replace(shutil.copy2(folder / "a/file", folder / "other"), folder / "a/file")


def file_by_folder(folder: Path) -> None:
    (folder / "a/file").unlink()
    (folder / "a/file").mkdir()
    (folder / "a/file/more").write_text("")


def folder_by_file(folder: Path) -> None:
    shutil.rmtree(folder / "a")
    (folder / "a").write_text("")


def link_by_file(folder: Path) -> None:
    (folder / "link").unlink()
    (folder / "link").write_text("1")


CHANGES: dict[str, Callable[[Path], object]] = {
    "another text": lambda folder: (folder / "a/file").write_text("3"),
    "the same text": replace_by_same,
    "a file removed": lambda folder: (folder / "a/b/file").unlink(),
    "a folder removed": lambda folder: shutil.rmtree(folder / "a"),
    "folders added": lambda folder: (folder / "c/d").mkdir(parents=True),
    "a file added": lambda folder: (folder / "c").write_text(""),
    "a file by a folder": file_by_folder,
    "a folder by a file": folder_by_file,
    "a link by a file": link_by_file,
    "a mode": lambda folder: (folder / "a/file").chmod(0o600),
    "the link to what is shared": lambda folder: (folder / "shared").unlink(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_was_changed_is_put_back(change: Callable[[Path], object], copy: FreshCopy) -> None:
    before = contents(copy.folder)
    assert copy.changed() == []
    change(copy.folder)
    assert copy.changed()
    copy.put_back()
    assert contents(copy.folder) == before
    assert copy.changed() == []


def test_what_is_shared_stays(copy: FreshCopy) -> None:
    (copy.folder / "shared/drawn").write_text("")
    assert copy.changed() == []
    copy.put_back()
    assert (copy.folder / "shared/drawn").exists()
