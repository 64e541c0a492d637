"""Prediction files of VLMEvalKit: what is a reply, what is none, and whose file it is."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from vlmeval_findit.benchmarks.findit.reply_scoring import read_reply
from vlmeval_findit.boxes.box_records import FormatFailure
from vlmeval_findit.boxes.reading import read, reader
from vlmeval_findit.boxes.representation import ReplyFormat
from vlmeval_findit.core.predictions import PredictionError, check_model_name, read_predictions
from vlmeval_findit.core.replies import FAILED, Recorded, Reply, recorded
from vlmeval_findit.runs.prediction_names import parse_prediction_name

Row = dict[str, Any]


def json_file(path: Path, rows: Sequence[Row]) -> None:
    path.write_text(json.dumps(list(rows)), encoding="utf-8")


def tsv_file(path: Path, rows: Sequence[Row]) -> None:
    """As VLMEvalKit writes it."""
    pd.DataFrame(rows).to_csv(path, sep="\t", index=False, quoting=csv.QUOTE_ALL)


def xlsx_file(path: Path, rows: Sequence[Row]) -> None:
    pd.DataFrame(rows).to_excel(path, index=False, engine="openpyxl")


WRITERS: dict[str, Callable[[Path, Sequence[Row]], None]] = {
    "json": json_file,
    "tsv": tsv_file,
    "xlsx": xlsx_file,
}
formats = pytest.mark.parametrize("suffix", WRITERS)


def file(folder: Path, suffix: str, rows: Sequence[Row]) -> Path:
    path = folder / f"m_FindIt_SVG_xyxy_text.{suffix}"
    WRITERS[suffix](path, rows)
    return path


TEXTS = [
    "[1, 2, 3, 4]",
    '[{"bbox": [1, 2, 3, 4]}]',
    "line\nline\n\nline",
    "a\ttab and \"quotes\" and 'more'",
    "猫 🐈 é",
    *("None", "NA", "", "007", "1.0"),
    "x" * 20_000,
]


@formats
@pytest.mark.parametrize("text", TEXTS, ids=lambda text: repr(text)[:20])
def test_a_reply_is_read_as_it_stands(tmp_path: Path, suffix: str, text: str) -> None:
    rows = [{"index": 3, "question": "?", "prediction": text}, {"index": 1, "prediction": "[]"}]
    assert read_predictions(file(tmp_path, suffix, rows)) == [Reply(3, text), Reply(1, "[]")]


@formats
def test_records_come_with_their_reply(tmp_path: Path, suffix: str) -> None:
    record = Recorded(
        space={"kind": "pixels", "scene_max_size": 1824},
        finish_reason="stop",
        images=({"original": [10, 20], "sent": [5, 10]},),
    )
    rows = [
        {"index": 0, "prediction": "[]", "extra_records": record.as_json()},
        {"index": 1, "prediction": "[]", "extra_records": "{}"},
    ]
    replies = read_predictions(file(tmp_path, suffix, rows))
    assert [reply.recorded for reply in replies] == [record, Recorded()]


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        (FAILED, True),
        (FAILED + " via API.", True),
        ("", False),
        (FAILED + ": <class 'RuntimeError'> CUDA out of memory", True),
        (FAILED + " via API. ReadTimeout: no answer", True),
        (FAILED + " via API. is on the button: [1, 2, 3, 4]", False),
        ("I failed to obtain answer", False),
        ("The dialog says: " + FAILED + " via API.", False),
        ("[]", False),
    ],
)
def test_a_failed_call_is_no_reply(text: str, failed: bool) -> None:
    reply = Reply(0, text)
    assert reply.failed is failed
    reason = read_reply(reply, reader(ReplyFormat("text", "xyxy"))).reason
    assert (reason is FormatFailure.FAILED_CALL) is failed


@pytest.mark.parametrize(
    ("text", "record", "failed"),
    [
        (FAILED, Recorded(call={"error": "429"}), True),
        ("half a reply", Recorded(call={"error": "cut off"}), True),
        ("half a reply", Recorded(call={"error": "cut off"}, finish_reason="stop"), True),
        (FAILED, Recorded(finish_reason="stop"), False),
        (FAILED, Recorded(tokens={"reply": 7}), False),
        (FAILED, Recorded(call={"id": "a", "error": ""}), True),
        ("[]", Recorded(call={"id": "a"}), False),
    ],
)
def test_the_record_decides_whether_a_call_failed(
    text: str, record: Recorded, failed: bool
) -> None:
    assert Reply(0, text, record).failed is failed


@pytest.mark.parametrize(
    ("text", "finish_reason", "reason"),
    [
        ('[{"bbox": [1, 2, 3, 4]}] and', "length", FormatFailure.TRUNCATED),
        ('[{"bbox": [1, 2, 3, 4]}] and', "stop", FormatFailure.NOT_JSON),
        ('[{"bbox": [1, 2, 3, 4]}] and', "", FormatFailure.NOT_JSON),
        ('[{"bbox": [1, 2', "", FormatFailure.TRUNCATED),
        ("Let me think", "length", FormatFailure.TRUNCATED),
        ('[{"bbox": [1, 2, 3, 4]}]', "length", None),
        ('[{"box": [1, 2, 3, 4]}]', "length", FormatFailure.WRONG_KEY),
    ],
)
def test_a_truncated_reply_has_its_reason(
    text: str, finish_reason: str, reason: FormatFailure | None
) -> None:
    form = ReplyFormat("json", "xyxy")
    result = read_reply(Reply(0, text, Recorded(finish_reason=finish_reason)), reader(form))
    assert result.reason is reason
    assert result.boxes == read(text, form).boxes


# --- files that cannot be read --------------------------------------------------------------------


def test_an_index_stands_once(tmp_path: Path) -> None:
    path = file(tmp_path, "json", [{"index": 4, "prediction": "a"}] * 2)
    with pytest.raises(PredictionError, match=r"\.json, row 2: index 4 stands twice"):
        read_predictions(path)


@pytest.mark.parametrize("column", ["index", "prediction"])
def test_a_missing_column_is_named(tmp_path: Path, column: str) -> None:
    row = {"index": 4, "prediction": "a", "answer": "b"}
    del row[column]
    path = file(tmp_path, "tsv", [row])
    with pytest.raises(PredictionError, match=f"row 1: no column '{column}', only") as error:
        read_predictions(path)
    assert "'answer'" in str(error.value)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "not JSON"),
        ("[1]", "should be a list of objects"),
        ('[{"index": -1, "prediction": "a"}]', "row 1, column index: .* they begin at 0"),
    ],
)  # fmt: skip
def test_bad_json_files(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "p.json"
    path.write_text(content)
    with pytest.raises(PredictionError, match=says) as error:
        read_predictions(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("answer", "index"),
    [("0", 0), ("1.0", 1), ('"1"', 1), ("1.5", None), ("true", None),
     ('"a"', None), ("null", None)],
)  # fmt: skip
def test_what_is_an_index(tmp_path: Path, answer: str, index: int | None) -> None:
    path = tmp_path / "p.json"
    path.write_text(f'[{{"index": {answer}, "prediction": "a"}}]')
    if index is not None:
        assert [reply.index for reply in read_predictions(path)] == [index]
        return
    with pytest.raises(PredictionError) as error:
        read_predictions(path)
    assert str(error.value).startswith(f"{path}, row 1, column index: ")
    assert str(error.value).endswith(" is not a whole number")


@pytest.mark.parametrize(
    ("answer", "text"),
    [("null", ""), ("NaN", ""), ("[1, 2.5]", "[1, 2.5]"), ('[{"bbox": [1]}]', '[{"bbox": [1]}]'),
     ("7", "7"), ('"é"', "é"), ('["é"]', '["é"]')],
)  # fmt: skip
def test_a_reply_that_is_not_text(tmp_path: Path, answer: str, text: str) -> None:
    path = tmp_path / "p.json"
    path.write_text(f'[{{"index": 0, "prediction": {answer}}}]', encoding="utf-8")
    assert [reply.text for reply in read_predictions(path)] == [text]


@pytest.mark.parametrize("name", ["p.csv", "p"])
def test_other_formats_are_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(PredictionError, match=r"there are: \.json, \.tsv, \.xlsx"):
        read_predictions(tmp_path / name)


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "model", "dataset"),
    [
        ("my_own_model_v2_FindIt_SVG_xyxy_text.xlsx", "my_own_model_v2", "FindIt_SVG_xyxy_text"),
        ("a_FindIt_b_FindIt_SVG_xyxy_text.json", "a_FindIt_b", "FindIt_SVG_xyxy_text"),
        ("m_FindIt_refcoco_testA_refexp_json_xyxy.json", "m",
         "FindIt_refcoco_testA_refexp_json_xyxy"),
        # A slash in a model's name makes a folder.
        ("org/model_FindIt_SVG_xyxy_text.json", "model", "FindIt_SVG_xyxy_text"),
    ],
)  # fmt: skip
def test_model_and_dataset_are_in_the_name(name: str, model: str, dataset: str) -> None:
    assert parse_prediction_name(Path(name)) == (model, dataset)


@pytest.mark.parametrize(
    "name",
    [
        "FindIt_SVG_xyxy_text.json", "_FindIt_SVG_xyxy_text.json", "m_FindIt_SVG_xyxy_txt.json",
        "m_MMBench.json", "m_FindIt_SVG_xyxy_text_score.json", "predictions.json",
    ],
)  # fmt: skip
def test_a_name_without_a_dataset(name: str) -> None:
    with pytest.raises(PredictionError, match=r"is <model>_FindIt_….json or .* say --data"):
        parse_prediction_name(Path(name))


@pytest.mark.parametrize("name", ["", "..", "../x", "a\\b", "a\nb", "é" * 51])
def test_a_model_name_that_no_file_can_have(name: str) -> None:
    with pytest.raises(PredictionError, match="the model's name"):
        check_model_name(name)


# --- what was recorded ----------------------------------------------------------------------------

RECORD = Recorded({"kind": "unit"}, "length", ({"original": [4, 3], "sent": [4, 3]},))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (RECORD.as_json(), RECORD),
        (json.loads(RECORD.as_json()), RECORD),
        ('{"findit": {"space": {"kind": "unit"}}}', Recorded({"kind": "unit"})),
        *((value, Recorded()) for value in (None, "", "garbage", 7, {"other": 1})),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_recorded_is_read_back(value: object, expected: Recorded) -> None:
    assert recorded(value) == expected


def test_a_reply_that_looks_like_a_formula_is_a_reply(tmp_path: Path) -> None:
    """Writers of sheets turn it into a formula without a value; it is the reply."""
    from openpyxl import Workbook

    book = Workbook()
    book.active.append(["index", "prediction"])
    book.active.append([0, "=[1, 2, 3, 4]"])
    path = tmp_path / "Model_FindIt_Pascal_xyxy_text.xlsx"
    book.save(path)
    assert [reply.text for reply in read_predictions(path)] == ["=[1, 2, 3, 4]"]


def test_the_hosts_other_mode_leaves_reply_and_record_in_one_cell(tmp_path: Path) -> None:
    record = Recorded(space={"kind": "unit"}, call={"cost": 0.5})
    path = tmp_path / "M_FindIt_Pascal_xyxy_json.json"
    cell = {"prediction": "[]", "extra_records": record.as_json()}
    path.write_text(json.dumps([{"index": 4, "prediction": cell}]))
    (reply,) = read_predictions(path)
    assert (reply.index, reply.text, reply.recorded) == (4, "[]", record)
