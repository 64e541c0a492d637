"""Custom questions the whole way: imported, asked, scored, ranked, shown, exported."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from chat_server import ChatServer, Script, completion
from jsonl_data import CAT, DOG, FRAMES, LINES, import_lines
from perfect_answers import content, perfect_answers

import vlmeval_findit as findit
from vlmeval_findit.benchmarks.findit.annotation_tables import load_task
from vlmeval_findit.benchmarks.findit.dataset_names import parse
from vlmeval_findit.benchmarks.findit.findit_datasets import custom_rows
from vlmeval_findit.benchmarks.findit.grid import (
    AnnotationTable,
    FormatAxes,
    Views,
    formats,
    variants,
)
from vlmeval_findit.cli import main
from vlmeval_findit.core.identity import Answering, write_identity
from vlmeval_findit.core.run_files import RunFiles
from vlmeval_findit.leaderboard.board import make_board
from vlmeval_findit.leaderboard.board_tables import slices_table
from vlmeval_findit.runs.run_identity import run_identity
from vlmeval_findit.runs.scored_run import load_runs

pytestmark = pytest.mark.usefixtures("data_root")


MODEL = "Qwen3-VL"


def always_right(names: list[str]) -> Script:
    """Return a server's script that names every box of every query of the datasets."""
    answers: dict[str, str] = {}
    for name in names:
        answers |= perfect_answers(MODEL, [name])
    return lambda asked, number: completion(answers[content(asked.body)])


@pytest.mark.parametrize("family", ["objdet", "refexp_all", "insdet_video"])
def test_a_model_that_is_right_scores_100_in_every_variant(tmp_path, family: str) -> None:
    assert import_lines(tmp_path, LINES[family]) == 0
    row = custom_rows()["Mine"]
    tables = [
        AnnotationTable("Mine", multilabel=m) for m in (False, True)[: 1 + row.has_multilabel]
    ]
    views = Views((1, FRAMES) if row.frames > 1 else (), (False, True))
    axes = FormatAxes(("xyxy", "cxcywh"), keys=("bbox", "bbox_2d"))
    names = [variant.name for variant in variants(tables, formats(axes), views)]
    Path("sweep.yaml").write_text(
        f"models: [{MODEL}]\ndatasets: [{', '.join(table.name for table in tables)}]\n"
        "representations: [xyxy, cxcywh]\noutputs: all\nkeys: [bbox, bbox_2d]\n"
        + (f"frames: [1, {FRAMES}]\n" if row.frames > 1 else "")
        + ("captions: [false, true]\n" if row.has_caption else "")
    )
    with ChatServer(always_right(names)) as server:
        address = server.url.replace("/api/v1", "/v1")
        assert main(["sweep", "sweep.yaml", "--base-url", address]) == 0
    scores = {}
    for path in Path("outputs").rglob("*_score.csv"):
        with path.open() as f:
            (scores[path.name],) = csv.DictReader(f)
    assert scores.keys() == {f"{MODEL}_{name}_score.csv" for name in names}
    for score in scores.values():
        assert float(score["F1@0.5"]) == 100
        # Of frames the empty list is an answer, but not as the protocol asks for one.
        empty = score["dataset"].startswith(f"FindIt_Mine_f{FRAMES}_") and row.has_negatives
        assert float(score["Adherence"]) == (50 if empty else 100)
        assert float(score["Rejection accuracy"] or 100) == 100
    assert any(float(score["Rejection accuracy"] or 0) for score in scores.values())


# --- parts of a score -----------------------------------------------------------------------------

TAGGED = [
    {"image": "0.png", "label": "cat", "boxes": [CAT], "tags": {"time": "night", "image": "a"}},
    {"image": "1.png", "label": "cat", "boxes": [DOG], "tags": {"time": "night", "image": "b"}},
    {"image": "2.png", "label": "<b>dog", "boxes": [DOG], "tags": {"time": "<b>day"}},
    {"image": "0.png", "label": "cow", "boxes": [], "tags": {"time": "never"}},
]
NAME = "FindIt_Mine_xyxy_json"


def run_of(replies: Mapping[int, str], name: str = NAME, model: str = MODEL) -> Path:
    """Make a scored run of these replies; the others say that there is nothing."""
    task = load_task(name)
    path = Path("outputs") / f"{model}_{name}.json"
    path.parent.mkdir(exist_ok=True)
    rows = [{"index": i, "prediction": replies.get(i, "[]")} for i in task.queries]
    path.write_text(json.dumps(rows))
    run = run_identity(task, model, Answering("Test"), [*task.queries], {"kind": "pixels"})
    write_identity(RunFiles(path).identity, run)
    assert main(["score", str(path)]) == 0
    return path


def reply(box: list[float]) -> str:
    return json.dumps([{"bbox": box}])


def test_scores_are_sliced_by_tag(tmp_path) -> None:
    assert import_lines(tmp_path, TAGGED) == 0
    run_of({0: reply(CAT), 1: reply(CAT), 2: reply(DOG)})
    table = slices_table(make_board(load_runs([Path("outputs")])))
    rows = {(row["slice"], row["value"]): row for row in table.records()}
    assert {key: (row["rows"], row["F1@0.5"]) for key, row in rows.items()} == {
        ("time", "night"): (2, 50),
        ("time", "<b>day"): (1, 100),
        ("time", "never"): (1, None),
        ("image", "a"): (1, 100),
        ("image", "b"): (1, 0),
    }
    assert rows["time", "never"]["Rejection accuracy"] == 100
    frame = findit.load_runs("outputs")
    assert frame["time"].tolist() == ["night", "night", "<b>day", "never"]
    # A tag has the name of a column.
    assert frame["image (part)"].tolist()[:2] == ["a", "b"]
    assert [Path(image).name for image in frame["image"]] == ["0.png", "1.png", "2.png", "0.png"]


def test_thinning_and_marks_keep_tags(tmp_path) -> None:
    lines = [{**line, "tags": {"far": True}} for line in LINES["insdet_video"]]
    assert import_lines(tmp_path, lines) == 0
    for name in ("FindIt_Mine_f2_xyxy_json", "FindIt_Mine_f4_xyxy_json_vp-box"):
        tags = [query.tags for query in load_task(name).queries.values()]
        assert [each["far"] for each in tags] == ["yes", "yes"]
        assert ["reference" in each for each in tags] == ["vp" in name] * 2


# --- another table, other commands ----------------------------------------------------------------


def test_a_run_over_the_dataset_before_is_refused(tmp_path, capsys) -> None:
    assert import_lines(tmp_path, TAGGED) == 0
    path = run_of({})
    changed = [{**line, "tags": {"all": True}} for line in TAGGED]
    assert import_lines(tmp_path, changed, "--replace") == 0
    assert main(["score", str(path)]) == 2
    assert "table" in capsys.readouterr().err


def test_every_command_knows_them(tmp_path, capsys) -> None:
    assert import_lines(tmp_path, LINES["insdet_video"]) == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines() if str(tmp_path) not in line)
    suggested = out.splitlines()[-1].split()
    name = suggested[suggested.index("--data") + 1]
    assert parse(name).family.value == "insdet_video"
    path = run_of({}, name)
    for command in (
        ["data", "show", name],
        ["errors", str(path)],
        ["export", str(path), "--to", "coco", "--out", "coco"],
        ["coords", str(path)],
        ["report", "outputs", "--out", "report.html"],
    ):
        assert main(command) == 0, command
