"""Custom questions the whole way: imported, asked, scored, ranked, shown, exported."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from chat_server import ChatServer, completion
from jsonl_data import CAT, DOG, FRAMES, LINES, import_lines
from perfect_answers import content, perfect_answers

import vlmeval_findit as findit
from vlmeval_findit.benchmarks.findit import parse
from vlmeval_findit.cli import main
from vlmeval_findit.data import load_dataset
from vlmeval_findit.leaderboard import make_board, slices_table
from vlmeval_findit.protocol import Answering
from vlmeval_findit.scoring import load_runs, run_identity
from vlmeval_findit.storage import RunFiles, write_identity

pytestmark = pytest.mark.usefixtures("data_root")


MODEL = "Qwen3-VL"


def test_a_model_that_is_right_scores_100(tmp_path) -> None:
    assert import_lines(tmp_path, LINES["insdet_video"]) == 0
    names = [f"FindIt_Mine_f{frames}_cxcywh_json_bbox_2d" for frames in (1, FRAMES)]
    answers = perfect_answers(MODEL, names)
    with ChatServer(lambda asked, number: completion(answers[content(asked.body)])) as server:
        address = server.url.replace("/api/v1", "/v1")
        assert main(["run", "--model", MODEL, "--base-url", address, "--data", *names]) == 0
    for path in Path("outputs").rglob("*_score.csv"):
        with path.open() as f:
            (score,) = csv.DictReader(f)
        assert (float(score["F1@0.5"]), float(score["Adherence"])) == (100, 100)
    assert len(list(Path("outputs").rglob("*_score.csv"))) == len(names)


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
    dataset = load_dataset(name)
    path = Path("outputs") / f"{model}_{name}.json"
    path.parent.mkdir(exist_ok=True)
    rows = [{"index": i, "prediction": replies.get(i, "[]")} for i in dataset.queries]
    path.write_text(json.dumps(rows))
    run = run_identity(dataset, model, Answering("Test"), [*dataset.queries], {"kind": "pixels"})
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
        tags = [query.tags for query in load_dataset(name).queries.values()]
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
