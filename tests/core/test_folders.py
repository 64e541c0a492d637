"""Where tables lie: which folder goes first, and what is said of it."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

from vlmeval_findit.benchmarks.findit.annotation_tables import find_table, write_table
from vlmeval_findit.benchmarks.findit.findit_datasets import DATASETS, own_datasets
from vlmeval_findit.cli import main
from vlmeval_findit.core import folders
from vlmeval_findit.core.folders import DatasetFileError, is_table_folder, table_folders
from vlmeval_findit.core.table_files import made_of
from vlmeval_findit.data.rendered import tables as rendered


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all the places where tables are looked for."""
    for name in ("named", "here/datasets_tsv", "lmu"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("FINDIT_TABLES", str(tmp_path / "named"))
    monkeypatch.setenv("LMUData", str(tmp_path / "lmu"))
    monkeypatch.chdir(tmp_path / "here")
    folders._say_once.cache_clear()
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


def test_two_tables_of_one_name_are_said_once(
    world: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, last = put(world / "named", "one"), put(world / "lmu", "another")
    put(world / "here" / "datasets_tsv", "one")
    with caplog.at_level(logging.WARNING):
        assert [find_table("Odd") for _ in range(3)] == [first] * 3
    assert caplog.messages == [f"FindIt: two tables Odd: {first} is taken, {last} is another"]


def test_the_same_table_twice_is_nothing_to_say(
    world: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(world / "named", "one")
    put(world / "lmu", "one")
    find_table("Odd")
    put(world / "lmu", "another")
    monkeypatch.setenv("FINDIT_TABLES", str(world / "lmu"))
    find_table("Odd")
    assert caplog.messages == []


def test_a_table_that_is_nowhere_names_the_folders_and_the_command(world: Path) -> None:
    with pytest.raises(FileNotFoundError) as error:
        find_table("Pascal")
    said = str(error.value)
    assert all(str(folder) in said for folder in table_folders())
    assert said.endswith("make it with: python run_findit.py data get Pascal [--from DIR]")


@pytest.mark.parametrize(
    ("folder", "known"),
    [("named", True), ("here/datasets_tsv", True), ("lmu", True), ("elsewhere", False)],
)
def test_folders_that_are_looked_in(world: Path, folder: str, known: bool) -> None:
    assert is_table_folder(world / folder) is known
    assert is_table_folder(world / "named" / ".." / folder) is known


# --- the commands that make tables ----------------------------------------------------------------


@pytest.mark.shared
def test_prepared_tables_go_where_every_runner_finds_them(
    world: Path, subsets: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("FINDIT_TABLES")
    command = ["data", "get", "SVG", "D3", "--from", str(subsets), "--no-images"]
    assert main(command) == 0
    lmu = world / "lmu"
    said = capsys.readouterr().out.splitlines()
    assert f"2 tables in {lmu}, where runs find them" in said
    assert find_table("SVG") == lmu / "SVG.tsv"
    monkeypatch.chdir(world)
    assert find_table("D3") == lmu / "D3.tsv"

    out = world / "mine"
    assert main([*command, "--out", str(out)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert f"2 tables in {out}, where runs do not look: set FINDIT_TABLES={out}" in said
    monkeypatch.setenv("FINDIT_TABLES", str(out))
    assert find_table("SVG") == out / "SVG.tsv"


@pytest.mark.shared
def test_a_table_that_another_one_hides_is_said_when_it_is_made(
    world: Path, subsets: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(world / "here" / "datasets_tsv", "old", "SVG")
    assert main(["data", "get", "SVG", "--from", str(subsets), "--no-images"]) == 0
    assert len(caplog.messages) == 1
    assert "two tables SVG: datasets_tsv/SVG.tsv is taken" in caplog.messages[0]


# --- tables that are made when they are asked for -------------------------------------------------


def test_a_rendered_table_that_is_gone_or_changed_is_made_again(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def prepare(dataset: object, table: str) -> None:
        made.append("table")
        origin = {"source_sha256": rendered.recipe_sha256(table)}
        write_table(world / "lmu", "Scenes_refexp", [], origin)

    monkeypatch.setattr(rendered, "prepare", prepare)
    dataset = DATASETS["Scenes_refexp"]
    for _ in range(2):
        rendered.ensure(dataset)
    assert made == ["table"]
    table = world / "lmu" / "Scenes_refexp.tsv"
    table.unlink()
    rendered.ensure(dataset)
    assert made == ["table"] * 2
    for content in ("damaged", "[]", "{}", '{"source_sha256": "of other code"}'):
        table.with_suffix(".meta.json").write_text(content)
        assert made_of(table) != rendered.recipe_sha256("Scenes_refexp")
        rendered.ensure(dataset)
    assert made == ["table"] * 6


# --- names of datasets become files ---------------------------------------------------------------


@pytest.mark.parametrize("name", ["../evil", "a/b", "a\\b", "/evil", "C:evil", "a\nb", "", "."])
def test_a_dataset_cannot_be_named_out_of_the_folder(world: Path, name: str) -> None:
    import json

    registry = world / "lmu" / "findit_datasets.json"
    registry.write_text(json.dumps({name: {"folder": str(world)}}))
    with pytest.raises(DatasetFileError, match=r"findit_datasets\.json: .* is no name"):
        own_datasets()


def test_looking_for_tables_imports_nothing_heavy() -> None:
    code = (
        "import sys, vlmeval_findit.core.folders\n"
        "import vlmeval_findit.benchmarks.findit.annotation_tables\n"
        "assert not {'torch', 'vlmeval', 'pyarrow', 'PIL', 'requests'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
