"""Published sets: from the folder, in the layout in which they are published, to a score."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import published_stand_ins as published
import pytest
from published_stand_ins import known
from scored_runs import World, grid, speaking

from vlmeval_findit.benchmarks.findit import (
    DATASETS,
    Family,
    FindItQuery,
    custom_rows,
    find_table,
    read_table,
)
from vlmeval_findit.boxes import BoxToWrite, write
from vlmeval_findit.cli import main
from vlmeval_findit.data import SOURCES, Counts, load_dataset, published_sets
from vlmeval_findit.storage import custom_datasets_file, image_folder, meta_path, rows_to_leave_out

pytestmark = pytest.mark.usefixtures("data_root")


def import_set(name: str, folder: Path, *more: str) -> int:
    return main(["data", "import", str(folder), "--set", name, *more])


def metrics_of(
    tmp_path, name: str, is_right: Callable[[FindItQuery], bool], model: str = "M"
) -> Mapping[str, float | None]:
    """Score a run whose answers are perfect, or an empty corner of the image."""
    right = speaking(name, chance=1.0)
    wrong = write([BoxToWrite(grid((190, 95, 199, 99)), "", 0)], load_dataset(name).variant.reply)
    run = World(tmp_path).run(
        model, name, lambda query, random: right(query, random) if is_right(query) else wrong
    )
    return run.metric_values


def meta(table: str) -> Mapping[str, Any]:
    values: dict[str, Any] = json.loads(meta_path(find_table(table)).read_text())
    return values


def all_images_are_there(name: str) -> bool:
    dataset = load_dataset(name)
    folder = image_folder(dataset.variant.data.images)
    return not rows_to_leave_out(list(dataset.queries.values()), folder, False)


# --- sets of COCO files ---------------------------------------------------------------------------


def test_coco_val2017(tmp_path, monkeypatch, capsys) -> None:
    folder = published.write_coco_val2017(tmp_path / "coco")
    known(monkeypatch, "COCO_val2017", counts=Counts(images=3, boxes=4, classes=3, ignored=1))
    assert import_set("COCO_val2017", folder) == 0
    output = capsys.readouterr().out
    assert "annotations CC BY 4.0" in output
    assert "ignored boxes (1)" in output
    assert "left out: images without an object, which make no query (1)" in output
    name = "FindIt_COCO_val2017_xyxy_json"
    assert all_images_are_there(name)
    labels = [
        (query.label, len(query.truth.boxes)) for query in load_dataset(name).queries.values()
    ]
    assert labels == [("cat", 1), ("cat", 2), ("dog", 1)]
    assert metrics_of(tmp_path, name, lambda query: True, "Right")["F1@0.5"] == 100
    half = metrics_of(tmp_path, name, lambda query: query.label == "dog")
    # One of four objects, and one of three boxes.
    assert half["Recall"] == 25
    assert half["F1@0.5"] == pytest.approx(200 * 1 / (4 + 3))
    assert "unlike published" not in meta("COCO_val2017")
    assert meta("COCO_val2017_multilabel")["licence"] == SOURCES["COCO_val2017"].licence


HERE = ("Aquarium", "EgoHands", "PascalVOC", "pistols", "pothole")


@pytest.mark.sees("data import --set", "data import --only", "data import --partial")
@pytest.mark.parametrize(("row", "split"), [("ODinW13", "test"), ("ODinW13_valid", "valid")])
def test_odinw_13(tmp_path, monkeypatch, row: str, split: str, capsys) -> None:
    folder = published.write_odinw(tmp_path / "odinw", split)
    assert import_set(row, folder) == 2
    error = capsys.readouterr().err
    assert "5 subsets, published are 13 (missing: AerialMaritimeDrone, CottontailRabbits" in error
    assert not custom_datasets_file().exists()
    assert import_set(row, folder, "--partial") == 0
    assert sorted(custom_rows()) == [f"{row}_{name}" for name in HERE]
    name = f"FindIt_{row}_pistols_xyxy_json"
    assert all_images_are_there(name)
    assert metrics_of(tmp_path, name, lambda query: query.index == 0)["F1@0.5"] == 50
    assert meta(f"{row}_EgoHands")["unlike published"] == "2 images, published are 480"
    assert "classes" in meta(f"{row}_Aquarium")["unlike published"]
    # Some subsets are asked for.
    two = Counts(images=2, classes=1)
    known(monkeypatch, row, parts={"pothole": two, "EgoHands": two})
    assert import_set(row, folder, "--only", "potholes") == 2
    assert "unknown subset 'potholes': did you mean pothole?" in capsys.readouterr().err
    assert import_set(row, folder, "--only", "pothole", "--name", "Holes") == 0
    assert "Holes_pothole" in custom_rows()
    assert "unlike published" not in meta("Holes_pothole")


def test_a_subset_that_cannot_be_used_stops_no_other(tmp_path, capsys) -> None:
    folder = published.write_odinw(tmp_path / "odinw")
    (folder / "pothole/test/pothole_2.jpg").unlink()
    (folder / "pistols/export/test_annotations_without_background.json").write_text("null")
    assert import_set("ODinW13", folder, "--partial") == 1
    output = capsys.readouterr().out
    assert "ODinW13_pothole: 1 of 2 images cannot be used" in output
    assert "test_annotations_without_background.json, line 1: not JSON: expected {" in output
    assert "2 of 5 could not be made: ODinW13_pistols, ODinW13_pothole" in output
    assert sorted(custom_rows()) == ["ODinW13_Aquarium", "ODinW13_EgoHands", "ODinW13_PascalVOC"]
    # None can be made a second time.
    assert import_set("ODinW13", folder, "--partial", "--only", "EgoHands,pistols") == 2
    only = "--only EgoHands,pistols"
    again = f"data import {folder} --set ODinW13 {only} --partial --replace"
    assert f"EgoHands is there already. To make it again: {again}" in capsys.readouterr().out


def test_rf100_vl(tmp_path, capsys) -> None:
    folder = published.write_rf100vl(tmp_path / "rf100-vl")
    (folder / "notes").mkdir()
    # The class of Roboflow stays if a box has it; a box without an area is left out.
    file = folder / "bees" / "test" / "_annotations.coco.json"
    values = json.loads(file.read_text())
    values["categories"][0]["name"] = "swarm"
    values["annotations"][0]["category_id"] = 0
    values["annotations"].append({**values["annotations"][1], "id": 3, "bbox": [5, 5, 0, 9]})
    file.write_text(json.dumps(values))
    assert import_set("RF100-VL", folder) == 2
    assert "3 subsets, published are 100" in capsys.readouterr().err
    assert import_set("RF100-VL", folder, "--partial") == 0
    assert sorted(custom_rows()) == ["RF100-VL_-grccs", "RF100-VL_bees", "RF100-VL_mites"]
    name = "FindIt_RF100-VL_-grccs_xyxy_json"
    assert image_folder(load_dataset(name).variant.data.images).path == folder / "-grccs" / "test"
    assert metrics_of(tmp_path, name, lambda query: True)["F1@0.5"] == 100
    boxes = [(q.label, len(q.truth.boxes)) for q in read_table(find_table("RF100-VL_bees"))]
    assert boxes == [("swarm", 1), ("bees", 1)]


@pytest.mark.sees("data get --units", "data get --box")
@pytest.mark.parametrize("command", ["import", "get"])
@pytest.mark.parametrize(
    ("numbers", "flag", "corners"),
    [
        ([500, 400, 450, 500], "--units thousandths", (100, 40, 190, 90)),
        ([110, 40, 190, 90], "--box corners", (110, 40, 190, 90)),
    ],
)
def test_numbers_of_a_set_are_asked_about_and_taken(
    tmp_path,
    monkeypatch,
    command: str,
    capsys,
    numbers: list[int],
    flag: str,
    corners: tuple[int, ...],
) -> None:
    """As those of a user's own file; boxes in images of 200 x 100."""
    folder = published.write_coco_val2017(tmp_path / "coco")
    file = folder / "annotations" / "instances_val2017.json"
    values = json.loads(file.read_text())
    for thing in values["annotations"]:
        thing["bbox"] = numbers
        thing["segmentation"] = []
        thing["iscrowd"] = 0
    file.write_text(json.dumps(values))
    words = ["import", str(folder), "--set", "COCO_val2017", "--partial", "--replace"]
    if command == "get":
        words = ["get", "COCO_val2017", "--from", str(folder), "--force"]
    assert main(["data", *words]) == 2
    error = capsys.readouterr().err
    for flags in re.findall(r"--\S+ \S+", error.rpartition("Type ")[2]):
        assert main(["data", *words, *flags.split(), "--help"]) == 0
    assert flag in error
    assert main(["data", *words, *flag.split()]) == 0
    (row, *_) = load_dataset("FindIt_COCO_val2017_xyxy_json").queries.values()
    assert row.truth.boxes == (corners,)


