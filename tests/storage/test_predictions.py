"""Prediction files of VLMEvalKit: what is a reply, what is none, and whose file it is."""

from __future__ import annotations

import csv
import dataclasses
import json
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pytest
from every_pair import every_pair
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import Workbook

from vlmeval_findit.benchmarks.findit import FORMAT_FAILURES
from vlmeval_findit.boxes import FormatFailure, ReplyFormat, read, reader
from vlmeval_findit.protocol import FAILED_ANSWER, Reply, ReplyRecord, read_reply
from vlmeval_findit.scoring import names_of, prediction_files
from vlmeval_findit.storage import (
    PredictionError,
    check_model_name,
    parse_record,
    read_predictions,
    record_text,
    write_rows,
)

Row = dict[str, Any]


def as_xlsx(rows: Sequence[Row]) -> bytes:
    out = BytesIO()
    pd.DataFrame(rows).to_excel(out, index=False, engine="openpyxl")
    return out.getvalue()


def as_tsv(rows: Sequence[Row]) -> bytes:
    return pd.DataFrame(rows).to_csv(sep="\t", index=False, quoting=csv.QUOTE_ALL).encode()


# As VLMEvalKit writes them
WRITERS: dict[str, Callable[[Sequence[Row]], bytes]] = {
    "json": lambda rows: json.dumps(list(rows)).encode(),
    "jsonl": lambda rows: "\n".join(map(json.dumps, rows)).encode(),
    "tsv": as_tsv,
    "xlsx": as_xlsx,
}


def file(folder: Path, suffix: str, content: bytes | str) -> Path:
    path = folder / f"p.{suffix}"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def sheet(folder: Path, *rows: Sequence[Any]) -> Path:
    book = Workbook()
    for row in rows:
        book.active.append(row)
    book.save(folder / "p.xlsx")
    return folder / "p.xlsx"


@pytest.mark.parametrize("suffix", WRITERS)
def test_replies_and_records_are_read_as_they_stand(tmp_path: Path, suffix: str) -> None:
    texts = [
        "[1, 2, 3, 4]",
        '[{"bbox": [1, 2, 3, 4]}]',
        "line\nline\n\nline",
        "猫 🐈 é",
        "a\ttab and \"quotes\" and 'more'",
        "None",
        "NA",
        "",
        "007",
        "1.0",
        "x" * 20_000,
    ]
    images = ({"original": [10, 20], "sent": [5, 10]},)
    record = ReplyRecord({"kind": "pixels", "scene_max_size": 1824}, "stop", images)
    stored = record_text(record)
    rows = [
        {"index": 90 - at, "question": "?", "prediction": text, "extra_records": stored}
        for at, text in enumerate(texts)
    ]
    rows[0]["extra_records"] = "{}"
    replies = read_predictions(file(tmp_path, suffix, WRITERS[suffix](rows)))
    assert [reply.text for reply in replies] == texts
    assert [reply.index for reply in replies] == [row["index"] for row in rows]
    assert [reply.recorded for reply in replies] == [ReplyRecord(), *[record] * (len(texts) - 1)]


@pytest.mark.parametrize("suffix", WRITERS)
def test_some_replies_are_those_of_all(tmp_path: Path, suffix: str) -> None:
    rows = [{"index": index, "prediction": f"[{index}]"} for index in (7, 0, 3, 5)]
    # Some programs write numbers as text.
    rows[2]["index"] = "3"
    path = file(tmp_path, suffix, WRITERS[suffix](rows))
    for wanted in (set(), {3}, {0, 5, 9}, {0, 3, 5, 7}):
        every = read_predictions(path)
        assert read_predictions(path, wanted) == [each for each in every if each.index in wanted]


def test_a_row_without_an_index_is_refused_among_some(tmp_path: Path) -> None:
    rows = [{"index": 0, "prediction": "[]"}, {"index": "x", "prediction": "[]"}]
    with pytest.raises(PredictionError, match="row 2, column index: 'x' is not a whole number"):
        read_predictions(file(tmp_path, "json", WRITERS["json"](rows)), {0})


