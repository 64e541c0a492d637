"""Scored runs as data frames, and two of them held against each other."""

from __future__ import annotations

from pathlib import Path

import pytest
from scored_runs import World, failing, speaking, world

import vlmeval_findit as findit
from vlmeval_findit.runs.intervals import intervals
from vlmeval_findit.runs.scored_run import RunError

pytest.importorskip("pandas")

__all__ = ["world"]

JSON = "FindIt_Pascal_xyxy_json_bbox_2d"
SEVERAL = "FindIt_Pascal_multilabel_xyxy_text"


def test_one_row_a_run_one_row_a_query(world: World) -> None:
    good = world.run("Good", JSON, speaking(JSON, 0.9))
    world.run("Fails", JSON, failing)
    world.run("Good", SEVERAL, speaking(SEVERAL, 0.5))
    runs = findit.load_runs(world.runs)
    assert [run.model for run in runs] == ["Fails", "Good", "Good"]
    table = runs.frame().set_index(["model", "dataset"])
    row = table.loc["Good", JSON]
    for metric, value in good.figures.items():
        if value is not None:
            assert row[metric] == value
    bounds = intervals(good)["F1@0.5"]
    assert bounds is not None
    assert (row["F1@0.5 low"], row["F1@0.5 high"]) == (bounds.low, bounds.high)
    assert table.loc["Fails", JSON]["failed calls"] == 4
    queries = runs.queries()
    assert len(queries) == 12 + 12 + 5
    of_good = queries[(queries.model == "Good") & (queries.dataset == JSON)]
    sums = of_good[["tp", "n_pred", "n_gt"]].sum()
    assert 200 * sums.tp / (sums.n_pred + sums.n_gt) == pytest.approx(good.figures["F1@0.5"])
    first = of_good.iloc[0]
    assert Path(first.image).is_absolute()
    assert Path(first.image).is_file()
    assert "JSON" in first.prompt
    assert first.truth == [list(box) for box in first.truth]
    assert first.reply.startswith("[")
    assert not of_good.score.eq(100).all()
    assert (of_good.errors.str.len() > 0).equals(of_good.score < 100)
    failed = queries[queries.model == "Fails"]
    assert failed[failed.failed].reply.isna().all()
    # Failed, no box and boxes are told apart, and what a failed call left unanswered is no miss.
    assert failed.failed.sum() == 4
    assert set(failed[failed.failed].reason) == {"failed call"}
    assert failed[failed.failed].n_gt.sum() == 0
    assert queries.score.between(0, 100).all()


def test_a_part_of_runs_is_runs(world: World) -> None:
    for name in (JSON, SEVERAL):
        world.run("Good", name, speaking(name, 0.9))
    runs = findit.load_runs([world.runs, str(world.runs)])
    assert len(runs) == 2
    assert len(runs[:1].frame()) == 1
    assert runs[:0].frame().empty
    assert runs[:0].queries().empty


def test_two_runs_are_compared(world: World) -> None:
    world.run("Good", JSON, speaking(JSON, 1.0))
    world.run("Poor", JSON, speaking(JSON, 0.2))
    good, poor = findit.load_runs(world.runs)
    found = findit.compare(good, poor)["F1@0.5"]
    figures = [run.figures["F1@0.5"] or 0.0 for run in (good, poor)]
    assert found.value == pytest.approx(figures[0] - figures[1])
    assert found.significant
    whole = findit.compare(good, poor)
    assert whole.direction == f"Good on {JSON} minus Poor on {JSON}"
    lines = repr(whole).splitlines()
    assert lines[0] == whole.direction
    assert f"{found.value:+.1f}" in next(line for line in lines if line.startswith("F1@0.5  "))
    assert whole.table.frame()["A - B low"][0] > 0
    assert findit.compare(poor, good)["F1@0.5"].value == -found.value
    assert findit.compare(good, good)["F1@0.5"].value == 0


def test_runs_are_written_in_a_line(world: World) -> None:
    """0.2 wrote every row of every run: 645,762 characters."""
    for model in "ABCDEFG":
        world.run(model, JSON, speaking(JSON, 0.5))
    runs = findit.load_runs(world.runs)
    assert repr(runs).startswith(f"Runs(7: Run(A on {JSON}, ")
    assert repr(runs).endswith(", …)")
    assert len(repr(runs)) < 500


def test_runs_are_compared_by_their_paths(world: World, tmp_path: Path) -> None:
    one, other = (
        world.run(name, JSON, how) for name, how in (("A", speaking(JSON, 1)), ("B", failing))
    )
    runs = findit.load_runs(world.runs)
    expected = findit.compare(runs[0], runs[1])
    assert findit.compare(one.path, str(other.path)) == expected
    assert findit.compare(findit.load_runs(one.path), other.path) == expected
    with pytest.raises(ValueError, match="'A' is no file or folder here, and no run in outputs"):
        findit.compare("A", "B")
    assert findit.compare("A", f"B_{JSON}", within=world.runs) == expected
    with pytest.raises(ValueError, match=rf"'B_{JSON[:-1]}' is .*: did you mean B_{JSON}\?"):
        findit.compare("A", f"B_{JSON[:-1]}", within=world.runs)
    with pytest.raises(ValueError, match=r"2 runs where one is compared: .*Run\(A on"):
        findit.compare(world.runs, other.path)
    with pytest.raises(ValueError, match="int is no run"):
        findit.compare(3, other.path)  # type: ignore[arg-type]


def test_what_is_no_run(world: World, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        findit.load_runs(tmp_path / "nowhere")
    with pytest.raises(RunError, match="no scored run"):
        findit.load_runs([str(tmp_path)])
