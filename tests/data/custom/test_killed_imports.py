"""``data import`` killed before each change of a file: the old dataset or the new one is whole."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import custom_data
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from custom_data import data_folder
from kills import every_kill
from PIL import Image
from stand_ins import files_of

from vlmeval_findit.cli import main
from vlmeval_findit.data import load_dataset
from vlmeval_findit.storage import custom_datasets, custom_datasets_file

Import = Callable[[], int]


def _coco(labels: str) -> Import:
    """Return an import of COCO, of all annotations or of two."""
    folder = custom_data.make_images(Path("images"))
    values = custom_data.coco_values()
    if labels == "few":
        values["annotations"] = values["annotations"][:2]
        values["images"] = values["images"][:1]
    path = Path(f"{labels}.json")
    path.write_text(json.dumps(values))
    return lambda: _import(path, "--image-root", str(folder.absolute()))


def _lines(*labels: str) -> Import:
    custom_data.make_images(Path("images"))
    path = Path("images", f"{'-'.join(labels)}.jsonl")
    rows = [{"image": "one.jpg", "label": each, "boxes": [[1, 2, 30, 40]]} for each in labels]
    path.write_text("\n".join(map(json.dumps, rows)))
    return lambda: _import(path)


def _packed(*names: str, shade: int = 0) -> Import:
    """Return an import of images that are packed in Parquet."""
    file = io.BytesIO()
    Image.new("RGB", (64, 48), (shade, 0, 0)).save(file, "PNG")
    objects = {"bbox": [[1.0, 2.0, 30.0, 40.0]], "category": ["cat"]}
    image = {"bytes": file.getvalue()}
    rows = [{"image": {**image, "path": name}, "objects": objects} for name in names]
    path = Path(f"{'-'.join(names).replace('/', '-')}-{shade}.parquet")
    pq.write_table(pa.Table.from_pylist(rows), path)
    return lambda: _import(path)


def _yolo() -> Import:
    folder = Path("yolo")
    if not folder.exists():
        folder.mkdir()
        custom_data.write_yolo(folder)
    return lambda: _import(folder)


def _voc() -> Import:
    folder = Path("voc")
    if not folder.exists():
        custom_data.write_voc(folder)
    return lambda: _import(folder)


def _listing(suffix: str) -> Import:
    folder = custom_data.make_images(Path("images"))
    path = custom_data.write_listing(folder / f"boxes.{suffix}")
    return lambda: _import(path)


def _import(path: Path, *more: str) -> int:
    return main(["data", "import", str(path), "--name", "Mine", "--replace", *more])


_DATASETS: dict[str, Callable[[], Import]] = {
    "coco": lambda: _coco("all"),
    "a part of it": lambda: _coco("few"),
    "lines": lambda: _lines("cat"),
    "other lines": lambda: _lines("cat", "dog"),
    "yolo": _yolo,
    "voc": _voc,
    "csv": lambda: _listing("csv"),
    "tsv": lambda: _listing("tsv"),
    "packed": lambda: _packed("a.png", "x/b.png"),
    "packed otherwise": lambda: _packed("a.png", "x/b.png", "c.png", shade=99),
}
_PAIRS = [
    (None, "coco"),
    (None, "packed"),
    (None, "lines"),
    (None, "yolo"),
    (None, "voc"),
    (None, "csv"),
    ("coco", "a part of it"),
    ("a part of it", "coco"),
    ("coco", "lines"),
    ("lines", "other lines"),
    ("lines", "packed"),
    ("yolo", "voc"),
    ("voc", "coco"),
    ("coco", "yolo"),
    ("csv", "lines"),
    ("lines", "tsv"),
    ("csv", "tsv"),
    ("tsv", "packed"),
    ("packed", "yolo"),
    ("packed", "coco"),
    ("packed", "packed otherwise"),
    ("packed otherwise", "packed"),
]


def _state(root: Path) -> dict[str, object]:
    """Return what there is, as a command finds it; no file may be left by a kill."""
    known = dict(custom_datasets())
    files = files_of(root)
    files.pop(custom_datasets_file().name, None)
    # Locks are empty files that stay.
    return {**{name: data for name, data in files.items() if ".lock" not in name}, "": known}


def _restore(root: Path, state: Path) -> None:
    shutil.rmtree(root)
    shutil.copytree(state, root)


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), _PAIRS)
def test_after_a_kill_one_dataset_is_whole(
    before: str | None, after: str, data_root: Path, tmp_path: Path
) -> None:
    other = _lines("other")
    assert other() == 0
    shutil.move(data_root / "Mine.tsv", data_root / "Note.tsv")  # It is nobody's
    if before is not None:
        assert _DATASETS[before]()() == 0
    saved = tmp_path / "saved"
    shutil.copytree(data_root, saved)
    command = _DATASETS[after]()
    old = _state(data_root)
    assert command() == 0
    new = _state(data_root)
    assert old != new
    _restore(data_root, saved)
    seen = []
    for _ in every_kill(command, data_root):
        state = _state(data_root)
        assert state in (old, new)
        seen.append(state == new)
        if state == old:
            assert command() == 0, "the same command goes on"
            assert _state(data_root) == new
        _restore(data_root, saved)
    assert _state(data_root) == new
    assert len(seen) > 20
    assert seen == sorted(seen), "once it is decided, it stays so"
    assert {*seen} == {False, True}


@pytest.mark.slow
def test_what_finishes_an_import_may_be_killed_too(data_root: Path, tmp_path: Path) -> None:
    assert _DATASETS["packed"]()() == 0
    saved = tmp_path / "saved"
    shutil.copytree(data_root, saved)
    command = _DATASETS["packed otherwise"]()
    old = _state(data_root)
    assert command() == 0
    new = _state(data_root)
    _restore(data_root, saved)
    kills = 0
    cut = tmp_path / "cut"
    for _ in every_kill(command, data_root):
        shutil.copytree(data_root, cut)
        for _ in every_kill(lambda: len(custom_datasets()) - 1, data_root):
            kills += 1
            assert _state(data_root) in (old, new)
            _restore(data_root, cut)
        assert _state(data_root) in (old, new)
        shutil.rmtree(cut)
        _restore(data_root, saved)
    assert kills > 100


def test_the_first_import_makes_the_folder_of_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_folder(tmp_path, monkeypatch)
    monkeypatch.setenv("LMUData", str(tmp_path / "not/there"))
    images = custom_data.make_images(tmp_path / "pictures")
    path = custom_data.write_coco(tmp_path)
    assert _import(path, "--image-root", str(images)) == 0
    assert load_dataset("FindIt_Mine_xyxy_json").queries