@pytest.mark.parametrize(
    ("text", "record", "failed"),
    [
        (FAILED_ANSWER, ReplyRecord(), True),
        (FAILED_ANSWER + " via API.", ReplyRecord(), True),
        ("", ReplyRecord(), False),
        (FAILED_ANSWER + ": <class 'RuntimeError'> CUDA out of memory", ReplyRecord(), True),
        (FAILED_ANSWER + " via API. ReadTimeout: no answer", ReplyRecord(), True),
        (FAILED_ANSWER + " via API. is on the button: [1, 2, 3, 4]", ReplyRecord(), False),
        ("The dialog says: " + FAILED_ANSWER + " via API.", ReplyRecord(), False),
        # The record decides.
        ("half a reply", ReplyRecord(call={"error": "cut off"}, finish_reason="stop"), True),
        (FAILED_ANSWER, ReplyRecord(finish_reason="stop"), False),
        (FAILED_ANSWER, ReplyRecord(tokens={"reply": 7}), False),
        (FAILED_ANSWER, ReplyRecord(call={"id": "a", "error": ""}), True),
        ("[]", ReplyRecord(call={"id": "a"}), False),
    ],
)
def test_a_failed_call_is_no_reply(text: str, record: ReplyRecord, failed: bool) -> None:
    reply = Reply(0, text, record)
    assert reply.failed is failed
    parse = reader(ReplyFormat("text", "xyxy"))
    reason = read_reply(reply, parse, FORMAT_FAILURES).reason
    assert (reason is FormatFailure.FAILED_CALL) is failed


@pytest.mark.parametrize(
    ("text", "finish_reason", "reason"),
    [
        ('[{"bbox": [1, 2, 3, 4]}] and', "length", FormatFailure.TRUNCATED),
        ('[{"bbox": [1, 2, 3, 4]}] and', "stop", FormatFailure.NOT_JSON),
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
    reply = Reply(0, text, ReplyRecord(finish_reason=finish_reason))
    result = read_reply(reply, reader(form), FORMAT_FAILURES)
    assert result.reason is reason
    assert result.boxes == read(text, form).boxes


@pytest.mark.parametrize(
    ("answer", "text"),
    [("[1, 2.5]", "[1, 2.5]"), ('[["é"]]', '[["é"]]')],
)
def test_a_reply_that_is_not_text(tmp_path: Path, answer: str, text: str) -> None:
    path = file(tmp_path, "json", f'[{{"index": 0, "prediction": {answer}}}]')
    assert read_predictions(path) == [Reply(0, text)]


def test_what_files_may_have(tmp_path: Path) -> None:
    """A byte order mark, blank lines, zero bytes and very long replies are no damage."""
    long = "x" * 1_000_000
    path = file(tmp_path, "tsv", f"\ufeffindex\tprediction\n\n0\ta\0b\n1\t{long}\n")
    assert read_predictions(path) == [Reply(0, "a\0b"), Reply(1, long)]
    path = file(tmp_path, "json", '\ufeff[{"index": 0, "prediction": "a"}]')
    assert read_predictions(path) == [Reply(0, "a")]
    # Sheets have empty cells and rows; writers make a formula of a reply that looks like one.
    columns = ["index", "note", "prediction", None]
    path = sheet(tmp_path, columns, [0, "n"], [1, None, "b"], [2, None, "=[1, 2]"], [], [None])
    assert read_predictions(path) == [Reply(0, ""), Reply(1, "b"), Reply(2, "=[1, 2]")]


def test_the_hosts_other_mode_stores_one_cell(tmp_path: Path) -> None:
    record = ReplyRecord(space={"kind": "unit"}, call={"cost": 0.5})
    cell = {"prediction": "[]", "extra_records": record_text(record)}
    path = file(tmp_path, "json", json.dumps([{"index": 4, "prediction": cell}]))
    assert read_predictions(path) == [Reply(4, "[]", record)]


BOXES = [{"bbox_2d": [100, 200, 300, 400], "label": "é"}]
SAID = json.dumps(BOXES)
OBJECTS: list[tuple[object, str]] = [
    # Structured outputs are read as their JSON text.
    *(
        (value, json.dumps(value, ensure_ascii=False))
        for value in (
            {"detections": BOXES},
            {"objects": [{"x_min": 0.1, "y_min": 0.2, "x_max": 0.3, "y_max": 0.4}]},
            {"<OD>": {"bboxes": [[1, 2, 3, 4]], "labels": ["dog"]}},
            {"points": [[1, 2]]},
            {"bbox": [1, 2, 3, 4], "text": "dog"},
            {"answer": "a dog", "boxes": [["1", "2", "3", "4"]]},
            {"x": 1, "y": 2, "width": 3, "height": 4, "text": "dog"},
            {"bboxes": []},
            {"error": "none"},
            {},
            BOXES,
            [],
            [["dog", [1, 2, 3, 4]]],
            ["1", "2", "3", "4"],
        )
    ),
    # Messages have it inside.
    ({"role": "assistant", "content": SAID}, SAID),
    ({"role": "assistant", "content": None}, ""),
    ({"role": "assistant", "content": [{"type": "text", "text": SAID}]}, SAID),
    ({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
     "a"),
    ([{"role": "user", "content": "Find"}, {"role": "assistant", "content": SAID}], SAID),
    ([{"role": "assistant", "content": "no"}, {"role": "assistant", "content": SAID}], SAID),
    ([{"type": "text", "text": "["}, {"type": "text", "text": "]"}], "[]"),
    ({"role": "assistant", "content": ["[", "]"]}, "[]"),
    # VLMEvalKit's records, and Python's spelling of them where one call failed.
    ({"prediction": SAID, "extra_records": None}, SAID),
    ({"prediction": BOXES}, json.dumps(BOXES, ensure_ascii=False)),
    ({"prediction": {"role": "assistant", "content": "[]"}, "extra_records": ""}, "[]"),
    (repr({"prediction": SAID, "extra_records": "{}"}), SAID),
    (json.dumps({"prediction": SAID, "extra_records": None}), SAID),
    # A reply that only looks so.
    ("{'prediction': [1], and extra_records", "{'prediction': [1], and extra_records"),
    ('{"prediction": []}', '{"prediction": []}'),
]  # fmt: skip


@pytest.mark.parametrize(("value", "text"), OBJECTS)
def test_a_reply_that_another_program_stored_parsed_is_read(
    tmp_path: Path, value: object, text: str
) -> None:
    path = file(tmp_path, "json", json.dumps([{"index": 0, "prediction": value}]))
    assert [reply.text for reply in read_predictions(path)] == [text]
    if isinstance(value, str):
        rows = [{"index": 0, "prediction": value}]
        for suffix, content in (("tsv", as_tsv(rows)), ("xlsx", as_xlsx(rows))):
            path = file(tmp_path, suffix, content)
            assert [reply.text for reply in read_predictions(path)] == [text]


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": "[]", "reasoning_content": "hm [1, 2, 3, 4]"},
        {"role": "assistant", "content": "[]", "reasoning": "hm [1, 2, 3, 4]"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm [1, 2, 3, 4]"}]},
                {"type": "text", "text": "[]"},
            ],
        },
    ],
)
def test_a_thought_is_no_part_of_the_text(tmp_path: Path, message: dict[str, object]) -> None:
    path = file(tmp_path, "json", json.dumps([{"index": 0, "prediction": message}]))
    (reply,) = read_predictions(path)
    assert (reply.text, reply.recorded.thought) == ("[]", "hm [1, 2, 3, 4]")


