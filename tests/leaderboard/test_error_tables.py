"""Lost points of scored runs: ``errors``, the leaderboard's table, runs of older versions."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from few_fast import few_fast
from openpyxl import load_workbook
from scored_runs import World, failing, query, saying, speaking
from toy_benchmark import LETTERS, guessing, letters

from vlmeval_findit.analysis import StatisticsError, compare_errors, errors_by_slice, errors_of
from vlmeval_findit.benchmarks import benchmark_of, benchmarks
from vlmeval_findit.boxes import Truth
from vlmeval_findit.cli import main
from vlmeval_findit.data import load_dataset
from vlmeval_findit.leaderboard import INTERVAL, errors_table, lost_table, make_board, write_board
from vlmeval_findit.protocol import (
    FAILED_ANSWER,
    Metric,
    Reply,
    ReplyRecord,
    Settings,
    lost_key,
    with_events,
)
from vlmeval_findit.scoring import Run
from vlmeval_findit.statistics import (
    INTERVALS_ALONE,
    clustered_sums,
    estimate_errors,
    estimate_metrics,
)

__all__ = ["letters"]

NAME = "FindIt_Pascal_xyxy_json_bbox_2d"
TEXT = "FindIt_Pascal_xyxy_text"
MANY = "FindIt_Pascal_multilabel_xyxy_json"
PLAIN = "Letters_Zoo_plain"


def by_row(*answers: str) -> Any:
    """Return a model that answers every row with the next of these texts, in turn."""
    return lambda query, generator: answers[query.index % len(answers)]


ODD = by_row(
    "[]",
    "no idea",
    f"{FAILED_ANSWER} via API.",
    '[{"bbox_2d": [100, 100, 300, 500]}, {"bbox_2d": [900, 900, 999, 999]}]',
    '[{"bbox_2d": ["a", 1, 2, 3]}]',
)


def events(run: Run) -> dict[str, float]:
    return {cost.error_type.name: cost.events for cost in errors_of(run) if cost.events}


def points(run: Run) -> dict[str, float]:
    return {cost.error_type.name: cost.points for cost in errors_of(run) if cost.events}


def lost_points(run: Run) -> float:
    return 100 - (run.benchmark.headline_counting_failures.value(run.sums) or 0)


# --- a run ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [NAME, MANY])
def test_points_add_up_to_the_lost_score(world: World, name: str) -> None:
    for at, answer in enumerate((speaking(name, 0.6, 12.0), ODD, failing, speaking(name, 1.0))):
        run = world.run(f"Model{at}", name, answer)
        costs = errors_of(run)
        assert sum(cost.points for cost in costs) == pytest.approx(lost_points(run))
        for cost in costs:
            assert cost.interval is not None
            assert cost.interval.low <= cost.points <= cost.interval.high
            assert (cost.points > 0) == (cost.events > 0)
        # So do those of its slices.
        for by in ("size", "objects", "label"):
            slices = errors_by_slice(run, by)
            for cost in costs:
                key = cost.error_type.key
                assert sum(s.events.get(key, 0) for s in slices) == pytest.approx(cost.events)
                assert sum(s.points.get(key, 0) for s in slices) == pytest.approx(cost.points)
            assert [s.total for s in slices] == sorted((s.total for s in slices), reverse=True)


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        (TEXT, "I look at the picture and", "truncated"),
        (NAME, '[{"bbox_2d": [100, 100, 300, 600]}, {"bb', "truncated"),
        # The list is complete: the text after it was cut off.
        (NAME, '```json\n[{"bbox_2d": [100, 100, 300, 600]}]\n```\nSo', "missed"),
    ],
)
def test_errors_of_a_cut_reply(world: World, name: str, text: str, kind: str) -> None:
    world.table("Pascal", [query(0, boxes=[(20, 10, 60, 60), (120, 20, 180, 90)])])
    reply = Reply(0, text, ReplyRecord(finish_reason="length"))
    settings = Settings(space={"kind": "grid1000"})
    batch = benchmark_of(name).score_batch("Model", load_dataset(name), [reply], settings, None)
    (row,) = batch.rows
    assert {e["kind"] for e in row.details["errors"] if e["object"] == 1} == {kind}


@pytest.mark.parametrize(
    ("objects", "note"),
    [
        ((1, 2, 3, 1), ""),
        ((2, 1, 1, 1), "2 failed calls about 3 objects: each object is an event"),
        ((3, 1), "1 failed call about 3 objects: each object is an event"),
    ],
)
def test_it_is_said_what_events_of_failed_calls_are(
    objects: tuple[int, ...], note: str, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    boxes = [(20, 10, 60, 60), (120, 20, 180, 90), (20, 70, 60, 95)]
    queries = [query(i, f"{i}.jpg", boxes=boxes[:count]) for i, count in enumerate(objects)]
    world.table("Pascal", queries)
    run = world.run("Model", NAME, failing)
    assert main(["errors", str(run.path)]) == 0
    said = capsys.readouterr().out
    assert f"failed call  {sum(objects[::3])}" in re.sub(" {2,}", "  ", said)
    assert ("each object is an event" in said) == bool(note)
    assert note in said


def test_queries_with_nothing_to_find(world: World, capsys) -> None:
    """As most of D3: no box is right, a box is wrong, and so is an unreadable reply."""
    empty = [replace(query(i, f"{i}.jpg"), truth=Truth((), ())) for i in range(6)]
    world.table("Pascal", [*empty[:5], query(5, "5.jpg")])
    box = '[{"bbox_2d": [100, 100, 300, 500]}]'
    run = world.run(
        "Model", NAME, by_row("[]", box, "no such thing", f"{FAILED_ANSWER} via API.", "[]")
    )
    assert events(run) == {"false alarm": 1, "nothing found": 2}
    assert sum(points(run).values()) == pytest.approx(100)
    world.table("Pascal", empty)
    run = world.run("Model", NAME, saying("[]"))
    assert points(run) == {}
    assert main(["errors", str(run.path)]) == 0
    assert "nothing is lost" in capsys.readouterr().out


# --- influence ------------------------------------------------------------------------------------


def test_the_influence_of_errors_is_minus_that_of_the_score(letters: World) -> None:
    run = letters.run("Model", PLAIN, guessing(0.6))
    counted = clustered_sums(with_events(LETTERS.errors, run.rows), "Letters")
    estimate = estimate_errors(LETTERS.errors, counted)
    score = estimate_metrics(
        [LETTERS.headline_counting_failures], clustered_sums(run.rows, "Letters")
    )
    assert 1 - estimate.values.sum() == pytest.approx(score.values[0])
    assert estimate.influence.sum(axis=1) == pytest.approx(-score.influence[:, 0], rel=0.02)
    assert (estimate.counted == score.counted).all()


def test_a_mean_over_slices_has_error_types_too(letters: World, monkeypatch) -> None:
    over = Metric("Mean", {"right": 1}, {"asked": 1}, over="animal")
    monkeypatch.setattr(type(LETTERS), "headline_counting_failures", over)
    run = letters.run("Model", PLAIN, guessing(0.6))
    assert 0 < sum(points(run).values()) == pytest.approx(lost_points(run))
    assert all(cost.interval for cost in errors_of(run))


def test_too_few_pictures_have_no_interval(world: World) -> None:
    world.table("Pascal", [query(i, f"{i // 2}.jpg") for i in range(6)])
    run = world.run("Model", NAME, ODD)
    other = world.run("Other", NAME, speaking(NAME, 0.5))
    assert {cost.interval for cost in errors_of(run)} == {None}
    assert {(d.p_value, d.interval) for d in compare_errors(run, other).values()} == {(None, None)}


def test_intervals_cover_the_points_of_all_pictures(world: World) -> None:
    """At least nine in ten intervals of 100 samples of pictures contain the points of all."""
    generator = np.random.default_rng(5)
    world.table("Pascal", [query(i, f"{i // 2}.jpg") for i in range(400)])
    run = world.run("Model", NAME, speaking(NAME, 0.6, 25.0))
    true = points(run)
    by_picture: dict[str, list[Any]] = {}
    for row in run.rows:
        by_picture.setdefault(row.source, []).append(row)
    covered = dict.fromkeys(true, 0)
    for _ in range(100):
        drawn = enumerate(generator.choice(list(by_picture), 50))
        rows = [replace(row, source=f"{at}") for at, name in drawn for row in by_picture[name]]
        for cost in errors_of(replace(run, rows=tuple(rows))):
            name, bounds = cost.error_type.name, cost.interval
            if name in true and bounds is not None:
                covered[name] += bounds.low <= true[name] <= bounds.high
    assert set(covered) >= {"localisation", "missed"}
    assert all(count >= 90 for count in covered.values()), covered


# --- pairs and slices -----------------------------------------------------------------------------


def test_two_runs_by_error_type(world: World) -> None:
    run = world.run("One", NAME, speaking(NAME, 0.9, 12.0))
    other = world.run("Other", TEXT, failing)
    differences = compare_errors(run, other)
    values = {key: difference.value for key, difference in differences.items()}
    assert sum(values.values()) == pytest.approx(lost_points(run) - lost_points(other))
    back = compare_errors(other, run)
    assert {key: -difference.value for key, difference in back.items()} == pytest.approx(values)
    failed = differences[lost_key("failed call")]
    assert failed.interval is not None
    assert failed.interval.low < failed.value < failed.interval.high < -failed.value
    assert all(d.corrected >= d.p_value for d in differences.values())  # type: ignore[operator]
    assert {(d.value, d.p_value) for d in compare_errors(run, run).values()} == {(0.0, 1.0)}


def test_runs_that_cannot_be_compared_are_refused(letters: World) -> None:
    run = letters.run("One", NAME, ODD)
    short = letters.run("Short", NAME, ODD, rows=8)
    with pytest.raises(StatisticsError, match="only runs over the same rows"):
        compare_errors(run, short)
    # The same rows of the same pictures, but other objects.
    letters.table("Pascal", [query(i, f"{i}.jpg") for i in range(5)])
    single = letters.run("One", NAME, ODD)
    many = letters.run("One", MANY, ODD)
    for other in (run, many, letters.run("One", PLAIN, guessing(0.5))):
        with pytest.raises(StatisticsError, match="only runs of one dataset over one table"):
            compare_errors(single, other)


def test_slices_are_of_single_objects_or_of_rows(letters: World) -> None:
    run = letters.run("Model", MANY, saying('[{"bbox": [600, 200, 900, 900], "label": "dog"}]'))
    for by, expected in (("label", {"cat": 5}), ("size", {"medium": 5}), ("objects", {"2": 5})):
        slices = errors_by_slice(run, by)
        assert {each.name: sum(each.events.values()) for each in slices} == expected
    run = letters.run("Model", PLAIN, guessing(0.5))
    rows = tuple(replace(row, slices={}) if at % 2 else row for at, row in enumerate(run.rows))
    for some, names in ((run, set()), (replace(run, rows=rows), {"(none)"})):
        slices = errors_by_slice(some, "animal")
        assert names <= {each.name for each in slices} <= {"cat", "dog", "cow", *names}
        assert sum(each.total for each in slices) == pytest.approx(lost_points(run))
    with pytest.raises(StatisticsError, match=r"no slices by 'anmal'.*animal"):
        errors_by_slice(run, "anmal")


# --- the command ----------------------------------------------------------------------------------


def test_on_a_terminal_runs_are_a_line_each(world: World, monkeypatch, capsys) -> None:
    run = world.run("One", NAME, ODD)
    world.run("Two", NAME, ODD)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert main(["errors", str(world.runs)]) == 0
    _, first, second, rest = capsys.readouterr().out.splitlines()
    largest = max(errors_of(run), key=lambda cost: cost.points)
    assert first.startswith(f"One on {NAME}: F1@0.5 (failed calls as misses) ")
    assert f", {largest.error_type.name} -{largest.points:.1f}" in first
    assert second == first.replace("One", "Two")
    assert rest.endswith("run_findit.py errors FILE")


def test_everything_at_once_and_twice(world: World, capsys, tmp_path) -> None:
    run = world.run("One", NAME, speaking(NAME, 0.6, 12.0))
    other = world.run("Other", NAME, ODD)
    out = tmp_path / "errors.json"
    words = ["errors", "--json", str(out), "--by", "size", str(run.path), "--against"]
    texts = []
    for _ in range(2):
        assert main([*words, str(other.path)]) == 0
        texts.append((capsys.readouterr().out, out.read_text()))
    assert texts[0] == texts[1]
    lines = texts[0][0].splitlines()
    assert max(map(len, lines)) <= 80
    assert lines.count(f"{INTERVAL}: {INTERVALS_ALONE}.") == 1, "Holm's p is not of these"
    at = lines.index(f"One on {NAME}")
    assert lines[at + 2].startswith("F1@0.5 (failed calls as misses)")
    assert lines[at + 3 + len(points(run))].split() == ["sum", "100.0"]
    (entry,) = json.loads(texts[0][1])
    errors, against, by_size = entry["tables"][:3]
    score, *costs, whole = [row["points"]["value"] for row in errors["rows"]]
    assert score + sum(costs) == pytest.approx(whole) == pytest.approx(100)
    first, *sizes = [row["points"] for row in by_size["rows"]]
    assert first == pytest.approx(sum(costs)) == pytest.approx(sum(sizes))
    difference = lost_points(run) - lost_points(other)
    assert against["rows"][-1]["points"]["value"] == pytest.approx(difference)


def test_refusals(world: World, capsys) -> None:
    run = world.run("Model", NAME, ODD)
    world.run("Other", NAME, ODD)
    for words, message in (
        ([run.path, "--by", "sizes"], "size"),
        ([run.path, "--against", "nowhere.json"], "does not exist"),
        ([run.path, "--against", world.runs], "2 runs in it: name the file of a single run"),
        (["nothing"], "nothing: does not exist"),
    ):
        assert main(["errors", *map(str, words)]) == 2
        output = capsys.readouterr()
        assert message in output.err
    assert output.out == ""


# --- the leaderboard ------------------------------------------------------------------------------


def test_the_leaderboard_has_the_errors(world: World) -> None:
    runs = [world.run("One", NAME, speaking(NAME, 0.6, 12.0)), world.run("Two", NAME, ODD)]
    # A run as older versions scored it, without events
    rows = tuple(
        replace(
            row, sums={n: v for n, v in row.sums.items() if not n.startswith("lost")}, details={}
        )
        for row in runs[1].rows
    )
    old = replace(runs[1], model="Old", rows=rows)
    table = errors_table(make_board([*runs, old]))
    by_model = {row["model"]: row for row in table.records()}
    for run in runs:
        row = by_model[run.model]
        assert (row["dataset"], row["format"]) == ("Pascal", "xyxy_json_bbox_2d")
        assert {name: row[f"{name} events"] for name in events(run)} == events(run)
        assert {name: row[name] for name in points(run)} == pytest.approx(points(run))
    assert not any(field.name.startswith("wrong frame") for field in table.fields)
    assert by_model["Old"]["nothing found"] is None is not by_model["Two"]["nothing found"]
    assert by_model["Old"]["F1@0.5 (failed calls as misses)"] is not None


SETS = [f"FindIt_{name}_xyxy_json" for name in ("Pascal", "PhraseCut", "RefCOCO")]


@pytest.mark.parametrize(
    "asked",
    few_fast([{"Skips": SETS[:1]}, {"Skips": SETS[1:]}, {"Skips": SETS[:2], "Other": SETS[2:]}], 1),
)
def test_a_model_without_a_dataset_has_no_mean_loss(
    world: World, asked: dict[str, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever it lacks: a mean over other queries would be compared with the others'."""
    for name in ("PhraseCut", "RefCOCO"):
        world.table(name, [query(i, f"{i}.jpg") for i in range(6)])
    asked = {"Whole": SETS, **asked}
    runs = {(m, n): world.run(m, n, speaking(n, 0.7)) for m, names in asked.items() for n in names}
    board = make_board(list(runs.values()))
    rows = {row["model"]: row for row in lost_table(board).records()}
    assert {model: row["datasets"] for model, row in rows.items()} == {
        model: f"{len(names)}/3" for model, names in asked.items()
    }
    lost = np.mean([lost_points(runs["Whole", name]) for name in SETS])
    assert rows["Whole"]["score"] == pytest.approx(100 - lost)
    assert rows["Whole"]["lost"] == pytest.approx(lost)
    lacking = [model for model in asked if model != "Whole"]
    for model in lacking:
        values = [rows[model][name] for name in ("score", "lost", "mostly by")]
        assert values == [None, None, ""]
    # The same in every file and on the terminal
    write_board(board, tmp_path / "out")
    page = (tmp_path / "out" / "leaderboard.md").read_text(encoding="utf-8")
    of_page = page.partition("## What was lost")[2].partition("##")[0].splitlines()
    sheet = load_workbook(tmp_path / "out" / "leaderboard.xlsx")["What was lost"]
    of_sheet = {cells[0]: cells[1:3] for cells in sheet.iter_rows(values_only=True)}
    assert main(["leaderboard", str(world.runs), "--out", str(tmp_path / "again")]) == 0
    printed = capsys.readouterr().out.partition("What was lost")[2].splitlines()
    for model in lacking:
        count = f"{len(asked[model])}/3"
        (line,) = (line for line in of_page if line.startswith(f"| {model} "))
        assert line == f"| {model} | – | – |  | {count} |"
        assert of_sheet[model] == (None, None)
        (line,) = (line for line in printed if line.startswith(model))
        assert line.split() == [model, "–", "–", count]


