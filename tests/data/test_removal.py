"""``data remove``: what an import wrote goes, all else stays."""

from __future__ import annotations

import io
import json
import shutil
from itertools import count
from pathlib import Path

import custom_data
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
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


def hub(*names: str, shade: int = 0) -> Path:
    """Write Parquet of Hugging Face's hub, with images of these names in it."""
    file = io.BytesIO()
    Image.new("RGB", (64, 48), (shade, 0, 0)).save(file, "PNG")
    objects = {"bbox": [[1.0, 2.0, 30.0, 40.0]], "category": ["cat"]}
    image = {"bytes": file.getvalue()}
    rows = [{"image": {**image, "path": name}, "objects": objects} for name in names]
    path = Path("hub", "test.parquet")
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def without_registry(data_root: Path) -> dict[str, bytes]:
    registry = custom_datasets_file().name
    files = files_of(data_root).items()
    return {name: content for name, content in files if not name.startswith(registry)}


def import_hub(*names: str, shade: int = 0, called: str = "Mine") -> int:
    path = str(hub(*names, shade=shade))
    return main(["data", "import", path, "--name", called, "--replace"])


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


@pytest.mark.parametrize("is_packed", [False, True])
def test_after_a_kill_anywhere_the_same_command_goes_on(
    folder: Path, data_root: Path, is_packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def import_mine() -> int:
        return import_hub("a.png", "x/b.png") if is_packed else do_import(folder)

    assert do_import(folder, "Other") == 0
    before = files_of(data_root)
    unlink = Path.unlink
    for deleted in count():
        assert import_mine() == 0
        left = [deleted]

        def killed(path: Path, missing_ok: bool = False, left: list[int] = left) -> None:
            if path.is_relative_to(data_root) and "Mine" in str(path):
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
        assert import_mine() == 0
        assert remove("Mine") == 0
    assert deleted >= (8 if is_packed else 6)


def test_images_that_an_import_unpacked_go_with_it(data_root: Path, capsys: Out) -> None:
    images = data_root / "images" / "Mine"
    (data_root / "Other.tsv").write_bytes(b"a")
    before = without_registry(data_root)
    assert import_hub("a.png", "x/b.png", "x/y/c.png") == 0
    assert len(list(images.rglob("*.png"))) == 3
    assert import_hub("a.png", "x/b.png", shade=99) == 0  # One less, and others
    capsys.readouterr()
    assert remove("Mine") == 0
    said = capsys.readouterr().out
    assert "3 images that it unpacked went, too" in said
    assert "stay in" not in said
    assert not images.exists()
    assert without_registry(data_root) == before
    assert remove("Mine") == 2


@pytest.mark.parametrize(
    "name", ["a.png", "own.png", "x/own.png", "x/note.txt"], ids=["changed", "new", "below", "text"]
)
def test_files_of_the_user_stay_among_unpacked_images(
    data_root: Path, name: str, capsys: Out
) -> None:
    assert import_hub("a.png", "x/b.png") == 0
    own = data_root / "images" / "Mine" / name
    own.write_bytes(b"mine")
    assert remove("Mine") == 0
    assert f"its images stay in {data_root / 'images' / 'Mine'}" in capsys.readouterr().out
    assert files_of(data_root / "images" / "Mine") == {name: b"mine"}
    # What lies there is neither overwritten nor counted as the import's
    assert import_hub("a.png", "x/b.png") == (2 if name == "a.png" else 0)
    assert own.read_bytes() == b"mine"


def test_images_that_lay_there_before_stay(data_root: Path) -> None:
    """Whether they are equal to the packed ones, or were put there for another import."""
    assert import_hub("a.png") == 0
    images = data_root / "images"
    shutil.copytree(images / "Mine", "copy")
    assert remove("Mine") == 0
    shutil.copytree("copy", images / "Mine")
    assert import_hub("a.png", "b.png") == 0
    assert remove("Mine") == 0
    assert [path.name for path in (images / "Mine").iterdir()] == ["a.png"]


def test_another_image_in_the_place_of_one_is_refused(data_root: Path, capsys: Out) -> None:
    assert import_hub("b.png") == 0
    before = files_of(data_root)
    place = data_root / "images" / "Mine" / "a.png"
    place.write_bytes(b"mine")
    assert import_hub("a.png", shade=7) == 2
    assert f"{place} is there, and no import wrote it. Move it away" in capsys.readouterr().err
    place.unlink()
    assert files_of(data_root) == before


@pytest.mark.parametrize("place", ["images/Mine", "images/Mine/x", "images"])
def test_images_that_another_import_needs_stay(data_root: Path, place: str, capsys: Out) -> None:
    assert import_hub("a.png", "x/b.png") == 0
    image = next((data_root / place).rglob("b.png")).relative_to(data_root / place)
    lines = Path("lines.jsonl")
    lines.write_text(json.dumps({"image": str(image), "label": "cat", "boxes": [[1, 2, 9, 9]]}))
    root = str(data_root / place)
    assert main(["data", "import", "lines.jsonl", "--image-root", root, "--name", "Other"]) == 0
    assert remove("Mine") == 2
    error = capsys.readouterr().err
    assert "2 images that it unpacked may be those of Other, too, and would stay" in error
    assert remove("Mine", "--yes") == 0
    assert (data_root / place / image).is_file()
    # They go as soon as no other import needs them
    assert remove("Other") == 0
    assert remove("Mine") == 0
    assert not (data_root / "images" / "Mine").exists()


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"a.png": 1}'])
def test_a_damaged_record_of_images_deletes_nothing(
    data_root: Path, text: str, capsys: Out
) -> None:
    assert import_hub("a.png") == 0
    record_of_images = data_root / "Mine.unpacked.json"
    record_of_images.write_text(text)
    assert remove("Mine", "--yes") == 2
    assert f"{record_of_images}" in capsys.readouterr().err
    record_of_images.unlink()
    assert remove("Mine") == 0
    assert (data_root / "images" / "Mine" / "a.png").is_file()


def test_a_record_names_no_files_elsewhere(data_root: Path) -> None:
    assert import_hub("a.png") == 0
    own = data_root / "own.png"
    shutil.copy(data_root / "images" / "Mine" / "a.png", own)
    record_of_images = data_root / "Mine.unpacked.json"
    contents = json.loads(record_of_images.read_text())
    elsewhere = {"../../own.png": contents["a.png"], str(own): contents["a.png"]}
    record_of_images.write_text(json.dumps(contents | elsewhere))
    assert remove("Mine") == 0
    assert own.is_file()


def record(path: Path, table: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"table": table}))


@pytest.mark.sees("data remove --yes")
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
