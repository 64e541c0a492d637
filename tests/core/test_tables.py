"""Annotation tables: what is refused, and that nothing is lost on the way."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edited_tables import edit_cells
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.benchmarks.findit.annotation_tables import odd_boxes, read_table, write_table
from vlmeval_findit.benchmarks.findit.findit_datasets import DATASETS, Dataset
from vlmeval_findit.benchmarks.findit.findit_query import FindItQuery, thin, thinned
from vlmeval_findit.benchmarks.findit.release_subsets import tables_of
from vlmeval_findit.boxes.box_records import Truth
from vlmeval_findit.core.files import file_sha256
from vlmeval_findit.core.table_files import TableError, meta_path

ALL_TABLES = list(tables_of(None))
PASCAL, IGROUND = DATASETS["Pascal"], DATASETS["iGround"]


def table_id(value: object) -> str:
    return value.name if isinstance(value, Dataset) else "labels" * bool(value)


def query(index: int = 0, **changes: Any) -> FindItQuery:
    built = FindItQuery(index, "dog", 100, 80, ("a.jpg",), Truth(((1.0, 2.0, 3.5, 4.0),), (0,)))
    return dataclasses.replace(built, **changes)


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


# --- thinning -------------------------------------------------------------------------------------


@given(st.integers(1, 200), st.integers(1, 64))
def test_thinning_is_numpys_linspace(count: int, frames: int) -> None:
    stored = thin(count, frames)
    if frames >= count:
        assert stored == list(range(count))
    else:
        assert stored == np.linspace(0, count - 1, frames, dtype=int).tolist()
        assert len(stored) == frames


def test_thinning_takes_paths_indices_and_boxes_alike() -> None:
    assert thinned(VIDEO, 2) == dataclasses.replace(
        VIDEO,
        images=("a.jpg", "c.jpg"),
        frame_indices=(0, 31),
        truth=Truth(VIDEO.truth.boxes, (0, 0, 1), VIDEO.truth.labels),
    )
    assert thinned(VIDEO, 1).truth == Truth(VIDEO.truth.boxes[:2], (0, 0), ("dog", "cat"))
    assert thinned(VIDEO, 3) is VIDEO
    assert thinned(VIDEO, 64) is VIDEO


# --- writing and reading --------------------------------------------------------------------------


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
    meta = json.loads((tmp_path / "new" / "T.meta.json").read_text())
    assert meta["source"] == "invented"
    assert meta["table_sha256"] == file_sha256(written.path)
    assert (meta["queries"], meta["boxes"]) == (5, 6)


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
def test_oddities_are_reported(box: tuple[float, ...], what: list[str]) -> None:
    result = odd_boxes([query(5, truth=Truth((box,), (0,)))])  # type: ignore[arg-type]
    assert [each["what"] for each in result] == what


# --- tables that cannot be trusted ----------------------------------------------------------------


def written(folder: Path, **cells: str) -> Path:
    """A table with one row, with replaced cells."""
    return edit_cells(write_table(folder, "T", [query()], {}).path, **cells)


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
        ("box_labels", "[[]]", "not an entry for every box"),
        ("tags", '{"a=b": "c"}', "'a=b' has one of [ ] ="),
        ("label", "", "is empty"),
        ("index", "-1", "-1 is no number of a row: they begin at 0"),
        ("image_path", "", "is empty"),
        ("cluster", " ", "is empty: it says what is not independent"),
        ("width", "0", "0 is not a size in pixels"),
    ],
)  # fmt: skip
def test_a_bad_cell_is_named_by_file_line_and_column(
    tmp_path: Path, column: str, cell: str, why: str
) -> None:
    path = written(tmp_path, **{column: cell})
    with pytest.raises(TableError) as error:
        read_table(path)
    assert str(error.value).startswith(f"{path}, line 2, column {column}: {why}")


def test_a_cell_that_is_empty_or_not_there_is_the_default(tmp_path: Path) -> None:
    path = tmp_path / "T.tsv"
    path.write_text(
        "image_path\tboxes\theight\twidth\tindex\tlabel\ttags\n"
        '["a.jpg"]\t[[[1,2,3.5,4]]]\t80\t100\t0\tdog\t\n'
    )
    assert read_table(path) == [query()]
    assert read_table(path)[0].cluster == "a.jpg"


def test_frames_are_a_cluster_and_stay_a_cluster_when_they_are_thinned(tmp_path: Path) -> None:
    frames = tuple(f"clip/{n:03}.png" for n in range(3))
    clip = query(images=frames, truth=Truth((), ()), cluster="")
    (read,) = read_table(write_table(tmp_path, "T", [clip], {}).path)
    assert thinned(read, 1).cluster == "clip"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../x.png", "climbs out of its folder"),
        ("/etc/x.png", "has an absolute path"),
        ("x.png\0.jpg", "holds a control character"),
        (".", "names no file"),
    ],
    ids=repr,
)
def test_an_image_lies_below_its_folder(tmp_path: Path, name: str, why: str) -> None:
    path = written(tmp_path, support_shots=json.dumps(["a.jpg", name]))
    with pytest.raises(TableError) as error:
        read_table(path)
    assert str(error.value) == (
        f"{path}, line 2, column support_shots: {name!r} {why}: "
        "images lie below their dataset's folder"
    )


# --- the table and what is known of it ------------------------------------------------------------


def test_a_table_that_was_edited_is_refused(tmp_path: Path) -> None:
    path = write_table(tmp_path, "Pascal", [query(1), query(2)], {}).path
    recorded = file_sha256(path)
    path.write_text(path.read_text().replace("[1.0,2.0,3.5,4.0]", "[1.0,2.0,3.5,4.1]", 1))
    with pytest.raises(TableError) as error:
        read_table(path)
    assert str(error.value) == (
        f"{path}: SHA-256 is {file_sha256(path)}, but Pascal.meta.json records {recorded}: the "
        "table was changed after it was made; make it again with: python run_findit.py data get "
        "Pascal [--from DIR]"
    )


def test_a_kill_between_the_two_files_leaves_no_contradiction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vlmeval_findit.core import table_files as tables

    path = write_table(tmp_path, "T", [query()], {}).path

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tables.json, "dump", killed)
    with pytest.raises(KeyboardInterrupt):
        write_table(tmp_path, "T", [query(3)], {})
    assert read_table(path) == [query(3)]


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    path = write_table(tmp_path, "T", [query()], {}).path
    meta_path(path).unlink()
    path.write_text(path.read_text().replace("\tboxes\t", "\tboxen\t"))
    with pytest.raises(TableError, match=r"T\.tsv: columns are .*\(missing: boxes\); make it"):
        read_table(path)


def test_a_row_of_another_length_than_its_header(tmp_path: Path) -> None:
    path = write_table(tmp_path, "T", [query(1), query(2)], {}).path
    meta_path(path).unlink()
    whole = path.read_text().splitlines()
    path.write_text("\n".join([*whole, "5"]) + "\n")
    with pytest.raises(TableError, match=r"T\.tsv, line 4: 1 cells for 15 columns: "):
        read_table(path)


def test_an_index_stands_once(tmp_path: Path) -> None:
    path = write_table(tmp_path, "T", [query(3), query(3)], {}).path
    with pytest.raises(TableError, match=r"T\.tsv, line 3, column index: 3 stands twice"):
        read_table(path)
