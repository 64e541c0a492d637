"""The authors' stage 2 files: both layouts, boxes of either kind, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from stage2_stand_in import HEIGHT, SOURCES, WIDTH, Layout, boxes_of, picture, row, rows, write_part
from vpbench_stand_in import write_tsv

from vlmeval_findit import cli
from vlmeval_findit.benchmarks.vpbench import RegionRole, Stage2Row, reading_of, stage2_rows
from vlmeval_findit.benchmarks.vpbench import stage2_release as release
from vlmeval_findit.storage import TableError


def read(built: list[dict[str, Any]], folder: Path, layout: Layout) -> list[Stage2Row]:
    return release.read_release([write_part(folder, 0, built, layout)], folder / "images")[0]


@pytest.mark.parametrize("layout", Layout)
def test_a_table_round_trips_to_the_same_bytes(lmu: Path, tmp_path: Path, layout: Layout) -> None:
    part = write_part(tmp_path, 0, rows(layout), layout)
    path = release.prepare_stage2(release.parts_in(tmp_path), lmu).path
    assert path == lmu / "VPBench_Stage2.tsv"
    before = {each: each.read_bytes() for each in lmu.rglob("*") if each.is_file()}
    assert release.prepare_stage2([part], lmu).path == path
    assert {each: each.read_bytes() for each in lmu.rglob("*") if each.is_file()} == before

    result = stage2_rows(path)
    assert [each.index for each in result] == list(range(1, 19))
    first = {each.source: each for each in reversed(result)}
    assert set(first) == set(SOURCES)
    assert first["MIA"].options == (("A", "a car"), ("B", "a bus"), ("C", "a dog"), ("D", "a hat"))
    assert dict(first["emotic"].options).keys() == {"A", "B", "C"}
    assert [each.answer for each in result[:3]] == ["A", "B", ""]
    for source, each in first.items():
        assert [mark.box for mark in each.marks] == [tuple(box) for box in boxes_of(source, 0)]
        assert set(each.sizes) == {(WIDTH, HEIGHT)}
        assert all((lmu / "images" / "VPBench" / name).is_file() for name in each.images)
    assert [mark.image for mark in first["SD-100"].marks] == [0, 1]
    assert [mark.role for mark in first["SGG"].marks] == [RegionRole.SUBJECT, RegionRole.OBJECT]
    assert first["mapillary_vistas"].marks[0].outlines == ((60.0, 90.0, 85.0, 40.0, 110.0, 90.0),)

    facts = json.loads(path.with_suffix(".meta.json").read_text())
    assert {s for s, each in facts["boxes"].items() if each == "xyxy"} == {"emotic", "see_click"}
    assert (facts["queries"], facts["rows without an answer"]) == (18, 6)
    assert (facts["marks"], facts["marks without an outline"]) == (24, 21)


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"data_file": None, "image": json.dumps({"MIA/0_0.jpg": picture(0)})}, "no name"),
        ({"meta_bbox": "[60, 40, 50, 50]"}, "one box, not a list of boxes"),
        ({"image": json.dumps([picture(0)])}, "a list"),
        ({"answer": "b."}, "a small letter with a full stop"),
    ],
)
def test_other_spellings_are_read_alike(changed: dict[str, Any], what: str, tmp_path: Path) -> None:
    plain = read([row("MIA", 0, Layout.JSON, answer="B")], tmp_path / "plain", Layout.JSON)
    other = read([row("MIA", 0, Layout.JSON, **{"answer": "B", **changed})], tmp_path, Layout.JSON)
    assert other == plain, what


def test_several_boxes_of_an_image_have_an_outline_each(tmp_path: Path) -> None:
    cells = {
        "meta_bbox": "[[60, 40, 50, 50], [10, 10, 20, 20]]",
        "meta_polygon": "[null, [[[1, 2], [3, 4], [5, 6]]]]",
    }
    (each,) = read([row("MIA", 0, Layout.JSON, **cells)], tmp_path, Layout.JSON)
    assert [mark.box for mark in each.marks] == [(60, 40, 50, 50), (10, 10, 20, 20)]
    assert [mark.outlines for mark in each.marks] == [(), ((1, 2, 3, 4, 5, 6),)]


@pytest.mark.parametrize(
    ("source", "changed", "says"),
    [
        ("MIA", {"meta_source": "mia"}, "unknown source 'mia': did you mean MIA"),
        ("MIA", {"answer": "E"}, "column answer: 'E' is not an option: A, B, C, D"),
        ("MIA", {"image": '["aGVsbG8="]'}, "column image: not an image (it begins"),
        ("MIA", {"meta_bbox": None}, "column meta_bbox: no box"),
        ("MIA", {"meta_bbox": "[[1, 2, 3]]"}, "column meta_bbox: [1, 2, 3] is not a box of four"),
        ("MIA", {"meta_bbox": '{"MIA/0_0.jpg": {"thing": [1, 2, 3, 4]}}'},
         "'thing' is not a valid RegionRole"),
        ("SD-100", {"meta_bbox": "[[1, 2, 9, 9]]"}, "should have an entry for each of 2 images"),
        ("SGG", {"meta_polygon": '{"SGG/0_0.jpg": {"subject": "x"}}'}, "is not a list of polygons"),
    ],
)  # fmt: skip
def test_what_is_refused_names_file_row_and_column(
    source: str, changed: dict[str, Any], says: str, tmp_path: Path
) -> None:
    built = [row(source, 1, Layout.JSON), row(source, 0, Layout.JSON, **changed)]
    with pytest.raises(TableError) as error:
        read(built, tmp_path, Layout.JSON)
    assert f"{tmp_path}/vp_bench_stage_2_meta.part0000.parquet, row 1, column " in str(error.value)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("boxes", "reading"),
    [
        ([(10, 10, 20, 20)], "xywh (both fit)"),
        ([(10, 10, 20, 20), (60, 60, 20, 20)], "xywh"),
        ([(10, 10, 20, 20), (60, 60, 90, 90)], "xyxy"),
        ([(80, 10, 21, 20)], "xywh"),
        ([(60, 60, 101, 100)], "xyxy"),
        ([(60, 60, 20, 20), (60, 60, 90, 90)], None),  # both kinds
        ([(0.1, 0.2, 0.5, 0.6)], None),  # fractions of the image
        ([(-5, 0, 20, 20)], None),
    ],
)
def test_the_reading_counts_that_keeps_all_boxes_inside(boxes: Any, reading: str | None) -> None:
    quads = [(box, (100, 100), f"part, row {at}") for at, box in enumerate(boxes)]
    if reading is not None:
        assert reading_of("MIA", quads) == reading
        return
    says = r"row .*, column meta_bbox: .* of MIA . do not fit as xywh"
    with pytest.raises(TableError, match=says):
        reading_of("MIA", quads)


def test_parts_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10, 9):
        write_part(tmp_path, number, [row("MIA", number, Layout.LISTS)], Layout.LISTS)
    parts = release.parts_in(tmp_path)
    assert [path.name[-12:-8] for path in parts] == ["0009", "0010"]
    assert len(release.read_release(parts, tmp_path)[0]) == 2
    assert release.parts_in(parts[0]) == parts[:1]
    write_part(tmp_path, 12, [row("MIA", 0, Layout.LISTS)], Layout.LISTS)
    with pytest.raises(TableError, match=r"part 0011 of .* is missing"):
        release.parts_in(tmp_path)


def test_files_give_the_stages_that_are_there(
    lmu: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["data", "get", "VPBench", "--from"]
    part = write_part(tmp_path / "both", 0, rows(Layout.LISTS), Layout.LISTS)
    assert cli.main([*words, str(part)]) == 0
    output = capsys.readouterr().out
    assert "VPBench_Stage2              18 queries" in output
    assert "6 questions without an answer: asked, not scored" in output
    assert "VPBench_Stage1" not in output
    write_tsv(part.parent / "vp_bench_stage_1.tsv")
    assert cli.main([*words, str(part.parent)]) == 0
    output = capsys.readouterr().out
    assert "VPBench_Stage1" in output
    assert "VPBench_Stage2" in output
    (tmp_path / "none").mkdir()
    assert cli.main([*words, str(tmp_path / "none")]) == 2
