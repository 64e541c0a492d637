"""Where tables lie: the order of folders, and warnings about two tables."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from vlmeval_findit.benchmarks.findit.annotation_tables import find_table
from vlmeval_findit.core import folders
from vlmeval_findit.core.folders import table_folders


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all the places where tables are looked for."""
    for name in ("named", "here/datasets_tsv", "lmu"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("FINDIT_TABLES", str(tmp_path / "named"))
    monkeypatch.setenv("LMUData", str(tmp_path / "lmu"))
    monkeypatch.chdir(tmp_path / "here")
    folders._warn_once.cache_clear()
    return tmp_path


def put(folder: Path, content: str, name: str = "Odd") -> Path:
    path = folder / f"{name}.tsv"
    path.write_text(content)
    return path


def test_the_first_folder_that_has_a_table_wins(world: Path) -> None:
    last = put(world / "lmu", "same")
    assert find_table("Odd").samefile(last)
    middle = put(world / "here" / "datasets_tsv", "same")
    assert find_table("Odd").samefile(middle)
    first = put(world / "named", "same")
    assert find_table("Odd").samefile(first)
    assert [folder.name for folder in table_folders()] == [
        "named", "datasets_tsv", "datasets_tsv", "lmu"
    ]  # fmt: skip


def test_two_tables_of_a_name_are_reported_once(
    world: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, last = put(world / "named", "one"), put(world / "lmu", "another")
    put(world / "here" / "datasets_tsv", "one")
    with caplog.at_level(logging.WARNING):
        assert [find_table("Odd") for _ in range(3)] == [first] * 3
    assert caplog.messages == [f"FindIt: two tables Odd: {first} is used, {last} differs"]


def test_a_table_that_is_nowhere_names_the_folders_and_the_command(world: Path) -> None:
    with pytest.raises(FileNotFoundError) as error:
        find_table("Pascal")
    reply = str(error.value)
    assert all(str(folder) in reply for folder in table_folders())
    assert reply.endswith("make it with: python run_findit.py data get Pascal [--from DIR]")