INSIDE: list[tuple[object, str]] = [
    ({"choices": [{"message": {"content": SAID}}]}, "choices[0].message.content"),
    ({"candidates": [{"content": {"parts": [{"text": "[]"}]}}]}, "candidates[0].content.parts"),
    ({"text": SAID}, "an object with a text under 'text'"),
    ({"response": "[]", "done": True}, "'response'"),
    ({"prediction": SAID, "usage": {"total": 7}}, "'prediction'"),
    ({"message": {"role": "assistant", "content": "[]"}}, "'message'"),
    ({"resps": [["[]"]]}, "'resps'"),
    ({"content": SAID}, "'content'"),
    ([SAID], "a list of 1 texts"),
    (["a", "b"], "a list of 2 texts"),
    ({"role": "user", "content": "Find"}, "none of the 1 messages is the assistant's"),
    ({"role": "assistant", "content": [{"type": "image_url"}]}, "type 'image_url'"),
    ({"role": "assistant", "content": [7]}, "a part of the content is a number"),
    ({"role": "assistant", "content": {"bbox": 1}}, "content is an object"),
]


@pytest.mark.parametrize(("value", "why"), INSIDE)
def test_a_reply_inside_another_value_is_refused_with_its_row(
    tmp_path: Path, value: object, why: str
) -> None:
    """A number must not be published for a reply that was thrown away."""
    rows = [{"index": 0, "prediction": "[]"}, {"index": 1, "prediction": value}]
    path = file(tmp_path, "json", json.dumps(rows))
    with pytest.raises(PredictionError) as error:
        read_predictions(path)
    assert f"{path}, row 2, column prediction: " in str(error.value)
    assert why in str(error.value)


