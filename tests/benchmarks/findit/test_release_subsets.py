"""Rows of the release become queries, and bad ones are named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conformance.findit import subset_queries
from few_fast import every_nth_fast

from vlmeval_findit.benchmarks.findit import (
    DATASETS,
    SUBSETS,
    Dataset,
    Family,
    FindItQuery,
    Subset,
    parse,
    prepare_subset,
    query_from_row,
    read_table,
    table_called,
    tables_of,
    write_table,
)
from vlmeval_findit.boxes import Truth
from vlmeval_findit.core import file_sha256
from vlmeval_findit.data import fetched_tables
from vlmeval_findit.storage import TableError
from vlmeval_findit.sweeps import parse_sweep, search_target

PASCAL = DATASETS["Pascal"]
IMAGE_ROW = {"filename": "a.jpg", "label": "dog", "bboxes": [[1, 2, 3, 4]], "height": 80,
             "width": 100}  # fmt: skip


def test_rows_become_queries() -> None:
    truth = Truth(((1.0, 2.0, 3.0, 4.0),), (0,))
    image = FindItQuery(5, "dog", 100, 80, ("a.jpg",), truth)
    assert query_from_row(5, IMAGE_ROW, PASCAL, False) == image
    video = {
        **IMAGE_ROW,
        "bboxes": [[{"label": "dog", "bbox": [1, 2, 3, 4]}], []],
        "frame_paths": ["a.jpg", "b.jpg"],
        "frame_indices": [0, 9],
        "caption": "A dog.",
        "support_shots": ["s.jpg"],
    }
    expected = replace(
        image,
        images=("a.jpg", "b.jpg"),
        support=("s.jpg",),
        caption="A dog.",
        frame_indices=(0, 9),
        truth=replace(truth, labels=("dog",)),
        cluster="",
    )
    assert query_from_row(5, video, DATASETS["iGround"], True) == expected


@pytest.mark.parametrize(
    ("dataset", "filename", "path"),
    [
        ("Pascal", "007.jpg", "007.jpg"),
        ("OpenImages", "abc", "abc.jpg"),
        ("RefCOCO", "COCO_train2014_000000047093_2.jpg", "COCO_train2014_000000047093.jpg"),
        ("RefL4", "COCO_train2014_000000047093.jpg", "COCO_train2014_000000047093.jpg"),
        ("HRInsDet_hard", "office_001/rgb_007.jpg", "Scenes/hard/office_001/rgb_007.jpg"),
    ],
)
def test_names_become_paths_in_the_image_folder(dataset: str, filename: str, path: str) -> None:
    row = {**IMAGE_ROW, "filename": filename}
    assert query_from_row(0, row, DATASETS[dataset], False).images == (path,)


def test_preparing_a_subset(tmp_path: Path) -> None:
    boxes = [[[1, 2, 3, 4]], [[3, 4, 1, 2], [0, 0, 1, 1]], []]
    path = tmp_path / "made_up.parquet"
    out = tmp_path / "out"
    pq.write_table(pa.Table.from_pylist([{**IMAGE_ROW, "bboxes": each} for each in boxes]), path)
    dataset = replace(PASCAL, name="MadeUp", subset=Subset("made_up", "0" * 64))
    with pytest.raises(TableError, match=r"made_up\.parquet.*release's file has 0{64}"):
        prepare_subset(tmp_path, out, dataset, False)
    assert not out.exists()
    dataset = replace(dataset, subset=Subset("made_up", file_sha256(path)))
    built = prepare_subset(tmp_path, out, dataset, False)
    assert (built.path.stem, built.queries, built.boxes) == ("MadeUp", 3, 3)
    assert built.notes[0].startswith("1 boxes swapped corners, left as they are")
    queries = read_table(built.path)
    assert [q.index for q in queries] == [0, 1, 2]
    assert queries[1].truth.boxes[0] == (3, 4, 1, 2)
    meta = json.loads((out / "MadeUp.meta.json").read_text())
    assert meta["source"] == "made_up.parquet"
    assert meta["odd_boxes"] == [{"index": 1, "what": "swapped corners", "box": [3, 4, 1, 2]}]


@pytest.mark.shared
@pytest.mark.parametrize(
    ("dataset", "multilabel"),
    every_nth_fast(list(tables_of(None)), 5),
    ids=lambda value: value.name if isinstance(value, Dataset) else "labels" * value,
)
def test_a_subset_is_read_as_it_was_written(
    subsets: Path, tmp_path: Path, dataset: Dataset, multilabel: bool
) -> None:
    known = dataset.subset_for(multilabel)
    assert known is not None
    queries = subset_queries(subsets / f"{known.file}.parquet")
    assert read_table(write_table(tmp_path, "T", queries, {}).path) == queries
    for q in queries:
        assert 1 <= len(q.images) <= dataset.frames
        assert all(0 <= frame < len(q.images) for frame in q.truth.frames)
        assert list(q.truth.frames) == sorted(q.truth.frames)
        assert len(q.truth.labels) == (len(q.truth.boxes) if multilabel else 0)
        assert bool(q.caption) == dataset.has_caption


@pytest.mark.parametrize("file", SUBSETS)
def test_every_command_knows_the_release_s_file_names(file: str) -> None:
    row, multilabel = SUBSETS[file]
    table = row.table_name(multilabel)
    for name in (file, file.upper(), table, table.lower(), f"FindIt_{table}_xyxy_json"):
        assert table_called(name) == table
        (named,) = fetched_tables([name])[:1]
        assert named.name == table
        assert named.files[0].name == f"{file}.parquet"
    for name in (file, table.lower()):
        assert search_target(name).name == table
        assert [each.name for each in parse_sweep(sweep_of(name)).tables] == [table]


def sweep_of(name: str) -> str:
    return f"models: FullImage\ndatasets: {name}"


@pytest.mark.parametrize("family", Family)
def test_a_group_of_the_release_names_its_datasets(family: Family) -> None:
    meant = {row.name for row, _ in SUBSETS.values() if row.family is family}
    group = f"FindIt_{family.value}_xyxy"
    for refused in (
        lambda: fetched_tables([family.value]),
        lambda: fetched_tables([group]),
        lambda: parse(group),
        lambda: parse(f"{group}_json"),
        lambda: search_target(group),
    ):
        with pytest.raises(ValueError, match="a group of the release: name its dataset") as error:
            refused()
        assert meant <= set(str(error.value).replace(",", " ").split())


def test_a_dataset_that_is_named_twice_is_got_once() -> None:
    names = ["pascal", "Pascal", "Pascal_multilabel", "refl4full_TEST", "RefL4Full_test"]
    tables = [table.name for table in fetched_tables(names)]
    assert tables == ["Pascal", "Pascal_multilabel", "RefL4Full_test"]