@pytest.mark.parametrize("flag", ["--units pixels", "--box sides", "--exif stored"])
def test_flags_of_numbers_are_for_what_has_some(flag: str, tmp_path, capsys) -> None:
    assert main(["data", "get", "Pascal", *flag.split()]) == 2
    assert f"{flag.split()[0]} is for published sets" in capsys.readouterr().err
    published.write_groundingme(tmp_path / "hub")
    if flag.startswith("--box"):
        assert import_set("GroundingME", tmp_path / "hub", "--partial", *flag.split()) == 2
        assert "--box is not for GroundingME" in capsys.readouterr().err


# --- Parquet files --------------------------------------------------------------------------------


def test_groundingme_and_its_rejections(tmp_path, monkeypatch, capsys) -> None:
    folder = published.write_groundingme(tmp_path / "hub", files=2)
    known(monkeypatch, "GroundingME", counts=Counts(images=4, boxes=2, queries=4, negatives=2))
    assert import_set("GroundingME", folder) == 0
    assert "(2 without an object)" in capsys.readouterr().out
    assert DATASETS["GroundingME"].has_negatives
    assert DATASETS["GroundingME"].family is Family.REFEXP_ALL
    name = "FindIt_GroundingME_xyxy_json"
    assert all_images_are_there(name)
    first, second, third, _ = load_dataset(name).queries.values()
    assert first.label == "the discriminative thing, which is number 11"
    assert first.truth.boxes == ((10, 20, 60, 60),)
    assert (first.images, second.images) == (("11.jpg",), ("12.png",))
    assert first.tags == {"subtask": "Discriminative", "aspect": "colour"}
    assert second.tags == {"subtask": "Limited"}
    assert third.truth.boxes == ()
    # A right answer to a rejection is an empty list, a wrong answer a box.
    right = metrics_of(tmp_path, name, lambda query: True, "Right")
    assert right["F1@0.5"] == right["Rejection accuracy"] == 100
    half = metrics_of(tmp_path, name, lambda query: query.index in (0, 2))
    assert half["Rejection accuracy"] == half["False-alarm rate"] == half["Recall"] == 50


