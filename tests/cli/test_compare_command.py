"""``compare``: the metrics of two runs side by side, and the queries that a single run finds."""

from __future__ import annotations

import json
import shutil
import webbrowser
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scored_runs import CallResult, World, failing, query, speaking
from toy_benchmark import guessing, letters

import vlmeval_findit as findit
from vlmeval_findit.analysis import compare_runs
from vlmeval_findit.benchmarks.findit import FindItQuery
from vlmeval_findit.cli import main
from vlmeval_findit.protocol import FAILED_ANSWER
from vlmeval_findit.scoring import Run
from vlmeval_findit.statistics import TOO_FEW_IMAGES, WHICH_IMAGES_COUNT

__all__ = ["letters"]

JSON = "FindIt_Pascal_xyxy_json_bbox_2d"
TEXT = "FindIt_Pascal_xyxy_text"
CUT = "FindIt_PhraseCut_xyxy_text"


@pytest.mark.parametrize("left", ["FILE", "FOLDER=xyxy_json_bbox_2d"])
@pytest.mark.parametrize("right", ["FILE", "FOLDER=xyxy_text"])
def test_every_way_to_name_a_side_has_a_page(
    left: str, right: str, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [
        world.run("One", JSON, speaking(JSON, 1.0)),
        world.run("One", TEXT, speaking(TEXT, 0.3)),
    ]
    sides = [
        way.replace("FILE", str(run.path)).replace("FOLDER", str(run.path.parent))
        for way, run in zip((left, right), runs, strict=True)
    ]
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    page = tmp_path / "page.html"
    assert main(["compare", *sides, "--show", str(page)]) == 0
    assert opened == [page.as_uri()]
    assert "One" in page.read_text()


def test_every_metric_with_interval_p_and_queries(
    world: World,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    good = world.run("Good", JSON, speaking(JSON, 1.0))
    poor = world.run("Poor", TEXT, speaking(TEXT, 0.3, 25.0))
    out = tmp_path / "new" / "differences.json"
    page = tmp_path / "both.html"
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    flags = ["--json", str(out), "--show", str(page)]
    assert main(["compare", str(good.path), str(poor.path), *flags]) == 0
    assert opened == [page.as_uri()]
    assert all(model in page.read_text() for model in ("Good", "Poor"))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40
    assert lines[:2] == [f"A: Good on {JSON}", f"B: Poor on {TEXT}"]
    (written,) = json.loads(out.read_text())
    tests = compare_runs(good, poor)
    rows = {row["metric"]: row for row in written["metrics"]["rows"]}
    for name, row in rows.items():
        expected, cell = tests[name], row["A - B"]
        assert cell["value"] == pytest.approx(row["A"] - row["B"]) == expected.value
        assert cell["low"] <= cell["value"] <= cell["high"]
        assert row["p"] == expected.p_value
        (line,) = (line for line in lines if line.startswith(f"{name}  "))
        assert len(line) <= 80
        assert f"{cell['value']:+.1f}" in line
    queries = written["queries"]
    assert (queries["found by neither"], queries["found by b only"]) == ([], [])
    both = queries["found by both"]
    only = queries["found by a only"]
    assert sorted(both + only) == [row.index for row in good.rows]
    shown = "\n".join(lines)
    assert f"by both {len(both)}, only by A {len(only)}, only by B 0, by neither 0" in shown
    assert f"  only by A: index {only[0]}" in shown


def test_a_metric_without_a_test_says_why(
    world: World, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Only the first three answers have boxes, and precision divides by boxes."""
    right = speaking(JSON, 1.0)
    good = world.run("Good", JSON, right)
    shy = world.run("Shy", JSON, lambda asked, rng: right(asked, rng) if asked.index < 3 else "[]")
    out = tmp_path / "differences.json"
    assert main(["compare", str(good.path), str(shy.path), "--json", str(out)]) == 0
    (written,) = json.loads(out.read_text())
    printed = capsys.readouterr().out
    p_values = {row["metric"]: row["p"] for row in written["metrics"]["rows"]}
    assert p_values["Precision"] is None
    assert p_values["Recall"] is not None
    why = f"no test, no interval, as {TOO_FEW_IMAGES}: {WHICH_IMAGES_COUNT}"
    assert f"–: {why}." in " ".join(printed.split())
    (signs,) = (each for each in written["metrics"]["notes"] if each["title"] == "Signs")
    assert f"–: {why}" in signs["lines"]


def test_folders_are_paired_by_dataset(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.table("PhraseCut", [query(i, f"{i}.jpg") for i in range(6)])
    for model, rate in (("One", 1.0), ("Other", 0.5)):
        for name in (TEXT, CUT):
            world.run(model, name, speaking(name, rate))
    folders = [_moved(world, model) for model in ("One", "Other")]
    out = world.folder / "folders.json"
    assert main(["compare", *folders, "--json", str(out)]) == 0
    shown = capsys.readouterr().out
    *of_pairs, mean = json.loads(out.read_text("utf-8"))
    assert [each["a"]["dataset"] for each in of_pairs] == [TEXT, CUT]
    assert mean["b"]["dataset"] == "mean of 2"
    assert (mean["b"]["model"], mean["b"]["datasets"]) == ("Other", ["Pascal", "PhraseCut"])
    (row,) = mean["metrics"]["rows"]
    values = [each["metrics"]["rows"][0]["A"] for each in of_pairs]
    assert row["A"] == pytest.approx(sum(values) / 2)
    assert "A: One; B: Other. F1@0.5." in shown
    names = [line.split("  ")[0] for line in shown.splitlines()[3:6]]
    assert names == ["mean of 2", "Pascal", "PhraseCut"]
    world.run("One", JSON, speaking(JSON, 0.5))
    _moved(world, "One")
    assert main(["compare", *folders]) == 2
    assert "are both of Pascal: name the file" in capsys.readouterr().err


@pytest.mark.parametrize("side", [0, 1])
def test_a_copy_of_a_run_is_left_out_by_name(
    side: int, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """A copy of a run in the folder is left out by name, on whichever side it is."""
    for model, rate in (("One", 1.0), ("Other", 0.5)):
        world.run(model, TEXT, speaking(TEXT, rate))
    folders = [_moved(world, model) for model in ("One", "Other")]
    assert main(["compare", *folders]) == 0
    alone = capsys.readouterr().out
    shutil.copytree(folders[side], Path(folders[side]) / "copy")
    assert main(["compare", *folders]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"{'AB'[side]}: left out: {folders[side]}" in said
    assert "the same predictions as" in said
    assert " ".join(alone.split()) in said


def test_runs_that_contradict_each_other_are_not_compared(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    for rate, folder in ((1.0, "a"), (0.5, "b")):
        world.predict(
            "One",
            TEXT,
            speaking(TEXT, rate),
            change=lambda run: replace(run, asked_at=None),
            folder=f"both/{folder}",
        )
    other = world.run("Other", TEXT, speaking(TEXT, 0.5))
    assert main(["compare", str(world.runs / "both"), str(other.path)]) == 2
    assert "is not recorded whether" in capsys.readouterr().err


def test_each_row_of_folders_has_its_models_and_its_metric(
    letters: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two models change places between benchmarks, and a third meets one of them."""
    letters.table("PhraseCut", [query(i, f"{i}.jpg") for i in range(6)])
    sides = {"a": ("One", "Other", "One"), "b": ("Other", "One", "Third")}
    names = (TEXT, "Letters_Zoo_plain", CUT)
    for folder, models in sides.items():
        for model, name in zip(models, names, strict=True):
            answer = guessing(0.7) if name.startswith("Letters") else speaking(name, 0.6, 20.0)
            letters.predict(model, name, answer, folder=folder)
    out = letters.folder / "o.json"
    folders = [str(letters.runs / side) for side in sides]
    assert main(["compare", *folders, "--json", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    titles = [line for line in lines if line.startswith("A: ")]
    assert titles == [
        "A: One; B: Other. F1@0.5.",
        "A: One; B: Third. F1@0.5.",
        "A: Other; B: One. Accuracy.",
    ]
    written = {each["a"]["dataset"]: each for each in json.loads(out.read_text())}
    for title, dataset, name in zip(
        titles, ("Pascal", "PhraseCut", "Zoo"), (TEXT, CUT, "Letters_Zoo_plain"), strict=True
    ):
        below = lines[lines.index(title) :]
        row = next(line for line in below if line.startswith(f"{dataset} "))
        of_pair = written[name]
        assert title.startswith(f"A: {of_pair['a']['model']}; B: {of_pair['b']['model']}.")
        values = of_pair["metrics"]["rows"][0]
        assert row.split()[1:3] == [f"{values['A']:.1f}", f"{values['B']:.1f}"]


def beside(run: Run, way: str, world: World) -> Path:
    """Return another path to the files of a run."""
    folder = world.folder / way
    folder.mkdir()
    for file in world.runs.glob("One*"):
        (folder / file.name).symlink_to(file) if way == "link" else shutil.copy(file, folder)
    return folder / run.path.name


def said_of_equal_answers(shown: str) -> list[str]:
    return [line for line in shown.splitlines() if line.startswith("A and B are")]


@pytest.mark.parametrize("way", ["itself", "link", "copy"])
@pytest.mark.parametrize("fails", [False, True])
def test_a_run_and_itself_have_no_interval(
    fails: bool, way: str, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    run = world.run("One", JSON, failing if fails else speaking(JSON, 0.7))
    other = run.path if way == "itself" else beside(run, way, world)
    out = world.folder / "compared.json"
    assert main(["compare", str(run.path), str(other), "--json", str(out)]) == 0
    shown = capsys.readouterr().out
    table = findit.compare(run.path, other)
    said = "A and B are the same run: every reply is equal"
    assert said_of_equal_answers(shown) == [f"{said}."]
    assert f"–: {said}." in shown
    assert "Intervals" not in shown
    assert "+0.0 -" not in shown
    assert [pair["same answers"] for pair in json.loads(out.read_text())] == [said]
    assert set(table["A - B"]) == {0.0}
    assert table[["A - B low", "A - B high", "p"]].isna().all(axis=None)


def test_two_models_with_equal_replies_are_tested(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [world.run(name, JSON, speaking(JSON, 0.7)).path for name in ("One", "Two")]
    out = world.folder / "compared.json"
    assert main(["compare", *map(str, paths), "--json", str(out)]) == 0
    shown = capsys.readouterr().out
    said = "A and B are two runs, and every reply is equal"
    assert said_of_equal_answers(shown) == [f"{said}."]
    assert "Intervals" in shown
    assert [pair["same answers"] for pair in json.loads(out.read_text())] == [said]
    assert findit.compare(*paths)["p"].notna().all()


@pytest.mark.parametrize("fails", [False, True])
def test_one_file_in_two_spaces_is_said_to_be_one(
    fails: bool, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    run = world.run("One", JSON, failing if fails else speaking(JSON, 0.7))
    other = beside(run, "copy", world)
    assert main(["score", str(other), "--space", "unit", "--force"]) in (0, 1)
    capsys.readouterr()
    marked = next(
        path for path in other.parent.glob("One*_provenance.*json") if "unit" in path.name
    )
    out = world.folder / "compared.json"
    assert main(["compare", str(run.path), str(marked), "--json", str(out)]) == 0
    shown = capsys.readouterr().out
    said = "A and B are one file of answers, scored in two ways: only the scoring differs"
    assert said_of_equal_answers(shown) == [f"{said}."]
    assert [pair["same answers"] for pair in json.loads(out.read_text())] == [said]


def test_replies_that_differ_in_one_row_are_not_called_equal(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [world.run("One", JSON, speaking(JSON, 0.7)).path]
    paths.append(world.run("Two", JSON, speaking(JSON, 0.6)).path)
    out = world.folder / "compared.json"
    assert main(["compare", *map(str, paths), "--json", str(out)]) == 0
    assert said_of_equal_answers(capsys.readouterr().out) == []
    assert [pair["same answers"] for pair in json.loads(out.read_text())] == [None]


@pytest.mark.parametrize(
    ("failed", "empty"),
    [
        ({"Pascal": 6}, {}),  # One dataset of one model
        ({"Pascal": 6, "PhraseCut": 3}, {}),
        ({"Pascal": 11, "PhraseCut": 1}, {"PhraseCut": 2}),  # All but one of a dataset
    ],
)
def test_of_folders_failed_calls_are_misses_and_are_counted(
    world: World,
    capsys: pytest.CaptureFixture[str],
    failed: dict[str, int],
    empty: dict[str, int],
) -> None:
    """Equal boxes are equally good, whether the other queries are unanswered or answered []."""
    world.table("PhraseCut", [query(i, f"{i}.jpg") for i in range(6)])
    for name in (TEXT, CUT):
        of = name.split("_")[1]
        lacking = failed.get(of, 0), empty.get(of, 0)
        world.run("Down", name, _without(name, "failed", *lacking))
        world.run("Steady", name, _without(name, "empty", *lacking))
    folders = [_moved(world, model) for model in ("Down", "Steady")]
    out = world.folder / "o.json"
    assert main(["compare", *folders, "--json", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "A: Down; B: Steady. F1@0.5 (failed calls as misses)."
    assert lines[1] == f"A: {sum(failed.values())} of 18 calls failed"
    (header,) = (line for line in lines if line.startswith("dataset"))
    assert header.split()[-4:] == ["A", "failed", "B", "failed"]
    for dataset in ("Pascal", "PhraseCut"):
        (line,) = (line for line in lines if line.startswith(dataset))
        assert line.split()[-3:] == ["1.000", str(failed.get(dataset, 0)), "0"]
        assert line.split()[3] == "+0.0"
    *of_pairs, mean = json.loads(out.read_text())
    assert mean["a"]["failed calls"] == sum(failed.values())
    for written in of_pairs:
        of = written["a"]["dataset"].split("_")[1]
        counts = written["a"]["failed calls"], written["b"]["failed calls"]
        assert counts == (failed.get(of, 0), 0)
        rows = {row["metric"]: row for row in written["metrics"]["rows"]}
        tested = {name for name, row in rows.items() if row["p"] is not None}
        whole = {"F1@0.5 (failed calls as misses)"}
        assert tested == (whole if failed.get(of) else {*rows}), of


def _without(name: str, how: str, first: int, then: int) -> CallResult:
    """Return a model that finds all but the first queries: calls fail, or have no box."""
    finds = speaking(name, 1.0)

    def answer(query: FindItQuery, generator: np.random.Generator) -> str:
        if query.index < first:
            return f"{FAILED_ANSWER} via API." if how == "failed" else "[]"
        return "[]" if query.index < first + then else finds(query, generator)

    return answer


def _moved(world: World, model: str) -> str:
    folder = world.folder / model
    folder.mkdir(exist_ok=True)
    for path in world.runs.glob(f"{model}_*"):
        path.rename(folder / path.name)
    return str(folder)


@pytest.mark.parametrize("name", [JSON, TEXT])
def test_two_datasets_of_a_model_are_refused(
    name: str, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever formats they are in: two formats of one dataset are tested together."""
    world.table("SVG", [query(at) for at in range(12)])
    other = "FindIt_SVG_xyxy_text"
    paths = [world.predict("One", each, speaking(each, 0.5)) for each in (name, other)]
    assert main(["compare", *map(str, paths)]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_failed_calls_are_counted_apart_and_other_rows_are_refused(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    good = world.run("Good", JSON, speaking(JSON, 1.0))
    fails = world.run("Fails", JSON, failing)
    assert main(["compare", str(good.path), str(fails.path)]) == 0
    shown = capsys.readouterr().out
    assert f"B: Fails on {JSON}; {fails.failed} calls failed" in shown
    line = next(line for line in shown.splitlines() if line.startswith("Found"))
    counts = [int(part.split()[-1]) for part in line.split(": ")[1].split(", ")]
    assert sum(counts) == len(good.rows) - fails.failed < len(good.rows)
    assert "≠: over answered calls, and A and B answered different queries: no test" in shown
    assert shown.count("≠") == 1 + len(compare_runs(good, fails)) - 1
    part = world.run("Part", JSON, speaking(JSON, 1.0), rows=4)
    assert main(["compare", str(good.path), str(part.path)]) == 2
    assert "only runs over the same rows can be compared" in capsys.readouterr().err
    assert main(["compare", str(good.path), str(world.folder / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_detect_says_what_images_show_and_need(
    world: World, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    world.table("Pascal", [query(i, f"{i}.jpg") for i in range(30)])
    paths = []
    for model, rate in (("One", 0.9), ("Two", 0.5)):
        paths.append(str(world.predict(model, JSON, speaking(JSON, rate), rows=20)))
    out = tmp_path / "sizes.json"
    assert main(["compare", *paths, "--detect", "2.5", "--json", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "Images that a difference of 2.5 points needs:" in shown
    assert "with a chance of 80 %" in shown
    *_, written = json.loads(out.read_text())
    (row,) = written["detect"]["rows"]
    assert row["dataset"] == "Pascal"
    assert row["whole set"] == 30
    assert 0 < row["it shows"]["value"] < row["they show"]["value"]
    assert row["needed"]["low"] <= row["needed"]["value"] <= row["needed"]["high"]
    assert row["needed"]["value"] > row["images"] == 20


def test_detect_of_folders_has_their_mean_first(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.table("PhraseCut", [query(i, f"{i}.jpg") for i in range(6)])
    for model, rate in (("One", 0.9), ("Other", 0.5)):
        for name in (TEXT, CUT):
            world.run(model, name, speaking(name, rate))
    folders = [_moved(world, model) for model in ("One", "Other")]
    out = world.folder / "folders.json"
    assert main(["compare", *folders, "--detect", "5", "--json", str(out)]) == 0
    assert "Images that a difference of 5 points needs:" in capsys.readouterr().out
    rows = json.loads(out.read_text())[-1]["detect"]["rows"]
    assert [row["dataset"] for row in rows] == ["mean of 2", "Pascal", "PhraseCut"]
    assert "whole set" not in rows[0]


def test_detect_of_one_run_shows_nothing(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(world.run("One", JSON, speaking(JSON, 0.7)).path)
    assert main(["compare", path, path, "--detect", "2"]) == 0
    assert "–: too few images, one run twice" in capsys.readouterr().out
