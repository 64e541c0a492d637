"""Lost points of scored runs: ``errors``, the leaderboard's table, runs of older versions."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scored_runs import World, failing, query, saying, speaking, world
from toy_benchmark import LETTERS, guessing, letters

from vlmeval_findit.benchmarks import benchmark_of, benchmarks, load
from vlmeval_findit.boxes.box_records import Truth
from vlmeval_findit.cli import main
from vlmeval_findit.core.error_analysis import estimate_errors, lost, with_events
from vlmeval_findit.core.influences import clustered_sums, estimate_metrics
from vlmeval_findit.core.metric import Metric
from vlmeval_findit.core.replies import FAILED, Recorded, Reply
from vlmeval_findit.core.settings import Settings
from vlmeval_findit.leaderboard.board import make_board
from vlmeval_findit.leaderboard.error_tables import errors_table
from vlmeval_findit.runs.run_errors import compare_errors, errors_by_slice, errors_of
from vlmeval_findit.runs.run_statistics import StatisticsError
from vlmeval_findit.runs.scored_run import Run

__all__ = ["letters", "world"]

NAME = "FindIt_Pascal_xyxy_json_bbox_2d"
TEXT = "FindIt_Pascal_xyxy_text"
MANY = "FindIt_Pascal_multilabel_xyxy_json"


def by_row(*answers: str) -> Any:
    """Return a model that answers every row with the next of these texts, in turn."""
    return lambda query, generator: answers[query.index % len(answers)]


ODD = by_row(
    "[]",
    "no idea",
    f"{FAILED} via API.",
    '[{"bbox_2d": [100, 100, 300, 500]}, {"bbox_2d": [900, 900, 999, 999]}]',
    '[{"bbox_2d": ["a", 1, 2, 3]}]',
)


def points(run: Run) -> dict[str, float]:
    return {loss.error_type.name: loss.points for loss in errors_of(run) if loss.events}


def lost_points(run: Run) -> float:
    return 100 - (run.benchmark.with_failures.value(run.sums) or 0)


# --- a run ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [NAME, TEXT, MANY])
def test_points_add_up_to_the_lost_score(world: World, name: str) -> None:
    for at, answer in enumerate((speaking(name, 0.6, 12.0), ODD, failing, speaking(name, 1.0))):
        run = world.run(f"Model{at}", name, answer)
        losses = errors_of(run)
        assert sum(loss.points for loss in losses) == pytest.approx(lost_points(run))
        for loss in losses:
            assert loss.interval is not None
            assert loss.interval.low <= loss.points <= loss.interval.high
            is_right = loss.error_type.name == "rejected rightly"
            assert (loss.points > 0) == (loss.events > 0) or is_right


def test_details_name_the_errors(world: World) -> None:
    world.table("Pascal", [query(0, boxes=[(10, 10, 20, 20), (100, 0, 200, 100)])])
    run = world.run("Model", NAME, saying('[{"bbox_2d": [75, 100, 125, 200]}]'))
    assert run.rows[0].details["errors"] == [
        {"kind": "localisation", "box": 0, "object": 0, "size": "small"},
        {"kind": "missed", "box": None, "object": 1, "size": "large"},
    ]


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        (TEXT, "[100, 100, 300, 600], [600, 2", "truncated"),
        (TEXT, "I look at the picture and", "truncated"),
        (NAME, '[{"bbox_2d": [100, 100, 300, 600]}, {"bb', "truncated"),
        # The list is complete: the text after it was cut off.
        (NAME, '```json\n[{"bbox_2d": [100, 100, 300, 600]}]\n```\nSo', "missed"),
    ],
)
def test_errors_of_a_cut_reply(world: World, name: str, text: str, kind: str) -> None:
    world.table("Pascal", [query(0, boxes=[(20, 10, 60, 60), (120, 20, 180, 90)])])
    task = load(name)
    reply = Reply(0, text, Recorded(finish_reason="length"))
    settings = Settings(space={"kind": "grid1000"})
    (row,) = benchmark_of(name).score_batch("Model", task, [reply], settings, None).rows
    lost_objects = {error["kind"] for error in row.details["errors"] if error["object"] == 1}
    assert lost_objects == {kind}


def test_queries_with_nothing_to_find(world: World) -> None:
    """As most of D3: no box is right, a box is wrong, and so is an unreadable reply."""
    empty = [replace(query(i, f"{i}.jpg"), truth=Truth((), ())) for i in range(6)]
    world.table("Pascal", [*empty[:5], query(5, "5.jpg")])
    box = '[{"bbox_2d": [100, 100, 300, 500]}]'
    run = world.run("Model", NAME, by_row("[]", box, "no such thing", f"{FAILED} via API.", "[]"))
    events = {loss.error_type.name: loss.events for loss in errors_of(run) if loss.events}
    assert events == {"rejected rightly": 2, "false alarm": 1, "refused": 2}
    assert points(run)["rejected rightly"] == 0
    assert sum(points(run).values()) == pytest.approx(100)


def test_nothing_to_find_and_no_answer(world: World, capsys) -> None:
    world.table("Pascal", [replace(query(i), truth=Truth((), ())) for i in range(5)])
    run = world.run("Model", NAME, saying("[]"))
    assert points(run) == {"rejected rightly": 0}
    assert main(["errors", str(run.path)]) == 0
    assert "nothing is lost" in capsys.readouterr().out


def without_events(run: Run) -> Run:
    """Return the run as older versions scored it, without events."""
    rows = tuple(
        replace(
            row,
            sums={name: n for name, n in row.sums.items() if not name.startswith("lost")},
            details={name: value for name, value in row.details.items() if name != "errors"},
        )
        for row in run.rows
    )
    return replace(run, rows=rows)


def test_on_a_terminal_runs_are_a_line_each(world: World, monkeypatch, capsys) -> None:
    run = world.run("One", NAME, ODD)
    world.run("Two", NAME, ODD)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert main(["errors", str(world.runs)]) == 0
    _, first, second, rest = capsys.readouterr().out.splitlines()
    largest = max(errors_of(run), key=lambda loss: loss.points)
    assert first.startswith(f"One on {NAME}: F1@0.5 (failed calls as misses) ")
    assert f", {largest.error_type.name} -{largest.points:.1f}" in first
    assert second == first.replace("One", "Two")
    assert rest.endswith("run_findit.py errors FILE")
    assert main(["errors", str(world.runs), "--by", "size"]) == 0
    assert "mostly" in capsys.readouterr().out


# --- influence ------------------------------------------------------------------------------------


def test_the_influence_of_errors_is_minus_that_of_the_score(letters: World) -> None:
    run = letters.run("Model", "Letters_Zoo_plain", guessing(0.6))
    estimate = estimate_errors(
        LETTERS.errors, clustered_sums(with_events(LETTERS.errors, run.rows), "Letters")
    )
    score = estimate_metrics([LETTERS.with_failures], clustered_sums(run.rows, "Letters"))
    assert 1 - estimate.values.sum() == pytest.approx(score.values[0])
    assert estimate.influence.sum(axis=1) == pytest.approx(-score.influence[:, 0], rel=0.02)
    assert (estimate.counted == score.counted).all()


def test_a_mean_over_slices_has_error_types_too(letters: World, monkeypatch) -> None:
    over = Metric("Mean", {"right": 1}, {"asked": 1}, over="animal")
    monkeypatch.setattr(type(LETTERS), "with_failures", over)
    run = letters.run("Model", "Letters_Zoo_plain", guessing(0.6))
    assert 0 < sum(points(run).values()) == pytest.approx(100 - over.value(run.sums))  # type: ignore[operator]
    assert all(loss.interval for loss in errors_of(run))


def test_too_few_pictures_have_no_interval(world: World) -> None:
    world.table("Pascal", [query(i, f"{i // 2}.jpg") for i in range(6)])
    run = world.run("Model", NAME, ODD)
    assert {loss.interval for loss in errors_of(run)} == {None}
    other = world.run("Other", NAME, speaking(NAME, 0.5))
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
        drawn = generator.choice(list(by_picture), 50)
        rows = [
            replace(row, source=f"{at}.jpg")
            for at, picture in enumerate(drawn)
            for row in by_picture[picture]
        ]
        for loss in errors_of(replace(run, rows=tuple(rows))):
            name, bounds = loss.error_type.name, loss.interval
            if name in true and bounds is not None:
                covered[name] += bounds.low <= true[name] <= bounds.high
    assert set(covered) >= {"localisation", "missed"}
    assert all(count >= 90 for count in covered.values()), covered


# --- pairs ----------------------------------------------------------------------------------------


def test_two_runs_by_error_type(world: World) -> None:
    run = world.run("One", NAME, speaking(NAME, 0.9, 12.0))
    other = world.run("Other", TEXT, failing)
    differences = compare_errors(run, other)
    assert sum(d.value for d in differences.values()) == pytest.approx(
        lost_points(run) - lost_points(other)
    )
    back = compare_errors(other, run)
    assert {key: -d.value for key, d in back.items()} == pytest.approx(
        {key: d.value for key, d in differences.items()}
    )
    failed = differences[lost("failed call")]
    assert failed.interval is not None
    assert failed.interval.low < failed.value < failed.interval.high <= 0
    assert all(d.corrected >= d.p_value for d in differences.values())  # type: ignore[operator]
    assert {(d.value, d.p_value) for d in compare_errors(run, run).values()} == {(0.0, 1.0)}


def test_runs_that_cannot_be_compared_are_refused(letters: World) -> None:
    run = letters.run("One", NAME, ODD)
    short = letters.run("Short", NAME, ODD, rows=8)
    with pytest.raises(StatisticsError, match="only runs over the same rows"):
        compare_errors(run, short)
    # The same rows of the same pictures, but other objects.
    letters.table("Pascal", [query(i, f"{i}.jpg") for i in range(5)])
    single, many = letters.run("One", NAME, ODD), letters.run("One", MANY, ODD)
    for other in (run, many, letters.run("One", "Letters_Zoo_plain", guessing(0.5))):
        with pytest.raises(StatisticsError, match="only runs of one question over one table"):
            compare_errors(single, other)


# --- parts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["size", "objects", "label"])
@pytest.mark.parametrize("name", [NAME, MANY])
def test_parts_add_up(world: World, name: str, by: str) -> None:
    run = world.run("Model", name, ODD)
    parts = errors_by_slice(run, by)
    for loss in errors_of(run):
        key = loss.error_type.key
        assert sum(part.events.get(key, 0) for part in parts) == pytest.approx(loss.events)
        assert sum(part.points.get(key, 0) for part in parts) == pytest.approx(loss.points)
    assert [part.total for part in parts] == sorted((p.total for p in parts), reverse=True)


def test_parts_are_of_single_objects(world: World) -> None:
    run = world.run("Model", MANY, saying('[{"bbox": [600, 200, 900, 900], "label": "dog"}]'))
    assert {part.name: sum(part.events.values()) for part in errors_by_slice(run, "label")} == {
        "cat": 5
    }
    sizes = {part.name: sum(part.events.values()) for part in errors_by_slice(run, "size")}
    assert sizes == {"medium": 5}
    assert [part.name for part in errors_by_slice(run, "objects")] == ["2"]


def test_parts_of_slices(letters: World) -> None:
    run = letters.run("Model", "Letters_Zoo_plain", guessing(0.5))
    rows = tuple(replace(row, slices={}) if at % 2 else row for at, row in enumerate(run.rows))
    for some, names in ((run, set()), (replace(run, rows=rows), {"(none)"})):
        parts = errors_by_slice(some, "animal")
        assert names <= {part.name for part in parts} <= {"cat", "dog", "cow", *names}
        assert sum(part.total for part in parts) == pytest.approx(lost_points(run))
    with pytest.raises(StatisticsError, match=r"no slices by 'anmal'.*animal"):
        errors_by_slice(run, "anmal")


# --- the command ----------------------------------------------------------------------------------


def test_the_table(world: World, capsys) -> None:
    run = world.run("Model", NAME, ODD)
    assert main(["errors", str(run.path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    at = lines.index(f"Model on {NAME}")
    first, *error_types, last = [line.split() for line in lines[at + 2 :]]
    assert " ".join(first).startswith("F1@0.5 (failed calls as misses)")
    assert last == ["sum", "100.0"]
    shown = float(first[-1]) + sum(float(words[-2]) for words in error_types)
    assert shown == pytest.approx(100, abs=0.05 * (len(error_types) + 1))
    assert len(error_types) == len(points(run))


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
    assert max(map(len, texts[0][0].splitlines())) <= 80
    (entry,) = json.loads(out.read_text())
    errors, against, by_size = entry["tables"][:3]
    score, *error_types, whole = [row["points"]["value"] for row in errors["rows"]]
    assert score + sum(error_types) == pytest.approx(whole) == pytest.approx(100)
    assert by_size["rows"][0]["points"] == pytest.approx(sum(error_types))
    assert sum(row["points"] for row in by_size["rows"][1:]) == pytest.approx(sum(error_types))
    assert against["rows"][-1]["points"]["value"] == pytest.approx(
        lost_points(run) - lost_points(other)
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--by", "sizes"], "size"),
        (["--against", "nowhere.json"], "no such file"),
        (["--against", "{folder}"], "2 runs are there: name the file of a run"),
    ],
)
def test_invalid_flags_are_refused(world: World, capsys, words: list[str], message: str) -> None:
    run = world.run("Model", NAME, ODD)
    world.run("Other", NAME, ODD)
    flags = [word.format(folder=world.runs) for word in words]
    assert main(["errors", str(run.path), *flags]) == 2
    assert message in capsys.readouterr().err


# --- the leaderboard ------------------------------------------------------------------------------


def test_the_leaderboard_has_the_errors(world: World) -> None:
    runs = [world.run("One", NAME, speaking(NAME, 0.6, 12.0)), world.run("Two", NAME, ODD)]
    table = errors_table(make_board(runs))
    rows = {row["model"]: row for row in table.records()}
    for run in runs:
        row = rows[run.model]
        assert (row["dataset"], row["format"]) == ("Pascal", "xyxy_json_bbox_2d")
        for loss in errors_of(run):
            if loss.events:
                assert row[loss.error_type.name] == pytest.approx(loss.points)
                assert row[f"{loss.error_type.name} events"] == loss.events
    assert not any(field.name.startswith("wrong frame") for field in table.fields)


def test_a_run_of_an_older_version_leaves_its_row_empty(world: World) -> None:
    run = world.run("New", NAME, ODD)
    old = replace(without_events(world.run("Old", NAME, ODD)), model="Old")
    rows = {row["model"]: row for row in errors_table(make_board([run, old])).records()}
    assert rows["Old"]["refused"] is None is not rows["New"]["refused"]
    assert rows["Old"]["F1@0.5 (failed calls as misses)"] is not None


def test_every_benchmark_has_error_types() -> None:
    for benchmark in benchmarks():
        error_types = benchmark.errors.error_types
        for values in zip(*((each.key, each.name) for each in error_types), strict=True):
            assert len({*values}) == len(error_types)
        assert benchmark.errors.score is benchmark.with_failures
        assert all(each.meaning for each in error_types)
        assert sum(benchmark.errors.points({}).values()) == 0


def test_nothing_is_printed_before_a_refusal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["errors", "nothing"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert "nothing: no such file or folder" in output.err
