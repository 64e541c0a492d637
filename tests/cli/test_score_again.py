"""What a score was told is known when the same predictions are scored again."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from every_pair import every_pair
from few_fast import few_fast
from review_files import Reviewer, write
from scored_runs import World, saying, speaking

from vlmeval_findit.cli import main
from vlmeval_findit.core import program
from vlmeval_findit.protocol import (
    SPACE_SETTING,
    Known,
    ReviewVerdict,
    choose_value,
    say_once,
)
from vlmeval_findit.scoring import load_run, score_again
from vlmeval_findit.storage import RunFiles, run_of

NAME = "FindIt_Pascal_xyxy_json_bbox_2d"
UNCONSTRAINED = "FindIt_Pascal_unconstrained_text"

# Flags of a first score, and what its provenance has of them
TOLD = {
    "a space": (NAME, ["--space", "unit"]),
    "a space with a side": (NAME, ["--space", '{"kind": "letterbox", "side": 777}']),
    "marks": (NAME, ["--space", "grid1000", "--thought-marks", "<plan> </plan>"]),
    "another model's way": (UNCONSTRAINED, ["--space", "unit", "--reads-like", "Qwen3-VL"]),
}


def told_of(path: Path) -> dict[str, Any]:
    """Return what the provenance of a score says that it was told, and the score's totals."""
    values = json.loads(RunFiles(path).provenance.read_text())
    keys = ("spaces", "thought_marks", "reads_like", "totals")
    return {key: values.get(key) for key in keys}


def unrecorded(world: World, name: str = NAME, model: str = "Old") -> Path:
    """Return predictions that nothing but their score describes, and no score yet."""
    answer = speaking(NAME, 0.9) if name == NAME else saying("[10, 20, 300, 400]")
    path = world.predict(model, name, answer, folder=model)
    files = RunFiles(path)
    for each in (files.identity, files.score, files.details, files.provenance):
        each.unlink()
    return path