def test_every_benchmark_has_error_types() -> None:
    for benchmark in benchmarks():
        error_types = benchmark.errors.error_types
        for values in zip(*((each.key, each.name) for each in error_types), strict=True):
            assert len({*values}) == len(error_types)
        assert benchmark.errors.score is benchmark.headline_counting_failures
        assert all(each.meaning for each in error_types)
        assert sum(benchmark.errors.points({}).values()) == 0


ONE_SIDED = (
    "background: a box where there is no such object",
    "missed: an object without a box, in an answer with other boxes",
)
OF_EQUAL_REPLIES = (
    "recoverable: lenient parsing finds the box or its label",
    "not readable: empty or malformed, and lenient parsing finds no box on the object",
)


@pytest.mark.parametrize(
    ("reply", "explained"),
    [
        # One box in no place, and two objects: "background 12" stands beside "missed 24"
        ('[{"bbox": [0, 0, 9, 9]}]', ONE_SIDED),
        ("[]", ()),
        # Whether lenient parsing finds a box on the object depends on the object
        ("The cat is at x1=100, y1=100, x2=300, y2=600.", OF_EQUAL_REPLIES),
        ("The box is [1, 2].", ()),
    ],
)
def test_types_that_are_taken_for_each_other_are_explained(
    reply: str, explained: tuple[str, ...], world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    path = world.predict("M", "FindIt_Pascal_xyxy_json_bbox", saying(reply))
    assert main(["errors", str(path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for line in (*ONE_SIDED, *OF_EQUAL_REPLIES):
        assert (line in said) == (line in explained), said
