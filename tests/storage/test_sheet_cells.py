"""A sheet changes what its cells do not hold; the journal beside it has the replies whole."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vlmeval_findit.protocol import Identity, IdentityError, Settings
from vlmeval_findit.scoring import score_file
from vlmeval_findit.storage import (
    XLSX_CELL_LIMIT,
    RunFiles,
    read_predictions,
    write_identity,
    write_rows,
)

MODEL, DATA = "Mine", "FindIt_Demo_xyxy_json"
RIGHT = '[{"bbox": [0, 0, 1, 1]}]'


def write(folder: Path, replies: dict[int, str]) -> Path:
    path = folder / f"{MODEL}_{DATA}.xlsx"
    write_rows(path, lambda: [{"index": i, "prediction": text} for i, text in replies.items()])
    return path


def journal(path: Path, records: list[dict[str, Any]]) -> None:
    lines = [
        json.dumps({"key": "k", "model": MODEL, "dataset": DATA, "error": None, **record})
        for record in records
    ]
    path.write_text("\n".join([*lines, "{torn"]))


LONG = [
    "x" * (XLSX_CELL_LIMIT + 1),
    RIGHT + " " * XLSX_CELL_LIMIT + "that is all",
    "\x00" * 6000,
    "a\x0bb",
    "é" * 50_000,
    "🚀" * 40_000,
]


@pytest.mark.parametrize("at", [Path(), Path("T20260101-000000")])
def test_replies_are_whole_as_the_journal_has_them(at: Path, tmp_path: Path) -> None:
    """Beside the sheet, or in the model's folder above upstream's folder of a run."""
    replies = dict(enumerate([*LONG, RIGHT, ""]))
    (tmp_path / at).mkdir(exist_ok=True)
    path = write(tmp_path / at, replies)
    assert {each.index: each.text for each in read_predictions(path)} != replies
    beside = RunFiles(tmp_path / path.name).calls
    journal(beside, [{"row": index, "reply": text} for index, text in replies.items()])
    assert {each.index: each.text for each in read_predictions(path)} == replies


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(0, 3))
def test_any_reply_comes_back(tmp_path: Path, text: str, times: int) -> None:
    whole = text + "y" * (XLSX_CELL_LIMIT - 1) * times
    path = write(tmp_path, {0: whole})
    journal(RunFiles(path).calls, [{"row": 0, "reply": whole}])
    (reply,) = read_predictions(path)
    assert _lines(reply.text) == _lines(whole)


def _lines(text: str) -> list[str]:
    """Split at line ends: XML has one, and openpyxl without lxml writes a lone CR as it is."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


@pytest.mark.parametrize(
    "record",
    [
        {"row": 1, "reply": LONG[0]},
        {"row": 0, "reply": LONG[0], "model": "Other"},
        {"row": 0, "reply": LONG[0], "dataset": "FindIt_Demo_xywh_json"},
        {"row": 0, "reply": LONG[0], "error": "HTTP 500"},
        {"row": 0, "reply": "y" + LONG[0]},
        {"row": 0, "reply": None},
        {"row": None, "reply": LONG[0]},
    ],
)
def test_what_is_of_another_call_is_not_taken(record: dict[str, Any], tmp_path: Path) -> None:
    path = write(tmp_path, {0: LONG[0]})
    journal(RunFiles(path).calls, [record])
    (reply,) = read_predictions(path)
    assert len(reply.text) == XLSX_CELL_LIMIT


def test_a_cut_cell_is_said_aloud_when_it_is_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    replies = {7: RIGHT, 9: LONG[0], 11: LONG[4], 12: LONG[0], 13: LONG[0]}
    path = write(tmp_path, replies)
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    for says in (
        path.name,
        "column prediction of row 2 (index 9): 32,768 characters",
        "and 1 more",
    ):
        assert says in record.message
    assert record.message.endswith("type PRED_FORMAT=json")


def test_a_cut_reply_without_a_journal_needs_force_to_score(tmp_path: Path) -> None:
    path = write(tmp_path, {0: RIGHT, 3: LONG[0], 4: LONG[0]})
    with pytest.raises(IdentityError, match=r"index 3-4 is cut at 32,767 characters"):
        score_file(path, Settings(space="unit"))
    run = score_file(path, Settings(space="unit", force=True))
    assert "column prediction of index 3-4 is cut" in run.forced[0]
    journal(RunFiles(path).calls, [{"row": row, "reply": LONG[0]} for row in (3, 4)])
    assert score_file(path, Settings(space="unit")).forced == ()


def test_cut_replies_are_listed_with_all_other_conflicts(tmp_path: Path) -> None:
    path = write(tmp_path, {0: RIGHT, 3: LONG[0]})
    write_identity(RunFiles(path).identity, Identity("Another", DATA))
    with pytest.raises(IdentityError) as refused:
        score_file(path, Settings(space="unit"))
    message = str(refused.value)
    assert f"model: recorded Another, now {MODEL}" in message
    assert "column prediction of index 3 is cut at 32,767 characters" in message
    assert "PRED_FORMAT=json" in message


def test_a_reply_of_exactly_the_limit_is_whole(tmp_path: Path) -> None:
    path = write(tmp_path, {0: "x" * XLSX_CELL_LIMIT})
    with pytest.raises(IdentityError, match="index 0 is cut"):
        score_file(path, Settings(space="unit"))
    journal(RunFiles(path).calls, [{"row": 0, "reply": "x" * XLSX_CELL_LIMIT}])
    assert score_file(path, Settings(space="unit")).forced == ()


def test_a_record_that_no_cell_holds_is_left_out(tmp_path: Path) -> None:
    record = json.dumps({"findit": {"images": [{"sent": [1, 2]}] * 4000}})
    path = tmp_path / f"{MODEL}_{DATA}.xlsx"
    write_rows(path, lambda: [{"index": 0, "prediction": RIGHT, "extra_records": record}])
    (reply,) = read_predictions(path)
    assert reply.text == RIGHT
