"""``croissant.json`` of exports: MLCommons' reader takes it, it is true, nothing is guessed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from boards import JSON
from scored_runs import World, speaking

from vlmeval_findit.cli import main
from vlmeval_findit.core import file_sha256

TARGETS = ("hub", "coco")


@pytest.fixture
def exported(world: World) -> World:
    world.predict("A model", JSON, speaking(JSON, 0.8, 10))
    world.predict("Other", JSON, speaking(JSON, 0.5, 11))
    return world


def export(world: World, target: str, *more: str) -> dict[str, Any]:
    out = world.folder / target
    assert main(["export", str(world.runs), "--to", target, "--out", str(out), *more]) == 0
    metadata: dict[str, Any] = json.loads((out / "croissant.json").read_text())
    return metadata


def rows_of(folder: Path, records: dict[str, Any], files: dict[str, str]) -> list[dict[str, Any]]:
    """Read what a record set says of its file, without anybody's reader."""
    file = folder / files[records["field"][0]["source"]["fileObject"]["@id"]]
    if file.suffix == ".parquet":
        table: list[dict[str, Any]] = pq.read_table(file).to_pylist()
        return table
    values = json.loads(file.read_text())
    path = records["field"][0]["source"]["extract"]["jsonPath"]
    name = path.removeprefix("$").split("[")[0].strip(".")
    found: list[dict[str, Any]] = values[name] if name else values
    return found


TYPES = {
    "sc:Text": str,
    "sc:Integer": int,
    "sc:Float": (int, float),
    "sc:Boolean": bool,
    "cr:BoundingBox": list,
}


def innermost(value: Any) -> list[Any]:
    if not isinstance(value, list):
        return [value]
    return [each for item in value for each in innermost(item)]


@pytest.mark.parametrize("target", TARGETS)
def test_every_field_is_in_its_file_with_its_type(target: str, exported: World) -> None:
    metadata = export(exported, target)
    folder = exported.folder / target
    files = {each["@id"]: each["contentUrl"] for each in metadata["distribution"]}
    for each in metadata["distribution"]:
        assert each["sha256"] == file_sha256(folder / each["contentUrl"])
    ids = list(files)
    for records in metadata["recordSet"]:
        rows = rows_of(folder, records, files)
        assert rows
        ids.append(records["@id"])
        for field in records["field"]:
            ids.append(field["@id"])
            kinds = field["dataType"]
            kind = kinds if isinstance(kinds, str) else kinds[0]
            values = [row[field["name"]] for row in rows]
            if kind != "cr:BoundingBox":
                values = innermost(values)
            known = [value for value in values if value is not None]
            assert all(isinstance(value, TYPES[kind]) for value in known), field
    assert len({*ids}) == len(ids)
    assert not any(character.isspace() for name in ids for character in name)


@pytest.mark.parametrize("target", TARGETS)
def test_mlcroissant_reads_every_record(target: str, exported: World) -> None:
    mlcroissant = pytest.importorskip("mlcroissant")
    metadata = export(exported, target)
    folder = exported.folder / target
    files = {each["@id"]: each["contentUrl"] for each in metadata["distribution"]}
    dataset = mlcroissant.Dataset(str(folder / "croissant.json"))
    boxes = 0
    for records in metadata["recordSet"]:
        read = list(dataset.records(records["@id"]))
        assert len(read) == len(rows_of(folder, records, files))
        boxes += sum(any(name.endswith(("bbox", "boxes")) for name in row) for row in read)
    assert boxes


def test_a_licence_is_stated_only_where_somebody_states_one(exported: World) -> None:
    assert "license" not in export(exported, "hub")
    assert export(exported, "hub", "--licence", "cc-by-4.0")["license"] == ["cc-by-4.0"]
    (licence,) = export(exported, "coco")["license"]
    assert "VOC 2007" in licence
    for key in ("citeAs", "datePublished", "version"):
        assert key not in export(exported, "coco")


def test_own_data_has_no_licence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from custom_data import data_folder, make_images, write_coco

    data_folder(tmp_path, monkeypatch)
    images = make_images(tmp_path / "pictures")
    arguments = [str(write_coco(tmp_path)), "--image-root", str(images), "--name", "MyData"]
    assert main(["data", "import", *arguments]) == 0
    name = "FindIt_MyData_xyxy_json"
    run = ["run", "--data", name, "--model", "FullImage", "--work-dir", str(tmp_path / "runs")]
    assert main(run) == 0
    out = tmp_path / "coco"
    assert main(["export", str(tmp_path / "runs"), "--to", "coco", "--out", str(out)]) == 0
    assert "license" not in json.loads((out / "croissant.json").read_text())


def test_croissant_is_no_target_and_says_whose_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "outputs", "--to", "croissant"]) == 2
    assert "croissant.json is written by --to coco and --to hub" in capsys.readouterr().err
