"""Replies in the files of other programs: each layout gives the same score, and damage is named."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from vlmeval_findit.benchmarks import load
from vlmeval_findit.cli import main
from vlmeval_findit.data import load_dataset
from vlmeval_findit.scoring import load_run
from vlmeval_findit.storage import RunFiles, read_predictions

DATA = "FindIt_Demo_refexp_xyxy_json"
Record = dict[str, Any]
Out = pytest.CaptureFixture[str]

TEXT = '[{"bbox": [1, 2, 300, 400]}]'


def rows() -> list[tuple[int, str, str]]:
    """Return number, reply and image of every row."""
    load_dataset(DATA)
    queries = load(DATA).queries.values()
    return [(q.index, TEXT.replace("300", f"{300 + q.index}"), q.images[0]) for q in queries]


def of_batch(index: int, text: str, image: str) -> Record:
    message = {"role": "assistant", "content": text}
    body = {"choices": [{"message": message, "finish_reason": "stop"}]}
    response = {"status_code": 200, "request_id": "a", "body": body}
    return {"id": "vllm-1", "custom_id": str(index), "response": response, "error": None}


def of_lmms_eval(index: int, text: str, image: str) -> Record:
    return {"doc_id": index, "target": "x", "resps": [[text]], "filtered_resps": [text]}


def of_swift(index: int, text: str, image: str) -> Record:
    images = [{"bytes": None, "path": f"/data/{image}"}]
    return {"response": text, "labels": None, "messages": [], "images": images}


LAYOUTS: dict[str, Callable[[int, str, str], Record]] = {
    "batch": of_batch,
    "lmms-eval": of_lmms_eval,
    "lmms-eval, unfiltered": lambda i, text, _: {"doc_id": i, "resps": [[text]]},
    "ms-swift": of_swift,
    "ms-swift, paths": lambda i, text, image: {"response": text, "images": [image]},
    "index and response": lambda i, text, _: {"index": i, "response": text, "images": ["other"]},
    "index and prediction": lambda i, text, _: {"index": str(i), "prediction": text},
}


def convert(records: Sequence[Mapping[str, Any]], folder: Path, name: str = "m.jsonl") -> int:
    folder.mkdir(exist_ok=True)
    lines = [json.dumps(record) for record in records]
    text = "\n".join(lines) if name.endswith(".jsonl") else f"[{','.join(lines)}]"
    (folder / name).write_text(text)
    words = ["--convert", "--data", DATA, "--space", "file_pixels"]
    return main(["score", str(folder / name), *words])


@pytest.mark.parametrize("name", ["m.jsonl", "m.json"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_replies_of_the_rows(layout: str, name: str, tmp_path: Path) -> None:
    expected = rows()
    make = LAYOUTS[layout]
    records = [make(*row) for row in expected]
    if layout != "ms-swift" and "swift" not in layout:
        records.reverse()
    assert convert(records, tmp_path / "out", name) == 0
    path = tmp_path / "out" / f"m_{load(DATA).variant.name}.json"
    replies = {reply.index: reply.text for reply in read_predictions(path)}
    assert replies == {index: text for index, text, _ in expected}
    assert RunFiles(path).provenance.is_file()


def test_a_call_that_failed_is_no_answer(tmp_path: Path) -> None:
    records = [of_batch(*row) for row in rows()]
    records[0] |= {"response": None, "error": {"code": "server_error"}}
    records[1]["response"] = {"status_code": 500, "body": {"error": "out of memory"}}
    assert convert(records, tmp_path / "out") == 0
    replies = read_predictions(tmp_path / "out" / f"m_{load(DATA).variant.name}.json")
    assert [reply.failed for reply in replies[:3]] == [True, True, False]
    assert "out of memory" in replies[1].recorded.call["error"]


def swap(records: list[Record]) -> None:
    first, last = records[0], records[-1]
    first["images"], last["images"] = last["images"], first["images"]


DAMAGE: list[tuple[str, Callable[[list[Record]], object], str]] = [
    ("batch", lambda r: r[1].update(custom_id="request-2"), 'line 2: custom_id "request-2" is no'),
    ("batch", lambda r: r[1].update(custom_id="999"), 'line 2: custom_id "999" is no row of'),
    ("batch", lambda r: r[1].update(custom_id=r[0]["custom_id"]), "line 2: row 0 is that of"),
    ("batch", lambda r: r[1]["response"]["body"].update(choices=[]), "line 2: no text of a reply"),
    ("lmms-eval", lambda r: r[1].update(filtered_resps=["a", "b"]), "line 2: no text of a reply"),
    ("lmms-eval", lambda r: r[1].update(doc_id=True), "line 2: doc_id true is no row"),
    ("ms-swift", lambda r: r.pop(), 'have no numbers of rows, and'),
    ("ms-swift", swap, 'line 1: shows'),
    ("index and response", lambda r: r[1].update(index=None), "line 2: index null is no row"),
    ("index and response", lambda r: r[1].update(response=7), "line 2: no text of a reply"),
    ("index and response", lambda r: r[1].clear(), "in no layout that is read"),
]  # fmt: skip


@pytest.mark.parametrize(("layout", "spoil", "says"), DAMAGE)
def test_what_is_wrong_with_a_record_is_said(
    layout: str, spoil: Callable[[list[Record]], object], says: str, tmp_path: Path, capsys: Out
) -> None:
    records = [LAYOUTS[layout](*row) for row in rows()]
    spoil(records)
    assert convert(records, tmp_path / "out") == 2
    assert says in " ".join(capsys.readouterr().err.split())
    assert len(list((tmp_path / "out").iterdir())) == 1


@pytest.mark.parametrize(
    "flag", [["--min-score", "1"], ["--box", "corners"], ["--leave-out-unknown"]]
)
def test_flags_about_boxes_are_for_boxes(flag: list[str], tmp_path: Path, capsys: Out) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text(json.dumps({"index": 0, "prediction": "[]"}))
    assert main(["score", str(path), "--data", DATA, *flag]) == 2
    assert "are for --convert: add it" in capsys.readouterr().err
    assert main(["score", str(path), "--data", DATA, "--convert", *flag]) == 2
    assert "are for boxes" in capsys.readouterr().err


# --- masks ----------------------------------------------------------------------------------------


def masks_of_rows(data: str) -> list[Record]:
    """Return an outline of the first true object of every row."""
    load_dataset(data)
    records = []
    for query in load(data).queries.values():
        x1, y1, x2, y2 = query.truth.boxes[0]
        records.append({"index": query.index, "mask": [x1, y1, x2, y1, x2, y2, x1, y2]})
    return records


def convert_masks(records: Sequence[Record], folder: Path, data: str) -> int:
    folder.mkdir(exist_ok=True)
    (folder / "m.json").write_text(json.dumps(records))
    return main(["score", str(folder / "m.json"), "--convert", "--data", data])


@pytest.mark.parametrize(
    "form", ["refexp_xyxy_json", "refexp_cxcywh_text", "refexp_xywh_json_nested"]
)
def test_masks_of_expressions_are_boxes_in_any_format(
    form: str, tmp_path: Path, capsys: Out
) -> None:
    data = f"FindIt_Demo_{form}"
    records = masks_of_rows(data)
    assert convert_masks(records, tmp_path, data) == 0
    assert f"{len(records)} boxes around masks" in capsys.readouterr().out
    (path,) = tmp_path.glob("m_*_provenance.json")
    run = load_run(path)
    assert run.metric_values["Precision"] == 100.0
    assert run.metric_values["mIoU"] > 99.9 * run.metric_values["Recall"] / 100


def test_masks_of_unclear_rows_are_refused(tmp_path: Path, capsys: Out) -> None:
    records = masks_of_rows(DATA)
    several = "FindIt_Demo_multilabel_xyxy_json"
    for data, wrong, says in (
        (DATA, [*records, records[0]], "entry 1, too"),
        (DATA, [*records, {**records[0], "index": 999}], "999 is no row of"),
        (DATA, [{**records[0], "index": 998}, {**records[0], "index": 999}], "are no rows of"),
        (DATA, [{**records[0], "index": "a"}], "should be the number of a row"),
        (several, records, "asks for others. Several classes: write COCO results"),
    ):
        assert convert_masks(wrong, tmp_path / "bad", data) == 2
        assert says in " ".join(capsys.readouterr().err.split())
