"""Where tables lie: the order of folders, and warnings about two tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from vlmeval_findit.benchmarks.findit.annotation_tables import find_table
from vlmeval_findit.storage import folders
from vlmeval_findit.storage.folders import table_folders


def test_the_first_folder_that_has_a_table_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    named = tmp_path / "named"
    here = tmp_path / "here" / "datasets_tsv"
    lmu = tmp_path / "lmu"
    for folder in (named, here, lmu):
        folder.mkdir(parents=True)
    monkeypatch.setenv("FINDIT_TABLES", str(named))
    monkeypatch.setenv("LMUData", str(lmu))
    monkeypatch.chdir(here.parent)
    folders._warn_once.cache_clear()
    assert [folder.name for folder in table_folders()] == [
        "named", "datasets_tsv", "datasets_tsv", "lmu"
    ]  # fmt: skip
    with pytest.raises(FileNotFoundError) as error:
        find_table("Odd")
    reply = str(error.value)
    assert all(str(folder) in reply for folder in table_folders())
    assert reply.endswith("Make it: python run_findit.py data get Odd [--from DIR]")
    for folder in (lmu, here, named):
        (folder / "Odd.tsv").write_text("same")
        assert find_table("Odd").samefile(folder / "Odd.tsv")
    assert not caplog.messages
    (lmu / "Odd.tsv").write_text("another")
    first = named / "Odd.tsv"
    assert [find_table("Odd") for _ in range(3)] == [first] * 3
    assert caplog.messages == [
        f"FindIt: two tables Odd: {first} is used, {lmu / 'Odd.tsv'} differs"
    ]