ROWS = [{"index": i, "prediction": f"[{i}, 2, 3, 4]\n", "extra_records": "{}"} for i in range(50)]
TSV = as_tsv(ROWS)
TWICE = '[{"index": 4, "prediction": "a"}, {"index": 4, "prediction": "a"}]'
DAMAGED: list[tuple[str, bytes | str, str]] = [
    ("xlsx", as_xlsx(ROWS)[:-300], "not a readable xlsx sheet"),
    ("json", json.dumps(ROWS)[:-100], "not JSON: "),
    ("json", "", "not JSON"),
    ("json", "[1]", "row 1: should be an object, not 1"),
    ("json", "{}", "should be a list with an object for each query"),
    ("json", TWICE, "row 2: duplicate index 4"),
    ("json", '[{"index": -1, "prediction": "a"}]', "row 1, column index: -1 is not the number"),
    ("tsv", "", "no line of column names"),
    ("tsv", TSV[: TSV.rfind(b"2, 3")], "unexpected end of data"),  # in a reply
    ("tsv", TSV[: TSV.rfind(b'\t"[49')], "row 50: 1 cell for 3"),  # before a reply
    ("tsv", "index\tprediction\n1\ta\tb\n", "row 1: 3 cells for 2 columns"),
    ("tsv", "id\tanswer\n1\ta\n", "row 1: no column 'index'; the columns are ['id', 'answer']"),
    (
        "tsv",
        "index\tanswer\n1\ta\n",
        "row 1: no column 'prediction'; the columns are ['index', 'answer']",
    ),
    ("csv", "", "formats: .json, .jsonl, .tsv, .xlsx"),
    ("jsonl", '{"index": 0, "prediction": "a"}\n\n{"index": 1, "pre', "line 3: not JSON"),
    ("jsonl", '{"index": 0, "prediction": "a"}\n[1]\n', "line 2: should be an object, not [1]"),
    ("jsonl", json.dumps(ROWS), "line 1: should be an object"),
    ("jsonl", "{}\n", "row 1: no column 'index'"),
]


@pytest.mark.parametrize(("suffix", "content", "why"), DAMAGED, ids=[each[2] for each in DAMAGED])
def test_a_damaged_file(tmp_path: Path, suffix: str, content: bytes | str, why: str) -> None:
    path = file(tmp_path, suffix, content)
    with pytest.raises(PredictionError) as error:
        read_predictions(path)
    assert str(error.value).startswith(str(path))
    assert why in str(error.value)
    assert "\n" not in str(error.value)


def test_a_sheet_without_cells(tmp_path: Path) -> None:
    with pytest.raises(PredictionError, match="no line of column names"):
        read_predictions(sheet(tmp_path))


def test_a_truncated_file_never_yields_a_shortened_reply(tmp_path: Path) -> None:
    """All replies that are read are whole, wherever the file ends."""
    for end in range(0, len(TSV), 397):
        path = file(tmp_path, "tsv", TSV[:end])
        try:
            replies = read_predictions(path)
        except PredictionError:
            continue
        expected = [Reply(row["index"], row["prediction"]) for row in ROWS[: len(replies)]]  # type: ignore[arg-type]
        assert replies == expected


@pytest.mark.parametrize(
    ("answer", "index"),
    [("0", 0), ("1.0", 1), ('"1"', 1), ("1.5", None), ("true", None), ('"a"', None)],
)
def test_what_is_an_index(tmp_path: Path, answer: str, index: int | None) -> None:
    path = file(tmp_path, "json", f'[{{"index": {answer}, "prediction": "a"}}]')
    if index is not None:
        assert [reply.index for reply in read_predictions(path)] == [index]
        return
    with pytest.raises(PredictionError, match=r"row 1, column index: .* is not a whole number"):
        read_predictions(path)


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
    assert names_of(Path(name)) == (model, dataset)


