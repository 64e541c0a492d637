"""Ref-L4 as a benchmark: names, tables, and metrics as ratios of sums."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from refl4_stand_in import VAL, write_parquet

from vlmeval_findit import benchmarks
from vlmeval_findit.benchmarks.refl4 import (
    BENCHMARK,
    RefL4Split,
    RefusedError,
    annotation,
    load_dataset,
    prepare,
    read_table,
)
from vlmeval_findit.protocol import (
    FAILED_ANSWER,
    DatasetNameError,
    Reply,
    Role,
    ScoredRow,
    Settings,
    sum_rows,
)

NAME = "FindIt_RefL4Full_val_xyxy_json"


def test_a_name_is_parsed_by_the_longer_prefix() -> None:
    variant = benchmarks.parse("FindIt_RefL4Full_all_cxcywh_json_bbox_cx-formula")
    assert benchmarks.benchmark_of(variant.name) is BENCHMARK
    assert variant.name == "FindIt_RefL4Full_all_cxcywh_json_cx-formula"
    assert (variant.board_dataset, variant.format) == ("RefL4Full_all", "cxcywh_json_cx-formula")
    assert (variant.table, variant.images) == ("RefL4Full_all", "RefL4")
    assert benchmarks.benchmark_of("FindIt_RefL4_xyxy_json").name == "FindIt"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("vall_xyxy_json", "unknown split 'vall': did you mean val?"),
        ("xyxy_json", "unknown split 'xyxy' (there are: val, test, all)"),
        ("val_xyyx_json", "unknown representation 'xyyx': did you mean xyxy?"),
        ("val", "the representation is missing"),
        ("val_xyxy_json_", "does not end in '_'"),
        ("val_multilabel_xyxy_json", "RefL4Full_val has no multi-label queries"),
        ("val_point_json", "is matched by box overlap, point by"),
    ],
)
def test_an_error_names_what_was_typed_and_the_nearest(name: str, says: str) -> None:
    with pytest.raises(DatasetNameError) as refused:
        benchmarks.parse(f"FindIt_RefL4Full_{name}")
    assert str(refused.value).startswith(f"FindIt_RefL4Full_{name}: ")
    assert says in str(refused.value)


# --- tables ---------------------------------------------------------------------------------------


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the three tables of the stand-in, where runs read them."""
    parquet = write_parquet(tmp_path / "parquet")
    for split in RefL4Split:
        prepare(parquet, split, tmp_path / "tables", force=True)
    monkeypatch.setenv("FINDIT_TABLES", str(tmp_path / "tables"))
    return tmp_path / "tables"


def test_a_table_holds_every_column_as_it_was(tables: Path) -> None:
    val, test, whole = (
        read_table(tables / f"RefL4Full_{split}.tsv") for split in ("val", "test", "all")
    )
    assert [row.annotation for row in val] == [annotation(row, "") for row in VAL]
    assert whole == [*val, *test]
    first, row = val[0], VAL[0]
    assert (first.index, first.label, *first.images) == (
        row["id"],
        row["caption"],
        row["file_name"],
    )
    assert first.truth.boxes == (tuple(corners_of(row)),)


@pytest.mark.parametrize("column", ["caption", "file_name"])
def test_a_row_that_nobody_could_be_asked_is_refused(column: str, tmp_path: Path) -> None:
    write_parquet(tmp_path, val=[{**VAL[0], column: None}, VAL[1]])
    with pytest.raises(RefusedError, match=rf"ref-l4-val.parquet, .*{column}: is missing"):
        prepare(tmp_path, RefL4Split.VAL, tmp_path, force=True)
    assert not (tmp_path / "RefL4Full_val.tsv").exists()


# --- scoring replies ------------------------------------------------------------------------------

WRONG = [0.0, 0.0, 1.0, 1.0]


def reply_with(box: list[float], *more: list[float]) -> str:
    return json.dumps([{"bbox": each} for each in (box, *more)])


def corners_of(row: dict[str, Any]) -> list[float]:
    x, y, w, h = row["bbox"]
    return [x, y, x + w, y + h]


def scored(replies: list[str]) -> tuple[Any, tuple[ScoredRow, ...]]:
    dataset = load_dataset(NAME)
    given_ = [Reply(row["id"], text) for row, text in zip(VAL, replies, strict=False)]
    built = BENCHMARK.score_batch("anybody", dataset, given_, Settings(space="pixels"), None)
    assert [space["kind"] for space in built.spaces] == ["pixels"]
    return dataset, built.rows


@pytest.mark.usefixtures("tables")
def test_the_lenient_metric_uses_the_first_lenient_box() -> None:
    _, result = scored(
        [
            f"So: {corners_of(VAL[0])}",
            reply_with(corners_of(VAL[1])),
            f"So: {WRONG}",
            # It has a box already, and the first box counts.
            f"{reply_with(WRONG)[:-1]}, {{}}]",
        ]
    )
    assert [row.sums["hits_0.5"] for row in result] == [0, 1, 0, 0]
    assert [row.sums.get("lenient_hits_0.5") for row in result] == [1, None, None, None]
    recoverable = [row.details.get("lenient", {}).get("recoverable") for row in result]
    assert recoverable == [[0], None, [], None]
    total = sum_rows(result)
    assert BENCHMARK.metrics[0].value(total) == 25.0
    assert BENCHMARK.lenient is not None
    assert BENCHMARK.lenient.value(total) == 50.0


@pytest.mark.usefixtures("tables")
def test_the_first_box_counts_and_none_is_a_miss() -> None:
    right = corners_of(VAL[0])
    dataset, result = scored(
        [
            reply_with(right, WRONG, right),
            reply_with(WRONG, corners_of(VAL[1])),
            "[]",
            "I cannot see it",
            reply_with([1e300, 0, 1e308, 5]),
            '[{"bbox": [NaN, 1, 2, 3]}]',
            FAILED_ANSWER,
        ]
    )
    assert [row.sums["hits_0.5"] for row in result] == [1, 0, 0, 0, 0, 0, 0]
    assert [row.sums["asked"] for row in result] == [1, 1, 1, 1, 1, 1, 0]
    assert [row.sums["boxless"] for row in result] == [0, 0, 1, 1, 0, 1, 0]
    assert [row.sums["adherent"] for row in result] == [1, 1, 1, 0, 1, 0, 0]
    assert [row.failed for row in result] == [False] * 6 + [True]
    assert [row.details["hits"] for row in result] == [[True]] + [[False]] * 6
    assert result[0].sums["hits_0.95"] == 1
    values = {metric.name: metric.value(sum_rows(result)) for metric in BENCHMARK.metrics}
    assert values["acc_0.5"] == pytest.approx(100 / 6)
    assert values["Adherence"] == pytest.approx(100 * 4 / 6)
    assert BENCHMARK.headline_counting_failures.value(sum_rows(result)) == pytest.approx(100 / 7)
    for row in result:
        json.dumps(row.details, allow_nan=False)

    boxes = BENCHMARK.draw(dataset, result[0]).images[0].boxes
    assert [box.role for box in boxes] == [Role.TRUTH, Role.HIT, Role.MISS, Role.MISS]
    assert boxes[0].box == tuple(right)
    assert BENCHMARK.query_score(result[0]) == 100.0
    assert BENCHMARK.curve(dataset, result) is None
