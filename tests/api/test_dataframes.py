"""Scored runs as data frames, and the comparison of two runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from random_folders import make_folder
from review_files import Reviewer, write
from scored_runs import World, failing, speaking

import vlmeval_findit as findit
from vlmeval_findit.analysis import run_intervals
from vlmeval_findit.protocol import Answer, ReviewVerdict
from vlmeval_findit.scoring import RunError

pytest.importorskip("pandas")

JSON = "FindIt_Pascal_xyxy_json_bbox_2d"
SEVERAL = "FindIt_Pascal_multilabel_xyxy_text"


def test_a_row_for_each_run_and_for_each_query(world: World) -> None:
    good = world.run("Good", JSON, speaking(JSON, 0.9))
    world.run("Fails", JSON, failing)
    world.run("Good", SEVERAL, speaking(SEVERAL, 0.5))
    # A run that is named twice is there once.
    runs = findit.open_runs([world.runs, str(world.runs)])
    assert [run.model for run in runs] == ["Fails", "Good", "Good"]
    table = findit.load_scores(world.runs).set_index(["model", "dataset"])
    row = table.loc["Good", JSON]
    for metric, value in good.metric_values.items():
        if value is not None:
            assert row[metric] == value
    bounds = run_intervals(good)["F1@0.5"]
    assert bounds is not None
    assert (row["F1@0.5 low"], row["F1@0.5 high"]) == (bounds.low, bounds.high)
    assert table.loc["Fails", JSON]["failed calls"] == 4
    assert row["space"] == "grid1000 (recorded by the run)"
    assert row["digest"] == good.provenance.digest
    queries = findit.load_runs(world.runs)
    assert len(queries) == 12 + 12 + 5
    of_good = queries[(queries.model == "Good") & (queries.dataset == JSON)]
    sums = of_good[["tp", "n_pred", "n_gt"]].sum()
    assert 200 * sums.tp / (sums.n_pred + sums.n_gt) == pytest.approx(good.metric_values["F1@0.5"])
    first = of_good.iloc[0]
    assert Path(first.image).is_absolute()
    assert Path(first.image).is_file()
    assert "JSON" in first.prompt
    assert first.truth == [list(box) for box in first.truth]
    assert first.reply.startswith("[")
    assert first.hits == [iou >= 0.5 for iou in first.ious]
    assert len(first.boxes[0]) == 4
    assert (of_good.errors.str.len() > 0).equals(of_good.score < 100)
    # A failed call is no reply and no miss.
    failed = queries[queries.failed]
    assert (len(failed), {*failed.reason}, failed.n_gt.sum()) == (4, {"failed call"}, 0)
    assert failed.reply.isna().all()
    assert queries.score.between(0, 100).all()


@pytest.mark.parametrize("load", [findit.load_runs, findit.load_scores, findit.open_runs])
def test_paths_say_which_runs(load: Callable[[Any], Any], world: World) -> None:
    one = world.run("Good", JSON, speaking(JSON, 0.9))
    world.run("Poor", JSON, speaking(JSON, 0.2))
    assert len(load(world.runs)) == 2 * len(load(one.path)) > 0


def test_what_no_longer_exists_is_none_with_a_warning(world: World) -> None:
    of_json = world.run("Good", JSON, speaking(JSON, 0.9))
    world.run("Good", SEVERAL, speaking(SEVERAL, 0.9))
    (world.folder / "Pascal_multilabel.tsv").unlink()
    with pytest.warns(UserWarning, match=rf"Good on {SEVERAL}.*: no images, prompts, truths: "):
        queries = findit.load_runs(world.runs)
    gone = queries[queries.dataset == SEVERAL]
    assert len(gone) == 5
    assert gone[["image", "prompt", "truth", "drawn"]].isna().all(axis=None)
    assert gone.reply.notna().all()
    assert queries[queries.dataset == JSON].image.notna().all()
    picture = world.folder / "pictures" / "0.jpg"
    picture.unlink()
    with pytest.warns(UserWarning, match=f"2 rows without image in {picture.parent}"):
        queries = findit.load_runs(of_json.path)
    assert queries[queries.image.isna()]["index"].tolist() == [0, 1]
    assert queries.truth.notna().all()


def test_two_runs_are_compared(world: World) -> None:
    world.run("Good", JSON, speaking(JSON, 1.0))
    world.run("Poor", JSON, speaking(JSON, 0.2))
    good, poor = findit.open_runs(world.runs)
    whole = findit.compare(good, poor)
    row = whole.loc["F1@0.5"]
    a, b = (run.metric_values["F1@0.5"] or 0.0 for run in (good, poor))
    assert row[["A", "B"]].tolist() == [a, b]
    assert row["A - B"] == pytest.approx(a - b)
    assert 0 < row["A - B low"] < row["A - B"] < row["A - B high"]
    assert row["p"] < 0.05
    assert whole.columns.name == "Good minus Poor"
    assert findit.compare(poor, good).loc["F1@0.5", "A - B"] == -row["A - B"]
    same = findit.compare(good, good)
    assert same.loc["F1@0.5", "A - B"] == 0
    assert same.columns.name == f"{JSON} minus {JSON}"


def test_reviewed_scores_follow_the_others(world: World) -> None:
    good = world.run("Good", JSON, speaking(JSON, 1.0))
    poor = world.run("Poor", JSON, speaking(JSON, 0.2))
    reviewer = Reviewer(JSON)
    path = world.folder / "reviews.jsonl"
    write(path, reviewer.review(3, ReviewVerdict.MODEL, Answer(((5.0, 65.0, 45.0, 95.0),))))
    assert [run.model for run in findit.open_runs(world.runs, [path])] == ["Good", "Poor"] * 2
    scores = findit.load_scores(world.runs, reviews=path)
    columns = ["Pascal", "Pascal", *[scores.column[2]] * 2]
    assert scores.column.tolist() == columns
    assert scores.column[2].startswith("Pascal [reviewed ")
    queries = findit.load_runs(world.runs, reviews=[path])
    of_row = queries[(queries["index"] == 3) & (queries.model == "Good")]
    assert of_row.score.tolist() == [100, 0]
    assert of_row.truth.map(len).tolist() == [2, 1]
    assert of_row.dataset.tolist()[1].startswith(f"{JSON} [reviewed ")
    plain = findit.compare(good, poor).loc["Recall"]
    table = findit.compare(good, poor, reviews=path).loc["Recall"]
    assert plain["A"] == 100
    assert table["A"] == pytest.approx(100 * 22 / 23)


def test_metrics_over_different_queries_have_no_test(world: World) -> None:
    good = world.run("A", JSON, speaking(JSON, 1))
    fails = world.run("B", JSON, failing)
    with pytest.warns(UserWarning, match=r"failed calls \(A: 0, B: 4\)"):
        table = findit.compare(good, fails)
    untested = table.drop(index="F1@0.5 (failed calls as misses)")
    assert len(untested) > 4
    assert untested[["p", "A - B low", "A - B high"]].isna().all(axis=None)
    assert untested["A - B"].tolist() == (untested["A"] - untested["B"]).tolist()
    assert table["p"].iloc[0] < 0.05


def test_runs_are_compared_by_their_paths(world: World, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)  # Without a folder "outputs"
    run = world.run("A", JSON, speaking(JSON, 1))
    other = world.run("B", JSON, speaking(JSON, 0.2))
    runs = findit.open_runs(world.runs)
    expected = findit.compare(runs[0], runs[1])
    assert findit.compare(run.path, str(other.path)).equals(expected)
    with pytest.raises(
        ValueError, match="'A' is neither a file, nor a folder, nor a run in outputs"
    ):
        findit.compare("A", "B")
    assert findit.compare("A", f"B_{JSON}", within=world.runs).equals(expected)
    with pytest.raises(ValueError, match=rf"'B_{JSON[:-1]}' is .*: did you mean B_{JSON}\?"):
        findit.compare("A", f"B_{JSON[:-1]}", within=world.runs)
    with pytest.raises(ValueError, match=rf"2 runs, but one is needed: .*A_{JSON}"):
        findit.compare(world.runs, other.path)
    with pytest.raises(ValueError, match="int is not a run"):
        findit.compare(3, other.path)  # type: ignore[arg-type]


def test_what_is_no_run_says_what_to_type(world: World, tmp_path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"nowhere: does not exist.* make some with: .* demo"
    ):
        findit.load_runs(tmp_path / "nowhere")
    with pytest.raises(RunError, match=r"no scored run.* make some with: .* demo"):
        findit.load_runs([str(tmp_path)])
    (tmp_path / f"A_{JSON}.json").write_text("[]")
    with pytest.raises(RunError, match=rf"no scored run.* score {tmp_path}"):
        findit.load_scores(tmp_path)


def test_frames_are_kept_in_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two benchmarks, with costs, failed calls and reviews."""
    parquet = pytest.importorskip("pyarrow.parquet")
    import pandas as pd

    made = make_folder(tmp_path, 3, monkeypatch)
    queries = findit.load_runs(made.runs)
    assert len({*queries.dataset}) > 1
    for name, rows in queries.groupby("dataset"):
        path = tmp_path / f"{name}.parquet"
        rows.to_parquet(path)
        again = pd.read_parquet(path)
        assert list(again.reply) == list(rows.reply), name
        row = next(rows.itertuples())
        if row.image is not None and row.drawn:
            shown = findit.draw_answer(next(again.itertuples()))
            assert shown.tobytes() == findit.draw_answer(row).tobytes(), name
        assert parquet.read_schema(path).field("drawn").type.num_fields == 1
    findit.load_scores(made.runs).to_parquet(tmp_path / "scores.parquet")


def test_a_comparison_is_kept_in_parquet(world: World) -> None:
    pytest.importorskip("pyarrow")
    first = world.run("A", JSON, speaking(JSON, 0.9))
    second = world.run("B", JSON, speaking(JSON, 0.5))
    findit.compare(first, second).to_parquet(world.folder / "compare.parquet")