@pytest.mark.parametrize(
    "name",
    [
        "FindIt_SVG_xyxy_text.json", "_FindIt_SVG_xyxy_text.json", "m_FindIt_SVG_xyxy_txt.json",
        "m_MMBench.json", "m_FindIt_SVG_xyxy_text_score.json", "predictions.json",
    ],
)  # fmt: skip
def test_a_name_without_a_dataset(name: str) -> None:
    with pytest.raises(PredictionError, match=r"is <model>_FindIt_….json or .* type --data"):
        names_of(Path(name))


@pytest.mark.parametrize("name", ["", "..", "../x", "a\\b", "a\nb", "é" * 51])
def test_a_model_name_that_no_file_can_have(name: str) -> None:
    with pytest.raises(PredictionError, match="the model's name"):
        check_model_name(name)


@pytest.mark.parametrize("value", [None, "", "garbage", 7, {"other": 1}])
def test_what_is_no_record(value: object) -> None:
    assert parse_record(value) == ReplyRecord()
    record = ReplyRecord({"kind": "unit"}, "length", ({"original": [4, 3], "sent": [4, 3]},))
    text = record_text(record)
    assert parse_record(text) == parse_record(json.loads(text)) == record


# --- our record, damaged -------------------------------------------------------------------------

WHOLE: dict[str, Any] = {
    "space": {"kind": "grid1000"},
    "finish_reason": "stop",
    "images": [{"original": [640, 480], "sent": [640, 480]}],
    "thought": "hm",
    "ends_in_thought": False,
    "tokens": {"prompt": 9, "reply": 2},
    "model": {"identifier": "m", "row": "Qwen3-VL"},
    "call": {"cost": 0.01, "error": "no"},
    "logprobs": {"ends": [1, 2], "logprobs": [-0.5, 0]},
}
WRONG = ("7", 7, 7.5, True, [7], ["x"], [[]], {"a": 7}, {"a": {}}, float("nan"))


def fits(name: str, value: Any) -> bool:
    """Return whether a value may stand under a name, by the docstring of the record."""
    texts = ("finish_reason", "thought", "identifier", "row", "error")
    if name in texts:
        return isinstance(value, str)
    if name == "cost":
        return type(value) in (int, float) and value == value
    if name == "ends_in_thought":
        return type(value) is bool
    if name in ("prompt", "reply"):
        return type(value) is int
    if name == "tokens":
        return value == {"a": 7}
    return False


@every_pair("key, suffix", [*WHOLE, *WHOLE["tokens"], *WHOLE["model"], *WHOLE["call"]], WRITERS)
def test_a_value_of_another_type_in_a_record_is_damage(
    tmp_path: Path, key: str, suffix: str
) -> None:
    outer = {**dict.fromkeys(("prompt", "reply"), "tokens"), "identifier": "model", "row": "model"}
    outer |= {"cost": "call", "error": "call"}
    for wrong in WRONG:
        is_mapping = key in ("space", "call") and isinstance(wrong, dict)
        if fits(key, wrong) or is_mapping:
            continue
        record = {**WHOLE, key: wrong}
        if key in outer:
            record = {**WHOLE, outer[key]: {**WHOLE[outer[key]], key: wrong}}
        for extra in (json.dumps({"findit": record}), {"findit": record}):
            if not suffix.startswith("json") and isinstance(extra, dict):
                continue
            rows = [
                {"index": 0, "prediction": "[]", "extra_records": json.dumps({"findit": WHOLE})},
                {"index": 1, "prediction": "[]", "extra_records": extra},
            ]
            path = file(tmp_path, suffix, WRITERS[suffix](rows))
            with pytest.raises(PredictionError, match="row 2, column extra_records: ") as refused:
                read_predictions(path)
            assert str(refused.value).startswith(str(path))


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ('{"findit": {"thought": 7}}', r"findit\.thought: 7"),
        ('{"findit": {"call": "x"}}', r"findit\.call: 'x'"),
        ('{"findit": {"call": {"cost": "x"}}}', r"findit\.call\.cost: 'x' should be a .* number"),
        ('{"findit": {"logprobs": {"ends": [1]}}}', r"findit\.logprobs: logprobs is missing"),
        ('{"findit": {"logprobs": {"ends": [2, 1], "logprobs": [0, 0]}}}', "ends .* go back"),
        ('{"findit": {"images": [5]}}', r"findit\.images\.0: 5"),
        ('{"findit": "x"}', "findit should be a JSON object"),
        ('{"findit": {"thought": "a reply that was cut', "is it cut off"),
    ],
)
def test_the_message_says_where_a_record_is_damaged(record: str, why: str, tmp_path: Path) -> None:
    rows = [{"index": 0, "prediction": "[]", "extra_records": record}]
    with pytest.raises(PredictionError, match=rf"p\.json, row 1, column extra_records: .*{why}"):
        read_predictions(file(tmp_path, "json", json.dumps(rows)))


