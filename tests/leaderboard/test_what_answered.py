"""Models that saw other images are not compared, and it is said which model answered."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from boards import JSON, TEXT, board, runs
from few_fast import few_fast
from scored_runs import World, speaking

from vlmeval_findit import compare as api_compare
from vlmeval_findit.analysis import (
    StatisticsError,
    compare_runs,
    other_images,
    write_consensus,
)
from vlmeval_findit.cli import main
from vlmeval_findit.export import copy_run, private_of
from vlmeval_findit.leaderboard import Board, comparable, make_board
from vlmeval_findit.protocol import Answering, Identity
from vlmeval_findit.scoring import Provenance, Run, load_run, load_runs, score_file, write_score
from vlmeval_findit.storage import RunFiles

__all__ = ["board", "runs"]

Capsys = pytest.CaptureFixture[str]
ROWS = 12


def showing(run: Run, contents: str, rows: Sequence[int] = range(ROWS), names: str = "") -> Run:
    """Return a run whose rows showed images with a content."""
    shown = {row: {f"{names}{row // 2}.jpg": contents} for row in rows}
    return replace(run, provenance=replace(run.provenance, shown=shown))


def one(world: World, model: str, name: str = JSON, chance: float = 0.5, **how: Any) -> Run:
    return world.run(model, name, speaking(name, chance, 4), **how)


def reasons(board: Board) -> dict[str, str]:
    return {each.run.model: each.reason for each in board.excluded}


# --- images ---------------------------------------------------------------------------------------


def test_other_images_are_not_compared(world: World) -> None:
    a, b, c = (one(world, model) for model in "ABC")
    board = make_board([showing(a, "1"), showing(b, "1"), showing(c, "2")])
    assert board.models == ("A", "B")
    assert reasons(board) == {"C": "other images: 12 of 12 rows (first: row 0)"}


def test_one_changed_image_is_enough(world: World) -> None:
    a, b, c = (showing(one(world, model), "1") for model in "ABC")
    changed = {**c.provenance.shown, 4: {"2.jpg": "2"}, 5: {"2.jpg": "2"}}
    c = replace(c, provenance=replace(c.provenance, shown=changed))
    assert reasons(make_board([a, b, c])) == {"C": "other images: 2 of 12 rows (first: row 4)"}
    with pytest.raises(StatisticsError, match=r"other images: 2 of 12 rows \(first: row 4\)"):
        compare_runs(a, c)
    with pytest.raises(StatisticsError, match="other images"):
        compare_runs(c, a)


def test_formats_show_the_same_images(world: World) -> None:
    a = showing(one(world, "A"), "1")
    b = showing(one(world, "B", TEXT), "2")
    assert len(make_board([a, b]).excluded) == 1


def test_images_of_other_names_are_no_contradiction(world: World) -> None:
    """Each mark has images of its own; runs with different marks are compared."""
    a = showing(one(world, "A"), "1")
    b = showing(one(world, "B"), "2", names="vp/oval/")
    assert make_board([a, b]).models == ("A", "B")


def test_what_was_not_recorded_contradicts_nothing(world: World) -> None:
    a, b, c = (one(world, model) for model in "ABC")
    part = showing(b, "1", range(3))
    board = make_board([showing(a, "1"), part, c])
    assert not board.excluded
    assert compare_runs(showing(a, "1"), c)
    board = make_board([c, showing(b, "2"), showing(a, "1"), showing(one(world, "D"), "1")])
    assert reasons(board).keys() == {"B"}, "the unknown stays with the larger group"


def copied(run: Run) -> Run:
    """Return a run with a record of images of its own, equal to that of others."""
    return replace(run, provenance=replace(run.provenance, shown={**run.provenance.shown}))


@pytest.mark.parametrize("seed", few_fast(range(6), 2))
def test_a_shared_record_of_images_decides_as_equal_ones(world: World, seed: int) -> None:
    random = np.random.default_rng(seed)
    some = one(world, "Some")
    kinds = [showing(some, "1"), showing(some, "1", range(4)), showing(some, "2", range(2, 9))]
    kinds += [showing(some, "1+alpha", range(3)), some, some]
    drawn = [kinds[at] for at in random.integers(0, len(kinds), 12)]
    runs = [replace(run, model=f"M{at:02}") for at, run in enumerate(drawn)]
    shared = make_board(runs)
    assert reasons(shared) == reasons(make_board([copied(run) for run in runs]))
    assert shared.models


def test_runs_with_one_record_of_images_are_compared_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []

    def counting(its: Provenance, others: Provenance) -> str:
        compared.append(its)
        return other_images(its, others)

    monkeypatch.setattr(comparable, "other_images", counting)
    kinds = [showing(one(world, "A"), "1"), showing(one(world, "B"), "2")]
    runs = [replace(kinds[at % 2], model=f"M{at:02}") for at in range(40)]
    assert len(reasons(make_board(runs))) == 20
    assert len(compared) < 10


@pytest.mark.parametrize(
    ("change", "is_mixed"),
    [
        (lambda run: run, True),
        (lambda run: replace(run, answering=Answering("InternVL", in_vlmevalkit=True)), False),
    ],
    ids=["version 1.0", "VLMEvalKit's own model"],
)
def test_transparent_images_that_1_0_did_not_lay_on_white(
    world: World, change: Any, is_mixed: bool
) -> None:
    new = showing(one(world, "New"), "1+alpha", range(4))
    old = one(world, "Old", change=change)
    board = make_board([new, old, replace(new, model="Newer")])
    assert [*reasons(board)] == ["Old"] * is_mixed
    if is_mixed:
        assert reasons(board)["Old"].startswith("other images: 4 of 12 rows (first: row 0) are tra")
        with pytest.raises(StatisticsError, match=r"version 1\.0 did not lay on white"):
            compare_runs(new, old)


def test_predictions_of_other_programs_are_compared_with_transparent_ones(world: World) -> None:
    new = showing(one(world, "New"), "1+alpha")
    old = one(world, "Old")
    old = replace(old, provenance=replace(old.provenance, identity=None))
    assert not [why for why in reasons(make_board([new, old])).values() if "images" in why]


def test_transparent_images_are_noted(world: World) -> None:
    board = make_board([showing(one(world, "New"), "1+alpha", range(4))])
    (line,) = lines(board, "Transparent images")
    assert line == "Pascal: 4 of 12 queries show transparent images, laid on white"


# --- from files -----------------------------------------------------------------------------------


def recorded(
    world: World,
    model: str,
    *,
    content: str = "1" * 16,
    answered_by: Sequence[str] = (),
    name: str = JSON,
    asked: str = "gpt-x",
) -> Path:
    """Make a run whose predictions record their images and models; return its file."""

    def served(run: Identity) -> Identity:
        return replace(run, answering=Answering("chat completions", checkpoint=asked))

    path = world.predict(model, name, speaking(name, 0.5, 4), change=served, folder=model)
    rows = json.loads(path.read_text())
    for row, who in zip(rows, answered_by or [asked] * len(rows), strict=True):
        row["image_sha256"] = json.dumps({f"{row['index'] // 2}.jpg": content})
        record = {"model": {"identifier": who}, "finish_reason": "stop"}
        row["extra_records"] = json.dumps({"findit": record})
    path.write_text(json.dumps(rows))
    write_score(score_file(path), path)
    return path


def test_every_command_refuses_other_images(world: World, capsys: Capsys) -> None:
    a = recorded(world, "A")
    b = recorded(world, "B", content="2" * 16)
    out = world.folder / "board"
    assert main(["leaderboard", str(world.runs), "--out", str(out)]) == 0
    assert "B FindIt_Pascal_xyxy_json" in capsys.readouterr().out
    for name in ("not_compared.csv", "leaderboard.md"):
        assert "other images: 12 of 12 rows" in (out / name).read_text(), name
    for left, right in ((a, b), (a.parent, b.parent)):
        assert main(["compare", str(left), str(right)]) == 2
        assert "other images: 12 of 12 rows" in capsys.readouterr().err
    assert main(["errors", str(a), "--against", str(b)]) == 2
    page = world.folder / "report.html"
    assert main(["report", str(world.runs), "--out", str(page)]) == 0
    assert "other images: 12 of 12 rows" in page.read_text()
    with pytest.raises(ValueError, match="other images: 12 of 12 rows"):
        api_compare("A", "B", within=world.runs)


def test_images_are_read_from_the_details_and_shared(world: World) -> None:
    paths = [recorded(world, model) for model in "AB"]
    first, second = load_runs(paths)
    assert first.provenance.shown[4] == {"2.jpg": "1" * 16}
    assert first.provenance.shown is second.provenance.shown


def test_copies_of_a_run_keep_what_it_showed(world: World, tmp_path: Path) -> None:
    """Without it they would pass for runs of version 1.0."""
    run = load_run(RunFiles(recorded(world, "A")).provenance)
    copy_run(run, tmp_path / "copy", private_of([run]))
    copy = load_run(RunFiles(tmp_path / "copy" / run.path.name).provenance)
    again = score_file(tmp_path / "copy" / run.path.name)
    consensus = write_consensus([run, run])
    for each in (copy, consensus):
        assert each.provenance.shown == run.provenance.shown
    assert [row.details["image_sha256"] for row in again.rows] == [*run.provenance.shown.values()]


# --- the model that answered ----------------------------------------------------------------------


def lines(board: Board, title: str) -> list[str]:
    from vlmeval_findit.leaderboard import notes_of

    return [line for note in notes_of(board) if note.title == title for line in note.lines]


MIXED = ["gpt-x-2026-01"] * 5 + ["gpt-x-2026-09"] * 7
NOTE = "answered by 2 models: 5 rows by gpt-x-2026-01, 7 rows by gpt-x-2026-09"


@pytest.mark.parametrize(
    ("answered_by", "note"),
    few_fast(
        [
            (MIXED, NOTE),
            (["small-3b"] * ROWS, "answered by small-3b; asked was gpt-x"),
            (["openai/gpt-x-2026-01"] * ROWS, None),
        ],
        1,
    ),
)
def test_every_output_says_which_model_answered(
    world: World, capsys: Capsys, answered_by: list[str], note: str | None
) -> None:
    path = recorded(world, "A", answered_by=answered_by)
    other = recorded(world, "B")
    out = world.folder / "board"
    page = world.folder / "report.html"
    assert main(["score", str(path)]) == 0
    said = [capsys.readouterr().out]
    assert main(["leaderboard", str(world.runs), "--out", str(out)]) == 0
    said.append(capsys.readouterr().out)
    assert main(["compare", str(path), str(other)]) == 0
    said.append(capsys.readouterr().out)
    assert main(["report", str(world.runs), "--out", str(page)]) == 0
    said += [file.read_text() for file in (page, *out.glob("leaderboard.[mjt]*"))]
    assert len(said) == 7
    for text in said:
        words = " ".join(text.split())
        assert "answered by" not in words if note is None else note in words.replace("\\_", "_")


def test_runs_of_one_name_that_other_models_answered_contradict(world: World) -> None:
    first, second = (one(world, "M", folder=folder, change=dated) for folder in ("old", "new"))
    first, second = answered(first, "gpt-x-2026-01"), answered(second, "gpt-x-2026-09")
    board = make_board([first, second, one(world, "Poor")])
    assert board.models == ("Poor",)
    assert all(
        "the model that answered (here gpt-x-2026-0" in each.reason for each in board.excluded
    )
    same = answered(replace(second), "gpt-x-2026-01")
    assert make_board([first, same]).models == ("M",)


def dated(run: Identity) -> Identity:
    return replace(run, asked_at="2026-01-01T00:00:00+00:00")


def answered(run: Run, *names: str) -> Run:
    models = tuple({"identifier": name, "rows": 3} for name in names)
    return replace(run, provenance=replace(run.provenance, answered_by=models))


def test_a_mean_over_datasets_that_other_models_answered_is_noted(world: World) -> None:
    names: Mapping[str, str] = {JSON: "gpt-x-2026-01", TEXT: "gpt-x-2026-09"}
    mixed = [answered(one(world, "M", name), who) for name, who in names.items()]
    (line,) = lines(make_board(mixed), "Answered by")
    assert line == ("M: its runs were answered by gpt-x-2026-01 (1 run), gpt-x-2026-09 (1 run)")


def test_provenances_of_1_0_are_read(world: World) -> None:
    path = recorded(world, "A", answered_by=MIXED)
    file = RunFiles(path).provenance
    values = json.loads(file.read_text())
    assert [each["rows"] for each in values["answered_by"]] == [5, 7]
    for each in values["answered_by"]:
        del each["rows"]
    file.write_text(json.dumps(values))
    note = load_run(file).provenance.answered_note
    assert note == "answered by 2 models: gpt-x-2026-01, gpt-x-2026-09"