def test_images_are_unpacked_once(tmp_path, data_root: Path, capsys) -> None:
    def files() -> dict[Path, tuple[bytes, int]]:
        paths = (path for path in data_root.rglob("*") if path.is_file())
        return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}

    rows = published.groundingme()
    rows[2].update(width=201)
    rows[0]["image"]["bytes"] = published.picture(99)
    bad = published.write_groundingme(tmp_path / "bad", rows)
    good = published.write_groundingme(tmp_path / "good")
    for folder, more, why in ((bad, ["--partial"], "are for 201x100"), (good, [], "published are")):
        assert import_set("GroundingME", folder, *more) == 2
        assert why in capsys.readouterr().err
        assert not files()
    assert import_set("GroundingME", good, "--partial") == 0
    unpacked = data_root / "images" / "GroundingME"
    before = files()
    names = ["11.jpg", "12.png", "13.jpg", "14.png"]
    assert sorted(path.name for path in unpacked.iterdir()) == names
    assert (unpacked / "11.jpg").read_bytes() == published.picture(11)
    # A set that is refused does not change the images of the imported one.
    assert import_set("GroundingME", bad, "--partial", "--replace") == 2
    assert files() == before
    assert import_set("GroundingME", good, "--partial", "--replace") == 0
    assert {path: before[path] for path in unpacked.iterdir()}.items() <= files().items()


def test_files_of_parquet_that_cannot_be_used(tmp_path, capsys) -> None:
    folder = published.write_groundingme(tmp_path / "hub", files=2)
    second = folder / "data" / "test-00001-of-00002.parquet"
    second.unlink()
    assert import_set("GroundingME", folder) == 2
    output = capsys.readouterr().err
    assert "test-00001-of-00002.parquet is missing; 2 queries, published are 1,005" in output
    assert import_set("GroundingME", folder, "--partial") == 0
    assert "test-00001-of-00002.parquet is missing" in meta("GroundingME")["unlike published"]
    second.write_text("a page")
    assert import_set("GroundingME", folder, "--partial", "--replace") == 2
    assert f"{second}: not a Parquet file" in capsys.readouterr().err
    other = published.write_parquet(tmp_path / "other", "test", published.refcoco_m())
    assert import_set("GroundingME", other, "--partial", "--replace") == 2
    assert "test-00000-of-00001.parquet, row 0: id is missing" in capsys.readouterr().err