@pytest.mark.parametrize("command", ["score", "calibration", "coords", "errors"])
def test_one_line_says_what_all_scores_were_told(
    command: str, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    folder = unrecorded(world, model="A").parent.parent
    for model in ("B", "C"):
        unrecorded(world, model=model)
    assert main(["score", str(folder), "--space", "unit"]) == 0
    say_once.cache_clear()
    caplog.clear()
    main([command, str(folder)])
    assert caplog.text.count("as the last score was told") <= 1


@every_pair("what, lost", TOLD, ["nothing", "details", "score"])
def test_what_a_score_was_told_is_known_again(
    what: str, lost: str, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    name, flags = TOLD[what]
    path = unrecorded(world, name)
    assert main(["score", str(path), *flags]) == 0
    first = told_of(path)
    if lost != "nothing":
        getattr(RunFiles(path), lost).unlink()
    say_once.cache_clear()
    caplog.clear()
    assert main(["score", str(path.parent)]) == 0
    assert told_of(path) == first
    assert "as the last score was told" in caplog.text
    assert main(["coords", str(path.parent)]) in (0, 1)
    assert main(["leaderboard", str(path.parent), "--out", str(path.parent / "board")]) == 0


def test_what_says_to_score_again_works_when_typed(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    path = unrecorded(world)
    assert main(["score", str(path), "--space", "unit"]) == 0
    RunFiles(path).details.unlink()
    board = ["leaderboard", str(path), "--out", str(path.parent / "board")]
    assert main(board) == 2
    said = capsys.readouterr().err
    command = said.partition("score it again: ")[2].splitlines()[0]
    assert command.startswith(program())
    assert main(shlex.split(command.removeprefix(program()))) == 0
    assert main(board) == 0


@pytest.mark.parametrize("what", TOLD)
def test_of_changed_predictions_it_is_named_and_not_taken(
    what: str, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    name, flags = TOLD[what]
    path = unrecorded(world, name)
    assert main(["score", str(path), *flags]) == 0
    rows = json.loads(path.read_text())
    rows[0]["prediction"] = "[]"
    path.write_text(json.dumps(rows))
    say_once.cache_clear()
    caplog.clear()
    assert main(["score", str(path)]) == 2
    said = caplog.text
    assert f"{path}: its last score was told coordinate space " in said
    for flag in flags[::2]:
        assert f"{flag} '" in said.partition("Where it still holds type")[2]
    say_once.cache_clear()
    caplog.clear()
    assert main(["score", str(path), *flags]) == 0
    assert "its last score was told" not in caplog.text


def test_a_damaged_provenance_does_not_stop_a_score(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    path = unrecorded(world)
    assert main(["score", str(path), "--space", "unit"]) == 0
    RunFiles(path).provenance.write_text("[")
    assert main(["score", str(path), "--space", "unit"]) == 0
    said = caplog.text
    assert f"{RunFiles(path).provenance}" in said
    assert "State it again" in said


VALUES = {"recorded": "a", "stated": "b", "last": "c", "known": Known("d", "t"), "variable": "e"}


@pytest.mark.parametrize("first", range(len(VALUES)))
def test_the_last_score_goes_before_the_table(first: int) -> None:
    names = list(VALUES)[first:]
    chosen = choose_value(SPACE_SETTING, "M", **{name: VALUES[name] for name in names})
    assert chosen.value == "abcde"[first]
    if names[0] == "last":
        assert "coordinate space c, as the last score was told, in place of d (t)" in (
            chosen.remark
        )


def test_spaces_are_listed_once_for_many_files(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [unrecorded(world, model=model) for model in ("A", "B", "C", "D")]
    assert main(["score", str(world.runs)]) == 2
    said = capsys.readouterr().err
    assert said.count("Models whose space is known") == 1
    for path in paths:
        assert f"the model '{path.parent.name}' is not known" in said
        assert f"--space SPACE {path}" in said


@pytest.mark.parametrize("kind", ["score", "details", "provenance"])
@pytest.mark.parametrize("space", few_fast(["", "unit"], 1))
def test_every_file_of_a_score_can_be_scored(kind: str, space: str, world: World) -> None:
    path = world.predict("M", NAME, speaking(NAME, 0.9), folder="M")
    assert main(["score", str(path), *(["--space", space] if space else [])]) == 0
    files = RunFiles(path, f".space-{space}" if space else "")
    before = json.loads(files.provenance.read_text())
    assert main(["score", str(getattr(files, kind))]) == 0
    after = json.loads(files.provenance.read_text())
    assert after["scored_at"] > before["scored_at"] or before == after
    assert (after["spaces"], after["totals"]) == (before["spaces"], before["totals"])
    said = score_again([load_run(files.provenance)])
    assert main(shlex.split(said.removeprefix(program()))) == 0


@pytest.mark.parametrize("kind", ["score", "details", "provenance"])
@pytest.mark.parametrize("space", few_fast(["", "unit"], 1))
def test_every_file_of_a_reviewed_score_can_be_scored(kind: str, space: str, world: World) -> None:
    path = world.predict("M", NAME, speaking(NAME, 0.9), folder="M")
    voters = tuple(
        load_run(
            RunFiles(world.predict(name, NAME, speaking(NAME, 0.9))).provenance
        ).provenance.digest
        for name in ("First", "Second")
    )
    reviewer = Reviewer(NAME, voters)
    review = reviewer.review(0, ReviewVerdict.LABEL)
    reviews = write(world.folder / "reviews.jsonl", review, audits=[reviewer.audit([0])])
    more = ["--space", space] if space else []
    assert main(["score", str(path), "--reviews", str(reviews), *more]) == 0
    spaced = f".space-{space}" if space else ""
    (marked,) = {run_of(each).mark for each in path.parent.glob(f"*_score{spaced}.reviewed-*.csv")}
    files = RunFiles(path, marked)
    before = json.loads(files.provenance.read_text())
    assert main(["score", str(getattr(files, kind))]) == 0
    assert main(["score", str(getattr(files, kind)), "--reviews", str(reviews)]) == 0
    after = json.loads(files.provenance.read_text())
    assert (after["spaces"], after["totals"]) == (before["spaces"], before["totals"])