@pytest.mark.parametrize("value", [None, "", "note", 5, [1], '{"other": 1', '{"findit": null}'])
def test_what_other_programs_store_is_no_record(value: Any, tmp_path: Path) -> None:
    rows = [{"index": 0, "prediction": "[]", "extra_records": value}]
    (reply,) = read_predictions(file(tmp_path, "json", json.dumps(rows)))
    assert reply.recorded == ReplyRecord()


def test_keys_of_later_versions_are_ignored(tmp_path: Path) -> None:
    extra = {"findit": {**WHOLE, "of a later version": {"a": 1}}}
    rows = [{"index": 0, "prediction": "[]", "extra_records": extra}]
    (reply,) = read_predictions(file(tmp_path, "json", json.dumps(rows)))
    expected = json.loads(record_text(reply.recorded))["findit"]
    assert expected == {name: it for name, it in WHOLE.items() if it}


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_suffix_in_capital_letters_is_the_same_format(tmp_path: Path, suffix: str) -> None:
    rows = [{"index": 3, "prediction": "[[1, 2, 3, 4]]"}]
    path = file(tmp_path, suffix.upper(), WRITERS[suffix](rows))
    assert [(reply.index, reply.text) for reply in read_predictions(path)] == [
        (3, "[[1, 2, 3, 4]]")
    ]
    again = path.with_name(f"again.{suffix.capitalize()}")
    write_rows(again, lambda: rows)
    assert read_predictions(again) == read_predictions(path)
    run = tmp_path / f"m_FindIt_Demo_xyxy_json.{suffix.upper()}"
    path.rename(run)
    assert prediction_files([tmp_path]) == [run]


@pytest.mark.parametrize("suffix", [".json", ".tsv"])
def test_all_files_of_a_score_are_one_run(tmp_path: Path, suffix: str) -> None:
    """As a shell names them: ``runs/m_*``. A score in another space is another one."""
    run = tmp_path / f"m_FindIt_Demo_xyxy_json{suffix}"
    ends = [f"_{kind}{mark}" for kind in ("details", "score") for mark in ("", ".space-pixels")]
    others = [run.with_name(f"{run.stem}{end}.csv") for end in ends]
    for path in (run, *others):
        path.touch()
    assert prediction_files([run, *others]) == [run, others[1]]
    assert prediction_files(others) == [others[0], others[1]]


# --- odd records ----------------------------------------------------------------------------------

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = [field.name for field in dataclasses.fields(ReplyRecord)] + ["logprobs"]
RECORDS = st.dictionaries(st.sampled_from(KEYS), JSON_VALUES)


@given(RECORDS | JSON_VALUES, st.booleans())
def test_a_record_is_read_or_refused_with_its_place(record: object, is_text: bool) -> None:
    extra: object = {"findit": record}
    rows = [
        {"index": 0, "prediction": "[]"},
        {"index": 1, "prediction": "[]", "extra_records": json.dumps(extra) if is_text else extra},
    ]
    with TemporaryDirectory() as folder:
        path = file(Path(folder), "json", json.dumps(rows))
        try:
            replies = read_predictions(path)
        except PredictionError as error:
            message = str(error)
        else:
            assert [reply.answer for reply in replies] == ["[]", "[]"]
            return
    assert message.startswith(f"{path}, row 2, column extra_records: ")
    assert len(message) < 400


DEEP = 100_000
NESTED = [
    '[{"index": 0, "prediction": ' + "[" * DEEP,
    "[" * DEEP,
    '[{"index": 0, "prediction": "a", "extra_records": ' + json.dumps('{"findit":' * DEEP) + "}]",
]


@pytest.mark.parametrize("text", NESTED, ids=range(len(NESTED)))
def test_what_is_nested_without_end_is_refused_with_its_file(tmp_path: Path, text: str) -> None:
    path = file(tmp_path, "json", text)
    with pytest.raises(PredictionError) as refused:
        read_predictions(path)
    assert str(refused.value).startswith(str(path))
    assert len(str(refused.value)) < 400
