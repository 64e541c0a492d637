"""Annotation tables: what is refused, and that nothing is lost on the way."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import MISSING, replace
from pathlib import Path
from typing import Any

import pytest
from edited_tables import edit_cells
from hypothesis import example, given
from hypothesis import strategies as st

from vlmeval_findit.benchmarks.findit import (
    FindItQuery,
    kept_frames,
    odd_boxes,
    read_table,
    thinned_query,
    write_table,
)
from vlmeval_findit.boxes import Truth
from vlmeval_findit.core import file_sha256
from vlmeval_findit.storage import TableError, meta_path, table_files


def query(index: int = 0, **changes: Any) -> FindItQuery:
    built = FindItQuery(index, "dog", 100, 80, ("a.jpg",), Truth(((1.0, 2.0, 3.5, 4.0),), (0,)))
    return replace(built, **changes)


VIDEO = query(
    1,
    label="dog, cat",
    images=("a.jpg", "b.jpg", "c.jpg"),
    support=("shot 1.jpg", "shot 2.jpg"),
    caption='She said: "look,\ta dog"\nand a cat — 猫',
    frame_indices=(0, 15, 31),
    truth=Truth(
        ((0.0, 0.0, 1.0, 1.0), (0.1, 0.2, 0.3, 0.4), (5.0, 6.0, 7.0, 8.0)),
        (0, 0, 2),
        ("dog", "cat", "dog"),
    ),
)


def test_thinning_takes_paths_indices_and_boxes_alike() -> None:
    assert kept_frames(8, 3) == [0, 3, 7]
    assert kept_frames(64, 10) == [0, 7, 14, 21, 28, 35, 42, 49, 56, 63]
    assert thinned_query(VIDEO, 2) == replace(
        VIDEO,
        images=("a.jpg", "c.jpg"),
        frame_indices=(0, 31),
        truth=Truth(VIDEO.truth.boxes, (0, 0, 1), VIDEO.truth.labels),
    )
    assert thinned_query(VIDEO, 1).truth == Truth(VIDEO.truth.boxes[:2], (0, 0), ("dog", "cat"))
    assert thinned_query(VIDEO, 3) is thinned_query(VIDEO, 64) is VIDEO


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    queries = [
        query(7),
        VIDEO,
        query(2, truth=Truth((), ())),
        query(3, label="1e5", caption="", width=8192),
        query(4, label=' "quoted"\n', truth=Truth(((0.1 + 0.2, 0.0, 1e-7, 3.0),), (0,))),
    ]
    written = write_table(tmp_path / "new", "T", queries, {"source": "invented"})
    assert read_table(written.path) == queries
    assert (written.queries, written.boxes) == (5, 6)
    meta = json.loads(meta_path(written.path).read_text())
    assert meta["table_sha256"] == file_sha256(written.path)
    assert (meta["source"], meta["queries"], meta["boxes"]) == ("invented", 5, 6)


@pytest.mark.parametrize(
    ("box", "what"),
    [
        ((10, 10, 20, 20), []),
        ((-0.005, 0, 100.005, 80), []),
        ((20, 10, 10, 20), ["swapped corners"]),
        ((10, 10, 10, 20), ["no area"]),
        ((-1, 0, 10, 10), ["out of the image"]),
        ((0, 0, 100, 80.5), ["out of the image"]),
        ((101, 0, 90, 10), ["swapped corners", "out of the image"]),
    ],
    ids=str,
)
def test_oddities_are_reported(box: Any, what: list[str]) -> None:
    result = odd_boxes([query(5, truth=Truth((box,), (0,)))])
    assert [each["what"] for each in result] == what


def test_oddities_name_their_queries_and_boxes() -> None:
    good, flat, outside = (1.0, 2.0, 3.0, 4.0), (5.0, 6.0, 5.0, 8.0), (90.0, 1.0, 101.0, 2.0)
    truths = [Truth((), ()), Truth((good, flat), (0, 0)), Truth((outside,), (0,))]
    result = odd_boxes([query(at, truth=truth) for at, truth in enumerate(truths)])
    assert result == [
        {"index": 1, "what": "no area", "box": flat},
        {"index": 2, "what": "out of the image", "box": outside},
    ]
    assert odd_boxes([]) == []


_ONES = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
_VALUES = st.recursive(
    _ONES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner)
)


@given(_VALUES)
@example(
    [
        1e-05,
        6.103515625e-05,
        -9.9e-5,
        0.0001,
        10.00001,
        1e16,
        1e22,
        -0.0,
        float("nan"),
        float("inf"),
    ]
)
@example([2**63, 2**64, -(2**70), "1e5", "null", "\ud800", '\x00\x1f\x7f\u2028/"\\'])
def test_cells_are_as_json_writes_them(value: Any) -> None:
    expected = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert table_files.json_cell(value) == expected


@given(st.lists(_VALUES, max_size=4))
@example([1, 2**63, 3])
@example([[0.5], [float("nan")], [1e16], ["a\nb\u2028c"]])
def test_cells_of_a_column_are_those_of_each_value(values: list[Any]) -> None:
    column = table_files._Column("any", MISSING, is_text=False, read=str)
    expected = [json.dumps(value, ensure_ascii=False, separators=(",", ":")) for value in values]
    assert table_files._cells(column, values) == expected


@given(st.lists(st.text(alphabet='a "\t\n\r,;\u2028'), min_size=1))
def test_cells_are_quoted_as_csv_does(cells: list[str]) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter="\t", lineterminator="\r\n")
    writer.writerows([cell, "second"] for cell in cells)
    lines = [f"{cell}\tsecond\r\n" for cell in table_files._quoted(cells)]
    assert "".join(lines) == text.getvalue()


def test_every_row_of_a_long_table_is_written(tmp_path: Path) -> None:
    queries = [query(at, label=f"thing {at}") for at in range(2 * table_files.AT_ONCE + 1)]
    assert read_table(write_table(tmp_path, "T", queries, {}).path) == queries


def test_an_empty_or_missing_cell_has_the_default(tmp_path: Path) -> None:
    path = tmp_path / "T.tsv"
    path.write_text(
        "image_path\tboxes\theight\twidth\tindex\tlabel\ttags\n"
        '["a.jpg"]\t[[[1,2,3.5,4]]]\t80\t100\t0\tdog\t\n'
    )
    assert read_table(path) == [query()]
    assert read_table(path)[0].cluster == "a.jpg"


def test_thinned_frames_stay_one_cluster(tmp_path: Path) -> None:
    frames = tuple(f"clip/{n:03}.png" for n in range(3))
    clip = query(images=frames, truth=Truth((), ()), cluster="")
    (read,) = read_table(write_table(tmp_path, "T", [clip], {}).path)
    assert thinned_query(read, 1).cluster == "clip"


BELOW = "images lie below their dataset's folder"


@pytest.mark.parametrize(
    ("column", "cell", "why"),
    [
        *((column, cell, "") for column, cells in {
            "index": ("one", ""),
            "width": ("wide",),
            "boxes": ("", "[[[1,2,3,4]]", "[[[1,2,3]]]", "[[[NaN,2,3,4]]]", "[1,2,3,4]", "[]"),
            "box_labels": ('[["dog","cat"]]', "[[7]]"),
            "image_path": ("a.jpg", "[7]"),
            "frame_indices": ("[1.5]",),
        }.items() for cell in cells),
        ("sightings", '[{"image": "../a.jpg", "box": [1, 2, 3, 4]}]', "'../a.jpg' climbs out of"),
        ("sightings", '[{"image": "a.jpg"}]', "[0][box] is missing"),
        ("boxes", "[[[1,2,3,null]]]", "[0][0][3] should be a valid number: None"),
        ("boxes", "[[],[]]", "2 lists for 1 images"),
        ("box_labels", "[[]]", "should have an entry for every box"),
        ("tags", '{"a": " "}', "is empty"),
        ("label", "", "is empty"),
        ("index", "-1", "-1 is out of range: rows are numbered from 0"),
        ("image_path", "", "is empty"),
        ("cluster", " ", "is empty: it says what is not independent"),
        ("width", "0", "0 is not a size in pixels"),
        # An image lies below its folder.
        ("support_shots", '["../x"]', f"'../x' climbs out of its folder: {BELOW}"),
        ("support_shots", '["/etc/x"]', f"'/etc/x' has an absolute path: {BELOW}"),
        ("support_shots", '["x\\u0000"]', f"'x\\x00' holds a control character: {BELOW}"),
        ("support_shots", '["a.jpg", "."]', f"'.' names no file: {BELOW}"),
    ],
)  # fmt: skip
def test_a_bad_cell_is_named_by_file_line_and_column(
    tmp_path: Path, column: str, cell: str, why: str
) -> None:
    path = edit_cells(write_table(tmp_path, "T", [query()], {}).path, **{column: cell})
    with pytest.raises(TableError) as error:
        read_table(path)
    assert str(error.value).startswith(f"{path}, line 2, column {column}: {why}")


def test_a_table_that_was_edited_is_refused(tmp_path: Path) -> None:
    path = write_table(tmp_path, "Pascal", [query(1), query(2)], {}).path
    recorded, whole = file_sha256(path), path.read_text()
    path.write_text(whole.replace("[1.0,2.0,3.5,4.0]", "[1.0,2.0,3.5,4.1]", 1))
    with pytest.raises(TableError) as error:
        read_table(path)
    assert str(error.value) == (
        f"{path}: SHA-256 is {file_sha256(path)}, but Pascal.meta.json records {recorded}: the "
        "table was changed after it was made. Make it again with: python run_findit.py data get "
        "Pascal [--from DIR]"
    )
    meta_path(path).unlink()
    for text, why in (
        (whole.replace("\tboxes\t", "\tboxen\t"), r": columns are .*\(missing: boxes\); make it"),
        (whole + "5\n", ", line 4: 1 cell for 15 columns: "),
        (whole.replace("\n2\t", "\n1\t"), ", line 3: duplicate index 1"),
    ):
        path.write_text(text)
        with pytest.raises(TableError, match=rf"Pascal\.tsv{why}"):
            read_table(path)


def test_a_kill_between_the_two_files_leaves_no_contradiction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_table(tmp_path, "T", [query()], {}).path

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(table_files.json, "dump", killed)
    with pytest.raises(KeyboardInterrupt):
        write_table(tmp_path, "T", [query(3)], {})
    assert read_table(path) == [query(3)]
