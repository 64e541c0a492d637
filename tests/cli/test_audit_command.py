"""``audit``: what is listed, which runs were compared, what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from doubtful_labels import (
    EXPRESSIONS,
    OBJECTS,
    ROWS,
    Right,
    answering,
    expressions,
    objects,
    pair,
)
from rich.console import Console
from scored_runs import World

from vlmeval_findit.analysis import FEWEST_RANDOM, audit_labels, draw_rows
from vlmeval_findit.cli import main, printing
from vlmeval_findit.leaderboard import choose_voters
from vlmeval_findit.protocol import Review, Reviews, ReviewVerdict, row_hash
from vlmeval_findit.scoring import load_runs
from vlmeval_findit.storage import write_reviews

ELSEWHERE = (140.0, 10.0, 180.0, 50.0)
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[int, Right]:
    """Write a table with a wrong label in row 7, and runs of two models; return the truth."""
    world = World(tmp_path)
    world.at_hand(monkeypatch)
    monkeypatch.chdir(tmp_path)
    answers = expressions(world, {7: ELSEWHERE})
    for model in ("Left", "Right"):
        world.predict(model, EXPRESSIONS, answering(EXPRESSIONS, answers))
    return answers


def test_doubtful_rows_fit_a_terminal(
    right: dict[int, Right], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = partial(Console, width=80, force_terminal=True, color_system=None)
    monkeypatch.setattr(printing, "console", terminal)
    assert main(["audit", "runs", "--top", "12"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"RefCOCO: 12 labels of {ROWS} rows listed as doubtful"
    assert lines[1].split() == ["row", "asked", "kind", "models", "proposal"]
    assert lines[2].split()[:8] == ["7", "object", "7", "wrong", "object", "2", "of", "2"]
    assert len([line for line in lines if " of 2 " in line]) == 12
    assert all(len(line) <= 80 for line in lines)


def test_kinds_runs_and_reasons_follow(right: dict[int, Right], capsys: Capture) -> None:
    world = World(Path.cwd())
    world.predict("Few", EXPRESSIONS, answering(EXPRESSIONS, right), rows=5)
    assert main(["audit", "runs"]) == 0
    out = capsys.readouterr().out
    assert "By kind: wrong object 1\n" in out
    own = "(not in the model table: taken for a family)"
    voters = [f"  {name} xyxy_json, family {name} {own}" for name in ("Left", "Right")]
    assert "\n".join(["Compared: 2 runs", *voters, "Left out: 1 run"]) in out
    assert "other rows: 5 scored" in out


def test_boxes_that_few_models_found_have_their_own_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """After what models contradict; without a probability, as they may be hard for all."""
    world = World(tmp_path)
    world.at_hand(monkeypatch)
    monkeypatch.chdir(tmp_path)
    nothing = {at: (*pair(at), ELSEWHERE) for at in (3, 9)}
    answers = objects(world, {**nothing, 20: pair(20)[:1]})

    def missing_some(at: int, answer: Right) -> Right:
        return Right(answer.boxes[:1]) if at in (30, 31) else answer

    for model in ("Left", "Right"):
        world.predict(model, OBJECTS, answering(OBJECTS, answers, change=missing_some))
    assert main(["audit", "runs", "--json", "doubts.json"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "By kind: missing 1, superfluous 4" in said
    written = json.loads(Path("doubts.json").read_text())
    rows = [(row["index"], row["p"] is None) for row in written["listed"]]
    assert rows[0] == (20, False)
    assert sorted(rows[1:]) == [(3, True), (9, True), (30, True), (31, True)]
    assert main(["audit", "runs", "--top", "3", "--json", "doubts.json"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    written = json.loads(Path("doubts.json").read_text())
    assert written["not found"] == [row for row, _ in rows[3:]]
    order = ", ".join(map(str, written["not found"]))
    assert "Few or no models found a box of 2 rows not listed" in said
    assert f"The most doubtful first: {order}" in said


def test_the_file_has_everything(right: dict[int, Right], tmp_path: Path) -> None:
    out = tmp_path / "new" / "doubts.json"
    assert main(["audit", "runs", "--json", str(out)]) == 0
    written = json.loads(out.read_text())
    (row,) = written["listed"]
    assert (row["index"], row["asked"], row["kind"]) == (7, "object 7", "wrong object")
    assert (row["agreeing"], row["models"], row["reviewed"]) == (2, 2, False)
    assert 0.5 < row["p"] < 1
    assert row["p calibrated"] is None
    assert row["label"] == {"boxes": [list(ELSEWHERE)], "labels": []}
    assert row["proposal"]["boxes"][0] == pytest.approx(right[7].boxes[0], abs=2)
    assert row["voters"] == [voter["run"] for voter in written["voters"]]
    assert written["rows"] == ROWS


def test_one_family_is_told_what_is_missing(right: dict[int, Right], capsys: Capture) -> None:
    assert main(["audit", *map(str, Path("runs").glob("Left*json.json"))]) == 0
    out = capsys.readouterr().out
    assert f"RefCOCO: the first 50 of {ROWS} rows to look at, in this order" in out
    assert "uncalibrated" not in out
    assert "No probabilities: all compared runs are of one family (Left)" in out
    assert f"run --data {EXPRESSIONS} --model MODEL" in out


def test_a_dataset_is_chosen(right: dict[int, Right], capsys: Capture) -> None:
    world = World(Path.cwd())
    answers = objects(world, {})
    for model in ("Left", "Right"):
        world.predict(model, OBJECTS, answering(OBJECTS, answers))
    assert main(["audit", "runs"]) == 2
    assert "Type --data Pascal" in capsys.readouterr().err
    assert main(["audit", "runs", "--data", "Pascal"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"Pascal: 0 labels of {ROWS} rows")
    assert "--top 20 lists the first 20 all the same" in out


def review_of(verdict: ReviewVerdict, **values: Any) -> Review:
    accept = () if verdict is ReviewVerdict.EXCLUDE else values["accept"]
    return Review(
        verdict=verdict, kind="", reviewer="ab", date="2026-01-31", **{**values, "accept": accept}
    )


def test_reviews_calibrate_and_mark_rows(right: dict[int, Right], capsys: Capture) -> None:
    audit = audit_labels(choose_voters(load_runs([Path("runs")])).runs)
    reviews = []
    for each in draw_rows(audit, audit.listed(30)):
        row = each.row
        is_wrong = row.index == 7
        reviews.append(
            review_of(
                ReviewVerdict.MODEL if is_wrong else ReviewVerdict.LABEL,
                table=audit.table,
                index=row.index,
                row=row_hash(audit.dataset.queries[row.index], row.label),
                accept=(row.proposal if is_wrong else row.label,),
                drawn=each.drawn,
            )
        )
    assert len(reviews) == 30 + FEWEST_RANDOM
    whole, few = Path("reviews.jsonl"), Path("few.jsonl")
    write_reviews(whole, Reviews(tuple(reviews)))
    write_reviews(few, Reviews(tuple(reviews[:10])))
    assert main(["audit", "runs", "--reviews", str(few)]) == 0
    out = capsys.readouterr().out
    assert "there are 8 listed and 2 random rows" in out
    assert "7 ✓" in out
    assert main(["audit", "runs", "--reviews", str(whole)]) == 0
    out = capsys.readouterr().out
    assert " calibrated" in out
    assert "uncalibrated" not in out
    assert "by the reviews of 30 listed and 20 random rows" in out
    other = replace(reviews[0], row=f"sha256:{'0' * 64}")
    write_reviews(Path("other.jsonl"), Reviews((other,)))
    assert main(["audit", "runs", "--reviews", "other.jsonl"]) == 2
    assert "other.jsonl, line 1: row" in capsys.readouterr().err