def test_refcoco_m(tmp_path, monkeypatch) -> None:
    folder = published.write_refcoco_m(tmp_path / "hub")
    known(monkeypatch, "RefCOCO-M", counts=Counts(images=2, boxes=3, queries=4))
    assert import_set("RefCOCO-M", folder) == 0
    name = "FindIt_RefCOCO-M_xyxy_json"
    assert all_images_are_there(name)
    queries = list(load_dataset(name).queries.values())
    labels = ["man on the left", "left man", "woman", "child, in red"]
    assert [query.label for query in queries] == labels
    assert queries[0].truth.boxes == ((10, 20, 60, 60),) == queries[1].truth.boxes
    assert queries[3].images == ("COCO_train2014_000000000001.jpg",)
    assert queries[3].tags == {"category": "person", "supercategory": "person"}
    assert DATASETS["RefCOCO-M"].family is Family.REFEXP
    assert metrics_of(tmp_path, name, lambda query: query.index != 2)["F1@0.5"] == 75
    # A point lies in an object's mask, here the upper half of its box, and not just in the box.
    (mask,) = queries[0].truth.masks
    assert (mask.covers(30, 30), mask.covers(30, 50)) == (True, False)


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "at", "value", "why"),
    [
        ("GroundingME", (1, "bbox"), None, "row 1, bbox: None should be [x1, y1, x2, y2]"),
        ("GroundingME", (0, "bbox"), [9, 9, 3000, 12], "leaves 11.jpg, which is 200x100"),
        ("GroundingME", (0, "subtask_l1"), "x", "row 0, subtask_l1: should be 'Discriminative', "),
        ("GroundingME", (2, "description"), " ", "row 2, description: ' ' should be a text"),
        ("GroundingME", (3, "id"), 12, "the name '12.png' is a duplicate"),
        ("GroundingME", (2, "image", "bytes"), None, "row 2, image: should be an image (a struct"),
        (
            "GroundingME",
            (2, "image", "bytes"),
            b"GIF89a",
            "image: is not a JPEG, PNG or WebP image",
        ),
        ("RefCOCO-M", (0, "file_name"), "../x.jpg", "'../x.jpg' climbs out of its folder"),
        ("RefCOCO-M", (0, "samples"), None, "row 0, samples: should be a list"),
        ("RefCOCO-M", (0, "samples", 1, "bbox"), [1.0], "samples[1], bbox: [1.0] should be [x, y"),
        ("RefCOCO-M", (0, "samples", 1, "sentences"), [""], "sentences[0]: '' should be a text"),
        ("RefCOCO-M", (0, "samples", 1, "mask", "size"), [9, 9], "a run is not within the image"),
        ("RefCOCO-M", (0, "samples", 1, "mask", "size"), [50, 400], "is 400x50 here, 200x100"),
    ],
)
def test_rows_that_cannot_be_used(
    tmp_path, name: str, at: tuple[Any, ...], value: Any, why: str, capsys
) -> None:
    is_first = name == "GroundingME"
    rows: Any = published.groundingme() if is_first else published.refcoco_m()
    part, (*way, key) = rows, at
    for step in way:
        part = part[step]
    part[key] = value
    write = published.write_groundingme if is_first else published.write_refcoco_m
    assert import_set(name, write(tmp_path / "a", rows), "--partial") == 2
    assert why in capsys.readouterr().err
    assert not custom_datasets_file().exists()
    assert not list(tmp_path.rglob("x.jpg"))


def test_another_folder(tmp_path, capsys) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    for name, row in published_sets().items():
        assert import_set(name, folder, "--partial") == 2
        error = capsys.readouterr().err
        assert str(folder) in error
        assert f"the folder should hold {row.holds}" in error


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([".", "--set", "RefCOCO_M"], "unknown published set 'RefCOCO_M': did you mean RefC"),
        (["--set", "GroundingME"], "FILE or DIR is missing"),
        ([".", "--set", "GroundingME", "--image-root", "."], "--image-root is not for a published"),
        (["x.json", "--name", "M", "--frames", "2"], "--frames is not for COCO"),
        (
            [".", "--name", "Mine"],
            "no images and no categories and no annotations",
        ),
        ([__file__, "--name", "Mine"], "importing.py: annotations should be .json, .jsonl"),
        (["gone", "--name", "Mine"], "gone: does not exist"),
    ],
)
def test_arguments_that_contradict_each_other(
    arguments: list[str], why: str, capsys, tmp_path: Path
) -> None:
    (tmp_path / "x.json").write_text("{}")
    assert main(["data", "import", *arguments]) == 2
    assert why in capsys.readouterr().err


def test_the_list_fits_a_terminal_and_names_every_licence(capsys) -> None:
    assert main(["data", "import", "--sets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    words = " ".join(" ".join(lines).split())
    for row in published_sets().values():
        assert all(part in words for part in (row.licence, row.address, row.holds))
    assert "13 datasets, 4,575 images" in words
