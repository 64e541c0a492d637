"""Detection sets of the Hugging Face hub: Parquet with an image a row, and its objects."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from vlmeval_findit.benchmarks.findit import find_table, read_table
from vlmeval_findit.cli import main

pytestmark = pytest.mark.usefixtures("data_root")

OBJECTS = {"bbox": [[10.0, 20.0, 100.0, 200.0]], "category": ["cat"]}


def png(shade: int = 0) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (640, 480), (shade, 0, 0)).save(out, "PNG")
    return out.getvalue()


def row(path: str | None = "a.png", shade: int = 0, **more: Any) -> dict[str, Any]:
    return {"image": {"bytes": png(shade), "path": path}, "objects": OBJECTS, **more}


def write(path: Path, rows: Sequence[dict[str, Any]], features: Any = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(list(rows))
    if features is not None:
        info = json.dumps({"info": {"features": features}})
        table = table.replace_schema_metadata({"huggingface": info})
    pq.write_table(table, path)
    return path


def imports(path: Path, *flags: str) -> int:
    return main(["data", "import", str(path), "--name", "Mine", "--replace", *flags])


def asked() -> list[tuple[str, str, list[tuple[float, ...]]]]:
    rows = read_table(find_table("Mine"))
    return [(each.images[0], each.label, [tuple(box) for box in each.truth.boxes]) for each in rows]


def test_a_file_of_the_hub_holds_its_images(tmp_path, data_root) -> None:
    path = write(tmp_path / "data" / "test-00000-of-00001.parquet", [row(width=640, height=480)])
    for named in (path, tmp_path / "data", tmp_path):
        assert imports(named) == 0
        assert asked() == [("a.png", "cat", [(10, 20, 110, 220)])]
    assert (data_root / "images" / "Mine" / "a.png").read_bytes() == png()


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [
        ("x/a.png", "y/a.png", ["x/a.png", "y/a.png"]),
        ("/data/x/a.png", "/data/y/a.png", ["a.png", ""]),  # "": made of the content
        (None, None, ["", ""]),
        ("image", "../a.png", ["", "a.png"]),
    ],
)
def test_images_have_the_names_of_their_paths(
    tmp_path, first: str | None, second: str | None, names: list[str]
) -> None:
    rows = [row(first), row(second, shade=200)]
    assert imports(write(tmp_path / "test.parquet", rows)) == 0
    found = [image for image, _, _ in asked()]
    assert [name if name in names else "" for name in found] == names
    assert all(len(name) == 28 for name in found if name not in names)


def test_two_rows_about_one_image_are_refused(tmp_path, capsys) -> None:
    assert imports(write(tmp_path / "test.parquet", [row(), row()])) == 2
    assert "test.parquet, row 1: another entry is about a.png, too" in capsys.readouterr().err


LABEL = {"names": ["dog", "cat"], "_type": "ClassLabel"}
BOX = {"feature": {"dtype": "float32", "_type": "Value"}, "length": 4, "_type": "Sequence"}


@pytest.mark.parametrize(
    "features",
    [
        # As versions of datasets write a list of objects
        {"feature": {"bbox": BOX, "category": LABEL}, "_type": "Sequence"},
        {"bbox": [BOX], "category": {"feature": LABEL, "_type": "List"}},
        [{"bbox": BOX, "category": LABEL}],
    ],
)
def test_numbers_of_classes_have_the_names_of_the_features(tmp_path, features: Any, capsys) -> None:
    number = {**OBJECTS, "category": [1]}
    path = write(tmp_path / "test.parquet", [row() | {"objects": number}], {"objects": features})
    assert imports(path) == 0
    assert asked()[0][1] == "cat"
    bare = write(tmp_path / "other.parquet", [row() | {"objects": number}])
    assert imports(bare) == 2
    assert "type --rename-class 1=NAME" in capsys.readouterr().err
    assert imports(bare, "--rename-class", "1=cow") == 0


@pytest.mark.parametrize(
    ("training", "validation"),
    [
        ("data/train-0000{}-of-00002", "data/validation-0000{}-of-00002"),
        ("default/train/000{}", "default/validation/000{}"),
    ],
)
def test_splits_and_shards_of_the_hub(tmp_path, training: str, validation: str, capsys) -> None:
    for at in range(2):
        write(tmp_path / f"{training.format(at)}.parquet", [row(f"t{at}.png", at)])
        write(tmp_path / f"{validation.format(at)}.parquet", [row(f"v{at}.png", 9 + at)])
    assert imports(tmp_path) == 0
    assert [image for image, _, _ in asked()] == ["v0.png", "v1.png"]
    assert "left out: files of the split train (2)" in " ".join(capsys.readouterr().out.split())
    assert imports(tmp_path, "--split", "train") == 0
    assert [image for image, _, _ in asked()] == ["t0.png", "t1.png"]
    one = tmp_path / f"{validation.format(1)}.parquet"
    assert imports(one) == 0
    assert [image for image, _, _ in asked()] == ["v1.png"]
    out = " ".join(capsys.readouterr().out.split())
    assert "left out: other Parquet files of this split: name the folder (1)" in out
    if "of" in validation:
        one.unlink()
        assert imports(tmp_path) == 2
        assert "validation-00001-of-00002.parquet is missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ({"image": {"bytes": b"text", "path": "a.png"}}, "row 0, image: not an image"),
        ({"image": None}, "row 0, image: no image"),
        ({"objects": {"bbox": [[1, 2, 3]], "category": ["a"]}}, "should be a list of boxes"),
        ({"objects": {"bbox": OBJECTS["bbox"], "category": []}}, "1 box, but 0 labels"),
    ],
)
def test_odd_rows_of_the_hub_are_refused(tmp_path, cells: Any, why: str, capsys) -> None:
    assert imports(write(tmp_path / "test.parquet", [row() | cells])) == 2
    assert why in " ".join(capsys.readouterr().err.split())


def test_other_parquet_is_told_what_is_expected(tmp_path, capsys) -> None:
    path = write(tmp_path / "test.parquet", [{"image": row()["image"], "label": 1}])
    assert imports(path) == 2
    assert "has the columns image, label; should have image and objects" in capsys.readouterr().err
    path.write_bytes(b"PAR1")
    assert imports(path) == 2
    assert "not a Parquet file" in capsys.readouterr().err


@pytest.mark.slow
def test_what_datasets_writes_is_read(tmp_path, capsys) -> None:
    """Its Parquet, and its Arrow by the command that the refusal advises."""
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        image=datasets.Image(),
        objects={
            "bbox": datasets.List(datasets.List(datasets.Value("float32"), length=4)),
            "category": datasets.List(datasets.ClassLabel(names=["dog", "cat"])),
        },
    )
    rows = [row() | {"objects": {**OBJECTS, "category": [1]}}]
    made = datasets.Dataset.from_list(rows, features=features)
    made.to_parquet(tmp_path / "hub" / "test-00000-of-00001.parquet")
    made.save_to_disk(tmp_path / "disk")
    assert imports(tmp_path / "hub") == 0
    expected = asked()
    assert expected == [("a.png", "cat", [(10, 20, 110, 220)])]
    capsys.readouterr()
    assert imports(next((tmp_path / "disk").glob("*.arrow"))) == 2
    advice = " ".join(capsys.readouterr().err.split()).partition("python -c ")[2]
    command = shlex.split(advice.partition("; then: ")[0])
    subprocess.run([sys.executable, "-c", *command], cwd=tmp_path, check=True, timeout=300)
    assert imports(tmp_path / "test.parquet") == 0
    assert asked() == expected
