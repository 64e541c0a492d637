"""Custom datasets: every format to the same queries, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import custom_data
import pytest
from custom_data import coco_values, make_images, write_coco
from grids import grid
from stand_ins import files_of

from vlmeval_findit.benchmarks import is_dataset_name
from vlmeval_findit.benchmarks.findit import DATASETS, find_table, parse, read_table
from vlmeval_findit.boxes import Ignored
from vlmeval_findit.cli import main
from vlmeval_findit.data import load_dataset
from vlmeval_findit.storage import (
    custom_datasets_file,
    image_folder,
    lmu_data_root,
    meta_path,
    rows_to_leave_out,
)

pytestmark = pytest.mark.usefixtures("data_root")


def import_coco(folder: Path, name: str = "MyData", *more: str, change: Any = None) -> int:
    """Import the small COCO file, which ``change`` changes, and its images."""
    values = coco_values()
    if change is not None:
        change(values)
    path = write_coco(folder, values)
    images = folder / "images"
    if not images.exists():
        make_images(images)
    command = ["data", "import", str(path), "--image-root", str(images), "--name", name]
    return main([*command, *more])


def queries_of(table: str) -> list[Any]:
    return [
        (
            q.label,
            q.width,
            q.height,
            q.images,
            q.truth.labels,
            *(tuple(round(n, 6) for n in box) for box in q.truth.boxes),
        )
        for q in read_table(find_table(table))
    ]


EXPECTED = [
    ("cat", 120, 80, ("one.jpg",), (), (10, 5, 40.5, 25.25), (60, 40, 120, 80)),
    ("traffic light", 120, 80, ("one.jpg",), (), (0, 0, 12, 30)),
    ("traffic light", 64, 96, ("sub/two.png",), (), (4, 8, 44, 88)),
]


@pytest.mark.parametrize("kind", ["coco", "yolo", "voc", "csv", "tsv"])
def test_every_format_makes_the_same_queries(tmp_path, kind: str) -> None:
    folder = tmp_path / "source"
    folder.mkdir()
    if kind == "coco":
        assert import_coco(folder) == 0
    elif kind in ("yolo", "voc"):
        write = custom_data.write_yolo if kind == "yolo" else custom_data.write_voc
        assert main(["data", "import", str(write(folder)), "--name", "MyData"]) == 0
    else:
        listing = custom_data.write_listing(folder / f"boxes.{kind}")
        images = str(make_images(folder / "images"))
        command = ["data", "import", str(listing), "--image-root", images, "--name", "MyData"]
        assert main(command) == 0
    # An image without objects asks for a class that is not there; a listing cannot name it.
    empty = [] if kind in ("csv", "tsv") else [("cat", 100, 100, ("three.jpg",), ())]
    assert sorted(queries_of("MyData")) == sorted([*EXPECTED, *empty])
    multi = [row for row in queries_of("MyData_multilabel") if row not in empty]
    assert sorted(multi, key=lambda row: len(row[4])) == [
        ("traffic light", 64, 96, ("sub/two.png",), ("traffic light",), (4, 8, 44, 88)),
        (
            "cat, traffic light",
            120,
            80,
            ("one.jpg",),
            ("cat", "cat", "traffic light"),
            (10, 5, 40.5, 25.25),
            (60, 40, 120, 80),
            (0, 0, 12, 30),
        ),
    ]


def test_it_is_usable_at_once_with_all_variants(tmp_path) -> None:
    assert import_coco(tmp_path) == 0
    variants = list(grid([DATASETS["MyData"]]))
    assert len(variants) == len(list(grid([DATASETS["Pascal"]])))
    assert [parse(variant.name) for variant in variants] == variants
    dataset = load_dataset("FindIt_MyData_multilabel_cxcywh_json_bbox_2d_nested")
    folder = image_folder(dataset.variant.data.images)
    assert folder.path == tmp_path / "images"
    assert rows_to_leave_out(list(dataset.queries.values()), folder, False) == frozenset()


def test_a_failed_import_leaves_the_dataset_as_it_was(tmp_path, monkeypatch, capsys) -> None:
    assert import_coco(tmp_path) == 0
    assert import_coco(tmp_path) == 2
    assert "was imported before. Type --replace" in capsys.readouterr().err
    assert import_coco(tmp_path, "MyData", "--replace") == 0
    before = files_of(lmu_data_root())

    def fail(*arguments: object) -> None:
        raise RuntimeError("failed")

    with monkeypatch.context() as patch:
        patch.setattr("vlmeval_findit.data.custom.build.write_ids", fail)
        with pytest.raises(RuntimeError, match="failed"):
            import_coco(tmp_path, "MyData", "--replace")
    assert files_of(lmu_data_root()) == before
    assert parse("FindIt_MyData_xyxy_json").name == "FindIt_MyData_xyxy_json"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Pascal", "the benchmark's dataset Pascal"),
        ("refcoco_test", "the benchmark's dataset RefCOCO"),
        ("My_xyxy", "the part 'xyxy' means a format in FindIt_<name>_<format>: type --name My\n"),
        ("My_f8", "the part 'f8' means a format in FindIt_<name>_<format>: type --name My\n"),
        ("My_cx-formula", "the part 'cx-formula' means a format"),
        ("FindIt_My", "the part 'findit' means the beginning in FindIt_<name>_<format>"),
        ("FindIt_My_xyxy_json", "_<format>: type --name My\n"),
        ("FindIt_My_Own_multilabel_xywh_json_bbox_2d", "type --name My_Own\n"),
        ("xyxy_json", "means a format in FindIt_<name>_<format>\n"),
        ("../My", "only letters"),
        ("2026_11", "at least one letter, as --name my-2026_11"),
    ],
)
def test_names_that_would_be_ambiguous_are_refused(tmp_path, name: str, why: str, capsys) -> None:
    assert import_coco(tmp_path, name) == 2
    assert why in capsys.readouterr().err
    assert not custom_datasets_file().exists()


def test_names_that_begin_like_ours_leave_ours_as_they_are(tmp_path) -> None:
    before = [v.name for row in ("Pascal", "RefCOCO") for v in grid([DATASETS[row]])]
    for name in ("Pascal_night", "RefCOCO-mine", "pasca"):
        assert import_coco(tmp_path, name) == 0
    for name in before:
        assert parse(name).name == name
    assert parse("FindIt_Pascal_night_xyxy_json").dataset == "Pascal_night"
    assert not is_dataset_name("FindIt_Pascal_day_xyxy_json")


Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda v: v["annotations"][0].update(bbox=[100, 5, 30, 20]), "leaves one.jpg, which is"),
        # A pixel outside the image of 120x80 is rounding, more is not.
        (lambda v: v["annotations"][0].update(bbox=[-1, -1, 122, 82]), None),
        (lambda v: v["annotations"][0].update(bbox=[-1.1, 0, 20, 20]), "leaves one.jpg, which is"),
        (lambda v: v["annotations"][1].update(bbox=[5, 5, 0, 20]), "has no area"),
        (lambda v: v["images"][0].update(width=121), "is 120x80, but its annotations are for 121"),
        (lambda v: v["images"][0].update(file_name="../x.jpg"), "does not lie below"),
        (
            lambda v: v["images"][1].update(file_name="one.jpg"),
            "another entry is about one.jpg, too",
        ),
        (lambda v: v["categories"][0].update(name=" "), "no label"),
        (lambda v: v["categories"][0].update(name="Traffic-light!"), None),
        (lambda v: v.update(annotations=[]), "no boxes"),
    ],
)
def test_annotations_that_cannot_be_used_are_refused_and_leave_nothing(
    tmp_path, change: Change, why: str | None, capsys
) -> None:
    assert import_coco(tmp_path, change=change) == (0 if why is None else 2)
    if why is not None:
        assert why in capsys.readouterr().err
        assert not list(custom_datasets_file().parent.iterdir())


def test_crowd_regions_are_ignored(tmp_path, capsys) -> None:
    def make_crowds(values: dict[str, Any]) -> None:
        # A cat next to another one, and the only traffic light of an image.
        for at in (0, 3):
            values["annotations"][at]["iscrowd"] = 1

    assert import_coco(tmp_path, change=make_crowds) == 0
    output = capsys.readouterr().out
    # An image with a crowd and nothing else is asked about nothing.
    assert "left out: crowd regions that no query is about (1)" in output
    assert "read: images (3), boxes (2), ignored boxes (1)" in output
    for table in ("MyData", "MyData_multilabel"):
        queries = read_table(find_table(table))
        assert sum(len(q.truth.boxes) for q in queries) == 2
        label = "cat" if "multi" in table else ""
        ignored = [each for q in queries for each in q.truth.ignored]
        assert ignored == [Ignored((10.0, 5.0, 40.5, 25.25), 0, label, crowd=True)]


# --- what can be left out -------------------------------------------------------------------------


def spoil(values: dict[str, Any]) -> None:
    """Make the only traffic light of an image flat, and one of two cats leave its image."""
    values["annotations"][3]["bbox"] = [4, 8, 40, 0]
    values["annotations"][1]["bbox"] = [60, 40, 160, 40]


def test_all_bad_boxes_are_listed_and_left_out_when_told(tmp_path, capsys) -> None:
    assert import_coco(tmp_path, change=spoil) == 2
    error = capsys.readouterr().err
    assert "2 of 4 boxes cannot be used:" in error
    assert "annotations[1]: the box (60.0, 40.0, 220.0, 80.0) leaves one.jpg" in error
    assert "annotations[3]: the box (4.0, 8.0, 44.0, 8.0) has no area" in error
    assert "say --leave-out-bad-boxes" in error
    assert import_coco(tmp_path, "MyData", "--leave-out-bad-boxes", change=spoil) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "left out: boxes that cannot be used: --leave-out-bad-boxes (2), the first:" in output
    # The traffic light is still there, so its image is no query with nothing to find.
    assert "queries all of whose boxes cannot be used" in output
    found = [(query.label, query.images[0]) for query in read_table(find_table("MyData"))]
    assert found == [
        ("cat", "one.jpg"),
        ("traffic light", "one.jpg"),
        ("cat", "three.jpg"),
    ]


def test_a_set_of_bad_boxes_only_is_refused(tmp_path, capsys) -> None:
    def make_all_flat(values: dict[str, Any]) -> None:
        for annotation in values["annotations"]:
            annotation["bbox"][3] = 0
        values["images"] = [row for row in values["images"] if row["file_name"] != "three.jpg"]

    assert import_coco(tmp_path, "MyData", "--leave-out-bad-boxes", change=make_all_flat) == 2
    assert "no query has boxes that can be used" in capsys.readouterr().err


def test_a_long_list_of_bad_boxes_is_cut_and_counted(tmp_path, capsys) -> None:
    def make_flat(values: dict[str, Any]) -> None:
        flat = {**values["annotations"][0], "bbox": [1, 1, 0, 5]}
        values["annotations"] += [
            {**flat, "id": 100 + at, "bbox": [at, 1, 0, 5]} for at in range(30)
        ]

    assert import_coco(tmp_path, change=make_flat) == 2
    error = capsys.readouterr().err
    assert "30 of 34 boxes cannot be used:" in error
    assert error.count("has no area") == 10
    assert "… and 20 more" in error


@pytest.mark.sees("data import --skip-unreadable-images")
def test_images_that_cannot_be_read_are_left_out_when_told(tmp_path, capsys) -> None:
    make_images(tmp_path / "images")
    (tmp_path / "images" / "one.jpg").write_bytes(b"no image")
    (tmp_path / "images" / "three.jpg").unlink()
    assert import_coco(tmp_path) == 2
    error = capsys.readouterr().err
    assert "2 of 3 images cannot be used:" in error
    assert "three.jpg is missing" in error
    assert "say --skip-unreadable-images" in error
    assert import_coco(tmp_path, "MyData", "--skip-unreadable-images") == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "left out: images that cannot be used: --skip-unreadable-images (2)" in output
    assert [query.images for query in read_table(find_table("MyData"))] == [("sub/two.png",)]
    (tmp_path / "images" / "sub/two.png").unlink()
    assert import_coco(tmp_path, "Other", "--skip-unreadable-images") == 2


def test_images_that_no_query_asks_about_are_named(tmp_path, capsys) -> None:
    make_images(tmp_path / "images")
    other = tmp_path / "images" / "sub" / "another.PNG"
    other.write_bytes((tmp_path / "images" / "sub" / "two.png").read_bytes())
    (tmp_path / "images" / "sub" / "notes.txt").write_text("no image")
    assert import_coco(tmp_path) == 0
    output = "".join(capsys.readouterr().out.split("\n"))
    assert "not read: images of these folders without annotations (1), the first: " in output
    assert "another.PNG" in output


def test_what_became_of_everything_is_stored_with_the_table(tmp_path) -> None:
    assert import_coco(tmp_path) == 0
    meta = json.loads(meta_path(find_table("MyData")).read_text())
    assert {"fate": "read", "what": "boxes", "count": 4, "first": ""} in meta["ledger"]


@pytest.mark.parametrize(
    "written", [["20", "10", "60", "50"], [20, "10", 60, 50], ["1e1", 1, 2, 3]]
)
def test_numbers_as_text_are_named(tmp_path, written: list[Any], capsys) -> None:
    def write_text(values: dict[str, Any]) -> None:
        values["annotations"][0]["bbox"] = written

    assert import_coco(tmp_path, change=write_text) == 2
    assert "should be [x, y, width, height]: numbers, not text" in capsys.readouterr().err


@pytest.mark.parametrize("written", [[20, 10, 60], ["a", 1, 2, 3], "all", None])
def test_what_is_no_number_is_not_called_text(tmp_path, written: Any, capsys) -> None:
    def write_other(values: dict[str, Any]) -> None:
        values["annotations"][0]["bbox"] = written
        values["annotations"][0].pop("segmentation", None)

    assert import_coco(tmp_path, change=write_other) == 2
    assert "not text" not in capsys.readouterr().err
