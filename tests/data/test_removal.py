"""``data remove``: what an import wrote goes, all else stays."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import custom_data
import pytest
from stand_ins import files_of

from vlmeval_findit.cli import main
from vlmeval_findit.storage import custom_datasets, custom_datasets_file

DATA = "FindIt_Mine_xyxy_json"
Out = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, data_root: Path) -> Path:
    images = custom_data.make_images(tmp_path / "images")
    custom_data.write_coco(images)
    return images


def do_import(folder: Path, name: str = "Mine", *more: str) -> int:
    path = str(folder / "instances.json")
    return main(["data", "import", path, "--image-root", str(folder), "--name", name, *more])


def remove(*words: str) -> int:
    return main(["data", "remove", *words])


def test_everything_that_an_import_wrote_goes(folder: Path, data_root: Path, capsys: Out) -> None:
    others = {"Mine.zip": b"a", "Mine_local.tsv": b"b", "MineToo.tsv": b"c"}
    for name, content in others.items():
        (data_root / name).write_bytes(content)
    registry = custom_datasets_file()
    assert do_import(folder, "MineToo2") == 0
    before = files_of(data_root)
    mine = files_of(folder)
    assert do_import(folder) == 0
    made = files_of(data_root).keys() - before.keys()
    assert len(made) >= 6
    capsys.readouterr()
    assert remove("Mine") == 0
    said = capsys.readouterr().out
    assert all(name in said for name in made)
    assert f"its images stay in {folder}" in said
    after = files_of(data_root)
    assert json.loads(after.pop(registry.name)) == json.loads(before.pop(registry.name))
    assert after == before
    assert files_of(folder) == mine
    # Twice, and in the wrong order
    assert remove("Mine") == 2
    assert "nothing was imported under the name 'Mine': did you mean" in capsys.readouterr().err
    assert main(["data", "show", DATA]) == 2
    assert do_import(folder) == 0
    assert made <= files_of(data_root).keys()


def test_after_a_kill_anywhere_the_same_command_goes_on(
    folder: Path, data_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert do_import(folder, "Other") == 0
    before = files_of(data_root)
    unlink = Path.unlink
    for deleted in count():
        assert do_import(folder) == 0
        left = [deleted]

        def killed(path: Path, missing_ok: bool = False, left: list[int] = left) -> None:
            if path.parent == data_root and path.name.startswith("Mine"):
                if not left[0]:
                    raise KeyboardInterrupt
                left[0] -= 1
            unlink(path, missing_ok=missing_ok)

        monkeypatch.setattr(Path, "unlink", killed)
        status = remove("Mine")
        monkeypatch.setattr(Path, "unlink", unlink)
        if status == 0:
            break
        assert "Mine" not in custom_datasets()
        assert remove("Mine") == 0
        after = files_of(data_root)
        assert after.keys() == before.keys()
        # Or the dataset is imported anew, without --replace
        assert do_import(folder) == 0
        assert remove("Mine") == 0
    assert deleted >= 6


def record(path: Path, table: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"table": table}))


@pytest.mark.parametrize(
    ("file", "table"),
    [
        (f"M_{DATA}_identity.json", "Mine.tsv"),
        ("M_FindIt_Mine_multilabel_xyxy_json_identity.json", "Mine_multilabel.tsv"),
        (f"M_{DATA}_provenance.json", {"file": "Mine.tsv"}),
    ],
)
def test_runs_that_asked_about_it_are_named(
    folder: Path, data_root: Path, capsys: Out, file: str, table: object
) -> None:
    assert do_import(folder) == 0
    before = files_of(data_root)
    record(Path("elsewhere/M") / file, table)
    assert remove("Mine", "--work-dir", "elsewhere") == 2
    error = capsys.readouterr().err
    assert "1 run in elsewhere asked about it (the first: elsewhere/M/M_FindIt_Mine" in error
    assert "Nothing was deleted. To delete it: " in error
    assert remove("Mine", "--work-dir", "nowhere") == 2
    assert files_of(data_root) == before
    assert remove("Mine", "--work-dir", "elsewhere", "--yes") == 0
    assert Path("elsewhere/M", file).is_file()


def test_runs_of_a_removed_set_say_how_to_show_them(folder: Path, capsys: Out) -> None:
    predictions = Path("outputs/M") / f"M_{DATA}.jsonl"
    predictions.parent.mkdir(parents=True)
    predictions.write_text("".join(f'{{"index": {row}, "prediction": "[]"}}\n' for row in range(4)))
    assert do_import(folder) == 0
    assert main(["score", str(predictions), "--space", "pixels"]) == 0
    assert main(["leaderboard", "outputs"]) == 0
    assert remove("Mine") == 2
    assert remove("Mine", "--yes") == 0
    capsys.readouterr()
    assert main(["leaderboard", "outputs"]) == 2
    assert "import it again under its name" in capsys.readouterr().err
    assert do_import(folder) == 0
    assert main(["leaderboard", "outputs"]) == 0


@pytest.mark.parametrize("table", ["MineToo.tsv", "Mine_val.tsv", 7, None, ["Mine.tsv"]])
def test_runs_about_others_do_not_matter(folder: Path, table: object) -> None:
    assert do_import(folder) == 0
    record(Path(f"outputs/M/M_{DATA}_identity.json"), table)
    Path("outputs/M/broken_identity.json").write_text("{")
    assert remove("Mine") == 0


def test_what_the_user_wrote_is_not_deleted_unasked(
    folder: Path, data_root: Path, capsys: Out
) -> None:
    assert do_import(folder) == 0
    table = data_root / "Mine.tsv"
    table.write_bytes(table.read_bytes() + b"\n")
    assert remove("Mine") == 2
    assert "Mine.tsv was edited after the import" in capsys.readouterr().err
    (data_root / "Mine.meta.json").unlink()
    assert remove("Mine") == 0
    assert table.is_file(), "a table without .meta.json is someone else's"


@pytest.mark.parametrize("name", ["Pascal", "Demo", "Scenes", "VPBench", "RefCOCOFull", "Mne", "."])
def test_only_imports_can_be_removed(name: str, folder: Path, data_root: Path, capsys: Out) -> None:
    assert do_import(folder) == 0
    before = files_of(data_root)
    assert remove("Mine", name) == 2
    assert f"nothing was imported under the name '{name}'" in capsys.readouterr().err
    assert files_of(data_root) == before


def test_the_parts_of_a_set_go_together(folder: Path, data_root: Path) -> None:
    for part in ("val", "testA"):
        assert do_import(folder, f"RefCOCOFull_{part}") == 0
    assert remove("RefCOCOFull") == 0
    assert not custom_datasets()
    assert not list(data_root.glob("RefCOCO*"))
