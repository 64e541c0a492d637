"""Where tables lie: the order of folders, two tables, VLMEvalKit's data folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from vlmeval_findit.benchmarks.findit import find_table
from vlmeval_findit.cli import main
from vlmeval_findit.storage import (
    FolderError,
    custom_datasets,
    folders,
    image_folder,
    lmu_data_root,
    make_folders_of_host,
    make_lmu_data_root,
    table_folders,
)


@pytest.mark.sees("FINDIT_TABLES")
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


# --- VLMEvalKit's data folder ---------------------------------------------------------------------

SPELLINGS = [
    "{home}/new/data",
    "~/new/data",
    " {home}/new/data ",
    "{home}/new/data/ ",
    "~/new/data\n",
]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    folders._warn_once.cache_clear()
    return tmp_path


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_named_data_folder_is_made_when_something_is_written(
    spelling: str, home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("LMUData", spelling.format(home=home))
    folder = home / "new" / "data"
    usual = home / "LMUData"
    usual.mkdir()
    (usual / "findit_datasets.json").write_text('{"Mine": {"folder": "elsewhere"}}')
    # The same before and after it is made: what lies elsewhere is never found
    for _ in range(2):
        assert lmu_data_root() == folder
        assert not custom_datasets()
        assert image_folder("Mine").path == folder / "images" / "Mine"
    assert not folder.exists()
    assert make_lmu_data_root() == folder
    assert folder.is_dir()
    assert lmu_data_root() == folder
    assert not custom_datasets()
    assert not caplog.messages
    # VLMEvalKit, and processes of ours, look for what the variable says as it stands.
    assert os.path.isdir(os.environ[folders._DATA_ROOT])


@pytest.mark.parametrize("spelling", ["", "  "])
def test_no_named_data_folder_is_the_usual_one(
    spelling: str, home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("LMUData", spelling)
    assert lmu_data_root() == make_lmu_data_root() == home / "LMUData"
    assert not caplog.messages


@pytest.mark.parametrize("ask", [lmu_data_root, make_lmu_data_root, make_folders_of_host])
@pytest.mark.parametrize("spelling", ["{home}/file", "~/file", "{home}/file "])
def test_a_file_is_no_data_folder(
    ask: Callable[[], object], spelling: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "file").touch()
    monkeypatch.setenv("LMUData", spelling.format(home=home))
    with pytest.raises(FolderError, match=r"file: a file, not a folder. Type LMUData=DIR"):
        ask()


def test_a_data_folder_that_cannot_be_made(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "file").touch()
    monkeypatch.setenv("LMUData", str(home / "file" / "below"))
    with pytest.raises(FolderError, match=r"cannot be made .*Set LMUData to a folder"):
        make_lmu_data_root()
    (home / "link").symlink_to(home / "gone" / "away")
    monkeypatch.setenv("LMUData", str(home / "link"))
    with pytest.raises(FolderError, match=r"cannot be made .*Set LMUData to a folder"):
        make_lmu_data_root()


def test_what_the_host_overlooks_is_made_before_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LMUData", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.setenv(name, f"~/{name} ")
    make_folders_of_host()
    for name in ("LMUData", "HF_HOME", "HF_HUB_CACHE"):
        assert os.environ[name] == str(home / name)
        assert (home / name).is_dir()


def test_home_is_expanded_in_every_setting_of_a_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "images").mkdir()
    (home / "here.yaml").write_text("images: {}")
    monkeypatch.setenv("FINDIT_TABLES", "~/tables ")
    monkeypatch.setenv("FINDIT_IMAGES", "Pascal=~/images")
    monkeypatch.setenv("FINDIT_CONFIG", " ~/here.yaml")
    assert table_folders()[0] == home / "tables"
    assert folders.image_folder("Pascal").path == home / "images"
    assert folders.config_file() == home / "here.yaml"


JSONL = '{"image": "a.png", "label": "dog", "boxes": [[1, 2, 30, 40]]}\n'


def test_an_import_goes_into_a_folder_that_was_not_there(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Image.new("RGB", (64, 48)).save(home / "a.png")
    (home / "mine.jsonl").write_text(JSONL)
    monkeypatch.chdir(home)
    monkeypatch.setenv("LMUData", str(home / "new"))
    assert main(["data", "import", "mine.jsonl", "--name", "MineNew"]) == 0
    assert (home / "new" / "MineNew.tsv").is_file()
    assert not (home / "LMUData").exists()
    assert "is used" not in capsys.readouterr().err
    assert "MineNew" in folders.custom_datasets()
